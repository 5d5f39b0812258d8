//! Builds the writes that evict a pod.

use crate::key::ObjectKey;
use crate::reconciler::output::WriteOp;
use crate::reconciler::plan::VictimPodAction;
use crate::reconciler::soft_eviction::soft_eviction_patch;
use crate::reconciler::state::View;
use crate::reconciler::status::conditions::timestamp;
use serde_json::json;

/// The write for a pod; `None` if it is no victim any more.
pub(in crate::reconciler) fn build_victim_write(
    view: View<'_>,
    key: &ObjectKey,
    action: VictimPodAction,
) -> Option<WriteOp> {
    let victim = view.placement?.victims.get(key)?;
    let uid = victim.uid.clone();
    Some(match action {
        VictimPodAction::Evict => WriteOp::Evict { uid },
        VictimPodAction::Delete => WriteOp::Delete { uid },
        VictimPodAction::SoftEvict => WriteOp::Patch(soft_eviction_patch(
            view.model,
            key.namespace(),
            &uid,
            &victim.preemptor_uid,
        )),
        VictimPodAction::MarkDisrupted => {
            // A name would reveal an object of another tenant.
            let preemptor = if victim.preemptor.namespace() == key.namespace() {
                victim.preemptor.key()
            } else {
                &victim.preemptor_uid
            };
            WriteOp::PatchPodConditions(json!({
                "metadata": {"uid": uid},
                "status": {"conditions": [{
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "PreemptedByLockkeeper",
                    "message": format!("Preempted on its node for workload {preemptor} of higher priority"),
                    "lastTransitionTime": timestamp(view.now_ms),
                }]},
            }))
        }
    })
}

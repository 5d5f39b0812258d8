//! Watch events of `PodGroup` objects.

use super::job::replace_pod_view;
use crate::job_adapters::POD;
use crate::key::{JobKey, ObjectKey};
use crate::reconciler::input::Change;
use crate::reconciler::pod_groups::pod_group_policy::{PodGroupPolicy, apply_pod_group};
use crate::reconciler::state::ReconcilerState;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

/// Records a `PodGroup`, and applies it to the pods that name it. Costs the pods of the group. The pods of a deleted one stay
/// as they are: they may run.
pub(crate) fn observe_pod_group(
    state: &mut ReconcilerState,
    change: Change<Box<PodGroup>>,
    now_ms: i64,
) {
    let policies = &mut state.model.pod_group_policies;
    let group = match change {
        Change::Applied(object) => {
            let key = ObjectKey::from_metadata(&object.metadata);
            let policy = PodGroupPolicy::new(&object);
            if policies.insert(key.clone(), policy) == Some(policy) {
                return;
            }
            key
        }
        Change::Deleted(key) => {
            policies.remove(&key);
            return;
        }
    };
    let pods = state.model.pod_groups.pods(&group).cloned();
    let pods: Vec<ObjectKey> = pods.collect();
    for name in pods {
        let key = JobKey { kind: POD, name };
        let Some(job) = state.model.jobs.get(&key) else {
            continue;
        };
        let mut view = job.view.clone();
        let policies = &state.model.pod_group_policies;
        apply_pod_group(policies, Some(&job.view), &mut view);
        if view != job.view {
            replace_pod_view(state, &key, view, now_ms);
        }
    }
}

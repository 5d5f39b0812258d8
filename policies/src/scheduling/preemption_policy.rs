//! The preemption policy of a group.
#![doc = include_str!("template_preemption_policy.md")]
#![doc = include_str!("pod_group_preemption_policy.md")]

use super::feature_gates::{PREEMPTION_POLICY, is_enabled};
use super::pod_group_view::PodGroupFields;
use crate::cluster_view::PreemptionPolicy;
use crate::finding::Findings;
use crate::priority_admission::resolve;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::v1beta1::{PodGroup, Workload};

pub(super) const WORKLOAD: Rule<Workload> = Rule::mirrored(
    "KW014",
    "template-preemption-policy-unknown",
    &[],
    include_str!("template_preemption_policy.md"),
    Check::Create(unknown::<Workload>),
);

pub(super) const POD_GROUP: Rule<PodGroup> = Rule::mirrored(
    "PG017",
    "pod-group-preemption-policy-malformed",
    &[],
    include_str!("pod_group_preemption_policy.md"),
    Check::Create(pod_group),
);

fn unknown<T: PodGroupFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if !is_enabled(PREEMPTION_POLICY, context) {
        return;
    }
    for group in object.groups() {
        if let Some(given) = group.preemption_policy
            && PreemptionPolicy::parse(given).is_none()
        {
            let field = group.path.clone().field("preemptionPolicy");
            out.not_supported(field, given, &PreemptionPolicy::NAMES);
        }
    }
}

fn pod_group(group: &PodGroup, context: &Context<'_>, out: &mut Findings) {
    unknown(group, context, out);
    if !is_enabled(PREEMPTION_POLICY, context) {
        return;
    }
    let (group, field) = (&group.spec.group, FieldPath::new("spec.preemptionPolicy"));
    // The default of the schema is set before the plugin reads the class.
    let default = PreemptionPolicy::PreemptLowerPriority;
    let given = group.preemption_policy.as_deref();
    let Some(policy) = given.map_or(Some(default), PreemptionPolicy::parse) else {
        return;
    };
    let resolved = resolve(context.cluster, &group.base.priority_class_name).found();
    let class_policy = resolved.and_then(|it| it.policy.zip(Some(it)));
    if let Some((of_class, priority)) = class_policy.filter(|(of_class, _)| *of_class != policy) {
        let (policy, of_class) = (policy.as_str(), of_class.as_str());
        let source = priority.source();
        let detail = match given {
            Some(_) => format!("policy {policy} must be {of_class}, that {source}"),
            None => format!(
                "write {of_class}, the policy {source}; an API server sets {policy} and rejects that"
            ),
        };
        out.forbidden(field, detail);
    }
}

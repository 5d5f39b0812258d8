#![doc = include_str!("cannot_preempt.md")]

use crate::cluster_view::PreemptionPolicy;
use crate::cohort_trees::Project;
use crate::finding::Findings;
use crate::index::IndexedKind;
use crate::priority_admission;
use crate::rule::{Check, Context, Layer, Rule};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<PriorityClass> = Rule {
    id: "PC010",
    name: "priority-class-cannot-preempt",
    since: "0.1.0",
    action: Action::Audit,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("cannot_preempt.md"),
    check: Check::Context(check),
};

fn check(class: &PriorityClass, context: &Context<'_>, out: &mut Findings) {
    let policy = PreemptionPolicy::PreemptLowerPriority.as_str();
    if class.preemption_policy.as_deref() != Some(policy) {
        return;
    }
    let cluster = context.cluster;
    let projects = [Project::Lockkeeper, Project::Kueue];
    // In such a queue the class can preempt workloads of the same priority.
    if projects
        .iter()
        .any(|it| cluster.tree(*it).preempts_equals())
    {
        return;
    }
    let value = class.value.unwrap_or_default();
    let name = class.metadata.name.as_deref().unwrap_or_default();
    let others = cluster
        .lowest_class(IndexedKind::PriorityClass, name)
        .found();
    let kueues = cluster.lowest_class(IndexedKind::WorkloadPriorityClass, "");
    // Pods without a class will get the value of this one, if it is the global default.
    let unnamed = if class.global_default == Some(true) {
        Some(value)
    } else {
        priority_admission::resolve(cluster, "")
            .found()
            .map(|it| it.value)
    };
    let (Some((lowest, _)), Some(unnamed)) = (others, unnamed) else {
        return;
    };
    let kueues = kueues.found().map_or(lowest, |(value, _)| value);
    let below = lowest.min(unnamed).min(kueues);
    if value <= below {
        out.invalid(
            FieldPath::new("preemptionPolicy"),
            policy,
            format!("cannot preempt, because no priority is below {value}; set it to Never, or raise the value"),
        );
    }
}

#![doc = include_str!("pods_of_other_priority.md")]

use super::{Submission, queues};
use crate::finding::{Findings, quoted};
use crate::priority_admission::resolve;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;

/// The rule for a kind.
pub(crate) const fn rule<T: Submission>() -> Rule<T> {
    Rule {
        id: "QU006",
        name: "pods-of-other-priority",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("pods_of_other_priority.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: Submission>(object: &T, context: &Context<'_>, out: &mut Findings) {
    // Without a class of its own the workload gets that of its pods.
    let [Some(class), _] = object.classes() else {
        return;
    };
    let Some(queues) = queues(object, context) else {
        return;
    };
    if !queues.cluster_queue_facts.places_on_nodes {
        return;
    }
    let Some(of_workload) = resolve(context.cluster, class).found() else {
        return;
    };
    for pods in object.pods() {
        let class_of_pods = pods.spec.priority_class_name.as_deref().unwrap_or_default();
        let Some(of_pods) = resolve(context.cluster, class_of_pods).found() else {
            continue;
        };
        if of_pods.value != of_workload.value {
            out.invalid(
                pods.path().field("priorityClassName"),
                class_of_pods,
                format!(
                    "the pods have priority {} {}, and the workload has {} {}; kube-scheduler preempts by the priority of \
                     pods, so give them the class {}",
                    of_pods.value,
                    of_pods.source(),
                    of_workload.value,
                    of_workload.source(),
                    quoted(class),
                ),
            );
        }
    }
}

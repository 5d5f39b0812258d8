#![doc = include_str!("priority_class_not_allowed.md")]

use super::{Queues, Submission, queues};
use crate::finding::{Findings, join_names, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::allowed_priority_classes::is_priority_class_allowed;
use lockkeeper_api::config::Action;

/// The rule for a kind.
pub(crate) const fn rule<T: Submission>() -> Rule<T> {
    Rule {
        id: "QU001",
        name: "priority-class-not-allowed",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("priority_class_not_allowed.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: Submission>(object: &T, context: &Context<'_>, out: &mut Findings) {
    let classes = object.classes();
    if classes.iter().all(Option::is_none) {
        return;
    }
    let Some(queues) = queues(object, context) else {
        return;
    };
    let by_cluster_queue = queues
        .cluster_queue_facts
        .allowed_priority_classes
        .as_deref();
    let by_local_queue = queues.local_queue_facts.allowed_priority_classes.as_deref();
    for (position, class) in classes.into_iter().enumerate() {
        let Some(class) = class else { continue };
        if !is_priority_class_allowed(class, by_cluster_queue, by_local_queue) {
            out.invalid(object.class_path(position), class, detail(&queues));
        }
    }
}

fn detail(queues: &Queues<'_>) -> String {
    let local_queue = quoted(queues.local_queue);
    let by_local_queue = queues.local_queue_facts.allowed_priority_classes.as_deref();
    let by_cluster_queue = queues
        .cluster_queue_facts
        .allowed_priority_classes
        .as_deref();
    let Some(shortest) = by_local_queue.or(by_cluster_queue) else {
        let cluster_queue = quoted(queues.cluster_queue());
        return format!(
            "is a class of Kubernetes itself, which only spec.allowedPriorityClasses of ClusterQueue {cluster_queue} can \
             allow; name another class"
        );
    };
    let is_allowed = |it: &&String| is_priority_class_allowed(it, by_cluster_queue, by_local_queue);
    let names = join_names(shortest.iter().filter(is_allowed).map(String::as_str));
    match names.as_str() {
        "" => format!(
            "LocalQueue {local_queue} allows no class (spec.allowedPriorityClasses); leave it out"
        ),
        names => format!(
            "is not allowed in LocalQueue {local_queue} (spec.allowedPriorityClasses); name one of {names}"
        ),
    }
}

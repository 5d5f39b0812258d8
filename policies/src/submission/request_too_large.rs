#![doc = include_str!("request_too_large.md")]

use super::{Pods, Queues, Submission, queues};
use crate::cohort_trees::queue_summary::QueueView;
use crate::cohort_trees::{NodeKind, Project, SubjectFacts};
use crate::finding::{Findings, quoted};
use crate::pod_requests::{requested_resources, total_request};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeMap;

/// The rule for a kind.
pub(crate) const fn rule<T: Submission>() -> Rule<T> {
    Rule {
        id: "QU005",
        name: "request-above-every-flavor",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("request_too_large.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: Submission>(object: &T, context: &Context<'_>, out: &mut Findings) {
    let pods = object.pods();
    if pods.is_empty() {
        return;
    }
    let Some(queues) = queues(object, context) else {
        return;
    };
    let tree = context.cluster.tree(Project::Lockkeeper);
    let facts = SubjectFacts::Stored(queues.cluster_queue_facts);
    // Without a view the cohorts form a cycle, and another rule reports it.
    let Some(view) = QueueView::for_node(tree, NodeKind::Queue, queues.cluster_queue(), facts)
    else {
        return;
    };
    // Most pod sets request the same resources.
    let mut largest: BTreeMap<&str, Option<Quantity>> = BTreeMap::new();
    for pods in &pods {
        for resource in requested_resources(pods.spec, |_| true) {
            let most = largest
                .entry(resource)
                .or_insert_with(|| largest_flavor(&queues, &view, resource));
            if let Some(most) = *most {
                check_resource(&queues, most, pods, resource, out);
            }
        }
    }
}

/// Reports a request for more of a resource than any flavor can provide.
fn check_resource(
    queues: &Queues<'_>,
    most: Quantity,
    pods: &Pods<'_>,
    resource: &str,
    out: &mut Findings,
) {
    let of_pod = total_request(pods.spec, resource);
    let total = of_pod.nano().checked_mul(i128::from(pods.count));
    if total.is_none_or(|total| total > most.nano()) {
        let (count, queue) = (pods.count, quoted(queues.cluster_queue()));
        out.invalid(
            pods.path(),
            resource,
            format!(
                "{count} pods of {of_pod} each exceed the {most} that any flavor of ClusterQueue {queue} can provide, so \
                 the job waits forever; request less"
            ),
        );
    }
}

/// The most of a resource that one flavor can provide, borrowed quota included. `None` if no flavor covers the resource,
/// or if it is not known.
fn largest_flavor(queues: &Queues<'_>, view: &QueueView<'_>, resource: &str) -> Option<Quantity> {
    let facts = queues.cluster_queue_facts;
    let mut most: Option<Quantity> = None;
    for (of, limits) in facts.quotas.iter().filter(|(of, _)| of.1 == resource) {
        let borrowable = if facts.parent.is_some() {
            let borrowable = view.max_borrowable(of, limits)?;
            limits.borrowing.map_or(borrowable, |it| it.min(borrowable))
        } else {
            Quantity::ZERO
        };
        let total = limits.nominal.checked_add(borrowable)?;
        most = Some(most.map_or(total, |it| it.max(total)));
    }
    most
}

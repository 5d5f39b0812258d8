#![doc = include_str!("uncovered_resource.md")]

use super::{Submission, queues};
use crate::finding::{Findings, join_names, quoted};
use crate::pod_requests::{requested_resources, total_request};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use std::collections::BTreeSet;

/// The rule for a kind.
pub(crate) const fn rule<T: Submission>() -> Rule<T> {
    Rule {
        id: "QU004",
        name: "uncovered-resource",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("uncovered_resource.md"),
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
    let facts = queues.cluster_queue_facts;
    let quotas = &facts.quotas;
    let covered: BTreeSet<&str> = quotas.iter().map(|((_, resource), _)| resource).collect();
    if covered.is_empty() && facts.places_on_nodes {
        return;
    }
    for pods in pods {
        for resource in requested_resources(pods.spec, |it| !covered.contains(it)) {
            if total_request(pods.spec, resource).is_zero() {
                continue;
            }
            let queue = quoted(queues.cluster_queue());
            let remedy = match join_names(covered.iter().copied()).as_str() {
                "" => "the queue covers no resource".to_owned(),
                names => format!("the queue covers {names}"),
            };
            out.invalid(
                pods.path(),
                resource,
                format!("has no quota in ClusterQueue {queue}, so the job waits forever; {remedy}"),
            );
        }
    }
}

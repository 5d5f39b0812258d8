#![doc = include_str!("unknown_class.md")]

use super::Submission;
use crate::cluster_view::Lookup;
use crate::finding::Findings;
use crate::priority_admission::known_classes;
use crate::rule::{Check, Context, Layer, Rule};
use crate::workload::priorities::class;
use lockkeeper_api::config::Action;

/// The rule for a kind of job. WL004 is the rule for Workloads.
pub(crate) const fn rule<T: Submission>() -> Rule<T> {
    Rule {
        id: "QU003",
        name: "unknown-class-of-job",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("unknown_class.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: Submission>(object: &T, context: &Context<'_>, out: &mut Findings) {
    // Without a queue the labels have no effect.
    if object.queue_name().is_none() {
        return;
    }
    for (position, name) in object.classes().into_iter().enumerate() {
        let Some(name) = name else { continue };
        if class(context.cluster, name) == Lookup::Absent {
            let detail = known_classes(context.cluster);
            out.not_found(object.class_path(position), name, detail);
        }
    }
}

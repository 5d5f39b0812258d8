#![doc = include_str!("threshold_below_every_class.md")]

use crate::finding::{Findings, quoted};
use crate::index::IndexedKind;
use crate::priority_admission;
use crate::quota::QueueFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: "CQ021",
        name: "threshold-below-every-class",
        since: "0.1.0",
        action: Action::Audit,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("threshold_below_every_class.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QueueFields>(queue: &T, context: &Context<'_>, out: &mut Findings) {
    let (Some(threshold), Some(_)) = (
        queue.max_priority_threshold(),
        queue.borrow_preemption_policy(),
    ) else {
        return;
    };
    let Some((value, source)) = lowest::<T>(context) else {
        return;
    };
    if threshold < value {
        out.invalid(
            FieldPath::new("spec.preemption.borrowWithinCohort.maxPriorityThreshold"),
            threshold,
            format!("no workload has so low a priority; the lowest is {value}, of {source}"),
        );
    }
}

/// The lowest priority of a workload, with its source for the message; `None` if unknown.
fn lowest<T: QueueFields>(context: &Context<'_>) -> Option<(i32, String)> {
    let cluster = context.cluster;
    let of = |kind| cluster.lowest_class(kind, "").found();
    let pods = of(IndexedKind::PriorityClass).map(|(value, name)| (value, quoted(name)));
    // Without a global default the priority is 0.
    let unnamed = priority_admission::resolve(cluster, "").found();
    let unnamed = unnamed.map_or(0, |it| it.value);
    let unnamed = (unnamed, "workloads without a class".to_owned());
    // Workloads of Kueue may have a WorkloadPriorityClass: without these the lowest is unknown.
    let all = if T::OWN {
        [Some(pods?), None, Some(unnamed)]
    } else {
        let own = of(IndexedKind::WorkloadPriorityClass)?;
        [pods, Some((own.0, quoted(own.1))), Some(unnamed)]
    };
    all.into_iter().flatten().min()
}

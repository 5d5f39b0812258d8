//! A circle, told to people.

use crate::queue_tree::SimulatedCluster;
use crate::run::{CycleEvents, PreemptionLoop};
use lockkeeper_cluster_state::quantity;
use lockkeeper_preemption::Amount;
use std::collections::BTreeSet;

impl PreemptionLoop {
    /// Who takes part and what happens, a line each. Workloads are named `w1`, `w2`… in the order in which
    /// they come.
    #[must_use]
    pub fn report(&self, field: &SimulatedCluster) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, guest) in self.workloads.iter().enumerate() {
            let requests = guest.requests.iter().map(|(of, amount)| {
                let resource = field.resource_name(*of);
                let amount = quantity(resource, Amount::new(*amount));
                format!("{amount} {resource}")
            });
            lines.push(format!(
                "{} in ClusterQueue {}, priority {}, wants {}",
                workload_name(number),
                guest.queue,
                guest.priority,
                requests.collect::<Vec<_>>().join(" and "),
            ));
        }
        if field.excluded_queues > 0 {
            let count = field.excluded_queues;
            lines.push(format!(
                "{count} other queues of the tree use their nominal quota"
            ));
        }
        let mut step = 0_usize;
        let mut from = None;
        for (number, round) in self.cycles.iter().enumerate() {
            let Some(told) = describe_cycle(round) else {
                continue;
            };
            step = step.saturating_add(1);
            if number >= self.loop_start && from.is_none() {
                from = Some(step);
            }
            lines.push(format!("{step}. {told}"));
        }
        if let Some(from) = from {
            lines.push(format!("and again from {from} on, without end"));
        }
        lines
    }

    /// The queues of those who preempt.
    #[must_use]
    pub fn preemptors(&self) -> BTreeSet<&str> {
        let rounds = self.cycles.iter().skip(self.loop_start);
        let numbers = rounds.flat_map(|it| it.preempted.keys());
        let guests = numbers.filter_map(|number| self.workloads.get(*number));
        guests.map(|it| it.queue.as_str()).collect()
    }
}

fn workload_name(number: usize) -> String {
    format!("w{}", number.saturating_add(1))
}

fn workload_names<'a>(numbers: impl IntoIterator<Item = &'a usize>) -> String {
    let names = numbers.into_iter().map(|it| workload_name(*it));
    names.collect::<Vec<_>>().join(" and ")
}

/// What happened in a round, if anything did.
fn describe_cycle(round: &CycleEvents) -> Option<String> {
    let mut parts = Vec::new();
    if !round.arrived.is_empty() {
        let verb = if round.arrived.len() == 1 {
            "comes"
        } else {
            "come"
        };
        parts.push(format!("{} {verb}", workload_names(&round.arrived)));
    }
    for (preemptor, victims) in &round.preempted {
        let victims = victims
            .iter()
            .map(|(victim, reason)| format!("{} ({})", workload_name(*victim), reason.as_str()));
        let victims = victims.collect::<Vec<_>>().join(" and ");
        parts.push(format!("{} preempts {victims}", workload_name(*preemptor)));
    }
    if !round.admitted.is_empty() {
        let verb = if round.admitted.len() == 1 {
            "is"
        } else {
            "are"
        };
        parts.push(format!(
            "{} {verb} admitted",
            workload_names(&round.admitted)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

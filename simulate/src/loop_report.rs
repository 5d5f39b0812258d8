//! The report of a preemption loop as text.

use crate::queue_tree::SimulatedCluster;
use crate::run::{CycleEvents, PreemptionLoop};
use lockkeeper_cluster_state::quantity;
use lockkeeper_preemption::Amount;
use std::collections::BTreeSet;

impl PreemptionLoop {
    /// The workloads and the events, one per line. Workloads are named `w1`, `w2`… in order of arrival.
    #[must_use]
    pub fn report(&self, cluster: &SimulatedCluster) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, workload) in self.workloads.iter().enumerate() {
            let requests = workload.requests.iter().map(|(of, amount)| {
                let resource = cluster.resource_name(*of);
                let amount = quantity(resource, Amount::new(*amount));
                format!("{amount} {resource}")
            });
            lines.push(format!(
                "{} in ClusterQueue {}, priority {}, requests {}",
                workload_name(number),
                workload.queue,
                workload.priority,
                requests.collect::<Vec<_>>().join(" and "),
            ));
        }
        if cluster.excluded_queues > 0 {
            let count = cluster.excluded_queues;
            lines.push(format!(
                "{count} other queues of the tree use their nominal quota"
            ));
        }
        let mut step = 0_usize;
        let mut first_step = None;
        for (number, events) in self.cycles.iter().enumerate() {
            // Cycles without events have no line, so steps are numbered separately from cycles.
            let Some(description) = describe_cycle(events) else {
                continue;
            };
            step = step.saturating_add(1);
            if number >= self.loop_start && first_step.is_none() {
                first_step = Some(step);
            }
            lines.push(format!("{step}. {description}"));
        }
        if let Some(from) = first_step {
            lines.push(format!("repeats from step {from} without end"));
        }
        lines
    }

    /// The queues of the preemptors.
    #[must_use]
    pub fn preemptors(&self) -> BTreeSet<&str> {
        let cycles = self.cycles.iter().skip(self.loop_start);
        let numbers = cycles.flat_map(|it| it.preempted.keys());
        let workloads = numbers.filter_map(|number| self.workloads.get(*number));
        workloads.map(|it| it.queue.as_str()).collect()
    }
}

fn workload_name(number: usize) -> String {
    format!("w{}", number.saturating_add(1))
}

fn workload_names<'a>(numbers: impl IntoIterator<Item = &'a usize>) -> String {
    let names = numbers.into_iter().map(|it| workload_name(*it));
    names.collect::<Vec<_>>().join(" and ")
}

/// The events of a cycle; `None` if there are none.
fn describe_cycle(events: &CycleEvents) -> Option<String> {
    let mut parts = Vec::new();
    if !events.arrived.is_empty() {
        let verb = if events.arrived.len() == 1 {
            "arrives"
        } else {
            "arrive"
        };
        parts.push(format!("{} {verb}", workload_names(&events.arrived)));
    }
    for (preemptor, victims) in &events.preempted {
        let victims = victims
            .iter()
            .map(|(victim, reason)| format!("{} ({})", workload_name(*victim), reason.as_str()));
        let victims = victims.collect::<Vec<_>>().join(" and ");
        parts.push(format!("{} preempts {victims}", workload_name(*preemptor)));
    }
    if !events.admitted.is_empty() {
        let verb = if events.admitted.len() == 1 {
            "is"
        } else {
            "are"
        };
        parts.push(format!(
            "{} {verb} admitted",
            workload_names(&events.admitted)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

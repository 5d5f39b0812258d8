//! A circle, told to people.

use crate::field::Field;
use crate::run::{Circle, Round};
use lockkeeper_preemption::Amount;
use lockkeeper_snapshot::objects::quantity;
use std::collections::BTreeSet;

impl Circle {
    /// Who takes part and what happens, a line each. Workloads are named `w1`, `w2`… in the order in which
    /// they come.
    #[must_use]
    pub fn story(&self, field: &Field) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, guest) in self.guests.iter().enumerate() {
            let requests = guest.requests.iter().map(|(of, amount)| {
                let resource = field.resource_name(*of);
                let amount = quantity(resource, Amount::new(*amount));
                format!("{amount} {resource}")
            });
            lines.push(format!(
                "{} in ClusterQueue {}, priority {}, wants {}",
                name(number),
                guest.queue,
                guest.priority,
                requests.collect::<Vec<_>>().join(" and "),
            ));
        }
        if field.left_out > 0 {
            let count = field.left_out;
            lines.push(format!(
                "{count} other queues of the tree use their nominal quota"
            ));
        }
        let mut step = 0_usize;
        let mut from = None;
        for (number, round) in self.rounds.iter().enumerate() {
            let Some(told) = happened(round) else {
                continue;
            };
            step = step.saturating_add(1);
            if number >= self.from && from.is_none() {
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
        let rounds = self.rounds.iter().skip(self.from);
        let numbers = rounds.flat_map(|it| it.preempted.keys());
        let guests = numbers.filter_map(|number| self.guests.get(*number));
        guests.map(|it| it.queue.as_str()).collect()
    }
}

fn name(number: usize) -> String {
    format!("w{}", number.saturating_add(1))
}

fn names<'a>(numbers: impl IntoIterator<Item = &'a usize>) -> String {
    let names = numbers.into_iter().map(|it| name(*it));
    names.collect::<Vec<_>>().join(" and ")
}

/// What happened in a round, if anything did.
fn happened(round: &Round) -> Option<String> {
    let mut parts = Vec::new();
    if !round.arrived.is_empty() {
        let verb = if round.arrived.len() == 1 {
            "comes"
        } else {
            "come"
        };
        parts.push(format!("{} {verb}", names(&round.arrived)));
    }
    for (preemptor, victims) in &round.preempted {
        let victims = victims
            .iter()
            .map(|(victim, reason)| format!("{} ({})", name(*victim), reason.as_str()));
        let victims = victims.collect::<Vec<_>>().join(" and ");
        parts.push(format!("{} preempts {victims}", name(*preemptor)));
    }
    if !round.admitted.is_empty() {
        let verb = if round.admitted.len() == 1 {
            "is"
        } else {
            "are"
        };
        parts.push(format!("{} {verb} admitted", names(&round.admitted)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

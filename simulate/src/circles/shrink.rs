//! The simplest circle that is found from one: fewer guests, lower priorities, smaller amounts.

use super::ROUNDS_MAX;
use super::draw::Cards;
use crate::field::Field;
use crate::run::{Circle, Guest, Run};

/// Steps after which it is simple enough.
const STEPS_MAX: usize = 400;

/// Makes a circle simpler as long as one change does.
pub(super) fn shrink(field: &Field, cards: &Cards<'_>, found: Circle) -> Circle {
    let mut best = found;
    let mut steps = 0_usize;
    'simpler: while steps < STEPS_MAX {
        for guests in simpler(cards, &best.guests) {
            steps = steps.saturating_add(1);
            if let Some(next) = Run::new(field, &guests).find(ROUNDS_MAX) {
                best = next;
                continue 'simpler;
            }
        }
        break;
    }
    best
}

/// All sets of guests that are one change simpler.
fn simpler(cards: &Cards<'_>, guests: &[Guest]) -> Vec<Vec<Guest>> {
    let mut all = Vec::new();
    for at in 0..guests.len() {
        let mut fewer = guests.to_vec();
        fewer.remove(at);
        all.push(fewer);
    }
    for (at, guest) in guests.iter().enumerate() {
        let mut change = |changed: Guest| {
            let mut simpler = guests.to_vec();
            if let Some(it) = simpler.get_mut(at) {
                *it = changed;
            }
            all.push(simpler);
        };
        for resource in guest.requests.keys() {
            if guest.requests.len() > 1 {
                let mut narrower = guest.clone();
                narrower.requests.remove(resource);
                change(narrower);
            }
        }
        let lower = cards.priorities.iter().filter(|it| **it < guest.priority);
        for priority in lower {
            change(Guest {
                priority: *priority,
                ..guest.clone()
            });
        }
        for (resource, amount) in &guest.requests {
            let amounts = cards.amounts(*resource).iter();
            let smaller = amounts.filter(|it| *it < amount);
            for less in smaller {
                let mut smaller = guest.clone();
                smaller.requests.insert(*resource, *less);
                change(smaller);
            }
        }
        if at > 0 && !guest.is_late {
            change(Guest {
                is_late: true,
                ..guest.clone()
            });
        }
    }
    all
}

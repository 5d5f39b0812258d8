//! What is the same about two loops.

use super::run::Loop;
use crate::model::world::World;
use lockkeeper_preemption::Algorithm;
use std::collections::BTreeSet;

/// How a loop turns, in words.
pub fn kind(found: &Loop) -> String {
    let mut turns = BTreeSet::new();
    for (preemptor, victims) in found.rounds.iter().flat_map(|it| &it.preempted) {
        let mut rounds = found.rounds.iter();
        // Either its victims come back before it, or it comes in and is a victim later.
        let is_admitted = rounds.any(|it| it.admitted.contains(preemptor));
        let end = if is_admitted { "answered" } else { "robbed" };
        for (victim, reason) in victims {
            let returns = found.rounds.iter().any(|it| it.admitted.contains(victim));
            if returns {
                turns.insert(format!("{} {end}", reason.as_str()));
            }
        }
    }
    let turns: Vec<String> = turns.into_iter().collect();
    format!("{}: {}", algorithm(&found.world), turns.join(", "))
}

fn algorithm(world: &World) -> &'static str {
    match &world.options.algorithm {
        Algorithm::Classical => "classical",
        Algorithm::FairSharing(_) => "fair",
    }
}

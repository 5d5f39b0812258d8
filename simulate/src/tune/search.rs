//! Which candidates to try next.

use super::Score;
use super::front::Front;
use super::space::{Candidate, SearchSpace};
use crate::rng::Rng;
use std::collections::BTreeSet;

/// The number of candidates of a batch. It does not depend on the machine, so that the search does not.
const BATCH: usize = 16;

/// How often a candidate is drawn again that is known, before the search tries those near the best.
const DRAWS_MAX: usize = 64;

/// A search over a space, for a limited number of candidates.
#[derive(Clone, Debug)]
pub struct Search {
    space: SearchSpace,
    /// The most candidates.
    limit: u64,
    named: BTreeSet<Candidate>,
    front: Front,
    rng: Rng,
}

impl Search {
    /// A search that names at most `limit` candidates, the first without any change.
    #[must_use]
    pub fn new(space: SearchSpace, limit: u64) -> Self {
        Self {
            limit: limit.max(1).min(space.count()),
            space,
            named: BTreeSet::new(),
            front: Front::default(),
            rng: Rng::default(),
        }
    }

    /// The number of candidates that it names in all.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The space.
    #[must_use]
    pub const fn space(&self) -> &SearchSpace {
        &self.space
    }

    /// Whether it names all candidates of the space.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.limit == self.space.count()
    }

    /// The best candidates so far.
    #[must_use]
    pub const fn front(&self) -> &Front {
        &self.front
    }

    /// Adds the score of a candidate. One without a score, as its simulation does not end, is left out.
    pub fn add(&mut self, candidate: Candidate, score: Score) {
        self.front.add(candidate, score);
    }

    /// Names the next candidates; none at the end. The scores of all candidates so far must have been added.
    pub fn next_batch(&mut self) -> Vec<Candidate> {
        let mut batch = Vec::new();
        while batch.len() < BATCH
            && let Some(candidate) = self.next()
        {
            self.named.insert(candidate.clone());
            batch.push(candidate);
        }
        batch
    }

    fn next(&mut self) -> Option<Candidate> {
        let named = u64::try_from(self.named.len()).unwrap_or(u64::MAX);
        if named >= self.limit {
            return None;
        }
        if self.is_complete() {
            return Some(self.space.candidate(named));
        }
        if self.named.is_empty() {
            return Some(self.space.unchanged());
        }
        // Half of the candidates are drawn; the others are near the best.
        if named < self.limit / 2 {
            let drawn = self.draw();
            return drawn.or_else(|| self.near_the_best());
        }
        self.near_the_best().or_else(|| self.draw())
    }

    fn draw(&mut self) -> Option<Candidate> {
        let mut draws = 0..DRAWS_MAX;
        draws.find_map(|_| {
            let candidate = self.space.draw(&mut self.rng);
            (!self.named.contains(&candidate)).then_some(candidate)
        })
    }

    fn near_the_best(&self) -> Option<Candidate> {
        let best = self.front.scored().iter();
        let mut near = best.flat_map(|it| self.space.neighbours(&it.candidate));
        near.find(|it| !self.named.contains(it))
    }
}

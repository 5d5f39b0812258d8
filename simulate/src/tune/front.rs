//! The candidates that no other is better than.

use super::Score;
use super::space::Candidate;

/// A candidate with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The candidate.
    pub candidate: Candidate,
    /// Its score.
    pub score: Score,
    /// The number of other candidates with the same score; they change as many fields or more.
    pub equal: usize,
}

/// The best candidates so far: no other is better than one of them (Pareto).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Front {
    scored: Vec<Scored>,
}

impl Front {
    /// The candidates, sorted by their scores.
    #[must_use]
    pub fn scored(&self) -> &[Scored] {
        &self.scored
    }

    /// Adds a candidate, unless another is better. Of those with equal scores, the one with the fewest changed fields stays. Costs
    /// the number of candidates of the front times the number of goals.
    pub fn add(&mut self, candidate: Candidate, score: Score) {
        if let Some(known) = self.scored.iter_mut().find(|it| it.score == score) {
            known.equal = known.equal.saturating_add(1);
            if changes(&candidate) < changes(&known.candidate) {
                known.candidate = candidate;
            }
            return;
        }
        if self.scored.iter().any(|it| is_better(&it.score, &score)) {
            return;
        }
        self.scored.retain(|it| !is_better(&score, &it.score));
        let is_before = |it: &Scored| order(&it.score, &score).is_lt();
        let at = self.scored.partition_point(is_before);
        self.scored.insert(
            at,
            Scored {
                candidate,
                score,
                equal: 0,
            },
        );
    }
}

/// The number of fields with another value than the first.
fn changes(candidate: &Candidate) -> usize {
    candidate.iter().filter(|it| **it != 0).count()
}

/// Whether a score is better for one goal, and worse for none.
fn is_better(score: &Score, other: &Score) -> bool {
    let mut pairs = score.iter().zip(other);
    score != other && pairs.all(|(a, b)| a <= b)
}

/// A total order of scores: by the first goal, then by the next.
fn order(score: &Score, other: &Score) -> std::cmp::Ordering {
    let pairs = score.iter().zip(other);
    let mut orders = pairs.map(|(a, b)| a.total_cmp(b));
    orders
        .find(|it| it.is_ne())
        .unwrap_or(std::cmp::Ordering::Equal)
}

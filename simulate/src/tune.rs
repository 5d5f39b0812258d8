//! Search for configurations that meet goals: which values of declared fields to try next, and which results are best.
//!
//! A [`SearchSpace`] has a number of values for each field, and a [`Candidate`] one value for each. [`Search`] names the
//! candidates to simulate, batch by batch, and takes their scores. If all candidates are within the limit, each is tried. Else
//! half of them are drawn from a fixed sequence of pseudo-random numbers, and the others differ in one field from the best so
//! far. The same scores give the same search.
//!
//! A [`Score`] has one number for each goal, lower is better: how far a limit is exceeded, or a measure that should be low or
//! (negated) high. One score is better than another if it is better for one goal and worse for none; the [`Front`] has the
//! candidates whose scores no other is better than (Pareto).

mod front;
mod search;
mod space;

pub use front::{Front, Scored};
pub use search::Search;
pub use space::{Candidate, SearchSpace};

/// One number for each goal, lower is better.
pub type Score = Vec<f64>;

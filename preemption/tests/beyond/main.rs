//! What Kueue does not have: held quota, circles that are cut, and limits of preemption. And cases that are
//! too rare in made-up worlds.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod damping;
mod house;
mod limits;
mod victims;

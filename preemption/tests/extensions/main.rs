//! What Kueue does not have: held quota, circles that are cut, and limits of preemption. And what is too rare in
//! made-up worlds: queues that change while somebody runs in them, and the like.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod changes;
mod damping;
mod fixture;
mod limits;
mod victims;

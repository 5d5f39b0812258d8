//! Preview: what the controller will do with a workload that is being created.
//!
//! A [`PreviewState`] follows the objects of a cluster through the same inputs as the [`Reconciler`](crate::Reconciler), and
//! runs the same cycles, but writes nothing. [`submitted_workload`] is the workload of an object that is being created, and
//! [`PreviewState::preview`] decides on it as the next cycle would.
//!
//! Pure: inputs and times are arguments. The answer is that of the controller if both have seen the same objects and have the
//! same configuration; nodes are not considered.

mod outcome;
mod preview_state;
mod submission;
#[cfg(test)]
mod tests;
mod unconfirmed;

pub use outcome::{Preview, PreviewedPods};
pub use preview_state::{PreviewSettings, PreviewState};
pub use submission::submitted_workload;

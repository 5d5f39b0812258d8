//! The decision log of the controller: every change of the scheduler's state, and every decision.
//!
//! A log is text, one JSON object per line. It begins with a [`LogHeader`] and the objects of the cluster, so each file can be
//! read alone. Each line is one event ([`lockkeeper_cluster_state::journal::ClusterEvent`]):
//!
//! | `event` | `data` |
//! |---|---|
//! | `header` | version, settings, and the hash of the file before |
//! | `time` | the time of the following lines, in milliseconds since 1970 |
//! | `object` | an object other than a Workload was added, changed or removed |
//! | `spec` | the part of a Workload that decisions read, without pod templates; equal ones are written once |
//! | `workload` | a Workload with the number of its `spec` |
//! | `cycle` | a scheduling cycle with its decisions; the line has the hash of all lines up to this one |
//!
//! [`Encoder`] writes it, [`Replay`] decides again and compares. A [`ReplayObserver`] sees each step: [`History`] tells what happened to
//! one workload.
#![deny(clippy::arithmetic_side_effects)]

mod chain;
mod decoder;
mod encoder;
mod error;
mod history;
mod observer;
mod record;
mod reduced;
mod replay;
#[cfg(test)]
mod tests;
mod workload_line;

pub use encoder::Encoder;
pub use error::LogError;
pub use history::{History, HistoryEvent};
pub use observer::ReplayObserver;
pub use record::{LINE_START, LogHeader};
pub use replay::{Difference, Replay, ReplaySummary};

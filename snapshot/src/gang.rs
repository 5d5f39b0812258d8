//! Pods and gangs on nodes: scenarios that are written down, what makes a state of them, and what is told of the
//! decision.
//!
//! The form is that of the conformance data for workload-aware preemption, which is also what people write for
//! `lockkeeper explain --scenario` (docs/scenario.md).

mod answer;
mod build;
mod door;
mod json;
mod message;
mod shapes;
mod text;
mod written;

pub use answer::{Answer, answer};
pub use build::{Loaded, load, options};
pub use door::GangError;
pub use json::told;
pub use message::{message, reasons_of};
pub use shapes::shape;
pub use text::tell;
pub use written::{
    Budget, Disruption, Features, Given, Group, Kind, Node, Pod, Preemptor, Scenario, Seat,
    Selector, Victim, is_gang,
};

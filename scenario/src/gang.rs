//! Pods and gangs on nodes: scenarios that are written down, what makes a state of them, and what is told of the
//! decision.
//!
//! The form is that of the conformance data for workload-aware preemption, which is also what people write for
//! `lockkeeper explain --scenario` (docs/scenario.md).

mod amounts;
mod answer;
mod build;
mod error;
mod json;
mod pod_shape;
mod scenario;
mod scheduler_message;
mod text;
mod validate;

pub use answer::{ScenarioAnswer, evaluate};
pub use build::{LoadedGangScenario, load, options};
pub use error::GangError;
pub use json::to_json;
pub use pod_shape::pod_shape;
pub use scenario::{
    Budget, DisruptionTarget, Features, FixedPlacement, GangScenario, Group, Kind, Node,
    NodeAssignment, Pod, Preemptor, Selector, Victim, is_gang_scenario,
};
pub use scheduler_message::{node_reasons, scheduler_message};
pub use text::write_text;

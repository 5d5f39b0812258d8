//! Pods and gangs on nodes: scenarios that are written down, what makes a state of them, and what is told of the
//! decision.
//!
//! The form is that of the conformance data for workload-aware preemption, which is also what people write for
//! `lockkeeper explain --scenario` (docs/scenario.md).

mod answer;
mod build;
mod validate;
mod json;
mod scheduler_message;
mod pod_shape;
mod text;
mod scenario;

pub use answer::{ScenarioAnswer, evaluate};
pub use build::{LoadedGangScenario, load, options};
pub use validate::GangError;
pub use json::to_json;
pub use scheduler_message::{scheduler_message, node_reasons};
pub use pod_shape::pod_shape;
pub use text::write_text;
pub use scenario::{
    Budget, DisruptionTarget, Features, FixedPlacement, Group, Kind, Node, Pod, Preemptor, GangScenario, NodeAssignment,
    Selector, Victim, is_gang_scenario,
};

//! Scenarios of pods and pod groups on nodes: files, cluster state, and explanations of the decision.
//!
//! The format is that of the conformance data for workload-aware preemption, and of the files for
//! `lockkeeper explain --scenario` (docs/scenario.md).

mod amounts;
mod answer;
mod build;
mod error;
mod json;
mod scenario;
mod scheduler_message;
mod text;
mod validate;

pub use answer::{ScenarioAnswer, evaluate};
pub use build::{LoadedGangScenario, load, options};
pub use error::GangError;
pub use json::to_json;
pub use scenario::{
    Budget, DisruptionTarget, Features, FixedPlacement, GangScenario, Group, Kind, Node,
    NodeAssignment, Pod, Preemptor, Selector, Victim, is_gang_scenario,
};
pub use scheduler_message::{node_reasons, scheduler_message};
pub use text::write_text;

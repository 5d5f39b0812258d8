//! The CRD of a kind that lockkeeper knows nothing of, by a binary of its own.

use kube::CustomResource;
use lockkeeper_crdgen::Generator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// Nodes that are kept free for a team.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Reservation",
    plural = "reservations",
    namespaced
)]
#[serde(rename_all = "camelCase")]
pub struct ReservationSpec {
    /// How many nodes.
    #[schemars(range(min = 1, max = 5000))]
    pub nodes: i32,
    /// Who else may use them.
    #[serde(default)]
    pub sharing: Sharing,
    /// The labels that the nodes have to have.
    #[schemars(length(max = 16))]
    pub selector: Option<Vec<Requirement>>,
}

/// Other users of the reservation.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub enum Sharing {
    /// No workload.
    #[default]
    Never,
    /// Workloads that can be preempted.
    Preemptible,
}

/// A label and its value.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Requirement {
    /// The key of the label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// Its value.
    pub value: String,
}

/// The kinds of this team.
#[must_use]
pub fn generator() -> Generator {
    Generator::default().kind::<Reservation>()
}

/// Runs the command line.
pub fn main() -> ExitCode {
    generator().main()
}

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes that are kept free for a team.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Reservation", namespaced)]
pub struct ReservationSpec {
    /// How many nodes.
    #[schemars(range(min = 1, max = 5000))]
    pub nodes: i32,
}

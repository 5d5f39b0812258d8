//! ResourceFlavor: a kind of node that provides resources.

use k8s_openapi::api::core::v1::{Taint, Toleration};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::schema;

/// The nodes of a flavor, and the tolerations that pods need to run there.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "lockkeeper.dev",
    version = "v1alpha1",
    kind = "ResourceFlavor",
    plural = "resourceflavors",
    shortname = "lkrf",
    category = "lockkeeper",
    derive = "PartialEq",
    doc = "A kind of node that provides resources, such as spot instances or one model of GPU.",
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceFlavorSpec {
    /// The labels of the nodes. Pods admitted with this flavor get them as node selector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::node_labels")]
    pub node_labels: BTreeMap<String, String>,

    /// The taints of the nodes. A workload must tolerate those that keep pods off a node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::taints")]
    pub node_taints: Vec<Taint>,

    /// Tolerations that pods admitted with this flavor get besides their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::tolerations")]
    pub tolerations: Vec<Toleration>,
}

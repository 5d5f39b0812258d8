//! The lines of a log.

use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::{Config, PreemptionSettings, ResourceSettings, WaitForPodsReady};
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor};
use lockkeeper_cluster_state::journal::CycleRecord;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The format that this version writes and reads.
pub(crate) const FORMAT: u32 = 1;

/// The first line of each file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogHeader {
    /// The format of the log.
    pub(crate) format: u32,
    /// The version of lockkeeper.
    pub version: String,
    /// The process that writes it.
    pub instance: String,
    /// The settings that decisions depend on.
    pub settings: LogSettings,
    /// The hash of all lines of the file before; `None` in the first file of a process, and if decisions are missing in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) continues: Option<String>,
}

impl LogHeader {
    /// The header of a process.
    #[must_use]
    pub fn new(version: &str, instance: &str, config: &Config) -> Self {
        Self {
            format: FORMAT,
            version: version.to_owned(),
            instance: instance.to_owned(),
            settings: LogSettings::of(config),
            continues: None,
        }
    }
}

/// The settings that decisions depend on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogSettings {
    preemption: PreemptionSettings,
    wait_for_pods_ready: WaitForPodsReady,
    resources: ResourceSettings,
}

impl LogSettings {
    /// Those of a configuration.
    fn of(config: &Config) -> Self {
        Self {
            preemption: config.preemption.clone(),
            wait_for_pods_ready: config.wait_for_pods_ready.clone(),
            resources: config.resources.clone(),
        }
    }

    /// A configuration with these settings.
    pub(crate) fn config(&self) -> Config {
        Config {
            preemption: self.preemption.clone(),
            wait_for_pods_ready: self.wait_for_pods_ready.clone(),
            resources: self.resources.clone(),
            ..Config::default()
        }
    }
}

/// One line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Record {
    Header(Box<LogHeader>),
    Time(i64),
    ClusterQueue(Box<ClusterQueue>),
    ClusterQueueRemoved(String),
    Cohort(Box<Cohort>),
    CohortRemoved(String),
    ResourceFlavor(Box<ResourceFlavor>),
    ResourceFlavorRemoved(String),
    LocalQueue(Box<LocalQueue>),
    LocalQueueRemoved(String),
    Namespace(NamespaceRecord),
    NamespaceRemoved(String),
    PriorityClass(Box<PriorityClass>),
    PriorityClassRemoved(String),
    Spec(SpecRecord),
    Workload(Box<WorkloadRecord>),
    WorkloadSynced(String),
    WorkloadRemoved(String),
    AdmissionReverted(String),
    Held(HeldRecord),
    HoldEnded(String),
    Stuck(String),
    StuckEnded(String),
    Evicted(String),
    SearchedAgain(String),
    Cycle(CycleRecord),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct NamespaceRecord {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SpecRecord {
    pub(crate) id: u32,
    pub(crate) spec: Value,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct WorkloadRecord {
    pub(crate) metadata: Value,
    /// The number of a [`SpecRecord`].
    pub(crate) spec: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Value>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeldRecord {
    pub(crate) workload: String,
    /// In seconds since 1970.
    pub(crate) until: i64,
}

//! The lines of a log.

use lockkeeper_api::config::{Config, PreemptionSettings, ResourceSettings, WaitForPodsReady};
use lockkeeper_cluster_state::settings::{requeue_settings, scheduling_options};
use lockkeeper_cluster_state::{ClusterState, Completeness};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The format that this version writes and reads.
pub(crate) const FORMAT: u32 = 1;

/// The first line of each file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogHeader {
    /// The format of the log.
    pub(crate) format: u32,
    /// The version of lockkeeper.
    pub(crate) version: String,
    /// The process that writes it.
    instance: String,
    /// The settings that decisions depend on.
    pub(crate) settings: LogSettings,
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

    /// The state of the controller at its start: its settings, and no objects.
    #[must_use]
    pub fn empty_cluster(&self) -> ClusterState {
        let config = self.settings.config();
        let mut cluster = ClusterState::new(
            scheduling_options(&config),
            requeue_settings(&config),
            Completeness::Complete,
        );
        cluster.exclude_resources(config.resources.exclude_prefixes);
        cluster.state_mut().treat_new_as_newest();
        cluster
    }
}

/// The settings that decisions depend on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogSettings {
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

/// What each line begins with. Other lines, such as messages of the process in between, are no part of a log.
pub const LINE_START: &str = "{\"event\":\"";

/// A line that is no [`ClusterEvent`](lockkeeper_cluster_state::journal::ClusterEvent).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "camelCase")]
pub(crate) enum Record {
    Header(Box<LogHeader>),
    Spec(SpecRecord),
    Workload(Box<WorkloadRecord>),
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

//! The configuration of lockkeeper's processes: one YAML file, every field optional.
//!
//! An unknown key is refused: a misspelt setting that is silently ignored is worse than none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest request body that the webhook reads by default, in bytes: 8 MiB. The API server's
/// own limit for an object is 3 MiB, and an update carries two.
pub const BODY_LIMIT_BYTES_DEFAULT: u64 = 8 * 1024 * 1024;

/// How long a stopping webhook waits for requests in flight by default, in seconds.
pub const DRAIN_SECONDS_DEFAULT: u64 = 10;

/// The address that the webhook listens on by default.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:9443";

/// The whole configuration file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// What each rule does when it finds something.
    pub rules: RuleSettings,
    /// The administrator's caps on priorities.
    pub priority: PriorityCaps,
    /// How labels of jobs are read.
    pub job: JobSettings,
    /// The TLS server.
    pub webhook: WebhookSettings,
}

/// What each rule does when it finds something.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RuleSettings {
    /// Actions by rule id, such as `CQ007: warn`. A rule that is not named keeps its default.
    pub actions: BTreeMap<String, Action>,
    /// Actions that hold in one namespace only, by its name. They go before the global ones and
    /// matter for namespaced kinds.
    pub namespaces: BTreeMap<String, NamespaceRules>,
}

/// Actions in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NamespaceRules {
    /// Actions by rule id.
    pub actions: BTreeMap<String, Action>,
}

/// What happens to a finding of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The object is refused.
    Enforce,
    /// The object is accepted, and the client sees a warning.
    Warn,
    /// The object is accepted, and the audit log gets an annotation.
    Audit,
    /// The rule does not run.
    Off,
}

/// Caps that keep a workload from making itself non-preemptible (KEP-5710, Risks and Mitigations).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PriorityCaps {
    /// The most by which the preemption priority may be above the scheduling priority. Absent is no
    /// cap; 0 means that both must be equal.
    pub max_preemption_above_scheduling: Option<u32>,
    /// The scheduling priority classes whose workloads may have a preemption priority of their own.
    /// Absent allows all; an empty list allows none.
    pub separate_preemption_allowed_for: Option<Vec<String>>,
}

/// How labels of jobs are read (Koordinator, job-level preemption, plugin arguments).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct JobSettings {
    /// Whether a pod without the label `quota.scheduling.koordinator.sh/preemptible` is
    /// non-preemptible; by default it is preemptible.
    pub disable_default_preemptiable: bool,
}

/// The TLS server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebhookSettings {
    /// The address and port to listen on. Port 0 takes a free one.
    pub listen: String,
    /// The oldest TLS version that is spoken.
    pub minimum_tls: MinimumTls,
    /// Whether HTTP/2 is left out of the handshake.
    pub http1_only: bool,
    /// The largest request body that is read, in bytes. A larger one is answered with 413.
    pub body_limit_bytes: u64,
    /// How long a stopping process waits for requests in flight, in seconds.
    pub drain_seconds: u64,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            listen: LISTEN_DEFAULT.to_owned(),
            minimum_tls: MinimumTls::default(),
            http1_only: false,
            body_limit_bytes: BODY_LIMIT_BYTES_DEFAULT,
            drain_seconds: DRAIN_SECONDS_DEFAULT,
        }
    }
}

/// The oldest TLS version that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum MinimumTls {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3.
    #[default]
    #[serde(rename = "1.3")]
    V1_3,
}

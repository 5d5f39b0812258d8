//! The configuration of lockkeeper's processes: one YAML file, every field optional.
//!
//! An unknown key is refused: a misspelt setting that is silently ignored is worse than none.

mod backoff_factor;
mod bounded;
mod certificates;
mod conflict;
mod controller;
mod exceptions;
mod foreign;
mod go_duration;
mod limits;
mod listen;
mod namespaced_name;
mod pods_ready;
mod preemption;

pub use backoff_factor::{BackoffFactor, BackoffFactorError};
pub use bounded::BoundedInt;
pub use certificates::{CertificateSettings, InjectionError, InjectionKind, InjectionTarget};
pub use conflict::{BoundCheck, ConfigConflict};
pub use controller::{ControllerSettings, LeaderElection};
pub use exceptions::{ExceptionSelector, Expiry, RuleException};
pub use foreign::{ForeignKinds, UnknownKinds};
pub use go_duration::{GoDuration, GoDurationError};
pub use limits::{Http2Limits, LimitSettings, MetricsLimits};
pub use listen::{AddressError, ListenAddress, OptionalListen};
pub use namespaced_name::{NameError, NamespacedName};
pub use pods_ready::{BackoffPreset, RequeuingStrategy, RequeuingTimestamp, WaitForPodsReady};
pub use preemption::{
    Algorithm, BorrowingGate, Compatibility, FairSharing, FairStrategies, FairStrategiesError,
    FairStrategy, PreemptionSettings,
};

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The largest request body that the webhook reads by default, in bytes: 8 MiB. The API server's
/// own limit for an object is 3 MiB, and an update carries two.
pub const BODY_LIMIT_BYTES_DEFAULT: u64 = 8 * 1024 * 1024;

/// The body limits that make sense, in bytes: 64 KiB to 64 MiB. Under it ordinary workloads would be
/// turned away; what is over it no API server sends.
pub const BODY_LIMIT_BYTES_RANGE: RangeInclusive<u64> = 64 * 1024..=64 * 1024 * 1024;

/// How long a stopping webhook waits for requests in flight by default, in seconds.
pub const DRAIN_SECONDS_DEFAULT: u64 = 10;

/// The waits for requests in flight that make sense, in seconds: none of them takes an hour.
pub const DRAIN_SECONDS_RANGE: RangeInclusive<u64> = 0..=3600;

/// The address that the webhook listens on by default.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:9443";

/// The address that metrics are shown on by default.
pub const METRICS_LISTEN_DEFAULT: &str = "127.0.0.1:9444";

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
    /// What becomes of workloads whose pods are not ready in time.
    pub wait_for_pods_ready: WaitForPodsReady,
    /// What holds for the decisions of all queues.
    pub preemption: PreemptionSettings,
    /// The process that admits workloads.
    pub controller: ControllerSettings,
}

impl Config {
    /// Checks what no single key can say.
    ///
    /// # Errors
    ///
    /// The first [`Contradiction`].
    pub fn check(&self) -> Result<(), ConfigConflict> {
        self.webhook.check()?;
        self.wait_for_pods_ready.check()?;
        self.controller.check()
    }
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
    /// Objects that some rules do not refuse, for a reason and for a time. What such a rule finds is only
    /// noted in the audit log. Where several fit, the first one counts.
    pub exceptions: Vec<RuleException>,
    /// The feature gates of Kubernetes, Kueue and Koordinator that are set otherwise than by default. They
    /// matter for rules on the kinds of these projects.
    pub feature_gates: BTreeMap<String, bool>,
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
    pub listen: ListenAddress,
    /// The address and port that metrics are shown on, over plain HTTP; `off` opens none. Port 0
    /// takes a free one. In a pod it must be `0.0.0.0:9444`, or nobody outside it can ask.
    pub metrics_listen: OptionalListen,
    /// The oldest TLS version that is spoken.
    pub minimum_tls: MinimumTls,
    /// Whether HTTP/2 is left out of the handshake.
    pub http1_only: bool,
    /// The PEM file of the CA whose certificates clients must present for a review: the API server's.
    /// It is read again when it changes. Absent, every client is answered. `/livez` and `/readyz`
    /// never ask. Take a CA that signs nothing else, or give `clientNames`.
    pub client_ca: Option<String>,
    /// The names that a client's certificate may have, as a DNS name or as the common name of its
    /// subject; one is enough. Empty accepts every certificate of the CA. Names without
    /// `clientCa` are refused.
    pub client_names: Vec<String>,
    /// Certificates in a Secret that all replicas share.
    pub certificates: CertificateSettings,
    /// The projects whose kinds are watched besides lockkeeper's own, for rules on them. Which of them the API
    /// server sends is told to it by `lockkeeper crds webhooks`, with this file or with `--foreign`.
    pub foreign_kinds: BTreeSet<ForeignKinds>,
    /// The largest request body that is read, in bytes, from 65536 (64 KiB) to 67108864 (64 MiB). A
    /// larger one is answered with 413.
    #[serde(deserialize_with = "body_limit_bytes")]
    #[schemars(range(min = *BODY_LIMIT_BYTES_RANGE.start(), max = *BODY_LIMIT_BYTES_RANGE.end()))]
    pub body_limit_bytes: u64,
    /// How long a stopping process waits for requests in flight, in seconds; at most 3600.
    #[serde(deserialize_with = "drain_seconds")]
    #[schemars(range(min = *DRAIN_SECONDS_RANGE.start(), max = *DRAIN_SECONDS_RANGE.end()))]
    pub drain_seconds: u64,
    /// How long a process that is told to stop is unready and serves on before it accepts no more, in
    /// seconds; at most 3600. Absent is 5 in a pod, where others must hear of it first, and else 0.
    #[serde(
        deserialize_with = "shutdown_delay_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(max = *DRAIN_SECONDS_RANGE.end()))]
    pub shutdown_delay_seconds: Option<u64>,
    /// How often the server connects to itself to see whether it is reached, in seconds.
    pub self_check_seconds: BoundedInt<1, 3_600>,
    /// Longest for such a connection, in seconds. A server that takes longer is not ready: it is of no
    /// use to the API server either.
    pub self_check_timeout_seconds: BoundedInt<1, 60>,
    /// How often the files of the certificates are looked at in any case, in seconds: for what no watch
    /// sees, such as a change on a network's file system.
    pub tls_poll_seconds: BoundedInt<1, 3_600>,
    /// How often this file is read again, in seconds.
    pub config_poll_seconds: BoundedInt<1, 3_600>,
    /// What clients may take of the server.
    pub limits: LimitSettings,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            listen: ListenAddress::from_default(LISTEN_DEFAULT),
            metrics_listen: OptionalListen::At(ListenAddress::from_default(METRICS_LISTEN_DEFAULT)),
            minimum_tls: MinimumTls::default(),
            http1_only: false,
            client_ca: None,
            client_names: Vec::new(),
            certificates: CertificateSettings::default(),
            foreign_kinds: BTreeSet::new(),
            body_limit_bytes: BODY_LIMIT_BYTES_DEFAULT,
            drain_seconds: DRAIN_SECONDS_DEFAULT,
            shutdown_delay_seconds: None,
            self_check_seconds: const { BoundedInt::from_default(10) },
            self_check_timeout_seconds: const { BoundedInt::from_default(5) },
            tls_poll_seconds: const { BoundedInt::from_default(30) },
            config_poll_seconds: const { BoundedInt::from_default(5) },
            limits: LimitSettings::default(),
        }
    }
}

fn body_limit_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserialize_in_range(&BODY_LIMIT_BYTES_RANGE, deserializer)
}

fn drain_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserialize_in_range(&DRAIN_SECONDS_RANGE, deserializer)
}

fn shutdown_delay_seconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    deserialize_in_range(&DRAIN_SECONDS_RANGE, deserializer).map(Some)
}

/// A number within a range. The error is a custom one: only to those does the parser of YAML add the
/// place of the value.
fn deserialize_in_range<'de, D: Deserializer<'de>>(
    range: &RangeInclusive<u64>,
    deserializer: D,
) -> Result<u64, D::Error> {
    let number = u64::deserialize(deserializer)?;
    if range.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (range.start(), range.end());
    Err(D::Error::custom(format!(
        "{number} is not in the range from {least} to {most}"
    )))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_config_round_trips() {
        let default = Config::default();
        let written = serde_json::to_value(&default);
        let read = written.and_then(serde_json::from_value::<Config>);
        assert_eq!(read.ok(), Some(default));
        assert!(BODY_LIMIT_BYTES_RANGE.contains(&BODY_LIMIT_BYTES_DEFAULT));
        assert!(DRAIN_SECONDS_RANGE.contains(&DRAIN_SECONDS_DEFAULT));
    }
}

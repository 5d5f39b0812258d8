//! The configuration of lockkeeper's processes: one YAML file, every field optional.
//!
//! Unknown keys are rejected, so that a misspelt setting is not silently ignored.

mod backoff_factor;
mod bounded;
mod certificates;
mod conflict;
mod controller;
mod decision_log;
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
pub use decision_log::DecisionLogSettings;
pub use exceptions::{ExceptionSelector, Expiry, RuleException};
pub use foreign::{ForeignKinds, UnknownKinds};
pub use go_duration::{GoDuration, GoDurationError};
pub use limits::{Http2Limits, LimitSettings, MetricsLimits};
pub use listen::{AddressError, ListenAddress, OptionalListen};
pub use namespaced_name::{NameError, NamespacedName};
pub use pods_ready::{BackoffPreset, RequeuingStrategy, RequeuingTimestamp, WaitForPodsReady};
pub use preemption::{
    Algorithm, BorrowingGate, Compatibility, DefaultPreemptionLimits, FairSharing, FairStrategies,
    FairStrategiesError, FairStrategy, PreemptionSettings, SECONDS_MAX,
};

use bounded::deserialize_in_range;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The default limit for request bodies, in bytes: 8 MiB. The API server's own limit for an object is 3 MiB,
/// and an update carries two.
pub const BODY_LIMIT_BYTES_DEFAULT: u64 = 8 * 1024 * 1024;

/// The accepted body limits, in bytes: 64 KiB to 64 MiB. A lower one would reject ordinary workloads; the API
/// server sends nothing larger.
pub const BODY_LIMIT_BYTES_RANGE: RangeInclusive<u64> = 64 * 1024..=64 * 1024 * 1024;

/// The default drain time of a stopping webhook, in seconds.
pub const DRAIN_SECONDS_DEFAULT: u64 = 10;

/// The accepted drain times, in seconds.
pub const DRAIN_SECONDS_RANGE: RangeInclusive<u64> = 0..=3600;

/// The default address of the webhook.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:9443";

/// The default address of the metrics.
pub const METRICS_LISTEN_DEFAULT: &str = "127.0.0.1:9444";

/// The configuration file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Actions of rules, exceptions and feature gates.
    pub rules: RuleSettings,
    /// The administrator's caps on preemption priorities.
    pub priority: PriorityCaps,
    /// How labels of jobs are read.
    pub job: JobSettings,
    /// The webhook server.
    pub webhook: WebhookSettings,
    /// Eviction and requeuing of workloads whose pods are not ready in time.
    pub wait_for_pods_ready: WaitForPodsReady,
    /// Admission and preemption settings for all queues.
    pub preemption: PreemptionSettings,
    /// Which requested resources need quota.
    pub resources: ResourceSettings,
    /// The controller, which admits workloads.
    pub controller: ControllerSettings,
}

impl Config {
    /// Checks settings that depend on each other.
    ///
    /// # Errors
    ///
    /// The first [`ConfigConflict`].
    pub fn check(&self) -> Result<(), ConfigConflict> {
        self.webhook.limits.check(self.webhook.body_limit_bytes)?;
        self.wait_for_pods_ready.check()?;
        self.controller.check()
    }
}

/// Actions of rules, exceptions and feature gates.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RuleSettings {
    /// Action per rule id, such as `CQ007: warn`. Other rules keep their default action.
    pub actions: BTreeMap<String, Action>,
    /// Actions per namespace. They take precedence over the global ones, for namespaced kinds.
    pub namespaces: BTreeMap<String, NamespaceRules>,
    /// Objects exempt from some rules, with a reason and an expiry. Findings of these rules are only recorded
    /// in the audit log. The first exception that matches applies.
    pub exceptions: Vec<RuleException>,
    /// Feature gates of Kubernetes, Kueue and Koordinator that differ from their default. They affect rules
    /// for the kinds of these projects.
    pub feature_gates: BTreeMap<String, bool>,
}

/// Actions in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NamespaceRules {
    /// Action per rule id.
    pub actions: BTreeMap<String, Action>,
}

/// The effect of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Reject the object.
    Enforce,
    /// Accept the object and return a warning to the client.
    Warn,
    /// Accept the object and add an audit annotation.
    Audit,
    /// Do not run the rule.
    Off,
}

/// Caps that keep workloads from making themselves non-preemptible (KEP-5710, Risks and Mitigations).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PriorityCaps {
    /// How far the preemption priority may be above the scheduling priority. Unset: no cap; 0: both must be
    /// equal.
    pub max_preemption_above_scheduling: Option<u32>,
    /// Scheduling PriorityClasses whose workloads may set a separate preemption priority. Unset: all; an
    /// empty list: none.
    pub separate_preemption_allowed_for: Option<Vec<String>>,
}

/// How labels of jobs are read (Koordinator, job-level preemption, plugin arguments).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct JobSettings {
    /// Treat pods without the label `quota.scheduling.koordinator.sh/preemptible` as non-preemptible. By
    /// default they are preemptible.
    pub disable_default_preemptiable: bool,
}

/// Which requested resources need quota.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResourceSettings {
    /// Prefixes of the names of resources that need no quota, such as `example.com/`. Requests of these resources are
    /// ignored (Kueue: `resources.excludeResourcePrefixes`).
    pub exclude_prefixes: Vec<String>,
}

/// The webhook server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebhookSettings {
    /// Address and port to listen on. Port 0 selects a free one.
    pub listen: ListenAddress,
    /// Address and port of the metrics, over plain HTTP; `off` disables them. Port 0 selects a free one. In a
    /// pod use `0.0.0.0:9444`, so that the port is reachable from outside.
    pub metrics_listen: OptionalListen,
    /// Address and port of `/livez` and `/readyz` alone, over plain HTTP, on a thread of their own: no load on the
    /// other ports delays them. `off`: only `listen` serves them. Port 0 selects a free one. In a pod use
    /// `0.0.0.0:9445`.
    pub probe_listen: OptionalListen,
    /// The oldest accepted TLS version.
    pub minimum_tls: MinimumTls,
    /// Disable HTTP/2.
    pub http1_only: bool,
    /// PEM file of the CA that signs the API server's client certificates. If set, reviews require a client
    /// certificate of this CA; `/livez` and `/readyz` never do. Changes of the file are picked up. Use a CA
    /// that signs nothing else, or set `clientNames`. Unset: every client is accepted.
    pub client_ca: Option<String>,
    /// Accepted names of client certificates, as DNS name or common name; one match is enough. Empty: every
    /// certificate of the CA is accepted. Requires `clientCa`.
    pub client_names: Vec<String>,
    /// The audience of the tokens with which API servers authenticate (KEP-6060), without the path of the review:
    /// `https://lockkeeper.lockkeeper-system.svc:443`. If set, `/validate` and `/mutate` require such a token: signed by the
    /// cluster, for this audience and path, bound to a webhook configuration, and with the attestation
    /// `admissionReviewAPIGroups` for the review's group. Needs an API server; `/convert` requires no token. Set it only
    /// where the API servers present tokens: others are rejected. Unset: no token is required.
    pub token_audience: Option<String>,
    /// The accepted issuer of tokens. Unset: the issuer that the API server names in its discovery document. Requires
    /// `tokenAudience`.
    pub token_issuer: Option<String>,
    /// Certificates in a Secret that all replicas share.
    pub certificates: CertificateSettings,
    /// Projects whose kinds are watched besides lockkeeper's own, for rules on them. Register these kinds at
    /// the API server with `lockkeeper crds webhooks`, with this file or with `--foreign`.
    pub foreign_kinds: BTreeSet<ForeignKinds>,
    /// Add the finalizer `lockkeeper.dev/resource-in-use` to ClusterQueues and flavors, so that none is deleted
    /// while in use. Set to false where no `lockkeeper controller` runs, which removes it.
    pub finalizers: bool,
    /// Warn on the creation of Workloads and of jobs with a queue what the controller will do with them: `runs now on flavor
    /// a100`, `waits in ClusterQueue q behind 7 workloads`, `would preempt 2 workloads`. Also with `--dry-run=server`. Needs
    /// the controller, and the right to list and watch namespaces; each replica keeps all Workloads in memory.
    pub preview: bool,
    /// Limit for request bodies, in bytes, from 65536 (64 KiB) to 67108864 (64 MiB). Larger requests are
    /// rejected with 413.
    #[serde(deserialize_with = "body_limit_bytes")]
    #[schemars(range(min = *BODY_LIMIT_BYTES_RANGE.start(), max = *BODY_LIMIT_BYTES_RANGE.end()))]
    pub body_limit_bytes: u64,
    /// How long a stopping process waits for requests in flight, in seconds; at most 3600.
    #[serde(deserialize_with = "drain_seconds")]
    #[schemars(range(min = *DRAIN_SECONDS_RANGE.start(), max = *DRAIN_SECONDS_RANGE.end()))]
    pub drain_seconds: u64,
    /// How long a stopping process reports unready but still serves, in seconds; at most 3600. Unset: 5 in a
    /// pod, so that the Service can drop the endpoint first, otherwise 0.
    #[serde(
        deserialize_with = "shutdown_delay_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(max = *DRAIN_SECONDS_RANGE.end()))]
    pub shutdown_delay_seconds: Option<u64>,
    /// Interval at which the server connects to itself to check that it is reachable, in seconds.
    pub self_check_seconds: BoundedInt<1, 3_600>,
    /// Timeout of the self-check, in seconds. A server that takes longer is not ready.
    pub self_check_timeout_seconds: BoundedInt<1, 60>,
    /// Interval at which certificate files are re-read, in seconds. It covers changes that a file watch
    /// misses, such as on network file systems.
    pub tls_poll_seconds: BoundedInt<1, 3_600>,
    /// Interval at which this file is re-read, in seconds.
    pub config_poll_seconds: BoundedInt<1, 3_600>,
    /// Limits on load, connections and time.
    pub limits: LimitSettings,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            listen: ListenAddress::from_default(LISTEN_DEFAULT),
            metrics_listen: OptionalListen::At(ListenAddress::from_default(METRICS_LISTEN_DEFAULT)),
            probe_listen: OptionalListen::Off,
            minimum_tls: MinimumTls::default(),
            http1_only: false,
            client_ca: None,
            client_names: Vec::new(),
            token_audience: None,
            token_issuer: None,
            certificates: CertificateSettings::default(),
            foreign_kinds: BTreeSet::new(),
            finalizers: true,
            preview: false,
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

/// The oldest accepted TLS version.
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

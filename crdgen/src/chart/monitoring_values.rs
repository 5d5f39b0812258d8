//! The values for Prometheus and Grafana.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The scrape interval of both kinds of monitors.
const INTERVAL: &str = "30s";

/// Scraping of Services by the Prometheus operator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ServiceMonitor {
    /// Whether to create a `ServiceMonitor` for each Deployment, and Services for the metrics ports.
    pub enabled: bool,
    /// The scrape interval.
    #[schemars(regex(pattern = "^[0-9]+(ms|s|m|h)$"))]
    pub interval: String,
    /// Labels by which the cluster's Prometheus selects `ServiceMonitors`.
    pub labels: BTreeMap<String, String>,
}

impl Default for ServiceMonitor {
    fn default() -> Self {
        Self {
            enabled: false,
            interval: INTERVAL.to_owned(),
            labels: BTreeMap::new(),
        }
    }
}

/// Scraping of pods by the Prometheus operator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PodMonitor {
    /// Whether to create a `PodMonitor` for each Deployment. `serviceMonitor.enabled` must be false then.
    pub enabled: bool,
    /// The scrape interval.
    #[schemars(regex(pattern = "^[0-9]+(ms|s|m|h)$"))]
    pub interval: String,
    /// Labels by which the cluster's Prometheus selects `PodMonitors`.
    pub labels: BTreeMap<String, String>,
}

impl Default for PodMonitor {
    fn default() -> Self {
        Self {
            enabled: false,
            interval: INTERVAL.to_owned(),
            labels: BTreeMap::new(),
        }
    }
}

/// Alerts for the Prometheus operator.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrometheusRule {
    /// Whether to create the `PrometheusRule`. It needs scraped metrics: without them an alert reports that they are missing.
    pub enabled: bool,
    /// Labels by which the cluster's Prometheus selects `PrometheusRules`.
    pub labels: BTreeMap<String, String>,
    /// The address at which `docs/runbooks.md` is published. Each alert gets the annotation `runbook_url` with its section.
    /// Empty: the annotation `runbook` names the file and the section.
    pub runbook_url: String,
}

/// Grafana dashboards.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Dashboards {
    /// Whether to create the `ConfigMaps`.
    pub enabled: bool,
    /// Labels by which Grafana's sidecar selects `ConfigMaps`. Empty: `grafana_dashboard: "1"`.
    pub labels: BTreeMap<String, String>,
}

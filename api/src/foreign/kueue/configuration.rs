//! The configuration of Kueue (`config.kueue.x-k8s.io`), as far as decisions about quota depend on it.
//!
//! Source: Kueue `apis/config/v1beta1` and `v1beta2`, types and defaults.

use crate::config::Config;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use thiserror::Error;

const GROUP: &str = "config.kueue.x-k8s.io";

/// The version in which `waitForPodsReady` and `fairSharing` have a field `enable`. In others their presence enables them.
const VERSION_WITH_ENABLE: &str = "v1beta1";

/// The feature gate of Kueue that a configuration of lockkeeper has a field for.
const PARTIAL_ADMISSION: &str = "PartialAdmission";

/// A configuration that decides as Kueue does with its own one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConvertedConfiguration {
    /// The settings that both projects have.
    pub config: Config,
    /// The fields that decisions of Kueue depend on and that have no counterpart, as paths.
    pub not_modelled: Vec<String>,
}

/// A configuration of Kueue that cannot be read.
#[derive(Debug, Error)]
#[error("Kueue's Configuration is not valid: {0}")]
pub struct ConfigurationError(#[from] serde_json::Error);

/// The fields that decisions depend on. Kueue rejects unknown fields, but newer releases have more of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    api_version: String,
    wait_for_pods_ready: Option<WaitForPodsReady>,
    fair_sharing: Option<FairSharing>,
    admission_fair_sharing: Option<Value>,
    #[serde(default)]
    resources: Resources,
    #[serde(default)]
    feature_gates: BTreeMap<String, bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WaitForPodsReady {
    #[serde(default)]
    enable: bool,
    timeout: Option<String>,
    recovery_timeout: Option<String>,
    block_admission: Option<bool>,
    #[serde(default)]
    requeuing_strategy: RequeuingStrategy,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct RequeuingStrategy {
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_limit_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_base_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_max_seconds: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FairSharing {
    #[serde(default)]
    enable: bool,
    #[serde(default)]
    preemption_strategies: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resources {
    exclude_resource_prefixes: Vec<String>,
    transformations: Vec<Value>,
    device_class_mappings: Vec<Value>,
}

/// Whether a document is a configuration of Kueue, of any version.
#[must_use]
pub fn is_configuration(document: &Value) -> bool {
    let text = |key: &str| document.get(key).and_then(Value::as_str);
    let version = text("apiVersion").and_then(|it| it.split_once('/'));
    text("kind") == Some("Configuration") && version.is_some_and(|(group, _)| group == GROUP)
}

/// Converts a configuration of Kueue.
///
/// # Errors
///
/// A field has a wrong type, or a value that no configuration may have, such as a negative number of seconds.
pub fn from_configuration(document: &Value) -> Result<ConvertedConfiguration, ConfigurationError> {
    let given = Configuration::deserialize(document)?;
    let version = given.api_version.split_once('/');
    let has_enable = version.is_some_and(|(_, version)| version == VERSION_WITH_ENABLE);
    let mut config = Map::new();
    if let Some(ready) = &given.wait_for_pods_ready {
        config.insert("waitForPodsReady".to_owned(), ready.convert(has_enable));
    }
    let mut preemption = Map::new();
    if let Some(fair) = &given.fair_sharing
        && (!has_enable || fair.enable)
    {
        preemption.insert("algorithm".to_owned(), "FairSharing".into());
        if !fair.preemption_strategies.is_empty() {
            let strategies = json!({"preemptionStrategies": fair.preemption_strategies});
            preemption.insert("fairSharing".to_owned(), strategies);
        }
    }
    if let Some(is_on) = given.feature_gates.get(PARTIAL_ADMISSION) {
        preemption.insert("partialAdmission".to_owned(), (*is_on).into());
    }
    config.insert("preemption".to_owned(), preemption.into());
    let resources = json!({"excludePrefixes": given.resources.exclude_resource_prefixes});
    config.insert("resources".to_owned(), resources);
    Ok(ConvertedConfiguration {
        config: Config::deserialize(Value::from(config))?,
        not_modelled: given.not_modelled(),
    })
}

impl Configuration {
    fn not_modelled(&self) -> Vec<String> {
        let fields = [
            (
                "admissionFairSharing",
                self.admission_fair_sharing.is_some(),
            ),
            (
                "resources.transformations",
                !self.resources.transformations.is_empty(),
            ),
            (
                "resources.deviceClassMappings",
                !self.resources.device_class_mappings.is_empty(),
            ),
        ];
        let fields = fields.into_iter().filter(|(_, is_set)| *is_set);
        let gates = self.feature_gates.keys();
        let gates = gates.filter(|it| *it != PARTIAL_ADMISSION);
        fields
            .map(|(path, _)| path.to_owned())
            .chain(gates.map(|it| format!("featureGates.{it}")))
            .collect()
    }
}

impl WaitForPodsReady {
    fn convert(&self, has_enable: bool) -> Value {
        let is_enabled = !has_enable || self.enable;
        // With the field `enable`, all admissions wait by default.
        let blocks = self.block_admission.unwrap_or(has_enable && is_enabled);
        let mut fields = Map::new();
        fields.insert("enable".to_owned(), is_enabled.into());
        fields.insert("blockAdmission".to_owned(), blocks.into());
        fields.insert(
            "requeuingStrategy".to_owned(),
            json!(self.requeuing_strategy),
        );
        for (name, value) in [
            ("timeout", &self.timeout),
            ("recoveryTimeout", &self.recovery_timeout),
        ] {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value.as_str().into());
            }
        }
        fields.into()
    }
}

#[cfg(test)]
mod tests {
    use super::{from_configuration, is_configuration};
    use crate::config::Config;
    use serde_json::{Value, json};

    fn configuration(version: &str, fields: &Value) -> Value {
        let mut document = fields.clone();
        document["apiVersion"] = format!("config.kueue.x-k8s.io/{version}").into();
        document["kind"] = "Configuration".into();
        document
    }

    #[test]
    fn fields_have_their_counterparts() {
        let fair = json!({"preemptionStrategies": ["LessThanInitialShare"]});
        let ready = json!({"enable": true, "timeout": "10m", "recoveryTimeout": "3m0s"});
        let strategy = json!({
            "timestamp": "Creation", "backoffLimitCount": 3, "backoffBaseSeconds": 10, "backoffMaxSeconds": 60,
        });
        for (version, given, expected) in [
            ("v1beta2", json!({}), json!({})),
            ("v1beta1", json!({"fairSharing": fair}), json!({})),
            (
                "v1beta1",
                json!({"fairSharing": {"enable": true}}),
                json!({"preemption": {"algorithm": "FairSharing"}}),
            ),
            (
                "v1beta2",
                json!({"fairSharing": fair}),
                json!({"preemption": {"algorithm": "FairSharing", "fairSharing": fair}}),
            ),
            (
                "v1beta2",
                json!({"resources": {"excludeResourcePrefixes": ["example.com/"]}}),
                json!({"resources": {"excludePrefixes": ["example.com/"]}}),
            ),
            (
                "v1beta2",
                json!({"featureGates": {"PartialAdmission": false}}),
                json!({"preemption": {"partialAdmission": false}}),
            ),
            (
                "v1beta1",
                json!({"waitForPodsReady": ready}),
                json!({"waitForPodsReady": {
                    "enable": true, "timeout": "10m", "recoveryTimeout": "3m", "blockAdmission": true,
                }}),
            ),
            (
                "v1beta2",
                json!({"waitForPodsReady": {"timeout": "30m", "requeuingStrategy": strategy}}),
                json!({"waitForPodsReady": {
                    "enable": true, "timeout": "30m", "requeuingStrategy": strategy,
                }}),
            ),
            (
                "v1beta1",
                json!({"waitForPodsReady": {"enable": false}}),
                json!({}),
            ),
        ] {
            let converted = from_configuration(&configuration(version, &given)).unwrap();
            let expected: Config = serde_json::from_value(expected).unwrap();
            assert_eq!(converted.config, expected, "{version} {given}");
            assert_eq!(converted.not_modelled, Vec::<String>::new(), "{given}");
        }
    }

    #[test]
    fn fields_without_counterpart_are_named() {
        let given = json!({
            "namespace": "kueue-system", "integrations": {"frameworks": ["batch/job"]},
            "admissionFairSharing": {"usageHalfLifeTime": "168h"},
            "resources": {"transformations": [{"input": "a"}], "deviceClassMappings": [{}]},
            "featureGates": {"LendingLimit": false, "PartialAdmission": true},
        });
        let converted = from_configuration(&configuration("v1beta2", &given)).unwrap();
        assert_eq!(
            converted.not_modelled,
            [
                "admissionFairSharing",
                "resources.transformations",
                "resources.deviceClassMappings",
                "featureGates.LendingLimit",
            ]
        );
    }

    #[test]
    fn wrong_values_are_errors() {
        for (given, message) in [
            (
                json!({"fairSharing": {"preemptionStrategies": ["None"]}}),
                "unknown variant",
            ),
            (json!({"waitForPodsReady": {"timeout": "soon"}}), "soon"),
            (
                json!({"waitForPodsReady": {"requeuingStrategy": {"backoffBaseSeconds": -1}}}),
                "-1",
            ),
            (json!({"resources": 3}), "invalid type"),
        ] {
            let error = from_configuration(&configuration("v1beta2", &given)).unwrap_err();
            assert!(error.to_string().contains(message), "{given}: {error}");
        }
    }

    #[test]
    fn configuration_is_known_by_group_and_kind() {
        assert!(is_configuration(&configuration("v1beta3", &json!({}))));
        for other in [
            json!({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Other"}),
            json!({"apiVersion": "v1", "kind": "Configuration"}),
            json!([]),
        ] {
            assert!(!is_configuration(&other), "{other}");
        }
    }
}

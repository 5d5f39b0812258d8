//! The configuration of the scheduler whose decisions are explained: that of lockkeeper, or that of Kueue.

use crate::configuration;
use crate::user_rules::RuleDirs;
use anyhow::{Context, Error};
use lockkeeper_api::config::Config;
use lockkeeper_api::foreign::kueue::configuration::{from_configuration, is_configuration};
use serde_json::Value;
use std::path::Path;

/// The key of the configuration in Kueue's `kueue-manager-config`.
const CONFIG_MAP_KEY: &str = "controller_manager_config.yaml";

/// A configuration, and what answers assume about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SchedulerConfig {
    pub(crate) config: Config,
    pub(crate) assumptions: Vec<String>,
}

impl SchedulerConfig {
    /// The configuration of a file: of lockkeeper, of Kueue, or the `ConfigMap` with that of Kueue.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text = configuration::read_text(path)?;
        let shown = path.display();
        if let Ok(document) = serde_saphyr::from_str::<Value>(&text)
            && let Some(found) = kueue_configuration(&document)
        {
            return found.with_context(|| format!("{shown}"));
        }
        let pages = RuleDirs::default().pages()?;
        Ok(Self {
            config: configuration::load(Some(path), text, pages)?.config,
            assumptions: Vec::new(),
        })
    }

    /// The default configuration.
    pub(super) fn default_of(is_kueue: bool) -> Self {
        let assumption = if is_kueue {
            "Kueue has its default configuration (--config reads its ConfigMap kueue-manager-config)"
        } else {
            "the scheduler has the default configuration (--config sets another)"
        };
        Self {
            config: Config::default(),
            assumptions: vec![assumption.to_owned()],
        }
    }

    /// A configuration of Kueue.
    fn from_kueue(document: &Value) -> Result<Self, Error> {
        let converted = from_configuration(document)?;
        let mut assumptions = Vec::new();
        if !converted.not_modelled.is_empty() {
            let fields = converted.not_modelled.join(", ");
            assumptions.push(format!(
                "these settings of Kueue's Configuration are not considered: {fields}"
            ));
        }
        Ok(Self {
            config: converted.config,
            assumptions,
        })
    }
}

/// The configuration of Kueue that an object is or has; `None` for other objects.
pub(crate) fn kueue_configuration(object: &Value) -> Option<Result<SchedulerConfig, Error>> {
    if is_configuration(object) {
        return Some(SchedulerConfig::from_kueue(object));
    }
    if object["kind"] != "ConfigMap" {
        return None;
    }
    let text = object["data"].get(CONFIG_MAP_KEY)?.as_str()?;
    match serde_saphyr::from_str::<Value>(text) {
        Ok(document) if is_configuration(&document) => Some(SchedulerConfig::from_kueue(&document)),
        Ok(_) => None,
        Err(error) => Some(Err(
            Error::from(error).context(format!("data of the ConfigMap: {CONFIG_MAP_KEY}"))
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{SchedulerConfig, kueue_configuration};
    use lockkeeper_api::config::Algorithm;
    use serde_json::{Value, json};
    use std::fs;
    use tempfile::TempDir;

    const CONFIGURATION: &str = "\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {}
featureGates:
  LendingLimit: false
";

    fn config_map(text: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kueue-manager-config"},
            "data": {"controller_manager_config.yaml": text},
        })
    }

    #[test]
    fn configuration_of_kueue_is_read_from_both_forms() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("config.yaml");
        for text in [
            CONFIGURATION.to_owned(),
            config_map(CONFIGURATION).to_string(),
        ] {
            fs::write(&path, text).unwrap();
            let read = SchedulerConfig::read(&path).unwrap();
            assert_eq!(read.config.preemption.algorithm, Algorithm::FairSharing);
            let assumption = "these settings of Kueue's Configuration are not considered: featureGates.LendingLimit";
            assert_eq!(read.assumptions, [assumption]);
        }
        fs::write(&path, "preemption: {algorithm: FairSharing}").unwrap();
        let read = SchedulerConfig::read(&path).unwrap();
        assert_eq!(read.config.preemption.algorithm, Algorithm::FairSharing);
        assert!(read.assumptions.is_empty());
    }

    #[test]
    fn wrong_configurations_are_errors_that_name_the_file() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("config.yaml");
        for text in [
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nresources: 3"
                .to_owned(),
            config_map("a: [").to_string(),
            "preemption: {algorithms: FairSharing}".to_owned(),
        ] {
            fs::write(&path, &text).unwrap();
            let error = format!("{:#}", SchedulerConfig::read(&path).unwrap_err());
            assert!(error.starts_with(&path.display().to_string()), "{error}");
        }
    }

    #[test]
    fn other_objects_have_no_configuration() {
        for object in [
            json!({"kind": "ConfigMap"}),
            config_map("kind: Other"),
            json!({"kind": "Configuration"}),
            Value::Null,
        ] {
            assert!(kueue_configuration(&object).is_none(), "{object}");
        }
    }
}

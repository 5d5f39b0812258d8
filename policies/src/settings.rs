//! The administrator's settings as rules and engine use them. [`crate::registry::settings`] makes
//! them.

use lockkeeper_api::config::{Action, Config, JobSettings, PriorityCaps};
use std::collections::BTreeMap;

/// The settings of a [`Config`] that concern rules, checked.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    actions: BTreeMap<String, Action>,
    namespaces: BTreeMap<String, BTreeMap<String, Action>>,
    feature_gates: BTreeMap<String, bool>,
    /// The caps on priorities.
    pub priority: PriorityCaps,
    /// How labels of jobs are read.
    pub job: JobSettings,
}

impl Settings {
    /// Takes over the configuration, which names only rules that exist.
    pub(crate) fn new(config: &Config) -> Self {
        let namespaces = config
            .rules
            .namespaces
            .iter()
            .map(|(name, rules)| (name.clone(), rules.actions.clone()))
            .collect();
        Self {
            actions: config.rules.actions.clone(),
            namespaces,
            feature_gates: config.rules.feature_gates.clone(),
            priority: config.priority.clone(),
            job: config.job.clone(),
        }
    }

    /// Whether a feature gate of another project is on.
    #[must_use]
    pub fn gate(&self, name: &str, default: bool) -> bool {
        self.feature_gates.get(name).copied().unwrap_or(default)
    }

    /// What happens to findings of a rule in a namespace.
    #[must_use]
    pub fn action(&self, rule: &str, default: Action, namespace: Option<&str>) -> Action {
        namespace
            .and_then(|name| self.namespaces.get(name)?.get(rule))
            .or_else(|| self.actions.get(rule))
            .copied()
            .unwrap_or(default)
    }
}

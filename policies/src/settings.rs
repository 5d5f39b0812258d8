//! The administrator's settings as rules and engine use them.

use crate::registry;
use lockkeeper_api::config::{Action, Config, JobSettings, PriorityCaps};
use std::collections::BTreeMap;
use std::fmt;

/// The settings of a [`Config`] that concern rules, checked.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    actions: BTreeMap<String, Action>,
    namespaces: BTreeMap<String, BTreeMap<String, Action>>,
    /// The caps on priorities.
    pub priority: PriorityCaps,
    /// How labels of jobs are read.
    pub job: JobSettings,
}

/// The configuration names a rule that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRule {
    /// The id as it was written.
    pub id: String,
    /// The key of the configuration that it stands under.
    pub key: String,
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, key } = self;
        let ids: Vec<&str> = registry::all().iter().map(|rule| rule.id).collect();
        let ids = ids.join(", ");
        write!(f, "{key}: there is no rule {id:?}; the rules are {ids}")
    }
}

impl std::error::Error for UnknownRule {}

impl Settings {
    /// Takes over the configuration.
    ///
    /// # Errors
    ///
    /// When an action is given for a rule that does not exist.
    pub fn new(config: &Config) -> Result<Self, UnknownRule> {
        let namespaces = config
            .rules
            .namespaces
            .iter()
            .map(|(name, rules)| (name.clone(), rules.actions.clone()))
            .collect();
        let settings = Self {
            actions: config.rules.actions.clone(),
            namespaces,
            priority: config.priority.clone(),
            job: config.job.clone(),
        };
        known(&settings.actions, "rules.actions")?;
        for (namespace, actions) in &settings.namespaces {
            known(actions, &format!("rules.namespaces.{namespace}.actions"))?;
        }
        Ok(settings)
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

fn known(actions: &BTreeMap<String, Action>, key: &str) -> Result<(), UnknownRule> {
    match actions.keys().find(|id| registry::find(id).is_none()) {
        None => Ok(()),
        Some(id) => Err(UnknownRule {
            id: id.clone(),
            key: key.to_owned(),
        }),
    }
}

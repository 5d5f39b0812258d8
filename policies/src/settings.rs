//! The administrator's settings for rules and the engine; [`crate::registry::settings`] builds them.

use crate::exceptions::Exceptions;
use crate::user_rules::rule_set::UserRules;
use lockkeeper_api::config::{
    Action, Algorithm, Config, JobSettings, PriorityCaps, RequeuingTimestamp, WaitForPodsReady,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The settings of a [`Config`] that rules use. All rule ids in them exist.
#[derive(Clone, Debug)]
pub struct Settings {
    actions: BTreeMap<String, Action>,
    namespaces: BTreeMap<String, BTreeMap<String, Action>>,
    feature_gates: BTreeMap<String, bool>,
    /// The user rules.
    pub user_rules: Arc<UserRules>,
    /// The configured exceptions.
    pub exceptions: Exceptions,
    /// The caps on priorities.
    pub priority: PriorityCaps,
    /// Defaults for labels of jobs.
    pub job: JobSettings,
    /// The preemption algorithm.
    pub algorithm: Algorithm,
    /// Whether damping is off: no quota holds, and no protection against preemption loops.
    pub is_undamped: bool,
    /// Whether finalizers are defaulted: a controller removes them.
    pub adds_finalizers: bool,
    /// The timeout for pods to become ready, and requeuing after it.
    pub wait_for_pods_ready: WaitForPodsReady,
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(&Config::default(), Arc::default())
    }
}

impl Settings {
    /// Copies a configuration with known rule ids only.
    pub(crate) fn new(config: &Config, user_rules: Arc<UserRules>) -> Self {
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
            user_rules,
            exceptions: Exceptions::new(&config.rules.exceptions),
            priority: config.priority.clone(),
            job: config.job.clone(),
            algorithm: config.preemption.algorithm,
            is_undamped: !config.preemption.is_damped(),
            adds_finalizers: config.webhook.finalizers,
            wait_for_pods_ready: config.wait_for_pods_ready.clone(),
        }
    }

    /// Sets the time at which exceptions expire, in seconds since 1970.
    #[must_use]
    pub fn with_time(self, now: i64) -> Self {
        Self {
            exceptions: self.exceptions.with_time(now),
            ..self
        }
    }

    /// Whether a feature gate of another project is on.
    #[must_use]
    pub fn is_gate_enabled(&self, name: &str, default: bool) -> bool {
        self.feature_gates.get(name).copied().unwrap_or(default)
    }

    /// Whether a workload that never becomes ready is requeued at its former position without end.
    #[must_use]
    pub fn requeues_at_head_forever(&self) -> bool {
        let given = &self.wait_for_pods_ready;
        let strategy = &given.requeuing_strategy;
        given.enable
            && strategy.timestamp == RequeuingTimestamp::Creation
            && strategy.backoff_limit_count.is_none()
            && strategy.backoff_limit_seconds.is_none()
    }

    /// The action of a rule in a namespace.
    #[must_use]
    pub fn action(&self, rule: &str, default: Action, namespace: Option<&str>) -> Action {
        namespace
            // The action of a namespace takes precedence over the one for all namespaces.
            .and_then(|name| self.namespaces.get(name)?.get(rule))
            .or_else(|| self.actions.get(rule))
            .copied()
            .unwrap_or(default)
    }

    /// Whether a rule is enforced in every namespace without exceptions.
    #[must_use]
    pub fn is_enforced_everywhere(&self, rule: &str, default: Action) -> bool {
        let everywhere = self.action(rule, default, None);
        let somewhere = self.namespaces.values().filter_map(|it| it.get(rule));
        let mut all = somewhere.copied().chain([everywhere]);
        all.all(|action| action == Action::Enforce) && !self.exceptions.covers_rule(rule)
    }

    /// The namespaces with an own action for a rule, by name.
    pub fn namespace_overrides(&self, rule: &str) -> impl Iterator<Item = (&str, Action)> {
        let all = self.namespaces.iter();
        all.filter_map(move |(name, of)| Some((name.as_str(), *of.get(rule)?)))
    }

    /// Whether a rule is on in at least one namespace.
    #[must_use]
    pub fn is_on(&self, rule: &str, default: Action) -> bool {
        let everywhere = self.action(rule, default, None);
        let somewhere = self.namespaces.values().filter_map(|it| it.get(rule));
        let mut all = somewhere.copied().chain([everywhere]);
        all.any(|action| action != Action::Off)
    }
}

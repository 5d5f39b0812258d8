//! The administrator's settings as rules and engine use them. [`crate::registry::settings`] makes
//! them.

use crate::exceptions::Exceptions;
use crate::user_rules::rule_set::UserRules;
use lockkeeper_api::config::{
    Action, Algorithm, Config, JobSettings, PriorityCaps, RequeuingTimestamp, WaitForPodsReady,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The settings of a [`Config`] that concern rules, checked.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    actions: BTreeMap<String, Action>,
    namespaces: BTreeMap<String, BTreeMap<String, Action>>,
    feature_gates: BTreeMap<String, bool>,
    /// The rules of users.
    pub user_rules: Arc<UserRules>,
    /// What the administrator lets pass.
    pub exceptions: Exceptions,
    /// The caps on priorities.
    pub priority: PriorityCaps,
    /// How labels of jobs are read.
    pub job: JobSettings,
    /// By which rules victims are chosen.
    pub algorithm: Algorithm,
    /// Whether lockkeeper neither holds preempted quota nor cuts circles.
    pub is_undamped: bool,
    /// What becomes of workloads whose pods are not ready in time.
    pub wait_for_pods_ready: WaitForPodsReady,
}

impl Settings {
    /// Takes over the configuration, which names only rules that exist.
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
            wait_for_pods_ready: config.wait_for_pods_ready.clone(),
        }
    }

    /// The same as of a time, in seconds since 1970: exceptions end.
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

    /// Whether a workload whose pods never get ready is put back to where it was, over and over.
    #[must_use]
    pub fn requeues_at_head_forever(&self) -> bool {
        let given = &self.wait_for_pods_ready;
        let strategy = &given.requeuing_strategy;
        given.enable
            && strategy.timestamp == RequeuingTimestamp::Creation
            && strategy.backoff_limit_count.is_none()
            && strategy.backoff_limit_seconds.is_none()
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

    /// Whether findings of a rule are refused in every namespace, and none is excused.
    #[must_use]
    pub fn is_enforced_everywhere(&self, rule: &str, default: Action) -> bool {
        let everywhere = self.action(rule, default, None);
        let somewhere = self.namespaces.values().filter_map(|it| it.get(rule));
        let mut all = somewhere.copied().chain([everywhere]);
        all.all(|action| action == Action::Enforce) && !self.exceptions.covers_rule(rule)
    }

    /// What happens to findings of a rule in namespaces that have a word of their own, in the order of their names.
    pub fn namespace_overrides(&self, rule: &str) -> impl Iterator<Item = (&str, Action)> {
        let all = self.namespaces.iter();
        all.filter_map(move |(name, of)| Some((name.as_str(), *of.get(rule)?)))
    }

    /// Whether findings of a rule come to anything, in some namespace at least.
    #[must_use]
    pub fn is_on(&self, rule: &str, default: Action) -> bool {
        let everywhere = self.action(rule, default, None);
        let somewhere = self.namespaces.values().filter_map(|it| it.get(rule));
        let mut all = somewhere.copied().chain([everywhere]);
        all.any(|action| action != Action::Off)
    }
}

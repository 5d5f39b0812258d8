//! The actions of rules when there is no cluster.

use super::result::Findings;
use crate::rule_selection::RuleSelection;
use crate::severity::Severity;
use lockkeeper_api::config::{Action, Config};
use lockkeeper_policies::registry::{self, UnknownRule};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user_rules::UserRules;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The settings for a check without a cluster. `now_seconds` (since 1970) decides which exceptions
/// have expired.
///
/// # Errors
///
/// The configuration names an unknown rule.
pub fn offline_settings(
    mut config: Config,
    user_rules: Arc<UserRules>,
    selection: &RuleSelection,
    now_seconds: i64,
) -> Result<Settings, UnknownRule> {
    for (id, action) in offline_actions() {
        let actions = &mut config.rules.actions;
        actions.entry(id.to_owned()).or_insert(action);
    }
    // Check the names in the configuration before the selection removes any.
    registry::settings_with(&config, Arc::clone(&user_rules))?;
    selection.apply(&mut config);
    let settings = registry::settings_with(&config, user_rules)?;
    Ok(settings.with_time(now_seconds))
}

/// The rules about the queue of a job. They warn, because the queue may change or be created later.
const QUEUE_RULES: [&str; 4] = ["QU002", "QU003", "QU004", "QU005"];

/// Makes the findings about the queues of jobs errors, unless the configuration sets an action: the objects are all that
/// there are.
pub fn enforce_queue_rules(config: &mut Config) {
    let actions = &mut config.rules.actions;
    for id in QUEUE_RULES {
        actions.entry(id.to_owned()).or_insert(Action::Enforce);
    }
}

/// The default action of each rule in a check.
fn offline_actions() -> BTreeMap<&'static str, Action> {
    let mut defaults = BTreeMap::new();
    for rule in registry::all() {
        let action: &mut Action = defaults.entry(rule.id).or_insert(rule.action);
        // A rule that is off for only some kinds has the action of the others.
        if *action == Action::Off {
            *action = rule.action;
        }
    }
    defaults
        .into_iter()
        .map(|(id, action)| match action {
            // Off by default, because other projects enforce these rules on a cluster.
            Action::Off => (id, Action::Enforce),
            // On a cluster objects arrive one by one; here, related objects are checked together.
            Action::Audit => (id, Action::Warn),
            action => (id, action),
        })
        .collect()
}

/// The severity of findings of a rule with this default action in a namespace; `None` if they are not reported.
pub fn severity(
    settings: &Settings,
    (id, default): (&str, Action),
    namespace: &str,
) -> Option<Severity> {
    let namespace = Some(namespace).filter(|it| !it.is_empty());
    match settings.action(id, default, namespace) {
        Action::Enforce => Some(Severity::Error),
        Action::Warn => Some(Severity::Warning),
        Action::Audit | Action::Off => None,
    }
}

/// Findings of the API server, with the severities that the settings give to their rules in a namespace. A warning of
/// the API server is none of its rejections.
pub fn configured(found: Findings, settings: &Settings, namespace: &str) -> Findings {
    let configured = found.into_iter().filter_map(|(found, finding)| {
        let configured = severity(settings, (&finding.rule, Action::Enforce), namespace)?;
        let severity = match found {
            Severity::Warning => Severity::Warning,
            Severity::Error => configured,
        };
        Some((severity, finding))
    });
    configured.collect()
}

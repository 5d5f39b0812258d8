//! The rules to run.

use lockkeeper_api::config::{Action, Config};
use lockkeeper_policies::reference;
use lockkeeper_policies::registry;
use lockkeeper_policies::user_rules;
use thiserror::Error;

/// The length of the prefix that the rules of a kind share, such as `CQ`.
const GROUP_LENGTH: usize = 2;

/// The prefix of the rules about schemas.
const SCHEMAS: &str = "SC";

/// A selector names no rule. The message suggests similar rules.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct UnknownSelector(String);

/// The rules to run: those of `--select` (all, if it is empty) without those of `--ignore`. A selector is a rule (`CQ007`)
/// or the prefix of a group (`CQ`).
#[derive(Clone, Debug, Default)]
pub struct RuleSelection {
    select: Vec<String>,
    ignore: Vec<String>,
}

impl RuleSelection {
    /// Checks and stores the selectors.
    ///
    /// # Errors
    ///
    /// A selector matches no rule, neither built-in nor of the user.
    pub fn new(
        select: &[String],
        ignore: &[String],
        user_rules: &user_rules::UserRules,
    ) -> Result<Self, UnknownSelector> {
        let all = registry::all();
        for selector in select.iter().chain(ignore) {
            let is_known = all.iter().any(|rule| selector_matches(selector, rule.id));
            if !is_known && user_rules.find(selector).is_none() {
                return Err(UnknownSelector(reference::unknown_rule_message(selector)));
            }
        }
        Ok(Self {
            select: select.to_vec(),
            ignore: ignore.to_vec(),
        })
    }

    /// Whether all rules run.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.select.is_empty() && self.ignore.is_empty()
    }

    /// Whether a rule runs.
    #[must_use]
    pub fn includes(&self, id: &str) -> bool {
        let any = |all: &[String]| all.iter().any(|it| selector_matches(it, id));
        !any(&self.ignore) && (self.select.is_empty() || any(&self.select))
    }

    /// Whether a selected rule may look up other objects: all rules except those about schemas.
    #[must_use]
    pub fn needs_other_objects(&self) -> bool {
        let rules = registry::all();
        let mut others = rules.iter().filter(|it| !selector_matches(SCHEMAS, it.id));
        others.any(|it| self.includes(it.id))
    }

    /// Turns all other rules off in a configuration.
    pub(crate) fn apply(&self, config: &mut Config) {
        if self.is_everything() {
            return;
        }
        let rules = &mut config.rules;
        for rule in registry::all().iter().filter(|it| !self.includes(it.id)) {
            rules.actions.insert(rule.id.to_owned(), Action::Off);
            for namespace in rules.namespaces.values_mut() {
                // An override for a namespace has precedence, and would turn the rule on again.
                namespace.actions.remove(rule.id);
            }
        }
    }
}

fn selector_matches(selector: &str, id: &str) -> bool {
    let is_group = selector.len() == GROUP_LENGTH;
    let part = if is_group {
        id.get(..GROUP_LENGTH)
    } else {
        Some(id)
    };
    part.is_some_and(|it| it.eq_ignore_ascii_case(selector))
}

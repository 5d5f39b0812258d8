//! The rules to run.

use lockkeeper_api::config::{Action, Config};
use lockkeeper_policies::reference;
use lockkeeper_policies::registry;
use lockkeeper_policies::user_rules::UserRules;
use thiserror::Error;

/// The prefix of the rules about schemas.
const SCHEMAS: &str = "SC";

/// A selector names no rule. The message suggests similar rules.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct UnknownSelector(String);

/// The rules to run: those of `--select` (all, if it is empty) without those of `--ignore`. A selector is the id or the
/// name of a rule (`CQ007`), or the letters that the ids of a group begin with (`CQ`, `TEAM`).
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
        user_rules: &UserRules,
    ) -> Result<Self, UnknownSelector> {
        let resolve = |selectors: &[String]| {
            let ids = selectors.iter().map(|it| resolve(it, user_rules));
            ids.collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            select: resolve(select)?,
            ignore: resolve(ignore)?,
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

/// The id of a rule that a selector names, or the selector itself if it is an id or a prefix.
fn resolve(selector: &str, user_rules: &UserRules) -> Result<String, UnknownSelector> {
    let all = registry::all();
    if let Some(rule) = all.iter().find(|it| it.name == selector) {
        return Ok(rule.id.to_owned());
    }
    if let Some(rule) = user_rules.iter().find(|it| it.name == selector) {
        return Ok(rule.id.clone());
    }
    let own = user_rules.iter().map(|it| it.id.as_str());
    let mut ids = all.iter().map(|it| it.id).chain(own);
    if ids.any(|id| selector_matches(selector, id)) {
        return Ok(selector.to_owned());
    }
    Err(UnknownSelector(reference::unknown_rule_message(selector)))
}

/// Whether a selector is the id of a rule, or a prefix of ids without digits.
fn selector_matches(selector: &str, id: &str) -> bool {
    let is_prefix = selector.bytes().all(|it| it.is_ascii_alphabetic());
    let letters = id.trim_end_matches(|it: char| it.is_ascii_digit());
    if is_prefix && selector.eq_ignore_ascii_case(letters) {
        return true;
    }
    id.eq_ignore_ascii_case(selector)
}

#[cfg(test)]
mod tests {
    use super::{RuleSelection, UserRules};

    fn select(selector: &str) -> Result<RuleSelection, String> {
        let user_rules = UserRules::default();
        let selected = RuleSelection::new(&[selector.to_owned()], &[], &user_rules);
        selected.map_err(|it| it.to_string())
    }

    #[test]
    fn rule_selection_accepts_ids_names_and_prefixes() {
        for (selector, included, excluded) in [
            ("cq007", "CQ007", "CQ008"),
            ("lending-limit-above-nominal", "CQ007", "CQ008"),
            ("cq", "CQ008", "CO001"),
            ("sc", "SC003", "CQ001"),
        ] {
            let selection = select(selector).unwrap();
            assert!(selection.includes(included), "{selector}");
            assert!(!selection.includes(excluded), "{selector}");
        }
        for unknown in ["CQ", "C", "CQ999", "lending-limit"] {
            assert_eq!(select(unknown).is_err(), unknown != "CQ", "{unknown}");
        }
    }
}

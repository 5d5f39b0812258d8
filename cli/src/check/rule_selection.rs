//! Which rules are asked.

use anyhow::{Error, anyhow};
use lockkeeper_api::config::{Action, Config};
use lockkeeper_policies::reference;
use lockkeeper_policies::registry;
use lockkeeper_policies::user_rules;

/// How long the letters are that the ids of rules about one thing begin with.
const GROUP_LENGTH: usize = 2;

/// The group of the rules about schemas.
const SCHEMAS: &str = "SC";

/// The rules that `--select` and `--ignore` leave: each names a rule (`CQ007`) or a group of them (`CQ`).
#[derive(Clone, Debug, Default)]
pub(super) struct RuleSelection {
    select: Vec<String>,
    ignore: Vec<String>,
}

impl RuleSelection {
    /// An error says what there is no rule for.
    pub(super) fn new(
        select: &[String],
        ignore: &[String],
        user_rules: &user_rules::UserRules,
    ) -> Result<Self, Error> {
        let all = registry::all();
        for asked in select.iter().chain(ignore) {
            let is_known = all.iter().any(|rule| selector_matches(asked, rule.id));
            if !is_known && user_rules.find(asked).is_none() {
                return Err(anyhow!(reference::unknown_rule_message(asked)));
            }
        }
        Ok(Self {
            select: select.to_vec(),
            ignore: ignore.to_vec(),
        })
    }

    /// Whether nothing is left out.
    pub(super) fn is_everything(&self) -> bool {
        self.select.is_empty() && self.ignore.is_empty()
    }

    /// Whether a rule is asked.
    pub(super) fn includes(&self, id: &str) -> bool {
        let any = |all: &[String]| all.iter().any(|it| selector_matches(it, id));
        !any(&self.ignore) && (self.select.is_empty() || any(&self.select))
    }

    /// Whether some rule is asked that looks at other objects, or may: all but those about schemas.
    pub(super) fn needs_other_objects(&self) -> bool {
        let rules = registry::all();
        let mut others = rules.iter().filter(|it| !selector_matches(SCHEMAS, it.id));
        others.any(|it| self.includes(it.id))
    }

    /// Switches everything else off.
    pub(super) fn apply(&self, config: &mut Config) {
        if self.is_everything() {
            return;
        }
        let rules = &mut config.rules;
        for rule in registry::all().iter().filter(|it| !self.includes(it.id)) {
            rules.actions.insert(rule.id.to_owned(), Action::Off);
            for given in rules.namespaces.values_mut() {
                given.actions.remove(rule.id);
            }
        }
    }
}

fn selector_matches(asked: &str, id: &str) -> bool {
    let is_group = asked.len() == GROUP_LENGTH;
    let part = if is_group {
        id.get(..GROUP_LENGTH)
    } else {
        Some(id)
    };
    part.is_some_and(|it| it.eq_ignore_ascii_case(asked))
}

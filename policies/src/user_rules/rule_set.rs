//! A set of user rules, read from pages.

use super::limits::RULES_MAX;
use super::page::{KindName, PageError, UserRule};
use crate::rule_info::RuleInfo;
use std::collections::BTreeMap;
use std::fmt;

/// A page with the name for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name of the file.
    pub name: String,
    /// The text of the page.
    pub text: String,
}

/// User rules, sorted by id.
#[derive(Debug, Default)]
pub struct UserRules {
    pub(super) all: Vec<UserRule>,
}

/// An error in a set of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserRulesError {
    /// A page is invalid.
    Page {
        /// The name of the file.
        name: String,
        /// The error.
        error: PageError,
    },
    /// Two pages give the same id or name.
    Duplicate {
        /// The name of the file.
        name: String,
        /// The first file with it.
        first: String,
        /// The id or name.
        what: String,
    },
    /// More than [`RULES_MAX`] pages.
    TooMany,
}

impl fmt::Display for UserRulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page { name, error } => write!(f, "{name}:{error}"),
            Self::Duplicate { name, first, what } => {
                write!(f, "{name}:1:1: {first} has {what} already; take another")
            }
            Self::TooMany => write!(f, "there are more than {RULES_MAX} pages of rules"),
        }
    }
}

impl std::error::Error for UserRulesError {}

impl UserRules {
    /// Parses and compiles pages. Names must differ from those of the built-in rules.
    ///
    /// # Errors
    ///
    /// All errors, in the order of the pages.
    pub fn parse(sources: &[Source], built_in: &[RuleInfo]) -> Result<Self, Vec<UserRulesError>> {
        if sources.len() > RULES_MAX {
            return Err(vec![UserRulesError::TooMany]);
        }
        let (mut all, mut errors) = (Vec::<UserRule>::new(), Vec::new());
        let mut taken: BTreeMap<String, &str> = BTreeMap::new();
        for Source { name, text } in sources {
            let rule = match UserRule::parse(text, built_in) {
                Ok(rule) => rule,
                Err(error) => {
                    let name = name.clone();
                    errors.push(UserRulesError::Page { name, error });
                    continue;
                }
            };
            // One map for ids and names: `find` accepts both, so they must differ from each other.
            for what in [&rule.id, &rule.name] {
                if let Some(first) = taken.insert(what.clone(), name) {
                    errors.push(UserRulesError::Duplicate {
                        name: name.clone(),
                        first: first.to_owned(),
                        what: what.clone(),
                    });
                }
            }
            all.push(rule);
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        if errors.is_empty() {
            Ok(Self { all })
        } else {
            Err(errors)
        }
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The rules by id.
    pub fn iter(&self) -> impl Iterator<Item = &UserRule> {
        self.all.iter()
    }

    /// The rules for a kind.
    pub fn for_kind<'a>(&'a self, kind: KindName<'a>) -> impl Iterator<Item = &'a UserRule> + 'a {
        self.all.iter().filter(move |it| it.applies_to(kind))
    }

    /// The rule with this id, case-insensitive, or this name.
    #[must_use]
    pub fn find(&self, id_or_name: &str) -> Option<&UserRule> {
        let is = |it: &&UserRule| it.id.eq_ignore_ascii_case(id_or_name) || it.name == id_or_name;
        self.all.iter().find(is)
    }
}

//! A set of user rules, read from pages.

use super::limits::RULES_MAX;
use super::page::{KindName, PageError, UserRule};
use crate::rule_info::RuleInfo;
use std::collections::BTreeMap;
use std::fmt;

/// A page, and what it is called in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name of the file.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// The rules of users.
#[derive(Debug, Default)]
pub struct UserRules {
    pub(super) all: Vec<UserRule>,
}

/// Why pages are no rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserRulesError {
    /// A page cannot be read.
    Page {
        /// The name of the file.
        name: String,
        /// What is wrong with it.
        error: PageError,
    },
    /// Two pages give the same id or name.
    Duplicate {
        /// The name of the file.
        name: String,
        /// The file that had it first.
        first: String,
        /// The id or name.
        what: String,
    },
    /// There are more than [`RULES_MAX`].
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
    /// Reads pages, and compiles what they say.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, in the order of the pages.
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

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &UserRule> {
        self.all.iter()
    }

    /// Those for a kind.
    pub fn for_kind<'a>(&'a self, kind: KindName<'a>) -> impl Iterator<Item = &'a UserRule> + 'a {
        self.all.iter().filter(move |it| it.applies_to(kind))
    }

    /// The one with this id, in any case of letters, or with this name.
    #[must_use]
    pub fn find(&self, asked: &str) -> Option<&UserRule> {
        let is = |it: &&UserRule| it.id.eq_ignore_ascii_case(asked) || it.name == asked;
        self.all.iter().find(is)
    }
}

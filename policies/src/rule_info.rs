//! Rules without their checks: what the registry lists.

use crate::cel::CelRule;
use lockkeeper_api::config::Action;
use std::fmt;

/// What is known of a rule without its check. The fields are those of [`Rule`].
#[derive(Clone, Debug)]
pub struct RuleInfo {
    /// The stable code.
    pub id: &'static str,
    /// The name of the bad thing.
    pub name: &'static str,
    /// The API group of the kind; empty for the core group.
    pub group: String,
    /// The kind of object; `*` for any.
    pub kind: String,
    /// The version of lockkeeper that had it first.
    pub since: &'static str,
    /// The default action.
    pub action: Action,
    /// What it covers.
    pub covers: &'static [&'static str],
    /// Where it is checked.
    pub layers: &'static [Layer],
    /// The operations that it runs on.
    pub operations: &'static [Operation],
    /// Whether an update is excused for what the stored object has already.
    pub ratchets: bool,
    /// The page.
    pub doc: &'static str,
}

/// A place where a rule is enforced.
#[derive(Clone, Copy, Debug)]
pub enum Layer {
    /// The webhook, and every other program that runs the rules in Rust.
    Webhook,
    /// The API server, by the schema of the kind. The CEL rules are in the schemas of lockkeeper's kinds, and in
    /// admission policies for kinds of other projects. Rules that types and bounds express have no CEL.
    Schema(fn() -> Vec<CelRule>),
    /// The API server, by admission policies: rules that a schema cannot express, or that the settings may relax.
    Policy(fn() -> Vec<CelRule>),
    /// `lockkeeper check` only.
    Check,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook => f.write_str("webhook"),
            Self::Schema(_) => f.write_str("schema"),
            Self::Policy(_) => f.write_str("policy"),
            Self::Check => f.write_str("check"),
        }
    }
}

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
}

impl Operation {
    /// As it is written in an admission review.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

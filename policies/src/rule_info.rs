//! Rules without their checks, as the registry lists them.

use crate::cel::CelRule;
use lockkeeper_api::config::Action;
use std::fmt;

/// A rule without its check. The fields are those of [`crate::rule::Rule`].
#[derive(Clone, Debug)]
pub struct RuleInfo {
    /// The stable code.
    pub id: &'static str,
    /// The name of the defect.
    pub name: &'static str,
    /// The API group of the kind; empty for the core group.
    pub group: String,
    /// The kind of object; `*` for any.
    pub kind: String,
    /// The version of lockkeeper that introduced the rule.
    pub since: &'static str,
    /// The default action.
    pub action: Action,
    /// The covered upstream rules.
    pub covers: &'static [&'static str],
    /// The places that enforce the rule.
    pub layers: &'static [Layer],
    /// The operations that run the rule.
    pub operations: &'static [Operation],
    /// Whether pre-existing findings of the stored object are dropped on update.
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

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of a stored object.
    Update,
    /// A deletion.
    Delete,
}

impl Operation {
    /// The operation as an AdmissionReview spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

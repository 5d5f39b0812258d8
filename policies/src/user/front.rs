//! The front matter of a page, as it is written.

use crate::finding::ErrorKind;
use crate::rule::Operation;
use lockkeeper_api::config::Action;
use serde::Deserialize;
use serde_saphyr::Spanned;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Front {
    pub(super) id: Spanned<String>,
    pub(super) name: Spanned<String>,
    pub(super) kinds: Spanned<Vec<KindAsked>>,
    #[serde(default = "usual_operations")]
    pub(super) operations: Spanned<Vec<On>>,
    #[serde(default = "usual_action")]
    pub(super) action: Action,
    #[serde(default)]
    pub(super) failure_policy: FailurePolicy,
    pub(super) match_conditions: Option<Spanned<Vec<ConditionAsked>>>,
    pub(super) validations: Spanned<Vec<ValidationAsked>>,
}

/// A kind of object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct KindAsked {
    #[serde(default)]
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: Option<String>,
}

/// When a rule is asked at all.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ConditionAsked {
    /// For people.
    #[serde(default, rename = "name")]
    pub(super) _name: String,
    pub(super) expression: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ValidationAsked {
    pub(super) expression: Spanned<String>,
    pub(super) message: Option<Spanned<String>>,
    pub(super) message_expression: Option<Spanned<String>>,
    pub(super) field_path: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) reason: Reason,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum On {
    Create,
    Update,
    Delete,
}

impl From<On> for Operation {
    fn from(on: On) -> Self {
        match on {
            On::Create => Self::Create,
            On::Update => Self::Update,
            On::Delete => Self::Delete,
        }
    }
}

/// The reasons that a CRD may give, and those of other field errors.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) enum Reason {
    #[default]
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    #[serde(rename = "FieldValueRequired")]
    Required,
    #[serde(rename = "FieldValueForbidden")]
    Forbidden,
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
}

impl From<Reason> for ErrorKind {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Invalid => Self::Invalid,
            Reason::Required => Self::Required,
            Reason::Forbidden => Self::Forbidden,
            Reason::Duplicate => Self::Duplicate,
        }
    }
}

/// What becomes of an object that a rule cannot judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum FailurePolicy {
    /// That it cannot is a finding.
    #[default]
    Fail,
    /// It is as if the rule had found nothing.
    Ignore,
}

fn usual_operations() -> Spanned<Vec<On>> {
    let nowhere = serde_saphyr::Location::UNKNOWN;
    Spanned::new(vec![On::Create, On::Update], nowhere, nowhere)
}

fn usual_action() -> Action {
    Action::Enforce
}

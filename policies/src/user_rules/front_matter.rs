//! The serialised form of the front matter of a page.

use crate::finding::ErrorKind;
use crate::rule_info::Operation;
use lockkeeper_api::config::Action;
use serde::Deserialize;
use serde_saphyr::Spanned;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FrontMatter {
    pub(super) id: Spanned<String>,
    pub(super) name: Spanned<String>,
    pub(super) kinds: Spanned<Vec<KindYaml>>,
    #[serde(default = "default_operations")]
    pub(super) operations: Spanned<Vec<OperationYaml>>,
    #[serde(default = "default_action")]
    pub(super) action: Action,
    #[serde(default)]
    pub(super) failure_policy: FailurePolicy,
    pub(super) match_conditions: Option<Spanned<Vec<ConditionYaml>>>,
    pub(super) validations: Spanned<Vec<ValidationYaml>>,
}

/// A kind of object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct KindYaml {
    #[serde(default)]
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: Option<String>,
}

/// A match condition of a rule.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ConditionYaml {
    /// A name for messages; not evaluated.
    #[serde(default, rename = "name")]
    pub(super) _name: String,
    pub(super) expression: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ValidationYaml {
    pub(super) expression: Spanned<String>,
    pub(super) message: Option<Spanned<String>>,
    pub(super) message_expression: Option<Spanned<String>>,
    pub(super) field_path: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) reason: ReasonYaml,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum OperationYaml {
    Create,
    Update,
    Delete,
}

impl From<OperationYaml> for Operation {
    fn from(on: OperationYaml) -> Self {
        match on {
            OperationYaml::Create => Self::Create,
            OperationYaml::Update => Self::Update,
            OperationYaml::Delete => Self::Delete,
        }
    }
}

/// The reasons that a CRD may give, and those of other field errors.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) enum ReasonYaml {
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

impl From<ReasonYaml> for ErrorKind {
    fn from(reason: ReasonYaml) -> Self {
        match reason {
            ReasonYaml::Invalid => Self::Invalid,
            ReasonYaml::Required => Self::Required,
            ReasonYaml::Forbidden => Self::Forbidden,
            ReasonYaml::Duplicate => Self::Duplicate,
        }
    }
}

/// The effect of a failed evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum FailurePolicy {
    /// A failed evaluation is a finding.
    #[default]
    Fail,
    /// A failed evaluation is ignored.
    Ignore,
}

fn default_operations() -> Spanned<Vec<OperationYaml>> {
    let nowhere = serde_saphyr::Location::UNKNOWN;
    Spanned::new(
        vec![OperationYaml::Create, OperationYaml::Update],
        nowhere,
        nowhere,
    )
}

fn default_action() -> Action {
    Action::Enforce
}

//! Rule SC008: objects that admission policies of Kubernetes deny. `lockkeeper check` evaluates the policies.

use crate::finding::{ErrorKind, Finding};
use crate::rule_info::{Layer, Operation, RuleInfo};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_crd_schema::admission_policy::{Actions, Decision, Missing, Outcome, PolicyKind};
use serde_json::Value;
use std::borrow::Cow;

/// The id of findings of admission policies.
pub const ID: &str = "SC008";

pub(crate) fn info() -> RuleInfo {
    RuleInfo {
        id: ID,
        name: "admission-policy",
        group: "*".to_owned(),
        kind: "*".to_owned(),
        since: "0.1.0",
        action: Action::Enforce,
        covers: &[],
        layers: &[Layer::Check],
        operations: &[Operation::Create, Operation::Update],
        ratchets: false,
        doc: include_str!("admission_policy.md"),
    }
}

/// The finding about a decision on an object, with the texts of the API server, and whether the API server rejects the
/// object.
#[must_use]
pub fn finding(decision: Decision, object: &Value) -> (Finding, bool) {
    let Decision {
        kind: policy_kind,
        policy,
        binding,
        outcome,
        field,
    } = decision;
    let kind_name = match policy_kind {
        PolicyKind::Validating => "ValidatingAdmissionPolicy",
        PolicyKind::Mutating => "MutatingAdmissionPolicy",
    };
    let binding = binding.map_or_else(String::new, |it| format!(" with binding '{it}'"));
    let name = format!("{kind_name} '{policy}'{binding}");
    let (is_rejected, kind, detail) = match outcome {
        Outcome::Denied { message, actions } => {
            let detail = match policy_kind {
                PolicyKind::Validating => denial(&name, &message, actions),
                // The API server names the kind of validating policies only.
                PolicyKind::Mutating => {
                    format!("policy '{policy}'{binding} denied request: {message}")
                }
            };
            (actions.is_denied, ErrorKind::Forbidden, detail)
        }
        Outcome::Undecided(missing) => {
            let remedy = remedy(&missing);
            let detail = format!("{missing}, which {name} reads; {remedy}");
            (false, ErrorKind::NotFound, detail)
        }
        Outcome::Unusable(problem) => {
            let detail = format!("{name} cannot be used: {problem}");
            (false, ErrorKind::Internal, detail)
        }
    };
    let finding = Finding {
        rule: Cow::Borrowed(ID),
        field: existing_field(&field, object),
        kind,
        value: None,
        detail: detail.into(),
    };
    (finding, is_rejected)
}

fn denial(name: &str, message: &str, actions: Actions) -> String {
    if actions.is_denied {
        format!("{name} denied request: {message}")
    } else if actions.is_warned {
        format!("Validation failed for {name}: {message}")
    } else {
        format!("{name} writes this to the audit log only: {message}")
    }
}

/// What lets a policy decide.
fn remedy(missing: &Missing) -> &'static str {
    match missing {
        Missing::User => "name it with --user",
        Missing::Rights | Missing::Version(_) => "only the API server has it",
        Missing::Schema => "give its definition with --crds",
        Missing::Namespace(_) | Missing::Params(_) => "add it to the files, or to --world",
    }
}

/// The deepest part of a field that the object has; its metadata if it has none.
fn existing_field(names: &[String], object: &Value) -> FieldPath {
    let mut path = FieldPath::default();
    let mut value = object;
    for name in names {
        let Some(below) = value.get(name) else {
            break;
        };
        // The first fields of every object are fixed; below them are those of maps, too.
        path = path.named(name);
        value = below;
    }
    if path == FieldPath::default() {
        FieldPath::new("metadata")
    } else {
        path
    }
}

#[cfg(test)]
mod tests {
    use super::existing_field;
    use serde_json::json;

    #[test]
    fn fields_are_those_of_the_object() {
        let object = json!({"spec": {"replicas": 1, "template": {"spec": {}}}});
        for (names, expected) in [
            (&["spec", "replicas"][..], "spec.replicas"),
            (
                &["spec", "template", "spec", "hostNetwork"],
                "spec.template.spec",
            ),
            (&["data", "a"], "metadata"),
            (&[], "metadata"),
        ] {
            let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(existing_field(&names, &object).text(), expected);
        }
    }
}

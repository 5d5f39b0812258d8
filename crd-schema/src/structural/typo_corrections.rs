//! Misspelt names and values with exactly one likely correction.

use super::defaults_and_pruning;
use super::node::{DEPTH_MAX, Node};
use super::path::{PathStack, PathStep};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The most corrections of one object.
const CORRECTIONS_MAX: usize = 100;

/// The least similarity of a correction,
const SIMILARITY_MIN: f64 = 0.9;

/// and its least lead over the next candidate.
const SIMILARITY_LEAD_MIN: f64 = 0.05;

/// The length in characters of the shortest name that is corrected: shorter ones are too similar to each other.
const LENGTH_MIN: usize = 4;

/// A correction of a name or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The path.
    pub field: FieldPath,
    /// Whether it is the name of the field or its value.
    pub part: MisspeltPart,
    /// The suggested spelling.
    pub suggestion: String,
}

/// The part of a field that is misspelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisspeltPart {
    /// Its name.
    Name,
    /// Its value.
    Value,
}

/// Corrections from the root down: unknown fields with exactly one similar specified field that is not set already,
/// and values that differ from exactly one enum value in case only.
pub(super) fn corrections(root: &Node, object: &Value) -> Vec<Correction> {
    let mut out = Vec::new();
    visit(root, object, true, &mut PathStack::default(), &mut out);
    out
}

fn visit<'a>(
    node: &'a Node,
    value: &'a Value,
    is_object: bool,
    way: &mut PathStack<'a>,
    out: &mut Vec<Correction>,
) {
    if way.depth() > DEPTH_MAX || out.len() >= CORRECTIONS_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            let is_object = is_object || node.is_embedded;
            for (name, value) in fields {
                // Schemas do not specify the fields of metadata.
                if is_object && name == "metadata" {
                    continue;
                }
                match defaults_and_pruning::lookup_field(node, name, is_object) {
                    defaults_and_pruning::FieldLookup::Known(child) => {
                        way.with_step(PathStep::Field(name), |way| {
                            visit(child, value, false, way, out);
                        });
                    }
                    defaults_and_pruning::FieldLookup::Preserved => {}
                    defaults_and_pruning::FieldLookup::Unknown => {
                        let correction =
                            // A rename must not overwrite a field that is set.
                            suggested_name(node, name).filter(|it| !fields.contains_key(*it));
                        out.extend(correction.map(|correction| Correction {
                            field: way.path().named(name.as_str()),
                            part: MisspeltPart::Name,
                            suggestion: correction.to_owned(),
                        }));
                    }
                }
            }
        }
        Value::Array(items) => {
            for (child, (index, item)) in node.items.iter().flat_map(|child| {
                let items = items.iter().enumerate();
                items.map(move |item| (child, item))
            }) {
                way.with_step(PathStep::Index(index), |way| {
                    visit(child, item, false, way, out);
                });
            }
        }
        Value::String(text) => {
            let accepted = node.enum_values.iter().filter_map(Value::as_str);
            let mut alike = accepted.filter(|it| it.eq_ignore_ascii_case(text));
            // Two enum values that differ in case only leave the intended one unknown.
            if let (Some(correction), None) = (alike.next(), alike.next())
                && correction != text
            {
                out.push(Correction {
                    field: way.path(),
                    part: MisspeltPart::Value,
                    suggestion: correction.to_owned(),
                });
            }
        }
        _ => {}
    }
}

/// The only likely correction of a name.
fn suggested_name<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    if name.chars().count() < LENGTH_MIN {
        return None;
    }
    let (score, best) = defaults_and_pruning::most_similar(node, name)?;
    let others = defaults_and_pruning::similarity_scores(node, name).filter(|(_, it)| *it != best);
    let next = others.map(|(score, _)| score).fold(0.0, f64::max);
    (score >= SIMILARITY_MIN && score - next >= SIMILARITY_LEAD_MIN).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::MisspeltPart;
    use crate::StructuralSchema;
    use serde_json::{Value, json};

    fn check(object: &Value, expected: &[(&str, MisspeltPart, &str)]) {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "cohortName": {"type": "string"},
                "priorityClassName": {"type": "string"},
                "priorityClassRefs": {"type": "string"},
                "min": {"type": "integer"},
                "policy": {"type": "string", "enum": ["Never", "Any", "ANY"]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                         "properties": {"cohortName": {"type": "string"}}},
                "groups": {"type": "array", "items": {"type": "object", "properties": {
                    "nominalQuota": {"type": "integer"}}}},
            }},
        }});
        let structure = StructuralSchema::new(&schema).unwrap();
        let found = structure.corrections(object);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.field.to_string(), it.part, it.suggestion.as_str()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(field, part, correction)| ((*field).to_owned(), *part, *correction))
            .collect();
        assert_eq!(found, expected, "{object}");
    }

    #[test]
    fn corrections_ambiguous_typo_is_left_alone() {
        use MisspeltPart::{Name, Value};
        check(
            &json!({"spec": {"cohort": "a", "groups": [{"nominalquota": 1}]}}),
            &[
                ("spec.cohort", Name, "cohortName"),
                ("spec.groups[0].nominalquota", Name, "nominalQuota"),
            ],
        );
        // Already set; two candidates; too short; nothing similar.
        check(&json!({"spec": {"cohort": "a", "cohortName": "b"}}), &[]);
        check(&json!({"spec": {"priorityClass": "a"}}), &[]);
        check(&json!({"spec": {"mim": 1}}), &[]);
        check(&json!({"spec": {"colour": "red"}}), &[]);
        // Any name is allowed.
        check(
            &json!({"spec": {"labels": {"cohort": "a"}, "free": {"cohort": "a"}}}),
            &[],
        );
        check(&json!({"metadata": {"cohort": "a"}}), &[]);
        check(
            &json!({"spec": {"policy": "never"}}),
            &[("spec.policy", Value, "Never")],
        );
        check(&json!({"spec": {"policy": "any"}}), &[]);
        check(&json!({"spec": {"policy": "Never"}}), &[]);
        check(&json!({"spec": {"policy": "none"}}), &[]);
    }
}

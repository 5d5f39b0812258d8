//! Mistakes of spelling that have one obvious correction.

use super::node::Node;
use super::walk::{Step, Way};
use super::{DEPTH_MAX, fill};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The most corrections of one object.
const CORRECTIONS_MAX: usize = 100;

/// A name that is meant is at least so much like the one that stands there,
const CLOSE: f64 = 0.9;

/// and by so much more than the next one.
const LEAD: f64 = 0.05;

/// Shorter names are too much like each other, in characters.
const LENGTH_MIN: usize = 4;

/// A word that should be another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Where it stands.
    pub field: FieldPath,
    /// Whether it is the name of the field or its value.
    pub part: Part,
    /// What was meant.
    pub meant: String,
}

/// The part of a field that is misspelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its name.
    Name,
    /// Its value.
    Value,
}

/// What is misspelt in an object, from the top down: an unknown field whose nearest known one is close, no other is,
/// and does not stand there already; and a value that differs from an accepted one in nothing but upper and lower case.
pub(super) fn corrections(root: &Node, object: &Value) -> Vec<Correction> {
    let mut out = Vec::new();
    visit(root, object, true, &mut Way::default(), &mut out);
    out
}

fn visit<'a>(
    node: &'a Node,
    value: &'a Value,
    is_object: bool,
    way: &mut Way<'a>,
    out: &mut Vec<Correction>,
) {
    if way.depth() > DEPTH_MAX || out.len() >= CORRECTIONS_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            let is_object = is_object || node.is_embedded;
            for (name, value) in fields {
                if is_object && name == "metadata" {
                    continue;
                }
                match fill::child(node, name, is_object) {
                    fill::Child::Known(child) => {
                        way.down(Step::Field(name), |way| {
                            visit(child, value, false, way, out);
                        });
                    }
                    fill::Child::Kept => {}
                    fill::Child::Unknown => {
                        let meant = meant(node, name).filter(|it| !fields.contains_key(*it));
                        out.extend(meant.map(|meant| Correction {
                            field: way.path().named(name.as_str()),
                            part: Part::Name,
                            meant: meant.to_owned(),
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
                way.down(Step::Index(index), |way| {
                    visit(child, item, false, way, out);
                });
            }
        }
        Value::String(text) => {
            let accepted = node.accepted.iter().filter_map(Value::as_str);
            let mut alike = accepted.filter(|it| it.eq_ignore_ascii_case(text));
            if let (Some(meant), None) = (alike.next(), alike.next())
                && meant != text
            {
                out.push(Correction {
                    field: way.path(),
                    part: Part::Value,
                    meant: meant.to_owned(),
                });
            }
        }
        _ => {}
    }
}

/// The one known name that is meant.
fn meant<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    if name.chars().count() < LENGTH_MIN {
        return None;
    }
    let (score, best) = fill::nearest(node, name)?;
    let others = fill::scored(node, name).filter(|(_, it)| *it != best);
    let next = others.map(|(score, _)| score).fold(0.0, f64::max);
    (score >= CLOSE && score - next >= LEAD).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::super::Structure;
    use super::Part;
    use serde_json::{Value, json};

    fn check(object: &Value, expected: &[(&str, Part, &str)]) {
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
        let structure = Structure::new(&schema).unwrap();
        let found = structure.corrections(object);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.field.to_string(), it.part, it.meant.as_str()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(field, part, meant)| ((*field).to_owned(), *part, *meant))
            .collect();
        assert_eq!(found, expected, "{object}");
    }

    #[test]
    fn only_what_is_obvious_is_corrected() {
        use Part::{Name, Value};
        check(
            &json!({"spec": {"cohort": "a", "groups": [{"nominalquota": 1}]}}),
            &[
                ("spec.cohort", Name, "cohortName"),
                ("spec.groups[0].nominalquota", Name, "nominalQuota"),
            ],
        );
        // It is there already; there are two; it is too short; it is not much like anything.
        check(&json!({"spec": {"cohort": "a", "cohortName": "b"}}), &[]);
        check(&json!({"spec": {"priorityClass": "a"}}), &[]);
        check(&json!({"spec": {"mim": 1}}), &[]);
        check(&json!({"spec": {"colour": "red"}}), &[]);
        // Any name may stand there.
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

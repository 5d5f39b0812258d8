//! Compares the answer to one case.

use lockkeeper_crd_schema::crd::{
    Answer, Body, ContentType, FieldValidation, Request, StrictProblem, Verdict,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// The agreement of one measure in one case.
#[derive(Default)]
pub enum Agreement {
    /// The case does not measure it.
    #[default]
    NotMeasured,
    Agrees,
    /// The difference.
    Differs(String),
}

impl Agreement {
    fn new(agrees: bool, difference: impl FnOnce() -> String) -> Self {
        if agrees {
            Self::Agrees
        } else {
            Self::Differs(difference())
        }
    }
}

/// The agreement of all measures in one case.
#[derive(Default)]
pub struct Comparison {
    pub outcome: Agreement,
    /// Whether the API server accepts a rejected object.
    pub is_false_positive: bool,
    /// Whether the object is decodable.
    pub decodes: Agreement,
    pub stage: Agreement,
    pub causes: Agreement,
    pub strict: Agreement,
    pub warnings: Agreement,
    pub defaulted: Agreement,
    /// The factors by which estimated costs exceed limits.
    pub costs: Agreement,
}

impl Comparison {
    /// The measures by their names.
    pub fn measures(&self) -> [(&'static str, &Agreement); 8] {
        [
            ("outcome", &self.outcome),
            ("decodes", &self.decodes),
            ("stage", &self.stage),
            ("causes", &self.causes),
            ("strict", &self.strict),
            ("warnings", &self.warnings),
            ("defaulted", &self.defaulted),
            ("costs", &self.costs),
        ]
    }
}

/// Compares an answer with the recorded one.
pub fn compare(case: &Value, answer: &Answer) -> Comparison {
    let mut out = Comparison::default();
    let expected = case["stage"].as_str().unwrap();
    let actual = stage(answer);
    let description = describe(answer);
    let difference = || {
        format!(
            "{expected}, not {actual}: {description}\n    {}",
            case["outcome"]
        )
    };
    let is_accepted = (expected == "accepted", actual == "accepted");
    out.outcome = Agreement::new(is_accepted.0 == is_accepted.1, difference);
    out.is_false_positive = is_accepted == (true, false);
    let is_decode = (expected == "decode", actual == "decode");
    out.decodes = Agreement::new(is_decode.0 == is_decode.1, difference);
    out.stage = Agreement::new(expected == actual, difference);
    if expected == "validate" {
        let expected = expected_causes(case);
        let actual = causes(answer);
        out.causes = Agreement::new(expected == actual, || {
            format!(
                "missing {}; unexpected {}; {description}\n    {}",
                names(&expected.difference(&actual).cloned().collect()),
                names(&actual.difference(&expected).cloned().collect()),
                case["outcome"]
            )
        });
    }
    if expected == "validate" {
        out.costs = costs(case, answer);
    }
    if expected == "decode" {
        let expected = expected_strict(case);
        let actual = strict(answer);
        out.strict = Agreement::new(expected == actual, || {
            format!("{expected:?}, not {actual:?}; {description}")
        });
    }
    let warnings = case["outcome"]["warnings"].as_array();
    let warnings = warnings.map_or(&[][..], Vec::as_slice);
    out.warnings = Agreement::new(warnings.len() == answer.warnings.len(), || {
        format!("{warnings:?}, not {:?}", answer.warnings)
    });
    if expected == "accepted" {
        out.defaulted = defaulted(case, answer);
    }
    out
}

/// The request of a case.
pub fn request(case: &Value) -> Request<'_> {
    let body = match case["raw"].as_str() {
        Some(text) if case["contentType"] == "application/yaml" => {
            Body::Text(text, ContentType::Yaml)
        }
        Some(text) => Body::Text(text, ContentType::Json),
        None => Body::Object(&case["object"]),
    };
    Request {
        body,
        old: case
            .get("oldObject")
            .filter(|_| case["operation"] == "UPDATE"),
        is_status: case["subresource"] == "status",
        field_validation: match case["fieldValidation"].as_str() {
            Some("Ignore") => FieldValidation::Ignore,
            Some("Warn") => FieldValidation::Warn,
            _ => FieldValidation::Strict,
        },
        namespace: "default",
    }
}

fn stage(answer: &Answer) -> &'static str {
    match answer.verdict {
        Verdict::Accepted(_) => "accepted",
        Verdict::Undecodable { .. } => "decode",
        Verdict::Invalid(_) => "validate",
    }
}

fn describe(answer: &Answer) -> String {
    match &answer.verdict {
        Verdict::Accepted(_) => String::new(),
        Verdict::Undecodable { reason, .. } => reason.clone(),
        Verdict::Invalid(findings) => {
            let texts: Vec<String> = findings
                .iter()
                .map(lockkeeper_crd_schema::finding::Finding::text)
                .collect();
            texts.join("; ")
        }
    }
}

fn expected_causes(case: &Value) -> BTreeSet<(String, String)> {
    let causes = case["outcome"]["causes"].as_array().into_iter().flatten();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    causes
        .map(|it| (text(&it["field"]), text(&it["reason"])))
        .collect()
}

fn causes(answer: &Answer) -> BTreeSet<(String, String)> {
    let Verdict::Invalid(findings) = &answer.verdict else {
        return BTreeSet::new();
    };
    let pairs = findings
        .iter()
        .map(|it| (it.field.to_string(), it.kind.reason().to_owned()));
    pairs.collect()
}

/// Compares the factors in the messages about costs. They are the estimates, rounded.
fn costs(case: &Value, answer: &Answer) -> Agreement {
    let factors = |messages: Vec<String>| {
        let factors = messages.iter().filter_map(|it| {
            let (_, rest) = it.split_once("exceeds budget by factor of ")?;
            Some(rest.split(" (").next()?.to_owned())
        });
        let mut factors: Vec<String> = factors.collect();
        factors.sort();
        factors
    };
    let causes = case["outcome"]["causes"].as_array().into_iter().flatten();
    let expected = factors(causes.map(|it| it["message"].to_string()).collect());
    let Verdict::Invalid(findings) = &answer.verdict else {
        return Agreement::NotMeasured;
    };
    let actual = factors(findings.iter().map(|it| it.detail.to_string()).collect());
    if expected.is_empty() && actual.is_empty() {
        return Agreement::NotMeasured;
    }
    Agreement::new(expected == actual, || {
        format!("{expected:?}, not {actual:?}")
    })
}

fn expected_strict(case: &Value) -> BTreeSet<(String, String)> {
    let problems = case["outcome"]["strict"].as_array().into_iter().flatten();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    problems
        .map(|it| (text(&it["field"]), text(&it["problem"])))
        .collect()
}

fn strict(answer: &Answer) -> BTreeSet<(String, String)> {
    let Verdict::Undecodable { strict, .. } = &answer.verdict else {
        return BTreeSet::new();
    };
    let pairs = strict.iter().filter_map(|it| match it {
        StrictProblem::Unknown(field) => Some((field.clone(), "unknown".to_owned())),
        StrictProblem::Duplicate(field) => Some((field.clone(), "duplicate".to_owned())),
        // YAML reports duplicate keys by their lines.
        StrictProblem::DuplicateKey => None,
    });
    pairs.collect()
}

/// Compares the stored object with the answer; without `defaulted` the object is stored as it was sent.
fn defaulted(case: &Value, answer: &Answer) -> Agreement {
    let Verdict::Accepted(object) = &answer.verdict else {
        return Agreement::Differs("not accepted".to_owned());
    };
    let mut expected = case.get("defaulted").unwrap_or(&case["object"]).clone();
    let mut actual = object.clone();
    for value in [&mut expected, &mut actual] {
        if let Some(metadata) = value["metadata"].as_object_mut() {
            for name in [
                "creationTimestamp",
                "generation",
                "managedFields",
                "namespace",
                "resourceVersion",
                "uid",
            ] {
                metadata.remove(name);
            }
            let is_generated = metadata.contains_key("generateName");
            if is_generated {
                metadata.remove("name");
            }
        }
    }
    // The recorder took the times out of the stored conditions, but not out of the answer.
    if case["kind"] == "CustomResourceDefinition"
        && let Some(conditions) = expected.pointer_mut("/status/conditions")
    {
        for condition in conditions.as_array_mut().into_iter().flatten() {
            condition
                .as_object_mut()
                .unwrap()
                .remove("lastTransitionTime");
        }
    }
    integers_to_floats(&mut expected);
    Agreement::new(expected == actual, || {
        format!("{expected}\n    not {actual}")
    })
}

/// Integers beyond 64 bits are floats that Go prints without an exponent.
fn integers_to_floats(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            *value = number.as_f64().unwrap().into();
        }
        Value::Array(items) => items.iter_mut().for_each(integers_to_floats),
        Value::Object(fields) => fields.values_mut().for_each(integers_to_floats),
        _ => {}
    }
}

/// The fields and reasons of causes, for messages.
fn names(set: &BTreeSet<(String, String)>) -> String {
    let names = set
        .iter()
        .map(|(field, reason)| format!("{field} {reason}"));
    names.collect::<Vec<_>>().join(", ")
}

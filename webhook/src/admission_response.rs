//! The admission review as it is answered.

use crate::metrics::RuleHits;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use lockkeeper_policies::defaulting::Defaults;
use lockkeeper_policies::engine::{Exempted, Verdict};
use lockkeeper_policies::finding::Finding;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

/// The longest warning, in characters. Kubernetes asks for at most 120.
pub(crate) const WARNING_LENGTH_MAX: usize = 120;

/// The most warnings in one answer. The API server drops what is past 4,096 characters in all.
pub(crate) const WARNINGS_MAX: usize = 30;

/// The longest audit annotation, in characters.
const ANNOTATION_LENGTH_MAX: usize = 1024;

/// Room for what every answer has, in bytes.
const ENVELOPE_CAPACITY_BYTES: usize = 512;

/// The object that is judged, as messages name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectIdentity<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

/// What is answered to one request.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionResponse {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<String, String>,
    #[serde(skip)]
    hits: RuleHits,
}

/// Why a request is refused: Kubernetes' `Status`.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    #[serde(rename = "status")]
    outcome: &'static str,
    message: String,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    code: u16,
}

#[derive(Debug, Serialize)]
struct Details {
    name: String,
    group: String,
    kind: String,
    causes: Vec<Cause>,
}

#[derive(Debug, Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

impl AdmissionResponse {
    /// Accepts.
    pub(crate) fn allow(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            allowed: true,
            ..Self::default()
        }
    }

    /// Refuses a request that makes no sense: 400.
    pub(crate) fn bad_request(uid: &str, message: String) -> Self {
        Self {
            uid: uid.to_owned(),
            status: Some(Status {
                outcome: "Failure",
                message,
                reason: "BadRequest",
                details: None,
                code: 400,
            }),
            ..Self::default()
        }
    }

    /// Accepts or refuses by the verdict.
    pub(crate) fn from_verdict(uid: &str, object: ObjectIdentity<'_>, verdict: &Verdict) -> Self {
        let mut answer = Self::allow(uid);
        answer.hits = RuleHits::from_verdict(verdict);
        for warning in &verdict.warnings {
            // The id goes first: the end may be cut off.
            answer.warn(format!("{} {}", warning.rule, warning.text()));
        }
        for (rule, text) in messages_by_rule(&verdict.audits) {
            answer.annotate(rule, &text);
        }
        for (rule, text) in exception_annotations(&verdict.exempted) {
            answer.annotate(&format!("{rule}.excused"), &text);
        }
        if !verdict.allowed() {
            answer.allowed = false;
            answer.status = Some(invalid_status(object, &verdict.denials, verdict.omitted));
            let rules: BTreeSet<&str> = verdict.denials.iter().map(|it| &*it.rule).collect();
            let rules: Vec<&str> = rules.into_iter().collect();
            answer.annotate("denied-by", &rules.join(","));
        }
        answer
    }

    /// Adds a warning for the client, cut at [`WARNING_LENGTH_MAX`].
    pub(crate) fn warn(&mut self, text: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(truncate(text, WARNING_LENGTH_MAX));
        }
    }

    /// Adds an annotation for the audit log. The API server puts the webhook's name before the key.
    fn annotate(&mut self, key: &str, text: &str) {
        let text = truncate(text.to_owned(), ANNOTATION_LENGTH_MAX);
        self.audit_annotations.insert(key.to_owned(), text);
    }

    /// Adds what is filled in, as a JSON patch. An empty one is left out.
    pub(crate) fn set_patch(&mut self, defaults: &Defaults) -> Result<(), serde_json::Error> {
        if defaults.items().is_empty() {
            return Ok(());
        }
        let operations: Vec<PatchOperation<'_>> = defaults
            .items()
            .iter()
            .map(|filled| PatchOperation {
                op: "add",
                path: &filled.pointer,
                value: &filled.value,
            })
            .collect();
        self.patch = Some(BASE64_STANDARD.encode(serde_json::to_vec(&operations)?));
        self.patch_type = Some("JSONPatch");
        let fields: Vec<String> = defaults
            .items()
            .iter()
            .map(|f| f.field.to_string())
            .collect();
        self.annotate("defaulted", &fields.join(","));
        Ok(())
    }

    /// Whether the request is accepted.
    pub(crate) fn allowed(&self) -> bool {
        self.allowed
    }

    /// Whether the client is told of something.
    pub(crate) fn has_warnings(&self) -> bool {
        !self.warnings.is_empty()
    }

    /// Whether the request itself made no sense.
    pub(crate) fn is_bad_request(&self) -> bool {
        self.status
            .as_ref()
            .is_some_and(|status| status.code == 400)
    }

    /// The rules that found something.
    pub(crate) fn hits(&self) -> &RuleHits {
        &self.hits
    }

    /// The ids of the rules for which it is refused, with commas; empty when accepted.
    pub(crate) fn denied_by(&self) -> &str {
        self.audit_annotations
            .get("denied-by")
            .map_or("", String::as_str)
    }

    /// Room for the answer, in bytes, so that it is not moved while it is written: the status says
    /// everything twice, the second time with some words around each cause.
    fn estimated_length(&self) -> usize {
        let status = self
            .status
            .as_ref()
            .map_or(0, |status| status.message.len());
        let patch = self.patch.as_ref().map_or(0, String::len);
        let texts = status.saturating_mul(5).checked_div(2).unwrap_or_default();
        texts
            .saturating_add(patch)
            .saturating_add(ENVELOPE_CAPACITY_BYTES)
    }

    /// The whole `AdmissionReview` as JSON, on a line of its own for those who read it by eye.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = Vec::with_capacity(self.estimated_length());
        let answered = AdmissionReviewResponse {
            kind: "AdmissionReview",
            api_version: crate::admission_review::API_VERSION,
            response: self,
        };
        serde_json::to_writer(&mut line, &answered)?;
        line.push(b'\n');
        Ok(line)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReviewResponse<'a> {
    kind: &'static str,
    api_version: &'static str,
    response: &'a AdmissionResponse,
}

/// One operation of a JSON patch (RFC 6902).
#[derive(Serialize)]
struct PatchOperation<'a> {
    op: &'static str,
    path: &'a str,
    value: &'a serde_json::Value,
}

/// The status for an object that is refused. kubectl prints the causes when one file is applied and
/// the message when there are several, so both say everything.
fn invalid_status(object: ObjectIdentity<'_>, denials: &[Finding], omitted: usize) -> Status {
    let kind = match object.group {
        "" => object.kind.to_owned(),
        group => format!("{}.{group}", object.kind),
    };
    let mut causes: Vec<Cause> = denials.iter().map(cause).collect();
    if omitted > 0 {
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("and at least {omitted} more, not shown"),
            field: "<nil>".to_owned(),
        });
    }
    let mut message = format!("{kind} {:?} is invalid: ", object.name);
    // Writing to a string does not fail.
    let _ = match causes.as_slice() {
        [only] => write!(message, "{}: {}", only.field, only.message),
        several => write_causes(&mut message, several, denials.len(), omitted),
    };
    Status {
        outcome: "Failure",
        message,
        reason: "Invalid",
        details: Some(Details {
            name: object.name.to_owned(),
            group: object.group.to_owned(),
            kind: object.kind.to_owned(),
            causes,
        }),
        code: 422,
    }
}

/// All causes, one a line, as kubectl prints them.
fn write_causes(out: &mut String, causes: &[Cause], shown: usize, omitted: usize) -> fmt::Result {
    let count = shown.saturating_add(omitted);
    let bound = if omitted > 0 { "at least " } else { "" };
    write!(out, "{bound}{count} problems:")?;
    for cause in causes {
        out.push_str("\n* ");
        if cause.field != "<nil>" {
            out.push_str(&cause.field);
            out.push_str(": ");
        }
        out.push_str(&cause.message);
    }
    Ok(())
}

fn cause(finding: &Finding) -> Cause {
    Cause {
        reason: finding.kind.reason(),
        message: finding.message(),
        field: finding.field.text(),
    }
}

fn messages_by_rule(findings: &[Finding]) -> BTreeMap<&str, String> {
    let mut out: BTreeMap<&str, String> = BTreeMap::new();
    for finding in findings {
        let text = out.entry(&finding.rule).or_default();
        if !text.is_empty() {
            text.push_str("; ");
        }
        let _ = write!(text, "{finding}");
    }
    out
}

/// What is let pass, by rule: why and until when first, because the end may be cut off.
fn exception_annotations(all: &[Exempted]) -> BTreeMap<&str, String> {
    let mut out: BTreeMap<&str, String> = BTreeMap::new();
    for Exempted { finding, exception } in all {
        let text = out.entry(&finding.rule).or_default();
        let given = &exception.config;
        if text.is_empty() {
            let (name, until) = (&exception.name, &given.expires);
            let _ = write!(text, "exception {name} until {until} ({}): ", given.reason);
        } else {
            text.push_str("; ");
        }
        let _ = write!(text, "{finding}");
    }
    out
}

/// Cuts a text at a number of characters; the cut shows.
pub(crate) fn truncate(mut text: String, most: usize) -> String {
    if text.chars().nth(most).is_some() {
        let end = text
            .char_indices()
            .nth(most.saturating_sub(1))
            .map_or(0, |(end, _)| end);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_truncated_with_ellipsis() {
        assert_eq!(truncate("ä".repeat(120), 120), "ä".repeat(120));
        let long = truncate("ä".repeat(121), 120);
        assert_eq!(long.chars().count(), 120);
        assert!(long.ends_with('…'));
    }
}

//! The admission response that the API server gets.

use crate::json_text::JsonText;
use crate::object_identity::ObjectIdentity;
use crate::rule_hits::RuleHits;
use crate::status::Status;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use json_patch::jsonptr::{self, PointerBuf};
use json_patch::{AddOperation, Patch, PatchOperation};
use lockkeeper_policies::defaulting::Defaults;
use lockkeeper_policies::engine::{Exempted, Verdict};
use lockkeeper_policies::finding::Finding;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The longest warning, in characters: Kubernetes recommends at most 120.
pub(crate) const WARNING_LENGTH_MAX: usize = 120;

/// Capacity for a warning before it is shortened, in bytes.
const WARNING_CAPACITY_BYTES: usize = 256;

/// The most warnings in one response. The API server drops warnings after 4,096 characters in total.
pub(crate) const WARNINGS_MAX: usize = 30;

/// The longest audit annotation, in characters.
const ANNOTATION_LENGTH_MAX: usize = 1024;

/// Capacity for an annotation, in bytes: one finding may follow a text that is nearly too long.
const ANNOTATION_CAPACITY_BYTES: usize = 1280;

/// Capacity for the key, the quotes and the escapes of a text, in bytes.
const TEXT_OVERHEAD_BYTES: usize = 64;

/// Capacity for the fields of every response, in bytes.
const ENVELOPE_CAPACITY_BYTES: usize = 512;

/// The response to one request.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionResponse {
    uid: String,
    allowed: bool,
    /// Encoded apart.
    #[serde(skip)]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    /// Encoded apart.
    #[serde(skip)]
    warnings: Vec<String>,
    /// Encoded apart.
    #[serde(skip)]
    audit_annotations: BTreeMap<String, String>,
    #[serde(skip)]
    hits: RuleHits,
}

/// The text of a warning. If it is too long, the value is left out; if that is not enough, the advice, which is the end
/// of the detail, comes first: the end is truncated.
fn warning_text(warning: &Finding) -> String {
    let fits = |text: &str| !is_longer(text, WARNING_LENGTH_MAX);
    let Finding {
        rule,
        field,
        detail,
        ..
    } = warning;
    let mut whole = String::with_capacity(WARNING_CAPACITY_BYTES);
    whole.push_str(rule);
    whole.push(' ');
    warning.push_text_to(&mut whole);
    if fits(&whole) {
        return whole;
    }
    let without_value = format!("{rule} {field}: {detail}");
    if fits(&without_value) {
        return without_value;
    }
    match detail.rsplit_once("; ") {
        Some((violation, advice)) => format!("{rule} {advice} ({field}: {violation})"),
        None => format!("{rule} {detail} ({field})"),
    }
}

impl AdmissionResponse {
    /// Allows the request.
    pub(crate) fn allow(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            allowed: true,
            ..Self::default()
        }
    }

    /// Rejects an invalid request: 400.
    pub(crate) fn bad_request(uid: &str, message: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            status: Some(Status::bad_request(message)),
            ..Self::default()
        }
    }

    /// Allows or rejects the request by the verdict.
    pub(crate) fn from_verdict(uid: &str, object: ObjectIdentity<'_>, verdict: &Verdict) -> Self {
        let mut response = Self::allow(uid);
        response.hits = RuleHits::from_verdict(verdict);
        for warning in &verdict.warnings {
            response.warn(warning_text(warning));
        }
        for (rule, text) in messages_by_rule(&verdict.audits) {
            response.annotate(rule, text);
        }
        for (rule, text) in exception_annotations(&verdict.exempted) {
            response.annotate(&format!("{rule}.exempted"), text);
        }
        if !verdict.allowed() {
            response.allowed = false;
            response.status = Some(Status::invalid(object, &verdict.denials, verdict.omitted));
            // Each rule once and in a stable order.
            let rules: BTreeSet<&str> =
                verdict.denials.iter().map(|denial| &*denial.rule).collect();
            let rules: Vec<&str> = rules.into_iter().collect();
            response.annotate("denied-by", rules.join(","));
        }
        response
    }

    /// Adds a warning for the client, truncated at [`WARNING_LENGTH_MAX`].
    pub(crate) fn warn(&mut self, text: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(truncate(text, WARNING_LENGTH_MAX));
        }
    }

    /// Adds an annotation for the audit log. The API server prefixes the key with the webhook's name.
    fn annotate(&mut self, key: &str, text: String) {
        let text = truncate(text, ANNOTATION_LENGTH_MAX);
        self.audit_annotations.insert(key.to_owned(), text);
    }

    /// Adds the defaults as a JSON patch (RFC 6902). Without defaults there is no patch.
    pub(crate) fn set_patch(&mut self, defaults: Defaults) -> Result<(), PatchError> {
        if defaults.items().is_empty() {
            return Ok(());
        }
        let fields: Vec<String> = defaults
            .items()
            .iter()
            .map(|item| item.field.to_string())
            .collect();
        let operations = defaults.into_items().into_iter().map(|item| {
            let operation = AddOperation {
                path: PointerBuf::parse(item.pointer)?,
                value: item.value,
            };
            Ok(PatchOperation::Add(operation))
        });
        let patch = Patch(operations.collect::<Result<_, PatchError>>()?);
        self.patch = Some(BASE64_STANDARD.encode(serde_json::to_vec(&patch)?));
        self.patch_type = Some("JSONPatch");
        self.annotate("defaulted", fields.join(","));
        Ok(())
    }

    /// Returns true if the request is allowed.
    pub(crate) fn allowed(&self) -> bool {
        self.allowed
    }

    /// Returns true if there are warnings for the client.
    pub(crate) fn has_warnings(&self) -> bool {
        !self.warnings.is_empty()
    }

    /// Returns true if the request itself is invalid.
    pub(crate) fn is_bad_request(&self) -> bool {
        self.status.as_ref().is_some_and(Status::is_bad_request)
    }

    /// Returns the rules with findings.
    pub(crate) fn hits(&self) -> &RuleHits {
        &self.hits
    }

    /// Returns the ids of the rejecting rules, separated by commas; empty if the request is allowed.
    pub(crate) fn denied_by(&self) -> &str {
        self.audit_annotations
            .get("denied-by")
            .map_or("", String::as_str)
    }

    /// Estimates the length of the encoded response, in bytes, to allocate once.
    fn estimated_length(&self) -> usize {
        let status = self.status.as_ref().map_or(0, Status::estimated_length);
        let patch = self.patch.as_ref().map_or(0, String::len);
        let warnings = self.warnings.iter().map(String::len);
        let annotations = self.audit_annotations.values().map(String::len);
        let texts = warnings
            .chain(annotations)
            .map(|it| it.saturating_add(TEXT_OVERHEAD_BYTES));
        let fixed = ENVELOPE_CAPACITY_BYTES
            .saturating_add(status)
            .saturating_add(patch);
        texts.fold(fixed, usize::saturating_add)
    }

    /// Encodes the `AdmissionReview` as one line of JSON.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = Vec::with_capacity(self.estimated_length());
        let review = AdmissionReviewResponse {
            kind: "AdmissionReview",
            api_version: crate::admission_review::API_VERSION,
            response: self,
        };
        serde_json::to_writer(&mut line, &review)?;
        // The other fields follow. The line ends in the braces of the response and the review.
        line.truncate(line.len().saturating_sub(2));
        self.write_texts(&mut line);
        if let Some(status) = &self.status {
            line.extend_from_slice(br#","status":"#);
            status.write(&mut line);
        }
        line.extend_from_slice(b"}}");
        line.push(b'\n');
        Ok(line)
    }
}

impl AdmissionResponse {
    /// Appends the warnings and the annotations, if there are any. [`JsonText`] escapes them faster than `serde_json`.
    fn write_texts(&self, line: &mut Vec<u8>) {
        let mut separator: &[u8] = br#","warnings":["#;
        for warning in &self.warnings {
            line.extend_from_slice(separator);
            JsonText::new(warning).append_to(line);
            separator = b",";
        }
        if !self.warnings.is_empty() {
            line.push(b']');
        }
        separator = br#","auditAnnotations":{"#;
        for (key, text) in &self.audit_annotations {
            line.extend_from_slice(separator);
            JsonText::new(key).append_to(line);
            line.push(b':');
            JsonText::new(text).append_to(line);
            separator = b",";
        }
        if !self.audit_annotations.is_empty() {
            line.push(b'}');
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReviewResponse<'a> {
    kind: &'static str,
    api_version: &'static str,
    response: &'a AdmissionResponse,
}

/// Why there is no patch for the defaults.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatchError {
    /// A path of a default is no JSON pointer.
    #[error(transparent)]
    Pointer(#[from] jsonptr::Report<jsonptr::ParseError>),
    /// A default cannot be encoded as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

fn messages_by_rule(findings: &[Finding]) -> BTreeMap<&str, String> {
    let mut out = BTreeMap::new();
    for findings in findings.chunk_by(|a, b| a.rule == b.rule) {
        let mut text = String::with_capacity(ANNOTATION_CAPACITY_BYTES);
        for finding in findings {
            if !text.is_empty() {
                text.push_str("; ");
            }
            finding.push_to(&mut text);
            // A longer text is truncated.
            if is_longer(&text, ANNOTATION_LENGTH_MAX) {
                break;
            }
        }
        if let Some(first) = findings.first() {
            out.insert(&*first.rule, text);
        }
    }
    out
}

/// Returns the exempted findings by rule.
fn exception_annotations(all: &[Exempted]) -> BTreeMap<&str, String> {
    let mut out: BTreeMap<&str, String> = BTreeMap::new();
    for Exempted { finding, exception } in all {
        let text = out.entry(&finding.rule).or_default();
        let config = &exception.config;
        if text.is_empty() {
            // Reason and expiry come first, because the end may be truncated.
            let (name, until) = (&exception.name, &config.expires);
            let _ = write!(text, "exception {name} until {until} ({}): ", config.reason);
        } else {
            text.push_str("; ");
        }
        finding.push_to(text);
    }
    out
}

/// Whether a text has more characters than this.
fn is_longer(text: &str, length_max: usize) -> bool {
    // A text has at least as many bytes as characters.
    text.len() > length_max && (text.is_ascii() || text.chars().nth(length_max).is_some())
}

/// Truncates a text to a number of characters, with an ellipsis at the end.
pub(crate) fn truncate(mut text: String, length_max: usize) -> String {
    if is_longer(&text, length_max) {
        let last = length_max.saturating_sub(1);
        let end = if text.is_ascii() {
            last
        } else {
            text.char_indices().nth(last).map_or(0, |(end, _)| end)
        };
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockkeeper_api::field_path::FieldPath;
    use lockkeeper_policies::finding::ErrorKind;

    #[test]
    fn advice_of_long_warning_is_not_truncated() {
        let warning = |violation: &str| Finding {
            rule: "LA001".into(),
            field: FieldPath::new("metadata.labels").key("lockkeeper.dev/queue_name"),
            kind: ErrorKind::Invalid,
            value: Some("\"a\"".to_owned()),
            detail: format!("{violation}; use lockkeeper.dev/queue-name").into(),
        };
        let field = "metadata.labels[lockkeeper.dev/queue_name]";
        let advice = "use lockkeeper.dev/queue-name";
        for (violation, expected) in [
            (
                "is wrong",
                format!("LA001 {field}: Invalid value: \"a\": is wrong; {advice}"),
            ),
            (
                "is under no known key",
                format!("LA001 {field}: is under no known key; {advice}"),
            ),
            (
                &"long ".repeat(40),
                format!("LA001 {advice} ({field}: long long"),
            ),
        ] {
            let text = warning_text(&warning(violation));
            assert!(text.starts_with(&expected), "{text}");
            let shown = truncate(text, WARNING_LENGTH_MAX);
            assert!(shown.contains(advice), "{shown}");
        }
    }

    #[test]
    fn long_text_is_truncated_with_ellipsis() {
        assert_eq!(truncate("ä".repeat(120), 120), "ä".repeat(120));
        let long = truncate("ä".repeat(121), 120);
        assert_eq!(long.chars().count(), 120);
        assert!(long.ends_with('…'));
    }
}

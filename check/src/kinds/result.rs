//! The findings about an object.

use super::cel_counterparts::{has_counterpart, is_expression};
use crate::severity::Severity;
use lockkeeper_policies::decode_error;
use lockkeeper_policies::engine::{Exempted, Verdict};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::schema::{EXPRESSION, METADATA, SCHEMA_VIOLATION, UNKNOWN};

pub type Findings = Vec<(Severity, Finding)>;

/// The findings about an object, by its kind.
#[derive(Default)]
pub struct KindCheckResult {
    pub findings: Findings,
    /// The findings that exceptions cover.
    pub exempted: Vec<Exempted>,
    /// Whether all rules have run. An object that does not match its schema is not checked by rules.
    pub is_complete: bool,
}

impl KindCheckResult {
    /// The result when not all rules have run.
    pub fn partial(findings: Findings) -> Self {
        Self {
            findings,
            ..Self::default()
        }
    }

    /// The result for a patch, which need not be a whole object: only unknown fields and wrong types hold.
    pub fn of_patch(mut self) -> Self {
        self.findings
            .retain(|(_, it)| matches!(&*it.rule, decode_error::ID | UNKNOWN));
        Self::partial(self.findings)
    }

    /// Whether the object has the types of its kind.
    pub fn is_decodable(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.all(|(_, it)| it.rule != decode_error::ID)
    }

    /// The findings about unknown fields.
    pub fn into_unknown_fields(mut self) -> Findings {
        self.findings.retain(|(_, it)| it.rule == UNKNOWN);
        self.findings
    }

    /// Whether no schema or decoder rejects the object.
    pub fn is_valid(&self) -> bool {
        let by_schema = [
            decode_error::ID,
            SCHEMA_VIOLATION,
            EXPRESSION,
            METADATA,
            UNKNOWN,
        ];
        let mut errors = self.findings.iter().filter(|it| it.0 == Severity::Error);
        !errors.any(|(_, it)| by_schema.contains(&&*it.rule))
    }

    /// Whether there are only warnings.
    pub fn has_no_error(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.all(|(severity, _)| *severity == Severity::Warning)
    }

    pub fn add_verdict(&mut self, verdict: Verdict) {
        let denials = verdict.denials.into_iter();
        let warnings = verdict.warnings.into_iter();
        self.findings
            .extend(denials.map(|it| (Severity::Error, it)));
        self.findings
            .extend(warnings.map(|it| (Severity::Warning, it)));
        self.exempted.extend(verdict.exempted);
    }
}

/// Whether rules can run in spite of a finding: the API server drops unknown fields.
pub fn is_harmless((severity, finding): &(Severity, Finding)) -> bool {
    *severity == Severity::Warning || finding.rule == UNKNOWN
}

/// Whether a rule reports what a finding of a schema or of a decoder is about: a rule explains its field better.
pub fn is_reported(finding: &Finding, verdict: &Verdict) -> bool {
    if is_expression(finding) {
        return has_counterpart(finding, verdict);
    }
    let field = finding.field.pointer();
    let mut denials = verdict.denials.iter();
    denials.any(|it| it.field.pointer() == field)
}

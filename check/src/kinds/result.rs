use crate::severity::Severity;
use lockkeeper_policies::engine::{Exempted, Verdict};
use lockkeeper_policies::finding::Finding;

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

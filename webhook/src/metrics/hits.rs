//! Which rules found something.

use super::labels::HitAction;
use lockkeeper_policies::engine::Verdict;

/// The rules that found something, and what was done about it, each pair once.
#[derive(Debug, Default)]
pub(crate) struct Hits(Vec<(&'static str, HitAction)>);

impl Hits {
    /// Those of a verdict. Without findings nothing is allocated.
    pub(crate) fn of(verdict: &Verdict) -> Self {
        let by_action = [
            (HitAction::Enforce, &verdict.denials),
            (HitAction::Warn, &verdict.warnings),
            (HitAction::Audit, &verdict.audits),
        ];
        let mut out = Vec::new();
        for (action, findings) in by_action {
            out.extend(findings.iter().map(|finding| (finding.rule, action)));
        }
        // The findings of one rule stand together.
        out.dedup();
        Self(out)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, HitAction)> {
        self.0.iter().copied()
    }
}

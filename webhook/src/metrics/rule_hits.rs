//! Which rules found something.

use super::labels::HitAction;
use lockkeeper_policies::engine::Verdict;
use lockkeeper_policies::exceptions::Exception;
use std::borrow::Cow;
use std::sync::Arc;

/// The rules that found something, and what was done about it, each pair once; and the exceptions that were
/// used.
#[derive(Debug, Default)]
pub(crate) struct RuleHits {
    rules: Vec<(Cow<'static, str>, HitAction)>,
    exceptions: Vec<Arc<Exception>>,
}

impl RuleHits {
    /// Those of a verdict. Without findings nothing is allocated.
    pub(crate) fn from_verdict(verdict: &Verdict) -> Self {
        let by_action = [
            (HitAction::Enforce, &verdict.denials),
            (HitAction::Warn, &verdict.warnings),
            (HitAction::Audit, &verdict.audits),
        ];
        let mut rules = Vec::new();
        for (action, findings) in by_action {
            let of = |finding: &Cow<'static, str>| (finding.clone(), action);
            rules.extend(findings.iter().map(|finding| of(&finding.rule)));
        }
        let mut exceptions: Vec<Arc<Exception>> = Vec::new();
        for excused in &verdict.exempted {
            rules.push((excused.finding.rule.clone(), HitAction::Exempt));
            if !exceptions
                .iter()
                .any(|it| Arc::ptr_eq(it, &excused.exception))
            {
                exceptions.push(Arc::clone(&excused.exception));
            }
        }
        // The findings of one rule stand together.
        rules.dedup();
        Self { rules, exceptions }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Cow<'static, str>, HitAction)> {
        self.rules.iter().map(|(rule, action)| (rule, *action))
    }

    pub(crate) fn exceptions(&self) -> impl Iterator<Item = &Exception> {
        self.exceptions.iter().map(Arc::as_ref)
    }
}

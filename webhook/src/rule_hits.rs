//! The rules with findings in a review, for metrics and traces.

use crate::metric_labels::HitAction;
use lockkeeper_policies::engine::Verdict;
use lockkeeper_policies::exceptions::Exception;
use std::borrow::Cow;
use std::sync::Arc;

/// The rules with findings and their actions, each pair once, and the exceptions that applied.
#[derive(Debug, Default)]
pub(crate) struct RuleHits {
    rules: Vec<(Cow<'static, str>, HitAction)>,
    exceptions: Vec<Arc<Exception>>,
}

impl RuleHits {
    /// Collects the hits of a verdict. Allocates nothing if there are no findings.
    pub(crate) fn from_verdict(verdict: &Verdict) -> Self {
        let by_action = [
            (HitAction::Enforce, &verdict.denials),
            (HitAction::Warn, &verdict.warnings),
            (HitAction::Audit, &verdict.audits),
        ];
        let mut rules = Vec::new();
        for (action, findings) in by_action {
            let hits = findings.iter();
            rules.extend(hits.map(|finding| (finding.rule.clone(), action)));
        }
        let mut exceptions: Vec<Arc<Exception>> = Vec::new();
        for exempted in &verdict.exempted {
            rules.push((exempted.finding.rule.clone(), HitAction::Exempt));
            if !exceptions
                .iter()
                .any(|it| Arc::ptr_eq(it, &exempted.exception))
            {
                exceptions.push(Arc::clone(&exempted.exception));
            }
        }
        // The findings of a rule are adjacent.
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

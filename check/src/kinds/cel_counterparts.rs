//! CEL rules of Kueue's schemas that a rule reports more exactly.

use lockkeeper_policies::engine::Verdict;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::schema::EXPRESSION;

/// The message of a CEL rule, and the rule that reports the same breach with the exact field, value and fix. Other rules do
/// not run on Kueue's kinds where its schema has an expression.
const COUNTERPARTS: [(&str, &str); 3] = [
    (
        "flavors must have the same number of resources as the coveredResources",
        "CQ004",
    ),
    ("borrowingLimit must be nil when cohort is empty", "CQ002"),
    (
        "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor",
        "CQ012",
    ),
];

/// Whether a finding is about an expression of a schema. Rules can run on an object with such findings only.
pub fn is_expression(finding: &Finding) -> bool {
    finding.rule == EXPRESSION
}

/// Whether a rule reports the breach of this expression, at its field or below.
pub fn has_counterpart(finding: &Finding, verdict: &Verdict) -> bool {
    let counterpart = COUNTERPARTS
        .iter()
        .find(|(message, _)| finding.detail.contains(message));
    let Some((_, rule)) = counterpart.filter(|_| is_expression(finding)) else {
        return false;
    };
    let above = finding.field.pointer();
    let mut findings = verdict.denials.iter().chain(&verdict.warnings);
    findings.any(|it| it.rule == *rule && it.field.pointer().starts_with(&above))
}

#[cfg(test)]
mod tests {
    use super::COUNTERPARTS;
    use lockkeeper_policies::registry;

    #[test]
    fn cel_counterparts_name_existing_rules() {
        for (message, rule) in COUNTERPARTS {
            assert!(registry::find(rule).is_some(), "{message}: {rule}");
        }
    }
}

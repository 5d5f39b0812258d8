//! The cost of an object with very many violations: a bounded number of findings, and work that is linear in its size.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests fail by panicking")]

use lockkeeper_api::ClusterQueue;
use lockkeeper_policies::engine::{FINDINGS_MAX, ReviewSubject, Verdict, review};
use lockkeeper_policies::finding::FINDINGS_PER_RULE_MAX;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::rule::{Change, Context};
use lockkeeper_policies::settings::Settings;
use serde_json::{Value, json};

/// More than the limit of one rule.
const FAULTS: usize = 3 * FINDINGS_PER_RULE_MAX;

fn queue(spec: &Value) -> ClusterQueue {
    serde_json::from_value(json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue",
        "metadata": {"name": "q"}, "spec": spec,
    }))
    .unwrap()
}

fn review_queue(subject: &ReviewSubject<'_, ClusterQueue>) -> Verdict {
    let (index, settings) = (Index::default(), Settings::default());
    let context = Context {
        cluster: &index,
        settings: &settings,
    };
    review(subject, &context)
}

#[track_caller]
fn check(spec: &Value) {
    let bad = queue(spec);
    let verdict = review_queue(&ReviewSubject::Create(&bad));
    assert_eq!(verdict.denials.len(), FINDINGS_MAX);
    assert!(verdict.omitted >= FINDINGS_PER_RULE_MAX - FINDINGS_MAX);
    assert!(verdict.omitted <= 8 * FINDINGS_PER_RULE_MAX);
    for finding in &verdict.denials {
        assert!(finding.to_string().len() < 1_000, "{finding}");
    }
    // An object from before the rules may still be changed otherwise.
    let mut touched = bad.clone();
    touched.metadata.finalizers = Some(Vec::new());
    let update = ReviewSubject::Update(Change {
        old: &bad,
        new: &touched,
    });
    assert_eq!(review_queue(&update), Verdict::default());
}

#[test]
fn findings_for_repeated_resource_are_bounded() {
    let covered = vec!["cpu"; FAULTS];
    check(&json!({"resourceGroups": [{"coveredResources": covered, "flavors": []}]}));
}

#[test]
fn findings_for_negative_quotas_are_bounded() {
    let quota = json!({"name": "cpu", "nominalQuota": "-1", "lendingLimit": "5"});
    let flavor = json!({"name": "f", "resources": vec![quota; FAULTS]});
    check(&json!({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}));
}

#[test]
fn findings_for_many_flavors_are_bounded() {
    let covered: Vec<String> = (0..FAULTS).map(|n| format!("r{n}")).collect();
    let flavors = vec![json!({"name": "f", "resources": []}); FAULTS];
    check(&json!({"resourceGroups": [{"coveredResources": covered, "flavors": flavors}]}));
}

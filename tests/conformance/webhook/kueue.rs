//! Kueue's kinds (`kueue-*`): the webhook function alone, or the whole pipeline.

mod pipeline;

use crate::compare::{difference, evaluate, expected_lines, finding_lines, settings};
use lockkeeper_api::foreign::kueue;
use lockkeeper_policies::engine::Verdict;
use lockkeeper_policies::index::Index;
use serde_json::Value;

/// The differences of a case.
pub fn check(case: &Value) -> Vec<String> {
    if case.get("outcome").is_some() {
        return pipeline::check(case);
    }
    match evaluate_case(case) {
        Ok(verdict) => difference(
            &finding_lines(&verdict.denials),
            &expected_lines(&case["expectedErrors"]),
        ),
        Err(error) => vec![format!("cannot be decoded: {error}")],
    }
}

/// The expected result of Kueue's webhook function.
fn evaluate_case(case: &Value) -> Result<Verdict, serde_json::Error> {
    let settings = settings(case, &[kueue::GROUP]);
    let index = Index::default();
    match case["kind"].as_str().unwrap() {
        "ClusterQueue" => evaluate::<kueue::ClusterQueue>(case, &settings, &index),
        "Cohort" => evaluate::<kueue::Cohort>(case, &settings, &index),
        "ResourceFlavor" => evaluate::<kueue::ResourceFlavor>(case, &settings, &index),
        "Workload" => evaluate::<kueue::Workload>(case, &settings, &index),
        // Kueue has no webhook for these kinds.
        "LocalQueue" | "WorkloadPriorityClass" => Ok(Verdict::default()),
        other => panic!("unknown kind {other}"),
    }
}

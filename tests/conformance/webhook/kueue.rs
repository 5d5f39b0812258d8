//! Kueue's kinds (`kueue-*`): the webhook function alone, or the whole pipeline.

mod pipeline;

use crate::compare::{difference, expected, found, judge, settings};
use lockkeeper_api::foreign::kueue;
use lockkeeper_policies::engine::Verdict;
use lockkeeper_policies::index::Index;
use serde_json::Value;

/// What differs in a case.
pub fn check(case: &Value) -> Vec<String> {
    if case.get("outcome").is_some() {
        return pipeline::check(case);
    }
    match by_rules(case) {
        Ok(verdict) => difference(&found(&verdict.denials), &expected(&case["expectedErrors"])),
        Err(error) => vec![format!("cannot be read: {error}")],
    }
}

/// What Kueue's webhook would say.
fn by_rules(case: &Value) -> Result<Verdict, serde_json::Error> {
    let settings = settings(case, &[kueue::GROUP]);
    let world = Index::default();
    match case["kind"].as_str().unwrap() {
        "ClusterQueue" => judge::<kueue::ClusterQueue>(case, &settings, &world),
        "Cohort" => judge::<kueue::Cohort>(case, &settings, &world),
        "ResourceFlavor" => judge::<kueue::ResourceFlavor>(case, &settings, &world),
        "Workload" => judge::<kueue::Workload>(case, &settings, &world),
        // Kueue has no webhook for them.
        "LocalQueue" | "WorkloadPriorityClass" => Ok(Verdict::default()),
        other => panic!("a kind {other}"),
    }
}

//! Workloads that preempt each other without end.

use super::run;

fn queue(api_version: &str, name: &str, preemption: &str) -> String {
    format!(
        "apiVersion: {api_version}\nkind: ClusterQueue\nmetadata: {{name: {name}}}\nspec:\n  cohortName: all\n  \
         namespaceSelector: {{}}\n  preemption: {preemption}\n  resourceGroups:\n  - coveredResources: [cpu]\n    \
         flavors: [{{name: spot, resources: [{{name: cpu, nominalQuota: 4}}]}}]\n---\n"
    )
}

const KUEUE: &str = "kueue.x-k8s.io/v1beta2";

/// Two queues, one of which reclaims and borrows.
fn queues(api_version: &str, policy: &str) -> String {
    let eager =
        format!("{{reclaimWithinCohort: {policy}, borrowWithinCohort: {{policy: LowerPriority}}}}");
    let other = format!("{{reclaimWithinCohort: {policy}, withinClusterQueue: LowerPriority}}");
    let queues = [
        queue(api_version, "eager", &eager),
        queue(api_version, "other", &other),
    ];
    queues.concat()
}

#[test]
fn preemption_loop_is_reported_with_explanation() {
    let text = queues(KUEUE, "Any");
    let (output, code) = run(&[("queues.yaml", &text)], &["--select", "CQ024"]);
    insta::assert_snapshot!(output);
    assert_eq!(code, 0);
    let (json, _) = run(
        &[("queues.yaml", &text)],
        &["--select", "CQ024", "-o", "json"],
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let related = json["findings"][0]["related"].as_array().unwrap();
    assert!(related.len() > 3, "{json:#}");
    assert_eq!(related[0]["line"], json["findings"][0]["line"]);
    let (sarif, _) = run(
        &[("queues.yaml", &text)],
        &["--select", "CQ024", "-o", "sarif"],
    );
    assert!(sarif.contains("without end\""), "{sarif}");
}

#[test]
fn loop_search_uses_priorities_of_given_classes() {
    let class = |name: &str, rest: &str| {
        format!(
            "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\n{rest}\n"
        )
    };
    let system = class("system-node-critical", "value: 2000001000");
    let (middle, high) = (class("middle", "value: 5"), class("high", "value: 7"));
    for (classes, is_found, priority) in [
        (system.clone(), true, "priority 1"),
        ([&*system, &middle, &high].concat(), true, "priority 7"),
        (
            [&*system, &class("all", "value: 7\nglobalDefault: true")].concat(),
            false,
            "",
        ),
    ] {
        let text = queues(KUEUE, "Any") + &classes;
        let (output, _) = run(&[("queues.yaml", &text)], &["--select", "CQ024"]);
        assert_eq!(output.contains("[CQ024]"), is_found, "{output}");
        assert!(
            output.contains(priority) && !output.contains("2000001000"),
            "{output}"
        );
    }
}

#[test]
fn loop_search_damped_or_ambiguous_queues_finds_none() {
    // lockkeeper's own queues are damped.
    let own = queues("lockkeeper.dev/v1alpha1", "Any").replace("  namespaceSelector: {}\n", "");
    let (output, _) = run(&[("queues.yaml", &own)], &["--select", "CQ024"]);
    assert!(!output.contains("CQ024"), "{output}");
    // Two different queues with the same name are ambiguous.
    let text = queues(KUEUE, "Any");
    let twice = [text.as_str(), &queues(KUEUE, "LowerPriority")].concat();
    let (output, _) = run(&[("queues.yaml", &twice)], &["--select", "CQ024"]);
    assert!(!output.contains("CQ024"), "{output}");
}

#[test]
fn loop_search_depends_on_kueue_version() {
    let queue = |name: &str, quota: &str, preemption: &str| {
        queue(KUEUE, name, preemption).replace("nominalQuota: 4", &format!("nominalQuota: {quota}"))
    };
    // Issue 6947: Kueue ignored preemptors that wait for their victims.
    let ignores_in_flight = [
        queue("a", "3", "{reclaimWithinCohort: Any}"),
        queue("b", "0", "{}"),
    ]
    .concat();
    // Issue 3779: borrowWithinCohort under fair sharing.
    let policies = "{reclaimWithinCohort: LowerPriority, borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}}";
    let borrows = [
        queue("tenant-a", "150m", policies),
        queue("tenant-b", "150m", policies),
        queue("best-effort", "0", "{}"),
    ]
    .concat();
    let folder = tempfile::TempDir::new().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "preemption: {algorithm: FairSharing}\n").unwrap();
    let fair = ["--config", config.to_str().unwrap()];
    for (text, flags, version, is_found) in [
        (&ignores_in_flight, &[] as &[&str], "0.14.0", true),
        (&ignores_in_flight, &[], "0.14.1", false),
        (&borrows, &fair, "v0.10.2", true),
        (&borrows, &fair, "", false),
    ] {
        let mut flags = [flags, &["--select", "CQ024"]].concat();
        if !version.is_empty() {
            flags.extend(["--kueue-version", version]);
        }
        let (output, _) = run(&[("queues.yaml", text)], &flags);
        assert_eq!(output.contains("[CQ024]"), is_found, "{version}: {output}");
    }
}

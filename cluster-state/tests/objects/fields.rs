//! Single fields of the objects change decisions. `docs/fields.md` names the test of each field.

use crate::test_cluster::{Cluster, admitted, fields, pending};
use lockkeeper_preemption::{Decision, NextDecision, WhatIf};
use serde_json::json;
use std::collections::BTreeMap;

#[test]
fn flavor_fungibility_selects_flavor() {
    let with = |more: &str| {
        let mut cluster = Cluster::new();
        let more = format!(
            "cohortName: all, preemption: {{withinClusterQueue: LowerPriority}}, flavorFungibility: {{{more}}}"
        );
        cluster.set_queue("lender", &[("one", "nominalQuota: 2")], "cohortName: all");
        cluster.set_queue(
            "q",
            &[("one", "nominalQuota: 0"), ("f", "nominalQuota: 2")],
            &more,
        );
        cluster
    };
    for (field, expected) in [
        ("MayStopSearch", "w Admit one"),
        ("TryNextFlavor", "w Admit f"),
    ] {
        let mut cluster = with(&format!("whenCanBorrow: {field}"));
        cluster.add_pending("w", "q", 2, 5);
        assert_eq!(cluster.run_cycle(), [expected], "{field}");
    }
    for (field, expected) in [
        ("BorrowingOverPreemption", "w Admit one"),
        ("PreemptionOverBorrowing", "w Preempt low"),
    ] {
        let mut cluster = with(&format!(
            "whenCanBorrow: TryNextFlavor, preference: {field}"
        ));
        cluster.add_admitted("low", "q", 2, 1);
        cluster.add_pending("w", "q", 2, 5);
        assert_eq!(cluster.run_cycle(), [expected], "{field}");
    }
    for (field, expected) in [
        ("TryNextFlavor", "w Admit two"),
        ("MayStopSearch", "w Preempt low"),
    ] {
        let mut cluster = Cluster::new();
        cluster.set_queue(
            "q",
            &[("f", "nominalQuota: 2"), ("two", "nominalQuota: 2")],
            &format!(
                "preemption: {{withinClusterQueue: LowerPriority}}, flavorFungibility: {{whenCanPreempt: {field}}}"
            ),
        );
        cluster.add_admitted("low", "q", 2, 1);
        cluster.add_pending("w", "q", 2, 5);
        assert_eq!(cluster.run_cycle(), [expected], "{field}");
    }
}

#[test]
fn quota_of_queues_bounds_admission() {
    for (lender, own, expected) in [
        ("nominalQuota: 2", "nominalQuota: 1", "w Admit f"),
        ("nominalQuota: 1", "nominalQuota: 1", "w NoFit"),
        ("nominalQuota: 0", "nominalQuota: 3", "w Admit f"),
        (
            "nominalQuota: 2",
            "nominalQuota: 1, borrowingLimit: 1",
            "w NoFit",
        ),
        (
            "nominalQuota: 2, lendingLimit: 1",
            "nominalQuota: 1",
            "w NoFit",
        ),
    ] {
        let mut cluster = Cluster::new();
        cluster.set_queue("lender", &[("f", lender)], "cohortName: all");
        cluster.set_queue("q", &[("f", own)], "cohortName: all");
        cluster.add_pending("w", "q", 3, 0);
        assert_eq!(cluster.run_cycle(), [expected], "{lender}; {own}");
    }
    // Without a cohort a queue does not borrow.
    let mut cluster = Cluster::new();
    cluster.set_queue("lender", &[("f", "nominalQuota: 2")], "cohortName: all");
    cluster.set_queue("q", &[("f", "nominalQuota: 1")], "");
    cluster.add_pending("w", "q", 3, 0);
    assert_eq!(cluster.run_cycle(), ["w NoFit"]);
}

#[test]
fn quota_of_cohorts_bounds_admission() {
    for (top, inner, parent, expected) in [
        (
            "nominalQuota: 3",
            "nominalQuota: 0",
            "parentName: top",
            "w Admit f",
        ),
        ("nominalQuota: 3", "nominalQuota: 0", "", "w NoFit"),
        (
            "nominalQuota: 2",
            "nominalQuota: 0",
            "parentName: top",
            "w NoFit",
        ),
        ("nominalQuota: 0", "nominalQuota: 3", "", "w Admit f"),
        (
            "nominalQuota: 3",
            "nominalQuota: 0, borrowingLimit: 2",
            "parentName: top",
            "w NoFit",
        ),
    ] {
        let mut cluster = Cluster::new();
        cluster.set_cohort("top", &[("f", top)], "");
        cluster.set_cohort("inner", &[("f", inner)], parent);
        cluster.set_queue("q", &[("f", "nominalQuota: 0")], "cohortName: inner");
        cluster.add_pending("w", "q", 3, 0);
        assert_eq!(cluster.run_cycle(), [expected], "{top}; {inner}; {parent}");
    }
    for (lent, expected) in [
        ("nominalQuota: 3", "w Admit f"),
        ("nominalQuota: 3, lendingLimit: 2", "w NoFit"),
    ] {
        let mut cluster = Cluster::new();
        cluster.set_cohort("lender", &[("f", lent)], "parentName: top");
        cluster.set_queue("q", &[("f", "nominalQuota: 0")], "cohortName: top");
        cluster.add_pending("w", "q", 3, 0);
        assert_eq!(cluster.run_cycle(), [expected], "{lent}");
    }
}

#[test]
fn covered_resources_and_flavors_decide_on_fit() {
    let mut cluster = Cluster::new();
    cluster.set_queue("q", &[("f", "nominalQuota: 2")], "");
    cluster.add_pending("w", "q", 2, 0);
    assert_eq!(cluster.run_cycle(), ["w Admit f"]);
    let mut cluster = Cluster::new();
    let memory = "{coveredResources: [memory], flavors: [{name: f, resources: [{name: memory, nominalQuota: 2}]}]}";
    cluster.set_queue("q", &[], &format!("resourceGroups: [{memory}]"));
    cluster.add_pending("w", "q", 2, 0);
    assert_eq!(cluster.run_cycle(), ["w NoFit"]);
}

#[test]
fn namespace_selector_decides_on_admission() {
    let expression = |text: &str| format!("namespaceSelector: {{matchExpressions: [{{{text}}}]}}");
    for (more, is_admitted) in [
        ("namespaceSelector: {}".to_owned(), true),
        ("namespaceSelector: null".to_owned(), false),
        (
            "namespaceSelector: {matchLabels: {team: a}}".to_owned(),
            true,
        ),
        (
            "namespaceSelector: {matchLabels: {team: b}}".to_owned(),
            false,
        ),
        (expression("key: team, operator: In, values: [a, b]"), true),
        (expression("key: team, operator: In, values: [b]"), false),
        (expression("key: team, operator: NotIn, values: [a]"), false),
        (expression("key: tier, operator: Exists"), false),
        (expression("key: tier, operator: DoesNotExist"), true),
    ] {
        let mut cluster = Cluster::new();
        let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
        cluster.objects.set_namespace("ns", labels);
        cluster.set_queue("q", &[("f", "nominalQuota: 2")], &more);
        cluster.add_pending("w", "q", 2, 0);
        let decisions = cluster.run_cycle();
        assert_eq!(
            decisions == ["w Admit f"],
            is_admitted,
            "{more}: {decisions:?}"
        );
    }
}

#[test]
fn flavor_labels_taints_and_tolerations_decide_on_fit() {
    let taint = "nodeTaints: [{key: spot, value: 'yes', effect: NoSchedule}]";
    let tolerated = |text: &str| format!("{taint}, tolerations: [{{{text}}}]");
    for (spec, pod, is_admitted) in [
        (String::new(), "", true),
        (taint.to_owned(), "", false),
        (taint.replace("NoSchedule", "PreferNoSchedule"), "", true),
        (
            taint.to_owned(),
            "tolerations: [{key: spot, value: 'yes'}]",
            true,
        ),
        (
            taint.to_owned(),
            "tolerations: [{key: other, value: 'yes'}]",
            false,
        ),
        (
            taint.to_owned(),
            "tolerations: [{key: spot, value: 'no'}]",
            false,
        ),
        (tolerated("key: spot, operator: Exists"), "", true),
        (tolerated("key: other, operator: Exists"), "", false),
        (
            tolerated("key: spot, operator: Equal, value: 'yes'"),
            "",
            true,
        ),
        (
            tolerated("key: spot, operator: Equal, value: 'no'"),
            "",
            false,
        ),
        (
            tolerated("key: spot, operator: Exists, effect: NoExecute"),
            "",
            false,
        ),
        (
            "nodeLabels: {tier: a}".to_owned(),
            "nodeSelector: {tier: a}",
            true,
        ),
        (
            "nodeLabels: {tier: b}".to_owned(),
            "nodeSelector: {tier: a}",
            false,
        ),
    ] {
        let mut cluster = Cluster::new();
        cluster.set_flavor("f", &spec);
        cluster.set_queue("q", &[("f", "nominalQuota: 2")], "");
        let mut workload = pending("w", "q", 2, 0);
        for (key, value) in fields(pod).as_object().unwrap() {
            workload["spec"]["podSets"][0]["template"]["spec"][key] = value.clone();
        }
        cluster.set_workload(&workload);
        let expected = if is_admitted { "w Admit f" } else { "w NoFit" };
        assert_eq!(cluster.run_cycle(), [expected], "{spec}; {pod}");
    }
}

/// Values as Kueue compares them: whole numbers without a plus sign and without leading zeros.
#[test]
fn tolerations_compare_numbers() {
    for (taint, operator, tolerated, is_admitted) in [
        ("5", "Gt", "4", true),
        ("5", "Gt", "5", false),
        ("5", "Lt", "6", true),
        ("5", "Lt", "5", false),
        ("-5", "Lt", "0", true),
        ("05", "Gt", "4", false),
        ("5", "Gt", "+4", false),
        ("5", "Gt", "-0", false),
        ("high", "Gt", "4", false),
        ("9223372036854775807", "Gt", "9223372036854775806", true),
        ("9223372036854775808", "Gt", "0", false),
        ("5", "Ge", "5", false),
    ] {
        let mut cluster = Cluster::new();
        let spec = format!("nodeTaints: [{{key: sla, value: '{taint}', effect: NoSchedule}}]");
        cluster.set_flavor("f", &spec);
        cluster.set_queue("q", &[("f", "nominalQuota: 2")], "");
        let mut workload = pending("w", "q", 2, 0);
        workload["spec"]["podSets"][0]["template"]["spec"]["tolerations"] =
            json!([{"key": "sla", "operator": operator, "value": tolerated}]);
        cluster.set_workload(&workload);
        let expected = if is_admitted { "w Admit f" } else { "w NoFit" };
        assert_eq!(
            cluster.run_cycle(),
            [expected],
            "{taint} {operator} {tolerated}"
        );
    }
}

/// `run` ends at the 190th second at the latest; then `head` fits. Only workloads that end before may start now.
#[test]
fn backfill_decides_on_workloads_behind_the_head() {
    let limited = |name: &str, cpu: u32, seconds: i32| {
        let mut workload = pending(name, "q", cpu, 0);
        workload["spec"]["maximumExecutionTimeSeconds"] = seconds.into();
        workload
    };
    for (backfill, expected) in [
        ("policy: None", ["", "", ""]),
        ("policy: Easy", ["d-long-beside-head", "b-short", ""]),
        ("policy: Conservative", ["b-short", "", ""]),
        ("policy: Easy, maxWorkloads: 1", ["", "", ""]),
        ("policy: Easy, maxWorkloads: 2", ["b-short", "", ""]),
    ] {
        let mut cluster = Cluster::new();
        let more = format!("queueingStrategy: StrictFIFO, backfill: {{{backfill}}}");
        cluster.set_queue("q", &[("f", "nominalQuota: 10")], &more);
        let mut running = admitted(&limited("run", 6, 100), "q");
        let mut condition = running["status"]["conditions"][0].clone();
        condition["type"] = "Admitted".into();
        let conditions = running["status"]["conditions"].as_array_mut();
        conditions.unwrap().push(condition);
        cluster.set_workload(&running);
        cluster.set_workload(&limited("0-head", 8, 10));
        cluster.set_workload(&limited("a-long", 4, 100));
        cluster.set_workload(&limited("b-short", 2, 80));
        // The conservative policy plans it for the 200th second, after the head.
        cluster.set_workload(&limited("c-wide", 9, 10));
        // It leaves room for the head, and not for `c-wide`.
        cluster.set_workload(&limited("d-long-beside-head", 2, 300));
        let starts = |cluster: &mut Cluster, name: &str| {
            let state = cluster.objects.state_mut();
            let id = state.workload(&format!("ns/{name}")).unwrap();
            let next = WhatIf::new(state).next_decision(id, false);
            matches!(next, NextDecision::Decided(it) if it.decision == Decision::Admit)
        };
        let names = ["d-long-beside-head", "c-wide", "b-short", "a-long"];
        cluster.objects.set_now(cluster.now_ms + 1_000);
        let previewed = names.map(|name| starts(&mut cluster, name));
        let decisions = cluster.run_cycle();
        let mut admitted: Vec<&str> = decisions
            .iter()
            .filter_map(|it| it.strip_suffix(" Admit f"))
            .collect();
        admitted.sort_unstable_by(|a, b| b.cmp(a));
        let expected: Vec<&str> = expected.into_iter().filter(|it| !it.is_empty()).collect();
        assert_eq!(admitted, expected, "{backfill}");
        // A preview before the cycle says the same.
        let is_admitted = names.map(|name| expected.contains(&name));
        assert_eq!(previewed, is_admitted, "{backfill}");
    }
}

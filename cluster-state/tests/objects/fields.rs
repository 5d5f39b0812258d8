//! Single fields of the objects change decisions. `docs/fields.md` names the test of each field.

use crate::{lockkeeper_object, object, yaml};
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::{ClusterState, Completeness};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Algorithm, Decision, Entry, FairStrategy, Options};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Objects, and the time of the next cycle. Flavors that are not set exist and have an empty spec.
struct Cluster {
    objects: ClusterState,
    now_ms: i64,
}

/// The fields of a YAML mapping without its braces.
fn fields(text: &str) -> Value {
    yaml(&format!("{{{text}}}"))
}

impl Cluster {
    fn new() -> Self {
        Self::with_options(Options::default())
    }

    fn with_options(options: Options) -> Self {
        let requeue = RequeueSettings::default();
        Self {
            objects: ClusterState::new(options, requeue, Completeness::Partial),
            now_ms: 100_000,
        }
    }

    /// Sets a ClusterQueue for cpu and a LocalQueue of the same name. `flavors` has names and quotas.
    fn set_queue(&mut self, name: &str, flavors: &[(&str, &str)], more: &str) {
        let mut spec = json!({"namespaceSelector": {}, "resourceGroups": resource_groups(flavors)});
        for (key, value) in fields(more).as_object().unwrap() {
            spec[key] = value.clone();
        }
        let queue: ClusterQueue = object(&lockkeeper_object("ClusterQueue", None, name, &spec));
        self.objects.set_cluster_queue(Arc::new(queue)).unwrap();
        let spec = json!({"clusterQueue": name});
        let local: LocalQueue = object(&lockkeeper_object("LocalQueue", Some("ns"), name, &spec));
        self.objects.set_local_queue(&local);
    }

    fn set_cohort(&mut self, name: &str, flavors: &[(&str, &str)], more: &str) {
        let mut spec = fields(more);
        if !flavors.is_empty() {
            spec["resourceGroups"] = resource_groups(flavors);
        }
        let cohort: Cohort = object(&lockkeeper_object("Cohort", None, name, &spec));
        self.objects.set_cohort(&cohort).unwrap();
    }

    fn set_flavor(&mut self, name: &str, spec: &str) {
        let spec = fields(spec);
        let flavor: ResourceFlavor =
            object(&lockkeeper_object("ResourceFlavor", None, name, &spec));
        self.objects.set_resource_flavor(&flavor);
    }

    fn set_workload(&mut self, workload: &Value) {
        let workload: Workload = object(workload);
        self.objects.set_workload(Arc::new(workload)).unwrap();
    }

    fn add_pending(&mut self, name: &str, queue: &str, cpu: u32, priority: i32) {
        self.set_workload(&pending(name, queue, cpu, priority));
    }

    /// Adds a workload that has been admitted since the 90th second.
    fn add_admitted(&mut self, name: &str, queue: &str, cpu: u32, priority: i32) {
        self.set_workload(&admitted(&pending(name, queue, cpu, priority), queue));
    }

    /// Runs a cycle one second later, and returns the decisions in order.
    fn run_cycle(&mut self) -> Vec<String> {
        self.now_ms += 1_000;
        let cycle = self.objects.next_cycle(self.now_ms, false);
        cycle.entries.iter().map(|it| self.text(it)).collect()
    }

    fn text(&self, entry: &Entry) -> String {
        let state = self.objects.state();
        let name = state.workload_name(entry.workload);
        let details: Vec<&str> = match &entry.decision {
            Decision::Preempt(victims) => {
                let victims = victims.iter();
                victims.map(|it| state.workload_name(it.workload)).collect()
            }
            Decision::Admit => {
                let usage = entry.assignment().usage.iter();
                usage.map(|(of, _)| state.flavor_name(of.flavor)).collect()
            }
            _ => Vec::new(),
        };
        let text = format!("{name} {} {}", entry.decision.as_str(), details.join(" "));
        text.replace("ns/", "").trim_end().to_owned()
    }
}

fn resource_groups(flavors: &[(&str, &str)]) -> Value {
    let flavors = flavors.iter().map(|(name, quota)| {
        let mut quota = fields(quota);
        quota["name"] = "cpu".into();
        json!({"name": name, "resources": [quota]})
    });
    json!([{"coveredResources": ["cpu"], "flavors": flavors.collect::<Vec<_>>()}])
}

fn pending(name: &str, queue: &str, cpu: u32, priority: i32) -> Value {
    let container = json!({"name": "a", "resources": {"requests": {"cpu": cpu}}});
    let spec = json!({"queueName": queue, "podSets": [{"template": {"spec": {"containers": [container]}}}]});
    let mut workload = lockkeeper_object("Workload", Some("ns"), name, &spec);
    workload["metadata"]["uid"] = name.into();
    workload["metadata"]["creationTimestamp"] = "1970-01-01T00:01:30Z".into();
    workload["status"] = json!({"priority": priority});
    workload
}

fn admitted(workload: &Value, queue: &str) -> Value {
    let mut workload = workload.clone();
    let container = &workload["spec"]["podSets"][0]["template"]["spec"]["containers"][0];
    let cpu = container["resources"]["requests"]["cpu"].to_string();
    workload["status"]["admission"] = json!({"clusterQueue": queue, "podSetAssignments": [
        {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu}},
    ]});
    workload["status"]["conditions"] = json!([{
        "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
        "lastTransitionTime": "1970-01-01T00:01:30Z",
    }]);
    workload
}

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
fn preemption_policies_decide_on_victims() {
    for (policy, priority, expected) in [
        ("Never", 1, "w NoCandidates"),
        ("LowerPriority", 1, "w Preempt old"),
        ("LowerPriority", 5, "w NoCandidates"),
        ("LowerOrNewerEqualPriority", 5, "w Preempt old"),
    ] {
        let mut cluster = Cluster::new();
        let more = format!("preemption: {{withinClusterQueue: {policy}}}");
        cluster.set_queue("q", &[("f", "nominalQuota: 2")], &more);
        // It is newer than the pending workload.
        let mut old = admitted(&pending("old", "q", 2, priority), "q");
        old["metadata"]["creationTimestamp"] = "1970-01-01T00:01:35Z".into();
        cluster.set_workload(&old);
        cluster.add_pending("w", "q", 2, 5);
        assert_eq!(cluster.run_cycle(), [expected], "{policy} {priority}");
    }
    for (policy, expected) in [
        ("Never", "w NoCandidates"),
        ("LowerPriority", "w NoCandidates"),
        ("Any", "w Preempt guest"),
    ] {
        let more = format!("preemption: {{reclaimWithinCohort: {policy}}}");
        let mut cluster = with_borrower(&more, "", 7);
        cluster.add_pending("w", "owner", 2, 5);
        assert_eq!(cluster.run_cycle(), [expected], "{policy}");
    }
    for (policy, expected) in [
        ("{policy: Never}", "w NoFit"),
        ("{policy: LowerPriority}", "w Preempt guest"),
        (
            "{policy: LowerPriority, maxPriorityThreshold: 1}",
            "w NoCandidates",
        ),
        (
            "{policy: LowerPriority, maxPriorityThreshold: 2}",
            "w Preempt guest",
        ),
    ] {
        let mut cluster = with_borrower("", "", 2);
        let more = format!(
            "cohortName: all, preemption: {{reclaimWithinCohort: LowerPriority, borrowWithinCohort: {policy}}}"
        );
        cluster.set_queue("borrower", &[("f", "nominalQuota: 0")], &more);
        cluster.add_pending("w", "borrower", 2, 5);
        assert_eq!(cluster.run_cycle(), [expected], "{policy}");
    }
}

/// The workload `guest` of the queue `guest` has borrowed the quota of the queue `owner`.
fn with_borrower(owner: &str, guest: &str, guest_priority: i32) -> Cluster {
    let mut cluster = Cluster::new();
    let own = |more: &str| format!("cohortName: all, {more}");
    cluster.set_queue("owner", &[("f", "nominalQuota: 2")], &own(owner));
    cluster.set_queue("guest", &[("f", "nominalQuota: 0")], &own(guest));
    cluster.add_admitted("guest", "guest", 2, guest_priority);
    cluster
}

/// A queue with these limits of preemption that the workload `low`, of priority 3, fills.
fn with_limits(limits: &str) -> Cluster {
    let mut cluster = Cluster::new();
    let more = format!("preemption: {{withinClusterQueue: LowerPriority, limits: {{{limits}}}}}");
    cluster.set_queue("q", &[("f", "nominalQuota: 2")], &more);
    cluster.add_admitted("low", "q", 2, 3);
    cluster
}

/// `low` and `w` were created in the 90th second, and the first cycle is in the 101st.
#[test]
fn preemption_limits_within_queue_restrict_victims() {
    for (limits, expected) in [
        ("", "w Preempt low"),
        ("withinMaxPriorityThreshold: 2", "w NoCandidates"),
        ("withinMaxPriorityThreshold: 3", "w Preempt low"),
        ("withinMinRunSeconds: 12", "w NoCandidates"),
        ("withinMinRunSeconds: 11", "w Preempt low"),
        ("delaySeconds: 12", "w NoCandidates"),
        ("delaySeconds: 11", "w Preempt low"),
    ] {
        let mut cluster = with_limits(limits);
        cluster.add_pending("w", "q", 2, 5);
        assert_eq!(cluster.run_cycle(), [expected], "{limits}");
    }
    for (limits, expected) in [
        ("maxVictimsPerCycle: 1", "w NoCandidates"),
        ("maxVictimsPerCycle: 2", "w Preempt low second"),
    ] {
        let mut cluster = with_limits(limits);
        cluster.add_admitted("low", "q", 1, 3);
        cluster.add_admitted("second", "q", 1, 3);
        cluster.add_pending("w", "q", 2, 5);
        assert_eq!(cluster.run_cycle(), [expected], "{limits}");
    }
}

#[test]
fn preemption_limits_of_reclaim_restrict_victims() {
    for (owner, guest, expected) in [
        ("", "", "w Preempt guest"),
        ("reclaimMaxPriorityThreshold: 2", "", "w NoCandidates"),
        ("reclaimMaxPriorityThreshold: 3", "", "w Preempt guest"),
        ("", "reclaimMinRunSeconds: 12", "w NoCandidates"),
        ("", "reclaimMinRunSeconds: 11", "w Preempt guest"),
    ] {
        let with = |limits: &str| {
            format!("preemption: {{reclaimWithinCohort: Any, limits: {{{limits}}}}}")
        };
        let mut cluster = with_borrower(&with(owner), &with(guest), 3);
        cluster.add_pending("w", "owner", 2, 5);
        assert_eq!(cluster.run_cycle(), [expected], "{owner}; {guest}");
    }
}

#[test]
fn max_preemptions_protects_often_preempted_workload() {
    for (limits, expected) in [
        ("maxPreemptions: 1", "again NoCandidates"),
        ("maxPreemptions: 2", "again Preempt low"),
    ] {
        let mut cluster = with_limits(limits);
        cluster.add_pending("w", "q", 2, 5);
        assert_eq!(cluster.run_cycle(), ["w Preempt low"]);
        // The victim stops, the preemptor runs and finishes, and the victim runs again.
        cluster.add_pending("low", "q", 2, 3);
        assert_eq!(cluster.run_cycle()[0], "w Admit f");
        cluster.objects.remove_workload("ns/w");
        let mut decisions = Vec::new();
        for _ in 0..3 {
            decisions.extend(cluster.run_cycle());
        }
        assert!(
            decisions.contains(&"low Admit f".to_owned()),
            "{decisions:?}"
        );
        cluster.now_ms += 1_000_000;
        cluster.add_pending("again", "q", 2, 5);
        assert_eq!(cluster.run_cycle()[0], expected, "{limits}");
    }
}

/// Adds a label to the pods of a workload.
fn with_pod_label(mut workload: Value, key: &str, value: &str) -> Value {
    workload["spec"]["podSets"][0]["template"]["metadata"] = json!({"labels": {key: value}});
    workload
}

const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";

const CAN_PREEMPT: &str = "quota.scheduling.koordinator.sh/can-preempt";

#[test]
fn elastic_switches_and_pod_labels_decide_on_victims() {
    let no_label = ("", "");
    for (elastic, low_label, own_label, expected) in [
        ("", no_label, no_label, "w Preempt low"),
        (
            "disableDefaultPreemptiable: true",
            no_label,
            no_label,
            "w NoFit",
        ),
        (
            "disableDefaultPreemptiable: true",
            (PREEMPTIBLE, "true"),
            (PREEMPTIBLE, "true"),
            "w Preempt low",
        ),
        ("", (PREEMPTIBLE, "false"), no_label, "w NoFit"),
        (
            "disableDefaultTriggerPreemption: true",
            no_label,
            no_label,
            "w NoFit",
        ),
        (
            "disableDefaultTriggerPreemption: true",
            no_label,
            (CAN_PREEMPT, "true"),
            "w Preempt low",
        ),
        ("", no_label, (CAN_PREEMPT, "false"), "w NoFit"),
    ] {
        let mut cluster = Cluster::new();
        let more = format!("elastic: {{{elastic}}}");
        cluster.set_queue("q", &[("f", "nominalQuota: 2")], &more);
        let low = admitted(&pending("low", "q", 1, 1), "q");
        cluster.set_workload(&with_pod_label(low, low_label.0, low_label.1));
        let own = pending("w", "q", 2, 5);
        cluster.set_workload(&with_pod_label(own, own_label.0, own_label.1));
        let case = format!("{elastic} {low_label:?} {own_label:?}");
        assert_eq!(cluster.run_cycle(), [expected], "{case}");
    }
}

/// Two guests have borrowed the quota of the owner; the one with the larger share loses it.
#[test]
fn fair_sharing_weights_decide_on_victims() {
    let options = || Options {
        algorithm: Algorithm::FairSharing(vec![FairStrategy::LessThanOrEqualToFinalShare]),
        ..Options::default()
    };
    let weight = |it: u32| format!("fairSharing: {{weight: {it}}}");
    for (a, b, expected) in [(1, 9, "w Preempt a"), (9, 1, "w Preempt b")] {
        for by_cohort in [false, true] {
            let mut cluster = Cluster::with_options(options());
            let quota = [("f", "nominalQuota: 6")];
            let more = "cohortName: all, preemption: {reclaimWithinCohort: Any}";
            cluster.set_queue("owner", &quota, more);
            for (name, of) in [("a", weight(a)), ("b", weight(b))] {
                let none = [("f", "nominalQuota: 0")];
                if by_cohort {
                    let cohort = format!("team-{name}");
                    cluster.set_cohort(&cohort, &[], &format!("parentName: all, {of}"));
                    cluster.set_queue(name, &none, &format!("cohortName: {cohort}"));
                } else {
                    cluster.set_queue(name, &none, &format!("cohortName: all, {of}"));
                }
                cluster.add_admitted(name, name, 3, 0);
            }
            cluster.add_pending("w", "owner", 3, 0);
            assert_eq!(cluster.run_cycle(), [expected], "{by_cohort}");
        }
    }
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

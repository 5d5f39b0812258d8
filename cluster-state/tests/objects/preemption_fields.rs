//! Fields for preemption and fair sharing change victims and order. `docs/fields.md` names the test of each field.

use crate::test_cluster::{Cluster, admitted, pending};
use lockkeeper_preemption::{Algorithm, FairStrategy, Options};
use serde_json::{Value, json};

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

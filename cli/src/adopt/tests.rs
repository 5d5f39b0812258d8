//! Plans of adoptions.

use super::objects::ClusterObjects;
use super::plan::{Plan, Verdict};
use super::quota_check::Settings;
use super::report::text_report;
use super::selection::{JobArgument, JobName, Selection};
use super::test_objects::{cluster, job, listed, plain, results, run_kinds, typed, with};
use lockkeeper_api::config::Config;
use lockkeeper_controller::job_adapters::KINDS;
use serde_json::{Value, json};

fn named(text: &str) -> JobName {
    let argument: JobArgument = text.parse().unwrap();
    argument.resolve(&run_kinds()).unwrap()
}

fn plan_for(objects: ClusterObjects, names: &[&str]) -> Plan {
    let selection = Selection {
        queue: "q".to_owned(),
        namespace: Some("team".to_owned()),
        jobs: names.iter().map(|it| named(it)).collect(),
        job_kinds: run_kinds(),
    };
    let settings = Settings::new(&Config::default(), 1_800_000_000);
    Plan::new(objects, &selection, &settings)
}

fn plan(mut objects: ClusterObjects, jobs: Vec<Value>) -> Plan {
    objects.jobs = listed(jobs);
    plan_for(objects, &[])
}

#[track_caller]
fn check(change: &Value, expected: &str) {
    let found = plan(plain(4), vec![with(job("j", 1, 0), change)]);
    assert_eq!(results(&found), [expected], "{change}");
}

/// The Workload of the Job `j`, as an earlier run has created it.
fn earlier_workload(status: &Value, annotation: Option<&str>) -> Value {
    let view = KINDS[0].parse(job("j", 1, 0)).unwrap();
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {
            "name": view.workload_name(0).name(), "namespace": "team",
            "annotations": {"lockkeeper.dev/adoption": annotation},
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": true,
            }],
        },
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": {}}]},
        "status": status,
    })
}

fn admitted(cpu: u32) -> Value {
    let condition = |of: &str| {
        json!({"type": of, "status": "True", "reason": of, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({
        "admission": {"clusterQueue": "main", "podSetAssignments": [{
            "name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": cpu},
        }]},
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
    })
}

fn resumed(workload: Value) -> Vec<String> {
    let workload = if workload["metadata"]["annotations"]["lockkeeper.dev/adoption"].is_null() {
        with(workload, &json!({"metadata": {"annotations": null}}))
    } else {
        workload
    };
    let mut objects = plain(4);
    objects.workloads = vec![typed(workload)];
    results(&plan(objects, vec![job("j", 1, 0)]))
}

#[test]
fn plan_admits_jobs_in_order_of_creation_until_quota_is_used() {
    let jobs = vec![job("c", 1, 3), job("b", 3, 2), job("a", 2, 1)];
    let found = plan(plain(4), jobs);
    let shortage = "Waiting for quota: requests 3 cpu of flavor default, 2 cpu free";
    let lines = results(&found);
    assert_eq!(lines[0], "a Fits");
    assert!(
        lines[1].starts_with(&format!("b DoesNotFit {shortage}")),
        "{}",
        lines[1]
    );
    assert_eq!(lines[2], "c Fits");
    assert!(!found.is_success() && !found.may_apply(false) && found.may_apply(true));
    let Verdict::Fits(admission) = &found.jobs[0].verdict else {
        panic!("{:?}", found.jobs[0]);
    };
    assert_eq!(admission.cluster_queue, "main");
    assert_eq!(admission.pod_set_assignments[0].flavors["cpu"], "default");
    assert_eq!(found.jobs[0].requests["cpu"], "2");
}

#[test]
fn plan_counts_admitted_workloads_and_preempts_none() {
    let mut objects = plain(4);
    let mut other = earlier_workload(&admitted(4), None);
    other["metadata"] = json!({"name": "other", "namespace": "team"});
    objects.workloads = vec![typed(other)];
    objects.priority_classes = vec![typed(json!({"metadata": {"name": "high"}, "value": 9}))];
    let high = json!({"metadata": {"labels": {"lockkeeper.dev/priority-class": "high"}}});
    let found = plan(objects, vec![with(job("j", 1, 0), &high)]);
    let lines = results(&found);
    assert!(lines[0].contains("an adoption preempts none"), "{lines:?}");
}

#[test]
fn candidacy_skips_jobs_that_are_not_running_without_queue() {
    let label = |queue: &str| json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": queue}}});
    let ended = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    check(&ended, "j Skipped has finished");
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    check(&deleted, "j Skipped is being deleted");
    check(
        &json!({"spec": {"suspend": true}}),
        "j Skipped is suspended; set its label lockkeeper.dev/queue-name instead",
    );
    check(
        &json!({"spec": {"managedBy": "example.com/other"}}),
        "j Skipped example.com/other manages it (spec.managedBy), and its pods could not be stopped",
    );
    let owned = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u", "controller": true},
    ]}});
    check(
        &owned,
        "j Skipped CronJob nightly controls it; set the label lockkeeper.dev/queue-name in the template of its owner",
    );
    check(
        &label("other"),
        "j Skipped is in LocalQueue \"other\" already",
    );
    check(&label("q"), "j Skipped is in this LocalQueue already");
    let undecodable = json!({"spec": {"parallelism": "x"}});
    let found = plan(plain(4), vec![with(job("j", 1, 0), &undecodable)]);
    assert!(results(&found)[0].starts_with("j DoesNotFit cannot be decoded"));
}

#[test]
fn named_job_that_is_skipped_or_missing_is_a_failure() {
    let suspended = with(job("j", 1, 0), &json!({"spec": {"suspend": true}}));
    let mut objects = plain(4);
    objects.jobs = listed(vec![suspended, job("k", 1, 1)]);
    let found = plan_for(objects, &["j", "missing"]);
    assert_eq!(found.jobs.len(), 2);
    assert!(!found.is_success());
    assert!(results(&found)[1].starts_with("missing DoesNotFit does not exist"));
    let text = text_report(&found, false, false).unwrap();
    assert!(text.starts_with("NAMESPACE"), "{text}");
    assert!(
        text.ends_with("0 fit, 1 do not. Nothing was written.\n"),
        "{text}"
    );
}

#[test]
fn missing_queue_is_the_reason() {
    let mut objects = plain(4);
    objects.local_queues.clear();
    assert_eq!(
        results(&plan(objects, vec![job("j", 1, 0)])),
        ["j DoesNotFit LocalQueue q does not exist in its namespace"]
    );
    let mut objects = plain(4);
    objects.flavors.clear();
    let lines = results(&plan(objects, vec![job("j", 1, 0)]));
    assert!(
        lines[0].contains("the ClusterQueue is inactive"),
        "{lines:?}"
    );
}

#[test]
fn flavor_counts_only_if_pods_select_its_labels_and_tolerate_its_taints() {
    let labels = json!({"nodeLabels": {"kind": "spot"}});
    let tainted = json!({
        "nodeTaints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}],
        "tolerations": [{"key": "spot", "operator": "Exists"}],
    });
    let pods = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let selected = pods(json!({"nodeSelector": {"kind": "spot"}}));
    let required = pods(
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "kind", "operator": "In", "values": ["spot"]}]}],
        }}}}),
    );
    let other = pods(json!({"nodeSelector": {"kind": "other"}}));
    let tolerant = pods(json!({"tolerations": [{"key": "spot", "operator": "Exists"}]}));
    for (flavor, change, fits) in [
        (&labels, &json!({}), false),
        (&labels, &selected, true),
        (&labels, &required, true),
        (&labels, &other, false),
        (&tainted, &json!({}), false),
        (&tainted, &tolerant, true),
    ] {
        let objects = cluster(&[("spot", flavor.clone(), 4)]);
        let found = plan(objects, vec![with(job("j", 1, 0), change)]);
        assert_eq!(found.is_success(), fits, "{flavor} {change} {found:?}");
    }
    // The next flavor is tried.
    let objects = cluster(&[("spot", labels.clone(), 4), ("plain", json!({}), 4)]);
    let found = plan(objects, vec![job("j", 1, 0)]);
    let Verdict::Fits(admission) = &found.jobs[0].verdict else {
        panic!("{found:?}");
    };
    assert_eq!(admission.pod_set_assignments[0].flavors["cpu"], "plain");
    let found = plan(cluster(&[("spot", labels, 4)]), vec![job("j", 1, 0)]);
    let lines = results(&found);
    assert!(
        lines[0].ends_with("select its node labels: kind"),
        "{lines:?}"
    );
}

#[test]
fn interrupted_run_is_continued() {
    let none = json!({});
    assert_eq!(
        resumed(earlier_workload(&none, Some("Requested"))),
        ["j Fits"]
    );
    assert_eq!(
        resumed(earlier_workload(&admitted(1), Some("Observed"))),
        ["j Reserved"]
    );
    // A Workload without the annotation is a former one.
    let lines = resumed(earlier_workload(&admitted(1), None));
    assert!(
        lines[0].starts_with("j DoesNotFit the controller is deleting"),
        "{lines:?}"
    );
    let change = json!({"metadata": {"ownerReferences": null}});
    let lines = resumed(with(earlier_workload(&none, Some("Requested")), &change));
    assert!(
        lines[0].starts_with("j DoesNotFit another object owns Workload"),
        "{lines:?}"
    );
    let change = json!({"spec": {"queueName": "r"}});
    let lines = resumed(with(earlier_workload(&none, Some("Requested")), &change));
    assert!(
        lines[0].contains("set --queue r, or delete Workload"),
        "{lines:?}"
    );
    let change = json!({"spec": {"podSets": [{"name": "main", "count": 2, "template": {}}]}});
    let lines = resumed(with(earlier_workload(&none, Some("Requested")), &change));
    assert!(
        lines[0].contains("its number of pods has changed"),
        "{lines:?}"
    );
}

#[test]
fn adopted_job_is_reported_as_such() {
    let adopted = json!({"metadata": {
        "labels": {"lockkeeper.dev/queue-name": "q"},
        "annotations": {"lockkeeper.dev/adoption": "uid-j"},
    }});
    for (annotation, expected) in [(None, "j AlreadyAdopted"), (Some("Observed"), "j Reserved")] {
        let mut workload = earlier_workload(&admitted(1), annotation);
        if annotation.is_none() {
            workload["metadata"]["annotations"] = json!(null);
        }
        let mut objects = plain(4);
        objects.workloads = vec![typed(workload)];
        let found = plan(objects, vec![with(job("j", 1, 0), &adopted)]);
        assert_eq!(results(&found), [expected]);
        assert!(found.is_success());
    }
}

/// A running JobSet of one driver and two workers, with two pods each.
fn job_set(cpu: u32) -> Value {
    let template = job("s", cpu, 0)["spec"]["template"].clone();
    let replicated = |name: &str, replicas: u32| {
        json!({"name": name, "replicas": replicas, "template": {"spec": {
            "parallelism": 2, "completions": 2, "template": template,
        }}})
    };
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {
            "name": "s", "namespace": "team", "uid": "uid-s", "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"replicatedJobs": [replicated("driver", 1), replicated("workers", 2)]},
    })
}

#[test]
fn job_set_gets_pod_sets_of_its_replicated_jobs() {
    let found = plan(plain(6), vec![job_set(1), job("j", 1, 1)]);
    let Verdict::Fits(admission) = &found.jobs[0].verdict else {
        panic!("{:?}", found.jobs[0]);
    };
    let pod_sets = admission.pod_set_assignments.iter();
    let pod_sets: Vec<_> = pod_sets.map(|it| (it.name.as_str(), it.count)).collect();
    assert_eq!(pod_sets, [("driver", 2), ("workers", 4)]);
    assert_eq!(found.jobs[0].requests["cpu"], "6");
    assert!(results(&found)[1].starts_with("j DoesNotFit"), "{found:?}");
    let text = text_report(&found, false, false).unwrap();
    assert!(text.contains("team        jobset/s   q "), "{text}");
}

#[test]
fn candidacy_skips_job_sets_that_are_not_running_without_queue() {
    let owned = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "example.com/v1", "kind": "Train", "name": "t", "uid": "u", "controller": true},
    ]}});
    for (change, expected) in [
        (
            json!({"status": {"conditions": [{
                "type": "Completed", "status": "True", "reason": "", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]}}),
            "s Skipped has finished",
        ),
        (
            json!({"spec": {"suspend": true}}),
            "s Skipped is suspended; set its label lockkeeper.dev/queue-name instead",
        ),
        (
            json!({"spec": {"managedBy": "example.com/other"}}),
            "s Skipped example.com/other manages it (spec.managedBy), and its pods could not be stopped",
        ),
        (
            owned,
            "s Skipped Train t controls it; set the label lockkeeper.dev/queue-name in the template of its owner",
        ),
        (
            json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": "other"}}}),
            "s Skipped is in LocalQueue \"other\" already",
        ),
    ] {
        let found = plan(plain(8), vec![with(job_set(1), &change)]);
        assert_eq!(results(&found), [expected]);
    }
}

#[test]
fn job_of_job_set_is_skipped_with_its_job_set() {
    let owned = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "uid-s", "controller": true,
    }]}});
    check(
        &owned,
        "j Skipped JobSet s controls it; adopt jobset/s instead",
    );
}

#[test]
fn name_selects_job_of_its_kind() {
    for (names, expected) in [
        (&["s"][..], &["s DoesNotFit"][..]),
        (&["jobset/s"], &["s Fits"]),
        (&["jobset/s", "job/s"], &["s DoesNotFit", "s Fits"]),
    ] {
        let mut objects = plain(8);
        objects.jobs = listed(vec![job_set(1), job("s", 100, 0)]);
        let mut found = results(&plan_for(objects, names));
        found.sort_unstable();
        assert_eq!(found.len(), expected.len(), "{names:?} {found:?}");
        for (line, expected) in found.iter().zip(expected) {
            assert!(line.starts_with(expected), "{names:?} {line}");
        }
    }
}

/// A running object of the declared kind, with two pods.
fn run(change: &Value) -> Value {
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Run",
        "metadata": {
            "name": "r", "namespace": "team", "uid": "uid-r", "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"suspend": false, "pods": 2, "template": job("r", 1, 0)["spec"]["template"]},
    });
    with(object, change)
}

#[test]
fn object_of_a_declared_kind_is_planned() {
    let found = plan(plain(2), vec![run(&json!({})), job("j", 1, 1)]);
    assert_eq!(results(&found)[0], "r Fits");
    assert_eq!(found.jobs[0].requests["cpu"], "2");
    assert!(results(&found)[1].starts_with("j DoesNotFit"), "{found:?}");
    let text = text_report(&found, false, false).unwrap();
    assert!(text.contains("team        run/r   q "), "{text}");
    for (change, expected) in [
        (
            json!({"spec": {"suspend": true}}),
            "r Skipped is suspended; set its label lockkeeper.dev/queue-name instead",
        ),
        (
            json!({"spec": {"manager": "example.com/other"}}),
            "r Skipped example.com/other manages it, and its pods could not be stopped",
        ),
    ] {
        assert_eq!(results(&plan(plain(2), vec![run(&change)])), [expected]);
    }
    let owned = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "example.com/v1", "kind": "Run", "name": "r", "uid": "uid-r", "controller": true,
    }]}});
    check(&owned, "j Skipped Run r controls it; adopt run/r instead");
}

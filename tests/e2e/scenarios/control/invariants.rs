//! Invariants that hold at every moment, whatever fails: checked on every version of workloads, Jobs and pods that the
//! API server's watch has reported. The pods of each Job use at most the quota that its workloads hold.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::quota_use::{holds_quota, pod_cpu, queue_and_cpu};
use super::render;

/// The quota of a cohort of queues with one resource, cpu, in one flavor.
pub struct Limits<'a> {
    /// The most that each queue may use: nominal quota and borrowing limit.
    pub queues: &'a [(&'a str, u64)],
    /// The quota of all queues together.
    pub total: u64,
}

/// Counts of a checked history.
#[derive(Debug, Default)]
pub struct HistoryCounts {
    pub admissions: usize,
    pub preemptions: usize,
    pub starts: usize,
    pub stops: usize,
    /// The highest usage.
    pub max_usage: u64,
}

/// The state of a workload or a Job at one version.
#[derive(Clone, Default)]
struct ObjectVersion {
    object: Value,
}

/// Fails at the first version that violates an invariant.
#[track_caller]
pub fn check_history(
    workloads: &[Value],
    jobs: &[Value],
    pods: &[Value],
    limits: &Limits<'_>,
) -> HistoryCounts {
    find_violation(workloads, jobs, pods, limits).unwrap_or_else(|why| panic!("{why}"))
}

/// The counts of a history, or the message about its first violation.
fn find_violation(
    workloads: &[Value],
    jobs: &[Value],
    pods: &[Value],
    limits: &Limits<'_>,
) -> Result<HistoryCounts, String> {
    let mut all: Vec<(u64, Collection, &Value)> = Vec::new();
    all.extend(
        workloads
            .iter()
            .map(|it| (number(it), Collection::Workloads, it)),
    );
    all.extend(jobs.iter().map(|it| (number(it), Collection::Jobs, it)));
    all.extend(pods.iter().map(|it| (number(it), Collection::Pods, it)));
    // Resource versions order all objects of a cluster.
    all.sort_by_key(|(number, _, _)| *number);
    let mut checker = Checker {
        limits,
        workloads: BTreeMap::new(),
        jobs: BTreeMap::new(),
        usage_by_workload: BTreeMap::new(),
        pods: BTreeMap::new(),
        pending_preemptors: BTreeMap::new(),
        counts: HistoryCounts::default(),
    };
    for (at, collection, object) in all {
        match collection {
            Collection::Workloads => checker.check_workload(at, object)?,
            Collection::Jobs => checker.check_job(at, object)?,
            Collection::Pods => checker.check_pod(at, object)?,
        }
    }
    let owed = checker.pending_preemptors;
    ensure(owed.is_empty(), || {
        format!("preempted for a workload that was never admitted: {owed:?}")
    })?;
    Ok(checker.counts)
}

fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(violation()) }
}

#[derive(Clone, Copy)]
enum Collection {
    Workloads,
    Jobs,
    Pods,
}

/// The uid of the Job that a workload or a pod belongs to.
fn job_uid(object: &Value) -> String {
    let labels = &object["metadata"]["labels"];
    let label = [
        &labels["lockkeeper.dev/job-uid"],
        &labels["batch.kubernetes.io/controller-uid"],
    ];
    let label = label.into_iter().find(|it| it.is_string());
    text(label.unwrap_or(&object["metadata"]["ownerReferences"][0]["uid"]))
}

/// The resource version of an object, also of a deleted one.
fn number(object: &Value) -> u64 {
    let version = match &object["deletedVersion"] {
        Value::Null => &object["metadata"]["resourceVersion"],
        deleted => deleted,
    };
    version.as_str().unwrap().parse().unwrap()
}

struct Checker<'a> {
    limits: &'a Limits<'a>,
    /// By uid.
    workloads: BTreeMap<String, ObjectVersion>,
    jobs: BTreeMap<String, ObjectVersion>,
    /// Workloads with quota: the queue, and the cpus.
    usage_by_workload: BTreeMap<String, (String, u64)>,
    /// Running pods by uid: the uid of the Job, and the cpus.
    pods: BTreeMap<String, (String, u64)>,
    /// Preemptors whose victims were preempted, and the version of the preemption.
    pending_preemptors: BTreeMap<String, u64>,
    counts: HistoryCounts,
}

impl Checker<'_> {
    fn check_workload(&mut self, at: u64, object: &Value) -> Result<(), String> {
        let uid = text(&object["metadata"]["uid"]);
        let before = self.workloads.get(&uid).cloned().unwrap_or_default().object;
        let name = text(&object["metadata"]["name"]);
        let (held, holds_now) = (holds_quota(&before), holds_quota(object));
        if held && holds_now {
            let is_same = before["status"]["admission"] == object["status"]["admission"];
            ensure(is_same, || format!("{name} is admitted twice at {at}"))?;
        }
        if !held && holds_now {
            self.counts.admissions += 1;
            self.pending_preemptors.remove(&format!("default/{name}"));
        }
        if render::has_status(object, "Admitted", "True") && object["deletedVersion"].is_null() {
            let is_reserved = render::has_status(object, "QuotaReserved", "True");
            ensure(is_reserved, || {
                format!("{name} is admitted without quota at {at}")
            })?;
        }
        let is_preempted = render::has_status(object, "Preempted", "True");
        if is_preempted && !render::has_status(&before, "Preempted", "True") {
            self.record_preemption(at, &name, object)?;
        }
        let has_ended =
            render::has_status(object, "Finished", "True") || !object["deletedVersion"].is_null();
        if held && !holds_now && !has_ended {
            self.check_release(at, &name, object)?;
        }
        if has_ended || object["spec"]["active"] == false {
            // The preemptor gives up.
            self.pending_preemptors.remove(&format!("default/{name}"));
        }
        if holds_now {
            self.usage_by_workload
                .insert(uid.clone(), queue_and_cpu(object));
        } else {
            self.usage_by_workload.remove(&uid);
        }
        self.workloads.insert(
            uid,
            ObjectVersion {
                object: object.clone(),
            },
        );
        if holds_now {
            self.check_quota(at)?;
        }
        if held && !holds_now {
            self.check_pods_of(at, &job_uid(object))?;
        }
        Ok(())
    }

    fn check_pod(&mut self, at: u64, pod: &Value) -> Result<(), String> {
        let uid = text(&pod["metadata"]["uid"]);
        let job = job_uid(pod);
        match pod_cpu(pod) {
            0 => drop(self.pods.remove(&uid)),
            cpu => drop(self.pods.insert(uid, (job.clone(), cpu))),
        }
        self.check_pods_of(at, &job)?;
        let used: u64 = self.pods.values().map(|(_, cpu)| cpu).sum();
        let most = self.limits.total;
        ensure(used <= most, || {
            format!("pods use {used} of {most} at {at}")
        })
    }

    /// The pods of a Job need quota. Those of a deleted Job are being deleted.
    fn check_pods_of(&self, at: u64, job: &str) -> Result<(), String> {
        let is_there = self
            .jobs
            .get(job)
            .is_some_and(|it| it.object["deletedVersion"].is_null());
        if !is_there {
            return Ok(());
        }
        let pods = self.pods.values().filter(|(of, _)| of == job);
        let used: u64 = pods.map(|(_, cpu)| cpu).sum();
        let workloads = self
            .workloads
            .values()
            .filter(|it| job_uid(&it.object) == job);
        let held = workloads.filter(|it| holds_quota(&it.object));
        let held: u64 = held.map(|it| queue_and_cpu(&it.object).1).sum();
        ensure(used <= held, || {
            format!("pods of {job} use {used} of {held} at {at}")
        })
    }

    fn record_preemption(&mut self, at: u64, name: &str, object: &Value) -> Result<(), String> {
        self.counts.preemptions += 1;
        let message = render::message(object, "Preempted");
        let preemptor = message
            .split("preemptor: ")
            .nth(1)
            .and_then(|it| it.split(';').next());
        let preemptor = preemptor.ok_or_else(|| format!("{name}: no preemptor in {message}"))?;
        self.pending_preemptors.insert(preemptor.to_owned(), at);
        Ok(())
    }

    /// The job of a workload must be stopped when its quota is released.
    fn check_release(&mut self, at: u64, name: &str, object: &Value) -> Result<(), String> {
        let owner = &object["metadata"]["ownerReferences"][0]["uid"];
        let Some(job) = owner.as_str().and_then(|uid| self.jobs.get(uid)) else {
            return Ok(());
        };
        self.counts.stops += 1;
        let job = &job.object;
        let has_ended = render::has_status(job, "Complete", "True")
            || render::has_status(job, "Failed", "True");
        let is_quiet = job["status"]["active"].as_u64().unwrap_or(0) == 0;
        let is_stopped = job["spec"]["suspend"] == true && is_quiet;
        ensure(
            is_stopped || has_ended || !job["deletedVersion"].is_null(),
            || format!("{name} released its quota at {at}, and its job still runs: {job:#}"),
        )
    }

    /// A Job that is started has quota.
    fn check_job(&mut self, at: u64, object: &Value) -> Result<(), String> {
        let uid = text(&object["metadata"]["uid"]);
        let before = self.jobs.get(&uid).cloned().unwrap_or_default().object;
        let runs = object["spec"]["suspend"] == false && object["deletedVersion"].is_null();
        if runs && before["spec"]["suspend"] == true {
            self.counts.starts += 1;
            let owner =
                |it: &&ObjectVersion| it.object["metadata"]["ownerReferences"][0]["uid"] == *uid;
            let workload = self.workloads.values().find(owner);
            let holds = workload.is_some_and(|it| holds_quota(&it.object));
            ensure(holds, || {
                format!("a Job is started without quota at {at}: {object:#}")
            })?;
        }
        self.jobs.insert(
            uid,
            ObjectVersion {
                object: object.clone(),
            },
        );
        Ok(())
    }

    fn check_quota(&mut self, at: u64) -> Result<(), String> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (queue, cpu) in self.usage_by_workload.values() {
            *sums.entry(queue).or_default() += cpu;
        }
        for (queue, most) in self.limits.queues {
            let used = sums.get(queue).copied().unwrap_or_default();
            ensure(used <= *most, || {
                format!("{queue} holds {used} of {most} at {at}")
            })?;
        }
        let used: u64 = sums.values().sum();
        self.counts.max_usage = self.counts.max_usage.max(used);
        let most = self.limits.total;
        ensure(used <= most, || {
            format!("{used} of {most} are held at {at}: {sums:?}")
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

const QUOTA: Limits<'_> = Limits {
    queues: &[("q", 4)],
    total: 6,
};

/// The message about the first violation in a history. Empty if there is none.
fn violation(workloads: &[Value], jobs: &[Value], pods: &[Value]) -> String {
    let found = find_violation(workloads, jobs, pods, &QUOTA);
    found.err().unwrap_or_default()
}

#[track_caller]
fn assert_found(workloads: &[Value], jobs: &[Value], what: &str) {
    let why = violation(workloads, jobs, &[]);
    assert!(why.contains(what), "{what:?} is not in {why:?}");
}

/// Tests the invariants about quota: each of these histories violates one.
pub fn checker_detects_usage_above_quota(_: &mut crate::fixture::Fixture) {
    let admitted = admitted_workload;
    let reclaimed = reclaimed_pod;
    for (history, expected) in [
        (
            vec![admitted(1, "a", "q", 3), admitted(2, "b", "q", 2)],
            "q holds 5 of 4",
        ),
        (
            vec![admitted(1, "a", "q", 3), admitted(2, "b", "r", 4)],
            "7 of 6 are held",
        ),
        (
            vec![reclaimed(2, "a", "q", 3), admitted(3, "b", "q", 3)],
            "q holds 5 of 4",
        ),
        // The quota of the reclaimed pod is taken back.
        (
            vec![
                reclaimed(2, "a", "q", 3),
                admitted(3, "b", "q", 2),
                admitted(4, "a", "q", 3),
            ],
            "q holds 5 of 4",
        ),
    ] {
        assert_found(&history, &[], expected);
    }
    let shared = [
        admitted(1, "a", "q", 3),
        reclaimed(2, "a", "q", 3),
        admitted(3, "b", "q", 2),
    ];
    assert_eq!(violation(&shared, &[], &[]), "");
}

/// Tests the checker: each of these histories violates one invariant.
pub fn checker_detects_violations(_: &mut crate::fixture::Fixture) {
    let good = [
        waiting(1, "a"),
        admitted_workload(2, "a", "q", 4),
        waiting(5, "a"),
        admitted_workload(6, "b", "q", 4),
    ];
    let stopped = [
        job(1, "a", true, 0),
        job(3, "a", false, 1),
        job(4, "a", true, 0),
    ];
    assert_eq!(violation(&good, &stopped, &[]), "");
    assert_found(
        &[
            admitted_workload(1, "a", "q", 1),
            admitted_workload(2, "a", "q", 2),
        ],
        &[],
        "admitted twice",
    );
    assert_found(&good, &stopped[..2], "still runs");
    assert_found(&good[..1], &stopped[..2], "without quota");
    let mut preempted = admitted_workload(2, "a", "q", 1);
    let message = "preempted; preemptor: default/b; preemptor path: /q";
    let more = json!({"type": "Preempted", "status": "True", "message": message});
    let conditions = preempted["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(more);
    assert_found(&[preempted.clone()], &[], "never admitted");
    let preemptor = [preempted.clone(), admitted_workload(3, "b", "q", 1)];
    assert_eq!(violation(&preemptor, &[], &[]), "");
    let mut gives_up = waiting(3, "b");
    gives_up["spec"]["active"] = false.into();
    assert_eq!(violation(&[preempted, gives_up], &[], &[]), "");
}

fn waiting(version: u64, name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "uid": format!("workload-{name}"), "resourceVersion": version.to_string(),
            "ownerReferences": [{"uid": name}],
        },
        "status": {"conditions": []},
    })
}

fn admitted_workload(version: u64, name: &str, queue: &str, cpu: u64) -> Value {
    let mut workload = waiting(version, name);
    workload["status"] = json!({
        "admission": {
            "clusterQueue": queue,
            "podSetAssignments": [
                {"name": "main", "count": cpu, "resourceUsage": {"cpu": cpu.to_string()}},
            ],
        },
        "conditions": [{"type": "QuotaReserved", "status": "True"}],
    });
    workload
}

/// An admitted workload, one pod of which gave back its quota.
fn reclaimed_pod(version: u64, name: &str, queue: &str, cpu: u64) -> Value {
    let mut workload = admitted_workload(version, name, queue, cpu);
    workload["status"]["reclaimablePods"] = json!([{"name": "main", "count": 1}]);
    workload
}

/// Tests the invariant about pods: each of these histories violates it.
pub fn checker_detects_pods_without_quota(_: &mut crate::fixture::Fixture) {
    let found =
        |workloads: &[Value], pods: &[Value]| violation(workloads, &[job(1, "a", false, 1)], pods);
    let admitted = [admitted_workload(2, "a", "q", 2)];
    assert_eq!(found(&admitted, &[pod(3, "p", 2)]), "");
    for (workloads, pods, expected) in [
        (
            &admitted[..],
            vec![pod(3, "p", 2), pod(4, "r", 1)],
            "use 3 of 2",
        ),
        (&[], vec![pod(3, "p", 1)], "use 1 of 0"),
        (&admitted, vec![pod(3, "p", 7)], "use 7 of"),
    ] {
        let why = found(workloads, &pods);
        assert!(why.contains(expected), "{expected:?} is not in {why:?}");
    }
    let reclaimed = reclaimed_pod(3, "a", "q", 2);
    let why = found(&[admitted[0].clone(), reclaimed], &[pod(4, "p", 2)]);
    assert!(why.contains("use 2 of 1"), "{why}");
    let mut gone = admitted[0].clone();
    gone["deletedVersion"] = "4".into();
    let why = found(&[admitted[0].clone(), gone], &[pod(3, "p", 2)]);
    assert!(why.contains("use 2 of 0"), "{why}");
    let mut ended = pod(4, "p", 2);
    ended["status"] = json!({"phase": "Succeeded"});
    let released = [admitted[0].clone(), waiting(5, "a")];
    let stopped = found(&released, &[pod(3, "p", 2), ended]);
    assert!(!stopped.contains("use"), "{stopped}");
}

fn pod(version: u64, uid: &str, cpu: u64) -> Value {
    json!({
        "metadata": {"uid": uid, "resourceVersion": version.to_string(),
            "labels": {"batch.kubernetes.io/controller-uid": "a"}},
        "spec": {"containers": [{"resources": {"requests": {"cpu": cpu.to_string()}}}]},
    })
}

fn job(version: u64, uid: &str, is_suspended: bool, active: u64) -> Value {
    json!({
        "metadata": {"uid": uid, "resourceVersion": version.to_string()},
        "spec": {"suspend": is_suspended},
        "status": {"active": active},
    })
}

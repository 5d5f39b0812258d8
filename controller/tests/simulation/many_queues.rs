//! Many ClusterQueues in one cohort, and many preemptors at once: no poll takes longer than its caller permits.

use crate::fixture::Fixture;
use crate::objects::{NAMESPACE, local_queue};
use lockkeeper_controller::Kind;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The number of ClusterQueues. Each has one workload that borrows, and one that takes its quota back.
const QUEUES: usize = 1_000;

fn queue(number: usize) -> Value {
    // The borrowers have no quota of their own.
    let cpu = if number.is_multiple_of(2) { "0" } else { "2" };
    let flavor = json!({"name": "spot", "resources": [{"name": "cpu", "nominalQuota": cpu}]});
    json!({
        "metadata": {"name": format!("q{number}")},
        "spec": {
            "cohortName": "all", "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
            "preemption": {"reclaimWithinCohort": "Any"},
        },
    })
}

fn workload(queue: usize) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "2"}}});
    json!({
        "metadata": {"name": format!("w{queue}"), "namespace": NAMESPACE},
        "spec": {"queueName": format!("q{queue}"), "podSets": [{
            "name": "main", "count": 1,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }]},
    })
}

fn has_quota(it: &Value) -> bool {
    let conditions = it["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "QuotaReserved" && it["status"] == "True")
}

/// Runs polls of one cycle each until nothing is due, and returns the numbers of cycles of all polls.
fn run_single_cycles(stage: &mut Fixture) -> BTreeSet<u64> {
    let mut cycles = BTreeSet::new();
    loop {
        let before = stage.counters().cycles;
        let writes = stage.poll_writes_while(|| false);
        cycles.insert(stage.counters().cycles - before);
        let is_idle = writes.is_empty();
        stage.finish_writes(writes);
        let end_ms = stage.api.now_ms + 1_000;
        match stage.wake_at_ms().filter(|at_ms| *at_ms <= end_ms) {
            Some(at_ms) => stage.api.now_ms = stage.api.now_ms.max(at_ms),
            None if is_idle => return cycles,
            None => {}
        }
    }
}

#[test]
fn poll_of_many_preemptors_ends_after_the_cycle_that_exceeds_its_time() {
    let mut stage = Fixture::with_settings(RequeueSettings::default(), 2, |settings| {
        settings.status_interval_ms = 3_600_000;
        settings.pending_reason_writes_per_second = 1;
        settings.writes_max = 64;
    });
    let cohort = json!({"metadata": {"name": "all"}, "spec": {}});
    stage.api.create(Kind::Cohort, cohort).unwrap();
    for number in 0..QUEUES {
        stage.api.create(Kind::ClusterQueue, queue(number)).unwrap();
        let local = local_queue(&format!("q{number}"));
        stage.api.create(Kind::LocalQueue, local).unwrap();
    }
    let (borrowers, owners): (Vec<usize>, Vec<usize>) =
        (0..QUEUES).partition(|it| it.is_multiple_of(2));
    for number in &borrowers {
        let borrower = workload(*number);
        stage.api.create(Kind::Workload, borrower).unwrap();
    }
    run_single_cycles(&mut stage);
    let admitted = |stage: &Fixture, of: &[usize]| {
        let is_admitted =
            |number: &&usize| has_quota(stage.get(Kind::Workload, &format!("w{number}")));
        of.iter().filter(is_admitted).count()
    };
    assert_eq!(admitted(&stage, &borrowers), borrowers.len());
    for number in &owners {
        stage.api.create(Kind::Workload, workload(*number)).unwrap();
    }
    let cycles = run_single_cycles(&mut stage);
    // Each poll ran one cycle at most, and went on with the next one: all preemptors have their quota.
    assert_eq!(cycles, BTreeSet::from([0, 1]));
    assert_eq!(admitted(&stage, &owners), owners.len());
    assert_eq!(admitted(&stage, &borrowers), 0);
}

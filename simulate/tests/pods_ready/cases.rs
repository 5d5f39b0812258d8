//! Single cases, and the form of the results.

use crate::traces::{job, merge, queue, read, run, single, strategy, trace};
use lockkeeper_simulate::timeline::{
    EventKind, Outcome, RunEnd, Timeline, TimelineRecord, TraceConfig, event_loop, first_decisions,
    metrics, simulate, write_summary,
};
use serde_json::{Value, json};

/// All events as text.
fn events(timeline: &Timeline) -> Vec<String> {
    let name = |job: usize| &*timeline.jobs[job].name;
    let events = timeline.events.iter().map(|event| {
        let text = match event.kind {
            EventKind::Admitted { job, .. } => format!("{} admitted", name(job)),
            EventKind::Preempted { job, by, .. } => format!("{} preempts {}", name(by), name(job)),
            EventKind::Released { job } => format!("{} released", name(job)),
            EventKind::Finished { job } => format!("{} finished", name(job)),
            EventKind::Ready { job } => format!("{} ready", name(job)),
            EventKind::Evicted { job, reason } => format!("{} {}", name(job), reason.as_str()),
            EventKind::Requeued { job } => format!("{} requeued", name(job)),
            EventKind::Changed { .. } => "changed".to_owned(),
        };
        format!("{} {text}", event.at_s)
    });
    events.collect()
}

#[track_caller]
fn check(value: &Value, outcome: Outcome, expected: &[&str]) {
    let timeline = run(value);
    assert_eq!(events(&timeline), expected, "{value}");
    assert_eq!(timeline.outcome, outcome, "{value}");
}

#[test]
fn run_begins_when_pods_are_ready() {
    let drained = |of_job: Value, expected: &[&str]| {
        check(&single(&of_job, &json!({})), Outcome::Drained, expected);
    };
    drained(json!({}), &["0 j admitted", "10 j finished"]);
    drained(
        json!({"readySeconds": 20}),
        &["0 j admitted", "20 j ready", "30 j finished"],
    );
    // Pods that are ready in the second of the timeout are in time.
    drained(
        json!({"readySeconds": 30}),
        &["0 j admitted", "30 j ready", "40 j finished"],
    );
    // The maximum execution time begins with the admission.
    drained(
        json!({"readySeconds": 20, "maximumExecutionTimeSeconds": 25}),
        &["0 j admitted", "20 j ready", "25 j finished"],
    );
    drained(
        json!({"readySeconds": "never", "maximumExecutionTimeSeconds": 25}),
        &["0 j admitted", "25 j finished"],
    );
}

#[test]
fn late_pods_are_evicted_and_requeued() {
    let late = json!({"readySeconds": [31, 5]});
    let drained = |of_trace: Value, expected: &[&str]| {
        check(&single(&late, &of_trace), Outcome::Drained, expected);
    };
    let (admitted, evicted) = ("0 j admitted", "30 j PodsReadyTimeout");
    let after = |at_s: u32| {
        let times = [
            (0, "requeued"),
            (0, "admitted"),
            (5, "ready"),
            (15, "finished"),
        ];
        times.map(|(later_s, event)| format!("{} j {event}", at_s + later_s))
    };
    let check = |of_trace: Value, released: Option<&str>, at_s: u32| {
        let later = after(at_s);
        let later = later.iter().map(String::as_str);
        let expected = [admitted, evicted].into_iter().chain(released).chain(later);
        drained(of_trace, &expected.collect::<Vec<_>>());
    };
    check(json!({}), None, 90);
    check(strategy(&json!({"backoffBaseSeconds": 0})), None, 30);
    check(strategy(&json!({"backoffBaseSeconds": 7})), None, 37);
    check(strategy(&json!({"preset": "kep-1282"})), None, 31);
    check(
        strategy(&json!({"backoffMaxSeconds": 9, "backoffLimitCount": 1})),
        None,
        39,
    );
    check(json!({"gracePeriodSeconds": 10}), Some("40 j released"), 90);
    // The backoff is over before the job has stopped.
    check(
        json!({"gracePeriodSeconds": 100}),
        Some("130 j released"),
        130,
    );
    // A simulation has whole seconds.
    let settings = json!({"waitForPodsReady": {"enable": true, "timeout": "1500ms"}});
    let timeline = run(&single(&late, &settings));
    assert_eq!(events(&timeline)[1], "2 j PodsReadyTimeout");
}

#[test]
fn limit_of_requeueing_deactivates() {
    let never = json!({"readySeconds": "never"});
    let deactivated = |at_s: u32| format!("{at_s} j DeactivatedDueToRequeuingLimitExceeded");
    let drained = |given: Value, rounds: &[u32], end_s: u32| {
        let mut expected = vec!["0 j admitted".to_owned()];
        for at_s in rounds {
            expected.push(format!("{at_s} j PodsReadyTimeout"));
            let next_s = rounds.iter().find(|it| *it > at_s).unwrap_or(&end_s) - 30;
            expected.extend(["requeued", "admitted"].map(|it| format!("{next_s} j {it}")));
        }
        expected.push(deactivated(end_s));
        let timeline = run(&single(&never, &strategy(&given)));
        assert_eq!(events(&timeline), expected);
        assert_eq!(timeline.outcome, Outcome::Drained);
        let stats = timeline.stats.pods_ready.unwrap();
        assert_eq!(
            (stats.evictions, stats.requeues),
            (rounds.len() + 1, rounds.len())
        );
        assert_eq!(stats.deactivated, 1);
        assert_eq!(
            stats.lost_seconds,
            30 * i64::try_from(rounds.len() + 1).unwrap()
        );
    };
    drained(json!({"backoffLimitCount": 0}), &[], 30);
    drained(json!({"backoffLimitCount": 2}), &[30, 120], 270);
    drained(json!({"backoffLimitSeconds": 0}), &[], 30);
    drained(json!({"backoffLimitSeconds": 100}), &[30, 120], 270);
}

#[test]
fn other_jobs_run_during_backoff_and_after_deactivation() {
    let mut value = trace(&[job("j", 0, 10, 4), job("other", 1, 20, 4)]);
    merge(&mut value["jobs"][0], &json!({"readySeconds": "never"}));
    merge(&mut value, &strategy(&json!({"backoffLimitCount": 1})));
    check(
        &value,
        Outcome::Drained,
        &[
            "0 j admitted",
            "30 j PodsReadyTimeout",
            "30 other admitted",
            "50 other finished",
            "90 j requeued",
            "90 j admitted",
            "120 j DeactivatedDueToRequeuingLimitExceeded",
        ],
    );
}

#[test]
fn order_after_eviction_follows_timestamp() {
    for (timestamp, expected) in [
        ("Eviction", "130 c admitted"),
        ("Creation", "130 j admitted"),
    ] {
        let mut value = trace(&[
            job("j", 0, 10, 4),
            job("b", 1, 100, 4),
            job("c", 20, 100, 4),
        ]);
        merge(
            &mut value["jobs"][0],
            &json!({"readySeconds": ["never", 0]}),
        );
        merge(&mut value, &strategy(&json!({"timestamp": timestamp})));
        let timeline = run(&value);
        assert_eq!(timeline.outcome, Outcome::Drained);
        let events = events(&timeline);
        let after = events.iter().position(|it| it == "130 b finished").unwrap();
        assert_eq!(events[after + 1], expected);
    }
}

#[test]
fn block_admission_admits_one_job_at_a_time() {
    let mut value = trace(&[job("j", 0, 50, 1), job("k", 0, 50, 1), job("l", 2, 50, 1)]);
    value["readySeconds"] = json!(9);
    value["jobs"][1]["clusterQueue"] = json!("b");
    value["clusterQueues"] = json!([queue("a", 4), queue("b", 4)]);
    value["waitForPodsReady"]["blockAdmission"] = json!(true);
    check(
        &value,
        Outcome::Drained,
        &[
            "0 j admitted",
            "9 j ready",
            "9 k admitted",
            "18 k ready",
            "18 l admitted",
            "27 l ready",
            "59 j finished",
            "68 k finished",
            "77 l finished",
        ],
    );
    // Without the timeout the setting has no effect, as in the controller.
    value["waitForPodsReady"]["enable"] = json!(false);
    assert_eq!(events(&run(&value))[1], "0 k admitted");
}

#[test]
fn preempted_jobs_wait_for_pods_again() {
    for (mode, lost_s, finish_s) in [("restart", 12, 42), ("resume", 8, 38)] {
        let mut value = trace(&[job("j", 0, 10, 4), job("high", 12, 10, 4)]);
        value["mode"] = json!(mode);
        value["jobs"][0]["readySeconds"] = json!([8, 10]);
        value["jobs"][1]["priority"] = json!(1);
        let timeline = run(&value);
        assert_eq!(timeline.stats.lost_seconds, lost_s, "{mode}");
        assert_eq!(timeline.jobs[0].runs[1].ready_at_s, Some(32));
        assert_eq!(
            timeline.jobs[0].runs[1].end,
            RunEnd::Finished(finish_s),
            "{mode}"
        );
        let metrics = metrics(&read(&value), &timeline);
        assert_eq!(metrics.quotas[0].wasted, lost_s * 4);
    }
}

#[test]
fn job_that_runs_at_the_start_has_the_rest_of_its_timeout() {
    let of_job = |ready: Value, ran_s: u32| {
        let pod_sets = json!([{"requests": {"cpu": 4}, "flavors": {"cpu": "f"}}]);
        json!({"readySeconds": ready, "ranSeconds": ran_s, "podSets": pod_sets})
    };
    let none = json!({});
    let drained = |of_job: Value, expected: &[&str]| {
        check(&single(&of_job, &none), Outcome::Drained, expected);
    };
    drained(of_job(json!(20), 25), &["0 j admitted", "5 j finished"]);
    drained(
        of_job(json!(20), 15),
        &["0 j admitted", "5 j ready", "15 j finished"],
    );
    for (ran_s, evicted_s) in [(25, 5), (30, 0), (99, 0)] {
        let timeline = run(&single(&of_job(json!(["never", 0]), ran_s), &none));
        assert_eq!(timeline.outcome, Outcome::Drained);
        assert_eq!(
            events(&timeline)[1],
            format!("{evicted_s} j PodsReadyTimeout")
        );
    }
}

#[test]
fn evicted_job_releases_its_nodes() {
    let mut value = trace(&[job("j", 0, 10, 4), job("other", 1, 50, 4)]);
    value["clusterQueues"] = json!([{"name": "a"}]);
    value["placement"] = json!({"nodes": [{"name": "n", "allocatable": {"cpu": 5}}]});
    value["clusterQueues"][0]["resourceGroups"] = json!([]);
    value["jobs"][0]["readySeconds"] = json!(["never", 5]);
    value["gracePeriodSeconds"] = json!(3);
    check(
        &value,
        Outcome::Drained,
        &[
            "0 j admitted",
            "30 j PodsReadyTimeout",
            "33 j released",
            "33 other admitted",
            "83 other finished",
            "90 j requeued",
            "90 j admitted",
            "95 j ready",
            "105 j finished",
        ],
    );
}

#[test]
fn pods_that_are_never_ready_without_timeout_are_stuck() {
    let settings = json!({"waitForPodsReady": {"enable": false}});
    let value = single(&json!({"readySeconds": "never"}), &settings);
    let timeline = run(&value);
    assert_eq!((timeline.outcome, timeline.makespan_s), (Outcome::Stuck, 0));
    assert_eq!(timeline.jobs[0].runs[0].end, RunEnd::Open);
}

#[test]
fn requeueing_without_end_is_a_loop() {
    let mut value = trace(&[
        job("j", 0, 10, 4),
        job("long", 0, 900_000, 1),
        job("late", 2_000_000, 10, 1),
    ]);
    value["clusterQueues"] = json!([queue("a", 8)]);
    value["jobs"][0]["readySeconds"] = json!("never");
    let trace = read(&value);
    let timeline = simulate(&trace).unwrap();
    assert_eq!(timeline.outcome, Outcome::Loop);
    assert_eq!(timeline.stats.finished, 2, "all others finish first");
    let repeated = event_loop(&timeline);
    assert_eq!(repeated.len(), 3);
    assert_eq!(repeated[2].at_s - repeated[0].at_s, 30);
    let mut text = String::new();
    write_summary(&mut text, &trace, &timeline).unwrap();
    insta::assert_snapshot!("requeued_without_end", text);
    // A job that is never decided on does not keep the search for decisions from ending.
    let last = trace.jobs.len() - 1;
    assert_eq!(first_decisions(&trace, &[last]).unwrap().len(), 1);
    assert!(first_decisions(&trace, &[9]).unwrap().is_empty());
}

#[test]
fn limits_of_requeueing_end_before_a_loop() {
    let never = json!({"readySeconds": "never"});
    for (limit, outcome, evictions) in [(30, Outcome::Drained, 31), (5_000, Outcome::Loop, 40)] {
        let mut value = single(&never, &strategy(&json!({"backoffLimitCount": limit})));
        value["maxPreemptionsPerJob"] = json!(40);
        let timeline = run(&value);
        assert_eq!(timeline.outcome, outcome);
        assert_eq!(timeline.stats.pods_ready.unwrap().evictions, evictions);
    }
}

#[test]
fn results_show_readiness_only_if_the_trace_has_it() {
    let late = json!({"readySeconds": [31, 5]});
    let trace = read(&single(&late, &json!({"gracePeriodSeconds": 3})));
    let timeline = simulate(&trace).unwrap();
    let record = TimelineRecord {
        trace: &trace,
        timeline: &timeline,
    };
    let text = serde_json::to_string_pretty(&record).unwrap();
    insta::assert_snapshot!("pods_ready_json", text);
    let without = json!({"waitForPodsReady": {"enable": false}});
    let text = serde_json::to_string(&run(&single(&json!({}), &without))).unwrap();
    assert!(!text.contains("eady"), "{text}");
}

#[test]
fn config_replaces_readiness() {
    let value = single(&json!({}), &json!({"readySeconds": 3}));
    let config = json!({
        "readySeconds": "never",
        "waitForPodsReady": {
            "enable": true, "timeout": "5s", "requeuingStrategy": {"backoffLimitCount": 0},
        },
    });
    let config: TraceConfig = serde_json::from_value(config).unwrap();
    let timeline = simulate(&config.applied_to(&read(&value))).unwrap();
    let expected = ["0 j admitted", "5 j DeactivatedDueToRequeuingLimitExceeded"];
    assert_eq!(events(&timeline), expected);
}

#[test]
fn invalid_readiness_is_rejected_with_field_and_remedy() {
    for (pointer, replacement, expected) in [
        (
            "/jobs/0/readySeconds",
            json!(-1),
            "jobs[0].readySeconds: -1 is out of range; use 0 to 1099511627776",
        ),
        (
            "/jobs/0/readySeconds",
            json!(["never", 1_u64 << 41]),
            "jobs[0].readySeconds[1]: 2199023255552 is out of range; use 0 to 1099511627776",
        ),
        (
            "/readySeconds",
            json!(u64::MAX),
            "readySeconds: 9223372036854775807 is out of range; use 0 to 1099511627776",
        ),
        (
            "/waitForPodsReady/requeuingStrategy",
            json!({"preset": "kep-1282", "backoffMaxSeconds": 9}),
            "waitForPodsReady.requeuingStrategy.preset: waitForPodsReady.requeuingStrategy.preset and \
             waitForPodsReady.requeuingStrategy.backoffMaxSeconds are both set: the preset determines each backoff; \
             remove one of them",
        ),
    ] {
        let mut value = single(&json!({"readySeconds": 1}), &strategy(&json!({})));
        value["readySeconds"] = json!(1);
        assert!(simulate(&read(&value)).is_ok());
        *value.pointer_mut(pointer).unwrap() = replacement;
        assert_eq!(simulate(&read(&value)).unwrap_err().to_string(), expected);
    }
    let unknown = json!({"waitForPodsReady": {"enabled": true}});
    let error = serde_json::from_value::<TraceConfig>(unknown).unwrap_err();
    assert!(error.to_string().starts_with("unknown field `enabled`"));
}

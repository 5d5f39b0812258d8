//! Files in the Standard Workload Format.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_scenario::AmountText;
use lockkeeper_simulate::timeline::Job;
use lockkeeper_trace_import::{ImportedTrace, Mapping, parse_swf};

fn mapping(text: &str) -> Mapping {
    serde_saphyr::from_str(text).unwrap()
}

/// A record of job 1 with some fields replaced, by their number in the format.
fn record(changes: &[(usize, &str)]) -> String {
    let mut fields = "1 0 -1 60 4 -1 -1 4 90 -1 1 7 3 -1 2 1 -1 -1"
        .split(' ')
        .collect::<Vec<_>>();
    for (number, value) in changes {
        *fields.get_mut(number - 1).unwrap() = value;
    }
    fields.join(" ")
}

fn parse(text: &str, map: &str) -> ImportedTrace {
    parse_swf(text, &mapping(map)).unwrap()
}

fn assumptions(imported: &ImportedTrace) -> Vec<(&str, u64)> {
    let assumptions = imported.trace.assumptions.iter();
    assumptions.map(|it| (it.text.as_str(), it.count)).collect()
}

fn requests(job: &Job) -> Vec<(&str, AmountText)> {
    let requests = job.pod_sets.iter().flat_map(|it| &it.requests);
    requests.map(|(name, it)| (name.as_str(), *it)).collect()
}

#[test]
fn example_has_each_kind_of_assumption() {
    let text = include_str!("../../docs/traces/jobs.swf");
    let map = include_str!("../../docs/traces/swf-map.yaml");
    let imported = parse(text, map);
    let jobs = imported.trace.jobs.iter();
    let rows = jobs.zip(&imported.lines).map(|(job, line)| {
        (
            *line,
            &*job.name,
            &*job.cluster_queue,
            job.arrival,
            job.run_seconds,
            job.priority,
        )
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            (5, "job-1", "team-a", 0, 600, 0),
            (6, "job-2", "team-a", 30, 300, 0),
            (7, "job-3", "team-b", 60, 120, 0),
            (8, "job-4", "team-b", 90, 60, 10),
            (11, "job-7", "team-a", 180, 240, 10),
        ]
    );
    assert_eq!(
        assumptions(&imported),
        [
            ("job left out: its run time is 0, it never ran", 1),
            ("job left out: its run time is unknown", 1),
            (
                "preceding job and think time are not considered: the job arrives at its submit time",
                1
            ),
            (
                "requested memory is not considered: swf.memory is not in the mapping",
                1
            ),
            (
                "requested processors unknown: the allocated ones are used",
                1
            ),
            ("run time unknown: the requested time is used", 1),
        ]
    );
}

#[test]
fn processors_and_memory_become_requests() {
    let map = "defaultQueue: q\nswf: {processor: {cpu: 500m, x.io/core: 2}, memory: memory}";
    let imported = parse(&record(&[(10, "3")]), map);
    let job = imported.trace.jobs.first().unwrap();
    assert_eq!(
        requests(job),
        [
            ("cpu", AmountText::Number(2_000)),
            ("memory", AmountText::Number(4 * 3 * 1_024)),
            ("x.io/core", AmountText::Number(8)),
        ]
    );
    assert_eq!(job.pod_sets.first().unwrap().count, 4);
}

#[test]
fn queue_is_that_of_first_rule_or_of_the_record() {
    for (map, expected) in [
        (
            "queues: [{user: 7, clusterQueue: u}, {queue: 2, clusterQueue: q}]",
            "u",
        ),
        (
            "queues: [{user: 8, clusterQueue: u}, {queue: 2, clusterQueue: q}]",
            "q",
        ),
        ("queues: [{user: '7', group: 3, clusterQueue: ug}]", "ug"),
        (
            "queues: [{user: 7, group: 4, clusterQueue: ug}]\ndefaultQueue: d",
            "d",
        ),
        ("defaultQueue: d", "d"),
    ] {
        let imported = parse(&record(&[]), map);
        assert_eq!(
            &*imported.trace.jobs.first().unwrap().cluster_queue,
            expected,
            "{map}"
        );
    }
    let two = format!("{}\n{}", record(&[]), record(&[(1, "2"), (12, "9")]));
    let imported = parse(&two, "queues: [{user: 9}, {clusterQueue: all}]");
    assert_eq!(imported.trace.jobs.len(), 1);
    assert!(assumptions(&imported).contains(&(
        "job left out: its rule in the mapping has no clusterQueue",
        1
    )));
}

#[test]
fn mistakes_have_their_line() {
    let none = "defaultQueue: q";
    let good = record(&[]);
    for (bad, map, expected) in [
        (
            "1 2 3".to_owned(),
            none,
            "3 fields; a record of the Standard Workload Format has 18",
        ),
        (format!("{good} 5"), none, "19 fields"),
        (
            record(&[(2, "-5")]),
            none,
            "submit time: \"-5\" is negative",
        ),
        (record(&[(4, "-2")]), none, "run time: \"-2\" is negative"),
        (
            record(&[(4, "x")]),
            none,
            "run time: \"x\" is no whole number",
        ),
        (
            record(&[(4, "99999999999999")]),
            none,
            "run time: \"99999999999999\" is too large",
        ),
        (
            record(&[(8, "9999999999")]),
            none,
            "processors: \"9999999999\" is too large",
        ),
        (record(&[]), none, "the job name \"job-1\" occurs twice"),
        (
            record(&[(1, "2")]),
            "queues: [{user: 6, clusterQueue: q}]",
            "no rule of the mapping matches queue 2, partition 1, user 7, group 3",
        ),
        (
            record(&[(1, "2")]),
            "defaultQueue: q\nswf: {processor: {cpu: 9000000000000000000}}",
            "cpu: the amount is too large",
        ),
    ] {
        let error = parse_swf(&format!("; comment\n{good}\n{bad}"), &mapping(map)).unwrap_err();
        let is_first = map.contains("9000") || map.contains("user: 6");
        assert_eq!(error.line, Some(if is_first { 2 } else { 3 }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = parse_swf("; only comments\n", &mapping(none)).unwrap_err();
    assert_eq!(error.to_string(), "the input has no job");
    let error = parse_swf(&record(&[(4, "0")]), &mapping(none)).unwrap_err();
    assert!(
        error.to_string().contains("all records are left out"),
        "{error}"
    );
}

#[test]
fn unsorted_records_are_rejected_or_sorted() {
    let text = format!(
        "{}\n{}",
        record(&[(2, "50")]),
        record(&[(1, "2"), (2, "20")])
    );
    let error = parse_swf(&text, &mapping("defaultQueue: q")).unwrap_err();
    assert_eq!(error.line, Some(2));
    assert!(error.to_string().contains("30 s before"), "{error}");
    let imported = parse(&text, "defaultQueue: q\nsort: true");
    let names = imported.trace.jobs.iter().map(|it| (&*it.name, it.arrival));
    assert_eq!(names.collect::<Vec<_>>(), [("job-2", 0), ("job-1", 30)]);
    assert_eq!(imported.lines, [2, 1]);
}

#[test]
fn equal_jobs_share_their_pods() {
    let text = (1..=3).map(|number| record(&[(1, &number.to_string())]));
    let text: Vec<String> = text.collect();
    let imported = parse(&text.join("\n"), "defaultQueue: q");
    let [first, .., last] = &imported.trace.jobs[..] else {
        unreachable!("three jobs");
    };
    assert!(std::sync::Arc::ptr_eq(&first.pod_sets, &last.pod_sets));
}

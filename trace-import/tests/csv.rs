//! CSV files.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_scenario::AmountText;
use lockkeeper_trace_import::{ImportedTrace, Mapping, parse_csv};

fn mapping(text: &str) -> Mapping {
    serde_saphyr::from_str(text).unwrap()
}

const MAP: &str =
    "csv: {columns: {name: id, queue: q, arrival: t, runSeconds: run, requests: {cpu: c}}}";

fn parse(text: &str, map: &str) -> ImportedTrace {
    parse_csv(text, &mapping(map)).unwrap()
}

#[test]
fn example_has_rows_and_assumptions() {
    let text = include_str!("../../docs/traces/jobs.csv");
    let imported = parse(text, include_str!("../../docs/traces/csv-map.yaml"));
    let jobs = imported.trace.jobs.iter();
    let rows = jobs.map(|job| {
        let pod_set = job.pod_sets.first().unwrap();
        let cpu = pod_set.requests.get("cpu").copied().unwrap();
        (
            &*job.name,
            job.arrival,
            job.run_seconds,
            job.priority,
            pod_set.count,
            cpu,
        )
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            ("train-1", 0, 600, 5, 4, AmountText::Number(48_000)),
            ("train-2", 60, 630, 0, 4, AmountText::Number(48_000)),
            ("eval, small", 120, 60, 9, 1, AmountText::Number(4_000)),
            ("debug", 180, 300, 9, 1, AmountText::Number(2_000)),
        ]
    );
    let assumptions = imported.trace.assumptions.iter();
    let assumptions: Vec<_> = assumptions.map(|it| (it.text.as_str(), it.count)).collect();
    assert_eq!(
        assumptions,
        [
            ("priority unknown: 0", 1),
            (
                "run time unknown: 300 s (defaults.runSeconds of the mapping)",
                1
            ),
        ]
    );
}

#[test]
fn times_and_delimiters() {
    for (text, map, expected) in [
        (
            "id;q;t;run;c\na;x;1700000000.5;2.1;1\n",
            MAP.replace("csv: {", "csv: {delimiter: ';', "),
            (0, 3),
        ),
        (
            "\u{feff}id,q,t,run,c\r\na,x,5000,1500,1\r\n",
            MAP.replace("csv: {", "csv: {times: milliseconds, "),
            (0, 2),
        ),
        (
            "id,q,t,run,c\na,x,2026-11-29T00:00:00Z,7,1",
            MAP.replace("csv: {", "csv: {times: rfc3339, "),
            (0, 7),
        ),
    ] {
        let imported = parse(text, &map);
        let job = imported.trace.jobs.first().unwrap();
        assert_eq!((job.arrival, job.run_seconds), expected, "{text}");
    }
}

const ALL_COLUMNS: &str = "id,q,t,run,c,s,e,p,prio";

/// The first row, the others, the line of the mistake, and the message.
const MISTAKES: [(&str, &str, u64, &str); 12] = [
    (
        "id,q,t,run,c",
        "a,x,-1,5,1",
        2,
        "arrival: \"-1\" is negative",
    ),
    ("id,q,t,run,c", "a,x,,5,1", 2, "arrival: \"\" is empty"),
    (
        "id,q,t,run,c",
        "a,x,0,-3,1",
        2,
        "runSeconds: \"-3\" is negative",
    ),
    ("id,q,t,run,c", "a,x,0,5,1x", 2, "cpu: \"1x\" is no amount"),
    ("id,q,t,run,c", "a,x,0,5,-1", 2, "cpu: \"-1\" is negative"),
    (
        "id,q,t,run,c",
        "a,x,0,5",
        2,
        "4 fields; the first row has 5",
    ),
    ("id,q,t,run,c", "a,,0,5,1", 2, "a record without queue"),
    ("id,q,t,run,c", "b,x,9,5,1\na,x,0,5,1", 3, "9 s before"),
    (
        "id,q,t,run",
        "a,x,0,5",
        1,
        "no column \"c\", which the mapping names for requests.cpu; the file has id, q, t, run",
    ),
    (
        ALL_COLUMNS,
        "a,x,0,,1,9,4,1,1",
        2,
        "the job ends at \"4\", before its start at \"9\"",
    ),
    (
        ALL_COLUMNS,
        "a,x,0,1,1,,,0,1",
        2,
        "pods: \"0\" is no number of pods",
    ),
    (
        ALL_COLUMNS,
        "a,x,0,1,1,,,1,99999999999",
        2,
        "priority: \"99999999999\" is no priority",
    ),
];

#[test]
fn mistakes_have_their_line() {
    let columns = "name: id, start: s, end: e, pods: p, priority: prio";
    let all = MAP.replace("name: id", columns);
    for (header, row, line, expected) in MISTAKES {
        let map = if header == ALL_COLUMNS { &all } else { MAP };
        let error = parse_csv(&format!("{header}\n{row}\n"), &mapping(map)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.line, Some(line), "{error}");
    }
    for (map, expected) in [
        ("{}", "the mapping names no column for arrival"),
        (
            "csv: {delimiter: é, columns: {arrival: t}}",
            "'é' is no single ASCII character",
        ),
    ] {
        let error = parse_csv("t\n0\n", &mapping(map)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(serde_saphyr::from_str::<Mapping>("csv: {colums: {}}").is_err());
}

#[test]
fn long_fields_are_shortened_in_messages() {
    let text = format!("id,q,t,run,c\na,x,{},5,1\n", "9".repeat(100_000));
    let error = parse_csv(&text, &mapping(MAP)).unwrap_err().to_string();
    assert!(error.len() < 200, "{error}");
}

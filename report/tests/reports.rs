//! Reports of small traces: snapshots of plots, well-formed markup, untrusted names.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use lockkeeper_report::{Simulation, WORKLOADS_MAX, plot_files, render};
use lockkeeper_simulate::timeline::{JobTrace, Timeline, simulate};
use proptest::prelude::*;
use roxmltree::{Document, ParsingOptions};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// Two queues in a cohort, a preemption, a workload that is never admitted, and a change of quota.
fn trace(name: impl Fn(&str) -> String) -> JobTrace {
    let queue = |queue: &str, nominal: u64, more: Value| {
        let mut quota = json!({"resource": "cpu", "nominal": nominal});
        quota
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({
            "name": name(queue), "cohort": name("cohort"),
            "resourceGroups": [{"resources": ["cpu"], "flavors": [{"name": name("spot"), "quotas": [quota]}]}],
            "preemption": {"withinClusterQueue": "LowerPriority"},
        })
    };
    let job = |job: &str, queue: &str, arrival: u64, priority: i32, cpu: &str| {
        json!({
            "name": name(job), "clusterQueue": name(queue), "arrival": arrival, "runSeconds": 100,
            "priority": priority, "podSets": [{"requests": {"cpu": cpu}}],
        })
    };
    let queues = [
        queue("a", 6_000, json!({"borrowingLimit": 1_000})),
        queue("b", 4_000, json!({"lendingLimit": 1_000})),
    ];
    let mut changed = queues[1]["resourceGroups"].clone();
    changed[0]["flavors"][0]["quotas"][0]["nominal"] = json!(3_000);
    serde_json::from_value(json!({
        "cohorts": [
            {"name": name("root"), "quotas": [{"flavor": name("spot"), "resource": "cpu", "nominal": 1_000}]},
            {"name": name("cohort"), "parent": name("root")},
        ],
        "clusterQueues": queues,
        "gracePeriodSeconds": 5,
        "jobs": [
            job("low", "a", 0, 0, "5"),
            job("other", "b", 10, 0, "3"),
            job("high", "a", 40, 7, "4"),
            job("huge", "b", 50, -3, "100"),
        ],
        "changes": [{"at": 150, "clusterQueue": name("b"), "resourceGroups": changed}],
    }))
    .unwrap()
}

fn simulation<'a>(id: &'a str, trace: &'a JobTrace, timeline: &'a Timeline) -> Simulation<'a> {
    Simulation {
        id,
        config: None,
        trace,
        timeline,
    }
}

fn report_of(trace: &JobTrace) -> String {
    let timeline = simulate(trace).unwrap();
    render(&[simulation("example", trace, &timeline)])
}

/// Removes the text of all elements with a name, which is not XML, and of which the first has an attribute or none.
fn without_text(page: &str, name: &str) -> String {
    let (start, end) = (format!("<{name}"), format!("</{name}>"));
    let mut parts = page.split(&start);
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (attributes, rest) = part.split_once('>').unwrap();
        let (_, rest) = rest.split_once(&end).unwrap();
        write!(out, "{start}{attributes}>{end}{rest}").unwrap();
    }
    out
}

/// The page as XML: HTML differs in the text of scripts and in elements without an end.
fn as_xml(page: &str) -> String {
    let mut page = without_text(&without_text(page, "script"), "style");
    for name in ["meta", "link", "input"] {
        let start = format!("<{name} ");
        let mut parts = page.split(&start);
        let mut out = parts.next().unwrap().to_owned();
        for part in parts {
            let (attributes, rest) = part.split_once('>').unwrap();
            write!(out, "<{name} {attributes}/>{rest}").unwrap();
        }
        page = out;
    }
    page.replace("<!DOCTYPE html>", "")
}

/// Parses a page; returns the data of its script.
fn check_page(page: &str) -> Value {
    let xml = as_xml(page);
    let document = Document::parse(&xml).unwrap_or_else(|error| panic!("{error}\n{xml}"));
    let elements = document.descendants().filter(roxmltree::Node::is_element);
    for element in elements {
        let name = element.tag_name().name();
        assert!(!["img", "iframe", "object", "foreignObject"].contains(&name));
        for attribute in element.attributes() {
            let (key, value) = (attribute.name(), attribute.value());
            assert!(
                !key.starts_with("on") && key != "style",
                "{key}=\"{value}\""
            );
            let is_reference = ["href", "src"].contains(&key);
            assert!(
                !is_reference || value.starts_with('#') || value == "data:,",
                "{value}"
            );
        }
    }
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, 2, "the data and the script");
    let (_, data) = page.split_once("id=\"data-0\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

#[test]
fn page_has_all_parts() {
    let page = report_of(&trace(str::to_owned));
    let data = check_page(&page);
    assert_eq!(data["queues"], json!(["a", "b"]));
    // The interval states: pending, then a run that is preempted, terminating, pending, and the run that finishes.
    let low = json!([
        "low",
        0,
        0,
        0,
        0,
        245,
        0,
        2,
        [[40, 2]],
        [2, 0, 40, 3, 40, 45, 0, 45, 145, 1, 145, 245]
    ]);
    assert_eq!(data["rows"][0], low);
    assert_eq!(data["rows"][3][4], Value::Null, "never admitted");
    for id in [
        "simulation-0",
        "quota-0",
        "time-0",
        "waits-0",
        "list-0",
        "workloads-0",
    ] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert_eq!(page, report_of(&trace(str::to_owned)), "reproducible");
}

#[test]
fn plots_match_snapshots() {
    let trace = trace(str::to_owned);
    let timeline = simulate(&trace).unwrap();
    for plot in plot_files(&[simulation("example", &trace, &timeline)]) {
        let document = Document::parse(&plot.svg).unwrap();
        assert_eq!(document.root_element().tag_name().name(), "svg");
        let start = plot.svg.split_once("<style>").unwrap().0;
        let content = plot.svg.split_once("</style>").unwrap().1;
        let text = format!("{start}{content}").replace("><", ">\n<");
        insta::assert_snapshot!(plot.name.trim_end_matches(".svg"), text);
    }
}

/// The Gantt chart has an arrow from `high` to `low`.
#[test]
fn gantt_chart_matches_snapshot() {
    let page = report_of(&trace(str::to_owned));
    let (_, gantt) = page.split_once("<figure class=\"gantt\"").unwrap();
    let (gantt, _) = gantt.split_once("</figure>").unwrap();
    insta::assert_snapshot!("gantt", gantt.replace("><", ">\n<"));
}

#[test]
fn comparison_has_differences_from_first_configuration() {
    let first = trace(str::to_owned);
    let mut second = first.clone();
    second.grace_period_seconds = 0;
    let timelines = [simulate(&first).unwrap(), simulate(&second).unwrap()];
    let simulations = [
        simulation("example", &first, &timelines[0]),
        Simulation {
            config: Some("no grace period"),
            ..simulation("example", &second, &timelines[1])
        },
    ];
    let page = render(&simulations);
    check_pages_of_two(&page);
    assert!(page.contains("id=\"comparison\""));
    assert!(
        page.contains("<td>4 min <span class=\"change\">(−5 s)</span></td>"),
        "{page}"
    );
}

fn check_pages_of_two(page: &str) {
    let xml = as_xml(page);
    Document::parse(&xml).unwrap();
    let ids = xml.split(" id=\"").skip(1);
    let mut ids: Vec<&str> = ids.map(|it| it.split('"').next().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids are unique");
}

#[test]
fn many_workloads_are_aggregated() {
    let mut trace = trace(str::to_owned);
    let job = trace.jobs[0].clone();
    let jobs = (0..=WORKLOADS_MAX).map(|at| {
        let mut job = job.clone();
        job.name = format!("job-{at}").into();
        job
    });
    trace.jobs = Arc::new(jobs.collect());
    let page = report_of(&trace);
    let data = check_page(&page);
    assert_eq!(data["rows"].as_array().unwrap().len(), WORKLOADS_MAX);
    // Only one runs at a time; the last one waits longest.
    assert_eq!(data["rows"][0][0], format!("job-{WORKLOADS_MAX}"));
    assert!(!page.contains("<figure class=\"gantt\""));
    assert!(page.contains("The trace has more than 10,000 workloads"));
    assert!(page.contains("The table has the 10000 workloads with the longest waits, of 10001."));
}

/// 60 ClusterQueues: the plots of the 48 with the most use in proportion to their quota.
#[test]
fn plots_are_limited_to_those_with_most_use() {
    let queues = (0..60).map(|at| {
        json!({"name": format!("q{at}"), "resourceGroups": [{"resources": ["cpu"], "flavors": [
            {"name": "f", "quotas": [{"resource": "cpu", "nominal": 10_000}]},
        ]}]})
    });
    let jobs = (0..60).map(|at| {
        json!({
            "name": format!("j{at}"), "clusterQueue": format!("q{at}"), "arrival": 0, "runSeconds": 10,
            "podSets": [{"requests": {"cpu": 100 * (at + 1)}}],
        })
    });
    let (queues, jobs): (Vec<Value>, Vec<Value>) = (queues.collect(), jobs.collect());
    let value = json!({"clusterQueues": queues, "jobs": jobs});
    let page = report_of(&serde_json::from_value(value).unwrap());
    check_page(&page);
    let has_plot = |at: u32| {
        page.contains(&format!(
            "<figcaption>cpu of ClusterQueue q{at}, by flavor<"
        ))
    };
    let shown: Vec<u32> = (0..60).filter(|at| has_plot(*at)).collect();
    assert_eq!(shown, (12..60).collect::<Vec<u32>>());
    assert!(page.contains("12 more plots of ClusterQueues are left out"));
    assert!(page.contains("The 40 groups with the most workloads; 20 groups are left out."));
}

#[test]
fn time_without_ready_pods_is_drawn() {
    let page = |ready: Value| {
        let mut value = json!({
            "clusterQueues": [{
                "name": "a",
                "resourceGroups": [{"resources": ["cpu"], "flavors": [
                    {"name": "f", "quotas": [{"resource": "cpu", "nominal": 4}]},
                ]}],
            }],
            "waitForPodsReady": {"timeout": "1m", "requeuingStrategy": {"backoffLimitCount": 0}},
            "jobs": [
                {"name": "slow", "clusterQueue": "a", "arrival": 0, "runSeconds": 9, "podSets": [{}]},
                {"name": "late", "clusterQueue": "a", "arrival": 0, "runSeconds": 9, "podSets": [{}]},
            ],
        });
        if !ready.is_null() {
            value["waitForPodsReady"]["enable"] = json!(true);
            value["jobs"][0]["readySeconds"] = json!(20);
            value["jobs"][1]["readySeconds"] = ready;
        }
        report_of(&serde_json::from_value(value).unwrap())
    };
    let late = page(json!("never"));
    let data = check_page(&late);
    // From 0 to 20 s without ready pods, then running.
    assert_eq!(data["rows"][0][9], json!([4, 0, 20, 1, 20, 29]));
    assert_eq!(data["rows"][1][9], json!([4, 0, 60]));
    assert_eq!(data["rows"][1][6], json!(4));
    assert_eq!(data["states"][4], "deactivated");
    for text in [
        "Pods not ready",
        "pods not ready",
        "Time without ready pods",
        "Lost by eviction",
        "Evictions by reason: DeactivatedDueToRequeuingLimitExceeded 1.",
    ] {
        assert!(late.contains(text), "{text}");
    }
    let without = page(Value::Null);
    check_page(&without);
    assert!(!without.contains("ready pods") && !without.contains("Lost by eviction"));
}

#[test]
fn empty_traces_have_a_report() {
    for value in [
        json!({"clusterQueues": [], "jobs": []}),
        json!({"clusterQueues": [{"name": "a", "resourceGroups": []}], "jobs": []}),
    ] {
        let trace: JobTrace = serde_json::from_value(value).unwrap();
        check_page(&report_of(&trace));
    }
}

/// Names with markup, and any other characters.
fn any_name() -> impl Strategy<Value = String> {
    let markup = prop_oneof![
        Just("</script><img src=x onerror=alert(1)>"),
        Just("<!--<script>"),
        Just("]]>&lt;&#60;"),
        Just("\" onmouseover=\"alert(1)"),
        Just("'><svg/onload=alert(1)>"),
        Just("</title></style></textarea>"),
        Just("\u{202e}\u{2028}${x}{{x}}"),
    ];
    let other = proptest::collection::vec(any::<char>(), 0..12);
    let other = other.prop_map(|it| it.into_iter().collect::<String>());
    (markup, other).prop_map(|(markup, other)| format!("{markup}{other}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_are_escaped(prefix in any_name()) {
        let trace = trace(|name| format!("{prefix}{name}"));
        let timeline = simulate(&trace).unwrap();
        let simulation = Simulation { config: Some(&prefix), ..simulation(&prefix, &trace, &timeline) };
        let data = check_page(&render(&[simulation]));
        prop_assert_eq!(&data["rows"][0][0], &json!(format!("{prefix}low")));
        prop_assert_eq!(&data["queues"][1], &json!(format!("{prefix}b")));
        for plot in plot_files(&[simulation]) {
            let document = Document::parse_with_options(&plot.svg, ParsingOptions::default());
            prop_assert!(document.is_ok(), "{:?}: {}", document, plot.svg);
        }
    }

    /// Any amounts and times, up to the largest ones.
    #[test]
    fn extreme_numbers_have_a_report(
        nominal in prop_oneof![Just(0_i64), Just(i64::MAX), any::<u32>().prop_map(i64::from)],
        cpu in prop_oneof![Just(0_i64), Just(i64::MAX / 8), any::<u32>().prop_map(i64::from)],
        run_s in prop_oneof![Just(1_i64), Just(1 << 40)],
        arrival_s in prop_oneof![Just(0_i64), Just(1 << 40)],
    ) {
        let trace = serde_json::from_value(json!({
            "clusterQueues": [{
                "name": "a",
                "resourceGroups": [{"resources": ["cpu"], "flavors": [
                    {"name": "f", "quotas": [{"resource": "cpu", "nominal": nominal}]},
                ]}],
            }],
            "jobs": [
                {"name": "x", "clusterQueue": "a", "arrival": 0, "runSeconds": run_s, "podSets": [{"requests": {"cpu": cpu}}]},
                {"name": "y", "clusterQueue": "a", "arrival": arrival_s, "runSeconds": run_s, "podSets": [{"requests": {"cpu": cpu}}]},
            ],
        }));
        let trace: JobTrace = trace.unwrap();
        if let Ok(timeline) = simulate(&trace) {
            check_page(&render(&[simulation("extreme", &trace, &timeline)]));
        }
    }
}

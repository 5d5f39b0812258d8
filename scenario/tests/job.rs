//! Jobs under elastic quotas: explanations and rejected scenarios.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_scenario::job::{Case, CaseAnswer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

fn parse(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn decide(text: &str) -> CaseAnswer {
    let case = Case::parse(parse(text)).unwrap();
    case.decide().unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn rejection(text: &str) -> String {
    let decided = Case::parse(parse(text)).and_then(|it| it.decide());
    decided.expect_err(text).to_string()
}

/// Two teams below a department whose max is less than that of both. `guest` fills what `owner` leaves idle.
const DEPARTMENT: &str = r#"
kind: job_preemption
quota: {name: owner, parent: department, min: {cpu: "8"}, max: {cpu: "12"}}
quotas:
- {name: department, min: {cpu: "10"}, max: {cpu: "16"}}
- {name: guest, parent: department, min: {cpu: "2"}, max: {cpu: "16"}}
nodes:
- {name: n1, cpu: 8}
- {name: n2, cpu: 8}
- {name: gpu, cpu: 64, status: UnschedulableAndUnresolvable}
running:
- {name: steady, req: {cpu: "2"}, node: n1, priority: 5, preemptible: "false", quota: guest}
- {name: low, req: {cpu: "4"}, node: n1, priority: 1, quota: guest}
- {name: small, req: {cpu: "1"}, node: n2, priority: 2, quota: guest}
- {name: middle, req: {cpu: "4"}, node: n2, priority: 3, quota: guest}
- {name: far, req: {cpu: "3"}, node: gpu, priority: 4, quota: guest}
- {name: free, req: {cpu: "1"}, node: n2, priority: 1}
job:
  name: train
  preemptible: "false"
  priority: 10
  pods:
  - {name: train-0, req: {cpu: "3"}, node: n2}
  - {name: train-1, req: {cpu: "4"}}
assumed_pods: [train-0]
"#;

/// One full node. Each case inserts the fields that it tests.
fn one_node(more: &str, job: &str) -> String {
    format!(
        r#"
kind: job_preemption
quota: {{name: q, min: {{cpu: "4"}}, max: {{cpu: "8"}}}}
nodes: [{{name: n1, cpu: 4}}]
{more}
job: {{name: j, priority: 5, pods: [{{name: j-0, req: {{cpu: "2"}}}}], {job}}}
"#
    )
}

const LOW: &str = r#"running: [{name: v, req: {cpu: "4"}, node: n1, priority: 1, quota: q}]"#;
const HIGH: &str = r#"running: [{name: v, req: {cpu: "4"}, node: n1, priority: 5, quota: q}]"#;
const FULL: &str = r#"running: [{name: v, req: {cpu: "7"}, node: n1, priority: 5, quota: q}]"#;
const LEAVING: &str =
    r#"running: [{name: v, req: {cpu: "4"}, node: n1, priority: 9, quota: q, leaving: true}]"#;

#[test]
fn job_preemption_text_matches_snapshot() {
    insta::assert_snapshot!("department", decide(DEPARTMENT).text);
    let two = one_node(LOW, "");
    insta::assert_snapshot!("one_node", decide(&two).text);
    insta::assert_snapshot!("leaving", decide(&one_node(LEAVING, "")).text);
}

#[test]
fn job_preemption_json_matches_snapshot() {
    let answer = decide(DEPARTMENT);
    let mut text = serde_json::to_string_pretty(&answer.decision).unwrap();
    for step in &answer.trace {
        text.push('\n');
        text.push_str(&step.to_string());
    }
    insta::assert_snapshot!("department_json", text);
}

#[test]
fn rejections_state_a_reason() {
    let in_flight = format!("{LOW}\nprevious_round_in_flight: true");
    let never = "preemptionPolicy: Never";
    let mut output = String::new();
    for (more, job) in [
        (in_flight.as_str(), ""),
        (LOW, never),
        (HIGH, ""),
        (FULL, ""),
        (FULL, r#"preemptible: "false""#),
        (LOW, "minimum: 1, total: 2"),
        (LOW, "total: 3"),
    ] {
        let case = decide(&one_node(more, job));
        assert_eq!(case.decision["preempt"], false);
        assert_eq!(case.decision["victims"], serde_json::json!([]));
        writeln!(output, "{}\n{}", case.decision["why"], case.text).unwrap();
    }
    insta::assert_snapshot!("rejections", output);
}

#[test]
fn trace_steps_all_have_a_name() {
    let mut seen = BTreeSet::new();
    let in_flight = format!("{LOW}\nprevious_round_in_flight: true");
    for text in [
        DEPARTMENT.to_owned(),
        one_node(LOW, ""),
        one_node(HIGH, ""),
        one_node(&in_flight, ""),
    ] {
        for step in decide(&text).trace {
            seen.insert(step["step"].as_str().unwrap().to_owned());
        }
    }
    let all = [
        "asItIs",
        "assignedBack",
        "blocked",
        "excluded",
        "gate",
        "nominated",
        "overMax",
        "placed",
        "removed",
        "trigger",
        "unplaced",
        "victim",
    ];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

#[test]
fn quota_cases_are_explained_without_nodes() {
    let admission = |preemptible: &str| {
        format!(
            r#"
kind: job_admission
quota: {{name: q, min: {{cpu: "4"}}, max: {{cpu: "8", memory: 8Gi}}}}
pods:
- {{name: a, req: {{cpu: "3"}}, running: true, preemptible: "false"}}
- {{name: b, req: {{cpu: "9"}}, preemptible: "false"}}
- {{name: c, req: {{cpu: "1", memory: 4Gi}}, running: true}}
job: {{name: j, preemptible: "{preemptible}", pods: [{{name: j-0, req: {{cpu: "2", memory: 2Gi}}}}]}}
"#
        )
    };
    let mut output = String::new();
    for text in [
        admission("true"),
        admission("false"),
        admission("false").replace("job_admission", "preemption_quota_gate"),
        "{kind: may_trigger_preemption, pod: {can_preempt: \"false\"}}".to_owned(),
        "{kind: runtime_quota, total: 9, quotas: [{name: b, min: 1, limited_request: 9, shared_weight: 1, allow_lent_resource: true}, {name: a, min: 2, limited_request: 1, shared_weight: 1, allow_lent_resource: false}]}".to_owned(),
    ] {
        let case = decide(&text);
        writeln!(output, "{}\n{}", case.decision, case.text).unwrap();
    }
    insta::assert_snapshot!("quotas", output);
}

#[test]
fn invalid_cases_rejected_with_path() {
    let one = |more: &str, job: &str| rejection(&one_node(more, job));
    let quotas = |text: &str| one(&format!("quotas: {text}"), "");
    for (got, expected) in [
        (
            rejection("{kind: runtime_quota, total: 1, quotas: [], surprise: 1}"),
            "unknown field `surprise`, expected `total` or `quotas`",
        ),
        (
            one("running: [{name: v, req: {}, node: n1, colour: red}]", ""),
            "unknown field `colour`, expected one of `name`, `req`, `node`, `priority`, \
             `preemptible`, `quota`, `leaving`",
        ),
        (
            one("running: [{name: v, req: {cpu: -1}, node: n1}]", ""),
            "running[0].req.cpu: -1 is negative; an amount must be zero or more",
        ),
        (
            one("running: [{name: v, req: {}, node: n2}]", ""),
            "running[0].node: \"n2\" does not exist; use one of n1",
        ),
        (
            one("running: [{name: j-0, req: {}, node: n1}]", ""),
            "running, pending, job.pods: duplicate name \"j-0\"; use unique names",
        ),
        (
            one("assumed_pods: [x]", ""),
            "assumed_pods[0]: \"x\" does not exist; use one of j-0",
        ),
        (
            one(
                "running: [{name: a, req: {cpu: 9223372036854775806}, node: n1}, \
                 {name: b, req: {cpu: 1}, node: n1}]",
                "",
            ),
            "running[1].req.cpu: the amount is too large; all of a resource together must stay below 2^63",
        ),
        (
            one(
                "running: [{name: v, req: {cpu: 1, cpu_milli: 1}, node: n1}]",
                "",
            ),
            "running[0].req.cpu_milli: duplicate name \"cpu\"; use unique names",
        ),
        (
            quotas("[{name: a, parent: b}, {name: b, parent: a}]"),
            "quotas[0].parent: the quota \"a\" is its own ancestor; remove one parent of the cycle",
        ),
        (
            quotas("[{name: a, parent: x}]"),
            "quotas[0].parent: \"x\" does not exist; use one of a, q",
        ),
        (
            quotas("[{name: q}]"),
            "quotas[0].name: duplicate name \"q\"; use unique names",
        ),
    ] {
        assert_eq!(got, expected);
    }
    let unknown = Case::parse(parse("{kind: dance}")).unwrap_err();
    assert_eq!(unknown.to_string(), "kind: unknown kind \"dance\"");
}

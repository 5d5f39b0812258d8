//! Invalid scenarios of queues.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_preemption::Compatibility;
use lockkeeper_scenario::{Scenario, load};

fn rejection(text: &str) -> Option<String> {
    let scenario: Scenario = serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let loaded = load(&scenario, Compatibility::Lockkeeper);
    loaded.err().map(|e| e.to_string())
}

#[test]
fn queue_usage_invalid_amount_is_rejected() {
    let of = |amounts: &str| {
        let usage = amounts.split(' ');
        let usage = usage.map(|it| format!("{{flavor: f, resource: cpu, amount: {it}}}"));
        let usage: Vec<_> = usage.collect();
        rejection(&format!(
            "clusterQueues: [{{name: a, resourceGroups: [], usage: [{}]}}]",
            usage.join(", ")
        ))
    };
    let too_large = "the amount is too large; all of a resource together must stay below 2^63";
    let expected_error =
        |at: usize, why: &str| Some(format!("clusterQueues[0].usage[{at}].amount: {why}"));
    assert_eq!(of("5 0"), None);
    assert_eq!(
        of("5 -5"),
        expected_error(1, "-5 is negative; an amount must be zero or more")
    );
    assert_eq!(of("9223372036854775807"), expected_error(0, too_large));
    assert_eq!(
        of("5000000000000000000 5000000000000000000"),
        expected_error(1, too_large)
    );
}

#[test]
fn fixed_assignment_invalid_amount_is_rejected() {
    let of = |amount: &str| {
        rejection(&format!(
            "assignment: {{source: given, totalRequests: [{{flavor: f, resource: cpu, amount: {amount}}}]}}"
        ))
    };
    let expected_error =
        "assignment.totalRequests[0].amount: -1 is negative; an amount must be zero or more";
    assert_eq!((of("1"), of("-1")), (None, Some(expected_error.to_owned())));
}

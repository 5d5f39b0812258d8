//! A large gang on many nodes.

use crate::test_state::{plan, pod_of, set_pods, state, workload};
use lockkeeper_api::workload::DisruptionMode::PodGroup;

#[test]
fn large_gang_is_planned() {
    let names: Vec<String> = (0..1000).map(|it| format!("node-{it:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut state = state(&names, 8);
    for (at, nodes) in names.chunks(10).enumerate() {
        let gang = format!("gang-{at}");
        state.set_workload(&workload(&gang, i32::try_from(at % 7).unwrap(), PodGroup));
        for (pod, node) in nodes.iter().flat_map(|it| [*it; 8]).enumerate() {
            set_pods(
                &mut state,
                [pod_of(&gang, &format!("{gang}-{pod}"), node, 1)],
            );
        }
    }
    let cases = [
        (256, 10, "preempts workload/gang-"),
        (256, 0, "infeasible 0 of 1000 nodes"),
        (9000, 10, "infeasible only 8000 of 9000"),
    ];
    for (count, priority, expected) in cases {
        let decision = plan(&mut state, count, priority);
        assert!(decision.starts_with(expected), "{decision}");
    }
}

//! The flavors that Kueue's scheduler rules out for pods, as recorded in its own table of flavor assignments.

use crate::object;
use crate::workloads::RULES;
use lockkeeper_api::Workload;
use lockkeeper_api::quota::ResourceGroup;
use lockkeeper_cluster_state::{Flavors, pod_sets};
use lockkeeper_preemption::State;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The recorded cases; none where the recorded data are missing.
fn cases() -> Vec<Value> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let given = env::var_os("LOCKKEEPER_CONFORMANCE_DIR").map(PathBuf::from);
    let folder = given.map_or_else(|| here.join("../../shared/data"), |it| here.join(it));
    let Ok(text) = fs::read_to_string(folder.join("cycle/table-flavors.jsonl")) else {
        // Only the repository is here.
        return Vec::new();
    };
    let lines = text.lines();
    lines.map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn names(list: &Value) -> BTreeSet<String> {
    let names = list.as_array().into_iter().flatten();
    names.map(|it| it.as_str().unwrap().to_owned()).collect()
}

#[test]
fn flavors_are_ruled_out_as_recorded() {
    let cases = cases();
    let mut compared = 0;
    for case in &cases {
        let specs = &case["flavorSpecs"];
        let flavors = names(&case["resourceFlavors"]).into_iter();
        let flavors: Flavors = flavors
            .map(|name| {
                let spec = specs.get(&name).cloned().unwrap_or_else(|| json!({}));
                (name, object(&spec))
            })
            .collect();
        let queues = case["clusterQueues"].as_array().unwrap().iter();
        let mut queues = queues.filter(|it| it["name"] == case["incoming"]["clusterQueue"]);
        let queue = queues.next().unwrap();
        let groups = queue["resourceGroups"].as_array().unwrap().iter();
        let groups = groups.map(|group| {
            let flavors = group["flavors"].as_array().unwrap().iter();
            let flavors: Vec<Value> = flavors
                .map(|it| json!({"name": it["name"], "resources": []}))
                .collect();
            object(&json!({"coveredResources": group["resources"], "flavors": flavors}))
        });
        let groups: Vec<ResourceGroup> = groups.collect();
        for pod_set in case["incoming"]["podSets"].as_array().unwrap() {
            let pod = json!({
                "containers": [], "nodeSelector": pod_set["nodeSelector"],
                "tolerations": pod_set["tolerations"], "affinity": pod_set["affinity"],
            });
            let workload: Workload = object(&json!({
                "metadata": {"name": "w", "namespace": "ns"},
                "spec": {"podSets": [{"template": {"spec": pod}}]},
            }));
            let mut state = State::default();
            let got = pod_sets(&workload, &mut state, &groups, &flavors, RULES).unwrap();
            let got = got[0].ineligible.iter();
            let got: BTreeSet<String> = got.map(|it| state.flavor_name(*it).to_owned()).collect();
            // A flavor that does not exist makes its queue inactive, and is not ruled out by pods.
            let expected = names(&pod_set["ineligibleFlavors"]).into_iter();
            let expected: BTreeSet<String> =
                expected.filter(|it| flavors.contains_key(it)).collect();
            assert_eq!(got, expected, "{}", case["id"]);
            compared += usize::from(!expected.is_empty());
        }
    }
    assert!(
        cases.is_empty() || compared >= 3,
        "{compared} cases rule flavors out"
    );
}

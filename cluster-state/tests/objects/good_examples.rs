//! The examples for users together: no workload stays pending.

use crate::object;
use lockkeeper_cluster_state::{ClusterState, Completeness};
use lockkeeper_preemption::Options;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

#[test]
fn good_examples_together_are_all_admitted() {
    let requeue = RequeueSettings::default();
    let mut cluster = ClusterState::new(Options::default(), requeue, Completeness::Complete);
    let labels = BTreeMap::from([(
        "kubernetes.io/metadata.name".to_owned(),
        "default".to_owned(),
    )]);
    cluster.set_namespace("default", labels);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/good");
    let mut workloads = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for mut value in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            let kind = value["kind"].as_str().unwrap().to_owned();
            if ["LocalQueue", "Workload"].contains(&kind.as_str()) {
                value["metadata"]["namespace"] = "default".into();
            }
            match kind.as_str() {
                "ClusterQueue" => cluster.set_cluster_queue(Arc::new(object(&value))).unwrap(),
                "Cohort" => cluster.set_cohort(&object(&value)).unwrap(),
                "ResourceFlavor" => cluster.set_resource_flavor(&object(&value)),
                "LocalQueue" => cluster.set_local_queue(&object(&value)),
                "PriorityClass" => cluster.set_priority_class(&object(&value)),
                "Workload" => {
                    workloads.push(format!(
                        "default/{}",
                        value["metadata"]["name"].as_str().unwrap()
                    ));
                    cluster.set_workload(Arc::new(object(&value))).unwrap();
                }
                // The controller reads it; it changes no quota.
                "JobKind" => {}
                other => panic!("{other}"),
            }
        }
    }
    assert_eq!(workloads.len(), 3, "{workloads:?}");
    for _ in &workloads {
        cluster.next_cycle(1_000, true);
    }
    for name in workloads {
        assert!(cluster.is_assumed(&name), "{name} is not admitted");
    }
}

//! Fake nodes: kwok makes them ready and simulates their pods.

use serde_json::{Map, Value, json};

use crate::kubectl::Kubectl;

/// A group of equal nodes.
pub struct Nodes<'a> {
    /// The prefix of their names; a number follows.
    pub name: &'a str,
    pub count: usize,
    /// Their labels, in addition to the host name.
    pub labels: &'a [(&'a str, &'a str)],
    /// Their resources and quantities.
    pub capacity: &'a [(&'a str, &'a str)],
}

impl Default for Nodes<'_> {
    fn default() -> Self {
        Self {
            name: "node",
            count: 1,
            labels: &[],
            capacity: &[("cpu", "16"), ("memory", "64Gi"), ("pods", "110")],
        }
    }
}

/// Adds nodes and waits until they are ready.
#[track_caller]
pub fn add(kubectl: &Kubectl, nodes: &Nodes<'_>) {
    let items: Vec<Value> = (0..nodes.count).map(|index| node(nodes, index)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    kubectl
        .with_input(&["create", "-f", "-"], &list)
        .expect_accepted();
    let wait = ["wait", "--for=condition=Ready", "--timeout=120s", "-f", "-"];
    kubectl.with_input(&wait, &list).expect_accepted();
}

fn node(nodes: &Nodes<'_>, index: usize) -> Value {
    let name = format!("{}-{index}", nodes.name);
    let capacity = map(nodes.capacity);
    let mut labels = map(nodes.labels);
    labels.insert("kubernetes.io/hostname".to_owned(), name.clone().into());
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": capacity, "allocatable": capacity},
    })
}

fn map(pairs: &[(&str, &str)]) -> Map<String, Value> {
    let pair = |&(key, value): &(&str, &str)| (key.to_owned(), Value::from(value));
    pairs.iter().map(pair).collect()
}

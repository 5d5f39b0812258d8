//! The cluster, the CRDs, the webhook configurations, and the server's start and stop.

use serde_json::Value;

use super::Scenario;
use crate::fixture::{DEFAULTS, Fixture};
use crate::lockkeeper::{self, Protocol};

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("the API server answers", api_server_responds),
        Scenario::new(
            "the definitions and the webhook configurations are accepted",
            installed,
        ),
        Scenario::new(
            "the server uses the expected HTTP version",
            protocol_is_negotiated,
        ),
    ]
}

/// It is separate from the others, because it must be the last one of its protocol.
pub fn stop() -> Scenario {
    Scenario::new("the server stops on a signal", |stage, protocol| {
        stage.with_server(protocol, DEFAULTS);
        stage.stop();
    })
}

fn api_server_responds(stage: &mut Fixture, _: Protocol) {
    let kubectl = stage.cluster().kubectl();
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: answers}}";
    kubectl
        .apply(namespace, &[])
        .expect_accepted_without_warning();
    let stored = kubectl.get(&["namespace", "answers"]);
    assert_eq!(stored["status"]["phase"], "Active");
}

fn installed(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, DEFAULTS);
    let list = kubectl.get(&["customresourcedefinitions"]);
    let mut names = Vec::new();
    let ours = |definition: &&Value| definition["spec"]["group"] == "lockkeeper.dev";
    for definition in list["items"].as_array().unwrap().iter().filter(ours) {
        names.push(definition["metadata"]["name"].as_str().unwrap().to_owned());
        assert_eq!(
            condition(definition, "Established"),
            "True",
            "{definition:#}"
        );
        assert_ne!(
            condition(definition, "NonStructuralSchema"),
            "True",
            "{definition:#}"
        );
    }
    names.sort();
    let kinds = [
        "clusterqueues",
        "cohorts",
        "jobkinds",
        "localqueues",
        "resourceflavors",
        "workloads",
    ];
    assert_eq!(names, kinds.map(|kind| format!("{kind}.lockkeeper.dev")));

    // Each kind is in the category.
    kubectl
        .run(&["get", "lockkeeper", "--all-namespaces"])
        .expect_accepted();
    // A second installation changes nothing.
    let again = kubectl
        .apply(
            &lockkeeper::output(&["crds", "definitions"]),
            &["--server-side"],
        )
        .expect_accepted_without_warning();
    assert!(
        again
            .stdout
            .lines()
            .all(|line| line.ends_with("serverside-applied"))
    );
}

fn condition<'a>(definition: &'a Value, kind: &str) -> &'a str {
    definition["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == kind)
        .and_then(|condition| condition["status"].as_str())
        .unwrap_or("absent")
}

fn protocol_is_negotiated(stage: &mut Fixture, protocol: Protocol) {
    stage.with_server(protocol, DEFAULTS);
    let chosen = stage
        .server()
        .endpoint()
        .negotiate(&["h2", "http/1.1"])
        .unwrap();
    let expected = match protocol {
        Protocol::Http2 => "h2",
        Protocol::Http1 => "http/1.1",
    };
    assert_eq!(chosen.as_deref(), Some(expected));
}

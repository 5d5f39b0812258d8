//! lockkeeper next to Kueue: Kueue's kinds are validated, and never blocked.
//!
//! The CRDs are Kueue's, without its controllers and webhooks: every rejection here is lockkeeper's. They are
//! installed on a separate cluster, because the names of kinds clash with those of the other trials.

use std::path::Path;

use super::Scenario;
use super::agreement::folder;
use crate::fixture::Fixture;
use crate::kubectl::Kubectl;
use crate::lockkeeper::{self, Protocol};
use crate::snapshot;
use crate::wait;

const BESIDE: &str = "webhook: {foreignKinds: [kueue]}\n";

const ENFORCED: &str = "
webhook: {foreignKinds: [kueue]}
rules: {actions: {CQ007: enforce, CQ022: enforce}}
";

pub fn scenarios() -> Vec<Scenario> {
    let run = |_: &mut Fixture, protocol| match folder("crds") {
        Some(folder) => beside_kueue(&folder, protocol),
        None => println!(
            "skipped: no CRDs of Kueue; LOCKKEEPER_CONFORMANCE_DIR names the folder with crds/"
        ),
    };
    vec![
        Scenario::new("Kueue's objects are validated and never blocked", run).only(Protocol::Http1),
    ]
}

fn beside_kueue(definitions: &Path, protocol: Protocol) {
    let mut stage = Fixture::default();
    // The server is ready although there are no kinds to watch yet.
    let kubectl = stage.with_server(protocol, BESIDE);
    let log = stage.server().log();
    assert_eq!(
        log.matches("not installed: it is looked for").count(),
        5,
        "{log}"
    );

    install(&kubectl, definitions);
    wait_until_warned(&kubectl, INEFFECTIVE_FIELD, "CQ022");
    kubectl.apply(GOOD, &[]).expect_accepted_without_warning();
    let reply = kubectl.apply(INEFFECTIVE_FIELD, &[]).expect_accepted();
    snapshot::check("kueue-queue-that-only-warns", &reply.stderr);
    // The API server converts an object of the older version to the version of the rules.
    let older = INEFFECTIVE_FIELD.replace("v1beta2", "v1beta1");
    let older = older.replace("alone", "older");
    let reply = kubectl
        .apply(&older, &["--dry-run=server"])
        .expect_accepted();
    assert!(reply.stderr.contains("CQ022"), "{}", reply.stderr);

    // The kinds exist now, and the server discovers them.
    wait_until_warned(&kubectl, MISSING_REFERENCE, "CQ014");
    let reply = kubectl.apply(MISSING_REFERENCE, &[]).expect_accepted();
    snapshot::check("kueue-queue-of-a-lost-flavor", &reply.stderr);
    // Objects created a moment ago are known.
    let both = format!(
        "{FLAVOR}---\n{}",
        MISSING_REFERENCE.replace("lost", "fresh")
    );
    kubectl.apply(&both, &[]).expect_accepted_without_warning();
    let log = stage.server().log();
    assert_eq!(
        log.matches("not installed: it is looked for").count(),
        5,
        "{log}"
    );
    assert!(!log.contains("forbidden"), "{log}");

    whole_cluster_is_checked(&kubectl);

    let kubectl = stage.register_server(protocol, ENFORCED);
    let synced = "store_synced{store=\"clusterqueues.kueue.x-k8s.io\"}";
    assert_eq!(stage.server().metric(synced), 1);
    wait_until_rejected(&kubectl, BAD);
    let reply = kubectl.apply(BAD, &[]).expect_rejected();
    snapshot::check("kueue-queue-rejected", &reply.stderr);
    assert!(kubectl.absent(&["clusterqueues.kueue.x-k8s.io", "bad"]));
    kubectl.apply(GOOD, &[]).expect_accepted_without_warning();

    // Without the webhook lockkeeper's own kinds fail closed, and Kueue's kinds fail open.
    stage.stop();
    kubectl.apply(BAD, &[]).expect_accepted();
    kubectl.apply(OWN, &[]).expect_rejected();
    stage.stop_all();
}

/// The result of `lockkeeper check --stored` for Kueue's objects, as they are and converted to lockkeeper's kinds.
#[track_caller]
fn whole_cluster_is_checked(kubectl: &Kubectl) {
    kubectl.apply(PREEMPTION_LOOP_QUEUES, &[]).expect_accepted();
    let kubeconfig = kubectl.kubeconfig().to_str().unwrap();
    let check = |flags: &[&str]| {
        let all = ["check", "--stored", "--kubeconfig", kubeconfig];
        let output = lockkeeper::run(&[&all[..], flags].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let output = check(&["--select", "CQ024"]);
    assert!(output.contains("repeats from step"), "{output}");
    let own = check(&["--as", "lockkeeper.dev", "--converted", "-"]);
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&own).unwrap();
    let names = objects.iter().filter(|it| it["kind"] == "ClusterQueue");
    let names: Vec<&str> = names
        .filter_map(|it| it["metadata"]["name"].as_str())
        .collect();
    assert!(
        names.contains(&"eager") && names.contains(&"other"),
        "{own}"
    );
    assert!(
        !own.contains("kueue.x-k8s.io") && !own.contains("resourceVersion"),
        "{own}"
    );
    let output = check(&["--as", "lockkeeper.dev", "--select", "SC007"]);
    assert!(
        output.contains("spec.admissionChecksStrategy: Forbidden: it is lost"),
        "{output}"
    );
    // The API server sets these fields; a manifest does not have them.
    assert!(!output.contains("metadata.uid"), "{output}");
}

#[track_caller]
pub fn install(kubectl: &Kubectl, definitions: &Path) {
    let files = definitions.read_dir().unwrap().map(|it| it.unwrap().path());
    for file in files.filter(|it| it.extension().is_some_and(|it| it == "yaml")) {
        kubectl.install_crds(&file);
    }
}

/// Waits until the response for an object contains this word.
#[track_caller]
fn wait_until_warned(kubectl: &Kubectl, object: &str, word: &str) {
    let mut last = String::new();
    let warned = wait::until(
        || {
            last = kubectl.apply(object, &["--dry-run=server"]).stderr;
            Ok(last.contains(word).then_some(()))
        },
        || format!("no {word}"),
    );
    warned.unwrap_or_else(|e| panic!("{e}; last:\n{last}"));
}

/// Waits until the API server has loaded the webhook configuration.
#[track_caller]
fn wait_until_rejected(kubectl: &Kubectl, object: &str) {
    let rejected = wait::until(
        || {
            let reply = kubectl.apply(object, &["--dry-run=server"]);
            Ok((reply.code != Some(0)).then_some(()))
        },
        || "it is never rejected".to_owned(),
    );
    rejected.unwrap_or_else(|e| panic!("{e}"));
}

/// Two queues; one reclaims and borrows.
const PREEMPTION_LOOP_QUEUES: &str = "
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: eager}
spec:
  cohortName: all
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: other}
spec:
  cohortName: all
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}
  admissionChecksStrategy: {admissionChecks: [{name: provision}]}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 4}]}]
";

const GOOD: &str = r#"
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: speech}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: "16"}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: default}
spec: {clusterQueue: speech}
"#;

/// It reclaims from a cohort that it is not in.
const INEFFECTIVE_FIELD: &str = r"
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: alone}
spec:
  preemption: {reclaimWithinCohort: Any}
";

const MISSING_REFERENCE: &str = r#"
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: lost}
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: lost
      resources: [{name: cpu, nominalQuota: "1"}]
"#;

const FLAVOR: &str = r"
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: fresh}
spec: {nodeLabels: {pool: fresh}}
";

/// It lends more than its nominal quota, which Kueue's own webhook would reject, and has a second error.
const BAD: &str = r#"
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: bad}
spec:
  preemption: {reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: "4", lendingLimit: "5"}]
"#;

const OWN: &str = "
apiVersion: lockkeeper.dev/v1alpha1
kind: ResourceFlavor
metadata: {name: own}
";

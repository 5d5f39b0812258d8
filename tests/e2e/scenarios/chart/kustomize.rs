//! The kustomize base: the chart's output with default values, without Helm's labels.

use lockkeeper_testkit::assert_file_is_current;
use std::path::Path;

use crate::ROOT;
use crate::cluster::Cluster;
use crate::helm::Helm;
use crate::scenarios::without_cluster::StandaloneTrial;

const BASE: &str = "deploy/kustomize/base";

/// Only `kubectl delete -k` uninstalls it.
const VALUES: &str = "crds: {keep: false}\n";

/// Parts of lines that only Helm needs.
const HELM_LABELS: [&str; 3] = ["helm.sh/chart: ", "managed-by: Helm", "# Source: "];

pub fn trials_without_cluster() -> Vec<StandaloneTrial> {
    vec![StandaloneTrial {
        name: "chart: the kustomize base equals its output",
        run: same_as_chart,
    }]
}

/// `UPDATE_DOCS=1` regenerates the base.
fn same_as_chart(folder: &Path) {
    let rendered = Helm::without_cluster(folder)
        .template(VALUES)
        .assert_silent()
        .stdout;
    let is_ours = |line: &&str| !HELM_LABELS.iter().any(|it| line.contains(it));
    let lines = rendered.lines().filter(is_ours);
    let mut base = "# What charts/lockkeeper renders by default; a test generates it (docs/installation.md).\n".to_owned();
    for line in lines.skip_while(|line| *line == "---") {
        base.push_str(line);
        base.push('\n');
    }
    let path = Path::new(ROOT).join(BASE).join("lockkeeper.yaml");
    let command = "cargo test -p lockkeeper --test e2e -- 'chart: the kustomize'";
    assert_file_is_current(&path, &base, command);
}

/// The base is applied twice and deleted. The namespace enforces the level `restricted`.
pub fn applied() {
    let cluster = Cluster::start().unwrap_or_else(|e| panic!("no cluster: {e}"));
    let kubectl = cluster.kubectl();
    let apply = || {
        kubectl
            .run(&["apply", "-k", BASE])
            .expect_accepted_without_warning()
            .stdout
    };
    assert!(apply().lines().all(|it| it.ends_with(" created")));
    // kubectl always reports a PodDisruptionBudget as configured.
    let again = apply();
    let changed = again.lines().filter(|it| !it.ends_with(" unchanged"));
    assert_eq!(
        changed.collect::<Vec<_>>(),
        ["poddisruptionbudget.policy/lockkeeper configured"]
    );
    let namespace = kubectl.get(&["namespace", "lockkeeper-system"]);
    let level = &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
    assert_eq!(level, "restricted");
    kubectl
        .run(&["delete", "--wait=false", "-k", BASE])
        .expect_accepted_without_warning();
    assert!(kubectl.absent(&["validatingwebhookconfigurations", "lockkeeper"]));
    assert!(kubectl.absent(&["mutatingwebhookconfigurations", "lockkeeper"]));
}

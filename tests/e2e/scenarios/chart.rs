//! The chart, with helm: the rendered objects, the installation and its rights.
//!
//! There is no kubelet, so the pods of the Deployments do not run: the trials check that every object is accepted
//! without a warning. Trials that need processes run them beside the cluster, with the accounts of the chart.

mod agreement;
mod installed;
mod kubeconform;
mod kustomize;
mod rbac;
mod rendered;

use super::Scenario;
use super::without_cluster::StandaloneTrial;
use crate::fixture::Fixture;
use crate::lockkeeper::Protocol;

/// Trials that need no cluster.
pub fn trials_without_cluster() -> Vec<StandaloneTrial> {
    let mut all = rendered::trials_without_cluster();
    all.extend(agreement::trials_without_cluster());
    all.extend(kustomize::trials_without_cluster());
    all
}

pub fn scenarios() -> Vec<Scenario> {
    // Each has its own cluster: on the shared cluster the objects of the chart exist already.
    let once = |name: &'static str, run: fn()| {
        let run = move |_: &mut Fixture, _| run();
        Scenario::new(name, run).only(Protocol::Http1)
    };
    let shapes = "chart: its output matches the schemas of the API server";
    vec![
        // The rendered objects are those for the newest version.
        Scenario::new(shapes, kubeconform::matches_published_schemas)
            .only(Protocol::Http1)
            .since(36),
        once(
            "chart: it is installed, upgraded and uninstalled",
            installed::release_lifecycle,
        ),
        once(
            "chart: its service accounts have only the required permissions",
            rbac::granted_rights_are_used,
        )
        // Before, there are no PodGroups to list.
        .since(37),
        // The base is that of the newest version.
        once("chart: the kustomize base is accepted", kustomize::applied).since(36),
    ]
}

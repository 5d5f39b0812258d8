//! The chart, with the real helm: what it renders, what it installs, and what it grants.
//!
//! There is no kubelet, so the pods of the Deployments do not run: what is looked at is that every object is accepted,
//! without a warning. Where processes are asked for, they run beside the cluster, by the accounts of the chart.

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

/// What needs no cluster.
pub fn trials_without_cluster() -> Vec<StandaloneTrial> {
    let mut all = rendered::trials_without_cluster();
    all.extend(agreement::trials_without_cluster());
    all.extend(kustomize::trials_without_cluster());
    all
}

pub fn scenarios() -> Vec<Scenario> {
    // Each has a cluster of its own: on that of the other trials the objects of the chart are there already.
    let once = |name: &'static str, run: fn()| {
        let run = move |_: &mut Fixture, _| run();
        Scenario::new(name, run).only(Protocol::Http1)
    };
    let shapes = "chart: its output matches the schemas of the API server";
    vec![
        Scenario::new(shapes, kubeconform::matches_published_schemas).only(Protocol::Http1),
        once(
            "chart: it is installed, upgraded and uninstalled",
            installed::release_lifecycle,
        ),
        once(
            "chart: its service accounts have only the required permissions",
            rbac::granted_rights_are_used,
        ),
        once("chart: the kustomize base is accepted", kustomize::applied),
    ]
}

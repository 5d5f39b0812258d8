//! The chart, with the real helm: what it renders, what it installs, and what it grants.
//!
//! There is no kubelet, so the pods of the Deployments do not run: what is looked at is that every object is accepted,
//! without a warning. Where processes are asked for, they run beside the cluster, by the accounts of the chart.

mod agreement;
mod granted;
mod installed;
mod kustomize;
mod rendered;
mod shapes;

use super::Scenario;
use super::alone::Alone;
use crate::lockkeeper::Protocol;
use crate::stage::Stage;

/// What needs no cluster.
pub fn alone() -> Vec<Alone> {
    let mut all = rendered::alone();
    all.extend(agreement::alone());
    all.extend(kustomize::alone());
    all
}

pub fn scenarios() -> Vec<Scenario> {
    // Each has a cluster of its own: on that of the other trials the objects of the chart are there already.
    let once = |name: &'static str, run: fn()| {
        let run = move |_: &mut Stage, _| run();
        Scenario::new(name, run).only(Protocol::Http1)
    };
    let shapes = "chart: what it renders has the shape that the API server publishes";
    vec![
        Scenario::new(shapes, shapes::published).only(Protocol::Http1),
        once(
            "chart: it is installed, upgraded and taken away",
            installed::life,
        ),
        once(
            "chart: its accounts may do what they ask for and no more",
            granted::least,
        ),
        once("chart: the kustomize base is accepted", kustomize::applied),
    ]
}

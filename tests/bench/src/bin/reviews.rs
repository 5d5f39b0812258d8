//! Handles one review repeatedly without a socket, for counting instructions with valgrind.
//!
//! `reviews PATH FILE COUNT [STORED]`: PATH is /validate, /mutate or /noop, FILE has a review. Other objects are those of
//! tests/bench/world, in which the reviewed objects have no findings unless they are invalid. With `--unresolved` they are
//! those of tests/bench/world-unresolved: a ClusterQueue then gets a warning for each flavor, and audit findings for its
//! limits. With `--distinct` no pod template is decoded twice.

use anyhow::{Context, Result, ensure};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use clap::Parser;
use http_body_util::BodyExt;
use lockkeeper_policies::cluster_view::{
    ObjectName, PodPreemptionLabels, PodPriority, PreemptibleLabel, PriorityClassFacts,
};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Facts, Index};
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::{noop_router, router};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tower::ServiceExt;

/// The files of tests/bench/world.
const WORLD: [&str; 5] = [
    include_str!("../../world/clusterqueue.yaml"),
    include_str!("../../world/cohort.yaml"),
    include_str!("../../world/localqueue.yaml"),
    include_str!("../../world/priorityclasses.yaml"),
    include_str!("../../world/resourceflavors.yaml"),
];

/// The files of tests/bench/world-unresolved.
const UNRESOLVED_WORLD: [&str; 2] = [
    include_str!("../../world-unresolved/priorityclasses.yaml"),
    include_str!("../../world-unresolved/queue-of-other-flavor.yaml"),
];

/// The start of the images in the reviews.
const IMAGES: &str = "registry.example.com/";

/// The pods of one job.
const PODS_PER_JOB: usize = 8;

/// The largest body that is read, in bytes.
const BODY_LIMIT_BYTES: usize = 1024 * 1024;

/// Handle one review repeatedly
#[derive(Parser)]
struct Arguments {
    /// The path: /validate, /mutate or /noop
    path: String,
    /// The file with the review
    review: PathBuf,
    /// How many times
    count: usize,
    /// Further objects of each kind in the stores
    #[arg(default_value_t = 0)]
    stored: usize,
    /// Use a world without the flavors that the reviews name
    #[arg(long)]
    unresolved: bool,
    /// Use other images in each review, so that no pod template has been decoded before
    #[arg(long)]
    distinct: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let shown = arguments.review.display();
    let body = std::fs::read(&arguments.review).with_context(|| format!("cannot read {shown}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(answer(&arguments, &body))
}

async fn answer(arguments: &Arguments, body: &[u8]) -> Result<()> {
    let mut index = cluster_view(arguments.unresolved)?;
    fill(&mut index, arguments.stored);
    let app = AppState::offline(Settings::default(), index, BODY_LIMIT_BYTES);
    let app = Arc::new(app);
    let noop = noop_router(Arc::clone(&app), Arc::default(), Arc::default());
    let router = router(app).merge(noop);
    for number in 0..arguments.count {
        let request = Request::post(&arguments.path).header("Content-Type", "application/json");
        let body = if arguments.distinct {
            with_images(body, number)?
        } else {
            body.to_vec()
        };
        let request = request.body(Body::from(body))?;
        let response = router.clone().oneshot(request).await?;
        ensure!(
            response.status() == StatusCode::OK,
            "answered with {}",
            response.status()
        );
        response.into_body().collect().await?;
    }
    Ok(())
}

/// A review whose images have a number.
fn with_images(body: &[u8], number: usize) -> Result<Vec<u8>> {
    let text = std::str::from_utf8(body)?.replace(IMAGES, &format!("{IMAGES}{number}/"));
    Ok(text.into_bytes())
}

/// The objects of one of the worlds.
fn cluster_view(is_unresolved: bool) -> Result<Index> {
    let world: &[&str] = if is_unresolved {
        &UNRESOLVED_WORLD
    } else {
        &WORLD
    };
    let mut index = Index::default();
    for text in world {
        for object in serde_saphyr::from_multiple::<Value>(text)? {
            facts::ingest(&mut index, &object)?;
        }
    }
    Ok(index)
}

/// As many objects of each kind that rules look up. All Workloads use one class.
fn fill(index: &mut Index, count: usize) {
    for number in 0..count {
        let named = |namespace: &str, name| ObjectName {
            namespace: namespace.to_owned(),
            name: format!("{name}-{number}"),
        };
        let class = PriorityClassFacts {
            value: 100,
            global_default: false,
            preemption_policy: None,
        };
        index.apply(named("", "class"), Facts::PriorityClass(class));
        let workload = facts::workload_facts([Some("high"), None], false);
        index.apply(named("team", "workload"), workload);
        let pod = Facts::Pod {
            job: Some(format!("trainer-{}", number / PODS_PER_JOB)),
            quota: None,
            labels: PodPreemptionLabels {
                preemptible: PreemptibleLabel::Missing,
                can_preempt: true,
                priority: PodPriority::Unknown,
            },
        };
        index.apply(named("team", "pod"), pod);
    }
}

//! Follows the workloads: ends those that have run for their time, and notes how long each waited.

use crate::generator::Generator;
use crate::objects::NAMESPACE;
use crate::workload_status::WorkloadStatusView;
use anyhow::{Error, bail};
use futures_util::StreamExt;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Ends under way at once: those of Kueue's runner.
const CONCURRENT_FINISHES_MAX: usize = 5;

/// Delay between a patch that conflicts and the next one.
const CONFLICT_RETRY_DELAY: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Progress {
    /// By name: the class, when it was seen first, admitted last (and which time), and ended.
    workloads: BTreeMap<String, WorkloadProgress>,
    admissions: usize,
    evictions: usize,
    ended: usize,
}

struct WorkloadProgress {
    class: String,
    first_seen_at: Instant,
    first_admitted: Option<Instant>,
    is_admitted: bool,
    runs: usize,
    has_ended: bool,
    /// The last observed state.
    version: String,
    conditions: Vec<Value>,
}

pub struct ProgressWatch {
    progress: Arc<Mutex<Progress>>,
    total: usize,
    finishes_workloads: bool,
}

impl ProgressWatch {
    pub fn start(client: &Client, generator: &Generator, finishes_workloads: bool) -> Self {
        let progress = Arc::new(Mutex::new(Progress::default()));
        let api: Api<WorkloadStatusView> = Api::namespaced(client.clone(), NAMESPACE);
        let places = Arc::new(Semaphore::new(CONCURRENT_FINISHES_MAX));
        let shared = Arc::clone(&progress);
        tokio::spawn(async move {
            let config = Config::default();
            let mut events = pin!(watcher(api.clone(), config).default_backoff());
            while let Some(event) = events.next().await {
                let Ok(Event::Apply(object) | Event::InitApply(object)) = event else {
                    continue;
                };
                if let Some((run, runtime)) = record(&shared, &object)
                    && finishes_workloads
                {
                    let (api, places, shared) =
                        (api.clone(), Arc::clone(&places), Arc::clone(&shared));
                    let name = object.name_any();
                    tokio::spawn(async move {
                        tokio::time::sleep(runtime).await;
                        finish_workload(&api, &places, &shared, &name, run).await;
                    });
                }
            }
        });
        Self {
            progress,
            total: generator.total(),
            finishes_workloads,
        }
    }

    /// Waits until all have finished (or were admitted, if none finishes), and prints the observed times.
    pub async fn finish(self, begun: Instant, patience: Duration) -> Result<(), Error> {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            let admitted = progress.workloads.values();
            let admitted = admitted.filter(|it| it.first_admitted.is_some()).count();
            let done = if self.finishes_workloads {
                progress.ended
            } else {
                admitted
            };
            if done >= self.total {
                print(&progress, begun, self.total);
                return Ok(());
            }
            if begun.elapsed() > patience {
                print(&progress, begun, done);
                bail!("{done} of {} in {patience:?}", self.total);
            }
        }
    }
}

fn print(progress: &Progress, begun: Instant, done: usize) {
    let wall = begun.elapsed().as_secs_f64();
    println!("wall_s {wall:.1}");
    println!("done {done}");
    println!(
        "admissions {} evictions {}",
        progress.admissions, progress.evictions
    );
    let first = progress
        .workloads
        .values()
        .filter_map(|it| it.first_admitted)
        .min();
    let last = progress
        .workloads
        .values()
        .filter_map(|it| it.first_admitted)
        .max();
    if let (Some(first), Some(last)) = (first, last) {
        #[allow(clippy::cast_precision_loss, reason = "a rate")]
        let rate = progress.admissions as f64 / (last - first).as_secs_f64().max(0.001);
        println!("admissions_per_s {rate:.1}");
    }
    let mut by_class: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in progress.workloads.values() {
        if let Some(at) = one.first_admitted {
            let waited = (at - one.first_seen_at).as_secs_f64();
            by_class.entry(&one.class).or_default().push(waited);
        }
    }
    for (class, mut waits) in by_class {
        waits.sort_by(f64::total_cmp);
        #[allow(clippy::cast_precision_loss, reason = "a mean")]
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let at = |share: usize| waits.get((waits.len() - 1) * share / 100).copied();
        println!(
            "to_admission_s {class} mean {mean:.1} p50 {:.1} p90 {:.1} max {:.1}",
            at(50).unwrap_or_default(),
            at(90).unwrap_or_default(),
            at(100).unwrap_or_default()
        );
    }
}

/// Records the changes of a workload; returns the run that starts, and its duration.
fn record(progress: &Mutex<Progress>, object: &WorkloadStatusView) -> Option<(usize, Duration)> {
    let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let labels = object.labels();
    let class = labels.get("class").cloned().unwrap_or_default();
    let one = progress.workloads.entry(object.name_any());
    let one = one.or_insert_with(|| WorkloadProgress {
        class,
        first_seen_at: now,
        first_admitted: None,
        is_admitted: false,
        runs: 0,
        has_ended: false,
        version: String::new(),
        conditions: Vec::new(),
    });
    one.version = object.resource_version().unwrap_or_default();
    one.conditions = object.conditions().to_vec();
    let is_admitted = object.is("Admitted") && !object.is("Evicted");
    let was_admitted = std::mem::replace(&mut one.is_admitted, is_admitted);
    if was_admitted && !is_admitted {
        progress.evictions += 1;
        return None;
    }
    if was_admitted || !is_admitted || one.has_ended {
        return None;
    }
    one.first_admitted.get_or_insert(now);
    one.runs += 1;
    let run = one.runs;
    progress.admissions += 1;
    let runtime = labels.get("runtime-ms").and_then(|it| it.parse().ok());
    Some((run, Duration::from_millis(runtime.unwrap_or(0))))
}

/// Finishes a run as a controller does: by a merge patch of the status, with the resource version as a precondition.
async fn finish_workload(
    api: &Api<WorkloadStatusView>,
    places: &Semaphore,
    progress: &Mutex<Progress>,
    name: &str,
    run: usize,
) {
    let Ok(_place) = places.acquire().await else {
        return;
    };
    for _ in 0..10 {
        let patch = {
            let progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            let one = progress.workloads.get(name);
            match one {
                Some(one) if one.is_admitted && one.runs == run && !one.has_ended => {
                    finished_patch(&one.version, &one.conditions)
                }
                _ => return,
            }
        };
        let by = PatchParams::default();
        let ended = api.patch_status(name, &by, &Patch::Merge(&patch)).await;
        if ended.is_ok() {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(one) = progress.workloads.get_mut(name)
                && !one.has_ended
            {
                one.has_ended = true;
                progress.ended += 1;
            }
            return;
        }
        // The write conflicts: the watch reports the newer version.
        tokio::time::sleep(CONFLICT_RETRY_DELAY).await;
    }
}

fn finished_patch(version: &str, conditions: &[Value]) -> Value {
    let mut conditions = conditions.to_vec();
    conditions.push(json!({
        "type": "Finished", "status": "True", "reason": "Succeeded", "message": "it has run",
        "lastTransitionTime": now(),
    }));
    json!({
        "metadata": {"resourceVersion": version},
        "status": {"conditions": conditions},
    })
}

fn now() -> String {
    let now = k8s_openapi::jiff::Timestamp::now();
    format!("{now:.0}")
}

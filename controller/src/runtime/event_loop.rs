//! The loop: inputs in, a decision, writes out.

use super::RunError;
use super::leader_election::{self, LeaderUntil, LeaseSettings};
use super::metrics::Metrics;
use super::watch::{job_resource, start_watch};
use super::write_log::{log_dry_run, log_result};
use super::writer::execute;
use crate::job_adapters::KINDS;
use crate::{
    Input, Kind, ObjectRef, Reconciler, Settings, WriteId, WritePurpose, WriteRequest, WriteResult,
};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Inputs that may wait: then the watches do.
const INPUTS_MAX: usize = 512;

/// Longest for one write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

/// How often the cluster is asked whether it has more kinds of jobs.
const KIND_DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// Longest without a look, when nothing happens.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// How the controller runs.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// What is decided by. The kinds of jobs are found out.
    pub reconciler: Settings,
    /// The lease; without one it leads from the start.
    pub lease: Option<LeaseSettings>,
    /// Whether writes are only reported.
    pub is_dry_run: bool,
    /// Longest to wait for writes that are under way when it is told to stop.
    pub shutdown: Duration,
}

/// What probes and scrapers see of a running controller.
#[derive(Clone)]
pub struct Health {
    shared: Arc<HealthShared>,
}

struct HealthShared {
    status: Mutex<HealthStatus>,
    /// Who asks for metrics.
    metrics_requests: Sender<tokio::sync::oneshot::Sender<String>>,
}

#[derive(Clone, Copy, Debug)]
struct HealthStatus {
    is_synced: bool,
    /// The last time the loop came round.
    last_iteration: Instant,
}

/// A loop that has not come round for this long is stuck.
const STUCK_AFTER: Duration = Duration::from_mins(1);

impl Health {
    /// Whether all that there is was seen once. Who waits for the lease is ready, too.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status().is_synced && self.is_alive()
    }

    /// Whether the loop goes on.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.status().last_iteration.elapsed() < STUCK_AFTER
    }

    /// The metrics as text, in the format of `OpenMetrics`; `None` if the controller has stopped.
    pub async fn metrics(&self) -> Option<String> {
        let (answer, text) = tokio::sync::oneshot::channel();
        self.shared.metrics_requests.send(answer).await.ok()?;
        text.await.ok()
    }

    fn status(&self) -> HealthStatus {
        let status = self.shared.status.lock();
        *status.unwrap_or_else(PoisonError::into_inner)
    }

    fn record_iteration(&self, is_synced: bool) {
        let status = self.shared.status.lock();
        *status.unwrap_or_else(PoisonError::into_inner) = HealthStatus {
            is_synced,
            last_iteration: Instant::now(),
        };
    }
}

/// Runs until `stopped` resolves. `started` gets what probes ask.
///
/// # Errors
///
/// A [`RunError`] if it cannot begin. Once it runs, it goes on whatever happens.
pub async fn run(
    client: Client,
    settings: RunSettings,
    started: impl FnOnce(Health),
    stopped: impl Future<Output = ()>,
) -> Result<(), RunError> {
    if let Some(lease) = &settings.lease {
        leader_election::check_access(&client, lease).await?;
    }
    let (asks, asked) = mpsc::channel(4);
    let health = Health {
        shared: Arc::new(HealthShared {
            status: Mutex::new(HealthStatus {
                is_synced: false,
                last_iteration: Instant::now(),
            }),
            metrics_requests: asks,
        }),
    };
    started(health.clone());
    let mut reconciler = settings.reconciler.clone();
    reconciler.job_kinds = (0..KINDS.len()).filter(|at| is_built_in(*at)).collect();
    let (inputs, from_watches) = mpsc::channel(INPUTS_MAX);
    for kind in Kind::FIXED {
        start_watch(&client, kind, inputs.clone());
    }
    for at in 0..KINDS.len() {
        if is_built_in(at) {
            start_watch(&client, Kind::Job(at), inputs.clone());
        } else {
            watch_when_installed(&client, at, inputs.clone());
        }
    }
    let (answers, from_writes) = mpsc::unbounded_channel();
    let (lead, keeper) = match settings.lease {
        Some(lease) => {
            let (lead, keeper) = leader_election::start_election(&client, lease);
            (Some(lead), Some(keeper))
        }
        None => (None, None),
    };
    let shell = EventLoop {
        reconciler: Reconciler::new(reconciler),
        client,
        health,
        metrics: Metrics::new(),
        results: answers,
        leader_until: lead,
        is_leading: false,
        is_dry_run: settings.is_dry_run,
        unobserved_writes: BTreeMap::new(),
    };
    shell
        .run(from_watches, from_writes, asked, stopped, settings.shutdown)
        .await;
    if let Some(keeper) = keeper {
        keeper.release().await;
    }
    Ok(())
}

fn is_built_in(at: usize) -> bool {
    KINDS.get(at).is_some_and(|it| it.is_built_in())
}

/// What became of a write, and how long it took.
struct FinishedWrite {
    id: WriteId,
    purpose: WritePurpose,
    object: ObjectRef,
    result: WriteResult,
    duration: Duration,
}

struct EventLoop {
    reconciler: Reconciler,
    client: Client,
    health: Health,
    metrics: Metrics,
    results: mpsc::UnboundedSender<FinishedWrite>,
    /// `None` leads always.
    leader_until: Option<LeaderUntil>,
    is_leading: bool,
    is_dry_run: bool,
    /// Workloads that were written: the version, and when that was answered.
    unobserved_writes: BTreeMap<ObjectRef, (u64, Instant)>,
}

impl EventLoop {
    async fn run(
        mut self,
        mut from_watches: Receiver<Input>,
        mut from_writes: mpsc::UnboundedReceiver<FinishedWrite>,
        mut asked: Receiver<tokio::sync::oneshot::Sender<String>>,
        stopped: impl Future<Output = ()>,
        shutdown: Duration,
    ) {
        let mut stopped = std::pin::pin!(stopped);
        let mut batch = Vec::new();
        let mut wake = Instant::now();
        loop {
            let lead_ends = self.update_leadership();
            let until = wake.min(lead_ends.unwrap_or(wake));
            tokio::select! {
                biased;
                () = &mut stopped => break,
                _ = from_watches.recv_many(&mut batch, INPUTS_MAX) => {}
                Some(answered) = from_writes.recv() => self.handle_result(answered),
                Some(ask) = asked.recv() => {
                    // Who asked may have gone.
                    let _ = ask.send(self.metrics.encode_text(&self.reconciler));
                    continue;
                }
                () = leadership_changed(&mut self.leader_until) => {}
                () = sleep_until(until) => {}
            }
            while let Ok(answered) = from_writes.try_recv() {
                self.handle_result(answered);
            }
            for input in batch.drain(..) {
                self.observe_watch_lag(&input);
                self.reconciler.handle_input(now_ms(), input);
            }
            self.update_leadership();
            wake = self.poll();
            self.health.record_iteration(self.reconciler.is_synced());
        }
        self.drain(from_writes, shutdown).await;
    }

    /// Nothing new is begun; what is under way is waited for.
    async fn drain(
        mut self,
        mut from_writes: mpsc::UnboundedReceiver<FinishedWrite>,
        shutdown: Duration,
    ) {
        let end = Instant::now() + shutdown;
        while self.reconciler.in_flight_writes() > 0 {
            tokio::select! {
                Some(answered) = from_writes.recv() => self.handle_result(answered),
                () = sleep_until(end) => {
                    let left = self.reconciler.in_flight_writes();
                    tracing::warn!(writes = left, "stopped with writes under way");
                    break;
                }
            }
        }
    }

    /// Decides, and begins what is to be written; says when to decide again.
    fn poll(&mut self) -> Instant {
        let begun = Instant::now();
        let now_ms = now_ms();
        let output = self.reconciler.poll(now_ms);
        self.metrics
            .record_cycles(&mut self.reconciler, begun.elapsed());
        for write in output.writes {
            self.start_write(write);
        }
        let rest = output.wake_at_ms.map_or(IDLE_MAX, |at_ms| {
            let pause = u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0);
            Duration::from_millis(pause).min(IDLE_MAX)
        });
        Instant::now() + rest
    }

    fn start_write(&self, write: WriteRequest) {
        if self.is_dry_run {
            log_dry_run(&write);
            self.send_result(&write, WriteResult::DryRun, Duration::ZERO);
            return;
        }
        // Writes stop before the lease does.
        let left = self.leading_until().map(|until| until - Instant::now());
        let limit = left.map_or(WRITE_TIMEOUT, |left| left.min(WRITE_TIMEOUT));
        if limit.is_zero() {
            let outcome = WriteResult::Failed("the lease has run out".to_owned());
            self.send_result(&write, outcome, Duration::ZERO);
            return;
        }
        let (client, answers) = (self.client.clone(), self.results.clone());
        tokio::spawn(async move {
            let begun = Instant::now();
            let outcome = execute(&client, &write, limit).await;
            log_result(&write, &outcome);
            let _ = answers.send(FinishedWrite {
                id: write.id,
                purpose: write.purpose,
                object: write.object,
                result: outcome,
                duration: begun.elapsed(),
            });
        });
    }

    fn send_result(&self, write: &WriteRequest, outcome: WriteResult, took: Duration) {
        let _ = self.results.send(FinishedWrite {
            id: write.id,
            purpose: write.purpose,
            object: write.object.clone(),
            result: outcome,
            duration: took,
        });
    }

    fn handle_result(&mut self, it: FinishedWrite) {
        self.metrics
            .record_write(it.purpose, &it.result, it.duration);
        if let (ObjectRef::Workload(_), WriteResult::Done(version)) = (&it.object, &it.result) {
            if self.reconciler.has_observed(&it.object, *version) {
                self.metrics.record_watch_lag(Duration::ZERO);
            } else {
                self.unobserved_writes
                    .insert(it.object.clone(), (*version, Instant::now()));
            }
        }
        let input = Input::WriteFinished(it.id, it.result);
        self.reconciler.handle_input(now_ms(), input);
    }

    /// How far the watch is behind what was written.
    fn observe_watch_lag(&mut self, input: &Input) {
        let Input::Workload(change) = input else {
            return;
        };
        let (name, version) = match change {
            crate::Change::Deleted(name) => (name.clone(), u64::MAX),
            crate::Change::Applied(it) => {
                let version = it.metadata.resource_version.as_deref();
                let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
                (crate::ObjectKey::from_metadata(&it.metadata), version)
            }
        };
        let target = ObjectRef::Workload(name);
        if let Some((written, at)) = self.unobserved_writes.get(&target).copied()
            && version >= written
        {
            self.metrics.record_watch_lag(at.elapsed());
            self.unobserved_writes.remove(&target);
        }
    }

    /// Until when this process leads, if that is limited.
    fn leading_until(&self) -> Option<Instant> {
        self.leader_until.as_ref().and_then(|lead| *lead.borrow())
    }

    /// Tells the reconciler whether it may write; says when to look again.
    fn update_leadership(&mut self) -> Option<Instant> {
        let until = self.leading_until();
        let leads =
            self.leader_until.is_none() || until.is_some_and(|until| until > Instant::now());
        if leads != self.is_leading {
            self.is_leading = leads;
            let word = if leads { "leading" } else { "not leading" };
            tracing::info!("{word}");
            self.metrics.set_leading(leads);
            self.reconciler
                .handle_input(now_ms(), Input::Leadership(leads));
        }
        until.filter(|_| leads)
    }
}

/// Follows a kind of job as soon as the cluster has it.
fn watch_when_installed(client: &Client, at: usize, inputs: Sender<Input>) {
    let client = client.clone();
    let resource = job_resource(at);
    tokio::spawn(async move {
        while !inputs.is_closed() {
            let asked = client.list_api_group_resources(&resource.api_version);
            if let Ok(Ok(list)) = timeout(KIND_DISCOVERY_INTERVAL, asked).await
                && list.resources.iter().any(|it| it.name == resource.plural)
            {
                tracing::info!(kind = %resource.kind, "the cluster has this kind of job");
                // Who does not listen has stopped.
                let _ = inputs.send(Input::JobKindAvailable(at)).await;
                start_watch(&client, Kind::Job(at), inputs);
                return;
            }
            sleep(KIND_DISCOVERY_INTERVAL).await;
        }
    });
}

/// Resolves when there is news of the lease; never, if there is none.
async fn leadership_changed(lead: &mut Option<LeaderUntil>) {
    let is_news = match lead {
        Some(lead) => lead.changed().await.is_ok(),
        None => false,
    };
    if !is_news {
        std::future::pending::<()>().await;
    }
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

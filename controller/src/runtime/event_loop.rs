//! The event loop: feeds inputs to the reconciler and starts its writes.

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

/// The size of the input channel; when it is full, the watches wait.
const INPUTS_MAX: usize = 512;

/// The timeout of one write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

/// How often discovery looks for further kinds of jobs.
const KIND_DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// The longest pause between two polls.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Settings of the controller process.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Settings of the reconciler; `job_kinds` is replaced by discovery.
    pub reconciler: Settings,
    /// Leader election; without it this process leads from the start.
    pub lease: Option<LeaseSettings>,
    /// Log writes instead of sending them.
    pub is_dry_run: bool,
    /// The longest wait for in-flight writes at shutdown.
    pub shutdown: Duration,
}

/// A handle on the running controller, for probes and metrics.
#[derive(Clone)]
pub struct Health {
    shared: Arc<HealthShared>,
}

struct HealthShared {
    status: Mutex<HealthStatus>,
    /// Requests for metrics, with the channel for the response.
    metrics_requests: Sender<tokio::sync::oneshot::Sender<String>>,
}

#[derive(Clone, Copy, Debug)]
struct HealthStatus {
    is_synced: bool,
    /// The time of the last iteration of the event loop.
    last_iteration: Instant,
}

/// An event loop without an iteration for this long is stuck.
const STUCK_AFTER: Duration = Duration::from_mins(1);

impl Health {
    /// Whether the initial lists are complete. A replica that waits for the lease is ready, too.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status().is_synced && self.is_alive()
    }

    /// Whether the event loop still iterates.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.status().last_iteration.elapsed() < STUCK_AFTER
    }

    /// The metrics in the `OpenMetrics` text format; `None` if the controller has stopped.
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

/// Runs the controller until `stopped` resolves. `started` receives the handle for probes.
///
/// # Errors
///
/// A [`RunError`] if the controller cannot start. Once it runs, it retries after every error.
pub async fn run(
    client: Client,
    settings: RunSettings,
    started: impl FnOnce(Health),
    stopped: impl Future<Output = ()>,
) -> Result<(), RunError> {
    if let Some(lease) = &settings.lease {
        leader_election::check_access(&client, lease).await?;
    }
    let (requests, metrics_requests) = mpsc::channel(4);
    let health = Health {
        shared: Arc::new(HealthShared {
            status: Mutex::new(HealthStatus {
                is_synced: false,
                last_iteration: Instant::now(),
            }),
            metrics_requests: requests,
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
    let (results, from_writes) = mpsc::unbounded_channel();
    let (leader_until, elector) = match settings.lease {
        Some(lease) => {
            let (until, elector) = leader_election::start_election(&client, lease);
            (Some(until), Some(elector))
        }
        None => (None, None),
    };
    let event_loop = EventLoop {
        reconciler: Reconciler::new(reconciler),
        client,
        health,
        metrics: Metrics::new(),
        results,
        leader_until,
        is_leading: false,
        is_dry_run: settings.is_dry_run,
        unobserved_writes: BTreeMap::new(),
    };
    event_loop
        .run(
            from_watches,
            from_writes,
            metrics_requests,
            stopped,
            settings.shutdown,
        )
        .await;
    // After the last write, so that the next leader does not write at the same time.
    if let Some(elector) = elector {
        elector.release().await;
    }
    Ok(())
}

fn is_built_in(at: usize) -> bool {
    KINDS.get(at).is_some_and(|it| it.is_built_in())
}

/// The result of a write, and how long it took.
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
    /// `None` without leader election: this process always leads.
    leader_until: Option<LeaderUntil>,
    is_leading: bool,
    is_dry_run: bool,
    /// Written workloads that the watch has not shown yet: the version, and the time of the response.
    unobserved_writes: BTreeMap<ObjectRef, (u64, Instant)>,
}

impl EventLoop {
    async fn run(
        mut self,
        mut from_watches: Receiver<Input>,
        mut from_writes: mpsc::UnboundedReceiver<FinishedWrite>,
        mut metrics_requests: Receiver<tokio::sync::oneshot::Sender<String>>,
        stopped: impl Future<Output = ()>,
        shutdown: Duration,
    ) {
        let mut stopped = std::pin::pin!(stopped);
        let mut batch = Vec::new();
        let mut wake = Instant::now();
        loop {
            let lead_ends = self.update_leadership();
            // Wakes at the end of the lease, too: a leader whose renewals fail gets no event.
            let until = wake.min(lead_ends.unwrap_or(wake));
            tokio::select! {
                biased;
                () = &mut stopped => break,
                _ = from_watches.recv_many(&mut batch, INPUTS_MAX) => {}
                Some(finished) = from_writes.recv() => self.handle_result(finished),
                Some(response) = metrics_requests.recv() => {
                    // The client may have disconnected.
                    let _ = response.send(self.metrics.encode_text(&self.reconciler));
                    continue;
                }
                () = leadership_changed(&mut self.leader_until) => {}
                () = sleep_until(until) => {}
            }
            while let Ok(finished) = from_writes.try_recv() {
                self.handle_result(finished);
            }
            for input in batch.drain(..) {
                self.observe_watch_lag(&input);
                self.reconciler.handle_input(now_ms(), input);
            }
            // The lease may have ended while the batch was handled.
            self.update_leadership();
            wake = self.poll();
            self.health.record_iteration(self.reconciler.is_synced());
        }
        self.drain(from_writes, shutdown).await;
    }

    /// Waits for the in-flight writes without starting new ones.
    async fn drain(
        mut self,
        mut from_writes: mpsc::UnboundedReceiver<FinishedWrite>,
        shutdown: Duration,
    ) {
        let end = Instant::now() + shutdown;
        while self.reconciler.in_flight_writes() > 0 {
            tokio::select! {
                Some(finished) = from_writes.recv() => self.handle_result(finished),
                () = sleep_until(end) => {
                    let writes = self.reconciler.in_flight_writes();
                    tracing::warn!(writes, "stopped with in-flight writes");
                    break;
                }
            }
        }
    }

    /// Polls the reconciler and starts its writes; returns the time of the next poll.
    fn poll(&mut self) -> Instant {
        let begun = Instant::now();
        let now_ms = now_ms();
        let output = self.reconciler.poll(now_ms);
        self.metrics
            .record_cycles(&mut self.reconciler, begun.elapsed());
        for write in output.writes {
            self.start_write(write);
        }
        let pause = output.wake_at_ms.map_or(IDLE_MAX, |at_ms| {
            let pause = u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0);
            Duration::from_millis(pause).min(IDLE_MAX)
        });
        Instant::now() + pause
    }

    fn start_write(&self, write: WriteRequest) {
        if self.is_dry_run {
            log_dry_run(&write);
            self.send_result(&write, WriteResult::DryRun, Duration::ZERO);
            return;
        }
        // Writes end before the leadership does: a new leader must not race with a late write.
        let remaining = self.leading_until().map(|until| until - Instant::now());
        let limit = remaining.map_or(WRITE_TIMEOUT, |it| it.min(WRITE_TIMEOUT));
        if limit.is_zero() {
            let outcome = WriteResult::Failed("the lease has expired".to_owned());
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

    fn handle_result(&mut self, finished: FinishedWrite) {
        self.metrics
            .record_write(finished.purpose, &finished.result, finished.duration);
        if let (ObjectRef::Workload(_), WriteResult::Done(version)) =
            (&finished.object, &finished.result)
        {
            // The watch may deliver the object before the response arrives.
            if self.reconciler.has_observed(&finished.object, *version) {
                self.metrics.record_watch_lag(Duration::ZERO);
            } else {
                self.unobserved_writes
                    .insert(finished.object.clone(), (*version, Instant::now()));
            }
        }
        let input = Input::WriteFinished(finished.id, finished.result);
        self.reconciler.handle_input(now_ms(), input);
    }

    /// Records the time from the response to a write until the watch shows it.
    fn observe_watch_lag(&mut self, input: &Input) {
        let Input::Workload(change) = input else {
            return;
        };
        let (name, version) = match change {
            // No further version will arrive.
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

    /// The end of the leadership, if this process leads by a lease.
    fn leading_until(&self) -> Option<Instant> {
        self.leader_until.as_ref().and_then(|lead| *lead.borrow())
    }

    /// Passes changes of the leadership to the reconciler; returns the end of the leadership.
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

/// Watches a kind of job as soon as the cluster has it.
fn watch_when_installed(client: &Client, at: usize, inputs: Sender<Input>) {
    let client = client.clone();
    let resource = job_resource(at);
    tokio::spawn(async move {
        while !inputs.is_closed() {
            let request = client.list_api_group_resources(&resource.api_version);
            if let Ok(Ok(list)) = timeout(KIND_DISCOVERY_INTERVAL, request).await
                && list.resources.iter().any(|it| it.name == resource.plural)
            {
                tracing::info!(kind = %resource.kind, "kind of job found; watching it");
                // Before the watch, so that no decision is written until its list is complete. A closed
                // channel means that the controller has stopped.
                let _ = inputs.send(Input::JobKindAvailable(at)).await;
                start_watch(&client, Kind::Job(at), inputs);
                return;
            }
            sleep(KIND_DISCOVERY_INTERVAL).await;
        }
    });
}

/// Resolves when the leadership changes; never without leader election.
async fn leadership_changed(lead: &mut Option<LeaderUntil>) {
    let has_changed = match lead {
        Some(lead) => lead.changed().await.is_ok(),
        None => false,
    };
    if !has_changed {
        std::future::pending::<()>().await;
    }
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

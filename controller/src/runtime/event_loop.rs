//! The event loop: feeds inputs to the reconciler and starts its writes.

use super::RunError;
use super::decision_log::{DecisionLog, DecisionLogTarget};
use super::declared_watches::DeclaredWatches;
use super::health::{Health, new_health};
use super::job_reader::read_job;
use super::kind_discovery::watch_when_installed;
use super::leader_election::{self, LeadershipWatch, LeaseSettings, write_timeout};
use super::leadership_gate::LeadershipGate;
use super::metrics::Metrics;
use super::watch::{WatchInput, Watches};
use super::write_log::{log_dry_run, log_result};
use super::writer::execute;
use crate::job_adapters::{KINDS, watched_kinds};
use crate::{
    Input, Kind, ObjectRef, Reconciler, Settings, WriteId, WriteOp, WritePurpose, WriteRequest,
    WriteResult,
};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use lockkeeper_kube_support::api_client::{ApiClients, WatchAges};
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The size of the input channel; when it is full, the watches wait.
const INPUTS_MAX: usize = 512;

/// The timeout of one write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

/// The time after which a poll starts no further cycle: inputs, results and metrics wait for it.
const POLL_TIME_MAX: Duration = Duration::from_millis(100);

/// The longest pause between two polls.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Settings of the controller process.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Settings of the reconciler; `job_kinds` and `has_pod_groups` are replaced by discovery.
    pub reconciler: Settings,
    /// Leader election; without it this process leads from the start.
    pub lease: Option<LeaseSettings>,
    /// The largest spec of a job, in bytes.
    pub job_spec_max_bytes: usize,
    /// Log writes instead of sending them.
    pub is_dry_run: bool,
    /// The decision log, if the reconciler has one.
    pub decision_log: Option<DecisionLogTarget>,
    /// The longest wait for in-flight writes at shutdown.
    pub shutdown: Duration,
}

/// Runs the controller until `stopped` resolves. `started` receives the handle for probes.
///
/// # Errors
///
/// A [`RunError`] if the controller cannot start. Once it runs, it retries after every error.
pub async fn run(
    clients: ApiClients,
    settings: RunSettings,
    started: impl FnOnce(Health),
    stopped: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let client = clients.watches.clone();
    if let Some(lease) = &settings.lease {
        leader_election::check_access(&client, lease).await?;
    }
    let (requests, metrics_requests) = mpsc::channel(4);
    let health = new_health(requests);
    started(health.clone());
    let mut reconciler = settings.reconciler.clone();
    // Discovery removes those that the cluster does not have: until then no decision is written, because a job
    // may belong to one of such a kind.
    reconciler.job_kinds = watched_kinds().collect();
    reconciler.has_job_kinds = true;
    reconciler.has_pod_groups = true;
    let (inputs, from_watches) = mpsc::channel(INPUTS_MAX);
    let (lists, current_list) = watch::channel(0);
    let watches = Watches {
        client: client.clone(),
        inputs,
        lists: current_list,
        job_spec_max_bytes: settings.job_spec_max_bytes,
        ages: clients.ages.clone(),
        job_kinds: Arc::default(),
    };
    start_watches(&watches);
    let (results, from_writes) = mpsc::unbounded_channel();
    let pause = settings.lease.as_ref().map(|it| it.timing.duration);
    let gate = LeadershipGate::new(clients.ages.clone(), pause.unwrap_or_default() * 2);
    let (leadership, elector) = match settings.lease {
        Some(lease) => {
            let (leadership, elector) =
                leader_election::start_election(&clients, lease, gate.clone())?;
            (Some(leadership), Some(elector))
        }
        None => (None, None),
    };
    let decision_log = settings.decision_log.map(start_decision_log).transpose()?;
    let event_loop = EventLoop {
        reconciler: Reconciler::new(reconciler),
        client,
        health,
        metrics: Metrics::new(),
        results,
        leadership,
        gate,
        watch_ages: clients.ages,
        lists,
        watches,
        is_watching_nodes: false,
        declared_watches: DeclaredWatches::default(),
        is_leading: false,
        is_dry_run: settings.is_dry_run,
        decision_log,
        unobserved_writes: BTreeMap::new(),
    };
    let is_drained = event_loop
        .run(
            from_watches,
            from_writes,
            metrics_requests,
            stopped,
            settings.shutdown,
        )
        .await;
    // After the last write: the next leader of a released lease does not wait for late writes.
    if let Some(elector) = elector.filter(|_| is_drained) {
        elector.release().await;
    }
    Ok(())
}

fn start_watches(watches: &Watches) {
    for kind in Kind::FIXED {
        watches.start(kind);
    }
    for at in watched_kinds() {
        if is_built_in(at) {
            watches.start(Kind::Job(at));
        } else {
            watch_when_installed(watches.clone(), Kind::Job(at), pending());
        }
    }
    for kind in [Kind::PodGroup, Kind::JobKind] {
        watch_when_installed(watches.clone(), kind, pending());
    }
}

fn start_decision_log(target: DecisionLogTarget) -> Result<DecisionLog, RunError> {
    let file = target.file.clone().unwrap_or_default();
    DecisionLog::start(target).map_err(|why| RunError::DecisionLog {
        file: file.display().to_string(),
        why,
    })
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
    leadership: Option<LeadershipWatch>,
    gate: LeadershipGate,
    watch_ages: WatchAges,
    /// The number of the current list of each kind.
    lists: watch::Sender<u64>,
    watches: Watches,
    /// Whether the kinds that placement reads are watched.
    is_watching_nodes: bool,
    declared_watches: DeclaredWatches,
    is_leading: bool,
    is_dry_run: bool,
    decision_log: Option<DecisionLog>,
    /// Written workloads that the watch has not shown yet: the version, and the time of the response.
    unobserved_writes: BTreeMap<ObjectRef, (u64, Instant)>,
}

impl EventLoop {
    /// Runs until `stopped` resolves; true if no write was in flight at the end.
    async fn run(
        mut self,
        mut from_watches: Receiver<WatchInput>,
        mut from_writes: mpsc::UnboundedReceiver<FinishedWrite>,
        mut metrics_requests: Receiver<tokio::sync::oneshot::Sender<String>>,
        stopped: impl Future<Output = ()>,
        shutdown: Duration,
    ) -> bool {
        let mut stopped = std::pin::pin!(stopped);
        let mut batch = Vec::new();
        let mut wake = Instant::now();
        loop {
            let lead_changes = self.update_leadership();
            // Wakes at the end of the lease, too: a leader whose renewals fail gets no event.
            let until = wake.min(lead_changes.unwrap_or(wake));
            tokio::select! {
                biased;
                () = &mut stopped => break,
                _ = from_watches.recv_many(&mut batch, INPUTS_MAX) => {}
                Some(finished) = from_writes.recv() => self.handle_result(finished),
                Some(response) = metrics_requests.recv() => {
                    // The client may have disconnected.
                    let _ = response.send(self.metrics.encode_text(&self.reconciler, &self.watch_ages));
                    continue;
                }
                () = leadership_changed(&mut self.leadership) => {}
                () = sleep_until(until) => {}
            }
            while let Ok(finished) = from_writes.try_recv() {
                self.handle_result(finished);
            }
            for input in batch.drain(..) {
                self.handle_watch_input(input);
            }
            self.watch_nodes_if_needed();
            // The lease may have ended while the batch was handled.
            self.update_leadership();
            wake = self.poll();
            self.health.record_iteration(self.reconciler.is_synced());
        }
        self.drain(from_writes, shutdown).await
    }

    /// Watches nodes when the first ClusterQueue places workloads on them.
    fn watch_nodes_if_needed(&mut self) {
        if self.is_watching_nodes || !self.reconciler.needs_nodes() {
            return;
        }
        self.is_watching_nodes = true;
        tracing::info!("a ClusterQueue places workloads on nodes; watching nodes");
        for kind in Kind::NODES {
            self.watches.start(kind);
        }
    }

    /// Starts and stops the watches of declared kinds of jobs.
    fn watch_declared_kinds(&mut self) {
        let needs_lists = self
            .declared_watches
            .update(&self.reconciler, &self.watches);
        if needs_lists {
            // Jobs that arrived before may have a parent of the kind.
            self.lists
                .send_modify(|list| *list = list.saturating_add(1));
        }
    }

    /// Waits for the in-flight writes without starting new ones; false if some are still in flight.
    async fn drain(
        mut self,
        mut from_writes: mpsc::UnboundedReceiver<FinishedWrite>,
        shutdown: Duration,
    ) -> bool {
        let end = Instant::now() + shutdown;
        while self.reconciler.in_flight_writes() > 0 {
            tokio::select! {
                Some(finished) = from_writes.recv() => self.handle_result(finished),
                () = sleep_until(end) => {
                    let writes = self.reconciler.in_flight_writes();
                    tracing::warn!(writes, "stopped with in-flight writes");
                    return false;
                }
            }
        }
        true
    }

    /// Polls the reconciler and starts its writes; returns the time of the next poll.
    fn poll(&mut self) -> Instant {
        let begun = Instant::now();
        let now_ms = now_ms();
        let continues = || begun.elapsed() < POLL_TIME_MAX;
        let output = self.reconciler.poll_while(now_ms, continues);
        self.metrics
            .record_cycles(&mut self.reconciler, begun.elapsed());
        for write in output.writes {
            self.start_write(write);
        }
        self.write_decision_log();
        let pause = output.wake_at_ms.map_or(IDLE_MAX, |at_ms| {
            let pause = u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0);
            Duration::from_millis(pause).min(IDLE_MAX)
        });
        Instant::now() + pause
    }

    fn write_decision_log(&mut self) {
        let Some(log) = &mut self.decision_log else {
            return;
        };
        log.send(self.reconciler.take_event_batches());
        if log.take_wants_start() {
            self.reconciler.restart_events();
        }
        self.metrics
            .record_decision_log(log.written_bytes(), log.gaps());
    }

    fn start_write(&self, write: WriteRequest) {
        let is_read = matches!(write.op, WriteOp::ReadJob { .. });
        if self.is_dry_run && !is_read {
            log_dry_run(self.reconciler.job_kinds(), &write);
            self.send_result(&write, WriteResult::DryRun, Duration::ZERO);
            return;
        }
        // Writes end before the leadership does: a new leader must not race with a late write.
        let leadership = self.leadership.as_ref();
        let limit = write_timeout(leadership, WRITE_TIMEOUT, Instant::now());
        if limit.is_zero() {
            let outcome = WriteResult::Failed("the lease has expired".to_owned());
            self.send_result(&write, outcome, Duration::ZERO);
            return;
        }
        let (client, answers) = (self.client.clone(), self.results.clone());
        let kinds = self.reconciler.job_kinds().clone();
        tokio::spawn(async move {
            let begun = Instant::now();
            let outcome = if is_read {
                read_job(&client, &kinds, &write, limit).await
            } else {
                execute(&client, &kinds, &write, limit).await
            };
            log_result(&kinds, &write, &outcome);
            let _ = answers.send(FinishedWrite {
                id: write.id,
                purpose: write.purpose,
                object: write.object,
                result: outcome,
                duration: begun.elapsed(),
            });
        });
    }

    fn handle_watch_input(&mut self, input: WatchInput) {
        if !input.is_outdated(*self.lists.borrow()) {
            self.observe_watch_lag(&input.input);
            let is_declaration = matches!(input.input, Input::JobKind(_));
            self.reconciler.handle_input(now_ms(), input.input);
            if is_declaration {
                self.watch_declared_kinds();
            }
        }
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
        self.gate.record_write(&finished.object, &finished.result);
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

    /// Passes changes of the leadership to the reconciler; returns when it changes if nothing else happens.
    fn update_leadership(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let leadership = self.leadership.as_ref().map(|it| *it.borrow());
        let is_leader = match leadership {
            None => true,
            Some(leadership) => leadership.is_some_and(|it| it.contains(now)),
        };
        // A write from an earlier leadership may still be executed: its result comes first.
        let may_begin = self.is_leading || self.reconciler.in_flight_writes() == 0;
        let leads = is_leader && self.gate.is_open() && may_begin;
        if leads != self.is_leading {
            self.is_leading = leads;
            let word = if leads { "leading" } else { "not leading" };
            tracing::info!("{word}");
            self.metrics.set_leading(leads);
            if leads {
                // Every kind is listed again, and the reconciler waits for that.
                self.lists
                    .send_modify(|list| *list = list.saturating_add(1));
            }
            self.reconciler
                .handle_input(now_ms(), Input::Leadership(leads));
        }
        leadership.flatten()?.next_change(now)
    }
}

/// Resolves when the leadership changes; never without leader election.
async fn leadership_changed(lead: &mut Option<LeadershipWatch>) {
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

//! The loop: inputs in, a decision, writes out.

use super::RunError;
use super::leader::{self, Lead, LeaseSettings};
use super::metrics::Metrics;
use super::report::{log, report};
use super::watch::{follow, job_resource};
use super::write::perform;
use crate::jobs::KINDS;
use crate::{Input, Kind, Outcome, Reconciler, Settings, Target, Ticket, What, Write};
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
const KINDS_EVERY: Duration = Duration::from_secs(30);

/// Longest without a look, when nothing happens.
const REST: Duration = Duration::from_secs(10);

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
    shared: Arc<Shared>,
}

struct Shared {
    status: Mutex<Status>,
    /// Who asks for metrics.
    asks: Sender<tokio::sync::oneshot::Sender<String>>,
}

#[derive(Clone, Copy, Debug)]
struct Status {
    is_synced: bool,
    /// The last time the loop came round.
    beat: Instant,
}

/// A loop that has not come round for this long is stuck.
const STUCK: Duration = Duration::from_mins(1);

impl Health {
    /// Whether all that there is was seen once. Who waits for the lease is ready, too.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status().is_synced && self.is_alive()
    }

    /// Whether the loop goes on.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.status().beat.elapsed() < STUCK
    }

    /// The metrics as text, in the format of `OpenMetrics`; `None` if the controller has stopped.
    pub async fn metrics(&self) -> Option<String> {
        let (answer, text) = tokio::sync::oneshot::channel();
        self.shared.asks.send(answer).await.ok()?;
        text.await.ok()
    }

    fn status(&self) -> Status {
        let status = self.shared.status.lock();
        *status.unwrap_or_else(PoisonError::into_inner)
    }

    fn beat(&self, is_synced: bool) {
        let status = self.shared.status.lock();
        *status.unwrap_or_else(PoisonError::into_inner) = Status {
            is_synced,
            beat: Instant::now(),
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
        leader::check(&client, lease).await?;
    }
    let (asks, asked) = mpsc::channel(4);
    let health = Health {
        shared: Arc::new(Shared {
            status: Mutex::new(Status {
                is_synced: false,
                beat: Instant::now(),
            }),
            asks,
        }),
    };
    started(health.clone());
    let mut reconciler = settings.reconciler.clone();
    reconciler.job_kinds = (0..KINDS.len()).filter(|at| is_built_in(*at)).collect();
    let (inputs, from_watches) = mpsc::channel(INPUTS_MAX);
    for kind in Kind::FIXED {
        follow(&client, kind, inputs.clone());
    }
    for at in 0..KINDS.len() {
        if is_built_in(at) {
            follow(&client, Kind::Job(at), inputs.clone());
        } else {
            look_for_kind(&client, at, inputs.clone());
        }
    }
    let (answers, from_writes) = mpsc::unbounded_channel();
    let (lead, keeper) = match settings.lease {
        Some(lease) => {
            let (lead, keeper) = leader::follow(&client, lease);
            (Some(lead), Some(keeper))
        }
        None => (None, None),
    };
    let shell = Loop {
        reconciler: Reconciler::new(reconciler),
        client,
        health,
        metrics: Metrics::new(),
        answers,
        lead,
        leads: false,
        is_dry_run: settings.is_dry_run,
        written: BTreeMap::new(),
    };
    shell
        .go(from_watches, from_writes, asked, stopped, settings.shutdown)
        .await;
    if let Some(keeper) = keeper {
        keeper.give_back().await;
    }
    Ok(())
}

fn is_built_in(at: usize) -> bool {
    KINDS.get(at).is_some_and(|it| it.is_built_in())
}

/// What became of a write, and how long it took.
struct Answered {
    ticket: Ticket,
    what: What,
    target: Target,
    outcome: Outcome,
    took: Duration,
}

struct Loop {
    reconciler: Reconciler,
    client: Client,
    health: Health,
    metrics: Metrics,
    answers: mpsc::UnboundedSender<Answered>,
    /// `None` leads always.
    lead: Option<Lead>,
    leads: bool,
    is_dry_run: bool,
    /// Workloads that were written: the version, and when that was answered.
    written: BTreeMap<Target, (u64, Instant)>,
}

impl Loop {
    async fn go(
        mut self,
        mut from_watches: Receiver<Input>,
        mut from_writes: mpsc::UnboundedReceiver<Answered>,
        mut asked: Receiver<tokio::sync::oneshot::Sender<String>>,
        stopped: impl Future<Output = ()>,
        shutdown: Duration,
    ) {
        let mut stopped = std::pin::pin!(stopped);
        let mut batch = Vec::new();
        let mut wake = Instant::now();
        loop {
            let lead_ends = self.look_at_lead();
            let until = wake.min(lead_ends.unwrap_or(wake));
            tokio::select! {
                biased;
                () = &mut stopped => break,
                _ = from_watches.recv_many(&mut batch, INPUTS_MAX) => {}
                Some(answered) = from_writes.recv() => self.answered(answered),
                Some(ask) = asked.recv() => {
                    // Who asked may have gone.
                    let _ = ask.send(self.metrics.text(&self.reconciler));
                    continue;
                }
                () = changed(&mut self.lead) => {}
                () = sleep_until(until) => {}
            }
            while let Ok(answered) = from_writes.try_recv() {
                self.answered(answered);
            }
            for input in batch.drain(..) {
                self.see(&input);
                self.reconciler.take(now_ms(), input);
            }
            self.look_at_lead();
            wake = self.next();
            self.health.beat(self.reconciler.is_synced());
        }
        self.finish(from_writes, shutdown).await;
    }

    /// Nothing new is begun; what is under way is waited for.
    async fn finish(
        mut self,
        mut from_writes: mpsc::UnboundedReceiver<Answered>,
        shutdown: Duration,
    ) {
        let end = Instant::now() + shutdown;
        while self.reconciler.writes_under_way() > 0 {
            tokio::select! {
                Some(answered) = from_writes.recv() => self.answered(answered),
                () = sleep_until(end) => {
                    let left = self.reconciler.writes_under_way();
                    tracing::warn!(writes = left, "stopped with writes under way");
                    break;
                }
            }
        }
    }

    /// Decides, and begins what is to be written; says when to decide again.
    fn next(&mut self) -> Instant {
        let begun = Instant::now();
        let now_ms = now_ms();
        let output = self.reconciler.next(now_ms);
        self.metrics.decided(&mut self.reconciler, begun.elapsed());
        for write in output.writes {
            self.begin(write);
        }
        let rest = output.wake_at_ms.map_or(REST, |at_ms| {
            let pause = u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0);
            Duration::from_millis(pause).min(REST)
        });
        Instant::now() + rest
    }

    fn begin(&self, write: Write) {
        if self.is_dry_run {
            report(&write);
            self.tell(&write, Outcome::DryRun, Duration::ZERO);
            return;
        }
        // Writes stop before the lease does.
        let left = self.lead_until().map(|until| until - Instant::now());
        let limit = left.map_or(WRITE_TIMEOUT, |left| left.min(WRITE_TIMEOUT));
        if limit.is_zero() {
            let outcome = Outcome::Failed("the lease has run out".to_owned());
            self.tell(&write, outcome, Duration::ZERO);
            return;
        }
        let (client, answers) = (self.client.clone(), self.answers.clone());
        tokio::spawn(async move {
            let begun = Instant::now();
            let outcome = perform(&client, &write, limit).await;
            log(&write, &outcome);
            let _ = answers.send(Answered {
                ticket: write.ticket,
                what: write.what,
                target: write.target,
                outcome,
                took: begun.elapsed(),
            });
        });
    }

    fn tell(&self, write: &Write, outcome: Outcome, took: Duration) {
        let _ = self.answers.send(Answered {
            ticket: write.ticket,
            what: write.what,
            target: write.target.clone(),
            outcome,
            took,
        });
    }

    fn answered(&mut self, it: Answered) {
        self.metrics.wrote(it.what, &it.outcome, it.took);
        if let (Target::Workload(_), Outcome::Done(version)) = (&it.target, &it.outcome) {
            if self.reconciler.has_seen(&it.target, *version) {
                self.metrics.saw(Duration::ZERO);
            } else {
                self.written
                    .insert(it.target.clone(), (*version, Instant::now()));
            }
        }
        let input = Input::Answer(it.ticket, it.outcome);
        self.reconciler.take(now_ms(), input);
    }

    /// How far the watch is behind what was written.
    fn see(&mut self, input: &Input) {
        let Input::Workload(change) = input else {
            return;
        };
        let (name, version) = match change {
            crate::Change::Gone(name) => (name.clone(), u64::MAX),
            crate::Change::Seen(it) => {
                let version = it.metadata.resource_version.as_deref();
                let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
                (crate::Name::of(&it.metadata), version)
            }
        };
        let target = Target::Workload(name);
        if let Some((written, at)) = self.written.get(&target).copied()
            && version >= written
        {
            self.metrics.saw(at.elapsed());
            self.written.remove(&target);
        }
    }

    /// Until when this process leads, if that is limited.
    fn lead_until(&self) -> Option<Instant> {
        self.lead.as_ref().and_then(|lead| *lead.borrow())
    }

    /// Tells the reconciler whether it may write; says when to look again.
    fn look_at_lead(&mut self) -> Option<Instant> {
        let until = self.lead_until();
        let leads = self.lead.is_none() || until.is_some_and(|until| until > Instant::now());
        if leads != self.leads {
            self.leads = leads;
            let word = if leads { "leading" } else { "not leading" };
            tracing::info!("{word}");
            self.metrics.lead(leads);
            self.reconciler.take(now_ms(), Input::Lead(leads));
        }
        until.filter(|_| leads)
    }
}

/// Follows a kind of job as soon as the cluster has it.
fn look_for_kind(client: &Client, at: usize, inputs: Sender<Input>) {
    let client = client.clone();
    let resource = job_resource(at);
    tokio::spawn(async move {
        while !inputs.is_closed() {
            let asked = client.list_api_group_resources(&resource.api_version);
            if let Ok(Ok(list)) = timeout(KINDS_EVERY, asked).await
                && list.resources.iter().any(|it| it.name == resource.plural)
            {
                tracing::info!(kind = %resource.kind, "the cluster has this kind of job");
                // Who does not listen has stopped.
                let _ = inputs.send(Input::HasJobKind(at)).await;
                follow(&client, Kind::Job(at), inputs);
                return;
            }
            sleep(KINDS_EVERY).await;
        }
    });
}

/// Resolves when there is news of the lease; never, if there is none.
async fn changed(lead: &mut Option<Lead>) {
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

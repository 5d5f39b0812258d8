//! Feeds the changes of watches to the observer, on a thread of its own.

use super::unix_time::unix_time_ms;
use super::watches::{WatchedChange, WatchedEvent};
use anyhow::Error;
use lockkeeper_explain::KueueReader;
use lockkeeper_observe::{
    Change, Difference, ObjectKind, ObserveSettings, Observer, Report, ResultKind,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

/// The longest pause between two comparisons.
const PAUSE: Duration = Duration::from_millis(500);

/// The most changes that are taken before the next comparison.
const BATCH_MAX: usize = 1_024;

/// An event loop without an iteration for this long is stuck.
const STUCK_AFTER: Duration = Duration::from_mins(2);

/// What probes and `/observed` show.
pub(super) struct SharedState {
    status: Mutex<Status>,
}

struct Status {
    report: Report,
    is_synced: bool,
    last_iteration: Instant,
}

impl SharedState {
    pub(super) fn new(settings: &ObserveSettings) -> Self {
        let report = Observer::new(settings.clone()).report();
        let last_iteration = Instant::now();
        let status = Mutex::new(Status {
            report,
            is_synced: false,
            last_iteration,
        });
        Self { status }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The results so far.
    pub(super) fn report(&self) -> Report {
        self.status().report.clone()
    }

    /// Whether the initial lists are complete.
    pub(super) fn is_ready(&self) -> bool {
        self.status().is_synced && self.is_alive()
    }

    /// Whether the event loop still iterates.
    pub(super) fn is_alive(&self) -> bool {
        self.status().last_iteration.elapsed() < STUCK_AFTER
    }

    fn update(&self, report: Report, is_synced: bool) {
        *self.status() = Status {
            report,
            is_synced,
            last_iteration: Instant::now(),
        };
    }
}

/// The observer and what it needs to read objects.
pub(super) struct EventLoop {
    observer: Observer,
    reader: KueueReader,
    /// Kinds whose list is not complete.
    unlisted: BTreeSet<ObjectKind>,
    shared: Arc<SharedState>,
}

impl EventLoop {
    pub(super) fn new(
        settings: ObserveSettings,
        kinds: impl Iterator<Item = ObjectKind>,
        shared: Arc<SharedState>,
    ) -> Self {
        Self {
            observer: Observer::new(settings),
            reader: KueueReader::new(),
            unlisted: kinds.collect(),
            shared,
        }
    }

    async fn run(mut self, mut events: Receiver<WatchedEvent>) {
        let mut batch = Vec::new();
        let mut pause = PAUSE;
        loop {
            let received = timeout(pause, events.recv_many(&mut batch, BATCH_MAX)).await;
            if received == Ok(0) {
                // All watches have ended: the process stops.
                return;
            }
            let last_ms = batch.last().map(|it| it.at_ms);
            for event in batch.drain(..) {
                self.handle(event);
            }
            // Changes that are delivered and not taken yet are part of the states to compare.
            let now_ms = match last_ms {
                Some(last_ms) if !events.is_empty() => last_ms,
                _ => unix_time_ms(),
            };
            for difference in self.observer.poll(now_ms) {
                log(&difference);
            }
            pause = if self.observer.is_behind(now_ms) {
                Duration::ZERO
            } else {
                PAUSE
            };
            self.shared
                .update(self.observer.report(), self.unlisted.is_empty());
        }
    }

    fn handle(&mut self, event: WatchedEvent) {
        let at_ms = event.at_ms;
        match event.change {
            WatchedChange::Applied(value) => self.apply(at_ms, value),
            WatchedChange::Deleted {
                kind,
                namespace,
                name,
            } => {
                let change = Change::Deleted {
                    kind,
                    namespace,
                    name,
                };
                self.observer.apply(at_ms, change);
            }
            WatchedChange::Unreadable { name, reason } => self.note_unreadable(&name, &reason),
            WatchedChange::Listed(kind) => {
                let was_listing = !self.unlisted.is_empty();
                self.unlisted.remove(&kind);
                if was_listing && self.unlisted.is_empty() {
                    tracing::info!("all lists are complete; comparing decisions");
                    self.observer.start(at_ms);
                }
            }
        }
    }

    fn apply(&mut self, at_ms: i64, value: Value) {
        let text = |key: &str| {
            let text = value.pointer(key).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let name = format!(
            "{} {}/{}",
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name")
        );
        match self.reader.read(value) {
            Ok(Some(read)) => self.observer.apply(at_ms, Change::Applied(read)),
            Ok(None) => {}
            Err(reason) => self.note_unreadable(&name, &reason),
        }
    }

    fn note_unreadable(&mut self, name: &str, reason: &str) {
        tracing::warn!(
            object = name,
            reason,
            "cannot read an object; it is ignored"
        );
        self.observer.count_unreadable();
    }
}

/// Starts the loop on a thread of its own. It ends when all watches have.
pub(super) fn start(event_loop: EventLoop, events: Receiver<WatchedEvent>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    thread::Builder::new()
        .name("observe".to_owned())
        .spawn(move || runtime.block_on(event_loop.run(events)))?;
    Ok(())
}

fn log(difference: &Difference) {
    let Difference {
        time,
        decision,
        result,
        workload,
        cluster_queue,
        kueue,
        lockkeeper,
        explanations,
    } = difference;
    let (decision, result) = (decision.as_str(), result.as_str());
    if difference.result == ResultKind::Different {
        tracing::warn!(
            time,
            decision,
            result,
            workload,
            cluster_queue,
            kueue,
            lockkeeper,
            "Kueue decides otherwise"
        );
    } else {
        let explanation = explanations.join("; ");
        tracing::info!(
            time,
            decision,
            result,
            workload,
            cluster_queue,
            kueue,
            lockkeeper,
            explanation,
            "Kueue decides otherwise, which does not count as different"
        );
    }
}

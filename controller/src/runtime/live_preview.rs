//! Previews from the objects of a cluster, kept up to date by watches.

use super::kind_discovery::watch_when_installed;
use super::watch::{WatchInput, Watches};
use crate::Kind;
use crate::preview::{Preview, PreviewSettings, PreviewState, submitted_workload};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_kube_support::api_client::ApiClients;
use std::future::{pending, ready};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

/// The size of the input channel; when it is full, the watches wait.
const INPUTS_MAX: usize = 512;

/// The most inputs that are handled between two previews.
const BATCH_MAX: usize = 64;

/// The most cycles between two previews.
const CYCLES_MAX: usize = 2;

/// The most rounds of cycles between two inputs. Two workloads that evict each other again and again never settle.
const ROUNDS_MAX: usize = 1_000;

/// The pause between two looks at the time: backoffs end without an input.
const TICK: Duration = Duration::from_secs(1);

/// The longest time that a request waits for its preview.
const ANSWER_MAX: Duration = Duration::from_millis(5);

/// The most requests that wait for a preview at the same time; more have none.
const REQUESTS_MAX: usize = 16;

/// A request for a preview.
struct PreviewRequest {
    object: String,
    /// Closed when the request does not wait any longer.
    answer: oneshot::Sender<Option<Preview>>,
}

/// Previews for objects that are being created. Clones share a thread, which ends with the runtime of the watches.
#[derive(Clone)]
pub struct LivePreview {
    requests: mpsc::Sender<PreviewRequest>,
    /// The largest object that has a preview, in bytes.
    object_max_bytes: usize,
}

impl LivePreview {
    /// Starts the watches of the kinds that decisions depend on. There is no preview before all lists are complete. Objects of
    /// more than `object_max_bytes` have none.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(
        clients: &ApiClients,
        settings: PreviewSettings,
        object_max_bytes: usize,
    ) -> io::Result<Self> {
        let (inputs, received) = mpsc::channel(INPUTS_MAX);
        let (lists, current_list) = watch::channel(0);
        let watches = Watches {
            client: clients.watches.clone(),
            inputs,
            lists: current_list,
            job_spec_max_bytes: object_max_bytes,
            ages: clients.ages.clone(),
            job_kinds: Arc::default(),
        };
        let (requests, requested) = mpsc::channel(REQUESTS_MAX);
        let worker = Worker {
            state: PreviewState::new(settings),
            received,
            requested,
            _lists: lists,
        };
        // Cycles take the time of no request, and a panic ends the previews alone.
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        thread::Builder::new()
            .name("preview".to_owned())
            .spawn(move || runtime.block_on(worker.run()))?;
        for kind in Kind::FIXED {
            watches.start(kind);
        }
        watch_when_installed(watches, Kind::JobKind, pending());
        Ok(Self {
            requests,
            object_max_bytes,
        })
    }

    /// What the controller will do with an object that is being created, as JSON. `None` for objects that are not queued, and
    /// if the answer is not known within a few milliseconds.
    pub async fn preview(&self, object: String) -> Option<Preview> {
        if object.len() > self.object_max_bytes {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let request = PreviewRequest { object, answer };
        self.requests.try_send(request).ok()?;
        timeout(ANSWER_MAX, answered).await.ok()?.ok()?
    }
}

/// The thread that holds the objects and answers requests, one at a time.
struct Worker {
    state: PreviewState,
    received: mpsc::Receiver<WatchInput>,
    requested: mpsc::Receiver<PreviewRequest>,
    /// Keeps the watches running.
    _lists: watch::Sender<u64>,
}

impl Worker {
    /// Runs until the watches end.
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut rounds_left = ROUNDS_MAX;
        loop {
            let is_due = rounds_left > 0;
            // Those that are ready take turns: neither a flood of changes nor one of requests stops the other.
            tokio::select! {
                count = self.received.recv_many(&mut batch, BATCH_MAX) => {
                    if count == 0 {
                        return;
                    }
                    for it in batch.drain(..) {
                        self.state.handle_input(now_ms(), it.input);
                    }
                    rounds_left = ROUNDS_MAX;
                }
                Some(request) = self.requested.recv() => {
                    self.answer(request);
                    // The next request does not wait for cycles.
                    rounds_left = ROUNDS_MAX;
                }
                () = ready(()), if is_due => {
                    rounds_left = if self.settle() { 0 } else { rounds_left.saturating_sub(1) };
                }
                () = sleep(TICK), if !is_due => rounds_left = ROUNDS_MAX,
            }
        }
    }

    /// Runs cycles; true if there is nothing more to decide.
    fn settle(&mut self) -> bool {
        !self.state.is_synced() || self.state.settle(now_ms(), CYCLES_MAX)
    }

    fn answer(&mut self, request: PreviewRequest) {
        if !request.answer.is_closed() {
            // A request that has stopped waiting meanwhile needs no answer.
            let _ = request.answer.send(self.preview(&request.object));
        }
    }

    fn preview(&mut self, object: &str) -> Option<Preview> {
        let now_ms = now_ms();
        let object = serde_json::from_str(object).ok()?;
        let workload = submitted_workload(self.state.job_kinds(), object, now_ms)?;
        let is_settled = self.state.is_synced() && self.state.settle(now_ms, CYCLES_MAX);
        is_settled.then(|| self.state.preview(now_ms, workload))?
    }
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

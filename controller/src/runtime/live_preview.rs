//! Previews from the objects of a cluster, kept up to date by watches.

use super::watch::{WatchInput, Watches};
use crate::Kind;
use crate::preview::{Preview, PreviewSettings, PreviewState, submitted_workload};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_kube_support::api_client::ApiClients;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// The size of the input channel; when it is full, the watches wait.
const INPUTS_MAX: usize = 512;

/// The most inputs that are handled while previews wait.
const BATCH_MAX: usize = 64;

/// The most cycles that are run while previews wait.
const CYCLES_MAX: usize = 2;

/// The most rounds of cycles between two inputs. Two workloads that evict each other again and again never settle.
const ROUNDS_MAX: usize = 1_000;

/// The pause between two looks at the time: backoffs end without an input.
const TICK: Duration = Duration::from_secs(1);

/// The longest time that a preview waits for inputs and other previews. Then there is none: no request is delayed for it.
const LOCK_MAX: Duration = Duration::from_millis(5);

/// The pause between two attempts to lock the state.
const LOCK_RETRY: Duration = Duration::from_micros(100);

/// Previews for objects that are being created. Clones share the state.
#[derive(Clone)]
pub struct LivePreview {
    state: Arc<Mutex<PreviewState>>,
    /// The largest object that has a preview, in bytes.
    object_max_bytes: usize,
}

impl LivePreview {
    /// Starts the watches of the kinds that decisions depend on. They run until the runtime ends; there is no preview before
    /// all lists are complete. Objects of more than `object_max_bytes` have none.
    #[must_use]
    pub fn start(clients: &ApiClients, settings: PreviewSettings, object_max_bytes: usize) -> Self {
        let (inputs, received) = mpsc::channel(INPUTS_MAX);
        let (lists, current_list) = watch::channel(0);
        let watches = Watches {
            client: clients.watches.clone(),
            inputs,
            lists: current_list,
            job_spec_max_bytes: object_max_bytes,
        };
        for kind in Kind::FIXED {
            watches.start(kind);
        }
        let state = Arc::new(Mutex::new(PreviewState::new(settings)));
        tokio::spawn(follow(Arc::clone(&state), received, lists));
        Self {
            state,
            object_max_bytes,
        }
    }

    /// What the controller will do with an object that is being created, as JSON. `None` for objects that are not queued, and
    /// if the answer is not known within a few milliseconds. It blocks for that time at most.
    #[must_use]
    pub fn preview(&self, object: &str) -> Option<Preview> {
        if object.len() > self.object_max_bytes {
            return None;
        }
        let now_ms = now_ms();
        let object = serde_json::from_str(object).ok()?;
        let workload = submitted_workload(object, now_ms)?;
        let mut state = lock_for_preview(&self.state)?;
        let is_settled = state.is_synced() && state.settle(now_ms, CYCLES_MAX);
        is_settled.then(|| state.preview(now_ms, workload))?
    }
}

/// Locks the state for a preview; `None` if that takes too long.
fn lock_for_preview(state: &Mutex<PreviewState>) -> Option<MutexGuard<'_, PreviewState>> {
    let begun = Instant::now();
    loop {
        match state.try_lock() {
            Ok(state) => return Some(state),
            Err(TryLockError::Poisoned(state)) => return Some(state.into_inner()),
            Err(TryLockError::WouldBlock) if begun.elapsed() >= LOCK_MAX => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY),
        }
    }
}

/// Feeds inputs to the state until the watches end. `_lists` keeps the watches running.
async fn follow(
    state: Arc<Mutex<PreviewState>>,
    mut received: mpsc::Receiver<WatchInput>,
    _lists: watch::Sender<u64>,
) {
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let mut batch = Vec::with_capacity(BATCH_MAX);
    loop {
        match timeout(TICK, received.recv_many(&mut batch, BATCH_MAX)).await {
            Ok(0) => return,
            Ok(_) => {
                let mut state = lock();
                for it in batch.drain(..) {
                    state.handle_input(now_ms(), it.input);
                }
            }
            Err(_) => {}
        }
        for _ in 0..ROUNDS_MAX {
            let is_settled = {
                let mut state = lock();
                !state.is_synced() || state.settle(now_ms(), CYCLES_MAX)
            };
            if is_settled || !received.is_empty() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

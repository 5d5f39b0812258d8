//! Load on the API server: valid and invalid objects with known expected results, and counts of the actual results.

mod cases;
mod counts;

use std::env;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::cluster::Cluster;
use crate::wait;

pub use cases::{QUEUES, REQUIRED_OBJECTS, WORKLOADS, queue, workload};
pub use counts::LoadCounts;

use cases::LoadClient;
use counts::LoadTally;

/// Number of concurrent clients; each sends one request after another.
const CLIENTS: u64 = 6;

/// Requests for one step of a drill, unless the environment overrides it.
const REQUESTS_DEFAULT: u64 = 80;

/// The environment variable that overrides it.
const REQUESTS_VARIABLE: &str = "LOCKKEEPER_DRILL_REQUESTS";

/// Poll interval of a paused client in milliseconds.
const PAUSED_POLL_MS: u64 = 2;

/// Pause after a request without a response in milliseconds.
const NO_RESPONSE_PAUSE_MS: u64 = 50;

/// Running clients. Dropping it stops them.
pub struct Load {
    shared: Arc<LoadState>,
    clients: Vec<JoinHandle<LoadClient>>,
}

#[derive(Default)]
struct LoadState {
    is_stopping: AtomicBool,
    is_paused: AtomicBool,
    /// The drill has stopped the webhook or the API server.
    is_unavailable: AtomicBool,
    in_flight: AtomicU64,
    tally: Mutex<LoadTally>,
}

/// Number of requests that one step of a drill waits for.
#[track_caller]
fn requests() -> u64 {
    env::var(REQUESTS_VARIABLE).map_or(REQUESTS_DEFAULT, |number| {
        let number = number.parse();
        number.unwrap_or_else(|e| panic!("{REQUESTS_VARIABLE}: {e}"))
    })
}

impl Load {
    /// Starts the clients; [`REQUIRED_OBJECTS`] must exist.
    #[track_caller]
    pub fn start(cluster: &Cluster) -> Self {
        let shared = Arc::new(LoadState::default());
        let begin = |number| {
            let name = format!("drill-{number}");
            let client = LoadClient::new(cluster.client(), name).unwrap_or_else(|e| panic!("{e}"));
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.run_client(client))
        };
        let clients = (0..CLIENTS).map(begin).collect();
        Self { shared, clients }
    }

    /// The results so far.
    pub fn counts(&self) -> LoadCounts {
        self.shared.tally().counts
    }

    /// Number of requests so far, including those in flight.
    pub fn requests_started(&self) -> u64 {
        // Read in this order, a request that completes in between counts twice, and none is missed.
        let under_way = self.in_flight();
        self.counts().sent + under_way
    }

    fn in_flight(&self) -> u64 {
        self.shared.in_flight.load(Ordering::SeqCst)
    }

    /// Waits until as many new requests as one step needs have been sent and answered.
    #[track_caller]
    pub fn wait_for_requests(&self) {
        self.wait_for(|counts| counts.sent, requests());
    }

    /// Waits until as many requests as one step needs were not reviewed.
    #[track_caller]
    pub fn wait_for_unavailable(&self) {
        self.wait_for(|counts| counts.unavailable, requests());
    }

    #[track_caller]
    fn wait_for(&self, number: fn(LoadCounts) -> u64, more: u64) {
        // Requests in flight started before this call.
        let goal = number(self.counts()) + more + CLIENTS;
        while number(self.counts()) < goal {
            let before = number(self.counts());
            let grown = || Ok((number(self.counts()) > before).then_some(()));
            let late = || format!("no request was answered: {}", self.counts());
            wait::until(grown, late).unwrap_or_else(|e| panic!("{e}"));
        }
    }

    /// Runs `action` while no request is in flight.
    #[track_caller]
    pub fn paused_while(&self, action: impl FnOnce()) {
        self.shared.is_paused.store(true, Ordering::SeqCst);
        let quiet = || Ok((self.in_flight() == 0).then_some(()));
        wait::until(quiet, || "a request gets no response".to_owned()).unwrap();
        action();
        self.shared.is_paused.store(false, Ordering::SeqCst);
    }

    /// Runs an `action` that stops the webhook or the API server. Requests that are not reviewed meanwhile count as
    /// unavailable; later requests count as usual.
    #[track_caller]
    pub fn unavailable_while(&self, action: impl FnOnce()) {
        self.shared.is_unavailable.store(true, Ordering::SeqCst);
        action();
        // Requests in flight may have started during the outage.
        self.paused_while(|| self.shared.is_unavailable.store(false, Ordering::SeqCst));
    }

    /// Stops the clients, and compares the stored objects with the results. Prints the counts as `drill NAME: …`.
    #[track_caller]
    pub fn finish(mut self, drill: &str) -> LoadCounts {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        let clients: Vec<LoadClient> = self
            .clients
            .drain(..)
            .map(|it| it.join().unwrap())
            .collect();
        let faults: Vec<String> = clients
            .into_iter()
            .flat_map(LoadClient::audit_stored)
            .collect();
        let tally = self.shared.tally();
        let counts = tally.counts;
        println!("drill {drill}: {counts}");
        for example in &tally.examples {
            println!("  {example}");
        }
        assert_eq!(faults, [""; 0], "exactly the accepted objects are stored");
        let reviewed = counts.accepted + counts.rejected;
        let not_reviewed = counts.without_response + counts.unavailable;
        assert_eq!(counts.sent, reviewed + counts.unexpected + not_reviewed);
        assert!(
            counts.accepted > 0 && counts.rejected > 0,
            "no load: {counts}"
        );
        counts
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}

impl LoadState {
    fn tally(&self) -> MutexGuard<'_, LoadTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one client until the load is stopped.
    fn run_client(&self, mut client: LoadClient) -> LoadClient {
        let pause = |pause_ms| thread::sleep(Duration::from_millis(pause_ms));
        while !self.is_stopping.load(Ordering::SeqCst) {
            // Incremented first: once the load is paused and the counter is 0, no client starts a request.
            self.in_flight.fetch_add(1, Ordering::SeqCst);
            if self.is_paused.load(Ordering::SeqCst) {
                self.in_flight.fetch_sub(1, Ordering::SeqCst);
                pause(PAUSED_POLL_MS);
                continue;
            }
            let was_unavailable = self.is_unavailable.load(Ordering::SeqCst);
            let outcome = client.send_next();
            let is_unavailable = was_unavailable || self.is_unavailable.load(Ordering::SeqCst);
            let is_lost = matches!(outcome, counts::Outcome::NoResponse(_));
            self.tally().count(outcome, is_unavailable);
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
            if is_lost {
                pause(NO_RESPONSE_PAUSE_MS);
            }
        }
        client
    }
}

//! Load on the API server: good and bad objects, each known in advance, and a count of what came of
//! them.

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

/// Clients that send at the same time, each one request after the other.
const CLIENTS: u64 = 6;

/// Requests for one step of a drill, where the environment names no other number.
const REQUESTS_DEFAULT: u64 = 80;

/// The environment variable with another number.
const REQUESTS_VARIABLE: &str = "LOCKKEEPER_DRILL_REQUESTS";

/// Between two looks of a client that is held, in milliseconds.
const PAUSED_POLL_MS: u64 = 2;

/// Between two requests of a client that gets no answers, in milliseconds.
const NO_RESPONSE_PAUSE_MS: u64 = 50;

/// Clients at work. Dropping it stops them.
pub struct Load {
    shared: Arc<LoadState>,
    clients: Vec<JoinHandle<LoadClient>>,
}

#[derive(Default)]
struct LoadState {
    is_stopping: AtomicBool,
    is_paused: AtomicBool,
    /// The drill keeps the webhook or the API server away.
    is_unavailable: AtomicBool,
    in_flight: AtomicU64,
    tally: Mutex<LoadTally>,
}

/// How many requests one step of a drill waits for.
#[track_caller]
fn requests() -> u64 {
    env::var(REQUESTS_VARIABLE).map_or(REQUESTS_DEFAULT, |number| {
        let number = number.parse();
        number.unwrap_or_else(|e| panic!("{REQUESTS_VARIABLE}: {e}"))
    })
}

impl Load {
    /// Starts the clients; [`NEEDED`] must be there.
    #[track_caller]
    pub fn start(cluster: &Cluster) -> Self {
        let shared = Arc::new(LoadState::default());
        let begin = |number| {
            let name = format!("drill-{number}");
            let clerk = LoadClient::new(cluster.client(), name).unwrap_or_else(|e| panic!("{e}"));
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.run_client(clerk))
        };
        let clients = (0..CLIENTS).map(begin).collect();
        Self { shared, clients }
    }

    /// What came of the requests so far.
    pub fn counts(&self) -> LoadCounts {
        self.shared.tally().counts
    }

    /// Requests so far, those included that are under way.
    pub fn requests_started(&self) -> u64 {
        // In this order: who is counted in between is counted twice, and nobody is left out.
        let under_way = self.in_flight();
        self.counts().sent + under_way
    }

    fn in_flight(&self) -> u64 {
        self.shared.in_flight.load(Ordering::SeqCst)
    }

    /// Waits until a step's number of requests were sent from now on, and answered.
    #[track_caller]
    pub fn wait_for_requests(&self) {
        self.wait_for(|counts| counts.sent, requests());
    }

    /// Waits until a step's number of requests were not judged.
    #[track_caller]
    pub fn wait_for_unavailable(&self) {
        self.wait_for(|counts| counts.unavailable, requests());
    }

    #[track_caller]
    fn wait_for(&self, number: fn(LoadCounts) -> u64, more: u64) {
        // Those under way began before.
        let goal = number(self.counts()) + more + CLIENTS;
        while number(self.counts()) < goal {
            let before = number(self.counts());
            let grown = || Ok((number(self.counts()) > before).then_some(()));
            let late = || format!("no request was answered: {}", self.counts());
            wait::until(grown, late).unwrap_or_else(|e| panic!("{e}"));
        }
    }

    /// Does something while no request is under way.
    #[track_caller]
    pub fn paused_while(&self, action: impl FnOnce()) {
        self.shared.is_paused.store(true, Ordering::SeqCst);
        let quiet = || Ok((self.in_flight() == 0).then_some(()));
        wait::until(quiet, || "a request is never answered".to_owned()).unwrap();
        action();
        self.shared.is_paused.store(false, Ordering::SeqCst);
    }

    /// Does something that takes the webhook or the API server away. What is not judged meanwhile
    /// counts as unavailable; what is sent after it counts as ever.
    #[track_caller]
    pub fn unavailable_while(&self, action: impl FnOnce()) {
        self.shared.is_unavailable.store(true, Ordering::SeqCst);
        action();
        // What is under way began when nobody was there.
        self.paused_while(|| self.shared.is_unavailable.store(false, Ordering::SeqCst));
    }

    /// Stops the clients, and looks at what is stored. Prints the counts as `drill NAME: …`.
    #[track_caller]
    pub fn finish(mut self, drill: &str) -> LoadCounts {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        let clerks: Vec<LoadClient> = self
            .clients
            .drain(..)
            .map(|it| it.join().unwrap())
            .collect();
        let faults: Vec<String> = clerks
            .into_iter()
            .flat_map(LoadClient::audit_stored)
            .collect();
        let tally = self.shared.tally();
        let counts = tally.counts;
        println!("drill {drill}: {counts}");
        for example in &tally.examples {
            println!("  {example}");
        }
        assert_eq!(
            faults, [""; 0],
            "what was accepted is stored, and nothing else"
        );
        let judged = counts.accepted + counts.rejected;
        let unjudged = counts.without_response + counts.unavailable;
        assert_eq!(counts.sent, judged + counts.unexpected + unjudged);
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
        for clerk in self.clients.drain(..) {
            let _ = clerk.join();
        }
    }
}

impl LoadState {
    fn tally(&self) -> MutexGuard<'_, LoadTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One client, until the load is stopped.
    fn run_client(&self, mut clerk: LoadClient) -> LoadClient {
        let pause = |pause_ms| thread::sleep(Duration::from_millis(pause_ms));
        while !self.is_stopping.load(Ordering::SeqCst) {
            // Counted first, so that whoever holds the load and sees nobody knows that nobody comes.
            self.in_flight.fetch_add(1, Ordering::SeqCst);
            if self.is_paused.load(Ordering::SeqCst) {
                self.in_flight.fetch_sub(1, Ordering::SeqCst);
                pause(PAUSED_POLL_MS);
                continue;
            }
            let was_away = self.is_unavailable.load(Ordering::SeqCst);
            let outcome = clerk.send_next();
            let is_away = was_away || self.is_unavailable.load(Ordering::SeqCst);
            let is_lost = matches!(outcome, counts::Outcome::NoResponse(_));
            self.tally().count(outcome, is_away);
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
            if is_lost {
                pause(NO_RESPONSE_PAUSE_MS);
            }
        }
        clerk
    }
}

//! How long the trials take, to find those that make the run slow.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of trials that are printed.
const PRINTED: usize = 20;

/// The durations of finished trials.
#[derive(Default)]
pub struct Durations {
    trials: Mutex<Vec<(Duration, String)>>,
}

impl Durations {
    /// Runs a trial. One that panics is not recorded.
    pub fn measure(&self, name: &str, trial: impl FnOnce()) {
        let start = Instant::now();
        trial();
        self.locked().push((start.elapsed(), name.to_owned()));
    }

    /// Prints the trials that took the longest, and the time of all.
    pub fn print(&self) {
        let mut trials = self.locked();
        trials.sort_unstable_by(|a, b| b.cmp(a));
        let all: Duration = trials.iter().map(|(duration, _)| *duration).sum();
        println!(
            "\nthe slowest trials, of {:.0} s in all:",
            all.as_secs_f64()
        );
        for (duration, name) in trials.iter().take(PRINTED) {
            println!("{:7.1} s  {name}", duration.as_secs_f64());
        }
    }

    fn locked(&self) -> MutexGuard<'_, Vec<(Duration, String)>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

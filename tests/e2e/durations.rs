//! How long the trials take, to find those that make the run slow, and why trials failed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of trials that are printed.
const PRINTED: usize = 20;

/// The length of a printed failure, in characters.
const FAILURE_LENGTH: usize = 1_500;

/// The durations of finished trials, and the messages of failed ones.
#[derive(Default)]
pub struct Durations {
    trials: Mutex<Vec<(Duration, String)>>,
    failures: Mutex<Vec<(String, String)>>,
}

impl Durations {
    /// Runs a trial. One that panics has no duration; its panic goes on.
    pub fn measure(&self, name: &str, trial: impl FnOnce()) {
        let start = Instant::now();
        // The trial is not used after its panic.
        match catch_unwind(AssertUnwindSafe(trial)) {
            Ok(()) => locked(&self.trials).push((start.elapsed(), name.to_owned())),
            Err(panic) => {
                let text = message(&*panic).chars().take(FAILURE_LENGTH).collect();
                locked(&self.failures).push((name.to_owned(), text));
                resume_unwind(panic);
            }
        }
    }

    /// Prints the trials that took the longest, the time of all, and at the end, where cut logs still have it, why
    /// trials failed.
    pub fn print(&self) {
        let mut trials = locked(&self.trials);
        trials.sort_unstable_by(|a, b| b.cmp(a));
        let all: Duration = trials.iter().map(|(duration, _)| *duration).sum();
        println!(
            "\nthe slowest trials, of {:.0} s in all:",
            all.as_secs_f64()
        );
        for (duration, name) in trials.iter().take(PRINTED) {
            println!("{:7.1} s  {name}", duration.as_secs_f64());
        }
        for (name, text) in locked(&self.failures).iter() {
            println!("\nfailed: {name}\n{text}");
        }
    }
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without text")
}

fn locked<T>(values: &Mutex<T>) -> MutexGuard<'_, T> {
    values.lock().unwrap_or_else(PoisonError::into_inner)
}

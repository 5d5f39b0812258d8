//! Work on several threads, with results in input order.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How far results may be ahead of the next one to deliver. It bounds the memory of results that wait for a slow file.
const LOOKAHEAD_MAX: usize = 64;

/// The most threads. More contend for the shared queue without a gain.
const THREADS_MAX: usize = 16;

/// The number of threads to use: the cores, up to a limit.
#[must_use]
pub fn thread_count() -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    cores.min(THREADS_MAX)
}

struct OrderedResults<T, F> {
    next: usize,
    done: BTreeMap<usize, T>,
    consume: F,
}

/// Calls `work` for each number below `count` on several threads, and `consume` with each result, in the order of the
/// numbers.
pub fn run_ordered<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
    consume: impl FnMut(usize, T) + Send,
) {
    let claimed = AtomicUsize::new(0);
    let results = Mutex::new(OrderedResults {
        next: 0,
        done: BTreeMap::new(),
        consume,
    });
    let delivered = Condvar::new();
    let run = || {
        loop {
            // Claimed in order, so the next result is always in work and the wait below ends.
            let number = claimed.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let is_too_far = |results: &mut OrderedResults<T, _>| {
                number.saturating_sub(results.next) > LOOKAHEAD_MAX
            };
            drop(delivered.wait_while(lock(&results), is_too_far));
            let result = work(number);
            let mut results = lock(&results);
            results.done.insert(number, result);
            let before = results.next;
            // No consumer thread: the thread that completes the next result delivers it, and
            // all that follow without a gap.
            while let Some((at, result)) = results.pop_next() {
                (results.consume)(at, result);
            }
            if results.next > before {
                delivered.notify_all();
            }
        }
    };
    thread::scope(|scope| {
        // The calling thread is one of the workers.
        for _ in 1..threads.min(count) {
            scope.spawn(run);
        }
        run();
    });
}

impl<T, F> OrderedResults<T, F> {
    fn pop_next(&mut self) -> Option<(usize, T)> {
        let (number, result) = self.done.remove_entry(&self.next)?;
        self.next = self.next.saturating_add(1);
        Some((number, result))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of one thread ends the scope and discards the results, so poison is harmless.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{LOOKAHEAD_MAX, run_ordered};
    use std::sync::mpsc::channel;
    use std::sync::{Mutex, PoisonError};

    #[test]
    fn run_ordered_delivers_each_result_once_in_order() {
        for (count, threads) in [(0, 4), (1, 4), (1000, 1), (1000, 4)] {
            let mut delivered = Vec::new();
            let consume = |at: usize, it: usize| delivered.push((at, it));
            run_ordered(count, threads, |number| number * 2, consume);
            let expected: Vec<(usize, usize)> = (0..count).map(|it| (it, it * 2)).collect();
            assert_eq!(delivered, expected);
        }
    }

    #[test]
    fn run_ordered_slow_item_bounds_lookahead() {
        let (send, receive) = channel();
        let receive = Mutex::new(receive);
        let started = Mutex::new(Vec::new());
        let lock = |number| {
            let mut started = started.lock().unwrap_or_else(PoisonError::into_inner);
            started.push(number);
        };
        let count = LOOKAHEAD_MAX * 3;
        let work = |number: usize| {
            lock(number);
            if number == 0 {
                // Blocks until the other thread has reached the lookahead limit.
                let receive = receive.lock().unwrap();
                receive.recv().unwrap();
                return started.lock().unwrap().len();
            }
            if number == LOOKAHEAD_MAX {
                send.send(()).unwrap();
            }
            0
        };
        let mut started_count = 0;
        run_ordered(count, 2, work, |at, it| {
            if at == 0 {
                started_count = it;
            }
        });
        assert!(started_count <= LOOKAHEAD_MAX + 2, "{started_count}");
    }
}

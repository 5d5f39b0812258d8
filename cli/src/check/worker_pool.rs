//! Work on several threads, with results in a stable order.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How far results may be ahead of the next one that is due. It bounds what is in memory while a large file holds
/// up the others.
const LOOKAHEAD_MAX: usize = 64;

/// The most threads: what they share is more in the way than they help beyond it.
const THREADS_MAX: usize = 16;

/// How many threads there are to be.
pub(super) fn thread_count() -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    cores.min(THREADS_MAX)
}

struct OrderedResults<T, F> {
    next: usize,
    done: BTreeMap<usize, T>,
    consume: F,
}

/// Does `work` for each number below `count`, on several threads, and hands what it gives to `take`, in the order of
/// the numbers. Nobody waits for a thread of its own that takes: whoever has the next result hands it over.
pub(super) fn run_ordered<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
    take: impl FnMut(usize, T) + Send,
) {
    let claimed = AtomicUsize::new(0);
    let due = Mutex::new(OrderedResults {
        next: 0,
        done: BTreeMap::new(),
        consume: take,
    });
    let moved = Condvar::new();
    let run = || {
        loop {
            let number = claimed.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let is_far =
                |due: &mut OrderedResults<T, _>| number.saturating_sub(due.next) > LOOKAHEAD_MAX;
            drop(moved.wait_while(lock(&due), is_far));
            let result = work(number);
            let mut due = lock(&due);
            due.done.insert(number, result);
            let before = due.next;
            while let Some((at, result)) = due.pop_next() {
                (due.consume)(at, result);
            }
            if due.next > before {
                moved.notify_all();
            }
        }
    };
    thread::scope(|scope| {
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

/// A thread that panicked ends all of them; what it left is not used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
            let mut taken = Vec::new();
            let take = |at: usize, it: usize| taken.push((at, it));
            run_ordered(count, threads, |number| number * 2, take);
            let expected: Vec<(usize, usize)> = (0..count).map(|it| (it, it * 2)).collect();
            assert_eq!(taken, expected);
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
                // Goes on when the other one has come as far as it may.
                let receive = receive.lock().unwrap();
                receive.recv().unwrap();
                return started.lock().unwrap().len();
            }
            if number == LOOKAHEAD_MAX {
                send.send(()).unwrap();
            }
            0
        };
        let mut seen = 0;
        run_ordered(count, 2, work, |at, it| {
            if at == 0 {
                seen = it;
            }
        });
        assert!(seen <= LOOKAHEAD_MAX + 2, "{seen}");
    }
}

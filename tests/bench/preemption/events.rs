//! Events: admit, evict, finish.

use crate::clusters::{BorrowingCluster, Random};
use crate::cycles::{full_queues, reservation};
use crate::measure::{allocations, median_us, us};
use lockkeeper_preemption::{Reservation, State, WorkloadId};

const RUNNING: usize = 100_000;
/// The number of measured events per kind: enough to include amortised work.
const EVENTS: usize = 20_000;

pub fn print() {
    println!();
    println!(
        "{:32} {:>9} {:>12} {:>12}",
        "an event", "running", "CPU us", "allocations"
    );
    for (what, a_second) in [("100 a second", 100), ("all in one second", RUNNING)] {
        let mut state = full_queues(RUNNING, a_second);
        let mut admitted = 0;
        while admitted < RUNNING {
            let now_s = i64::try_from(admitted / a_second).unwrap();
            admitted += state.next_cycle(now_s, false).entries.len();
        }
        let of = reservation(&mut state, "a");
        events(what, &mut state, &of, |at| {
            format!("default/pending-{at:06}")
        });
    }
    let cluster = BorrowingCluster::new(1_000, RUNNING);
    let mut state = cluster.empty_state();
    cluster.fill(&mut state);
    let of = reservation(&mut state, "default");
    changes(&cluster, &mut state);
    events("1000 queues", &mut state, &of, |at| {
        format!("default/running-{at:07}")
    });
}

/// A queue is changed, and takes effect.
fn changes(cluster: &BorrowingCluster, state: &mut State) {
    let root = state.queue("queue-0000").unwrap();
    let mut change = || {
        cluster.touch(state, 500);
        state.reactivate(root);
    };
    let time = median_us(11, &mut change);
    let count = allocations(change);
    println!(
        "{:32} {RUNNING:9} {time:12.2} {count:12}",
        "a queue changes, 1000 queues"
    );
}

fn events(what: &str, state: &mut State, held: &Reservation, name: impl Fn(usize) -> String) {
    let mut random = Random(3);
    let mut ids: Vec<(WorkloadId, Reservation)> = Vec::new();
    for at in 0..RUNNING {
        let mut held = held.clone();
        held.reserved_at_s = i64::try_from(random.below(1_000_000)).unwrap();
        ids.extend(state.workload(&name(at)).map(|id| (id, held)));
    }
    // In no order.
    for at in 0..EVENTS {
        let other = usize::try_from(random.below(ids.len() as u64)).unwrap();
        ids.swap(at, other);
    }
    ids.truncate(EVENTS);
    let mut row = |event: &str, run: &mut dyn FnMut(&mut State, WorkloadId, &Reservation)| {
        let mut time = 0.0;
        let count = allocations(|| {
            time = us(|| ids.iter().for_each(|(id, held)| run(state, *id, held)));
        });
        let (time, count) = (time / EVENTS as f64, count as f64 / EVENTS as f64);
        let what = format!("{event}, {what}");
        println!("{what:32} {RUNNING:9} {time:12.2} {count:12.3}");
    };
    row("evict", &mut |state, id, _| {
        state.release(id);
    });
    row("admit", &mut |state, id, held| state.reserve(id, held));
    row("evict requested", &mut |state, id, _| {
        state.mark_evicted(id);
    });
    row("finish", &mut |state, id, _| {
        state.remove(id);
    });
}

//! Probes of a controller while it works, as the kubelet sends them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::controller::Controller;

/// Pause between two probes.
const INTERVAL_MS: u64 = 20;

/// Probes the controller during `action`; each probe must succeed. Returns their number.
#[track_caller]
pub fn count_while(controller: &Controller, action: impl FnOnce()) -> usize {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let probes = scope.spawn(|| count(controller, &is_over));
        let result = catch_unwind(AssertUnwindSafe(action));
        is_over.store(true, Ordering::Relaxed);
        let probes = probes.join().unwrap();
        if let Err(e) = result {
            resume_unwind(e);
        }
        probes
    })
}

fn count(controller: &Controller, is_over: &AtomicBool) -> usize {
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) {
        for probe in ["/livez", "/readyz"] {
            assert_eq!(controller.probe_status(probe), Some(200), "{probe}");
            count += 1;
        }
        thread::sleep(Duration::from_millis(INTERVAL_MS));
    }
    count
}

//! The time of runs that is lost.

use super::job_trace::PreemptedRun;
use super::result::{Run, RunEnd};

/// The seconds of a run that have to be repeated: all of an evicted run, whose pods were not ready in time, and of a preempted
/// run that starts again; of a preempted one that continues, the time until its pods were ready.
pub(super) fn lost_s(run: &Run, mode: PreemptedRun) -> i64 {
    let until_s = match (run.end, mode) {
        (RunEnd::Open | RunEnd::Finished(_) | RunEnd::Evicted(_), _) => return 0,
        (RunEnd::NotReady(eviction), _) => eviction.at_s,
        (RunEnd::Preempted(eviction), PreemptedRun::Restart) => eviction.at_s,
        (RunEnd::Preempted(eviction), PreemptedRun::Resume) => {
            run.ready_at_s.unwrap_or(eviction.at_s)
        }
    };
    until_s.saturating_sub(run.from_s)
}

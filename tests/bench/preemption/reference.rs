//! The plain reference: collects all candidates, sorts them, removes one by one until the preemptor
//! fits, and fills back. So does Kueue, for a flat cohort and policies of lower priority.

use crate::clusters::{GIB, Job};
use std::cmp::Reverse;

pub struct ReferenceSearch<'a> {
    /// By queue, the nominal quota and the usage of cpu and memory.
    queues: Vec<([i64; 2], [i64; 2])>,
    jobs: &'a [Job],
}

impl<'a> ReferenceSearch<'a> {
    /// `nominal` is in units of one cpu and one GiB, by queue; a job uses one unit.
    pub fn new(nominal: &[usize], jobs: &'a [Job]) -> Self {
        let quota = |units: &usize| [1000, GIB].map(|unit| i64::try_from(*units).unwrap() * unit);
        let mut queues: Vec<_> = nominal.iter().map(|it| (quota(it), [0, 0])).collect();
        for job in jobs {
            change(&mut queues, job, 1);
        }
        Self { queues, jobs }
    }

    /// The victims for a preemptor of the first queue, which has none running: names, sorted.
    pub fn search(&mut self, priority: i32, units: i64) -> Vec<&'a str> {
        let request = [1000, GIB].map(|unit| units * unit);
        let queues = &self.queues;
        let mut candidates: Vec<&Job> = self
            .jobs
            .iter()
            .filter(|job| job.priority < priority && borrows(queues[job.queue]))
            .collect();
        candidates.sort_unstable_by(|a, b| {
            let key = |job: &Job| (job.priority, Reverse(job.reserved_at_s));
            key(a).cmp(&key(b)).then_with(|| a.uid.cmp(&b.uid))
        });
        let mut free = [0, 0];
        for (nominal, used) in queues {
            for at in 0..2 {
                free[at] += nominal[at] - used[at];
            }
        }
        let fits = |free: [i64; 2]| free[0] >= request[0] && free[1] >= request[1];
        let mut removed: Vec<&Job> = Vec::new();
        for job in candidates {
            if fits(free) {
                break;
            }
            if !borrows(self.queues[job.queue]) {
                continue;
            }
            change(&mut self.queues, job, -1);
            free = [free[0] + 1000, free[1] + GIB];
            removed.push(job);
        }
        let mut victims = Vec::new();
        let found = fits(free);
        for job in removed.into_iter().rev() {
            change(&mut self.queues, job, 1);
            let without = [free[0] - 1000, free[1] - GIB];
            if found && !fits(without) {
                victims.push(&*job.name);
            } else {
                free = without;
            }
        }
        victims.sort_unstable();
        victims
    }
}

fn borrows((nominal, used): ([i64; 2], [i64; 2])) -> bool {
    used[0] > nominal[0] || used[1] > nominal[1]
}

fn change(queues: &mut [([i64; 2], [i64; 2])], job: &Job, sign: i64) {
    let (_, used) = &mut queues[job.queue];
    *used = [used[0] + sign * 1000, used[1] + sign * GIB];
}

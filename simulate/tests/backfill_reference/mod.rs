//! Backfill of one queue, written down plainly: the usage of each second is in an array.

/// A job of one queue.
#[derive(Clone, Debug)]
pub struct ReferenceJob {
    pub arrival_s: i64,
    pub run_s: i64,
    pub limit_s: Option<i64>,
    pub priority: i32,
    /// By resource.
    pub amounts: [i64; 2],
}

/// Which jobs have a planned start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    None,
    Easy,
    Conservative,
}

/// The usage of each second from now on.
struct Seconds {
    used: Vec<[i64; 2]>,
    capacity: [i64; 2],
}

impl Seconds {
    fn fits(&self, amounts: [i64; 2], from: usize, until: usize) -> bool {
        let seconds = &self.used[from..until.min(self.used.len())];
        let fits = |used: &[i64; 2]| (0..2).all(|at| used[at] + amounts[at] <= self.capacity[at]);
        seconds.iter().all(fits)
    }

    fn add(&mut self, amounts: [i64; 2], from: usize, until: usize) {
        let until = until.min(self.used.len());
        for used in &mut self.used[from..until] {
            for at in 0..2 {
                used[at] += amounts[at];
            }
        }
    }

    /// The first second from which a job fits for its whole length.
    fn earliest(&self, amounts: [i64; 2], length: usize) -> Option<usize> {
        let mut seconds = 0..self.used.len();
        seconds.find(|at| self.fits(amounts, *at, at.saturating_add(length)))
    }
}

/// The seconds that a plan considers a job to run.
fn length(job: &ReferenceJob) -> usize {
    job.limit_s
        .map_or(usize::MAX, |it| usize::try_from(it).unwrap())
}

/// Returns when each job starts.
pub fn reference_starts(
    jobs: &[ReferenceJob],
    capacity: [i64; 2],
    policy: Policy,
    workloads_max: usize,
) -> Vec<Option<i64>> {
    let mut starts: Vec<Option<i64>> = vec![None; jobs.len()];
    let end = |at: usize, starts: &[Option<i64>]| {
        let run_s = jobs[at].run_s.min(jobs[at].limit_s.unwrap_or(i64::MAX));
        starts[at].map(|start| start + run_s)
    };
    let mut now = 0;
    loop {
        while start_some(jobs, capacity, policy, workloads_max, now, &mut starts) {}
        let ends = (0..jobs.len()).filter_map(|at| end(at, &starts));
        let times = ends.chain(jobs.iter().map(|it| it.arrival_s));
        match times.filter(|it| *it > now).min() {
            Some(next) => now = next,
            None => return starts,
        }
    }
}

/// Starts the head, or jobs behind it; returns whether any started.
fn start_some(
    jobs: &[ReferenceJob],
    capacity: [i64; 2],
    policy: Policy,
    workloads_max: usize,
    now: i64,
    starts: &mut [Option<i64>],
) -> bool {
    // Long enough for all jobs one after the other.
    let horizon: i64 = jobs
        .iter()
        .map(|it| it.limit_s.unwrap_or(it.run_s) + 1)
        .sum();
    let mut seconds = Seconds {
        used: vec![[0; 2]; usize::try_from(horizon + 2).unwrap()],
        capacity,
    };
    for (job, start) in jobs.iter().zip(starts.iter()) {
        let Some(start) = *start else { continue };
        let run_s = job.run_s.min(job.limit_s.unwrap_or(i64::MAX));
        if start + run_s > now {
            let left = job
                .limit_s
                .map_or(usize::MAX, |it| usize::try_from(start + it - now).unwrap());
            seconds.add(job.amounts, 0, left.max(1));
        }
    }
    let is_pending = |at: &usize| starts[*at].is_none() && jobs[*at].arrival_s <= now;
    let mut pending: Vec<usize> = (0..jobs.len()).filter(is_pending).collect();
    pending.sort_by_key(|at| (-jobs[*at].priority, jobs[*at].arrival_s, *at));
    let Some((head, behind)) = pending.split_first() else {
        return false;
    };
    if seconds.fits(jobs[*head].amounts, 0, 1) {
        starts[*head] = Some(now);
        return true;
    }
    if policy == Policy::None {
        return false;
    }
    let Some(planned) = seconds.earliest(jobs[*head].amounts, length(&jobs[*head])) else {
        return false;
    };
    seconds.add(
        jobs[*head].amounts,
        planned,
        planned.saturating_add(length(&jobs[*head])),
    );
    let mut has_started = false;
    for at in behind.iter().take(workloads_max) {
        let (amounts, length) = (jobs[*at].amounts, length(&jobs[*at]));
        let earliest = match policy {
            Policy::Conservative => seconds.earliest(amounts, length),
            _ => seconds.fits(amounts, 0, length).then_some(0),
        };
        let Some(from) = earliest else { continue };
        seconds.add(amounts, from, from.saturating_add(length));
        if from == 0 {
            starts[*at] = Some(now);
            has_started = true;
        }
    }
    has_started
}

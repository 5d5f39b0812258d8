//! Counts traces, and what happens in them.

use lockkeeper_simulate::timeline::Timeline;

#[derive(Default)]
pub struct Counts {
    traces: usize,
    agreeing: usize,
    jobs: usize,
    admissions: usize,
    preemptions: usize,
    cycles: u64,
}

impl Counts {
    /// Adds one trace.
    pub fn add(&mut self, timeline: &Timeline, agrees: bool) {
        self.sum(&Self {
            traces: 1,
            agreeing: usize::from(agrees),
            jobs: timeline.stats.jobs,
            admissions: timeline.stats.admissions,
            preemptions: timeline.stats.preemptions,
            cycles: timeline.cycles,
        });
    }

    /// Adds other counts.
    pub fn sum(&mut self, other: &Self) {
        self.traces += other.traces;
        self.agreeing += other.agreeing;
        self.jobs += other.jobs;
        self.admissions += other.admissions;
        self.preemptions += other.preemptions;
        self.cycles += other.cycles;
    }

    pub fn print(&self, name: &str) {
        println!(
            "{name:16} {} of {} traces agree: {} jobs, {} admissions, {} preemptions, {} cycles",
            self.agreeing, self.traces, self.jobs, self.admissions, self.preemptions, self.cycles
        );
    }
}

//! The state in which victims are searched for.

use crate::reference::ReferenceSearch;
use lockkeeper_preemption::{
    Algorithm, Amount, FlavorFungibility, FlavorQuotas, FlavorResource, Options, PodSet,
    Preemption, QueueSpec, QueueingStrategy, Quota, ReclaimWithinCohort, Reservation,
    ResourceGroup, State, WithinClusterQueue, WorkloadId, WorkloadSpec,
};

pub const GIB: i64 = 1 << 30;

/// A running workload of one cpu and one GiB.
pub struct Job {
    pub name: String,
    pub uid: String,
    pub queue: usize,
    pub priority: i32,
    pub reserved_at_s: i64,
}

/// One flat cohort, cpu and memory of one flavor. The first queue is idle and lends all it has; the
/// others are full and borrow half of their usage.
pub struct BorrowingCluster {
    /// In units of one cpu and one GiB, by queue.
    nominal: Vec<usize>,
    pub jobs: Vec<Job>,
}

/// Priority 10, requests 50 CPUs and 50 GiB: 50 victims.
pub const PREEMPTOR: (i32, i64) = (10, 50);

impl BorrowingCluster {
    pub fn new(queues: usize, running: usize) -> Self {
        let each = running / (queues - 1);
        let running = each * (queues - 1);
        let mut nominal = vec![each / 2; queues];
        // The remainder of an odd number is borrowed, too.
        nominal[0] = running - (each / 2) * (queues - 1);
        let mut random = Random(7);
        let jobs = (0..running).map(|at| Job {
            name: format!("default/running-{at:07}"),
            uid: uid(&mut random),
            queue: 1 + at % (queues - 1),
            priority: i32::try_from(random.below(5)).unwrap(),
            reserved_at_s: i64::try_from(random.below(1_000_000)).unwrap(),
        });
        let jobs = jobs.collect();
        Self { nominal, jobs }
    }

    /// Priority 1, requests a quarter of all quota: no workload is preempted for it.
    pub fn infeasible_preemptor(&self) -> (i32, i64) {
        (1, i64::try_from(self.jobs.len() / 4).unwrap())
    }

    pub fn reference_search(&self) -> ReferenceSearch<'_> {
        ReferenceSearch::new(&self.nominal, &self.jobs)
    }

    /// The queues with all their quota free.
    pub fn empty_state(&self) -> State {
        self.empty_state_with(Algorithm::Classical)
    }

    pub fn empty_state_with(&self, algorithm: Algorithm) -> State {
        let mut state = State::new(Options {
            algorithm,
            ..Options::default()
        });
        for (at, nominal) in self.nominal.iter().enumerate() {
            set_queue(&mut state, at, *nominal);
        }
        state
    }

    /// A queue is declared once more, as it is.
    pub fn touch(&self, state: &mut State, at: usize) {
        set_queue(state, at, self.nominal[at]);
    }

    pub fn fill(&self, state: &mut State) {
        let of = pairs(state);
        for job in &self.jobs {
            let spec = WorkloadSpec {
                name: &job.name,
                uid: &job.uid,
                queue: &format!("queue-{:04}", job.queue),
                priority: job.priority,
                preemption_priority: None,
                order_time: 0,
                waiting_since_s: 0,
                pod_sets: vec![pod_set(state, 1)],
                is_in_scope: true,
                preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
            };
            let held = Reservation {
                usage: vec![(of[0], Amount::new(1000)), (of[1], Amount::new(GIB))],
                reserved_at_s: job.reserved_at_s,
                is_evicted: false,
            };
            state.add_admitted(spec, &held);
        }
    }
}

fn set_queue(state: &mut State, at: usize, nominal: usize) {
    let (cpu, memory) = (state.resource("cpu"), state.resource("memory"));
    let flavor = state.flavor("default");
    let nominal = i64::try_from(nominal).unwrap();
    let quota = |unit: i64| Quota {
        nominal: Amount::new(nominal * unit),
        borrowing_limit: None,
        lending_limit: None,
    };
    state.set_queue(QueueSpec {
        name: &format!("queue-{at:04}"),
        cohort: Some("all"),
        groups: vec![ResourceGroup {
            resources: vec![cpu, memory],
            flavors: vec![FlavorQuotas {
                flavor,
                quotas: vec![(cpu, quota(1000)), (memory, quota(GIB))],
            }],
        }],
        preemption: Preemption {
            within_cluster_queue: WithinClusterQueue::LowerPriority,
            reclaim_within_cohort: ReclaimWithinCohort::LowerPriority,
            ..Preemption::default()
        },
        fungibility: FlavorFungibility::default(),
        strategy: QueueingStrategy::BestEffortFifo,
        backfill: None,
        weight: 1.0,
        elastic: None,
        is_active: true,
    });
}

fn pairs(state: &mut State) -> [FlavorResource; 2] {
    ["cpu", "memory"].map(|name| FlavorResource {
        flavor: state.flavor("default"),
        resource: state.resource(name),
    })
}

/// A pod set that requests this many CPUs and GiB.
pub fn pod_set(state: &mut State, units: i64) -> PodSet {
    let requests = [("cpu", 1000), ("memory", GIB)];
    let requests = requests
        .map(|(name, unit)| (state.resource(name), Amount::new(units * unit)))
        .into();
    PodSet {
        name: "main".into(),
        count: 1,
        count_min: None,
        requests,
        ineligible: Box::new([]),
        template_hash: 0,
    }
}

/// A workload that waits in the first queue.
pub fn pending(state: &mut State, name: &str, (priority, units): (i32, i64)) -> WorkloadId {
    let pod_sets = vec![pod_set(state, units)];
    state.add_pending(WorkloadSpec {
        name,
        uid: name,
        queue: "queue-0000",
        priority,
        preemption_priority: None,
        order_time: 0,
        waiting_since_s: 0,
        pod_sets,
        is_in_scope: true,
        preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
    })
}

pub fn uid(random: &mut Random) -> String {
    let (a, b) = (random.next(), random.next());
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xffff,
        b >> 48,
        b & 0xffff_ffff_ffff
    )
}

/// The same numbers in each run (xorshift64*).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

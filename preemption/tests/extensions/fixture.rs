//! Cohorts with one flavor and one resource, with access by name.

use lockkeeper_preemption::{
    Amount, BorrowWithinCohort, CohortSpec, Cycle, Decision, Entry, FlavorFungibility, FlavorId,
    FlavorQuotas, FlavorResource, Options, PodSet, Preemption, PreemptionLimits, QueueSpec,
    QueueingStrategy, Quota, ReclaimWithinCohort, Reservation, ResourceGroup, State, Step,
    WithinClusterQueue, WorkloadSpec,
};

pub struct Fixture {
    pub state: State,
    pub now_s: i64,
}

/// The spec of a queue in these tests.
#[derive(Clone, Copy)]
pub struct TestQueue {
    pub name: &'static str,
    pub nominal: i64,
    pub cohort: &'static str,
    pub strategy: QueueingStrategy,
    pub within: WithinClusterQueue,
    pub reclaim: ReclaimWithinCohort,
    pub borrow: BorrowWithinCohort,
    pub limits: PreemptionLimits,
    pub is_active: bool,
}

/// A queue that reclaims its quota from any priority, and preempts lower priorities in the queue itself.
pub fn test_queue(name: &'static str, nominal: i64) -> TestQueue {
    TestQueue {
        name,
        nominal,
        cohort: "all",
        strategy: QueueingStrategy::BestEffortFifo,
        within: WithinClusterQueue::LowerPriority,
        reclaim: ReclaimWithinCohort::Any,
        borrow: BorrowWithinCohort::Never,
        limits: PreemptionLimits::default(),
        is_active: true,
    }
}

impl Fixture {
    pub fn new(options: Options, teams: &[TestQueue]) -> Self {
        let mut house = Self {
            state: State::new(options),
            now_s: 1_000,
        };
        for team in teams {
            house.set_queue(team);
        }
        house
    }

    pub fn set_queue(&mut self, team: &TestQueue) {
        let spec = self.queue_spec(team);
        self.state.set_queue(spec);
    }

    pub fn queue_spec(&mut self, team: &TestQueue) -> QueueSpec<'static> {
        let of = self.gpu_resource();
        let quota = Quota {
            nominal: Amount::new(team.nominal),
            ..Quota::default()
        };
        QueueSpec {
            name: team.name,
            cohort: Some(team.cohort),
            groups: vec![ResourceGroup {
                resources: vec![of.resource],
                flavors: vec![FlavorQuotas {
                    flavor: of.flavor,
                    quotas: vec![(of.resource, quota)],
                }],
            }],
            preemption: Preemption {
                within_cluster_queue: team.within,
                reclaim_within_cohort: team.reclaim,
                borrow_within_cohort: team.borrow,
                limits: team.limits,
            },
            fungibility: FlavorFungibility::default(),
            strategy: team.strategy,
            backfill: None,
            weight: 1.0,
            is_active: team.is_active,
            elastic: None,
        }
    }

    /// Adds cohorts without quota as children of the cohort `all`.
    pub fn add_cohorts(&mut self, cohorts: &[&str]) {
        for name in cohorts {
            self.state.set_cohort(CohortSpec {
                name,
                parent: Some("all"),
                quotas: Vec::new(),
                weight: 1.0,
            });
        }
    }

    fn gpu_resource(&mut self) -> FlavorResource {
        FlavorResource {
            flavor: self.state.flavor("default"),
            resource: self.state.resource("gpu"),
        }
    }

    fn workload_spec<'a>(
        &mut self,
        name: &'a str,
        queue: &'a str,
        priority: i32,
        gpus: i64,
    ) -> WorkloadSpec<'a> {
        let of = self.gpu_resource();
        WorkloadSpec {
            name,
            uid: name,
            queue,
            priority,
            preemption_priority: None,
            order_time: self.now_s,
            waiting_since_s: self.now_s,
            pod_sets: vec![PodSet {
                name: "main".into(),
                count: 1,
                count_min: None,
                requests: Box::new([(of.resource, Amount::new(gpus))]),
                ineligible: Box::new([]),
                template_hash: 0,
            }],
            is_in_scope: true,
            preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
        }
    }

    pub fn add_admitted(&mut self, name: &str, queue: &str, priority: i32, gpus: i64) {
        let spec = self.workload_spec(name, queue, priority, gpus);
        let held = Reservation {
            usage: vec![(self.gpu_resource(), Amount::new(gpus))],
            reserved_at_s: self.now_s,
            is_evicted: false,
        };
        self.state.add_admitted(spec, &held);
        self.now_s += 1;
    }

    pub fn mark_evicted(&mut self, name: &str) {
        let id = self.state.workload(name).unwrap();
        self.state.mark_evicted(id);
    }

    pub fn add_pending(&mut self, name: &str, queue: &str, priority: i32, gpus: i64) {
        let spec = self.workload_spec(name, queue, priority, gpus);
        self.state.add_pending(spec);
    }

    /// Adds a workload that may not use a flavor.
    pub fn add_pending_without_flavor(
        &mut self,
        name: &str,
        queue: &str,
        priority: i32,
        gpus: i64,
        flavor: FlavorId,
    ) {
        let mut spec = self.workload_spec(name, queue, priority, gpus);
        for pod_set in &mut spec.pod_sets {
            pod_set.ineligible = Box::new([flavor]);
        }
        self.state.add_pending(spec);
    }

    /// Adds a workload that the namespace selector of its queue does not match.
    pub fn add_pending_out_of_scope(&mut self, name: &str, queue: &str, priority: i32, gpus: i64) {
        let mut spec = self.workload_spec(name, queue, priority, gpus);
        spec.is_in_scope = false;
        self.state.add_pending(spec);
    }

    /// Runs a cycle one second later; returns the decision on each entry, in order.
    pub fn run_cycle(&mut self) -> Vec<String> {
        let cycle = self.run_traced_cycle();
        cycle
            .entries
            .iter()
            .map(|it| self.describe_entry(it))
            .collect()
    }

    pub fn run_traced_cycle(&mut self) -> Cycle {
        self.now_s += 1;
        self.state.next_cycle(self.now_s, true)
    }

    pub fn describe_entry(&self, entry: &Entry) -> String {
        let name = self.state.workload_name(entry.workload);
        match &entry.decision {
            Decision::Preempt(victims) => {
                let names = victims
                    .iter()
                    .map(|it| self.state.workload_name(it.workload));
                format!("{name} preempts {}", names.collect::<Vec<_>>().join(" "))
            }
            other => format!("{name} {other:?}"),
        }
    }

    pub fn release(&mut self, name: &str) {
        let id = self.state.workload(name).unwrap();
        self.state.release(id);
    }

    pub fn remove(&mut self, name: &str) {
        let id = self.state.workload(name).unwrap();
        self.state.remove(id);
    }

    /// The steps of a workload's entry in the next cycle.
    pub fn trace_steps(&mut self, name: &str) -> Vec<Step> {
        let id = self.state.workload(name).unwrap();
        let cycle = self.run_traced_cycle();
        let entry = cycle.entries.iter().find(|it| it.workload == id).unwrap();
        entry.trace.steps().to_vec()
    }
}

//! Cohorts with one resource of one flavor, spoken to by name.

use lockkeeper_preemption::{
    Amount, BorrowWithinCohort, CohortSpec, Cycle, Decision, Entry, FlavorFungibility,
    FlavorQuotas, FlavorResource, Options, PodSet, Preemption, PreemptionLimits, QueueSpec,
    QueueingStrategy, Quota, ReclaimWithinCohort, Reservation, ResourceGroup, State, Step,
    WithinClusterQueue, WorkloadSpec,
};

pub struct House {
    pub state: State,
    pub now_s: i64,
}

/// A queue, as the tests want it.
#[derive(Clone, Copy)]
pub struct Team {
    pub name: &'static str,
    pub nominal: i64,
    pub cohort: &'static str,
    pub strategy: QueueingStrategy,
    pub within: WithinClusterQueue,
    pub reclaim: ReclaimWithinCohort,
    pub borrow: BorrowWithinCohort,
    pub limits: PreemptionLimits,
}

/// Takes back what is its own from anybody, and lower priorities in its queue.
pub fn team(name: &'static str, nominal: i64) -> Team {
    Team {
        name,
        nominal,
        cohort: "all",
        strategy: QueueingStrategy::BestEffortFifo,
        within: WithinClusterQueue::LowerPriority,
        reclaim: ReclaimWithinCohort::Any,
        borrow: BorrowWithinCohort::Never,
        limits: PreemptionLimits::default(),
    }
}

impl House {
    pub fn new(options: Options, teams: &[Team]) -> Self {
        let mut house = Self {
            state: State::new(options),
            now_s: 1_000,
        };
        for team in teams {
            house.set(team);
        }
        house
    }

    pub fn set(&mut self, team: &Team) {
        let of = self.of();
        let quota = Quota {
            nominal: Amount::new(team.nominal),
            ..Quota::default()
        };
        self.state.set_queue(QueueSpec {
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
            weight: 1.0,
            is_active: true,
            elastic: None,
        });
    }

    /// Puts cohorts without quota of their own below the one of all.
    pub fn split(&mut self, cohorts: &[&str]) {
        for name in cohorts {
            self.state.set_cohort(CohortSpec {
                name,
                parent: Some("all"),
                quotas: Vec::new(),
                weight: 1.0,
            });
        }
    }

    fn of(&mut self) -> FlavorResource {
        FlavorResource {
            flavor: self.state.flavor("default"),
            resource: self.state.resource("gpu"),
        }
    }

    fn spec<'a>(
        &mut self,
        name: &'a str,
        queue: &'a str,
        priority: i32,
        gpus: i64,
    ) -> WorkloadSpec<'a> {
        let of = self.of();
        WorkloadSpec {
            name,
            uid: name,
            queue,
            priority,
            order_time: self.now_s,
            pod_sets: vec![PodSet {
                name: "main".into(),
                count: 1,
                count_min: None,
                requests: Box::new([(of.resource, Amount::new(gpus))]),
                ineligible: Box::new([]),
                shape: 0,
            }],
            is_in_scope: true,
            says: lockkeeper_preemption::job::Says::default(),
        }
    }

    pub fn runs(&mut self, name: &str, queue: &str, priority: i32, gpus: i64) {
        let spec = self.spec(name, queue, priority, gpus);
        let held = Reservation {
            usage: vec![(self.of(), Amount::new(gpus))],
            reserved_at_s: self.now_s,
            is_evicted: false,
        };
        self.state.add_running(spec, &held);
        self.now_s += 1;
    }

    pub fn is_told_to_go(&mut self, name: &str) {
        let id = self.state.workload(name).unwrap();
        self.state.mark_evicted(id);
    }

    pub fn waits(&mut self, name: &str, queue: &str, priority: i32, gpus: i64) {
        let spec = self.spec(name, queue, priority, gpus);
        self.state.add_pending(spec);
    }

    /// A cycle, a second later: what became of each, in order.
    pub fn cycle(&mut self) -> Vec<String> {
        let cycle = self.traced();
        cycle.entries.iter().map(|it| self.told(it)).collect()
    }

    pub fn traced(&mut self) -> Cycle {
        self.now_s += 1;
        self.state.next_cycle(self.now_s, true)
    }

    pub fn told(&self, entry: &Entry) -> String {
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

    pub fn goes(&mut self, name: &str) {
        let id = self.state.workload(name).unwrap();
        self.state.release(id);
    }

    pub fn is_gone(&mut self, name: &str) {
        let id = self.state.workload(name).unwrap();
        self.state.remove(id);
    }

    /// The steps of a workload's entry in the next cycle.
    pub fn steps(&mut self, name: &str) -> Vec<Step> {
        let id = self.state.workload(name).unwrap();
        let cycle = self.traced();
        let entry = cycle.entries.iter().find(|it| it.workload == id).unwrap();
        entry.trace.steps().to_vec()
    }
}

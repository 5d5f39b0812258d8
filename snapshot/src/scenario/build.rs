//! From a scenario to a state.

use super::{ClusterQueue, Quota, Scenario, Selector, Used, Workload};
use lockkeeper_preemption as core;
use lockkeeper_preemption::{
    Algorithm, Amount, CohortSpec, Compatibility, FlavorResource, NodeId, Options, QueueSpec,
    Reservation, State, WorkloadId, WorkloadSpec,
};
use std::collections::BTreeMap;

/// A state made of a scenario.
#[derive(Debug)]
pub struct Loaded {
    /// The state.
    pub state: State,
    /// The workload that wants in.
    pub incoming: Option<WorkloadId>,
    /// The workloads that come later, by name.
    pub late: BTreeMap<String, Workload>,
    selectors: BTreeMap<String, Option<Selector>>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
}

/// Makes the state.
#[must_use]
pub fn load(scenario: &Scenario, compatibility: Compatibility) -> Loaded {
    let gate = |name: &str| scenario.feature_gates.get(name) == Some(&false);
    let mut state = State::new(Options {
        algorithm: algorithm(scenario),
        compatibility,
        disable_partial_admission: gate("PartialAdmission"),
        disable_recomputation: gate("RecomputeAssignmentUponPreemptionTargetsOverlap"),
        ..Options::default()
    });
    for cohort in &scenario.cohorts {
        let quotas = cohort.quotas.iter();
        let quotas = quotas
            .map(|it| (pair(&mut state, &it.flavor, &it.resource), quota(it)))
            .collect();
        state.set_cohort(CohortSpec {
            name: &cohort.name,
            parent: cohort.parent.as_deref(),
            quotas,
            weight: cohort.fair_weight,
        });
    }
    for queue in &scenario.cluster_queues {
        set_queue(&mut state, queue);
    }
    let selectors = scenario.cluster_queues.iter();
    let selectors = selectors.map(|it| (it.name.clone(), it.namespace_selector.clone()));
    let mut loaded = Loaded {
        state,
        incoming: None,
        late: BTreeMap::new(),
        selectors: selectors.collect(),
        namespaces: scenario.namespaces.clone(),
    };
    for workload in &scenario.admitted {
        loaded.add_running(workload, scenario.now);
    }
    for workload in &scenario.pending {
        if workload.late {
            loaded.late.insert(workload.name.clone(), workload.clone());
        } else {
            loaded.add_pending(workload);
        }
    }
    loaded.incoming = scenario.incoming.as_ref().map(|it| loaded.add_pending(it));
    loaded
}

impl Loaded {
    /// Adds a workload that waits.
    pub fn add_pending(&mut self, workload: &Workload) -> WorkloadId {
        let pod_sets = pod_sets(&mut self.state, workload);
        let spec = WorkloadSpec {
            is_in_scope: self.is_in_scope(workload),
            ..spec(workload, pod_sets)
        };
        self.state.add_pending(spec)
    }

    fn add_running(&mut self, workload: &Workload, now_s: i64) {
        let pod_sets = pod_sets(&mut self.state, workload);
        let mut usage: BTreeMap<FlavorResource, Amount> = BTreeMap::new();
        for pod_set in &workload.pod_sets {
            for (resource, amount) in &pod_set.requests {
                let Some(flavor) = pod_set.flavors.get(resource) else {
                    continue;
                };
                let of = pair(&mut self.state, flavor, resource);
                let sum = usage.entry(of).or_default();
                *sum = sum.plus(Amount::new(*amount));
            }
            if !pod_set.requests.contains_key("pods")
                && let Some(flavor) = pod_set.flavors.get("pods")
            {
                let of = pair(&mut self.state, flavor, "pods");
                let sum = usage.entry(of).or_default();
                *sum = sum.plus(Amount::new(pod_set.count));
            }
        }
        let spec = WorkloadSpec {
            is_in_scope: self.is_in_scope(workload),
            ..spec(workload, pod_sets)
        };
        let held = Reservation {
            usage: usage.into_iter().collect(),
            reserved_at_s: workload.quota_reserved_time.unwrap_or(now_s),
            is_evicted: workload.evicted,
        };
        self.state.add_running(spec, &held);
    }

    fn is_in_scope(&self, workload: &Workload) -> bool {
        let Some(Some(selector)) = self.selectors.get(&workload.cluster_queue) else {
            return true;
        };
        let none = BTreeMap::new();
        let labels = self.namespaces.get(&workload.namespace).unwrap_or(&none);
        selects(selector, labels)
    }

    /// The usage of a node, without what is nothing.
    #[must_use]
    pub fn usage(&self, node: NodeId) -> Vec<Used> {
        let used = self.state.usage(node).into_iter();
        let used = used.filter(|(_, amount)| *amount != Amount::ZERO);
        named(&self.state, used)
    }
}

/// Amounts with the names of their flavors and resources, sorted by those.
#[must_use]
pub fn quota_pairs(state: &State, amounts: &[(FlavorResource, Amount)]) -> Vec<Used> {
    named(state, amounts.iter().copied())
}

fn named(state: &State, amounts: impl Iterator<Item = (FlavorResource, Amount)>) -> Vec<Used> {
    let mut named: Vec<Used> = amounts
        .map(|(of, amount)| Used {
            flavor: state.flavor_name(of.flavor).to_owned(),
            resource: state.resource_name(of.resource).to_owned(),
            amount: amount.get(),
        })
        .collect();
    named.sort();
    named
}

fn algorithm(scenario: &Scenario) -> Algorithm {
    if scenario.algorithm != "fair" {
        return Algorithm::Classical;
    }
    let strategies = scenario.fair_sharing.iter();
    let strategies = strategies.flat_map(|it| &it.preemption_strategies);
    Algorithm::FairSharing(
        strategies
            .map(|name| match name.as_str() {
                "LessThanInitialShare" => core::FairStrategy::LessThanInitialShare,
                _ => core::FairStrategy::LessThanOrEqualToFinalShare,
            })
            .collect(),
    )
}

fn set_queue(state: &mut State, queue: &ClusterQueue) {
    let groups = queue.resource_groups.iter().map(|group| {
        let flavors = group.flavors.iter().map(|flavor| {
            let quotas = flavor.quotas.iter();
            let quotas = quotas.map(|it| (state.resource(&it.resource), quota(it)));
            let quotas = quotas.collect();
            core::FlavorQuotas {
                flavor: state.flavor(&flavor.name),
                quotas,
            }
        });
        let flavors = flavors.collect();
        let resources = group.resources.iter().map(|it| state.resource(it));
        core::ResourceGroup {
            resources: resources.collect(),
            flavors,
        }
    });
    let groups = groups.collect();
    let policy = &queue.preemption;
    let fungibility = &queue.flavor_fungibility;
    let fungible = |text: &str| match text {
        "TryNextFlavor" => core::Fungibility::TryNextFlavor,
        _ => core::Fungibility::MayStopSearch,
    };
    let id = state.set_queue(QueueSpec {
        name: &queue.name,
        cohort: queue.cohort.as_deref(),
        groups,
        preemption: core::Preemption {
            within_cluster_queue: match policy.within_cluster_queue.as_str() {
                "LowerPriority" => core::WithinClusterQueue::LowerPriority,
                "LowerOrNewerEqualPriority" => core::WithinClusterQueue::LowerOrNewerEqualPriority,
                _ => core::WithinClusterQueue::Never,
            },
            reclaim_within_cohort: match policy.reclaim_within_cohort.as_str() {
                "LowerPriority" => core::ReclaimWithinCohort::LowerPriority,
                "Any" => core::ReclaimWithinCohort::Any,
                _ => core::ReclaimWithinCohort::Never,
            },
            borrow_within_cohort: match &policy.borrow_within_cohort {
                Some(it) if it.policy == "LowerPriority" => {
                    core::BorrowWithinCohort::LowerPriority {
                        threshold_max: it.max_priority_threshold,
                    }
                }
                _ => core::BorrowWithinCohort::Never,
            },
        },
        fungibility: core::FlavorFungibility {
            when_can_borrow: fungible(&fungibility.when_can_borrow),
            when_can_preempt: fungible(&fungibility.when_can_preempt),
            preference: match fungibility.preference.as_deref() {
                Some("PreemptionOverBorrowing") => core::Preference::PreemptionOverBorrowing,
                _ => core::Preference::BorrowingOverPreemption,
            },
        },
        strategy: match queue.queueing_strategy.as_str() {
            "StrictFIFO" => core::QueueingStrategy::StrictFifo,
            _ => core::QueueingStrategy::BestEffortFifo,
        },
        weight: queue.fair_weight,
        is_active: !queue.inactive,
    });
    if !queue.usage.is_empty() {
        let usage = queue.usage.iter();
        let usage = usage
            .map(|it| {
                (
                    pair(state, &it.flavor, &it.resource),
                    Amount::new(it.amount),
                )
            })
            .collect();
        let name = state.node_name(id).to_owned();
        let spec = WorkloadSpec {
            name: &format!("usage of {name}"),
            uid: "",
            queue: &name,
            priority: 0,
            order_time_s: 0,
            pod_sets: Vec::new(),
            is_in_scope: true,
        };
        let held = Reservation {
            usage,
            reserved_at_s: 0,
            is_evicted: false,
        };
        state.add_running(spec, &held);
    }
}

fn spec(workload: &Workload, pod_sets: Vec<core::PodSet>) -> WorkloadSpec<'_> {
    WorkloadSpec {
        name: &workload.name,
        uid: &workload.uid,
        queue: &workload.cluster_queue,
        priority: workload.priority,
        order_time_s: workload.queue_order_time,
        pod_sets,
        is_in_scope: true,
    }
}

fn pod_sets(state: &mut State, workload: &Workload) -> Vec<core::PodSet> {
    let pod_sets = workload.pod_sets.iter().map(|pod_set| {
        let requests = pod_set.requests.iter();
        let requests = requests.map(|(name, it)| (state.resource(name), Amount::new(*it)));
        let requests = requests.collect();
        let ineligible = pod_set.ineligible_flavors.iter();
        core::PodSet {
            name: pod_set.name.as_str().into(),
            count: pod_set.count,
            count_min: pod_set.min_count,
            requests,
            ineligible: ineligible.map(|name| state.flavor(name)).collect(),
            shape: 0,
        }
    });
    pod_sets.collect()
}

fn pair(state: &mut State, flavor: &str, resource: &str) -> FlavorResource {
    FlavorResource {
        flavor: state.flavor(flavor),
        resource: state.resource(resource),
    }
}

fn quota(quota: &Quota) -> core::Quota {
    core::Quota {
        nominal: Amount::new(quota.nominal),
        borrowing_limit: quota.borrowing_limit.map(Amount::new),
        lending_limit: quota.lending_limit.map(Amount::new),
    }
}

fn selects(selector: &Selector, labels: &BTreeMap<String, String>) -> bool {
    let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    selector.match_labels.iter().all(has)
        && selector.match_expressions.iter().all(|it| {
            let value = labels.get(&it.key);
            let is_listed = value.is_some_and(|value| it.values.contains(value));
            match it.operator.as_str() {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}

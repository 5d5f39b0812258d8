//! Builds the cluster state of a scenario.

use crate::core_specs::{
    core_algorithm, core_amount, core_pod_sets, declare_cohort, declare_queue, flavor_resource,
};
use crate::error::ScenarioError;
use crate::scenario::{PreemptionPolicy, Scenario, UsageAmount, Workload};
use crate::validate::validate;
use lockkeeper_cluster_state::label_selector::{Selector, matches};
use lockkeeper_preemption as core;
use lockkeeper_preemption::job::{LabelValue, PreemptionLabels};
use lockkeeper_preemption::{
    Amount, Compatibility, Damping, FlavorResource, NodeId, Nomination, Options, Reservation,
    State, Trace, WhatIf, WorkloadId, WorkloadSpec,
};
use std::collections::BTreeMap;

/// The cluster state of a scenario.
#[derive(Debug)]
pub struct LoadedScenario {
    /// The state.
    pub state: State,
    /// The incoming workload: the preemptor of the scenario.
    pub incoming: Option<WorkloadId>,
    /// The workloads that are created later, by name.
    pub late: BTreeMap<String, Workload>,
    selectors: BTreeMap<String, Option<Selector>>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
}

/// Builds the state.
///
/// # Errors
///
/// A [`ScenarioError`] with the field path: a duplicate name, an amount that is negative or too large, a cycle of
/// cohorts, or an invalid count.
pub fn load(
    scenario: &Scenario,
    compatibility: Compatibility,
) -> Result<LoadedScenario, ScenarioError> {
    validate(scenario)?;
    let gate = |name: &str| scenario.feature_gates.get(name) == Some(&false);
    let mut state = State::new(Options {
        algorithm: core_algorithm(scenario.algorithm, scenario.fair_sharing.as_ref()),
        compatibility,
        disable_partial_admission: gate("PartialAdmission"),
        disable_recomputation: gate("RecomputeAssignmentUponPreemptionTargetsOverlap"),
        damping: match scenario.damping {
            Some(false) => Damping::Off,
            // Kueue has no damping, so its recorded decisions are compared without.
            None if compatibility == Compatibility::Kueue => Damping::Off,
            Some(true) | None => Damping::On,
        },
        victims_per_cycle_max: scenario.max_victims_per_cycle,
        ..Options::default()
    });
    state.set_now(scenario.now);
    for cohort in &scenario.cohorts {
        declare_cohort(&mut state, cohort);
    }
    for queue in &scenario.cluster_queues {
        let id = declare_queue(&mut state, queue);
        if !queue.usage.is_empty() {
            set_usage(&mut state, id, &queue.usage);
        }
    }
    let selectors = scenario.cluster_queues.iter();
    let selectors = selectors.map(|it| (it.name.clone(), it.namespace_selector.clone()));
    let mut loaded = LoadedScenario {
        state,
        incoming: None,
        late: BTreeMap::new(),
        selectors: selectors.collect(),
        namespaces: scenario.namespaces.clone(),
    };
    for workload in &scenario.admitted {
        loaded.add_admitted(workload, scenario.now);
    }
    for workload in &scenario.pending {
        if workload.late {
            loaded.late.insert(workload.name.clone(), workload.clone());
        } else {
            loaded.add_pending(workload);
        }
    }
    loaded.incoming = scenario.incoming.as_ref().map(|it| loaded.add_pending(it));
    Ok(loaded)
}

impl LoadedScenario {
    /// Adds a pending workload.
    pub fn add_pending(&mut self, workload: &Workload) -> WorkloadId {
        let pod_sets = core_pod_sets(&mut self.state, &workload.pod_sets);
        let spec = WorkloadSpec {
            is_in_scope: self.is_in_scope(workload),
            ..workload_spec(workload, pod_sets)
        };
        self.state.add_pending(spec)
    }

    fn add_admitted(&mut self, workload: &Workload, now_s: i64) {
        let pod_sets = core_pod_sets(&mut self.state, &workload.pod_sets);
        let mut usage: BTreeMap<FlavorResource, Amount> = BTreeMap::new();
        for pod_set in &workload.pod_sets {
            for (resource, amount) in &pod_set.requests {
                let Some(flavor) = pod_set.flavors.get(resource) else {
                    continue;
                };
                let of = flavor_resource(&mut self.state, flavor, resource);
                let sum = usage.entry(of).or_default();
                *sum = sum.plus(core_amount(*amount, resource));
            }
            // Kueue adds a request for the number of pods if a resource group covers `pods`.
            if !pod_set.requests.contains_key("pods")
                && let Some(flavor) = pod_set.flavors.get("pods")
            {
                let of = flavor_resource(&mut self.state, flavor, "pods");
                let sum = usage.entry(of).or_default();
                *sum = sum.plus(Amount::new(pod_set.count));
            }
        }
        let spec = WorkloadSpec {
            is_in_scope: self.is_in_scope(workload),
            ..workload_spec(workload, pod_sets)
        };
        let held = Reservation {
            usage: usage.into_iter().collect(),
            // As in Kueue, a reservation without a time counts as the newest.
            reserved_at_s: workload.quota_reserved_time.unwrap_or(now_s),
            is_evicted: workload.evicted,
        };
        self.state.add_admitted(spec, &held);
    }

    fn is_in_scope(&self, workload: &Workload) -> bool {
        let Some(Some(selector)) = self.selectors.get(&workload.cluster_queue) else {
            return true;
        };
        let none = BTreeMap::new();
        let labels = self.namespaces.get(&workload.namespace).unwrap_or(&none);
        matches(selector, labels)
    }

    /// The nomination of the incoming workload. If the scenario gives flavors, only the victims for them are searched.
    pub fn nominate(&mut self, scenario: &Scenario) -> Option<Nomination> {
        let id = self.incoming?;
        let state = &mut self.state;
        let mut nomination = WhatIf::new(state).nominate(id, Trace::on())?;
        let given = scenario.assignment.as_ref();
        if let Some(given) = given.filter(|it| it.source == "given") {
            let needs = given.need_preemption.iter();
            let needs: Vec<_> = needs
                .map(|it| flavor_resource(state, &it.flavor, &it.resource))
                .collect();
            let usage = given.total_requests.iter();
            let usage: Vec<_> = usage
                .map(|entry| {
                    (
                        flavor_resource(state, &entry.flavor, &entry.resource),
                        Amount::new(entry.amount),
                    )
                })
                .collect();
            // Only the search for the given flavors is explained, not the nomination above.
            nomination.trace = Trace::on();
            nomination.victims =
                WhatIf::new(state).search(id, &needs, &usage, &mut nomination.trace);
            nomination.assignment = core::Assignment {
                mode: if needs.is_empty() {
                    core::Mode::Fit
                } else {
                    core::Mode::Preempt
                },
                borrowing_level: 0,
                pod_sets: Vec::new(),
                usage,
            };
        }
        Some(nomination)
    }

    /// The usage of a node, without zero amounts.
    #[must_use]
    pub fn usage(&self, node: NodeId) -> Vec<UsageAmount> {
        let used = self.state.node_view(node).usage().into_iter();
        let used = used.filter(|(_, amount)| *amount != Amount::ZERO);
        named_usage(&self.state, used)
    }
}

/// The default compatibility of a scenario: Kueue's if it was recorded from Kueue.
#[must_use]
pub fn compatibility(scenario: &Scenario) -> Compatibility {
    if scenario.schema.starts_with("kueue-") {
        Compatibility::Kueue
    } else {
        Compatibility::Lockkeeper
    }
}

/// Amounts with the names of their flavors and resources, sorted by those.
#[must_use]
pub fn quota_pairs(state: &State, amounts: &[(FlavorResource, Amount)]) -> Vec<UsageAmount> {
    named_usage(state, amounts.iter().copied())
}

fn named_usage(
    state: &State,
    amounts: impl Iterator<Item = (FlavorResource, Amount)>,
) -> Vec<UsageAmount> {
    let mut named: Vec<UsageAmount> = amounts
        .map(|(of, amount)| UsageAmount {
            flavor: state.flavor_name(of.flavor).to_owned(),
            resource: state.resource_name(of.resource).to_owned(),
            amount: amount.get(),
        })
        .collect();
    named.sort();
    named
}

/// Usage that no workload of the scenario accounts for.
fn set_usage(state: &mut State, queue: NodeId, usage: &[UsageAmount]) {
    let usage = usage.iter().map(|entry| {
        let of = flavor_resource(state, &entry.flavor, &entry.resource);
        (of, Amount::new(entry.amount))
    });
    let held = Reservation {
        usage: usage.collect(),
        reserved_at_s: 0,
        is_evicted: false,
    };
    let queue = state.node_view(queue).name().to_owned();
    let spec = WorkloadSpec {
        name: &format!("usage of {queue}"),
        uid: "",
        queue: &queue,
        priority: 0,
        preemption_priority: None,
        order_time: 0,
        waiting_since_s: 0,
        pod_sets: Vec::new(),
        is_in_scope: true,
        preemption_labels: PreemptionLabels::default(),
    };
    state.add_admitted(spec, &held);
}

fn workload_spec(workload: &Workload, pod_sets: Vec<core::PodSet>) -> WorkloadSpec<'_> {
    WorkloadSpec {
        name: &workload.name,
        uid: &workload.uid,
        queue: &workload.cluster_queue,
        priority: workload.priority,
        preemption_priority: workload.preemption_priority,
        order_time: workload.queue_order_time,
        waiting_since_s: workload
            .waiting_since_time
            .unwrap_or(workload.queue_order_time),
        pod_sets,
        is_in_scope: true,
        preemption_labels: PreemptionLabels {
            preemptible: LabelValue::from_value(workload.preemptible.as_deref()),
            can_preempt: LabelValue::from_value(workload.can_preempt.as_deref()),
            never_preempts: workload.preemption_policy == Some(PreemptionPolicy::Never),
        },
    }
}

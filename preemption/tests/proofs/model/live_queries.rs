//! Queries of the `State`, by name.

use super::cluster_model::{Pair, QUEUES};
use super::live::LiveState;
use super::named_decisions::{
    FlavorPlan, NamedCycle, NamedDecision, NamedEntry, NamedNomination, NamedVictim, Plan,
    PodSetPlan, QueueContents,
};
use lockkeeper_preemption as core;
use lockkeeper_preemption::{
    Amount, Assignment, Decision, FlavorResource, Trace, Victim, WhatIf, WorkloadId,
};
use std::collections::BTreeMap;

impl LiveState {
    /// The usage of all nodes, without amounts of 0. Changes of queues and cohorts take effect in a decision, so a
    /// decision must come first.
    pub fn usage(&mut self) -> BTreeMap<String, BTreeMap<Pair, i64>> {
        WhatIf::new(&mut self.state).nominate(self.probe, Trace::off());
        let queues = QUEUES.iter();
        let queues = queues.filter_map(|name| Some(((*name).to_owned(), self.state.queue(name)?)));
        let cohorts = self.cohorts.iter().map(|(name, id)| (name.clone(), *id));
        let mut all = BTreeMap::new();
        for (name, id) in queues.chain(cohorts) {
            let usage = self.amounts(&self.state.node_view(id).usage());
            if !usage.is_empty() {
                all.insert(name, usage);
            }
        }
        all
    }

    /// The active and the inadmissible workloads of a queue.
    pub fn queue_contents(&self, queue: &str) -> QueueContents {
        let Some(id) = self.state.queue(queue) else {
            return (Vec::new(), Vec::new());
        };
        let names = |ids: Vec<WorkloadId>| ids.into_iter().map(|it| self.name(it)).collect();
        (
            names(self.state.node_view(id).active()),
            names(self.state.node_view(id).inadmissible()),
        )
    }

    pub fn name(&self, id: WorkloadId) -> String {
        self.state.workload_name(id).to_owned()
    }

    /// Amounts other than zero.
    pub fn amounts(&self, usage: &[(FlavorResource, Amount)]) -> BTreeMap<Pair, i64> {
        let mut amounts = self.named(usage);
        amounts.retain(|_, amount| *amount != 0);
        amounts
    }

    fn named(&self, usage: &[(FlavorResource, Amount)]) -> BTreeMap<Pair, i64> {
        let usage = usage.iter();
        usage
            .map(|(of, amount)| (self.pair_of(*of), amount.get()))
            .collect()
    }

    pub fn victims(&self, victims: &[Victim]) -> Vec<NamedVictim> {
        let victims = victims.iter();
        victims
            .map(|it| (self.name(it.workload), it.reason))
            .collect()
    }

    pub fn plan(&self, assignment: &Assignment) -> Plan {
        let pod_sets = assignment.pod_sets.iter().map(|pod_set| PodSetPlan {
            count: pod_set.count,
            mode: pod_set.mode,
            flavors: pod_set
                .flavors
                .iter()
                .map(|assigned| {
                    let (flavor, resource) = self.pair_of(FlavorResource {
                        flavor: assigned.flavor,
                        resource: assigned.resource,
                    });
                    FlavorPlan {
                        resource,
                        flavor,
                        mode: assigned.mode,
                        level: assigned.borrowing_level,
                        tried_flavor_index: assigned.tried_flavor_index,
                    }
                })
                .collect(),
        });
        Plan {
            mode: assignment.mode,
            level: assignment.borrowing_level,
            pod_sets: pod_sets.collect(),
            usage: self.named(&assignment.usage),
        }
    }

    pub fn nominate(&mut self, workload: &str, trace: Trace) -> (NamedNomination, Trace) {
        let id = self.id(workload);
        let got = WhatIf::new(&mut self.state)
            .nominate(id, trace)
            .expect("a known workload");
        let nominated = NamedNomination {
            plan: self.plan(&got.assignment),
            victims: self.victims(&got.victims),
        };
        (nominated, got.trace)
    }

    pub fn next_cycle(&mut self, now_s: i64) -> NamedCycle {
        let cycle = self.state.next_cycle(now_s, false);
        self.named_cycle(&cycle)
    }

    pub fn named_cycle(&self, cycle: &core::Cycle) -> NamedCycle {
        let entry = |processed: &core::Entry| NamedEntry {
            workload: self.name(processed.workload),
            nominated: NamedNomination {
                plan: self.plan(&processed.nominated),
                victims: self.victims(&processed.nominated_victims),
            },
            recomputed: processed.recomputed.as_ref().map(|it| self.plan(it)),
            decision: match &processed.decision {
                Decision::Admit => NamedDecision::Admit,
                Decision::Preempt(victims) => NamedDecision::Preempt(self.victims(victims)),
                Decision::Skip(reason) => NamedDecision::Skip(*reason),
                Decision::DeferredFit => NamedDecision::DeferredFit,
                Decision::NoCandidates => NamedDecision::NoCandidates,
                Decision::NoFit => NamedDecision::NoFit,
            },
            reserved: self.amounts(&processed.reserved),
            requeued: processed.requeued,
        };
        let heads = cycle.heads.iter();
        let out_of_scope = cycle.out_of_scope.iter();
        NamedCycle {
            heads: heads
                .map(|it| (self.name(it.workload), it.is_sticky))
                .collect(),
            out_of_scope: out_of_scope.map(|it| self.name(*it)).collect(),
            entries: cycle.entries.iter().map(entry).collect(),
        }
    }
}

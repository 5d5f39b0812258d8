//! Disruption budgets: which pods they protect, and which disruptions violate them.

use super::member::Member;
use super::spec::BudgetSpec;
use super::unit::{Unit, full_name};
use crate::ids::{BudgetId, PodId, SymbolId};
use crate::placement::{Pod, Selector, SymbolTable, UsedIds};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Budget {
    selector: Selector,
    allowed: i32,
    disrupted: BTreeSet<Arc<str>>,
}

/// All budgets, by id: in the order in which they were first added, but for ids that were used before.
#[derive(Clone, Debug, Default)]
pub(super) struct DisruptionBudgets {
    all: Vec<Option<Budget>>,
    names: Vec<Arc<str>>,
    ids: BTreeMap<(SymbolId, Arc<str>), BudgetId>,
    by_namespace: BTreeMap<SymbolId, BTreeSet<BudgetId>>,
    /// Ids to be used again.
    free_ids: BTreeSet<BudgetId>,
}

impl DisruptionBudgets {
    pub(super) fn set(&mut self, namespace: SymbolId, spec: BudgetSpec<'_>) -> BudgetId {
        let name: Arc<str> = spec.name.into();
        let key = (namespace, Arc::clone(&name));
        // `remove` keeps the id: a budget that is added again keeps its place in the order.
        let id = match self.ids.get(&key) {
            Some(id) => *id,
            None => self.new_id(full_name(spec.namespace, spec.name).into()),
        };
        self.ids.insert(key, id);
        let of_namespace = self.by_namespace.entry(namespace).or_default();
        of_namespace.insert(id);
        if let Some(slot) = self.all.get_mut(id.index()) {
            *slot = Some(Budget {
                selector: spec.selector,
                allowed: spec.allowed,
                disrupted: spec.disrupted.into_iter().map(Arc::from).collect(),
            });
        }
        id
    }

    pub(super) fn remove(&mut self, id: BudgetId) {
        if let Some(slot) = self.all.get_mut(id.index()) {
            *slot = None;
        }
    }

    fn new_id(&mut self, name: Arc<str>) -> BudgetId {
        let reused = self.free_ids.pop_first();
        let slot = reused.and_then(|it| self.names.get_mut(it.index()));
        if let Some((id, slot)) = reused.zip(slot) {
            *slot = name;
            return id;
        }
        self.names.push(name);
        self.all.push(None);
        BudgetId::of(self.all.len().saturating_sub(1))
    }

    /// How many budgets have an id.
    pub(super) fn ids_len(&self) -> usize {
        self.ids.len()
    }

    /// Releases the ids of removed budgets, and marks the strings of the others.
    pub(super) fn release_unused(&mut self, used: &mut UsedIds) {
        let (all, free_ids) = (&self.all, &mut self.free_ids);
        self.ids.retain(|(namespace, _), id| {
            let Some(budget) = all.get(id.index()).and_then(Option::as_ref) else {
                free_ids.insert(*id);
                return false;
            };
            used.mark_symbol(*namespace);
            used.mark_selector(&budget.selector);
            true
        });
        self.by_namespace.retain(|_, ids| {
            ids.retain(|id| !free_ids.contains(id));
            !ids.is_empty()
        });
    }

    pub(super) fn name(&self, id: BudgetId) -> &str {
        self.names.get(id.index()).map_or("", |it| &**it)
    }

    /// The budgets that protect a pod, by id. A pod without labels is never protected, nor is a pod that the budget
    /// lists in `status.disruptedPods`.
    ///
    /// Source: kube-scheduler v1.37, `FilterVictimsWithPDBViolation`.
    pub(super) fn budgets_protecting(&self, pod: &Pod, symbols: &SymbolTable) -> Box<[BudgetId]> {
        if pod.labels().is_empty() {
            return Box::default();
        }
        let of_namespace = self.by_namespace.get(&pod.namespace());
        let all = of_namespace.into_iter().flatten().copied();
        let protects = |id: &BudgetId| {
            let budget = self.all.get(id.index()).and_then(Option::as_ref);
            budget.is_some_and(|budget| {
                // As in kube-scheduler, an empty selector protects no pod.
                !budget.selector.is_empty()
                    && budget.selector.matches(pod.labels(), symbols)
                    && !budget.disrupted.contains(pod.name())
            })
        };
        all.filter(protects).collect()
    }

    /// A counter without any disruption.
    pub(super) const fn counter(&self) -> DisruptionCounter<'_> {
        DisruptionCounter {
            budgets: self,
            used: BTreeMap::new(),
        }
    }
}

/// Counts the disruptions of each budget.
pub(super) struct DisruptionCounter<'a> {
    budgets: &'a DisruptionBudgets,
    used: BTreeMap<BudgetId, i32>,
}

impl DisruptionCounter<'_> {
    /// Charges the disruption of a unit to the budgets of its pods. Returns how many pods violate one, and reports
    /// each with that budget.
    pub(super) fn charge_unit(
        &mut self,
        unit: &Unit,
        members: &[Member],
        mut report: impl FnMut(PodId, BudgetId),
    ) -> usize {
        if unit.protected_pods == 0 {
            return 0;
        }
        // Pods after the first violation are charged too, as in kube-scheduler 1.37.
        let violations = unit.pods.iter().filter_map(|pod| {
            let member = members.get(pod.index())?;
            Some((*pod, self.charge(&member.budgets)?))
        });
        violations.map(|(pod, budget)| report(pod, budget)).count()
    }

    /// Charges the disruption of one pod. Returns the first budget that it violates. A charge is final, even if the
    /// pod's unit is reprieved.
    ///
    /// Source: kube-scheduler v1.37, `FilterVictimsWithPDBViolation`.
    fn charge(&mut self, protecting: &[BudgetId]) -> Option<BudgetId> {
        for id in protecting {
            let budget = self.budgets.all.get(id.index()).and_then(Option::as_ref);
            let allowed = budget.map_or(i32::MAX, |it| it.allowed);
            let used = self.used.entry(*id).or_default();
            *used = used.saturating_add(1);
            if *used > allowed {
                // Later budgets are not charged then, as in kube-scheduler 1.37 (1.36 charged all).
                return Some(*id);
            }
        }
        None
    }
}

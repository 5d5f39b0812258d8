//! Disruption budgets: who is protected, and whose going would break one.

use super::spec::BudgetSpec;
use crate::ids::{BudgetId, SymbolId};
use crate::placement::{Pod, Selector, SymbolTable};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Budget {
    selector: Selector,
    allowed: i32,
    disrupted: BTreeSet<Arc<str>>,
}

/// All budgets, in the order in which they were first told.
#[derive(Clone, Debug, Default)]
pub(super) struct DisruptionBudgets {
    all: Vec<Option<Budget>>,
    names: Vec<Arc<str>>,
    ids: BTreeMap<(SymbolId, Arc<str>), BudgetId>,
    by_namespace: BTreeMap<SymbolId, BTreeSet<BudgetId>>,
}

impl DisruptionBudgets {
    pub(super) fn set(&mut self, namespace: SymbolId, spec: BudgetSpec<'_>) -> BudgetId {
        let name: Arc<str> = spec.name.into();
        let key = (namespace, Arc::clone(&name));
        let id = match self.ids.get(&key) {
            Some(id) => *id,
            None => BudgetId::of(self.all.len()),
        };
        if self.ids.insert(key, id).is_none() {
            let full = super::unit::full_name(spec.namespace, spec.name);
            self.all.push(None);
            self.names.push(full.into());
        }
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

    pub(super) fn name(&self, id: BudgetId) -> &str {
        self.names.get(id.index()).map_or("", |it| &**it)
    }

    /// The budgets that protect a pod, in order. A pod without labels is never protected, and neither is one that
    /// a budget has counted as disrupted already.
    ///
    /// Source: kube-scheduler v1.37, `FilterVictimsWithPDBViolation`.
    pub(super) fn budgets_protecting(&self, pod: &Pod, words: &SymbolTable) -> Box<[BudgetId]> {
        if pod.labels().is_empty() {
            return Box::default();
        }
        let of_namespace = self.by_namespace.get(&pod.namespace());
        let all = of_namespace.into_iter().flatten().copied();
        let protects = |id: &BudgetId| {
            let budget = self.all.get(id.index()).and_then(Option::as_ref);
            budget.is_some_and(|it| {
                !it.selector.is_empty()
                    && it.selector.matches(pod.labels(), words)
                    && !it.disrupted.contains(pod.name())
            })
        };
        all.filter(protects).collect()
    }

    /// Counts disruptions, from none.
    pub(super) const fn counter(&self) -> DisruptionCounter<'_> {
        DisruptionCounter {
            budgets: self,
            used: BTreeMap::new(),
        }
    }
}

/// How many disruptions have been counted.
pub(super) struct DisruptionCounter<'a> {
    budgets: &'a DisruptionBudgets,
    used: BTreeMap<BudgetId, i32>,
}

impl DisruptionCounter<'_> {
    /// Another pod goes. Which budget that breaks, if it does; those after it are not charged then. What is
    /// charged is never given back, also when the pod's unit is let off.
    ///
    /// Source: kube-scheduler v1.37, `FilterVictimsWithPDBViolation`.
    pub(super) fn charge(&mut self, protecting: &[BudgetId]) -> Option<BudgetId> {
        for id in protecting {
            let budget = self.budgets.all.get(id.index()).and_then(Option::as_ref);
            let allowed = budget.map_or(i32::MAX, |it| it.allowed);
            let used = self.used.entry(*id).or_default();
            *used = used.saturating_add(1);
            if *used > allowed {
                return Some(*id);
            }
        }
        None
    }
}

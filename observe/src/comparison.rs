//! Compares settled decisions, and records the results.

use crate::change::ObjectKind;
use crate::check::{CheckResult, check};
use crate::core_cycles::all_decisions;
use crate::decision::KueueDecision;
use crate::known_state::Known;
use crate::observer::Observer;
use crate::report::{DecisionKind, Difference, ResultKind, rfc3339};
use crate::search::{EFFORT_MAX, EXPLAINED_EFFORT_MAX};
use crate::workload_facts::condition;

impl Observer {
    /// What was known at a time, in milliseconds since 1970.
    fn known(&self, until_ms: i64) -> Known<'_> {
        Known {
            settings: &self.settings,
            base: &self.base,
            pending: &self.pending,
            all_history: &self.history,
            until_ms,
            preemptors: &self.preemptors,
        }
    }

    /// Compares a decision that has settled.
    pub(crate) fn compare(&mut self, decision: &KueueDecision) -> Option<Difference> {
        let explanations = self.explanations_of(decision);
        let effort = if explanations.is_empty() {
            EFFORT_MAX
        } else {
            EXPLAINED_EFFORT_MAX
        };
        let result = self.check_with_siblings(decision, effort);
        self.unchecked.add_sibling(decision);
        let (core, result) = match result {
            CheckResult::Agreed => {
                self.report.count(decision.kind(), ResultKind::Agreed);
                return None;
            }
            CheckResult::Different(core) => (core, ResultKind::Different),
            CheckResult::Ambiguous(core) => (core, ResultKind::Ambiguous),
        };
        Some(self.report.record(
            self.settings.differences_max,
            Difference {
                time: rfc3339(decision.decided_s),
                decision: decision.kind(),
                result,
                workload: decision.key.to_string(),
                cluster_queue: decision.queue.to_string(),
                kueue: decision.text(),
                lockkeeper: core,
                explanations,
            },
        ))
    }

    /// Compares a decision, as a part of a preemption whose conditions were written in two seconds if it differs alone.
    fn check_with_siblings(&mut self, decision: &KueueDecision, effort: usize) -> CheckResult {
        if decision.is_confirmed {
            return CheckResult::Agreed;
        }
        let queues = self.trees.tree_of(&mut self.base, &decision.queue);
        // The same, however late it is compared.
        let settle_ms = self.settings.settle_ms;
        let known = self.known(decision.at_ms.saturating_add(settle_ms));
        let result = check(known, decision, &queues, effort);
        if matches!(result, CheckResult::Agreed) {
            return result;
        }
        let agrees = |sibling: &KueueDecision| {
            let Some(merged) = decision.merged(sibling) else {
                return false;
            };
            let known = self.known(merged.at_ms.saturating_add(settle_ms));
            let result = check(known, &merged, &queues, effort);
            matches!(result, CheckResult::Agreed)
        };
        if decision.siblings.iter().any(agrees) {
            return CheckResult::Agreed;
        }
        let confirmed = self.unchecked.siblings(decision).find(|it| agrees(it));
        match confirmed.map(|it| it.first_seq) {
            Some(first_seq) => {
                self.unchecked.confirm(first_seq);
                CheckResult::Agreed
            }
            None => result,
        }
    }

    /// Compares the decisions of the core on the present state, if that is due.
    pub(crate) fn compare_missing(&mut self, now_ms: i64) -> Vec<Difference> {
        let missing_after_ms = self.settings.missing_after_ms;
        if self.started_ms.is_none() || !self.missing.is_due(now_ms, missing_after_ms) {
            return Vec::new();
        }
        let mut present = self.known(now_ms).present_state(now_ms);
        let decisions = all_decisions(&mut present, now_ms);
        let missing = self.missing.update(decisions, now_ms, missing_after_ms);
        let differences = missing.into_iter().filter_map(|it| {
            let workload = self.workloads.get(&it.key)?;
            let queue = self.queue_of(workload);
            let since_s = it.since_ms.div_euclid(1000);
            let message = condition(workload, "QuotaReserved");
            let message = message.map_or("", |it| it.message.as_str());
            let explanations = self.explanations(&it.key, &queue, since_s);
            Some(Difference {
                time: rfc3339(since_s),
                decision: DecisionKind::Missing,
                result: ResultKind::Different,
                workload: it.key.to_string(),
                cluster_queue: queue.to_string(),
                kueue: format!("keeps it pending: {message}"),
                lockkeeper: it.text,
                explanations,
            })
        });
        let differences: Vec<Difference> = differences.collect();
        differences
            .into_iter()
            .map(|it| self.report.record(self.settings.differences_max, it))
            .collect()
    }

    /// What may be the cause of a difference in a decision of Kueue.
    fn explanations_of(&self, decision: &KueueDecision) -> Vec<String> {
        let decided_s = decision.decided_s;
        let mut explanations = self.explanations(&decision.key, &decision.queue, decided_s);
        if self.is_state_unknown(decided_s) {
            explanations.push("Kueue decided before the first change that is known".to_owned());
        }
        explanations
    }

    /// What the core does not consider and may be the cause of a difference.
    fn explanations(&self, key: &str, cluster_queue: &str, second: i64) -> Vec<String> {
        let mut found = self.settings.not_considered.clone();
        let mut add = |kind: ObjectKind, name: &str| {
            let fields = self.not_considered.get(&(kind, name.to_owned()));
            found.extend(fields.into_iter().flatten().cloned());
        };
        add(ObjectKind::Workload, key);
        add(ObjectKind::ClusterQueue, cluster_queue);
        let spec = self
            .base
            .objects()
            .cluster_queue(cluster_queue)
            .map(|it| &it.spec);
        let groups = spec.into_iter().flat_map(|it| &it.resource_groups);
        for flavor in groups.flat_map(|it| &it.flavors) {
            add(ObjectKind::ResourceFlavor, &flavor.name);
        }
        let decided_ms = second.saturating_mul(1000);
        let lag_ms = self
            .settings
            .lag_ms
            .saturating_add(self.settings.inadmissible_ms);
        if decided_ms.abs_diff(self.queues_changed_ms) <= lag_ms.unsigned_abs() {
            found.push("queues, cohorts or flavors changed at the same time".to_owned());
        }
        if decided_ms <= self.late_until_ms {
            found.push("the watches deliver changes too late".to_owned());
        }
        found
    }

    /// Whether a decision may rest on a state before the first change that is known. Missing decisions rest on the present
    /// state, which is always known.
    const fn is_state_unknown(&self, second: i64) -> bool {
        let begin_ms = second
            .saturating_mul(1000)
            .saturating_sub(self.settings.lag_ms)
            .saturating_sub(self.settings.inadmissible_ms);
        let is_after_start = match self.started_ms {
            Some(started_ms) => begin_ms >= started_ms,
            None => false,
        };
        !is_after_start || begin_ms < self.dropped_until_ms
    }
}

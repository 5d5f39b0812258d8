//! Workload-aware preemption of kube-scheduler: every kind of case, read as a scenario.

mod decisions;
mod parts;

use crate::data::{Case, Tally};
use lockkeeper_scenario::gang::{GangScenario, Kind, LoadedGangScenario, load, options};
use serde_json::Value;
use std::collections::BTreeSet;

/// A case as a scenario, with the results of the comparison.
struct CaseComparison<'a> {
    scenario: &'a GangScenario,
    loaded: LoadedGangScenario,
    expected: &'a Value,
    problems: Vec<String>,
    /// The fields of `expected` that were compared with the decision.
    compared_fields: BTreeSet<&'static str>,
}

pub fn check(case: &Case, tally: &mut Tally) {
    let scenario: GangScenario =
        serde_json::from_value(case.value.clone()).unwrap_or_else(|e| panic!("{}: {e}", case.id));
    let loaded = load(&scenario, options(&scenario, None));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => return tally.count(case, &[error.to_string()]),
    };
    let mut read = CaseComparison {
        loaded,
        scenario: &scenario,
        expected: &case.value["expected"],
        problems: Vec::new(),
        compared_fields: BTreeSet::new(),
    };
    match scenario.kind.expect("every case has a kind") {
        Kind::PodGroupDomain => read.group_in_domain(),
        Kind::PodGroupOngoingOrNever | Kind::OraclePodGroup => read.group(),
        Kind::PostFilter | Kind::Preempt => read.pod(),
        Kind::DryRun => read.nodes(),
        Kind::SelectBest => read.best_node(),
        Kind::SelectVictimsOnNode => read.on_node(),
        Kind::OracleSinglePod => read.pod_with_candidates(),
        Kind::EligibleToPreempt => read.may_preempt(),
        Kind::VictimUnitsOnNode | Kind::VictimUnitsInDomain => read.units(),
        Kind::PdbSplit => read.budgets(),
        Kind::MoreImportant => read.importance(),
        Kind::EffectivePriority => read.priority(),
        Kind::ResolvePreemptionPolicy => read.policy(),
    }
    read.finish(case, tally);
}

impl CaseComparison<'_> {
    /// Compares a field of `expected` with the decision.
    fn expect(&mut self, field: &'static str, got: impl Into<Value>) {
        self.compared_fields.insert(field);
        let got = got.into();
        if let Some(expected) = self.expected.get(field)
            && *expected != got
        {
            self.problems
                .push(format!("{field}: got {got}, expected {expected}"));
        }
    }

    /// Marks fields as compared that are input, or repeat another field.
    fn ignore(&mut self, fields: &[&'static str]) {
        self.compared_fields.extend(fields);
    }

    fn finish(mut self, case: &Case, tally: &mut Tally) {
        for field in self
            .expected
            .as_object()
            .into_iter()
            .flat_map(|it| it.keys())
        {
            if !self.compared_fields.contains(field.as_str()) {
                self.problems
                    .push(format!("expected.{field} is not compared"));
            }
        }
        tally.count(case, &self.problems);
    }
}

/// A sorted array.
fn sorted(mut values: Vec<Value>) -> Value {
    values.sort_by_key(Value::to_string);
    values.into()
}

/// An array of `expected`, sorted.
fn sorted_field(value: &Value, field: &str) -> Value {
    sorted(value[field].as_array().cloned().unwrap_or_default())
}

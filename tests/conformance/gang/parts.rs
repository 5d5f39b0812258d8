//! The parts of a decision: units, order, budgets, priorities, policies.

use super::{CaseComparison, sorted, sorted_field};
use lockkeeper_preemption::gang::{IneligibleReason, PreemptionUnitKind as UnitKind};
use lockkeeper_scenario::gang::{ScenarioAnswer, evaluate};
use serde_json::{Value, json};

impl CaseComparison<'_> {
    fn evaluate(&self) -> ScenarioAnswer {
        evaluate(self.scenario, &self.loaded)
    }

    pub fn may_preempt(&mut self) {
        let ScenarioAnswer::MayPreempt(may) = self.evaluate() else {
            panic!("not a case of preemption eligibility");
        };
        self.expect("eligible", may.is_ok());
        let message = match may {
            Ok(()) => "",
            Err(IneligibleReason::PolicyNever) => "not eligible due to preemptionPolicy=Never.",
            Err(_) => "not eligible due to a terminating pod on the nominated node.",
        };
        self.expect("message", message);
    }

    pub fn units(&mut self) {
        let ScenarioAnswer::Units(units) = self.evaluate() else {
            panic!("not a case of disruption units");
        };
        let mut expected = self.expected["units_set"].as_array().unwrap().clone();
        for it in &mut expected {
            it["pods"] = sorted_field(it, "pods");
            if it.get("nodes").is_some() {
                it["nodes"] = sorted_field(it, "nodes");
            }
        }
        let gang_cluster = &self.loaded.gang_cluster;
        let has = |field: &str| expected.iter().any(|it| it.get(field).is_some());
        let (has_type, has_nodes) = (has("type"), has("nodes"));
        let each = units.iter().map(|id| {
            let unit = gang_cluster.units().get(*id).unwrap();
            let pods: Vec<Value> = self.pods_of(*id).into_iter().map(Value::from).collect();
            let mut it = json!({"priority": unit.priority(), "pods": sorted(pods)});
            if has_type {
                it["type"] = match unit.kind() {
                    UnitKind::Pod => "pod",
                    UnitKind::PodGroup => "podgroup",
                    UnitKind::Composite => "compositepodgroup",
                }
                .into();
            }
            if has_nodes {
                let pods = unit
                    .pods()
                    .iter()
                    .map(|it| gang_cluster.cluster().pod(*it).unwrap());
                let mut nodes: Vec<Value> = pods.map(|it| self.node(it.host()).into()).collect();
                nodes.sort_by_key(Value::to_string);
                nodes.dedup();
                it["nodes"] = nodes.into();
            }
            it
        });
        let got = sorted(each.collect());
        self.compared_fields.insert("units_set");
        if got != sorted(expected.clone()) {
            self.problems
                .push(format!("units: got {got}, expected {expected:?}"));
        }
    }

    pub fn budgets(&mut self) {
        let ScenarioAnswer::Budgets(victims) = self.evaluate() else {
            panic!("not a case of disruption budgets");
        };
        assert_eq!(victims.len(), self.scenario.victims.len());
        let all = victims.iter().map(Vec::len).enumerate();
        let whole = all.clone().filter(|(_, count)| *count == 0);
        self.expect("non_violating", whole.map(|(at, _)| at).collect::<Vec<_>>());
        let broken = all.filter(|(_, count)| *count > 0);
        let broken = broken.map(|(at, count)| json!({"victim_index": at, "count": count}));
        self.expect("violating", broken.collect::<Value>());
    }

    pub fn importance(&mut self) {
        let ScenarioAnswer::IsMoreImportant(is) = self.evaluate() else {
            panic!("not a case of importance");
        };
        self.expect("first_more_important", is);
    }

    pub fn priority(&mut self) {
        let ScenarioAnswer::Priorities { preemption, .. } = self.evaluate() else {
            panic!("not a case of a priority");
        };
        self.expect("priority", preemption);
    }

    pub fn policy(&mut self) {
        let ScenarioAnswer::Policy(policy) = self.evaluate() else {
            panic!("not a case of a policy");
        };
        let name = match policy {
            lockkeeper_preemption::placement::PodPreemption::LowerPriority => {
                "PreemptLowerPriority"
            }
            lockkeeper_preemption::placement::PodPreemption::Never => "Never",
        };
        self.expect("policy", name);
    }
}

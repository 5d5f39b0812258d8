//! The parts of a decision: units, order, budgets, priorities, policies.

use super::{Read, sorted, sorted_field};
use lockkeeper_preemption::gang::{Ineligible, Kind as UnitKind};
use lockkeeper_snapshot::gang::{Answer, answer};
use serde_json::{Value, json};

impl Read<'_> {
    fn answer(&self) -> Answer {
        answer(self.scenario, &self.loaded)
    }

    pub fn may_preempt(&mut self) {
        let Answer::MayPreempt(may) = self.answer() else {
            panic!("it is asked whether it may preempt");
        };
        self.expect("eligible", may.is_ok());
        let said = match may {
            Ok(()) => "",
            Err(Ineligible::Never) => "not eligible due to preemptionPolicy=Never.",
            Err(_) => "not eligible due to a terminating pod on the nominated node.",
        };
        self.expect("message", said);
    }

    pub fn units(&mut self) {
        let Answer::Units(units) = self.answer() else {
            panic!("it is asked for units");
        };
        let mut expected = self.expected["units_set"].as_array().unwrap().clone();
        for it in &mut expected {
            it["pods"] = sorted_field(it, "pods");
            if it.get("nodes").is_some() {
                it["nodes"] = sorted_field(it, "nodes");
            }
        }
        let world = &self.loaded.world;
        let has = |field: &str| expected.iter().any(|it| it.get(field).is_some());
        let (has_type, has_nodes) = (has("type"), has("nodes"));
        let each = units.iter().map(|id| {
            let unit = world.unit(*id).unwrap();
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
                    .map(|it| world.cluster().pod(*it).unwrap());
                let mut nodes: Vec<Value> = pods.map(|it| self.node(it.host()).into()).collect();
                nodes.sort_by_key(Value::to_string);
                nodes.dedup();
                it["nodes"] = nodes.into();
            }
            it
        });
        let got = sorted(each.collect());
        self.seen.insert("units_set");
        if got != sorted(expected.clone()) {
            self.problems
                .push(format!("units: got {got}, expected {expected:?}"));
        }
    }

    pub fn budgets(&mut self) {
        let Answer::Budgets(victims) = self.answer() else {
            panic!("it is asked about budgets");
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
        let Answer::IsMoreImportant(is) = self.answer() else {
            panic!("it is asked who is more important");
        };
        self.expect("first_more_important", is);
    }

    pub fn priority(&mut self) {
        let Answer::Priorities { preemption, .. } = self.answer() else {
            panic!("it is asked for a priority");
        };
        self.expect("priority", preemption);
    }

    pub fn policy(&mut self) {
        let Answer::Policy(policy) = self.answer() else {
            panic!("it is asked for a policy");
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

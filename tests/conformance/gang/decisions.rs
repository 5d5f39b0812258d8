//! Preemption by pods and pod groups.

use super::{CaseComparison, sorted, sorted_field};
use lockkeeper_preemption::gang::{
    DryRun, GangOutcome, GangPlan, GangTrace, IneligibleReason, InfeasibleReason,
};
use lockkeeper_preemption::{HostId, PodId, UnitId};
use lockkeeper_scenario::gang::{node_reasons, scheduler_message};
use serde_json::{Map, Value, json};

const UNRESOLVABLE: &str = "UnschedulableAndUnresolvable";

impl CaseComparison<'_> {
    pub fn group_in_domain(&mut self) {
        let run = self.run();
        self.ignore(&["victims_observed_order"]);
        self.domain(&run, None);
        let expected = sorted_field(self.expected, "victims_set");
        let got = sorted(self.victims(run.candidates.first()));
        self.compare("victims_set", &got, &expected);
    }

    pub fn on_node(&mut self) {
        let run = self.run();
        self.ignore(&["victims_observed_order"]);
        let violations = run.candidates.first().map_or(0, |it| it.violations);
        self.expect("pdb_violations", violations);
        let why = run.infeasible.first().map(|(_, why)| why);
        self.expect(
            "status",
            match why {
                // No pod prevents the placement: the function returns success without victims.
                None | Some(InfeasibleReason::PreemptionNotHelpful) => "Success",
                Some(InfeasibleReason::NoLowerPriority) => UNRESOLVABLE,
                Some(_) => "Unschedulable",
            },
        );
        let expected = sorted_field(self.expected, "victims_set");
        let got = sorted(self.victims(run.candidates.first()));
        self.compare("victims_set", &got, &expected);
    }

    /// The whole preemption for a pod group.
    pub fn group(&mut self) {
        let decision = self
            .loaded
            .gang_cluster
            .decide(&self.loaded.preemption_request(), &mut GangTrace::off());
        let outcome = decision.outcome;
        let message = scheduler_message(&self.loaded.gang_cluster, true, &outcome);
        self.ignore(&["pdb_violations", "pod_group_disruptions", "placement_calls"]);
        let is_search = matches!(outcome, GangOutcome::Preempt(_));
        let is_vain = matches!(
            &outcome,
            GangOutcome::Infeasible { domains } if !matches!(domains[0].1, InfeasibleReason::NoLowerPriority)
        );
        self.expect("placement_called", is_search || is_vain);
        if self.expected.get("placement_calls").is_some() {
            self.expect("placement_calls", u32::from(is_search || is_vain));
        }
        self.expect("message", message);
        self.expect(
            "status",
            match &outcome {
                GangOutcome::Preempt(_)
                | GangOutcome::AwaitingVictims { .. }
                | GangOutcome::Fits { .. } => "Success",
                GangOutcome::Infeasible { domains }
                    if matches!(domains[0].1, InfeasibleReason::NoLowerPriority) =>
                {
                    UNRESOLVABLE
                }
                _ => "Unschedulable",
            },
        );
        let placement = match &outcome {
            GangOutcome::Preempt(plan) => plan.placement.clone(),
            GangOutcome::AwaitingVictims { placement } => placement.clone(),
            _ => Vec::new(),
        };
        let is_waiting = matches!(outcome, GangOutcome::AwaitingVictims { .. });
        let placed = placement
            .iter()
            .filter(|(_, host)| is_waiting || host.is_some());
        let placed: Vec<(String, String)> = placed.map(|it| self.node_assignment(*it)).collect();
        let each = placed
            .iter()
            .map(|(pod, node)| json!({"pod": pod, "node": node}));
        self.expect("placement", each.collect::<Value>());
        let nominations = placed
            .into_iter()
            .map(|(pod, node)| (pod, Value::from(node)));
        self.expect("nominations", nominations.collect::<Map<_, _>>());
        let plan = match &outcome {
            GangOutcome::Preempt(plan) => Some(plan),
            _ => None,
        };
        let units = self.victim_units(plan);
        self.expect_units("victim_units", &units);
        if let Some(plan) = plan {
            self.expect("pdb_violations", plan.violations);
            self.expect("pod_group_disruptions", plan.group_disruptions);
        }
    }

    /// The whole preemption for a pod.
    pub fn pod(&mut self) {
        let decision = self
            .loaded
            .gang_cluster
            .decide(&self.loaded.preemption_request(), &mut GangTrace::off());
        let outcome = decision.outcome;
        let message = scheduler_message(&self.loaded.gang_cluster, false, &outcome);
        self.expect("message", format!("preemption: {message}"));
        let plan = match &outcome {
            GangOutcome::Preempt(plan) => Some(plan.clone()),
            _ => None,
        };
        let is_found = plan.is_some();
        self.expect("status", if is_found { "Success" } else { "Unschedulable" });
        let selected = plan.as_ref().map(|it| self.node(it.host));
        // One kind of case writes "none" as null, the other as an empty name.
        match self.expected.get("selected") {
            Some(Value::Null) => self.expect("selected", selected),
            _ => self.expect("selected", selected.unwrap_or_default()),
        }
        if self.expected.get("victims").is_some() {
            let expected = sorted_field(self.expected, "victims");
            let got = sorted(self.victims(plan.as_ref()));
            self.compare("victims", &got, &expected);
        }
        if self.expected.get("note").is_some() {
            self.ignore(&["note"]);
            self.expect_wait_while_victims_terminate(plan.as_ref());
        }
    }

    /// While the victims terminate, the preemptor is nominated: no further pod is preempted.
    fn expect_wait_while_victims_terminate(&mut self, plan: Option<&GangPlan>) {
        let Some(plan) = plan else {
            return;
        };
        let mut scenario = self.scenario.clone();
        let victims = self.victims(Some(plan));
        for pod in &mut scenario.pods {
            if victims.contains(&pod.name.as_str().into()) {
                pod.terminating = true;
                pod.disruption_target = Some(lockkeeper_scenario::gang::DisruptionTarget {
                    reason: "PreemptionByScheduler".to_owned(),
                    status: "True".to_owned(),
                });
            }
        }
        let preemptor = scenario.preemptor.as_mut().and_then(|it| it.pod.as_mut());
        preemptor.unwrap().nominated_node = Some(self.node(plan.host));
        for whose in [
            None,
            Some(lockkeeper_preemption::gang::SchedulerCompatibility::Lockkeeper),
        ] {
            let options = lockkeeper_scenario::gang::options(&scenario, whose);
            let loaded = lockkeeper_scenario::gang::load(&scenario, options).unwrap();
            let again = loaded
                .gang_cluster
                .decide(&loaded.preemption_request(), &mut GangTrace::off());
            let is_still = matches!(
                again.outcome,
                GangOutcome::Ineligible(IneligibleReason::VictimsTerminating)
                    | GangOutcome::AwaitingVictims { .. }
            );
            if !is_still {
                self.problems
                    .push(format!("second decision: {:?}", again.outcome));
            }
        }
    }

    /// The victims of a pod on each node.
    pub fn nodes(&mut self) {
        let run = self.run();
        let mut candidates: Vec<Value> =
            run.candidates.iter().map(|it| self.candidate(it)).collect();
        candidates.sort_by_key(|it| it["node"].to_string());
        self.expect("candidates_sorted", candidates);
    }

    /// The same, and the best node.
    pub fn best_node(&mut self) {
        let run = self.run();
        let candidates = run.candidates.iter().map(|it| self.candidate(it)).collect();
        let mut expected: Vec<Value> = self.expected["candidates_observed"]
            .as_array()
            .unwrap()
            .clone();
        for it in &mut expected {
            it["victims"] = sorted_field(it, "victims");
        }
        self.compare(
            "candidates_observed",
            &sorted(candidates),
            &sorted(expected),
        );
        self.selected(&run);
    }

    pub fn pod_with_candidates(&mut self) {
        let decision = self
            .loaded
            .gang_cluster
            .decide(&self.loaded.preemption_request(), &mut GangTrace::off());
        let is_ineligible = matches!(decision.outcome, GangOutcome::Ineligible(_));
        self.expect("eligible", !is_ineligible);
        self.ignore(&["filter_status", "message"]);
        if is_ineligible {
            let message = scheduler_message(&self.loaded.gang_cluster, false, &decision.outcome);
            self.expect("message", message);
            self.ignore(&["candidates", "rejected", "selected_any_of"]);
            return;
        }
        let run = self.run();
        let is_tied = self.scenario.equal_importance_victims;
        let mut candidates: Vec<Value> = run
            .candidates
            .iter()
            .map(|it| {
                let (units, score) = (self.victim_units(Some(it)), &it.score);
                json!({
                    "node": self.node(it.host),
                    "pdb_violations": it.violations,
                    "victim_units": units_or_count(&units, is_tied),
                    "score": {
                        "pdb_violations": score.violations,
                        "first_victim_pod_priority": score.highest_priority,
                        "sum_priority_plus_2p31": score.priority_sum,
                        "num_pods": score.pods,
                        "earliest_start_of_top_priority_ns": score.started_at_ns.0,
                    },
                })
            })
            .collect();
        candidates.sort_by_key(|it| it["node"].to_string());
        let mut expected = self.expected["candidates"].as_array().unwrap().clone();
        for it in &mut expected {
            let units: Vec<Vec<String>> =
                serde_json::from_value(it["victim_units"].clone()).unwrap();
            it["victim_units"] = units_or_count(&units, is_tied);
        }
        self.compare("candidates", &candidates.into(), &expected.into());
        self.rejected(&run);
        self.selected(&run);
        let chosen = match &decision.outcome {
            GangOutcome::Preempt(plan) => vec![Value::from(self.node(plan.host))],
            _ => Vec::new(),
        };
        let any_of = self.expected["selected_any_of"].as_array().unwrap();
        if chosen.iter().any(|it| !any_of.contains(it)) || chosen.is_empty() != any_of.is_empty() {
            self.problems
                .push(format!("selected {chosen:?}, expected one of {any_of:?}"));
        }
    }

    fn rejected(&mut self, run: &DryRun) {
        let gang_cluster = &self.loaded.gang_cluster;
        let each = run.infeasible.iter().map(|(host, why)| {
            let code = match why {
                InfeasibleReason::NoLowerPriority => UNRESOLVABLE,
                InfeasibleReason::PreemptionNotHelpful => "Error",
                _ => "Unschedulable",
            };
            let reasons = json!({"code": code, "reasons": node_reasons(gang_cluster, why)});
            (self.node(*host), reasons)
        });
        let got = each.collect::<Map<_, _>>();
        let expected = self.expected.get("rejected").cloned();
        let expected = expected.unwrap_or_else(|| json!({}));
        self.compare("rejected", &got.into(), &expected);
    }

    /// The nodes with the lowest cost.
    fn selected(&mut self, run: &DryRun) {
        let least = run.candidates.iter().map(|it| it.score).min();
        let tied = run.candidates.iter().filter(|it| Some(it.score) == least);
        let got = sorted(tied.map(|it| self.node(it.host).into()).collect());
        let expected = sorted_field(self.expected, "selected_any_of");
        self.compare("selected_any_of", &got, &expected);
    }

    fn domain(&mut self, run: &DryRun, host: Option<HostId>) {
        assert_eq!(run.candidates.first().and_then(|it| it.host), host);
        let plan = run.candidates.first();
        self.expect("pdb_violations", plan.map_or(0, |it| it.violations));
        self.expect(
            "pod_group_disruptions",
            plan.map_or(0, |it| it.group_disruptions),
        );
        let why = run.infeasible.first().map(|(_, why)| why.clone());
        self.expect(
            "status",
            match &why {
                None => "Success",
                Some(InfeasibleReason::NoLowerPriority) => UNRESOLVABLE,
                Some(_) => "Unschedulable",
            },
        );
        let message = why.map(|why| {
            let domains = vec![(None, why)];
            scheduler_message(
                &self.loaded.gang_cluster,
                true,
                &GangOutcome::Infeasible { domains },
            )
        });
        self.expect("message", message.unwrap_or_default());
    }

    fn run(&self) -> DryRun {
        self.loaded
            .gang_cluster
            .dry_run(&self.loaded.preemption_request(), &mut GangTrace::off())
    }

    fn candidate(&self, plan: &GangPlan) -> Value {
        json!({
            "node": self.node(plan.host),
            "pdb_violations": plan.violations,
            "victims": sorted(self.victims(Some(plan))),
        })
    }

    fn compare(&mut self, field: &'static str, got: &Value, expected: &Value) {
        self.compared_fields.insert(field);
        if got != expected {
            self.problems
                .push(format!("{field}: got {got}, expected {expected}"));
        }
    }

    fn expect_units(&mut self, field: &'static str, got: &[Vec<String>]) {
        let Some(expected) = self.expected.get(field) else {
            return;
        };
        let is_tied = self.scenario.equal_importance_victims;
        let expected: Vec<Vec<String>> = serde_json::from_value(expected.clone()).unwrap();
        let (got, expected) = (
            units_or_count(got, is_tied),
            units_or_count(&expected, is_tied),
        );
        self.compare(field, &got, &expected);
    }

    fn victim_units(&self, plan: Option<&GangPlan>) -> Vec<Vec<String>> {
        let units = plan.iter().flat_map(|it| &it.victims);
        units.map(|it| self.pods_of(*it)).collect()
    }

    fn victims(&self, plan: Option<&GangPlan>) -> Vec<Value> {
        let units = self.victim_units(plan).into_iter().flatten();
        units.map(Value::from).collect()
    }

    pub fn pods_of(&self, unit: UnitId) -> Vec<String> {
        let gang_cluster = &self.loaded.gang_cluster;
        let pods = gang_cluster.units().get(unit).unwrap().pods().iter();
        pods.map(|it| gang_cluster.cluster().pod(*it).unwrap().name().to_owned())
            .collect()
    }

    fn node_assignment(&self, (pod, host): (PodId, Option<HostId>)) -> (String, String) {
        let pod = self.loaded.gang_cluster.cluster().pod(pod).unwrap();
        (pod.name().to_owned(), self.node(host))
    }

    pub fn node(&self, host: Option<HostId>) -> String {
        let cluster = self.loaded.gang_cluster.cluster();
        host.map_or_else(String::new, |it| cluster.host_name(it).to_owned())
    }
}

/// kube-scheduler selects among equal units by the order of input; then only their number and sizes are compared.
fn units_or_count(units: &[Vec<String>], is_tied: bool) -> Value {
    if !is_tied {
        return json!(units);
    }
    let mut sizes: Vec<usize> = units.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    json!(sizes)
}

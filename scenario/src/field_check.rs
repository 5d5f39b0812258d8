//! Mistakes in scenario files of queues that the decoder ignores: unknown fields, and names of unknown ClusterQueues.

use crate::field_names::field_names;
use crate::scenario::{
    ClusterQueue, Cohort, FairSharing, FixedAssignment, Flavor, NeededResource, PodSet, Preemption,
    PreemptionLimits, Quota, ResourceGroup, Scenario, UsageAmount, Workload,
};
use lockkeeper_api::cluster_queue::{BorrowWithinCohort, Elastic, FlavorFungibility};
use lockkeeper_api::field_path::FieldPath;
use serde::Deserialize;
use serde_json::Value;

/// Top-level fields that remark on the scenario, without effect.
const REMARKS: [&str; 6] = ["expected", "note", "origin", "rule", "source", "title"];

/// The prefix of `schema` in recorded scenarios, which have further fields.
const RECORDED: &str = "kueue-";

/// A mistake, and its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldMistake {
    /// The field.
    pub field: FieldPath,
    /// The mistake.
    pub message: String,
}

/// The first mistake in a scenario of queues, in the order of this module; `None` for a recorded scenario.
#[must_use]
pub fn find_mistake(scenario: &Value) -> Option<FieldMistake> {
    let schema = scenario.get("schema").and_then(Value::as_str);
    if schema.is_some_and(|it| it.starts_with(RECORDED)) {
        return None;
    }
    let mut check = FieldCheck::default();
    check.scenario(scenario);
    check.queue_names(scenario);
    check.mistakes.into_iter().next()
}

#[derive(Default)]
struct FieldCheck {
    mistakes: Vec<FieldMistake>,
}

/// A value with its path.
#[derive(Clone)]
struct Node<'a> {
    value: Option<&'a Value>,
    path: FieldPath,
}

impl Node<'_> {
    fn field(&self, name: &'static str) -> Self {
        Self {
            value: self.value.and_then(|it| it.get(name)),
            path: self.path.clone().field(name),
        }
    }

    fn items(&self, name: &'static str) -> Vec<Self> {
        let list = self.field(name);
        let items = list.value.and_then(Value::as_array).into_iter().flatten();
        let items = items.enumerate().map(|(at, value)| Self {
            value: Some(value),
            path: list.path.clone().index(at),
        });
        items.collect()
    }
}

impl FieldCheck {
    /// Reports the fields of an object that the type does not have.
    fn object<T: for<'de> Deserialize<'de>>(&mut self, node: &Node<'_>) {
        self.names(node, field_names::<T>(), &[]);
    }

    fn names(&mut self, node: &Node<'_>, known: &[&str], remarks: &[&str]) {
        let fields = node.value.and_then(Value::as_object).into_iter().flatten();
        for (name, _) in fields {
            if known.is_empty()
                || known.contains(&name.as_str())
                || remarks.contains(&name.as_str())
            {
                continue;
            }
            let message = match nearest(name, known.iter().copied()) {
                Some(near) => format!("unknown field; did you mean {near}?"),
                None => format!("unknown field; the fields are {}", known.join(", ")),
            };
            self.mistakes.push(FieldMistake {
                field: node.path.clone().named(name.as_str()),
                message,
            });
        }
    }

    fn scenario(&mut self, scenario: &Value) {
        let root = Node {
            value: Some(scenario),
            path: FieldPath::default(),
        };
        self.names(&root, field_names::<Scenario>(), &REMARKS);
        let assignment = root.field("assignment");
        self.object::<FixedAssignment>(&assignment);
        for item in assignment.items("totalRequests") {
            self.object::<UsageAmount>(&item);
        }
        for item in assignment.items("needPreemption") {
            self.object::<NeededResource>(&item);
        }
        self.object::<FairSharing>(&root.field("fairSharing"));
        for cohort in root.items("cohorts") {
            self.object::<Cohort>(&cohort);
            self.quotas(&cohort);
        }
        for queue in root.items("clusterQueues") {
            self.queue(&queue);
        }
        for workload in workloads(&root) {
            self.object::<Workload>(&workload);
            for pod_set in workload.items("podSets") {
                self.object::<PodSet>(&pod_set);
            }
        }
    }

    fn queue(&mut self, queue: &Node<'_>) {
        self.object::<ClusterQueue>(queue);
        for group in queue.items("resourceGroups") {
            self.object::<ResourceGroup>(&group);
            for flavor in group.items("flavors") {
                self.object::<Flavor>(&flavor);
                self.quotas(&flavor);
            }
        }
        for used in queue.items("usage") {
            self.object::<UsageAmount>(&used);
        }
        self.object::<Elastic>(&queue.field("elastic"));
        self.object::<FlavorFungibility>(&queue.field("flavorFungibility"));
        let preemption = queue.field("preemption");
        self.object::<Preemption>(&preemption);
        self.object::<PreemptionLimits>(&preemption.field("limits"));
        self.object::<BorrowWithinCohort>(&preemption.field("borrowWithinCohort"));
    }

    fn quotas(&mut self, owner: &Node<'_>) {
        for quota in owner.items("quotas") {
            self.object::<Quota>(&quota);
        }
    }

    /// Reports workloads in ClusterQueues that the scenario does not have.
    fn queue_names(&mut self, scenario: &Value) {
        let root = Node {
            value: Some(scenario),
            path: FieldPath::default(),
        };
        let queues = root.items("clusterQueues");
        let names = queues
            .iter()
            .filter_map(|it| it.field("name").value?.as_str());
        let names: Vec<&str> = names.collect();
        for workload in workloads(&root) {
            let queue = workload.field("clusterQueue");
            let name = queue.value.and_then(Value::as_str).unwrap_or_default();
            // An empty name means that the workload has no queue.
            if name.is_empty() || names.contains(&name) {
                continue;
            }
            let remedy = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("the scenario has {}", names.join(", ")),
            };
            self.mistakes.push(FieldMistake {
                field: queue.path,
                message: format!("there is no ClusterQueue {name:?}; {remedy}"),
            });
        }
    }
}

fn workloads<'a>(root: &Node<'a>) -> Vec<Node<'a>> {
    let mut all = root.items("admitted");
    all.extend(root.items("pending"));
    let incoming = root.field("incoming");
    all.extend(incoming.value.is_some().then_some(incoming));
    all
}

/// The most edits between a misspelt name and a suggestion, per three letters of the name.
const LETTERS_PER_EDIT: usize = 3;

/// The most similar name: that with the fewest inserted, removed or changed letters.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let scored = known.map(|it| (edit_distance(&lower, &it.to_lowercase()), it));
    let (distance, near) = scored.min_by_key(|(distance, _)| *distance)?;
    let limit = lower.chars().count().div_ceil(LETTERS_PER_EDIT);
    (distance <= limit).then_some(near)
}

/// The number of edits from one text to the other (Levenshtein).
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut left = line.saturating_add(1);
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (other, above) in to.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal.saturating_add(usize::from(letter != *other));
            let edited = left.min(*above).saturating_add(1);
            diagonal = *above;
            left = replaced.min(edited);
            *above = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{edit_distance, find_mistake};
    use serde_json::{Value, json};

    fn mistake(change: impl FnOnce(&mut Value)) -> Option<String> {
        let quota = json!({"resource": "cpu", "nominal": "4"});
        let flavor = json!({"name": "spot", "quotas": [quota]});
        let mut scenario = json!({
            "note": "a remark",
            "clusterQueues": [{"name": "team-a", "resourceGroups": [{"resources": ["cpu"], "flavors": [flavor]}]}],
            "incoming": {"name": "w", "clusterQueue": "team-a", "podSets": [{"requests": {"cpu": "1"}}]},
        });
        change(&mut scenario);
        find_mistake(&scenario).map(|it| format!("{}: {}", it.field, it.message))
    }

    #[test]
    fn find_mistake_reports_unknown_fields_and_queues() {
        assert_eq!(mistake(|_| ()), None);
        for (pointer, field, expected) in [
            (
                "",
                "incomming",
                "incomming: unknown field; did you mean incoming?",
            ),
            (
                "/incoming",
                "priorty",
                "incoming.priorty: unknown field; did you mean priority?",
            ),
            (
                "/clusterQueues/0/resourceGroups/0/flavors/0/quotas/0",
                "borowingLimit",
                "clusterQueues[0].resourceGroups[0].flavors[0].quotas[0].borowingLimit: unknown field; did you mean borrowingLimit?",
            ),
            (
                "/incoming/podSets/0",
                "replicas",
                "incoming.podSets[0].replicas: unknown field; the fields are name, count, minCount, requests, flavors, ineligibleFlavors",
            ),
        ] {
            let found = mistake(|it| it.pointer_mut(pointer).unwrap()[field] = json!({}));
            assert_eq!(found.as_deref(), Some(expected));
        }
        let found = mistake(|it| it["incoming"]["clusterQueue"] = json!("team-b"));
        let expected =
            "incoming.clusterQueue: there is no ClusterQueue \"team-b\"; did you mean team-a?";
        assert_eq!(found.as_deref(), Some(expected));
        let recorded = mistake(|it| {
            it["schema"] = json!("kueue-preemption-decision/v1");
            it["units"] = json!({});
        });
        assert_eq!(recorded, None);
    }

    #[test]
    fn edit_distance_counts_edits() {
        for (from, to, expected) in [
            ("", "ab", 2),
            ("ab", "", 2),
            ("abc", "abd", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edit_distance(from, to), expected);
        }
    }
}

//! The objects of the load, and the expected result of each.

use std::io;

use serde_json::{Value, json};

use super::counts::Outcome;
use crate::client::{Client, Response};
use crate::manifests;

/// The objects that the load refers to, as manifests: a namespace, two classes, a flavor and a cohort.
pub const REQUIRED_OBJECTS: &str = manifests::CLUSTER_OBJECTS;

/// The collections that objects are sent to.
pub const QUEUES: &str = "/apis/lockkeeper.dev/v1alpha1/clusterqueues";
pub const WORKLOADS: &str = "/apis/lockkeeper.dev/v1alpha1/namespaces/team/workloads";

/// Where the fields are that real updates change: a quota, and an annotation.
const QUOTA: &str = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota";
const ANNOTATION: &str = "/metadata/annotations/drill";

/// The quota of a queue that was not changed yet; its lending limit is half of it.
const QUOTA_FIRST: u64 = 8;

/// One client of the load. It owns a queue and a workload that no other client changes.
pub struct LoadClient {
    client: Client,
    name: String,
    /// The number of the next request.
    number: u64,
    quota: ExpectedField,
    annotation: ExpectedField,
}

/// One request.
struct RequestCase {
    action: Action,
    object: Value,
    expected: Expected,
}

enum Action {
    /// Create it as a dry run; nothing is stored.
    Try(&'static str),
    /// Change the own object in this collection.
    Change(&'static str),
}

/// The expected result of a request.
enum Expected {
    /// It is accepted, and the answer holds this text at this place.
    Accepted(&'static str, String),
    /// It is rejected by this rule.
    Rejected(&'static str),
}

impl LoadClient {
    /// Makes the queue and the workload that this client will change.
    pub fn new(mut client: Client, name: String) -> io::Result<Self> {
        for (path, object) in [
            (QUEUES, queue(&name, QUOTA_FIRST, 4)),
            (WORKLOADS, workload(&name, "low", "low")),
        ] {
            let answer = client.create(path, &object)?;
            if answer.status != 201 {
                return Err(io::Error::other(format!("{name}: {answer:?}")));
            }
        }
        Ok(Self {
            client,
            name,
            number: 0,
            quota: ExpectedField::new(QUOTA_FIRST.to_string()),
            annotation: ExpectedField::new(String::new()),
        })
    }

    /// Sends the next request: valid and invalid ones alternate.
    pub fn send_next(&mut self) -> Outcome {
        self.number += 1;
        let case = case(self.number);
        let answer = match case.action {
            Action::Try(path) => self
                .client
                .create(&format!("{path}?dryRun=All"), &case.object),
            Action::Change(path) => self
                .client
                .patch(&format!("{path}/{}", self.name), &case.object),
        };
        let outcome = case.expected.outcome(answer);
        if let (Action::Change(_), Expected::Accepted(place, value)) = (case.action, case.expected)
        {
            let stored = match place {
                QUOTA => &mut self.quota,
                _ => &mut self.annotation,
            };
            stored.record(value, &outcome);
        }
        outcome
    }

    /// Differences between the stored objects of this client and the accepted requests.
    pub fn audit_stored(mut self) -> Vec<String> {
        let mut faults = Vec::new();
        for (collection, place, stored) in [
            (QUEUES, QUOTA, &self.quota),
            (WORKLOADS, ANNOTATION, &self.annotation),
        ] {
            let path = format!("{collection}/{}", self.name);
            match self.client.get(&path) {
                Ok(answer) => {
                    let found = text_at(&answer.body, place);
                    if !stored.matches(&found) {
                        let expected = &stored.accepted;
                        faults.push(format!("{path}{place} is {found:?}, not {expected:?}"));
                    }
                }
                Err(error) => faults.push(format!("{path}: {error}")),
            }
        }
        faults
    }
}

/// The request of this number.
fn case(number: u64) -> RequestCase {
    let quota = QUOTA_FIRST + number;
    let (action, object, expected) = match number % 8 {
        1 => (
            Action::Try(QUEUES),
            queue("tried", 8, 8),
            Expected::Accepted("/spec/queueingStrategy", "BestEffortFIFO".to_owned()),
        ),
        2 => (
            Action::Try(QUEUES),
            queue("tried", 8, 9),
            Expected::Rejected("CQ007"),
        ),
        3 => (
            Action::Try(WORKLOADS),
            workload("tried", "high", ""),
            Expected::Accepted("/spec/preemptionPriorityClassName", "high".to_owned()),
        ),
        4 => (
            Action::Try(WORKLOADS),
            workload("tried", "high", "low"),
            Expected::Rejected("WL001"),
        ),
        5 => (
            Action::Change(QUEUES),
            queue_spec(quota, 4),
            Expected::Accepted(QUOTA, quota.to_string()),
        ),
        6 => (
            Action::Change(QUEUES),
            queue_spec(quota, quota + 1),
            Expected::Rejected("CQ007"),
        ),
        7 => (
            Action::Change(WORKLOADS),
            json!({"metadata": {"annotations": {"drill": number.to_string()}}}),
            Expected::Accepted(ANNOTATION, number.to_string()),
        ),
        _ => (
            Action::Change(WORKLOADS),
            json!({"spec": {"priorityClassName": "high", "preemptionPriorityClassName": "high"}}),
            Expected::Rejected("WL005"),
        ),
    };
    RequestCase {
        action,
        object,
        expected,
    }
}

/// A queue with this quota and lending limit.
pub fn queue(name: &str, quota: u64, lending: u64) -> Value {
    let mut queue = queue_spec(quota, lending);
    queue["apiVersion"] = json!("lockkeeper.dev/v1alpha1");
    queue["kind"] = json!("ClusterQueue");
    queue["metadata"] = json!({"name": name});
    queue
}

fn queue_spec(quota: u64, lending: u64) -> Value {
    let resource = json!({"name": "cpu", "nominalQuota": quota, "lendingLimit": lending});
    json!({"spec": {"cohortName": "lab", "namespaceSelector": {}, "resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [{"name": "default", "resources": [resource]}],
    }]}})
}

/// A workload of these classes; an empty one is left out.
pub fn workload(name: &str, class: &str, preemption: &str) -> Value {
    let container = json!({"name": "train", "image": "registry.example.com/train:1"});
    let mut workload = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {
            "queueName": "main",
            "podSets": [{"template": {"spec": {"containers": [container]}}}],
        },
    });
    for (field, class) in [
        ("priorityClassName", class),
        ("preemptionPriorityClassName", preemption),
    ] {
        if !class.is_empty() {
            workload["spec"][field] = json!(class);
        }
    }
    workload
}

/// The expected final value of a field.
struct ExpectedField {
    /// The last value that was accepted.
    accepted: String,
    /// Later values whose requests had no clear result.
    uncertain: Vec<String>,
}

impl ExpectedField {
    fn new(accepted: String) -> Self {
        Self {
            accepted,
            uncertain: Vec::new(),
        }
    }

    fn record(&mut self, value: String, outcome: &Outcome) {
        match outcome {
            Outcome::Accepted => {
                self.accepted = value;
                self.uncertain.clear();
            }
            Outcome::NoResponse(_) => self.uncertain.push(value),
            Outcome::Rejected | Outcome::Unexpected(_) => {}
        }
    }

    fn matches(&self, value: &str) -> bool {
        value == self.accepted || self.uncertain.iter().any(|other| value == other)
    }
}

impl Expected {
    /// The meaning of the response.
    fn outcome(&self, answer: io::Result<Response>) -> Outcome {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Outcome::NoResponse(format!("no answer: {error}")),
        };
        let status = answer.status;
        let text = format!("{status}: {}", answer.message());
        match self {
            _ if status >= 500 || status == 429 => Outcome::NoResponse(text),
            Self::Accepted(place, value)
                if status < 300 && text_at(&answer.body, place) == *value =>
            {
                Outcome::Accepted
            }
            Self::Rejected(rule) if status == 422 && text.contains(&format!("[{rule}]")) => {
                Outcome::Rejected
            }
            Self::Accepted(place, value) => {
                let found = text_at(&answer.body, place);
                Outcome::Unexpected(format!("{place} was to be {value}: {found:?}, {text}"))
            }
            Self::Rejected(rule) => Outcome::Unexpected(format!("{rule} had to reject: {text}")),
        }
    }
}

/// The string or the number at this path; empty if it does not exist.
fn text_at(object: &Value, place: &str) -> String {
    match object.pointer(place) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

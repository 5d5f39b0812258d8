//! What is logged of writes. No line holds what users have put into their templates: that may be secret.

use super::watch::job_resource;
use crate::{Outcome, Target, Verb, Write};
use serde_json::{Map, Value, json};

/// What of a pod template a write of ours is about.
const OURS: [&str; 2] = ["nodeSelector", "tolerations"];

/// Says what became of a write.
pub(super) fn log(write: &Write, outcome: &Outcome) {
    let (what, target) = (write.what.as_str(), describe(&write.target));
    match outcome {
        Outcome::Done(_) => tracing::debug!(what, %target, "written"),
        Outcome::Conflict | Outcome::Exists | Outcome::Absent | Outcome::DryRun => {
            tracing::debug!(what, %target, ?outcome, "outrun");
        }
        Outcome::Refused(why) => tracing::warn!(what, %target, %why, "refused"),
        Outcome::Failed(why) => tracing::warn!(what, %target, %why, "failed; trying again"),
    }
}

/// Says what would be written. The field `patch` is JSON, whatever the format of the log.
pub(super) fn report(write: &Write) {
    let (target, patch) = (describe(&write.target), body(&write.verb));
    tracing::info!(what = write.what.as_str(), %target, %patch, "would write");
}

/// What would be sent, without the templates.
fn body(verb: &Verb) -> Value {
    match verb {
        Verb::Create(body) | Verb::Patch(body) | Verb::PatchStatus(body) => shown(body),
        Verb::Delete { uid } => json!({"preconditions": {"uid": uid}}),
    }
}

/// The same without the templates, but for what of them is ours.
fn shown(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, it)| {
                    let it = if key == "template" {
                        template(it)
                    } else {
                        shown(it)
                    };
                    (key.clone(), it)
                })
                .collect(),
        ),
        Value::Array(all) => Value::Array(all.iter().map(shown).collect()),
        other => other.clone(),
    }
}

/// A pod template, or that of a job in a JobSet with a pod template in it.
fn template(value: &Value) -> Value {
    let mut left = Map::new();
    let Some(spec) = value.get("spec") else {
        return Value::Object(left);
    };
    let mut kept: Map<String, Value> = Map::new();
    for key in OURS {
        kept.extend(spec.get(key).map(|it| (key.to_owned(), it.clone())));
    }
    let inner = spec.get("template").map(template);
    kept.extend(inner.map(|it| ("template".to_owned(), it)));
    left.insert("spec".to_owned(), Value::Object(kept));
    Value::Object(left)
}

fn describe(target: &Target) -> String {
    match target {
        Target::Workload(name) => format!("workload {name}"),
        Target::Job(job) => format!("{} {}", job_resource(job.kind).kind, job.name),
        Target::ClusterQueue(name) => format!("clusterqueue {name}"),
        Target::Cohort(name) => format!("cohort {name}"),
        Target::LocalQueue(name) => format!("localqueue {name}"),
        Target::ResourceFlavor(name) => format!("resourceflavor {name}"),
        Target::Event(number) => format!("event {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{body, shown};
    use crate::Verb;
    use serde_json::{Value, json};

    #[test]
    fn of_each_write_the_body_is_told_as_json() {
        let patch = json!({"spec": {"suspend": true, "note": "a \"quote\"\nand a line"}});
        let uid = "0b5e".to_owned();
        for (verb, expected) in [
            (Verb::Create(patch.clone()), patch.clone()),
            (Verb::Patch(patch.clone()), patch.clone()),
            (Verb::PatchStatus(patch.clone()), patch),
            (
                Verb::Delete { uid },
                json!({"preconditions": {"uid": "0b5e"}}),
            ),
        ] {
            let told = format!("{}", body(&verb));
            assert!(!told.contains('\n'), "{told}");
            assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), expected);
        }
    }

    #[test]
    fn no_template_is_shown_but_for_where_its_pods_go() {
        let pod = json!({
            "metadata": {"annotations": {"token": "secret"}},
            "spec": {
                "nodeSelector": {"pool": "spot"},
                "containers": [{"name": "main", "env": [{"name": "TOKEN", "value": "secret"}]}],
            },
        });
        let ours = json!({"spec": {"nodeSelector": {"pool": "spot"}}});
        for (written, left) in [
            (
                json!({"spec": {"queueName": "q", "podSets": [{"count": 2, "template": pod}]}}),
                json!({"spec": {"queueName": "q", "podSets": [{"count": 2, "template": ours}]}}),
            ),
            (
                json!({"spec": {"suspend": false, "template": pod}}),
                json!({"spec": {"suspend": false, "template": ours}}),
            ),
            (
                json!({"spec": {"replicatedJobs": [{"template": {"spec": {"template": pod}}}]}}),
                json!({"spec": {"replicatedJobs": [{"template": {"spec": {"template": ours}}}]}}),
            ),
            (
                json!({"spec": {"template": null}}),
                json!({"spec": {"template": {}}}),
            ),
        ] {
            assert_eq!(shown(&written), left);
        }
    }
}

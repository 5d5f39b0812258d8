//! What is logged of writes. No line holds what users have put into their templates: that may be secret.

use super::watch::job_resource;
use crate::{Outcome, Target, Verb, Write};
use serde_json::{Map, Value};

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

/// Says what would be written.
pub(super) fn report(write: &Write) {
    let patch = match &write.verb {
        Verb::Create(object) => shown(object).to_string(),
        Verb::Patch(patch) | Verb::PatchStatus(patch) => shown(patch).to_string(),
        Verb::Delete { .. } => String::new(),
    };
    let target = describe(&write.target);
    tracing::info!(what = write.what.as_str(), %target, %patch, "would write");
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
    use super::shown;
    use serde_json::json;

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

//! Logs writes, with redacted pod templates.

use crate::job_adapters::{JobKinds, KINDS};
use crate::{ObjectRef, WriteOp, WriteRequest, WriteResult};
use serde_json::{Map, Value, json};

/// The fields of a pod template that the controller sets.
const OWN_TEMPLATE_FIELDS: [&str; 2] = ["nodeSelector", "tolerations"];

/// Logs the result of a write.
pub(super) fn log_result(kinds: &JobKinds, write: &WriteRequest, outcome: &WriteResult) {
    let (what, target) = (write.purpose.as_str(), describe(kinds, &write.object));
    match outcome {
        WriteResult::Done(_) => tracing::debug!(what, %target, "written"),
        WriteResult::Read(_) => tracing::debug!(what, %target, "read"),
        WriteResult::Conflict
        | WriteResult::AlreadyExists
        | WriteResult::NotFound
        | WriteResult::DryRun => {
            tracing::debug!(what, %target, ?outcome, "not written: the object has changed");
        }
        WriteResult::Rejected(why) => tracing::warn!(what, %target, %why, "write rejected"),
        WriteResult::Failed(why) | WriteResult::ServerError(why) => {
            tracing::warn!(what, %target, %why, "write failed; retrying");
        }
    }
}

/// Logs a write of a dry run. The field `patch` is JSON in every log format.
pub(super) fn log_dry_run(kinds: &JobKinds, write: &WriteRequest) {
    let (target, patch) = (describe(kinds, &write.object), body(write));
    tracing::info!(what = write.purpose.as_str(), %target, %patch, "would write");
}

/// The redacted body of the request.
fn body(write: &WriteRequest) -> Value {
    match &write.op {
        WriteOp::Patch(body) if is_declared(&write.object) => redacted_declared(body),
        WriteOp::Create(body)
        | WriteOp::Patch(body)
        | WriteOp::PatchStatus(body)
        | WriteOp::PatchPodConditions(body) => redacted(body),
        WriteOp::Delete { uid } | WriteOp::Evict { uid } => json!({"preconditions": {"uid": uid}}),
        WriteOp::ReadJob { uid, .. } => json!({"uid": uid}),
    }
}

/// Whether an object is a job of a declared kind.
fn is_declared(target: &ObjectRef) -> bool {
    matches!(target, ObjectRef::Job(job) if job.kind >= KINDS.len())
}

/// The patch of a job of a declared kind. It has lists of templates as a whole, and any field in them may be a secret:
/// only placements are left.
fn redacted_declared(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, it)| {
                    let is_own = OWN_TEMPLATE_FIELDS.contains(&key.as_str());
                    let shown = if is_own {
                        it.clone()
                    } else {
                        redacted_declared(it)
                    };
                    (key.clone(), shown)
                })
                .collect(),
        ),
        Value::Array(all) => Value::Array(all.iter().map(placements).collect()),
        other => other.clone(),
    }
}

/// The node selectors and tolerations in a value, with the names of the fields around them.
fn placements(value: &Value) -> Value {
    let Value::Object(fields) = value else {
        return Value::Object(Map::new());
    };
    let kept = fields.iter().filter_map(|(key, it)| {
        let shown = match it {
            _ if OWN_TEMPLATE_FIELDS.contains(&key.as_str()) => it.clone(),
            Value::Object(_) => placements(it),
            _ => return None,
        };
        Some((key.clone(), shown))
    });
    Value::Object(
        kept.filter(|(_, it)| it.as_object().is_none_or(|it| !it.is_empty()))
            .collect(),
    )
}

/// The value without pod templates, except for the fields that the controller sets.
fn redacted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, it)| {
                    // Environment variables and annotations of pods may contain secrets.
                    let shown = if key == "template" {
                        redacted_template(it)
                    } else {
                        redacted(it)
                    };
                    (key.clone(), shown)
                })
                .collect(),
        ),
        Value::Array(all) => Value::Array(all.iter().map(redacted).collect()),
        other => other.clone(),
    }
}

/// A pod template, or that of a job in a JobSet with a pod template in it.
fn redacted_template(value: &Value) -> Value {
    let mut left = Map::new();
    let Some(spec) = value.get("spec") else {
        return Value::Object(left);
    };
    let mut kept: Map<String, Value> = Map::new();
    for key in OWN_TEMPLATE_FIELDS {
        kept.extend(spec.get(key).map(|it| (key.to_owned(), it.clone())));
    }
    let inner = spec.get("template").map(redacted_template);
    kept.extend(inner.map(|it| ("template".to_owned(), it)));
    left.insert("spec".to_owned(), Value::Object(kept));
    Value::Object(left)
}

fn describe(kinds: &JobKinds, target: &ObjectRef) -> String {
    match target {
        ObjectRef::Workload(name) => format!("workload {name}"),
        ObjectRef::Job(job) => format!("{} {}", kinds.name(job.kind), job.name),
        ObjectRef::ClusterQueue(name) => format!("clusterqueue {name}"),
        ObjectRef::Cohort(name) => format!("cohort {name}"),
        ObjectRef::LocalQueue(name) => format!("localqueue {name}"),
        ObjectRef::JobKind(name) => format!("jobkind {name}"),
        ObjectRef::ResourceFlavor(name) => format!("resourceflavor {name}"),
        ObjectRef::Event(number) => format!("event {number}"),
        ObjectRef::VictimPod(name) => format!("pod {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{body, redacted};
    use crate::job_adapters::KINDS;
    use crate::{JobKey, ObjectKey, ObjectRef, WriteId, WriteOp, WritePurpose, WriteRequest};
    use serde_json::{Value, json};

    fn job(kind: usize) -> ObjectRef {
        let name = ObjectKey::new("default", "a");
        ObjectRef::Job(JobKey { kind, name })
    }

    fn write(object: ObjectRef, op: WriteOp) -> WriteRequest {
        let (id, purpose) = (WriteId(1), WritePurpose::StartJob);
        WriteRequest {
            id,
            object,
            purpose,
            op,
        }
    }

    #[test]
    fn write_log_body_is_one_line_of_json() {
        let patch = json!({"spec": {"suspend": true, "note": "a \"quote\"\nand a line"}});
        let uid = "0b5e".to_owned();
        for (op, expected) in [
            (WriteOp::Create(patch.clone()), patch.clone()),
            (WriteOp::Patch(patch.clone()), patch.clone()),
            (WriteOp::PatchStatus(patch.clone()), patch),
            (
                WriteOp::Delete { uid },
                json!({"preconditions": {"uid": "0b5e"}}),
            ),
        ] {
            let line = format!("{}", body(&write(job(0), op)));
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
        }
    }

    #[test]
    fn write_log_redacts_template_except_placement() {
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
            assert_eq!(redacted(&written), left);
        }
    }

    #[test]
    fn write_log_has_only_placements_of_lists_of_declared_jobs() {
        let patch = json!({"spec": {
            "suspend": false,
            "driver": {"nodeSelector": {"pool": "spot"}, "tolerations": [{"key": "spot"}]},
            "groups": [{"name": "a", "env": [{"value": "secret"}], "command": "secret", "podTemplate": {
                "spec": {"nodeSelector": {"pool": "spot"}, "containers": [{"env": [{"value": "secret"}]}]},
                "metadata": {"annotations": {"token": "secret"}},
            }}],
        }});
        let expected = json!({"spec": {
            "suspend": false,
            "driver": {"nodeSelector": {"pool": "spot"}, "tolerations": [{"key": "spot"}]},
            "groups": [{"podTemplate": {"spec": {"nodeSelector": {"pool": "spot"}}}}],
        }});
        let write = write(job(KINDS.len()), WriteOp::Patch(patch));
        assert_eq!(body(&write), expected);
    }
}

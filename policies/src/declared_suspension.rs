//! The suspension of new jobs of a declared kind (`JobKind`): the controller starts them when they are admitted.

use crate::defaulting::Defaults;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::{JobKind, labels};
use lockkeeper_job_kinds::{DeclaredKind, JobPath};
use serde_json::{Value, json};

/// How a job of a declared kind is suspended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredSuspension {
    /// The API group of the kind.
    pub group: String,
    /// The version that the declaration describes.
    pub version: String,
    /// The kind.
    pub kind: String,
    path: JobPath,
    suspended: Value,
}

impl DeclaredSuspension {
    /// The suspension of a declaration; `None` if it has mistakes. Costs a compilation of its expressions.
    #[must_use]
    pub fn new(declaration: &JobKind) -> Option<Self> {
        let kind = DeclaredKind::compile(declaration).ok()?;
        let (path, suspended, _) = kind.suspend_field();
        Some(Self {
            path: path.clone(),
            suspended: suspended.clone(),
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
        })
    }

    /// Suspends a new job with the queue label, also if its own field says otherwise. An empty name of a queue counts. Without a
    /// `spec`, or with a value on the way to the field that is no object, nothing is set: the schema rejects such a job.
    #[must_use]
    pub fn default_suspend(&self, object: &Value) -> Defaults {
        let mut out = Defaults::default();
        let labels = object.pointer("/metadata/labels");
        let is_queued = labels.is_some_and(|it| it.get(labels::QUEUE_NAME).is_some());
        let has_spec = object.get("spec").is_some_and(Value::is_object);
        let is_suspended = self.path.get(object) == Some(&self.suspended);
        if !is_queued || is_suspended || !has_spec || !self.path.is_writable(object) {
            return out;
        }
        let mut at = FieldPath::default();
        let mut value = Some(object);
        let mut fields = self.path.fields().peekable();
        while let Some(name) = fields.next() {
            at = at.named(name);
            value = value.and_then(|it| it.get(name)).filter(|it| !it.is_null());
            if fields.peek().is_some() && value.is_none() {
                out.set(at.clone(), json!({}));
            }
        }
        out.set(at, &self.suspended);
        out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::DeclaredSuspension;
    use serde_json::{Value, json};

    fn suspension(suspend: &Value) -> Option<DeclaredSuspension> {
        let declaration = json!({
            "metadata": {"name": "runs.example.com"},
            "spec": {
                "version": "v1", "kind": "Run", "suspend": suspend,
                "podSets": [{"name": "main", "template": "spec.template"}],
            },
        });
        DeclaredSuspension::new(&serde_json::from_value(declaration).unwrap())
    }

    /// The object with the patch of the defaults.
    #[track_caller]
    fn suspended(suspend: &Value, object: &Value) -> Value {
        let defaults = suspension(suspend).unwrap().default_suspend(object);
        let patch = defaults
            .items()
            .iter()
            .map(|it| json!({"op": "add", "path": it.pointer, "value": it.value}));
        let patch: json_patch::Patch =
            serde_json::from_value(Value::Array(patch.collect())).unwrap();
        let mut out = object.clone();
        json_patch::patch(&mut out, &patch).unwrap();
        out
    }

    fn run(spec: &Value) -> Value {
        json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": "q"}}, "spec": spec})
    }

    #[test]
    fn queued_job_is_suspended() {
        let nested = json!({"path": "spec['a.b/c~d'].run.state", "suspendedValue": "Off", "startedValue": "On"});
        for (suspend, spec, expected) in [
            (json!({}), json!({}), json!({"suspend": true})),
            (
                json!({}),
                json!({"suspend": false}),
                json!({"suspend": true}),
            ),
            (
                json!({}),
                json!({"suspend": true}),
                json!({"suspend": true}),
            ),
            (
                nested.clone(),
                json!({"x": 1}),
                json!({"x": 1, "a.b/c~d": {"run": {"state": "Off"}}}),
            ),
            (
                nested.clone(),
                json!({"a.b/c~d": {"run": null, "y": 2}}),
                json!({"a.b/c~d": {"run": {"state": "Off"}, "y": 2}}),
            ),
            (
                nested.clone(),
                json!({"a.b/c~d": {"run": {"state": "On"}}}),
                json!({"a.b/c~d": {"run": {"state": "Off"}}}),
            ),
            // The schema rejects it.
            (nested, json!({"a.b/c~d": [1]}), json!({"a.b/c~d": [1]})),
        ] {
            assert_eq!(
                suspended(&suspend, &run(&spec)),
                run(&expected),
                "{suspend} {spec}"
            );
        }
    }

    #[test]
    fn other_objects_are_unchanged() {
        for object in [
            json!({"metadata": {}, "spec": {"suspend": false}}),
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {}}),
            json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": "q"}}}),
            json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": "q"}}, "spec": 1}),
            json!(1),
        ] {
            assert_eq!(suspended(&json!({}), &object), object);
        }
        let mut empty = run(&json!({}));
        empty["metadata"]["labels"]["lockkeeper.dev/queue-name"] = json!("");
        assert_eq!(suspended(&json!({}), &empty)["spec"]["suspend"], true);
    }

    #[test]
    fn declaration_with_mistakes_suspends_nothing() {
        assert_eq!(suspension(&json!({"path": "status.x"})), None);
    }
}

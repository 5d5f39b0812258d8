//! Every declaration of a kind of jobs reads every object in bounded time, and writes only declared fields. The first line of the
//! input is the spec of the declaration, the second the object.

use lockkeeper_api::JobKind;
use lockkeeper_job_kinds::{DeclaredKind, PodSetWrite};
use serde_json::{Value, json};

pub fn run(text: &str) {
    let mut lines = text.split('\n').map(serde_json::from_str::<Value>);
    let mut next = || lines.next().and_then(Result::ok);
    let (Some(spec), Some(object)) = (next(), next()) else {
        return;
    };
    let declaration = json!({"metadata": {"name": "jobs.example.com"}, "spec": spec});
    let Ok(declaration) = serde_json::from_value::<JobKind>(declaration) else {
        return;
    };
    let Ok(kind) = DeclaredKind::compile(&declaration) else {
        return;
    };
    let Ok(job) = kind.read(&object) else {
        return;
    };
    assert!(!job.pod_sets.is_empty() && job.pod_sets.len() <= 8);
    assert!(job.pod_sets.iter().all(|it| it.count >= 0 && it.reclaimable <= it.count));
    assert_eq!(kind.templates(&job.templates).len(), job.pod_sets.len());
    assert!(job.pod_sets.iter().all(|it| it.minimum.is_none_or(|least| least < it.count)));
    let write = PodSetWrite { pod_spec: json!({"nodeSelector": {"a": "b"}}), count: Some(1) };
    let placed = vec![write; job.pod_sets.len()];
    let patch = kind.placement_patch(&job.templates, &placed);
    assert!(patch.is_some_and(|it| it.is_object()));
    assert!(kind.suspend_patch().is_object() && kind.start_patch().is_object());
}

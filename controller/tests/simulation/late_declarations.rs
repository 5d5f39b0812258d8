//! The watches deliver objects of different kinds in any order: a `JobKind` may come after the jobs and workloads that belong to its kind.

use crate::fixture::default_settings;
use lockkeeper_controller::job_adapters::KINDS;
use lockkeeper_controller::{
    Input, Kind, ObjectKey, Reconciler, Settings, WriteOp, WritePurpose, WriteRequest,
};
use serde_json::{Value, json};

const NOW_MS: i64 = 1_700_000_000_000;
const JOB: Kind = Kind::Job(0);
/// The declared kind.
const RUN: Kind = Kind::Job(KINDS.len());

/// Returns the writes of a controller that has seen all of these objects, in this order, before it plans.
fn writes(objects: &[(Kind, &Value)]) -> Vec<WriteRequest> {
    let mut reconciler = Reconciler::new(Settings {
        has_job_kinds: true,
        ..default_settings()
    });
    reconciler.handle_input(NOW_MS, Input::Leadership(true));
    for (version, (kind, object)) in objects.iter().enumerate() {
        let mut object = (*object).clone();
        object["metadata"]["resourceVersion"] = json!((version + 1).to_string());
        let text = |name: &str| {
            object["metadata"][name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let key = ObjectKey::new(&text("namespace"), &text("name"));
        let input = Input::applied_with(reconciler.job_kinds(), *kind, key, object);
        reconciler.handle_input(NOW_MS, input);
    }
    for kind in Kind::FIXED
        .into_iter()
        .chain([JOB, Kind::Job(1), Kind::JobKind, RUN])
    {
        reconciler.handle_input(NOW_MS, Input::Listed(kind));
    }
    reconciler.poll(NOW_MS).writes
}

/// Returns the workloads that such a controller creates.
fn created(objects: &[(Kind, &Value)]) -> Vec<Value> {
    let writes = writes(objects).into_iter();
    let created = writes.filter_map(|it| match it.op {
        WriteOp::Create(object) if object["kind"] == "Workload" => Some(object),
        _ => None,
    });
    created.collect()
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "1"}}}]}})
}

fn metadata(name: &str, more: &Value) -> Value {
    let mut metadata = json!({"name": name, "namespace": "team", "uid": format!("uid-{name}"), "generation": 1,
        "creationTimestamp": "2023-11-14T22:13:20Z", "labels": {"lockkeeper.dev/queue-name": "main"}});
    json_patch::merge(&mut metadata, more);
    metadata
}

fn declaration() -> Value {
    json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "JobKind", "metadata": {"name": "runs.example.com"}, "spec": {
        "version": "v1", "kind": "Run", "podSets": [{"name": "main", "template": "spec.template"}],
        "children": [{"group": "batch", "kind": "Job", "names": "self.?status.?children.orValue([])"}]}})
}

/// A job that runs, and has created the Job `part`.
fn run() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Run", "metadata": metadata("train", &json!({})),
        "spec": {"suspend": true, "template": template()}, "status": {"children": ["part"]}})
}

fn part() -> Value {
    let owner = json!([{"apiVersion": "example.com/v1", "kind": "Run", "name": "train", "uid": "uid-train", "controller": true}]);
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata("part", &json!({"ownerReferences": owner})),
        "spec": {"suspend": true, "template": template()}})
}

fn owner_of(workload: &Value) -> &str {
    workload["metadata"]["ownerReferences"][0]["name"]
        .as_str()
        .unwrap()
}

#[test]
fn children_need_no_quota_in_any_order() {
    let (declaration, run, part) = (declaration(), run(), part());
    let (declared, parent) = ((Kind::JobKind, &declaration), (RUN, &run));
    let child = (JOB, &part);
    for order in [
        [declared, parent, child],
        [declared, child, parent],
        [child, declared, parent],
    ] {
        let created = created(&order);
        let owners: Vec<&str> = created.iter().map(owner_of).collect();
        assert_eq!(owners, ["train"]);
    }
    // Without its parent it is a job of its own.
    assert_eq!(created(&[child, declared]).len(), 1);
}

#[test]
fn workloads_keep_their_jobs_in_any_order() {
    let (declaration, run) = (declaration(), run());
    let (declared, job) = ((Kind::JobKind, &declaration), (RUN, &run));
    let mut workload = created(&[declared, job]).pop().unwrap();
    workload["metadata"]["uid"] = json!("uid-workload");
    workload["metadata"]["creationTimestamp"] = json!("2023-11-14T22:13:20Z");
    let condition = |it: &str| json!({"type": it, "status": "True", "reason": it, "message": "", "lastTransitionTime": "2023-11-14T22:13:20Z"});
    workload["status"] = json!({
        "admission": {"clusterQueue": "main", "podSetAssignments": [{"name": "main", "count": 1, "flavors": {"cpu": "f"}}]},
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
    });
    let workload = (Kind::Workload, &workload);
    for order in [
        [declared, job, workload],
        [declared, workload, job],
        [workload, declared, job],
    ] {
        let purposes: Vec<_> = writes(&order).iter().map(|it| it.purpose).collect();
        assert!(purposes.contains(&WritePurpose::StartJob), "{purposes:?}");
        assert!(
            !purposes.contains(&WritePurpose::CreateWorkload),
            "{purposes:?}"
        );
    }
}

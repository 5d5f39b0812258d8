//! The controller's reconciler with arbitrary objects and events, faults included: it never panics, and each admission that it
//! writes fits into the quota that the admissions stored before it leave.
//!
//! An input is a JSON array of steps. `{"set": OBJECT}` and `{"status": OBJECT}` write an object or its status, `{"delete":
//! OBJECT}` deletes it, `{"wait": MILLISECONDS}` advances the clock, `{"result": NAME}` makes the next write fail, `{"lag": true}`
//! delays the watches, `{"lead": BOOL}` changes the leadership, `{"restart": true}` starts another process, `{"backup": true}` and
//! `{"restore": true}` copy the storage of the API server and restore it.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::{ClusterState, Completeness};
use lockkeeper_controller::job_adapters::{KINDS, POD_GROUP};
use lockkeeper_controller::{
    Input, JobRead, Kind, ObjectKey, ObjectRef, Reconciler, Settings, WriteOp, WritePurpose, WriteRequest, WriteResult,
};
use lockkeeper_policies::settings::Settings as RuleSettings;
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Amount, FlavorResource, Options};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

// Longer runs find nothing new and are slow.
const STEPS_MAX: usize = 64;
const POLLS_MAX: usize = 32;

const BEGIN_MS: i64 = 1_700_000_000_000;

/// The longest pause of a step.
const WAIT_MAX_MS: i64 = 864_000_000;

type Objects = BTreeMap<(Kind, ObjectKey), Value>;

pub fn run(text: &str) {
    let Ok(steps) = serde_json::from_str::<Vec<Map<String, Value>>>(text) else {
        return;
    };
    let mut cluster = Cluster::new();
    for step in steps.iter().take(STEPS_MAX) {
        for (action, value) in step.iter().take(1) {
            cluster.run_step(action, value);
        }
        cluster.run_writes();
    }
}

/// The storage of an API server, and a controller that watches it.
struct Cluster {
    stored: Objects,
    version: u64,
    uids: u64,
    backup: Option<(Objects, u64)>,
    /// Changes that the watches have not delivered.
    undelivered: Vec<(Kind, ObjectKey)>,
    /// What the watches have delivered.
    observed: Objects,
    is_lagging: bool,
    next_result: Option<String>,
    reconciler: Reconciler,
    now_ms: i64,
}

impl Cluster {
    fn new() -> Self {
        let mut cluster = Self {
            stored: Objects::new(),
            version: 0,
            uids: 0,
            backup: None,
            undelivered: Vec::new(),
            observed: Objects::new(),
            is_lagging: false,
            next_result: None,
            reconciler: Reconciler::new(settings()),
            now_ms: BEGIN_MS,
        };
        cluster.start();
        cluster
    }

    /// Lets a new process lead, which lists all objects.
    fn start(&mut self) {
        self.reconciler = Reconciler::new(settings());
        self.observed.clear();
        self.lead(true);
    }

    /// A new leader lists all kinds before it decides.
    fn lead(&mut self, is_leading: bool) {
        self.handle(Input::Leadership(is_leading));
        if is_leading {
            self.list();
        }
    }

    fn list(&mut self) {
        self.undelivered = self.stored.keys().chain(self.observed.keys()).cloned().collect();
        self.deliver();
        for kind in kinds() {
            self.handle(Input::Listed(kind));
        }
    }

    fn handle(&mut self, input: Input) {
        self.reconciler.handle_input(self.now_ms, input);
    }

    fn run_step(&mut self, action: &str, value: &Value) {
        match action {
            "set" => self.change(value, set_all),
            "status" => self.change(value, set_status),
            "delete" => self.change(value, |_, _| None),
            "wait" => {
                let pause = value.as_i64().unwrap_or_default().clamp(0, WAIT_MAX_MS);
                self.now_ms = self.now_ms.saturating_add(pause);
            }
            "result" => self.next_result = value.as_str().map(str::to_owned),
            "lag" => self.is_lagging = value.as_bool().unwrap_or_default(),
            "lead" => self.lead(value.as_bool().unwrap_or_default()),
            "restart" => self.start(),
            "backup" => self.backup = Some((self.stored.clone(), self.version)),
            "restore" => {
                if let Some((stored, version)) = self.backup.take() {
                    (self.stored, self.version) = (stored, version);
                    for kind in kinds() {
                        self.handle(Input::Restored(kind));
                    }
                    self.list();
                }
            }
            _ => {}
        }
        if !self.is_lagging {
            self.deliver();
        }
    }

    /// Changes an object as a user. The controller observes what it did before: no controller can prevent that a limit is
    /// lowered while it admits.
    fn change(&mut self, object: &Value, change: fn(Option<&Value>, &Value) -> Option<Value>) {
        self.deliver();
        let Some((kind, key)) = identity(object) else {
            return;
        };
        let id = (kind, key);
        let Some(mut after) = change(self.stored.get(&id), object) else {
            if self.stored.remove(&id).is_some() {
                self.undelivered.push(id);
            }
            return;
        };
        if !is_accepted(kind, &after) {
            return;
        }
        self.uids += 1;
        let uid = self.stored.get(&id).map_or(json!(format!("u{}", self.uids)), |it| it["metadata"]["uid"].clone());
        after["metadata"]["uid"] = uid;
        self.put(id, after);
    }

    fn put(&mut self, id: (Kind, ObjectKey), mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.undelivered.push(id.clone());
        self.stored.insert(id, object);
    }

    fn deliver(&mut self) {
        for id in std::mem::take(&mut self.undelivered) {
            let object = self.stored.get(&id).filter(|it| is_watched(id.0, it)).cloned();
            let (kind, key) = id.clone();
            let input = match object {
                Some(object) => {
                    self.observed.insert(id, object.clone());
                    Input::applied(kind, key, object)
                }
                None => {
                    self.observed.remove(&id);
                    Input::deleted(kind, key)
                }
            };
            self.handle(input);
        }
    }

    /// Polls until no write is due.
    fn run_writes(&mut self) {
        for _ in 0..POLLS_MAX {
            let writes = self.reconciler.poll(self.now_ms).writes;
            if writes.is_empty() {
                return;
            }
            for write in writes {
                let result = self.execute(&write);
                self.handle(Input::WriteFinished(write.id, result));
            }
            if !self.is_lagging {
                self.deliver();
            }
        }
    }

    fn execute(&mut self, write: &WriteRequest) -> WriteResult {
        let why = "as the input says".to_owned();
        match self.next_result.take().as_deref() {
            Some("conflict") => return WriteResult::Conflict,
            Some("rejected") => return WriteResult::Rejected(why),
            Some("failed") => return WriteResult::Failed(why),
            Some("error") => return WriteResult::ServerError(why),
            Some("not-found") => return WriteResult::NotFound,
            // The response is lost, not the write.
            Some("lost") => {
                self.apply(write);
                return WriteResult::Failed(why);
            }
            _ => {}
        }
        self.apply(write)
    }

    fn apply(&mut self, write: &WriteRequest) -> WriteResult {
        if let WriteOp::ReadJob { kind, name, uid, .. } = &write.op {
            return self.read_job(*kind, name.as_ref(), uid);
        }
        let Some(id) = target(write) else {
            return WriteResult::Done(self.version);
        };
        let before = self.stored.get(&id).cloned();
        let after = match (&write.op, before) {
            (WriteOp::Create(_), Some(_)) => return WriteResult::AlreadyExists,
            (WriteOp::Create(object), None) => {
                self.uids += 1;
                let mut object = object.clone();
                object["metadata"]["uid"] = json!(format!("u{}", self.uids));
                object
            }
            (_, None) => return WriteResult::NotFound,
            (WriteOp::Delete { uid }, Some(before)) => {
                if before["metadata"]["uid"] != **uid {
                    return WriteResult::Conflict;
                }
                self.stored.remove(&id);
                self.undelivered.push(id);
                return WriteResult::Done(self.version);
            }
            (
                WriteOp::Patch(patch)
                | WriteOp::PatchStatus(patch)
                | WriteOp::PatchPodConditions(patch),
                Some(before),
            ) => {
                let expected = &patch["metadata"]["resourceVersion"];
                if !expected.is_null() && *expected != before["metadata"]["resourceVersion"] {
                    return WriteResult::Conflict;
                }
                let uid = before["metadata"]["uid"].clone();
                let mut after = before;
                json_patch::merge(&mut after, patch);
                after["metadata"]["uid"] = uid;
                after
            }
            _ => return WriteResult::Done(self.version),
        };
        if write.purpose == WritePurpose::Admit {
            self.check_admission(&id, &after);
        }
        self.put(id, after);
        WriteResult::Done(self.version)
    }

    fn read_job(&self, kind: usize, name: Option<&ObjectKey>, uid: &str) -> WriteResult {
        let found = name.and_then(|name| self.stored.get(&(Kind::Job(kind), name.clone())));
        let found = found.filter(|it| it["metadata"]["uid"] == *uid);
        let view = found.and_then(|it| KINDS.get(kind)?.parse(it.clone()).ok());
        WriteResult::Read(match view {
            Some(view) => JobRead::Exists(kind, Box::new(view)),
            None if kind == POD_GROUP => JobRead::StartedPods(Vec::new()),
            None => JobRead::Gone { has_pods: false },
        })
    }

    /// Checks an admission against the limits that the controller has observed, and all admissions that are stored.
    fn check_admission(&self, id: &(Kind, ObjectKey), admitted: &Value) {
        let limits = self.observed.iter().filter(|((kind, _), _)| *kind != Kind::Workload);
        let others = self.stored.iter().filter(|(other, _)| other.0 == Kind::Workload && *other != id);
        let objects: Vec<(Kind, &Value)> = limits.chain(others).map(|((kind, _), it)| (*kind, it)).collect();
        // The order of objects matters for those that are rejected because all together are too large.
        let Some(mut without) = state_of(&objects) else {
            return;
        };
        let Some(with) = state_of(&[objects, vec![(Kind::Workload, admitted)]].concat()) else {
            return;
        };
        without.state_mut().apply_changes();
        let name = admitted["status"]["admission"]["clusterQueue"].as_str().unwrap_or_default();
        let before = usage(&without, name);
        for (of, after) in usage(&with, name) {
            let before = before.get(&of).copied().unwrap_or(Amount::ZERO);
            let added = after.minus(before);
            let queue = without.state().queue(name);
            let available = queue.map_or(Amount::ZERO, |it| without.state().node_view(it).available(of));
            assert!(added <= available || added <= Amount::ZERO, "{added:?} of {of:?} into {available:?}: {admitted}");
        }
    }
}

fn usage(cluster: &ClusterState, queue: &str) -> BTreeMap<FlavorResource, Amount> {
    let node = cluster.state().queue(queue);
    node.map(|it| cluster.state().node_view(it).usage().into_iter().collect()).unwrap_or_default()
}

/// The state of these objects; `None` if one of them is rejected.
fn state_of(objects: &[(Kind, &Value)]) -> Option<ClusterState> {
    let (options, requeue) = (Options::default(), RequeueSettings::default());
    let mut cluster = ClusterState::new(options, requeue, Completeness::Complete);
    for (kind, object) in objects {
        match kind {
            Kind::ClusterQueue => cluster.set_cluster_queue(Arc::new(decode::<ClusterQueue>(object)?)).ok()?,
            Kind::Cohort => cluster.set_cohort(&decode::<Cohort>(object)?).ok()?,
            Kind::LocalQueue => cluster.set_local_queue(&decode::<LocalQueue>(object)?),
            Kind::ResourceFlavor => cluster.set_resource_flavor(&decode::<ResourceFlavor>(object)?),
            Kind::PriorityClass => cluster.set_priority_class(&decode::<PriorityClass>(object)?),
            Kind::Namespace => {
                let metadata = decode::<Namespace>(object)?.metadata;
                cluster.set_namespace(&metadata.name?, metadata.labels.unwrap_or_default());
            }
            Kind::Workload => drop(cluster.set_workload(Arc::new(decode::<Workload>(object)?)).ok()?),
            // No node and no pod is watched here.
            Kind::Job(_)
            | Kind::JobKind
            | Kind::PodGroup
            | Kind::Node
            | Kind::BoundPod
            | Kind::DisruptionBudget
            | Kind::LimitRange
            | Kind::RuntimeClass => {}
        }
    }
    Some(cluster)
}

fn decode<T: DeserializeOwned>(object: &Value) -> Option<T> {
    T::deserialize(object).ok()
}

/// Whether the API server stores the object: a limit that the controller rejects keeps its last valid version there, which is not
/// what the oracle reads.
fn is_accepted(kind: Kind, object: &Value) -> bool {
    match kind {
        Kind::ClusterQueue | Kind::Cohort => state_of(&[(kind, object)]).is_some(),
        _ => true,
    }
}

fn set_all(before: Option<&Value>, object: &Value) -> Option<Value> {
    let mut after = object.clone();
    // A write of an object does not change its status.
    if object["kind"] == "Workload" {
        after["status"] = before.map(|it| it["status"].clone()).unwrap_or_default();
    }
    Some(after)
}

fn set_status(before: Option<&Value>, object: &Value) -> Option<Value> {
    let mut after = before.unwrap_or(object).clone();
    after["status"] = object["status"].clone();
    Some(after)
}

/// The kind and key of an object with a name.
fn identity(object: &Value) -> Option<(Kind, ObjectKey)> {
    let kind = match object["kind"].as_str()? {
        "ClusterQueue" => Kind::ClusterQueue,
        "Cohort" => Kind::Cohort,
        "LocalQueue" => Kind::LocalQueue,
        "ResourceFlavor" => Kind::ResourceFlavor,
        "PriorityClass" => Kind::PriorityClass,
        "Namespace" => Kind::Namespace,
        "Workload" => Kind::Workload,
        "Job" => Kind::Job(0),
        "JobSet" => Kind::Job(1),
        _ => return None,
    };
    let metadata = object.get("metadata")?;
    let name = metadata.get("name")?.as_str().filter(|it| !it.is_empty() && !it.contains('/'))?;
    let is_namespaced = matches!(kind, Kind::LocalQueue | Kind::Workload | Kind::Job(_));
    match metadata.get("namespace") {
        Some(namespace) if is_namespaced => {
            let namespace = namespace.as_str().filter(|it| !it.is_empty() && !it.contains('/'))?;
            Some((kind, ObjectKey::new(namespace, name)))
        }
        None if !is_namespaced => Some((kind, ObjectKey::new("", name))),
        _ => None,
    }
}

fn target(write: &WriteRequest) -> Option<(Kind, ObjectKey)> {
    Some(match &write.object {
        ObjectRef::Workload(key) => (Kind::Workload, key.clone()),
        // Its workload is the object that is created.
        ObjectRef::Job(_) if write.purpose == WritePurpose::CreateWorkload => match &write.op {
            WriteOp::Create(object) => identity(object)?,
            _ => return None,
        },
        ObjectRef::Job(job) => (Kind::Job(job.kind), job.name.clone()),
        ObjectRef::ClusterQueue(name) => (Kind::ClusterQueue, ObjectKey::new("", name)),
        ObjectRef::Cohort(name) => (Kind::Cohort, ObjectKey::new("", name)),
        ObjectRef::LocalQueue(key) => (Kind::LocalQueue, key.clone()),
        ObjectRef::ResourceFlavor(name) => (Kind::ResourceFlavor, ObjectKey::new("", name)),
        ObjectRef::JobKind(name) => (Kind::JobKind, ObjectKey::new("", name)),
        ObjectRef::Event(_) | ObjectRef::VictimPod(_) => return None,
    })
}

/// Jobs are watched by their label.
fn is_watched(kind: Kind, object: &Value) -> bool {
    !matches!(kind, Kind::Job(_)) || object["metadata"]["labels"].get("lockkeeper.dev/queue-name").is_some()
}

fn kinds() -> BTreeSet<Kind> {
    Kind::FIXED.into_iter().chain([Kind::Job(0), Kind::Job(1)]).collect()
}

fn settings() -> Settings {
    Settings {
        options: Options::default(),
        requeue: RequeueSettings {
            is_enabled: true,
            timeout: Duration::from_secs(60),
            ..RequeueSettings::default()
        },
        excluded_resource_prefixes: Vec::new(),
        rules: RuleSettings::default(),
        writes_max: 8,
        status_interval_ms: 1_000,
        pending_reason_writes_per_second: 100,
        eviction_events_per_second: 5,
        job_response_ms: 60_000,
        stuck_eviction_ms: 120_000,
        finished_retention_ms: None,
        has_decision_log: true,
        template_bytes_max: 1_000,
        job_kinds: vec![0, 1],
        has_pod_groups: false,
        has_job_kinds: false,
        seed: 1,
        instance: "fuzz".to_owned(),
    }
}

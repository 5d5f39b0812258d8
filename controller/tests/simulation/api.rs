//! An API server in memory: objects, their versions, and watch events.

use crate::api_validation;
use crate::declared_jobs::DeclaredJobs;
use crate::fields::{has, is_deleted, job_owner, list, number, object_key, text, time, uid};
use crate::pods::OrphanedPods;
use crate::queued_pods::{GRACE_MS, POD};
use lockkeeper_controller::{Kind, ObjectKey};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Kubernetes' finalizer of an object that waits for the deletion of its dependents.
const FOREGROUND: &str = "foregroundDeletion";

/// The error of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    NotFound,
    AlreadyExists,
    Conflict,
    Invalid(String),
}

/// A watch event.
#[derive(Clone)]
pub struct Event {
    pub name: ObjectKey,
    pub version: u64,
    /// The new version of the object; `None` if it was deleted.
    pub object: Option<Rc<Value>>,
}

#[derive(Clone, Default)]
pub struct Api {
    objects: BTreeMap<Kind, BTreeMap<ObjectKey, Rc<Value>>>,
    logs: BTreeMap<Kind, Vec<Event>>,
    version: u64,
    uids: u64,
    pub now_ms: i64,
    /// An owner may have been deleted: garbage collection is due.
    pub has_garbage: bool,
    /// By the uid of a Job.
    pub orphaned_pods: BTreeMap<String, OrphanedPods>,
    /// The kind that the controller knows Jobs by, if it is a declared one.
    pub declared: Option<DeclaredJobs>,
}

impl Api {
    pub fn new(now_ms: i64) -> Self {
        Self {
            now_ms,
            ..Self::default()
        }
    }

    pub fn get(&self, kind: Kind, name: &ObjectKey) -> Option<&Rc<Value>> {
        self.objects.get(&kind)?.get(name)
    }

    pub fn all(&self, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &Rc<Value>)> {
        self.objects.get(&kind).into_iter().flatten()
    }

    pub fn names(&self, kind: Kind) -> Vec<ObjectKey> {
        self.all(kind).map(|(name, _)| name.clone()).collect()
    }

    pub fn log(&self, kind: Kind) -> &[Event] {
        self.logs.get(&kind).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn create(&mut self, kind: Kind, mut object: Value) -> Result<u64, Error> {
        let name = object_key(&object);
        if self.get(kind, &name).is_some() {
            return Err(Error::AlreadyExists);
        }
        api_validation::apply_defaults(kind, &mut object);
        api_validation::validate(kind, self.declared.is_some(), None, &object)
            .map_err(Error::Invalid)?;
        self.uids += 1;
        let fields = object.as_object_mut().unwrap();
        fields.remove("status");
        let metadata = fields["metadata"].as_object_mut().unwrap();
        metadata.insert("uid".into(), json!(format!("uid-{}", self.uids)));
        metadata.insert("creationTimestamp".into(), json!(time(self.now_ms)));
        metadata.insert("generation".into(), json!(1));
        if job_owner(&object).is_some() {
            self.has_garbage = true;
        }
        Ok(self.put(kind, object))
    }

    /// A merge patch of an object, or of its status.
    pub fn patch(
        &mut self,
        kind: Kind,
        name: &ObjectKey,
        patch: &Value,
        is_status: bool,
    ) -> Result<u64, Error> {
        let before = Rc::clone(self.get(kind, name).ok_or(Error::NotFound)?);
        let expected = text(patch, "/metadata/resourceVersion");
        let version = text(&before, "/metadata/resourceVersion");
        if !expected.is_empty() && expected != version {
            return Err(Error::Conflict);
        }
        let mut after = (*before).clone();
        let parts = patch.as_object().unwrap().iter();
        for (part, changed) in parts.filter(|(part, _)| (*part == "status") == is_status) {
            if part == "metadata" {
                let mut changed = changed.clone();
                for fixed in ["resourceVersion", "uid", "generation", "deletionTimestamp"] {
                    changed.as_object_mut().unwrap().remove(fixed);
                }
                merge(&mut after["metadata"], &changed);
            } else {
                merge(&mut after[part.as_str()], changed);
            }
        }
        if after == *before {
            return Ok(version.parse().unwrap());
        }
        api_validation::apply_defaults(kind, &mut after);
        api_validation::validate(kind, self.declared.is_some(), Some(&before), &after)
            .map_err(Error::Invalid)?;
        if after.get("spec") != before.get("spec") {
            after["metadata"]["generation"] = json!(number(&before, "/metadata/generation") + 1);
        }
        if is_deleted(&after) && list(&after, "/metadata/finalizers").is_empty() {
            self.put(kind, after);
            self.has_garbage = true;
            return Ok(self.remove(kind, name));
        }
        Ok(self.put(kind, after))
    }

    /// A strategic merge patch of the conditions of a pod: those of other types stay.
    pub fn patch_conditions(
        &mut self,
        kind: Kind,
        name: &ObjectKey,
        patch: &Value,
    ) -> Result<u64, Error> {
        let before = self.get(kind, name).ok_or(Error::NotFound)?;
        if uid(patch) != uid(before) {
            return Err(Error::Conflict);
        }
        let changed = list(patch, "/status/conditions");
        let mut conditions = list(before, "/status/conditions").to_vec();
        conditions.retain(|it| !changed.iter().any(|new| new["type"] == it["type"]));
        conditions.extend(changed.iter().cloned());
        let patch = json!({"status": {"conditions": conditions}});
        self.patch(kind, name, &patch, true)
    }

    /// Deletes an object; one with finalizers is only marked.
    pub fn delete(
        &mut self,
        kind: Kind,
        name: &ObjectKey,
        of: Option<&str>,
        is_foreground: bool,
    ) -> Result<u64, Error> {
        let before = Rc::clone(self.get(kind, name).ok_or(Error::NotFound)?);
        if of.is_some_and(|of| of != uid(&before)) {
            return Err(Error::Conflict);
        }
        let mut finalizers = list(&before, "/metadata/finalizers").to_vec();
        if is_foreground && !finalizers.contains(&json!(FOREGROUND)) {
            finalizers.push(json!(FOREGROUND));
        }
        self.has_garbage = true;
        if finalizers.is_empty() {
            return Ok(self.remove(kind, name));
        }
        let mut after = (*before).clone();
        after["metadata"]["finalizers"] = json!(finalizers);
        if !has(&after, "/metadata/deletionTimestamp") {
            let grace_ms = if kind == POD { GRACE_MS } else { 0 };
            after["metadata"]["deletionTimestamp"] = json!(time(self.now_ms + grace_ms));
        }
        if after == *before {
            return Ok(number(&before, "/metadata/resourceVersion").unsigned_abs());
        }
        Ok(self.put(kind, after))
    }

    /// Deletes a Job and keeps its dependents: the garbage collector removes their owner references.
    pub fn delete_with_orphans(&mut self, name: &ObjectKey, pods: OrphanedPods) {
        let of = uid(self.get(Kind::Job(0), name).unwrap()).to_owned();
        let workloads = self.all(Kind::Workload);
        let dependents =
            workloads.filter(|(_, it)| job_owner(it).is_some_and(|(_, uid)| uid == of));
        let dependents: Vec<_> = dependents.map(|(name, _)| name.clone()).collect();
        for dependent in dependents {
            let patch = json!({"metadata": {"ownerReferences": null}});
            self.patch(Kind::Workload, &dependent, &patch, false)
                .unwrap();
        }
        self.orphaned_pods.insert(of, pods);
        self.remove(Kind::Job(0), name);
    }

    /// The Job or pod in the owner reference of a workload, if it exists.
    pub fn owner(&self, workload: &Value) -> Option<(Kind, &Rc<Value>)> {
        let (name, of) = job_owner(workload)?;
        let kind = match text(workload, "/metadata/ownerReferences/0/kind") {
            "Pod" => POD,
            _ => Kind::Job(0),
        };
        let name = ObjectKey::new(text(workload, "/metadata/namespace"), name);
        let owner = self.get(kind, &name).filter(|it| uid(it) == of);
        owner.map(|it| (kind, it))
    }

    /// Whether pods of a deleted Job run on.
    pub fn has_orphaned_pods(&self, uid: &str) -> bool {
        let pods = self.orphaned_pods.get(uid);
        pods.is_some_and(|it| it.milli_cpu > 0 && it.end_ms > self.now_ms)
    }

    /// Deletes one object with an owner that is deleted or being deleted, and returns it.
    pub fn collect_garbage(&mut self) -> Option<ObjectKey> {
        let mut lost = None;
        for (name, workload) in self.all(Kind::Workload) {
            if job_owner(workload).is_none() {
                continue;
            }
            // A pod that is being deleted keeps its dependents until it is gone.
            let owner = self.owner(workload);
            let is_kept = owner.is_some_and(|(kind, it)| kind == POD || !is_deleted(it));
            if !is_kept {
                lost = Some(name.clone());
            }
        }
        if let Some(name) = lost {
            self.delete(Kind::Workload, &name, None, false).unwrap();
            return Some(name);
        }
        let mut jobs = self.all(Kind::Job(0));
        let waits = |it: &Value| list(it, "/metadata/finalizers").contains(&json!(FOREGROUND));
        let gone = jobs.find(|(_, it)| is_deleted(it) && waits(it));
        let gone = gone.map(|(name, _)| name.clone());
        drop(jobs);
        if let Some(name) = gone {
            self.remove(Kind::Job(0), &name);
            return Some(name);
        }
        self.has_garbage = false;
        None
    }

    fn put(&mut self, kind: Kind, mut object: Value) -> u64 {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let name = object_key(&object);
        let object = Rc::new(object);
        let event = Event {
            name: name.clone(),
            version: self.version,
            object: Some(Rc::clone(&object)),
        };
        self.objects.entry(kind).or_default().insert(name, object);
        self.logs.entry(kind).or_default().push(event);
        self.version
    }

    fn remove(&mut self, kind: Kind, name: &ObjectKey) -> u64 {
        self.version += 1;
        self.objects.entry(kind).or_default().remove(name);
        let event = Event {
            name: name.clone(),
            version: self.version,
            object: None,
        };
        self.logs.entry(kind).or_default().push(event);
        self.version
    }
}

/// A merge patch (RFC 7386).
pub fn merge(into: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        into.clone_from(patch);
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let object = into.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            object.remove(key);
        } else {
            merge(object.entry(key.as_str()).or_insert(Value::Null), value);
        }
    }
}

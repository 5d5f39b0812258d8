//! Collects the objects of a world, in any order, and builds it.

use crate::error::UnreadableObject;
use crate::identity::{Identity, for_each_item, job_facts, qualified_name};
use crate::kueue_objects::from_kueue;
use crate::node_placement::NodeObjects;
use crate::project::Project;
use crate::references::missing_references;
use crate::template::{Templates, take_templates};
use crate::waiting_preemptors::mark_waiting_preemptors;
use crate::world::{JobFacts, JobKey, World};
use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::{ClusterQueue, Cohort, GROUP, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::pod_default_objects::{set_limit_range, set_runtime_class};
use lockkeeper_cluster_state::{ClusterState, Completeness, apply_reported_status, workload_key};
use lockkeeper_preemption::Options;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The uid of a submitted workload. It sorts behind all others, so that it is the last of its second.
const SUBMITTED_UID: &str = "submitted";

/// The settings of the scheduler whose decisions are explained.
#[derive(Clone, Debug, Default)]
pub struct WorldSettings {
    /// The options of all queues.
    pub options: Options,
    /// The requeueing of workloads whose pods are not ready.
    pub requeue: RequeueSettings,
    /// Resources whose names start with one of these need no quota.
    pub excluded_resource_prefixes: Vec<String>,
    /// The project; by default lockkeeper, or Kueue if only Kueue's objects were added.
    pub project: Option<Project>,
    /// The current time, in milliseconds since 1970; by default the newest time in the objects.
    pub now_ms: Option<i64>,
}

/// The objects of one project.
#[derive(Clone, Debug, Default)]
struct ProjectObjects {
    cluster_queues: Vec<ClusterQueue>,
    cohorts: Vec<Cohort>,
    flavors: Vec<ResourceFlavor>,
    local_queues: Vec<LocalQueue>,
    /// Shared, since the world and its cluster state have them.
    workloads: Vec<Arc<Workload>>,
    priority_classes: Vec<PriorityClass>,
}

impl ProjectObjects {
    fn merge(&mut self, other: Self) {
        self.cluster_queues.extend(other.cluster_queues);
        self.cohorts.extend(other.cohorts);
        self.flavors.extend(other.flavors);
        self.local_queues.extend(other.local_queues);
        self.workloads.extend(other.workloads);
        self.priority_classes.extend(other.priority_classes);
    }

    const fn is_empty(&self) -> bool {
        self.cluster_queues.is_empty() && self.local_queues.is_empty() && self.workloads.is_empty()
    }
}

/// Collects objects. Objects of other kinds are ignored, and those that cannot be decoded are reported.
#[derive(Clone, Debug, Default)]
pub struct WorldBuilder {
    lockkeeper: ProjectObjects,
    kueue: ProjectObjects,
    priority_classes: Vec<PriorityClass>,
    namespaces: Vec<Namespace>,
    limit_ranges: Vec<LimitRange>,
    runtime_classes: Vec<RuntimeClass>,
    node_objects: NodeObjects,
    jobs: BTreeMap<JobKey, JobFacts>,
    templates: Templates,
    not_modelled: BTreeMap<String, usize>,
    unreadable: Vec<UnreadableObject>,
    assumptions: Vec<String>,
    submitted: Option<Workload>,
    is_partial: bool,
}

impl WorldBuilder {
    /// Creates a builder without objects.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the objects of another builder behind those of this one, as if they were added here.
    pub fn merge(&mut self, other: Self) {
        self.lockkeeper.merge(other.lockkeeper);
        self.kueue.merge(other.kueue);
        self.priority_classes.extend(other.priority_classes);
        self.namespaces.extend(other.namespaces);
        self.limit_ranges.extend(other.limit_ranges);
        self.runtime_classes.extend(other.runtime_classes);
        self.node_objects.merge(other.node_objects);
        self.jobs.extend(other.jobs);
        for (field, count) in other.not_modelled {
            let known = self.not_modelled.entry(field).or_default();
            *known = known.saturating_add(count);
        }
        self.unreadable.extend(other.unreadable);
        self.assumptions.extend(other.assumptions);
        self.submitted = other.submitted.or_else(|| self.submitted.take());
        self.is_partial |= other.is_partial;
    }

    /// Adds an object, or each item of a list.
    pub fn add(&mut self, object: Value) {
        for_each_item(object, &mut |item| {
            let identity = Identity::of(&item);
            if let Err(reason) = self.add_object(item, &identity) {
                self.unreadable.push(UnreadableObject {
                    kind: identity.kind,
                    name: identity.name,
                    reason,
                });
            }
        });
    }

    fn add_object(&mut self, mut object: Value, identity: &Identity) -> Result<(), String> {
        match identity.group.as_str() {
            GROUP => {
                let templates = take_templates(&mut object);
                self.add_queue_object(object, templates, Project::Lockkeeper, &identity.kind)
            }
            kueue::GROUP => {
                if matches!(identity.kind.as_str(), "AdmissionCheck" | "Topology") {
                    return Ok(());
                }
                // First, since the conversion copies the object.
                let templates = take_templates(&mut object);
                let converted = from_kueue(object)?;
                for field in converted.not_modelled {
                    let count = self.not_modelled.entry(field).or_default();
                    *count = count.saturating_add(1);
                }
                self.add_queue_object(converted.object, templates, Project::Kueue, &identity.kind)
            }
            "scheduling.k8s.io" if identity.kind == "PriorityClass" => {
                self.priority_classes.push(decode(object)?);
                Ok(())
            }
            "" if identity.kind == "Namespace" => {
                self.namespaces.push(decode(object)?);
                Ok(())
            }
            "" if identity.kind == "LimitRange" => {
                self.limit_ranges.push(decode(object)?);
                Ok(())
            }
            "node.k8s.io" if identity.kind == "RuntimeClass" => {
                self.runtime_classes.push(decode(object)?);
                Ok(())
            }
            "" if identity.kind == "Node" => {
                self.node_objects.nodes.push(decode(object)?);
                Ok(())
            }
            "policy" if identity.kind == "PodDisruptionBudget" => {
                self.node_objects.budgets.push(decode(object)?);
                Ok(())
            }
            group => {
                if let Some((key, facts)) = job_facts(&object, identity) {
                    self.jobs.insert(key, facts);
                }
                if group.is_empty() && identity.kind == "Pod" && is_bound(&object) {
                    self.node_objects.pods.push(decode(object)?);
                }
                Ok(())
            }
        }
    }

    fn add_queue_object(
        &mut self,
        object: Value,
        templates: Vec<Value>,
        project: Project,
        kind: &str,
    ) -> Result<(), String> {
        let objects = self.objects_mut(project);
        match kind {
            "ClusterQueue" => objects.cluster_queues.push(decode(object)?),
            "Cohort" => objects.cohorts.push(decode(with_spec(object))?),
            "ResourceFlavor" => objects.flavors.push(decode(with_spec(object))?),
            "LocalQueue" => objects.local_queues.push(decode(object)?),
            "WorkloadPriorityClass" => objects.priority_classes.push(decode(object)?),
            "Workload" => {
                let mut workload: Workload = decode(object)?;
                self.templates.set(&mut workload, templates)?;
                self.objects_mut(project).workloads.push(Arc::new(workload));
            }
            _ => {}
        }
        Ok(())
    }

    /// Removes the queue, cohort, flavor or class with the kind and name of an object.
    pub fn remove(&mut self, object: &Value) {
        let identity = Identity::of(object);
        let is_other = |metadata: &ObjectMeta| qualified_name(metadata) != identity.name;
        let objects = match identity.group.as_str() {
            GROUP => &mut self.lockkeeper,
            kueue::GROUP => &mut self.kueue,
            _ => {
                if identity.kind == "PriorityClass" {
                    self.priority_classes.retain(|it| is_other(&it.metadata));
                }
                return;
            }
        };
        match identity.kind.as_str() {
            "ClusterQueue" => objects.cluster_queues.retain(|it| is_other(&it.metadata)),
            "Cohort" => objects.cohorts.retain(|it| is_other(&it.metadata)),
            "ResourceFlavor" => objects.flavors.retain(|it| is_other(&it.metadata)),
            "LocalQueue" => objects.local_queues.retain(|it| is_other(&it.metadata)),
            "WorkloadPriorityClass" => objects.priority_classes.retain(|it| is_other(&it.metadata)),
            _ => {}
        }
    }

    /// Replaces the queue, cohort, flavor or class with the kind and name of an object, or adds it.
    pub fn replace(&mut self, object: Value) {
        self.remove(&object);
        self.add(object);
    }

    /// Notes that queues or workloads are missing that may exist. Then answers come from the conditions of a workload, not
    /// from a decision.
    pub fn mark_partial(&mut self, why: impl Into<String>) {
        self.is_partial = true;
        self.assume(why);
    }

    /// Whether queues or workloads are missing that may exist.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Adds a Workload of lockkeeper that is submitted now, behind all others of its priority. One of the same name is
    /// replaced. Returns its key.
    ///
    /// # Errors
    ///
    /// The object is not a Workload.
    pub fn submit(&mut self, mut manifest: Value) -> Result<String, String> {
        let templates = take_templates(&mut manifest);
        let mut workload: Workload = decode(manifest)?;
        self.templates.set(&mut workload, templates)?;
        workload.status = None;
        let key = workload_key(&workload);
        self.submitted = Some(workload);
        Ok(key)
    }

    /// Adds an assumption about the input, which answers state.
    pub fn assume(&mut self, text: impl Into<String>) {
        self.assumptions.push(text.into());
    }

    const fn objects_mut(&mut self, project: Project) -> &mut ProjectObjects {
        match project {
            Project::Lockkeeper => &mut self.lockkeeper,
            Project::Kueue => &mut self.kueue,
        }
    }

    /// Whether there is a queue or a workload of a project.
    #[must_use]
    pub const fn has_objects_of(&self, project: Project) -> bool {
        match project {
            Project::Lockkeeper => !self.lockkeeper.is_empty(),
            Project::Kueue => !self.kueue.is_empty(),
        }
    }

    /// Builds the world.
    #[must_use]
    pub fn build(mut self, settings: WorldSettings) -> World {
        let project = self.project(settings.project);
        let mut objects = std::mem::take(self.objects_mut(project));
        let has_unknown_fields = !self.not_modelled.is_empty();
        self.assume_what_lacks(&objects);
        let now_ms = settings.now_ms.unwrap_or_else(|| {
            let newest = newest_time_ms(&objects.workloads);
            if newest.is_some() {
                self.assume("the current time is the newest time in the input");
            }
            newest.unwrap_or_default()
        });
        if let Some(submitted) = self.submitted.take() {
            add_submitted(submitted, now_ms, &mut objects.workloads);
        }
        // Otherwise each ClusterQueue with a missing flavor would admit nothing, and match no namespace.
        let is_complete = !self.namespaces.is_empty() && !objects.flavors.is_empty();
        let completeness = if is_complete {
            Completeness::Complete
        } else {
            Completeness::Partial
        };
        let cohorts = objects.cohorts.clone();
        let algorithm = settings.options.algorithm.clone();
        let mut cluster = ClusterState::new(settings.options, settings.requeue, completeness);
        cluster.exclude_resources(settings.excluded_resource_prefixes);
        cluster.set_now(now_ms);
        for limit_range in &self.limit_ranges {
            set_limit_range(&mut cluster, limit_range);
        }
        for class in &self.runtime_classes {
            set_runtime_class(&mut cluster, class);
        }
        let missing = missing_references(
            &objects.cluster_queues,
            &objects.flavors,
            &objects.local_queues,
            &objects.workloads,
        );
        let (classes, namespaces) = (&self.priority_classes, &self.namespaces);
        let workloads = fill(
            &mut cluster,
            objects,
            classes,
            namespaces,
            &mut self.unreadable,
        );
        for preemptor in mark_waiting_preemptors(&mut cluster, &workloads) {
            self.assume(format!(
                "{preemptor} comes first in its ClusterQueue until it is admitted, since it has preempted workloads"
            ));
        }
        let nodes = self.node_objects.placement_state(&cluster, &workloads);
        World {
            cluster,
            workloads,
            nodes,
            jobs: self.jobs,
            cohorts,
            algorithm,
            project,
            assumptions: self.assumptions,
            missing,
            unreadable: self.unreadable,
            is_partial: self.is_partial,
            has_unknown_fields,
        }
    }

    /// The project whose objects are explained.
    fn project(&mut self, wanted: Option<Project>) -> Project {
        let (has_lockkeeper, has_kueue) = (!self.lockkeeper.is_empty(), !self.kueue.is_empty());
        if has_lockkeeper && has_kueue && wanted.is_none() {
            self.assume("the input has queues of lockkeeper and of Kueue; those of lockkeeper are considered");
        }
        wanted.unwrap_or(if has_kueue && !has_lockkeeper {
            Project::Kueue
        } else {
            Project::Lockkeeper
        })
    }

    fn assume_what_lacks(&mut self, objects: &ProjectObjects) {
        if self.namespaces.is_empty() {
            self.assume(
                "the input has no Namespace: each namespace matches every namespaceSelector",
            );
        }
        if objects.flavors.is_empty() && !objects.cluster_queues.is_empty() {
            self.assume("the input has no ResourceFlavor: no flavor has taints or node labels");
        }
        if self.priority_classes.is_empty() && objects.priority_classes.is_empty() {
            self.assume("the input has no PriorityClass: only the priority in the status of a workload is known");
        }
        for (field, count) in std::mem::take(&mut self.not_modelled) {
            let objects = if count == 1 { "object" } else { "objects" };
            self.assume(format!("{field} is not considered ({count} {objects})"));
        }
    }
}

/// Adds a workload that is submitted now, in place of one with the same name.
fn add_submitted(mut submitted: Workload, now_ms: i64, workloads: &mut Vec<Arc<Workload>>) {
    let now = Timestamp::from_millisecond(now_ms);
    submitted.metadata.creation_timestamp = now.ok().map(Time);
    let uid = &mut submitted.metadata.uid;
    uid.get_or_insert_with(|| SUBMITTED_UID.to_owned());
    let key = workload_key(&submitted);
    workloads.retain(|it| workload_key(it) != key);
    workloads.push(Arc::new(submitted));
}

/// Adds all objects to the cluster state, and returns the workloads by key.
fn fill(
    cluster: &mut ClusterState,
    objects: ProjectObjects,
    priority_classes: &[PriorityClass],
    namespaces: &[Namespace],
    unreadable: &mut Vec<UnreadableObject>,
) -> BTreeMap<String, Arc<Workload>> {
    let mut report = |kind: &str, name: String, reason: String| {
        unreadable.push(UnreadableObject {
            kind: kind.to_owned(),
            name,
            reason,
        });
    };
    for class in priority_classes.iter().chain(&objects.priority_classes) {
        cluster.set_priority_class(class);
    }
    for namespace in namespaces {
        let labels = namespace.metadata.labels.clone().unwrap_or_default();
        cluster.set_namespace(
            namespace.metadata.name.as_deref().unwrap_or_default(),
            labels,
        );
    }
    for flavor in &objects.flavors {
        cluster.set_resource_flavor(flavor);
    }
    for cohort in &objects.cohorts {
        if let Err(error) = cluster.set_cohort(cohort) {
            report("Cohort", error.name.clone(), error.to_string());
        }
    }
    for queue in objects.cluster_queues {
        if let Err(error) = cluster.set_cluster_queue(Arc::new(queue)) {
            report("ClusterQueue", error.name.clone(), error.to_string());
        }
    }
    for queue in &objects.local_queues {
        cluster.set_local_queue(queue);
    }
    let mut workloads = BTreeMap::new();
    for workload in objects.workloads {
        let key = workload_key(&workload);
        if let Err(error) = cluster.set_workload(Arc::clone(&workload)) {
            report("Workload", key.clone(), error.to_string());
        }
        apply_reported_status(cluster, &workload);
        workloads.insert(key, workload);
    }
    workloads
}

/// The object with an empty spec if it has none: Kueue does not require one.
pub(crate) fn with_spec(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields
            .entry("spec")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    object
}

pub(crate) fn decode<T: DeserializeOwned>(object: Value) -> Result<T, String> {
    serde_json::from_value(object).map_err(|error| error.to_string())
}

/// Whether a pod is bound to a node.
fn is_bound(pod: &Value) -> bool {
    let node = pod.get("spec").and_then(|it| it.get("nodeName"));
    node.and_then(Value::as_str)
        .is_some_and(|it| !it.is_empty())
}

/// The newest time in the workloads, in milliseconds since 1970.
fn newest_time_ms(workloads: &[Arc<Workload>]) -> Option<i64> {
    let times = workloads.iter().flat_map(|it| {
        let created = it.metadata.creation_timestamp.iter();
        let conditions = it.status.iter().flat_map(|it| &it.conditions);
        created.chain(conditions.map(|it| &it.last_transition_time))
    });
    times.map(|it| it.0.as_millisecond()).max()
}

//! Rules between jobs and workloads and the queue that they are submitted to.
//!
//! They read the LocalQueue and the ClusterQueue as they are now. Both may change later, so all rules but that of
//! priority classes only warn; the controller decides when it admits.

pub(crate) mod disruption_mode_unused;
pub(crate) mod pods_of_other_priority;
pub(crate) mod priority_class_not_allowed;
pub(crate) mod request_too_large;
pub(crate) mod uncovered_resource;
pub(crate) mod unknown_class;
pub(crate) mod unknown_local_queue;

use crate::cluster_view::Lookup;
use crate::cohort_trees::{LocalQueueFacts, NodeFacts, NodeKind, Project};
use crate::rule::Context;
use crate::validated_kind::ValidatedKind;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::core::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels::{
    MIN_PARALLELISM, PREEMPTION_PRIORITY_CLASS, PRIORITY_CLASS, QUEUE_NAME,
};
use lockkeeper_api::{JobSet, Workload};

/// A kind that is submitted to a LocalQueue.
pub(crate) trait Submission: ValidatedKind {
    /// The name of the LocalQueue, possibly empty; `None` if it is submitted to none.
    fn queue_name(&self) -> Option<&str>;

    /// The path of the name of the LocalQueue.
    fn queue_path() -> FieldPath;

    /// The PriorityClasses for scheduling and for preemption, if set.
    fn classes(&self) -> [Option<&str>; 2];

    /// The path of each class.
    fn class_path(&self, position: usize) -> FieldPath;

    /// The sets of equal pods.
    fn pods(&self) -> Vec<Pods<'_>>;
}

/// Some pods of equal templates, which get the same flavor.
pub(crate) struct Pods<'a> {
    location: PodsLocation<'a>,
    /// The least number of pods that are admitted together.
    count: i32,
    spec: &'a PodSpec,
}

/// The part of the object that specifies the pods.
enum PodsLocation<'a> {
    /// The position and the name in `spec.podSets` of a Workload.
    PodSet(usize, &'a str),
    /// The template of a Job.
    Template,
    /// The object is the pod.
    Pod,
}

impl Pods<'_> {
    /// The path of the specification of the pods.
    fn path(&self) -> FieldPath {
        match self.location {
            PodsLocation::Template => FieldPath::new("spec.template.spec"),
            PodsLocation::Pod => FieldPath::new("spec"),
            PodsLocation::PodSet(position, name) => FieldPath::new("spec.podSets")
                .item(position, name)
                .field("template.spec"),
        }
    }
}

impl Submission for Workload {
    fn queue_name(&self) -> Option<&str> {
        self.spec.queue_name.as_deref()
    }

    fn queue_path() -> FieldPath {
        FieldPath::new("spec.queueName")
    }

    fn classes(&self) -> [Option<&str>; 2] {
        let spec = &self.spec;
        let scheduling = spec.priority_class_name.as_deref();
        // A preemption class of the same name was most likely set by the default: one finding is enough.
        let preemption = spec.preemption_priority_class_name.as_deref();
        [scheduling, preemption.filter(|it| Some(*it) != scheduling)]
    }

    fn class_path(&self, position: usize) -> FieldPath {
        FieldPath::new(match position {
            0 => "spec.priorityClassName",
            _ => "spec.preemptionPriorityClassName",
        })
    }

    fn pods(&self) -> Vec<Pods<'_>> {
        let pod_sets = self.spec.pod_sets.iter().enumerate();
        let pods = pod_sets.filter_map(|(position, it)| {
            Some(Pods {
                location: PodsLocation::PodSet(position, it.name()),
                count: it.min_count.or(it.count).unwrap_or(1),
                spec: it.template.spec.as_ref()?,
            })
        });
        pods.collect()
    }
}

impl Submission for Job {
    fn queue_name(&self) -> Option<&str> {
        label(&self.metadata, QUEUE_NAME)
    }

    fn queue_path() -> FieldPath {
        FieldPath::new("metadata.labels").key(QUEUE_NAME)
    }

    fn classes(&self) -> [Option<&str>; 2] {
        label_classes(&self.metadata)
    }

    fn class_path(&self, position: usize) -> FieldPath {
        label_class_path(position)
    }

    fn pods(&self) -> Vec<Pods<'_>> {
        let Some(spec) = &self.spec else {
            return Vec::new();
        };
        let annotations = self.metadata.annotations.as_ref();
        let least = annotations.and_then(|it| it.get(MIN_PARALLELISM)?.parse().ok());
        let parallelism = spec.parallelism.unwrap_or(1);
        let count = spec
            .completions
            .map_or(parallelism, |it| it.min(parallelism));
        let pods = spec.template.spec.as_ref().map(|spec| Pods {
            location: PodsLocation::Template,
            count: least.map_or(count, |least: i32| least.min(count)),
            spec,
        });
        pods.into_iter().collect()
    }
}

impl Submission for Pod {
    fn queue_name(&self) -> Option<&str> {
        label(&self.metadata, QUEUE_NAME)
    }

    fn queue_path() -> FieldPath {
        FieldPath::new("metadata.labels").key(QUEUE_NAME)
    }

    /// Without the label the class of the pod counts.
    fn classes(&self) -> [Option<&str>; 2] {
        let [scheduling, preemption] = label_classes(&self.metadata);
        let of_pod = self
            .spec
            .as_ref()
            .and_then(|it| it.priority_class_name.as_deref());
        [
            scheduling.or(of_pod.filter(|it| !it.is_empty())),
            preemption,
        ]
    }

    fn class_path(&self, position: usize) -> FieldPath {
        if position == 0 && label(&self.metadata, PRIORITY_CLASS).is_none_or(str::is_empty) {
            return FieldPath::new("spec.priorityClassName");
        }
        label_class_path(position)
    }

    fn pods(&self) -> Vec<Pods<'_>> {
        let pods = self.spec.as_ref().map(|spec| Pods {
            location: PodsLocation::Pod,
            count: 1,
            spec,
        });
        pods.into_iter().collect()
    }
}

impl Submission for JobSet {
    fn queue_name(&self) -> Option<&str> {
        label(&self.metadata, QUEUE_NAME)
    }

    fn queue_path() -> FieldPath {
        FieldPath::new("metadata.labels").key(QUEUE_NAME)
    }

    fn classes(&self) -> [Option<&str>; 2] {
        label_classes(&self.metadata)
    }

    fn class_path(&self, position: usize) -> FieldPath {
        label_class_path(position)
    }

    /// None: the type has only the metadata of templates. Rules see the pods in the Workload of the JobSet.
    fn pods(&self) -> Vec<Pods<'_>> {
        Vec::new()
    }
}

fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn label_classes(metadata: &ObjectMeta) -> [Option<&str>; 2] {
    let class = |key| label(metadata, key).filter(|it| !it.is_empty());
    let scheduling = class(PRIORITY_CLASS);
    let preemption = class(PREEMPTION_PRIORITY_CLASS);
    [scheduling, preemption.filter(|it| Some(*it) != scheduling)]
}

fn label_class_path(position: usize) -> FieldPath {
    FieldPath::new("metadata.labels").key(match position {
        0 => PRIORITY_CLASS,
        _ => PREEMPTION_PRIORITY_CLASS,
    })
}

/// The queues of a submission, as far as known.
struct Queues<'a> {
    /// The name of the LocalQueue.
    local_queue: &'a str,
    local_queue_facts: &'a LocalQueueFacts,
    cluster_queue_facts: &'a NodeFacts,
}

impl Queues<'_> {
    /// The name of the ClusterQueue.
    fn cluster_queue(&self) -> &str {
        &self.local_queue_facts.cluster_queue
    }
}

/// The LocalQueue that a submission names.
fn local_queue<'a, T: Submission>(
    object: &'a T,
    context: &Context<'a>,
) -> Option<(&'a str, Lookup<&'a LocalQueueFacts>)> {
    let name = object.queue_name()?;
    let namespace = object.meta().namespace.as_deref().unwrap_or_default();
    Some((name, context.cluster.local_queue(namespace, name)))
}

/// The queues of a submission; `None` if one of them is not known.
fn queues<'a, T: Submission>(object: &'a T, context: &Context<'a>) -> Option<Queues<'a>> {
    let (name, facts) = local_queue(object, context)?;
    let facts = facts.found()?;
    let tree = context.cluster.tree(Project::Lockkeeper);
    Some(Queues {
        local_queue: name,
        local_queue_facts: facts,
        cluster_queue_facts: tree.node(NodeKind::Queue, &facts.cluster_queue)?,
    })
}

//! Extracts the facts of decoded objects.

use crate::cluster_view::{
    ObjectName, PodPreemptionLabels, PodPriority, PreemptibleLabel, PreemptionPolicy,
    PriorityClassFacts, QuotaFacts, TemplatesFacts,
};
use crate::cohort_trees::{LocalQueueFacts, Project};
use crate::index::Facts;
use crate::quota::QuotaFields;
use crate::resource_flavor::FlavorFields;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;
use lockkeeper_api::foreign::koordinator::{self, ElasticQuota};
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::foreign::scheduling::{self, v1beta1};
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, labels};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The namespace and name in an object's metadata.
#[must_use]
pub fn object_name(metadata: &ObjectMeta) -> ObjectName {
    ObjectName {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}

/// The name of a cluster-scoped object. A namespace in a file is ignored.
pub(super) fn cluster_scoped_name(metadata: &ObjectMeta) -> ObjectName {
    ObjectName {
        namespace: String::new(),
        ..object_name(metadata)
    }
}

/// The facts of a PriorityClass.
#[must_use]
pub fn priority_class_facts(class: &PriorityClass) -> PriorityClassFacts {
    PriorityClassFacts {
        value: class.value.unwrap_or_default(),
        global_default: class.global_default == Some(true),
        preemption_policy: class
            .preemption_policy
            .as_deref()
            .and_then(PreemptionPolicy::parse),
    }
}

/// The facts of a Workload with these classes. A finished one uses none.
#[must_use]
pub fn workload_facts(classes: [Option<&str>; 2], finished: bool) -> Facts {
    let named = classes.into_iter().flatten().map(str::to_owned);
    Facts::Workload {
        classes: if finished {
            BTreeSet::new()
        } else {
            named.collect()
        },
    }
}

/// Whether the condition `Finished` of a Workload is true.
#[must_use]
pub fn is_finished(conditions: &[Condition]) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|condition| condition.type_ == "Finished" && condition.status == "True")
}

/// The facts of a pod from its labels alone; `None` without a job label and a quota label.
#[must_use]
pub fn partial_pod_facts(own: Option<&BTreeMap<String, String>>) -> Option<Facts> {
    let job = own?.get(labels::JOB).cloned();
    let quota = own?.get(koordinator::QUOTA_NAME).cloned();
    if job.is_none() && quota.is_none() {
        return None;
    }
    // The metadata of a pod lack its priority, so no rule compares it.
    let labels = preemption_labels(own, PodPriority::Unknown);
    Some(Facts::Pod { job, quota, labels })
}

/// The facts of a complete pod.
#[must_use]
pub fn pod_facts(pod: &Pod) -> Facts {
    let own = pod.metadata.labels.as_ref();
    let value = |key: &str| own.and_then(|own| own.get(key)).cloned();
    Facts::Pod {
        job: value(labels::JOB),
        quota: value(koordinator::QUOTA_NAME),
        labels: pod_preemption_labels(pod),
    }
}

/// The settings of a pod that all pods of its job should share.
#[must_use]
pub fn pod_preemption_labels(pod: &Pod) -> PodPreemptionLabels {
    let spec = pod.spec.as_ref();
    let class = spec.and_then(|spec| spec.priority_class_name.clone());
    let class = class.filter(|name| !name.is_empty());
    let priority = match (spec.and_then(|spec| spec.priority), class) {
        // Admission has set the priority: the class may have another value by now.
        (Some(value), _) => PodPriority::Value(value),
        (None, Some(name)) => PodPriority::Class(name),
        (None, None) => PodPriority::Unset,
    };
    preemption_labels(pod.metadata.labels.as_ref(), priority)
}

fn preemption_labels(
    own: Option<&BTreeMap<String, String>>,
    priority: PodPriority,
) -> PodPreemptionLabels {
    let value = |key: &str| own.and_then(|own| own.get(key)).map(String::as_str);
    PodPreemptionLabels {
        preemptible: PreemptibleLabel::parse(value(labels::PREEMPTIBLE)),
        can_preempt: value(labels::CAN_PREEMPT) != Some("false"),
        priority,
    }
}

/// The facts of an ElasticQuota.
#[must_use]
pub fn elastic_quota_facts(quota: &ElasticQuota) -> Facts {
    Facts::ElasticQuota(Box::new(QuotaFacts {
        parent: quota.parent().to_owned(),
        is_parent: quota.is_parent(),
        tree_id: quota.label(koordinator::TREE_ID).to_owned(),
        min: quota.spec.min.clone().unwrap_or_default(),
        max: quota.spec.max.clone().unwrap_or_default(),
        guaranteed: quota.guaranteed(),
        namespaces: quota.namespaces().into_iter().collect(),
    }))
}

/// The facts of a Workload of Kubernetes.
#[must_use]
pub fn template_facts(workload: &scheduling::Workload) -> TemplatesFacts {
    let templates = workload.spec.pod_group_templates.iter();
    TemplatesFacts {
        templates: templates.map(|template| template.name.clone()).collect(),
        deleting: workload.metadata.deletion_timestamp.is_some(),
    }
}

/// The facts of a `v1beta1` Workload of Kubernetes.
#[must_use]
pub fn template_facts_v1beta1(workload: &v1beta1::Workload) -> TemplatesFacts {
    TemplatesFacts {
        templates: template_names(&workload.spec.templates),
        deleting: workload.metadata.deletion_timestamp.is_some(),
    }
}

/// The names of the templates of PodGroups, at any depth.
fn template_names(templates: &v1beta1::Templates) -> BTreeSet<String> {
    let own = templates.pod_group_templates.iter();
    let mut names: BTreeSet<String> = own.map(|it| it.name.clone()).collect();
    for below in &templates.composite_pod_group_templates {
        names.extend(template_names(&below.templates));
    }
    names
}

/// The facts of a ClusterQueue of lockkeeper.
#[must_use]
pub fn cluster_queue_facts(queue: &ClusterQueue) -> Facts {
    Facts::ClusterQueue(Project::Lockkeeper, Arc::new(QuotaFields::facts(queue)))
}

/// The facts of a Cohort of lockkeeper.
#[must_use]
pub fn cohort_facts(cohort: &Cohort) -> Facts {
    Facts::Cohort(Project::Lockkeeper, Arc::new(QuotaFields::facts(cohort)))
}

/// The facts of a ResourceFlavor of lockkeeper.
#[must_use]
pub fn flavor_facts(flavor: &ResourceFlavor) -> Facts {
    Facts::ResourceFlavor(Project::Lockkeeper, FlavorFields::facts(flavor))
}

/// The facts of a LocalQueue of lockkeeper.
#[must_use]
pub fn local_queue_facts(queue: &LocalQueue) -> Facts {
    Facts::LocalQueue(Project::Lockkeeper, own_local_queue_facts(queue))
}

/// The facts of a LocalQueue of lockkeeper, as a lookup returns them.
#[must_use]
pub fn own_local_queue_facts(queue: &LocalQueue) -> LocalQueueFacts {
    LocalQueueFacts {
        cluster_queue: queue.spec.cluster_queue.clone(),
        allowed_priority_classes: queue.spec.allowed_priority_classes.clone(),
    }
}

/// The facts of a ClusterQueue of Kueue.
#[must_use]
pub fn kueue_cluster_queue_facts(queue: &kueue::ClusterQueue) -> Facts {
    Facts::ClusterQueue(Project::Kueue, Arc::new(QuotaFields::facts(queue)))
}

/// The facts of a Cohort of Kueue.
#[must_use]
pub fn kueue_cohort_facts(cohort: &kueue::Cohort) -> Facts {
    Facts::Cohort(Project::Kueue, Arc::new(QuotaFields::facts(cohort)))
}

/// The facts of a ResourceFlavor of Kueue.
#[must_use]
pub fn kueue_flavor_facts(flavor: &kueue::ResourceFlavor) -> Facts {
    Facts::ResourceFlavor(Project::Kueue, FlavorFields::facts(flavor))
}

/// The facts of a LocalQueue of Kueue.
#[must_use]
pub fn kueue_local_queue_facts(queue: &kueue::LocalQueue) -> Facts {
    let facts = LocalQueueFacts {
        cluster_queue: queue.spec.cluster_queue.clone(),
        allowed_priority_classes: None,
    };
    Facts::LocalQueue(Project::Kueue, facts)
}

/// The facts of a `WorkloadPriorityClass` of Kueue.
#[must_use]
pub fn workload_priority_class_facts(class: &kueue::WorkloadPriorityClass) -> Facts {
    Facts::WorkloadPriorityClass(class.value)
}

//! Rules for labels and annotations. They apply to every kind with lockkeeper's keys, in its own metadata and in
//! the metadata of its templates.

mod known_keys;
pub(crate) mod misplaced_key;
pub(crate) mod misspelt_key;
pub(crate) mod unparsable_label_value;

use crate::pod_sets::PodSets;
use crate::validated_kind::ValidatedKind;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::core::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::ElasticQuota;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::job_set::TemplateMetadata;
use lockkeeper_api::{JobSet, Workload};
use std::collections::BTreeMap;

/// A kind whose objects or templates are configured by labels and annotations.
pub(crate) trait HasLabelledMetadata: ValidatedKind {
    /// Visits the metadata of the object and of its templates, in the order of the object.
    fn each_metadata(&self, visit: &mut dyn FnMut(MetadataOwner<'_>, MetadataMaps<'_>));
}

/// The object or template that the metadata belong to.
#[derive(Clone, Copy)]
pub(crate) enum MetadataOwner<'a> {
    /// The object itself.
    Object,
    /// The pod template of a Job.
    Template,
    /// The pod template of a pod set, by position and name.
    PodSet(usize, &'a str),
    /// The Job template of a replicated job of a JobSet, by position and name.
    Jobs(usize, &'a str),
    /// The pod template in the Job template of a replicated job, by position and name.
    PodsOfJobs(usize, &'a str),
}

impl MetadataOwner<'_> {
    /// The path of the metadata. Paths are built only for findings.
    fn path(self) -> FieldPath {
        let jobs = |position, name| FieldPath::new("spec.replicatedJobs").item(position, name);
        match self {
            Self::Object => FieldPath::new("metadata"),
            Self::Template => FieldPath::new("spec.template.metadata"),
            Self::PodSet(position, name) => FieldPath::new("spec.podSets")
                .item(position, name)
                .field("template.metadata"),
            Self::Jobs(position, name) => jobs(position, name).field("template.metadata"),
            Self::PodsOfJobs(position, name) => {
                jobs(position, name).field("template.spec.template.metadata")
            }
        }
    }
}

type Map<'a> = Option<&'a BTreeMap<String, String>>;

/// The labels and annotations of one object or template.
#[derive(Clone, Copy)]
pub(crate) struct MetadataMaps<'a> {
    labels: Map<'a>,
    annotations: Map<'a>,
}

impl<'a> MetadataMaps<'a> {
    /// Each of the two maps with its field name, and the other map.
    fn with_counterparts(self) -> [(&'static str, Map<'a>, Map<'a>); 2] {
        [
            ("labels", self.labels, self.annotations),
            ("annotations", self.annotations, self.labels),
        ]
    }
}

impl<'a> From<&'a ObjectMeta> for MetadataMaps<'a> {
    fn from(metadata: &'a ObjectMeta) -> Self {
        Self {
            labels: metadata.labels.as_ref(),
            annotations: metadata.annotations.as_ref(),
        }
    }
}

impl<'a> From<&'a TemplateMetadata> for MetadataMaps<'a> {
    fn from(metadata: &'a TemplateMetadata) -> Self {
        Self {
            labels: metadata.labels.as_ref(),
            annotations: metadata.annotations.as_ref(),
        }
    }
}

type Visit<'v> = dyn FnMut(MetadataOwner<'_>, MetadataMaps<'_>) + 'v;

fn template(holder: MetadataOwner<'_>, template: &PodTemplateSpec, visit: &mut Visit<'_>) {
    if let Some(metadata) = &template.metadata {
        visit(holder, metadata.into());
    }
}

fn pod_sets<T: PodSets>(object: &T, visit: &mut Visit<'_>) {
    visit(MetadataOwner::Object, object.meta().into());
    for pod_set in object.pod_sets() {
        let holder = MetadataOwner::PodSet(pod_set.position, pod_set.name);
        template(holder, pod_set.template, visit);
    }
}

impl HasLabelledMetadata for Workload {
    fn each_metadata(&self, visit: &mut Visit<'_>) {
        pod_sets(self, visit);
    }
}

impl HasLabelledMetadata for kueue::Workload {
    fn each_metadata(&self, visit: &mut Visit<'_>) {
        pod_sets(self, visit);
    }
}

impl HasLabelledMetadata for Pod {
    fn each_metadata(&self, visit: &mut Visit<'_>) {
        visit(MetadataOwner::Object, (&self.metadata).into());
    }
}

impl HasLabelledMetadata for ElasticQuota {
    fn each_metadata(&self, visit: &mut Visit<'_>) {
        visit(MetadataOwner::Object, (&self.metadata).into());
    }
}

impl HasLabelledMetadata for Job {
    fn each_metadata(&self, visit: &mut Visit<'_>) {
        visit(MetadataOwner::Object, (&self.metadata).into());
        if let Some(spec) = &self.spec {
            template(MetadataOwner::Template, &spec.template, visit);
        }
    }
}

impl HasLabelledMetadata for JobSet {
    fn each_metadata(&self, visit: &mut Visit<'_>) {
        visit(MetadataOwner::Object, (&self.metadata).into());
        let jobs = self.spec.iter().flat_map(|spec| &spec.replicated_jobs);
        for (position, job) in jobs.flatten().enumerate() {
            let name = job.name.as_deref().unwrap_or_default();
            let Some(template) = &job.template else {
                continue;
            };
            if let Some(metadata) = &template.metadata {
                visit(MetadataOwner::Jobs(position, name), metadata.into());
            }
            let pods = template.spec.as_ref().and_then(|it| it.template.as_ref());
            if let Some(metadata) = pods.and_then(|it| it.metadata.as_ref()) {
                visit(MetadataOwner::PodsOfJobs(position, name), metadata.into());
            }
        }
    }
}

#[cfg(test)]
mod tests;

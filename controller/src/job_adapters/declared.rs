//! Jobs of a kind that a `JobKind` declares.

use super::{
    DeclaredFields, JobAdapter, JobParseError, JobResult, JobView, PodPlacement, PodSetView,
    Resource, TemplateSource, decode, job_view_from_metadata, parse_source, pod_template_patch,
    strip_template,
};
use crate::key::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::job_kind::PodLabelValue;
use lockkeeper_job_kinds::{DeclaredKind, DeclaredPodSet, PodSetWrite, PodTemplateSource};
use serde_json::Value;
use std::sync::Arc;

/// The jobs of a declared kind.
#[derive(Debug)]
pub(super) struct DeclaredJobs {
    kind: DeclaredKind,
    prefix: Arc<str>,
    /// API group and kind of the jobs that its controller creates, by index.
    children: Vec<(Arc<str>, Arc<str>)>,
}

impl DeclaredJobs {
    pub(super) fn new(kind: DeclaredKind) -> Self {
        let prefix = kind.kind.to_lowercase().into();
        let children = kind.children.iter();
        let children = children
            .map(|it| (it.group.as_str().into(), it.kind.as_str().into()))
            .collect();
        Self {
            kind,
            prefix,
            children,
        }
    }

    pub(super) fn is_kind(&self, group: &str, kind: &str) -> bool {
        self.kind.group == group && self.kind.kind == kind
    }

    pub(super) fn is_same_kind(&self, other: &Self) -> bool {
        self.is_kind(&other.kind.group, &other.kind.kind)
    }

    pub(super) fn kind_name(&self) -> &str {
        &self.kind.kind
    }

    /// The start of the names of the workloads.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl JobAdapter for DeclaredJobs {
    fn resource(&self) -> Resource {
        Resource {
            group: self.kind.group.clone().into(),
            version: self.kind.version.clone().into(),
            kind: self.kind.kind.clone().into(),
            plural: self.kind.plural.clone().into(),
        }
    }

    fn is_built_in(&self) -> bool {
        false
    }

    fn pod_selector(&self, name: Option<&ObjectKey>, uid: &str) -> Option<String> {
        let label = self.kind.pod_label.as_ref()?;
        let value = match label.value {
            PodLabelValue::Uid => uid,
            PodLabelValue::Name => name?.name(),
        };
        Some(format!("{}={value}", label.key))
    }

    fn suspend_patch(&self) -> Value {
        self.kind.suspend_patch()
    }

    fn start_patch(&self, _: &JobView) -> Value {
        self.kind.start_patch()
    }

    fn creates_jobs(&self) -> bool {
        !self.children.is_empty()
    }

    /// Each name is that of one object, which the controller of the kind creates.
    fn covers(&self, parent: &JobView, child_kind: &Resource, child: &JobView) -> bool {
        let children = parent.declared.as_ref().map(|it| it.children.as_slice());
        children
            .unwrap_or_default()
            .iter()
            .any(|(group, kind, name)| {
                **group == *child_kind.group
                    && **kind == *child_kind.kind
                    && name == child.name.name()
            })
    }

    fn parse(&self, object: Value) -> Result<JobView, JobParseError> {
        let job = self.kind.read(&object).map_err(|error| JobParseError {
            field: "JobKind",
            problem: error.to_string(),
        })?;
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let metadata: ObjectMeta = decode("metadata", metadata)?;
        let pod_sets = job.pod_sets.into_iter().map(pod_set);
        let pod_sets = pod_sets.collect::<Result<_, _>>()?;
        let children = job.children.into_iter().filter_map(|(index, name)| {
            let (group, kind) = self.children.get(index)?;
            Some((Arc::clone(group), Arc::clone(kind), name))
        });
        let result = job.result.map(|it| JobResult {
            is_success: it.is_success,
            message: it.message,
        });
        let template_source = if result.is_none() {
            TemplateSource::from_json(Some(&job.templates.into_json()))
        } else {
            TemplateSource::NotKept
        };
        let of_metadata = job_view_from_metadata(&metadata);
        Ok(JobView {
            priority_class: of_metadata.priority_class.clone().or(job.priority_class),
            is_suspended: job.is_suspended,
            is_start_unconfirmed: !job.is_suspended && !job.is_started,
            foreign_manager: job.foreign_manager,
            is_quiescent: job.is_stopped,
            is_ready: job.is_ready,
            pod_sets,
            template_source,
            result,
            declared: Some(Box::new(DeclaredFields {
                kind: Arc::clone(&self.prefix),
                children: children.collect(),
            })),
            ..of_metadata
        })
    }

    fn templates(&self, source: &str) -> Vec<Value> {
        let source = PodTemplateSource::from_json(parse_source(source));
        self.kind.templates(&source)
    }

    fn needs_templates_for_placement(&self) -> bool {
        true
    }

    fn placement_patch(
        &self,
        job: &JobView,
        source: Option<&str>,
        placed: &[PodPlacement],
    ) -> Option<Value> {
        let source = PodTemplateSource::from_json(parse_source(source?));
        let patches = job.pod_sets.iter().zip(placed);
        let writes: Vec<PodSetWrite> = patches
            .map(|(have, want)| PodSetWrite {
                pod_spec: pod_template_patch(have, want),
                count: want.count.filter(|it| *it != have.count),
            })
            .collect();
        self.kind.placement_patch(&source, &writes)
    }
}

fn pod_set(of: DeclaredPodSet) -> Result<PodSetView, JobParseError> {
    let template = decode("pod template", of.template)?;
    Ok(PodSetView {
        name: of.name,
        count: of.count,
        remaining: of.count.saturating_sub(of.reclaimable),
        job_count: 0,
        min_count: of.minimum,
        template: Arc::new(strip_template(template)),
    })
}

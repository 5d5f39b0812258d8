//! A compiled declaration.

use crate::compile::{Errors, compile_children, compile_pod_sets, compile_resets, suspension};
use crate::compile_error::CompileError;
use crate::expressions::{SELF, StatusExpression};
use crate::job_path::JobPath;
use crate::parts::{ChildKind, PodSets, Reset, Suspension};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::job_kind::{JobKind, JobStatusExpressions, PodLabel};
use lockkeeper_crd_schema::crd::ObjectExpression;
use serde_json::Value;

/// A compiled declaration.
#[derive(Debug)]
pub struct DeclaredKind {
    /// The API group.
    pub group: String,
    /// The version in which jobs are read and written.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name of the resource, as in a URL.
    pub plural: String,
    /// The label of the pods of a job.
    pub pod_label: Option<PodLabel>,
    /// The jobs that the controller of the kind creates.
    pub children: Vec<ChildKind>,
    pub(crate) suspension: Suspension,
    /// The path of the field that names the controller, and the name of the controller of the kind.
    pub(crate) managed_by: Option<(JobPath, String)>,
    /// The pods of a job.
    pub pod_sets: Vec<PodSets>,
    pub(crate) resets: Vec<Reset>,
    pub(crate) priority_class: Option<ObjectExpression>,
    /// In the order of [`StatusExpression::ALL`].
    pub(crate) status: [ObjectExpression; 6],
}

impl DeclaredKind {
    /// Compiles a declaration. The cost is linear in its size.
    ///
    /// # Errors
    ///
    /// All mistakes that the declaration alone shows, in the order of its fields.
    pub fn compile(declaration: &JobKind) -> Result<Self, Vec<CompileError>> {
        let spec = &declaration.spec;
        let mut errors = Errors::default();
        let name = declaration.metadata.name.as_deref().unwrap_or_default();
        let resource = name.split_once('.');
        if resource.is_none() {
            let problem =
                "must be <plural>.<group>, the name of the CustomResourceDefinition of the kind";
            errors.add(FieldPath::new("metadata.name"), problem);
        }
        let suspension = suspension(spec.suspend.as_ref(), &mut errors);
        let managed_by = spec.managed_by.as_ref().and_then(|it| {
            let path = errors.path(FieldPath::new("spec.managedBy.path"), &it.path, true)?;
            Some((path, it.controller.clone()))
        });
        let at = |index| FieldPath::new("spec.podSets").index(index);
        let pod_sets = spec.pod_sets.iter().enumerate();
        let pod_sets: Vec<Option<PodSets>> = pod_sets
            .map(|(index, it)| compile_pod_sets(it, &at(index), &mut errors))
            .collect();
        if spec.pod_sets.is_empty() {
            errors.add(FieldPath::new("spec.podSets"), "needs at least one pod set");
        }
        let status = spec.status.clone().unwrap_or_default();
        let status = StatusExpression::ALL.map(|it| {
            let text = status_text(&status, it).unwrap_or(it.default_text());
            errors.expression(FieldPath::new(it.field()), text, &[SELF])
        });
        let class = spec.priority_class.as_deref();
        let priority_class = class.map(|text| {
            let at = FieldPath::new("spec.priorityClass");
            errors.expression(at, text, &[SELF])
        });
        let written = suspension.iter().map(|it| &it.path);
        let written = written.chain(pod_sets.iter().flatten().flat_map(PodSets::roots));
        let resets = compile_resets(
            &spec.reset_on_stop,
            &written.collect::<Vec<_>>(),
            &mut errors,
        );
        let children = spec.children.iter().enumerate();
        let children: Vec<Option<ChildKind>> = children
            .map(|(index, it)| compile_children(it, index, &mut errors))
            .collect();
        let compiled = (|| {
            let (plural, group) = resource?;
            let [succeeded, failed, message, ready, stopped, started] = status;
            Some(Self {
                group: group.to_owned(),
                version: spec.version.clone(),
                kind: spec.kind.clone(),
                plural: plural.to_owned(),
                pod_label: spec.pod_label.clone(),
                children: children.into_iter().collect::<Option<_>>()?,
                suspension: suspension?,
                managed_by,
                pod_sets: pod_sets.into_iter().collect::<Option<_>>()?,
                resets,
                priority_class: priority_class.map_or(Some(None), |it| it.map(Some))?,
                status: [succeeded?, failed?, message?, ready?, stopped?, started?],
            })
        })();
        let errors = errors.into_inner();
        match compiled {
            Some(kind) if errors.is_empty() => Ok(kind),
            _ => Err(errors),
        }
    }

    /// The path of the field that suspends a job, its value in a suspended job, and in a started one.
    #[must_use]
    pub const fn suspend_field(&self) -> (&JobPath, &Value, &Value) {
        let of = &self.suspension;
        (&of.path, &of.suspended, &of.started)
    }

    pub(crate) fn status(&self, of: StatusExpression) -> &ObjectExpression {
        let [succeeded, failed, message, ready, stopped, started] = &self.status;
        match of {
            StatusExpression::Succeeded => succeeded,
            StatusExpression::Failed => failed,
            StatusExpression::Message => message,
            StatusExpression::Ready => ready,
            StatusExpression::Stopped => stopped,
            StatusExpression::Started => started,
        }
    }
}

/// The expression that a declaration has for a part of the status.
pub(crate) fn status_text(status: &JobStatusExpressions, of: StatusExpression) -> Option<&str> {
    let text = match of {
        StatusExpression::Succeeded => &status.succeeded,
        StatusExpression::Failed => &status.failed,
        StatusExpression::Message => &status.message,
        StatusExpression::Ready => &status.ready,
        StatusExpression::Stopped => &status.stopped,
        StatusExpression::Started => &status.started,
    };
    text.as_deref()
}

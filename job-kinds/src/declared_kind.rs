//! A compiled declaration.

use crate::expressions::{ITEM, KEY, SELF, StatusExpression, compile};
use crate::job_path::{JobPath, JobPathError};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::job_kind::{
    ChildJobs, JobKind, JobStatusExpressions, PodLabel, PodSetSource, SUSPEND_PATH_DEFAULT,
    SuspendField,
};
use lockkeeper_crd_schema::crd::ObjectExpression;
use serde_json::Value;

/// A mistake in a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The field of the declaration.
    pub field: FieldPath,
    /// The problem, and how to correct it.
    pub problem: String,
}

/// Jobs that the controller of the kind creates.
#[derive(Debug)]
pub struct ChildKind {
    /// Their API group.
    pub group: String,
    /// Their kind.
    pub kind: String,
    pub(crate) names: ObjectExpression,
}

/// The field that suspends a job.
#[derive(Debug)]
pub(crate) struct Suspension {
    pub(crate) path: JobPath,
    pub(crate) suspended: Value,
    pub(crate) started: Value,
}

/// The pods of a template, or of each template in a list or map.
#[derive(Debug)]
pub(crate) struct PodSets {
    pub(crate) for_each: Option<JobPath>,
    pub(crate) name: PodSetName,
    pub(crate) condition: Option<ObjectExpression>,
    pub(crate) pods: PodsField,
    pub(crate) count: Option<ObjectExpression>,
    pub(crate) reclaimable: Option<ObjectExpression>,
}

/// The field of a job that describes pods; its path starts at the root, or with `forEach` at the item.
#[derive(Debug)]
pub(crate) struct PodsField {
    pub(crate) path: JobPath,
    /// The requests by resource, if the field is no pod template.
    pub(crate) requests: Option<Vec<(String, ObjectExpression)>>,
}

impl PodsField {
    /// The patch of the root or the item that applies a merge patch to the spec of the pods.
    pub(crate) fn patch(&self, pod_spec: &Value) -> Value {
        self.path.wrap(match self.requests {
            None => serde_json::json!({"spec": pod_spec}),
            Some(_) => pod_spec.clone(),
        })
    }
}

/// The name of a pod set.
#[derive(Debug)]
pub(crate) enum PodSetName {
    Fixed(String),
    Expression(ObjectExpression),
    /// The key in a map, or `name` of the item of a list.
    OfItem,
}

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
    pub(crate) pod_sets: Vec<PodSets>,
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
                status: [succeeded?, failed?, message?, ready?, stopped?, started?],
            })
        })();
        match compiled {
            Some(kind) if errors.0.is_empty() => Ok(kind),
            _ => Err(errors.0),
        }
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

/// The mistakes found so far.
#[derive(Default)]
struct Errors(Vec<CompileError>);

impl Errors {
    fn add(&mut self, field: FieldPath, problem: impl Into<String>) {
        let problem = problem.into();
        self.0.push(CompileError { field, problem });
    }

    /// Parses a path; one that is written must be below `spec`.
    fn path(&mut self, field: FieldPath, text: &str, is_from_root: bool) -> Option<JobPath> {
        match JobPath::parse(text).map_err(|it: JobPathError| it.to_string()) {
            Ok(path) if is_from_root && !path.is_below("spec") => {
                self.add(field, "must be below spec, such as spec.suspend");
                None
            }
            Ok(path) => Some(path),
            Err(problem) => {
                self.add(field, problem);
                None
            }
        }
    }

    fn expression(
        &mut self,
        field: FieldPath,
        text: &str,
        variables: &[&str],
    ) -> Option<ObjectExpression> {
        let compiled = compile(text, variables);
        compiled.map_err(|problem| self.add(field, problem)).ok()
    }
}

fn suspension(field: Option<&SuspendField>, errors: &mut Errors) -> Option<Suspension> {
    let path = field.and_then(|it| it.path.as_deref());
    let at = FieldPath::new("spec.suspend.path");
    let path = errors.path(at, path.unwrap_or(SUSPEND_PATH_DEFAULT), true)?;
    let suspended = field.and_then(|it| it.suspended_value.clone());
    let started = field.and_then(|it| it.started_value.clone());
    let (suspended, started) = (
        suspended.unwrap_or(Value::Bool(true)),
        started.unwrap_or(Value::Bool(false)),
    );
    for (name, value) in [("suspendedValue", &suspended), ("startedValue", &started)] {
        if !value.is_boolean() && !value.is_string() {
            let at = FieldPath::new("spec.suspend").field(name);
            errors.add(at, "must be true, false or a text");
        }
    }
    if suspended == started {
        let at = FieldPath::new("spec.suspend.startedValue");
        errors.add(at, "must differ from suspendedValue");
    }
    Some(Suspension {
        path,
        suspended,
        started,
    })
}

fn compile_pod_sets(source: &PodSetSource, at: &FieldPath, errors: &mut Errors) -> Option<PodSets> {
    let at = |field| at.clone().field(field);
    let for_each = source.for_each.as_deref();
    let list = for_each.map(|it| errors.path(at("forEach"), it, true));
    let variables: &[&str] = if for_each.is_some() {
        &[SELF, ITEM, KEY]
    } else {
        &[SELF]
    };
    let pods = pods_field(source, &at, variables, errors);
    let name = match (&source.name, &source.name_expression, &list) {
        (Some(_), _, Some(_)) => {
            errors.add(
                at("name"),
                "is for a single pod set; with forEach use nameExpression",
            );
            None
        }
        (Some(name), None, None) => Some(PodSetName::Fixed(name.clone())),
        (Some(_), Some(_), None) => {
            errors.add(at("nameExpression"), "may not be set besides name");
            None
        }
        (None, Some(text), _) => errors
            .expression(at("nameExpression"), text, variables)
            .map(PodSetName::Expression),
        (None, None, Some(_)) => Some(PodSetName::OfItem),
        (None, None, None) => {
            errors.add(at("name"), "is required without forEach");
            None
        }
    };
    let mut expression = |field, text: Option<&String>| match text {
        None => Some(None),
        Some(text) => errors.expression(at(field), text, variables).map(Some),
    };
    let condition = expression("condition", source.condition.as_ref());
    let count = expression("count", source.count.as_ref());
    let reclaimable = expression("reclaimable", source.reclaimable.as_ref());
    Some(PodSets {
        for_each: list.map_or(Some(None), |it| it.map(Some))?,
        name: name?,
        condition: condition?,
        pods: pods?,
        count: count?,
        reclaimable: reclaimable?,
    })
}

fn pods_field(
    source: &PodSetSource,
    at: &impl Fn(&'static str) -> FieldPath,
    variables: &[&str],
    errors: &mut Errors,
) -> Option<PodsField> {
    let is_from_root = source.for_each.is_none();
    let requests: Vec<Option<(String, ObjectExpression)>> = source
        .requests
        .iter()
        .map(|(resource, text)| {
            let at = at("requests").key(resource);
            Some((resource.clone(), errors.expression(at, text, variables)?))
        })
        .collect();
    match (&source.template, &source.pod_fields) {
        (Some(_), Some(_)) => {
            errors.add(at("podFields"), "may not be set besides template");
            None
        }
        (None, None) => {
            errors.add(at("template"), "either template or podFields is required");
            None
        }
        (Some(path), None) => {
            if !requests.is_empty() {
                let problem =
                    "are those of the containers of the template; use podFields without a template";
                errors.add(at("requests"), problem);
            }
            Some(PodsField {
                path: errors.path(at("template"), path, is_from_root)?,
                requests: None,
            })
        }
        (None, Some(path)) => {
            if requests.is_empty() {
                errors.add(at("requests"), "are required with podFields");
            }
            Some(PodsField {
                path: errors.path(at("podFields"), path, is_from_root)?,
                requests: Some(requests.into_iter().collect::<Option<_>>()?),
            })
        }
    }
}

fn compile_children(children: &ChildJobs, index: usize, errors: &mut Errors) -> Option<ChildKind> {
    let at = FieldPath::new("spec.children").index(index).field("names");
    Some(ChildKind {
        group: children.group.clone(),
        kind: children.kind.clone(),
        names: errors.expression(at, &children.names, &[SELF])?,
    })
}

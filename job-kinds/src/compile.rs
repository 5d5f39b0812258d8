//! Compiles the fields of a declaration, and collects their mistakes.

use crate::compile_error::CompileError;
use crate::expressions::{ITEM, KEY, SELF, compile};
use crate::job_path::{JobPath, JobPathError};
use crate::parts::{ChildKind, PodCount, PodSetName, PodSets, PodsField, Reset, Suspension};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::job_kind::{
    ChildJobs, PodSetSource, ResetField, SUSPEND_PATH_DEFAULT, SuspendField,
};
use lockkeeper_crd_schema::crd::ObjectExpression;
use serde_json::Value;

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Vec<CompileError>);

impl Errors {
    /// The mistakes, in the order in which they were found.
    pub(crate) fn into_inner(self) -> Vec<CompileError> {
        self.0
    }

    pub(crate) fn add(&mut self, field: FieldPath, problem: impl Into<String>) {
        let problem = problem.into();
        self.0.push(CompileError { field, problem });
    }

    /// Parses a path; one that is written must be below `spec`.
    pub(crate) fn path(
        &mut self,
        field: FieldPath,
        text: &str,
        is_from_root: bool,
    ) -> Option<JobPath> {
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

    pub(crate) fn expression(
        &mut self,
        field: FieldPath,
        text: &str,
        variables: &[&str],
    ) -> Option<ObjectExpression> {
        let compiled = compile(text, variables);
        compiled.map_err(|problem| self.add(field, problem)).ok()
    }
}

pub(crate) fn suspension(field: Option<&SuspendField>, errors: &mut Errors) -> Option<Suspension> {
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

pub(crate) fn compile_pod_sets(
    source: &PodSetSource,
    at: &FieldPath,
    errors: &mut Errors,
) -> Option<PodSets> {
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
    let minimum = expression("minimum", source.minimum.as_ref());
    let reclaimable = expression("reclaimable", source.reclaimable.as_ref());
    let count = pod_count(source, &at, pods.as_ref(), variables, errors);
    Some(PodSets {
        for_each: list.map_or(Some(None), |it| it.map(Some))?,
        name: name?,
        condition: condition?,
        pods: pods?,
        count: count?,
        minimum: minimum?,
        reclaimable: reclaimable?,
    })
}

/// The number of pods; `None` if it has a mistake.
fn pod_count(
    source: &PodSetSource,
    at: &impl Fn(&'static str) -> FieldPath,
    pods: Option<&PodsField>,
    variables: &[&str],
    errors: &mut Errors,
) -> Option<PodCount> {
    if source.minimum.is_some() && source.count_field.is_none() {
        let problem = "needs countField: the controller writes the number of pods that have quota";
        errors.add(at("minimum"), problem);
    }
    match (&source.count_field, &source.count) {
        (None, None) => Some(PodCount::One),
        (None, Some(text)) => {
            let count = errors.expression(at("count"), text, variables)?;
            Some(PodCount::Expression(count))
        }
        (Some(_), Some(_)) => {
            errors.add(at("countField"), "may not be set besides count");
            None
        }
        (Some(text), None) => {
            let path = errors.path(at("countField"), text, source.for_each.is_none())?;
            if pods.is_some_and(|it| it.path.overlaps(&path)) {
                errors.add(at("countField"), "may not be a part of the pod template");
                return None;
            }
            Some(PodCount::Field(path))
        }
    }
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

/// The fields that are written at a stop. They may not be parts of what other writes change (`written`).
pub(crate) fn compile_resets(
    resets: &[ResetField],
    written: &[&JobPath],
    errors: &mut Errors,
) -> Vec<Reset> {
    let mut out: Vec<Reset> = Vec::new();
    for (index, reset) in resets.iter().enumerate() {
        let at = FieldPath::new("spec.resetOnStop").index(index);
        let value = reset.value.clone().unwrap_or_default();
        if !(value.is_boolean() || value.is_string() || value.is_null()) {
            errors.add(at.clone().field("value"), "must be true, false or a text");
        }
        let at = at.field("path");
        let Some(path) = errors.path(at.clone(), &reset.path, true) else {
            continue;
        };
        let others = out.iter().map(|it| &it.path);
        if let Some(other) = others
            .chain(written.iter().copied())
            .find(|it| it.overlaps(&path))
        {
            errors.add(at, format!("overlaps with {other}, which is written too"));
            continue;
        }
        out.push(Reset { path, value });
    }
    out
}

pub(crate) fn compile_children(
    children: &ChildJobs,
    index: usize,
    errors: &mut Errors,
) -> Option<ChildKind> {
    let at = FieldPath::new("spec.children").index(index).field("names");
    Some(ChildKind {
        group: children.group.clone(),
        kind: children.kind.clone(),
        names: errors.expression(at, &children.names, &[SELF])?,
    })
}

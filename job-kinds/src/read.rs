//! Reads a job by its declaration.

use crate::declared_kind::DeclaredKind;
use crate::expressions::{SELF, StatusExpression};
use crate::patches::PodTemplateSource;
use crate::pod_sets::{DeclaredPodSet, read_pod_sets};
use crate::read_error::ReadError;
use lockkeeper_api::names::is_dns_subdomain;
use lockkeeper_crd_schema::crd::ObjectScope;
use serde_json::Value;

/// The longest message of the end of a job, in characters.
const MESSAGE_LENGTH_MAX: usize = 1024;

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredResult {
    /// Whether it has succeeded.
    pub is_success: bool,
    /// The message; may be empty.
    pub message: String,
}

/// A job as its declaration describes it.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is the value of a field or an expression, and any combination is possible"
)]
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredJob {
    /// Whether it is suspended.
    pub is_suspended: bool,
    /// Whether the controller of its kind has observed the start.
    pub is_started: bool,
    /// Whether the controller of its kind has observed the suspension, and no pod is active.
    pub is_stopped: bool,
    /// Whether all its pods are ready.
    pub is_ready: bool,
    /// The controller that manages it, if that is not the controller of its kind.
    pub foreign_manager: Option<String>,
    /// The name of its priority class, if its kind has a field for it and it is not empty.
    pub priority_class: Option<String>,
    /// The result, if it has ended.
    pub result: Option<DeclaredResult>,
    /// Its pods, by template.
    pub pod_sets: Vec<DeclaredPodSet>,
    /// The jobs that the controller of its kind creates for it: the index in the children of the declaration, and the name.
    pub children: Vec<(usize, String)>,
    /// The parts of the job with its pod templates.
    pub templates: PodTemplateSource,
}

impl DeclaredKind {
    /// Reads a job.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if an expression fails or has the wrong type, or if the job has no pod template.
    pub fn read(&self, object: &Value) -> Result<DeclaredJob, ReadError> {
        if !self.suspension.path.is_writable(object) {
            let problem = format!("the job has no object with {}", self.suspension.path);
            return Err(error("spec.suspend.path", problem));
        }
        let mut resets = self.resets.iter().enumerate();
        if let Some((index, it)) = resets.find(|(_, it)| !it.path.is_writable(object)) {
            let field = format!("spec.resetOnStop[{index}].path");
            let problem = format!("the job has no object with {}", it.path);
            return Err(error(&field, problem));
        }
        let found = read_pod_sets(self, object)?;
        let templates = PodTemplateSource::of(self, object, found.iter().map(|it| &it.1));
        let mut status = StatusReader {
            kind: self,
            scope: ObjectScope::default(),
        };
        status.scope.set(SELF, object);
        let is_success = status.flag(StatusExpression::Succeeded)?;
        let has_ended = is_success || status.flag(StatusExpression::Failed)?;
        let result = if has_ended {
            let message = status.message()?;
            Some(DeclaredResult {
                is_success,
                message,
            })
        } else {
            None
        };
        Ok(DeclaredJob {
            is_suspended: self.is_suspended(object),
            is_started: status.flag(StatusExpression::Started)?,
            is_stopped: status.flag(StatusExpression::Stopped)?,
            is_ready: status.flag(StatusExpression::Ready)?,
            foreign_manager: self.foreign_manager(object),
            priority_class: status.priority_class()?,
            result,
            children: status.children()?,
            pod_sets: found.into_iter().map(|it| it.0).collect(),
            templates,
        })
    }

    /// Whether the field that suspends a job has the value of a suspended one.
    #[must_use]
    pub fn is_suspended(&self, object: &Value) -> bool {
        self.suspension.path.get(object) == Some(&self.suspension.suspended)
    }

    fn foreign_manager(&self, object: &Value) -> Option<String> {
        let (path, own) = self.managed_by.as_ref()?;
        let manager = path.get(object)?.as_str()?;
        (!manager.is_empty() && manager != own).then(|| manager.to_owned())
    }
}

struct StatusReader<'a> {
    kind: &'a DeclaredKind,
    scope: ObjectScope<'a>,
}

impl StatusReader<'_> {
    fn evaluate(&mut self, of: StatusExpression) -> Result<Value, ReadError> {
        let value = self.scope.evaluate(self.kind.status(of));
        value.map_err(|it| error(of.field(), it.to_string()))
    }

    fn flag(&mut self, of: StatusExpression) -> Result<bool, ReadError> {
        let value = self.evaluate(of)?;
        let flag = value.as_bool();
        flag.ok_or_else(|| error(of.field(), "must be true or false"))
    }

    fn priority_class(&mut self) -> Result<Option<String>, ReadError> {
        const FIELD: &str = "spec.priorityClass";
        let Some(of) = &self.kind.priority_class else {
            return Ok(None);
        };
        let value = self.scope.evaluate(of);
        let value = value.map_err(|it| error(FIELD, it.to_string()))?;
        match value {
            Value::String(name) if name.is_empty() => Ok(None),
            Value::String(name) if is_dns_subdomain(&name) => Ok(Some(name)),
            _ => Err(error(
                FIELD,
                "must be the name of a priority class, or empty",
            )),
        }
    }

    fn message(&mut self) -> Result<String, ReadError> {
        let value = self.evaluate(StatusExpression::Message)?;
        let text = value.as_str();
        let text =
            text.ok_or_else(|| error(StatusExpression::Message.field(), "must be a text"))?;
        Ok(text.chars().take(MESSAGE_LENGTH_MAX).collect())
    }

    fn children(&mut self) -> Result<Vec<(usize, String)>, ReadError> {
        let mut out = Vec::new();
        for (index, child) in self.kind.children.iter().enumerate() {
            let field = format!("spec.children[{index}].names");
            let names = self.scope.evaluate(&child.names);
            let names = names.map_err(|it| error(&field, it.to_string()))?;
            let Some(names) = names.as_array() else {
                return Err(error(&field, "must be a list of names"));
            };
            let names = names.iter().filter_map(Value::as_str);
            let names = names.filter(|it| !it.is_empty());
            out.extend(names.map(|it| (index, it.to_owned())));
        }
        Ok(out)
    }
}

fn error(field: &str, problem: impl Into<String>) -> ReadError {
    ReadError {
        field: field.to_owned(),
        problem: problem.into(),
    }
}

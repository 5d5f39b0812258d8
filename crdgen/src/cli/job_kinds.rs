//! The command `job-kinds`.

use super::files::Output;
use super::policies::account;
use super::{Error, ReleaseParser};
use crate::admission_policies::declared_children::{children_guard, deletion_guard, pods_guard};
use crate::admission_policies::declared_jobs::{
    resume_guard, running_guard, suspend_policy, suspended_guard,
};
use crate::admission_policies::guards::{CONTROLLER_ACCOUNT, not_by_controller};
use crate::diff::source::Source;
use crate::files::Document;
use crate::release_features::MUTATING_POLICIES;
use crate::webhooks::NAME;
use clap::Args;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::JobKind;
use lockkeeper_crd_schema::builtin::Release;
use lockkeeper_job_kinds::{DeclaredKind, describe_errors};
use serde::Serialize;
use serde_json::Value;

/// The label of the `ClusterRole`s whose rights the controller has.
const AGGREGATION: &str = "rbac.lockkeeper.dev/job-kinds";

/// Arguments of `job-kinds`.
#[derive(Debug, Args)]
pub struct JobKinds {
    /// Files or folders with `JobKind` objects, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,

    /// Kubernetes version of the cluster
    ///
    /// Before 1.36 there are no mutating policies: a new job that is not suspended is rejected.
    #[arg(long, value_name = "VERSION", default_value_t, value_parser = ReleaseParser)]
    kubernetes_version: Release,

    /// Account of the controller, which alone resumes jobs with a queue
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = CONTROLLER_ACCOUNT, value_parser = account)]
    controller: String,

    /// Emit only the roles
    #[arg(long)]
    only_roles: bool,

    #[command(flatten)]
    pub(super) output: Output,
}

/// The documents of `job-kinds`.
pub(super) fn job_kind_documents(arguments: &JobKinds) -> Result<Vec<Document>, Error> {
    let kinds = read_job_kinds(&arguments.paths)?;
    let mut out = Vec::new();
    for kind in &kinds {
        out.extend(documents(kind, arguments)?);
    }
    Ok(out)
}

/// The declared kinds of files and folders: at least one.
pub(super) fn read_job_kinds(paths: &[String]) -> Result<Vec<DeclaredKind>, Error> {
    let mut out = Vec::new();
    for path in paths {
        let objects = Source::parse(path).objects();
        for object in objects.map_err(|it| Error::JobKinds(it.into()))? {
            if object.get("kind").and_then(Value::as_str) == Some("JobKind") {
                out.push(compile(path, object)?);
            }
        }
    }
    if out.is_empty() {
        return Err(Error::NoJobKind(paths.join(", ")));
    }
    Ok(out)
}

fn compile(path: &str, object: Value) -> Result<DeclaredKind, Error> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let name = name.unwrap_or_default().to_owned();
    let invalid = |reason: String| Error::InvalidJobKind {
        path: path.to_owned(),
        name: name.clone(),
        reason,
    };
    let declaration: JobKind =
        serde_json::from_value(object).map_err(|error| invalid(error.to_string()))?;
    DeclaredKind::compile(&declaration).map_err(|errors| invalid(describe_errors(&errors)))
}

fn documents(kind: &DeclaredKind, arguments: &JobKinds) -> Result<Vec<Document>, Error> {
    let of = format!("{}.{}", kind.plural, kind.group);
    let mut out = vec![document(&format!("{of}-role"), &role(kind))?];
    if !arguments.only_roles {
        if arguments.kubernetes_version >= MUTATING_POLICIES {
            let (policy, binding) = suspend_policy(kind);
            out.push(document(&format!("{of}-suspend"), &policy)?);
            out.push(document(&format!("{of}-suspend-binding"), &binding)?);
        } else {
            let (policy, binding) = suspended_guard(kind);
            out.push(document(&format!("{of}-suspended"), &policy)?);
            out.push(document(&format!("{of}-suspended-binding"), &binding)?);
        }
        let not_by_controller = not_by_controller(&arguments.controller);
        let guards = [
            ("running", Some(running_guard(kind))),
            ("resume", Some(resume_guard(kind, &not_by_controller))),
            ("deletion", Some(deletion_guard(kind))),
            ("children", children_guard(kind, &not_by_controller)),
            ("pods", Some(pods_guard(kind, &not_by_controller))),
        ];
        for (name, guard) in guards {
            let Some((policy, binding)) = guard else {
                continue;
            };
            out.push(document(&format!("{of}-{name}"), &policy)?);
            out.push(document(&format!("{of}-{name}-binding"), &binding)?);
        }
    }
    Ok(out)
}

fn document(file: &str, object: &impl Serialize) -> Result<Document, Error> {
    Ok(Document::from_object(format!("{file}.yaml"), object)?)
}

/// The rights that the controller needs: it reads and patches the jobs, and the finalizer of a job waits for its Workload.
fn role(kind: &DeclaredKind) -> ClusterRole {
    let rule = |resource: String, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![kind.group.clone()]),
        resources: Some(vec![resource]),
        verbs: verbs.iter().map(|it| (*it).to_owned()).collect(),
        ..PolicyRule::default()
    };
    let labels = [
        (AGGREGATION.to_owned(), "true".to_owned()),
        ("app.kubernetes.io/part-of".to_owned(), NAME.to_owned()),
    ];
    ClusterRole {
        metadata: ObjectMeta {
            name: Some(format!(
                "lockkeeper-job-kind-{}.{}",
                kind.plural, kind.group
            )),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        rules: Some(vec![
            rule(kind.plural.clone(), &["get", "list", "watch", "patch"]),
            rule(format!("{}/finalizers", kind.plural), &["update"]),
        ]),
        aggregation_rule: None,
    }
}

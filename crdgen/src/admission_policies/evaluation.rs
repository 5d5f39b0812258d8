//! Evaluates policies in tests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use super::guards::Guard;
use lockkeeper_api::JobKind;
use lockkeeper_crd_schema::admission_policy::{
    AdmissionRequest, Outcome, PolicySet, Resource, UserInfo,
};
use lockkeeper_job_kinds::DeclaredKind;
use serde_json::Value;

/// The account of a kind's controller.
pub const OPERATOR: &str = "system:serviceaccount:ray-system:operator";

/// The compiled declaration of a shipped example.
pub fn shipped(plural: &str) -> DeclaredKind {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/job-kinds");
    let text = std::fs::read_to_string(format!("{folder}/{plural}.yaml")).unwrap();
    // The role follows.
    let declaration = text.split("\n---\n").next().unwrap();
    let declaration: JobKind = serde_saphyr::from_str(declaration).unwrap();
    DeclaredKind::compile(&declaration).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// The messages of a policy about a change by this user. Without an object before it is created.
pub fn denials(
    (policy, binding): &Guard,
    resource: &Resource,
    old: Option<&Value>,
    new: &Value,
    name: &str,
) -> Vec<String> {
    let mut policies = PolicySet::default();
    policies.add(&serde_json::to_value(policy).unwrap());
    policies.add(&serde_json::to_value(binding).unwrap());
    denials_by(&policies, resource, old, new, name)
}

/// The same of all validating policies.
pub fn denials_by(
    policies: &PolicySet,
    resource: &Resource,
    old: Option<&Value>,
    new: &Value,
    name: &str,
) -> Vec<String> {
    let request = AdmissionRequest {
        object: new,
        old,
        resource,
        namespace: Some("team"),
        user: Some(&user(name)),
    };
    let decisions = policies.validate(&request).into_iter();
    let messages = decisions.map(|it| match it.outcome {
        Outcome::Denied { message, .. } => message,
        other => panic!("{other:?}"),
    });
    messages.collect()
}

pub fn user(name: &str) -> UserInfo {
    UserInfo {
        name: name.to_owned(),
        groups: Vec::new(),
    }
}

//! Clients of admission webhooks, as `k8s.io/apiserver/pkg/util/webhook` validates them.

use super::causes::{Below, Causes};
use super::fields::{integer, optional_text, set, text};
use crate::crd::webhook_clients::{UrlProblem, path_problems, url_problems};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// Validates the client of a webhook.
pub(super) fn validate_client(client: &Value, path: &FieldPath, out: &mut Causes) {
    match (optional_text(client, "url"), set(client, "service")) {
        (Some(url), None) => validate_url(url, &path.child("url"), out),
        (None, Some(service)) => validate_service(service, &path.child("service"), out),
        _ => out.required(path.clone(), "exactly one of url or service is required"),
    }
}

fn validate_url(url: &str, path: &FieldPath, out: &mut Causes) {
    for problem in url_problems(url) {
        match problem {
            UrlProblem::Unreadable => out.required(path.clone(), "url must be a valid URL"),
            UrlProblem::Part(detail) => out.invalid(path.clone(), detail),
        }
    }
}

fn validate_service(service: &Value, path: &FieldPath, out: &mut Causes) {
    // The API server passes name and namespace to its validation in the wrong order.
    for (key, field) in [("name", "namespace"), ("namespace", "name")] {
        out.not_empty(path.child(field), text(service, key));
    }
    let port = integer(service, "port").unwrap_or(443);
    out.range(path.child("port"), Some(port), 1, 65535);
    let field = path.child("path");
    out.reasons(
        &field,
        text(service, "path"),
        path_problems(text(service, "path")),
    );
}

//! Clients of admission webhooks, as `k8s.io/apiserver/pkg/util/webhook` validates them.

use super::causes::{Below, Causes};
use super::fields::{integer, optional_text, set, text};
use crate::crd::formats::uri::Uri;
use crate::crd::names;
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

/// Whether a text that is no URI of a request is a relative reference.
fn is_relative(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    !first.contains(':') && !text.bytes().any(|it| it < b' ' || it == 0x7f) && !text.contains('%')
}

fn validate_url(url: &str, path: &FieldPath, out: &mut Causes) {
    let without_fragment = url.split('#').next().unwrap_or_default();
    let Some(uri) = Uri::parse(without_fragment) else {
        if is_relative(without_fragment) {
            out.invalid(path.clone(), "'https' is the only allowed URL scheme");
        } else {
            out.required(path.clone(), "url must be a valid URL");
        }
        return;
    };
    let authority = url.split_once("//").map_or("", |it| it.1);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let has_fragment = url.split_once('#').is_some_and(|it| !it.1.is_empty());
    for (is_wrong, detail) in [
        (
            uri.scheme != "https",
            "'https' is the only allowed URL scheme",
        ),
        (uri.host.is_empty(), "host must be specified"),
        (
            authority.contains('@'),
            "user information is not permitted in the URL",
        ),
        (has_fragment, "fragments are not permitted in the URL"),
        (
            !uri.query.is_empty(),
            "query parameters are not permitted in the URL",
        ),
    ] {
        if is_wrong {
            out.invalid(path.clone(), detail);
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
    let steps = text(service, "path");
    if matches!(steps, "" | "/") {
        return;
    }
    if !steps.starts_with('/') {
        out.invalid(field.clone(), "must start with a '/'");
    }
    // The first character is dropped, also if it is no slash.
    let mut rest = steps.chars();
    rest.next();
    let rest = rest.as_str();
    for step in rest.strip_suffix('/').unwrap_or(rest).split('/') {
        if step.is_empty() {
            out.invalid(field.clone(), "segment may not be empty");
        } else {
            out.reasons(&field, step, names::dns1123_subdomain(step));
        }
    }
}

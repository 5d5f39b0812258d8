//! The conversion of a definition.

use super::collector::{Collector, object, text};
use super::fields;
use crate::crd::base64::{self, Alphabet};
use crate::crd::certificates::has_certificate;
use crate::crd::names::dns1035_label;
use crate::crd::values::array_at;
use crate::crd::webhook_clients::{UrlProblem, path_problems, url_problems};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

const STRATEGIES: [&str; 2] = ["None", "Webhook"];

/// Whether a client has a bundle of certificates that is not empty.
fn has_bundle(client: &Value) -> bool {
    !text(client, "caBundle").is_empty()
}

/// Whether the bundle of a client, which is not empty, has a certificate.
fn has_valid_bundle(client: &Value) -> bool {
    let bundle = base64::decode(text(client, "caBundle"), Alphabet::Standard);
    bundle.is_some_and(|it| has_certificate(&it))
}

/// Whether an update of an established definition must have a valid bundle: the stored one is not invalid.
pub(super) fn requires_valid_bundle(old_spec: &Value) -> bool {
    let client = object(old_spec, "conversion")
        .and_then(|it| object(it, "webhook"))
        .and_then(|it| object(it, "clientConfig"));
    client.is_none_or(|it| !has_bundle(it) || has_valid_bundle(it))
}

/// Validates the bundle of `spec.conversion`.
pub(super) fn validate_bundle(conversion: &Value, path: &FieldPath, out: &mut Collector) {
    let client = object(conversion, "webhook").and_then(|it| object(it, "clientConfig"));
    if text(conversion, "strategy") == "Webhook"
        && client.is_some_and(|it| has_bundle(it) && !has_valid_bundle(it))
    {
        let field = path.clone().field("webhookClientConfig").field("caBundle");
        out.invalid(field, "must have a certificate in PEM");
    }
}

/// Validates `spec.conversion`.
pub(super) fn validate(conversion: &Value, path: &FieldPath, out: &mut Collector) {
    let strategy = text(conversion, "strategy");
    if strategy.is_empty() {
        out.required(path.clone().field("strategy"), "");
    } else if !STRATEGIES.contains(&strategy) {
        out.not_supported(path.clone().field("strategy"), strategy, &STRATEGIES);
    }
    let webhook = object(conversion, "webhook").unwrap_or(&Value::Null);
    // The internal type has the fields of the webhook without a level of its own.
    let config_path = path.clone().field("webhookClientConfig");
    let versions_path = path.clone().field("conversionReviewVersions");
    let config = object(webhook, "clientConfig");
    let versions = array_at(webhook, "conversionReviewVersions");
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            out.forbidden(config_path, detail);
        }
        if !versions.is_empty() {
            out.forbidden(versions_path, detail);
        }
        return;
    }
    match config {
        None => out.required(config_path, "required when strategy is set to Webhook"),
        Some(config) => client_config(config, &config_path, out),
    }
    review_versions(versions, &versions_path, out);
}

fn client_config(config: &Value, path: &FieldPath, out: &mut Collector) {
    let url = config.get("url").and_then(Value::as_str);
    match (url, object(config, "service")) {
        (Some(url), None) => webhook_url(url, &path.clone().field("url"), out),
        (None, Some(service)) => webhook_service(service, &path.clone().field("service"), out),
        _ => out.required(path.clone(), "exactly one of url or service is required"),
    }
}

fn webhook_url(url: &str, path: &FieldPath, out: &mut Collector) {
    for problem in url_problems(url) {
        match problem {
            UrlProblem::Unreadable => out.required(path.clone(), "url must be a valid URL"),
            UrlProblem::Part(detail) => out.invalid(path.clone(), detail),
        }
    }
}

fn webhook_service(service: &Value, path: &FieldPath, out: &mut Collector) {
    // The API server passes name and namespace to its validation in the wrong order.
    for (key, field) in [("name", "namespace"), ("namespace", "name")] {
        if text(service, key).is_empty() {
            out.required(
                path.clone().named(field),
                format!("service {field} is required"),
            );
        }
    }
    let port = service.get("port").and_then(fields::integer).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        out.invalid(
            path.clone().field("port"),
            "port is not valid: must be between 1 and 65535, inclusive",
        );
    }
    let field = path.clone().field("path");
    for detail in path_problems(text(service, "path")) {
        out.invalid(field.clone(), detail);
    }
}

fn review_versions(versions: &[Value], path: &FieldPath, out: &mut Collector) {
    if versions.is_empty() {
        out.required(path.clone(), "");
        return;
    }
    let names: Vec<&str> = versions
        .iter()
        .map(|it| it.as_str().unwrap_or_default())
        .collect();
    for (position, name) in names.iter().enumerate() {
        let field = path.clone().index(position);
        if names.iter().take(position).any(|it| it == name) {
            out.invalid(field, "duplicate version");
        } else {
            out.reasons(field, name, &dns1035_label(name));
        }
    }
    if !names.iter().any(|it| matches!(*it, "v1" | "v1beta1")) {
        out.invalid(path.clone(), "must include at least one of v1, v1beta1");
    }
}

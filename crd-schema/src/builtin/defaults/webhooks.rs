//! The defaults of webhook configurations.

use crate::builtin::fields::{below, default, items};
use serde_json::{Value, json};

/// Sets the defaults of all webhooks of a configuration.
pub(super) fn set_webhooks(object: &mut Value, is_mutating: bool) {
    for webhook in items(object, "webhooks") {
        default(webhook, "failurePolicy", "Fail");
        default(webhook, "matchPolicy", "Equivalent");
        default(webhook, "namespaceSelector", json!({}));
        default(webhook, "objectSelector", json!({}));
        default(webhook, "timeoutSeconds", 10);
        if is_mutating {
            default(webhook, "reinvocationPolicy", "Never");
        }
        for rule in items(webhook, "rules") {
            default(rule, "scope", "*");
        }
        if let Some(service) = below(webhook, &["clientConfig", "service"]) {
            default(service, "port", 443);
        }
    }
}

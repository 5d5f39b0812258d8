//! The objects that say by which CA the webhook is trusted, and what is to be changed in them. Pure.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::core::DynamicObject;
use lockkeeper_api::config::InjectionKind;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};

use super::contents;

/// Whoever has this annotation gets its bundle from cert-manager.
const CERT_MANAGER: &str = "cert-manager.io/inject-ca-from";

/// Where an object keeps its entries, and an entry its bundle.
const WEBHOOKS: &str = "/webhooks";
const CONVERSION: &str = "/spec/conversion/webhook";
const CLIENT: &str = "clientConfig";
const BUNDLE: &str = "caBundle";

/// Whether somebody else looks after the bundle of this object.
pub(super) fn is_left_to_others(object: &DynamicObject) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(CERT_MANAGER))
}

/// Whether every entry of the object trusts this CA.
pub(super) fn trusts(kind: InjectionKind, object: &Value, ca: &CertificateDer<'_>) -> bool {
    entries(kind, object).iter().all(|entry| {
        let bundle = entry.get(CLIENT).and_then(|client| client.get(BUNDLE));
        let bundle = bundle.and_then(Value::as_str).unwrap_or_default();
        let pem = BASE64_STANDARD.decode(bundle).unwrap_or_default();
        contents::certificates(&pem).is_some_and(|all| all.contains(ca))
    })
}

/// The merge patch after which every entry has exactly this bundle; `None` if they have it. The
/// patch only fits the version of the object that it was made of.
pub(super) fn patch(kind: InjectionKind, object: &DynamicObject, bundle: &str) -> Option<Value> {
    let bundle = json!(BASE64_STANDARD.encode(bundle));
    let has =
        |entry: &&Value| entry.get(CLIENT).and_then(|client| client.get(BUNDLE)) == Some(&bundle);
    let all = entries(kind, &object.data);
    if all.iter().all(has) {
        return None;
    }
    let mut patch = if kind == InjectionKind::CustomResourceDefinition {
        json!({"spec": {"conversion": {"webhook": {CLIENT: {BUNDLE: bundle}}}}})
    } else {
        // A merge patch replaces a list as a whole.
        let with_bundle = all.into_iter().cloned().map(|mut entry| {
            if let Some(client) = entry.get_mut(CLIENT).and_then(Value::as_object_mut) {
                client.insert(BUNDLE.to_owned(), bundle.clone());
            }
            entry
        });
        json!({"webhooks": with_bundle.collect::<Vec<_>>()})
    };
    let version = &object.metadata.resource_version;
    if let Some(patch) = patch.as_object_mut() {
        patch.insert("metadata".to_owned(), json!({"resourceVersion": version}));
    }
    Some(patch)
}

/// What has a bundle in the object. A definition that converts nothing has none.
fn entries(kind: InjectionKind, object: &Value) -> Vec<&Value> {
    if kind == InjectionKind::CustomResourceDefinition {
        let webhook = object.pointer(CONVERSION);
        return webhook
            .filter(|webhook| webhook.get(CLIENT).is_some())
            .into_iter()
            .collect();
    }
    let list = object.pointer(WEBHOOKS).and_then(Value::as_array);
    list.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use InjectionKind::{CustomResourceDefinition, ValidatingWebhookConfiguration};

    fn object(data: &Value) -> DynamicObject {
        let mut whole = data.clone();
        let metadata = json!({"name": "lockkeeper", "resourceVersion": "7"});
        whole
            .as_object_mut()
            .unwrap()
            .insert("metadata".to_owned(), metadata);
        serde_json::from_value(whole).unwrap()
    }

    #[track_caller]
    fn check(kind: InjectionKind, data: &Value, expected: Option<Value>) {
        let patch = patch(kind, &object(data), "pem");
        let with_version = |mut patch: Value| {
            patch["metadata"] = json!({"resourceVersion": "7"});
            patch
        };
        assert_eq!(patch, expected.map(with_version));
    }

    /// `pem` in base64.
    const PEM: &str = "cGVt";

    #[test]
    fn every_entry_gets_the_bundle_and_keeps_the_rest() {
        let kind = ValidatingWebhookConfiguration;
        let url = "https://a";
        let with = json!({"name": "a", "clientConfig": {"url": url, "caBundle": PEM}, "x": 1});
        let other =
            json!({"name": "a", "clientConfig": {"url": url, "caBundle": "b3RoZXI="}, "x": 1});
        let without = json!({"name": "a", "clientConfig": {"url": url}, "x": 1});
        let all = json!({"webhooks": [with, with]});
        check(kind, &all, None);
        check(
            kind,
            &json!({"webhooks": [with, without]}),
            Some(all.clone()),
        );
        check(kind, &json!({"webhooks": [other, with]}), Some(all));
        check(kind, &json!({"webhooks": []}), None);
        check(kind, &json!({}), None);
    }

    #[test]
    fn a_definition_gets_it_only_where_a_webhook_converts() {
        let kind = CustomResourceDefinition;
        check(
            kind,
            &json!({"spec": {"conversion": {"strategy": "None"}}}),
            None,
        );
        check(kind, &json!({"spec": {}}), None);
        let conversion = |client: Value| json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}}});
        let patch =
            json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": PEM}}}}});
        check(kind, &conversion(json!({"url": "https://a"})), Some(patch));
        check(kind, &conversion(json!({"caBundle": PEM})), None);
    }

    #[test]
    fn cert_manager_is_left_its_own() {
        let mut object = object(&json!({}));
        assert!(!is_left_to_others(&object));
        let annotation = (CERT_MANAGER.to_owned(), "a/b".to_owned());
        object.metadata.annotations = Some([annotation].into());
        assert!(is_left_to_others(&object));
    }
}

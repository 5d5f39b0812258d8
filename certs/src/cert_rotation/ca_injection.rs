//! Computes the CA injection into webhook configurations and CRDs. Pure.

use super::contents;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::core::DynamicObject;
use lockkeeper_api::config::InjectionKind;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};

/// With this annotation, cert-manager injects the bundle.
const CERT_MANAGER_ANNOTATION: &str = "cert-manager.io/inject-ca-from";

/// Paths of the webhooks in an object, and of the bundle in a webhook.
const WEBHOOKS: &str = "/webhooks";
const CONVERSION_WEBHOOK: &str = "/spec/conversion/webhook";
const CLIENT_CONFIG: &str = "clientConfig";
const CA_BUNDLE_FIELD: &str = "caBundle";

/// Returns true if another component injects the bundle of this object.
pub(super) fn is_managed_externally(object: &DynamicObject) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(CERT_MANAGER_ANNOTATION))
}

/// Returns true if every webhook of the object trusts this CA.
pub(super) fn trusts_ca(kind: InjectionKind, object: &Value, ca: &CertificateDer<'_>) -> bool {
    client_configs(kind, object).iter().all(|entry| {
        let bundle = entry
            .get(CLIENT_CONFIG)
            .and_then(|client| client.get(CA_BUNDLE_FIELD));
        let bundle = bundle.and_then(Value::as_str).unwrap_or_default();
        let pem = BASE64_STANDARD.decode(bundle).unwrap_or_default();
        contents::parse_certificates(&pem).is_some_and(|all| all.contains(ca))
    })
}

/// Returns the merge patch that sets this bundle in every webhook; `None` if all have it. The patch
/// applies only to the resource version that it was computed from.
pub(super) fn bundle_patch(
    kind: InjectionKind,
    object: &DynamicObject,
    bundle: &str,
) -> Option<Value> {
    let bundle = json!(BASE64_STANDARD.encode(bundle));
    let has = |entry: &&Value| {
        entry
            .get(CLIENT_CONFIG)
            .and_then(|client| client.get(CA_BUNDLE_FIELD))
            == Some(&bundle)
    };
    let all = client_configs(kind, &object.data);
    if all.iter().all(has) {
        return None;
    }
    let mut patch = if kind == InjectionKind::CustomResourceDefinition {
        json!({"spec": {"conversion": {"webhook": {CLIENT_CONFIG: {CA_BUNDLE_FIELD: bundle}}}}})
    } else {
        // A merge patch replaces a list completely.
        let with_bundle = all.into_iter().cloned().map(|mut entry| {
            if let Some(client) = entry.get_mut(CLIENT_CONFIG).and_then(Value::as_object_mut) {
                client.insert(CA_BUNDLE_FIELD.to_owned(), bundle.clone());
            }
            entry
        });
        json!({"webhooks": with_bundle.collect::<Vec<_>>()})
    };
    // The patch has whole webhooks, and must not revert a change by another client.
    let version = &object.metadata.resource_version;
    if let Some(patch) = patch.as_object_mut() {
        patch.insert("metadata".to_owned(), json!({"resourceVersion": version}));
    }
    Some(patch)
}

/// Returns the webhooks of the object. A CRD without conversion has none.
fn client_configs(kind: InjectionKind, object: &Value) -> Vec<&Value> {
    if kind == InjectionKind::CustomResourceDefinition {
        let webhook = object.pointer(CONVERSION_WEBHOOK);
        return webhook
            .filter(|webhook| webhook.get(CLIENT_CONFIG).is_some())
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
    use crate::cert_rotation::tests::new_contents;
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
        let patch = bundle_patch(kind, &object(data), "pem");
        let with_version = |mut patch: Value| {
            patch["metadata"] = json!({"resourceVersion": "7"});
            patch
        };
        assert_eq!(patch, expected.map(with_version));
    }

    /// `pem` encoded in base64.
    const PEM: &str = "cGVt";

    #[test]
    fn injection_sets_bundle_and_keeps_other_fields() {
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
    fn target_trusts_ca_if_all_webhooks_have_it() {
        let kind = ValidatingWebhookConfiguration;
        let (one, two) = (new_contents(), new_contents());
        let hook = |pem: &str| json!({"clientConfig": {"caBundle": BASE64_STANDARD.encode(pem)}});
        let both = format!("{}{}", two.bundle(), one.bundle());
        let trusts = |hooks: &[Value]| {
            let object = json!({"webhooks": hooks});
            trusts_ca(kind, &object, &one.cas().first().unwrap().certificate)
        };
        assert!(trusts(&[]));
        assert!(trusts(&[hook(one.bundle()), hook(&both)]));
        assert!(!trusts(&[hook(one.bundle()), hook(two.bundle())]));
        assert!(!trusts(&[hook("")]));
        assert!(!trusts(&[json!({"clientConfig": {"caBundle": "garbage"}})]));
        assert!(!trusts(&[json!({})]));
    }

    #[test]
    fn crd_gets_bundle_only_with_conversion_webhook() {
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
    fn object_managed_by_cert_manager_is_skipped() {
        let mut object = object(&json!({}));
        assert!(!is_managed_externally(&object));
        let annotation = (CERT_MANAGER_ANNOTATION.to_owned(), "a/b".to_owned());
        object.metadata.annotations = Some([annotation].into());
        assert!(is_managed_externally(&object));
    }
}

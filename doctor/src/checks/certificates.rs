//! The CA bundles of webhooks and conversions.

use crate::catalogue::{CA_EXPIRES, Check, INVALID_CA_BUNDLE, NO_CA_BUNDLE};
use crate::certificate::newest_end_s;
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::snapshot::{Snapshot, conversion_endpoint};
use crate::webhook::{Endpoint, is_stored};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeSet;

/// A bundle that expires earlier is reported, in seconds. Kubernetes' own authorities and cert-manager renew earlier.
const CA_RENEWAL_S: i64 = 14 * 24 * 3600;

/// A CA bundle, where it is.
struct Bundle<'a> {
    object: String,
    field: String,
    endpoint: &'a Endpoint,
    is_stored: bool,
}

pub(crate) fn check(snapshot: &Snapshot, now_s: i64, out: &mut Diagnosis) {
    let mut seen = BTreeSet::new();
    for webhook in &snapshot.webhooks {
        let Some(endpoint) = &webhook.endpoint else {
            out.skip(format!(
                "the server of {} in {}: it is called by URL",
                webhook.name, webhook.object
            ));
            continue;
        };
        // The webhooks of one configuration usually have the same bundle.
        if seen.insert((&webhook.object, endpoint)) {
            let bundle = Bundle {
                object: webhook.object.clone(),
                field: webhook.field("clientConfig.caBundle"),
                endpoint,
                is_stored: webhook.is_stored,
            };
            check_bundle(&bundle, now_s, out);
        }
    }
    for definition in &snapshot.definitions {
        if let Some(endpoint) = &conversion_endpoint(definition) {
            let name = definition.metadata.name.as_deref().unwrap_or_default();
            let bundle = Bundle {
                object: format!("CustomResourceDefinition/{name}"),
                field: "spec.conversion.webhook.clientConfig.caBundle".to_owned(),
                endpoint,
                is_stored: is_stored(&definition.metadata),
            };
            check_bundle(&bundle, now_s, out);
        }
    }
}

fn check_bundle(bundle: &Bundle<'_>, now_s: i64, out: &mut Diagnosis) {
    let mut report = |check: &'static Check, evidence: String| {
        out.findings.push(Finding {
            check,
            object: bundle.object.clone(),
            field: bundle.field.clone(),
            evidence,
        });
    };
    let text = &bundle.endpoint.ca_bundle;
    // Some manifests have a line break instead of an empty bundle.
    if text.trim_ascii().is_empty() {
        // A manifest gets its bundle from a controller after it is installed.
        if bundle.is_stored {
            let service = &bundle.endpoint.service;
            report(
                &NO_CA_BUNDLE,
                format!(
                    "Service {}/{} is called without one",
                    service.namespace, service.name
                ),
            );
        } else {
            out.skip("CA bundles that are empty in a manifest: a controller may inject them in a cluster");
        }
        return;
    }
    match newest_end_s(text) {
        Err(reason) => report(&INVALID_CA_BUNDLE, reason),
        Ok(end) if end <= now_s => {
            report(
                &INVALID_CA_BUNDLE,
                format!("all certificates expired, the last at {}", time(end)),
            );
        }
        Ok(end) if end <= now_s.saturating_add(CA_RENEWAL_S) => {
            report(
                &CA_EXPIRES,
                format!("the last certificate expires at {}", time(end)),
            );
        }
        Ok(_) => {}
    }
}

/// A time as text.
pub(super) fn time(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |it| it.to_string())
}

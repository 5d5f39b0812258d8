#![doc = include_str!("on_parent_quota.md")]

use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{DEFAULT_QUOTA, QUOTA_NAME};

/// Koordinator's feature gate; if it is on, a quota may have both pods and child quotas.
const PARENTS_ALLOWED: &str = "SupportParentQuotaSubmitPod";

/// Koordinator's feature gate; if it is on, pods without a quota label have no quota.
const NO_DEFAULT: &str = "DisableDefaultQuota";

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO002",
    name: "pod-on-parent-quota",
    since: "0.1.0",
    action: Action::Off,
    covers: &["kpod-not-on-parent-quota"],
    layers: &[Layer::Webhook],
    doc: include_str!("on_parent_quota.md"),
    check: Check::Context(check),
};

fn check(pod: &Pod, context: &Context<'_>, out: &mut Findings) {
    if context.settings.is_gate_enabled(PARENTS_ALLOWED, false) {
        return;
    }
    let Some(quota) = quota(pod, context) else {
        return;
    };
    let is_parent = context
        .cluster
        .quota(quota)
        .found()
        .is_some_and(|facts| facts.is_parent);
    // As in Koordinator (`ValidateAddPod`), the default quota is exempt.
    if is_parent && quota != DEFAULT_QUOTA {
        let detail = format!(
            "other quotas may be below quota {}, so no pod may use it; name one below it",
            quoted(quota)
        );
        out.invalid(
            super::label(QUOTA_NAME),
            super::display_value(pod, QUOTA_NAME),
            detail,
        );
    }
}

/// The quota of a pod: the one in its label, or that of its namespace (Koordinator, `GetQuotaName`).
fn quota<'a>(pod: &'a Pod, context: &Context<'a>) -> Option<&'a str> {
    match super::value(pod, QUOTA_NAME) {
        Some(name) if !name.is_empty() => Some(name),
        _ if context.settings.is_gate_enabled(NO_DEFAULT, false) => None,
        _ => {
            let namespace = pod.metadata.namespace.as_deref()?;
            context.cluster.quota_of_namespace(namespace)
        }
    }
}

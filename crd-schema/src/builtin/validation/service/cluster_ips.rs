//! Addresses of services.

use super::spec::{EXTERNAL, is_headless, kind};
use crate::builtin::validation::addresses::{self, is_dual_stack, sloppy_ip};
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{is_set, list, optional_text, text, texts};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::net::IpAddr;

/// Validates that a policy fits the numbers of addresses and families.
pub(super) fn family_policy(spec: &Value, out: &mut Causes) {
    let is_headless = text(spec, "clusterIP") == "None" && !is_set(spec, "selector");
    let policy = text(spec, "ipFamilyPolicy");
    let is_single = policy == "SingleStack" || policy.is_empty() && !is_headless;
    let is_many = ["clusterIPs", "ipFamilies"]
        .iter()
        .any(|it| list(spec, it).len() == 2);
    if is_single && is_many {
        out.invalid(
            FieldPath::new("spec.ipFamilyPolicy"),
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs or IP families are specified",
        );
    }
}

/// Validates external addresses.
pub(super) fn external_ips(spec: &Value, old: Option<&Value>, path: &FieldPath, out: &mut Causes) {
    let stored = old.map_or_else(Vec::new, |it| texts(it, "externalIPs"));
    for (position, text) in texts(spec, "externalIPs").into_iter().enumerate() {
        let path = path.child("externalIPs").at(position);
        let reasons = addresses::ip(text);
        if !reasons.is_empty() && !stored.contains(&text) {
            out.reasons(&path, text, reasons);
            continue;
        }
        let is_reserved = sloppy_ip(text).is_some_and(|it| match it {
            IpAddr::V4(it) => {
                it.is_unspecified()
                    || it.is_loopback()
                    || it.is_link_local()
                    || it.octets().starts_with(&[224, 0, 0])
            }
            IpAddr::V6(it) => {
                let first = it.segments().first().copied().unwrap_or(0);
                it.is_unspecified()
                    || it.is_loopback()
                    || first & 0xffc0 == 0xfe80
                    || first & 0xff0f == 0xff02
            }
        });
        if is_reserved {
            out.invalid(
                path,
                "may not be unspecified, or in the loopback or link-local range",
            );
        }
    }
}

/// Validates addresses in the cluster and their families.
pub(super) fn cluster_ips(spec: &Value, old: Option<&Value>, out: &mut Causes) {
    if kind(spec) == EXTERNAL {
        return;
    }
    let path = FieldPath::new("spec");
    let field = path.child("clusterIPs");
    let (first, all) = (text(spec, "clusterIP"), texts(spec, "clusterIPs"));
    if first.is_empty() && !all.is_empty() {
        out.invalid(
            field.clone(),
            "must be empty when `clusterIP` is not specified",
        );
    } else if !first.is_empty() && all.is_empty() {
        out.required(field.clone(), "");
    } else if all.first().is_some_and(|it| *it != first) {
        out.invalid(field.clone(), "first value must match `clusterIP`");
    }
    let families = texts(spec, "ipFamilies");
    for (position, family) in families.iter().enumerate() {
        let path = path.child("ipFamilies").at(position);
        out.one_of(path.clone(), family, &["IPv4", "IPv6"]);
        if families.iter().take(position).any(|it| it == family) {
            out.duplicate(path, family);
        }
    }
    let policy = optional_text(spec, "ipFamilyPolicy");
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    out.optional(path.child("ipFamilyPolicy"), policy, &policies);
    let stored = old.map_or_else(Vec::new, |it| texts(it, "clusterIPs"));
    let mut is_invalid = false;
    for (position, address) in all.iter().enumerate() {
        if position == 0 && *address == "None" {
            if all.len() > 1 {
                is_invalid = true;
                out.invalid(field.clone(), "'None' must be the first and only value");
            }
            continue;
        }
        if !stored.contains(address) {
            let reasons = addresses::ip(address);
            is_invalid |= !reasons.is_empty();
            out.reasons(&field.at(position), address, reasons);
        }
    }
    if all.len() > 2 {
        out.invalid(field.clone(), "may only hold up to 2 values");
    }
    if is_invalid {
        return;
    }
    if all.len() > 1 && !is_dual_stack(&all) {
        out.invalid(
            field.clone(),
            "may specify no more than one IP for each IP family",
        );
    }
    if is_headless(spec) {
        return;
    }
    for (position, (address, family)) in all.iter().zip(&families).enumerate() {
        let is_new = address.contains(':');
        if *family == "IPv4" && is_new || *family == "IPv6" && !is_new {
            let detail = format!("expected an {family} value as indicated by `ipFamilies`");
            out.invalid(field.at(position), detail);
        }
    }
}

/// Validates that an update keeps the first address and family.
pub(super) fn immutable_addresses(spec: &Value, old: &Value, out: &mut Causes) {
    if kind(spec) == EXTERNAL || kind(old) == EXTERNAL {
        return;
    }
    let path = FieldPath::new("spec");
    let is_single = text(spec, "ipFamilyPolicy") == "SingleStack";
    let headless = (is_headless(spec), is_headless(old));
    for key in ["clusterIPs", "ipFamilies"] {
        let is_address = key == "clusterIPs";
        if headless == (true, true) || !is_address && headless.0 != headless.1 {
            continue;
        }
        let field = path.child(key);
        let (new, stored) = (texts(spec, key), texts(old, key));
        let first = |detail: &'static str, out: &mut Causes| out.invalid(field.at(0), detail);
        if new.len() == stored.len() {
            for (position, _) in new
                .iter()
                .zip(&stored)
                .enumerate()
                .filter(|it| it.1.0 != it.1.1)
            {
                let position = if is_address { position } else { 0 };
                out.invalid(field.at(position), "may not change once set");
            }
            continue;
        }
        if !stored.is_empty() && !new.is_empty() && new.first() != stored.first() {
            first("may not change once set", out);
        }
        if stored.len() > new.len() {
            if new.is_empty() {
                first("the first value can not be unset", out);
            }
            if new.len() == 1 && !is_single {
                let detail = "must be set to 'SingleStack' when releasing the secondary value";
                out.invalid(path.child("ipFamilyPolicy"), detail);
            }
        }
    }
}

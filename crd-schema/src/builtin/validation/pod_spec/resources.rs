//! Requests and limits of containers and pods.

use super::context::PodContext;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{entries, is_set, list, set, text, value};
use crate::builtin::validation::quantities::{is_divisible, is_whole, nano};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

const HUGE_PAGES: &str = "hugepages-";

/// Resources of containers without a domain.
const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// All resources without a domain.
const STANDARD_RESOURCES: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// Resources that are counted.
const INTEGER_RESOURCES: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// The owner of requests and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Container,
    Pod,
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Validates the name of a resource.
fn resource_name(name: &str, path: &FieldPath, out: &mut Causes) {
    let reasons = names::qualified_name(name);
    let is_qualified = reasons.is_empty();
    out.reasons(path, name, reasons);
    let is_standard = STANDARD_RESOURCES.contains(&name)
        || name.starts_with(HUGE_PAGES)
        || name.starts_with("requests.hugepages-");
    if is_qualified && !name.contains('/') && !is_standard {
        out.invalid(
            path.clone(),
            "must be a standard resource type or fully qualified",
        );
    }
}

/// Validates the name of a resource of a container.
pub(in super::super) fn container_resource_name(name: &str, path: &FieldPath, out: &mut Causes) {
    resource_name(name, path, out);
    if !name.contains('/') {
        if !CONTAINER_RESOURCES.contains(&name) && !name.starts_with(HUGE_PAGES) {
            out.invalid(path.clone(), "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        out.invalid(
            path.clone(),
            "doesn't follow extended resource name standard",
        );
    }
}

fn pod_resource_name(name: &str, path: &FieldPath, out: &mut Causes) {
    let before = out.len();
    resource_name(name, path, out);
    if out.len() == before && !is_pod_resource(name) {
        out.not_supported(path.clone(), name, &["cpu", "hugepages-", "memory"]);
    }
}

/// Validates an amount of a resource.
pub(in super::super) fn amount(name: &str, amount: &Value, path: &FieldPath, out: &mut Causes) {
    let amount = nano(amount);
    if amount < 0 {
        out.invalid(path.clone(), "must be greater than or equal to 0");
    }
    if (INTEGER_RESOURCES.contains(&name) || is_extended(name)) && !is_whole(amount) {
        out.invalid(path.clone(), "must be an integer");
    }
}

/// Validates requests and limits.
pub(super) fn validate(
    resources: &Value,
    level: Level,
    pod: &PodContext<'_>,
    path: &FieldPath,
    out: &mut Causes,
) {
    let defaults_requests = pod.is_pod && level == Level::Container;
    let all = |key: &'static str, name: &str, value: &Value, out: &mut Causes| {
        let path = path.child(key).entry(name);
        match level {
            Level::Container => container_resource_name(name, &path, out),
            Level::Pod => pod_resource_name(name, &path, out),
        }
        amount(name, value, &path, out);
        if name.starts_with(HUGE_PAGES)
            && !is_divisible(name, nano(value))
            && !pod.accepts_indivisible_huge_pages()
        {
            out.invalid(path, "must be a multiple of the size of the pages");
        }
    };
    let limits: BTreeMap<&str, &Value> = entries(resources, "limits").collect();
    let mut requests: BTreeMap<&str, &Value> = entries(resources, "requests").collect();
    if defaults_requests {
        for (name, limit) in &limits {
            requests.entry(name).or_insert(limit);
        }
    }
    for (name, limit) in &limits {
        all("limits", name, limit, out);
    }
    for (name, request) in &requests {
        all("requests", name, request, out);
        let may_differ = is_native(name) && !name.starts_with(HUGE_PAGES);
        match limits.get(name).map(|it| nano(it)) {
            Some(limit) if nano(request) != limit && !may_differ => {
                out.invalid(
                    path.child("requests"),
                    format!("must be equal to {name} limit"),
                );
            }
            Some(limit) if nano(request) > limit => {
                let detail = format!("must be less than or equal to {name} limit");
                out.invalid(path.child("requests"), detail);
            }
            None if !may_differ => out.required(
                path.child("limits"),
                "Limit must be set for non overcommitable resources",
            ),
            _ => {}
        }
    }
    let mut names = limits.keys().chain(requests.keys());
    if names.clone().any(|it| it.starts_with(HUGE_PAGES))
        && !names.any(|it| matches!(*it, "cpu" | "memory"))
    {
        out.forbidden(path.clone(), "HugePages require cpu or memory");
    }
    claims(resources, pod, &path.child("claims"), out);
}

fn claims(resources: &Value, pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    if list(resources, "claims").is_empty() {
        return;
    }
    let claims = list(pod.spec, "resourceClaims").iter();
    let known: Vec<&str> = claims.map(|it| text(it, "name")).collect();
    let mut seen: Vec<String> = Vec::new();
    for (position, claim) in list(resources, "claims").iter().enumerate() {
        let path = path.at(position);
        let name = text(claim, "name");
        if name.is_empty() {
            out.required(path, "");
            continue;
        }
        if seen.iter().any(|it| it == name) {
            out.duplicate(path.clone(), name);
        } else {
            let request = text(claim, "request");
            let mut key = name.to_owned();
            if !request.is_empty() {
                out.reasons(
                    &path.child("request"),
                    request,
                    names::dns1123_label(request),
                );
                key = format!("{name}/{request}");
            }
            let is_part = |it: &String| it.split_once('/').is_some_and(|it| it.0 == name);
            if seen.contains(&key) || request.is_empty() && seen.iter().any(is_part) {
                out.duplicate(path.clone(), &key);
            }
            seen.push(key);
        }
        if !known.contains(&name) {
            out.not_found(path, name);
        }
    }
}

type Amounts = BTreeMap<String, i128>;

fn add(sum: &mut Amounts, container: &Value, key: &str, is_pod: bool) {
    for (name, amount) in amounts(container, key, is_pod) {
        let total = sum.entry(name).or_default();
        *total = total.saturating_add(amount);
    }
}

fn amounts(container: &Value, key: &str, is_pod: bool) -> Amounts {
    let resources = value(container, "resources");
    let amounts = entries(resources, key).map(|(name, it)| (name.to_owned(), nano(it)));
    let mut out: Amounts = amounts.collect();
    // Requests of pods default to the limits.
    if key == "requests" && is_pod {
        for (name, limit) in entries(resources, "limits") {
            out.entry(name.to_owned()).or_insert_with(|| nano(limit));
        }
    }
    out
}

/// What the containers of a pod need together: the containers and sidecars, or more while init containers run.
fn aggregate(pod: &PodContext<'_>, key: &str) -> Amounts {
    let (spec, is_pod) = (pod.spec, pod.is_pod);
    let mut sum = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut sum, container, key, is_pod);
    }
    let (mut sidecars, mut initial) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        let mut current = sidecars.clone();
        add(&mut current, container, key, is_pod);
        if text(container, "restartPolicy") == "Always" {
            add(&mut sum, container, key, is_pod);
            add(&mut sidecars, container, key, is_pod);
            current.clone_from(&sidecars);
        } else {
            // Only the resources of this container count.
            let own = amounts(container, key, is_pod);
            current.retain(|name, _| own.contains_key(name) || sidecars.contains_key(name));
        }
        for (name, amount) in current {
            let most = initial.entry(name).or_default();
            *most = (*most).max(amount);
        }
    }
    for (name, amount) in initial {
        let most = sum.entry(name).or_default();
        *most = (*most).max(amount);
    }
    sum
}

/// Whether a resource can be that of a pod as a whole.
fn is_pod_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// The resources of a pod with the requests that default to those of the containers, or else to the limits.
fn with_default_requests(resources: &Value, pod: &PodContext<'_>) -> Value {
    let mut out = resources.clone();
    let is_empty = ["limits", "requests"]
        .iter()
        .all(|it| entries(resources, it).next().is_none());
    if !pod.is_pod || pod.old.is_some() || is_empty {
        return out;
    }
    let mut requests = serde_json::Map::new();
    for (name, amount) in aggregate(pod, "requests") {
        if matches!(name.as_str(), "cpu" | "memory") {
            let milli = i64::try_from(amount / 1_000_000).unwrap_or(i64::MAX);
            requests.insert(name, Quantity::from_milli(milli).to_string().into());
        }
    }
    for (name, limit) in entries(resources, "limits") {
        if is_pod_resource(name) && !requests.contains_key(name) {
            requests.insert(name.to_owned(), limit.clone());
        }
    }
    for (name, request) in entries(resources, "requests") {
        requests.insert(name.to_owned(), request.clone());
    }
    if let Some(fields) = out.as_object_mut() {
        fields.insert("requests".to_owned(), Value::Object(requests));
    }
    out
}

/// Validates the resources of a pod as a whole.
pub(super) fn validate_pod(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let Some(resources) = set(pod.spec, "resources") else {
        return;
    };
    let path = path.child("resources");
    if pod.os() == Some("windows") {
        out.forbidden(path, "may not be set for a windows pod");
        return;
    }
    if is_set(resources, "claims") {
        out.forbidden(
            path.child("claims"),
            "claims may not be set for Resources at pod-level",
        );
    }
    let resources = &with_default_requests(resources, pod);
    validate(resources, Level::Pod, pod, &path, out);
    let amount_of = |key: &str, name: &str| {
        let mut amounts = entries(resources, key).filter(|it| it.0 == name);
        amounts.next().map(|it| nano(it.1))
    };
    for (name, sum) in aggregate(pod, "requests") {
        if amount_of("requests", &name).is_some_and(|it| sum > it) {
            out.invalid(
                path.child("requests").entry(&name),
                "must be greater than or equal to aggregate container requests",
            );
        }
    }
    for (name, sum) in aggregate(pod, "limits") {
        let is_exceeded = amount_of("limits", &name).is_some_and(|it| sum > it);
        if name.starts_with(HUGE_PAGES) && is_exceeded {
            out.invalid(
                path.child("limits").entry(&name),
                "must be greater than or equal to aggregate container limits",
            );
        }
    }
    for (position, container) in list(pod.spec, "containers").iter().enumerate() {
        for (name, limit) in entries(value(container, "resources"), "limits") {
            if amount_of("limits", name).is_some_and(|it| nano(limit) > it) {
                let path = path.child("containers").at(position).entry(name);
                out.invalid(
                    path.child("limits"),
                    "must be less than or equal to pod limits",
                );
            }
        }
    }
}

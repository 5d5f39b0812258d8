//! Computed defaults of pods.

use crate::builtin::json::{is_unset, items_mut, object_at, object_mut, text};
use serde_json::{Map, Value};

/// Source: `SetDefaults_Pod`.
pub(super) fn pod(fields: &mut Map<String, Value>) {
    let Some(spec) = object_mut(fields, "spec") else {
        return;
    };
    let period = spec.get("terminationGracePeriodSeconds");
    if period.and_then(Value::as_i64).is_some_and(|it| it < 0) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    let uses_host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            request_limits(container);
            if uses_host_network {
                use_host_ports(container);
            }
        }
    }
    if is_unset(spec, "enableServiceLinks") {
        spec.insert("enableServiceLinks".to_owned(), true.into());
    }
}

/// A resource with a limit and without a request is requested up to its limit.
fn request_limits(container: &mut Map<String, Value>) {
    let Some(resources) = object_mut(container, "resources") else {
        return;
    };
    let Some(limits) = object_at(resources, "limits").cloned() else {
        return;
    };
    let requests = resources
        .entry("requests")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(requests) = requests {
        for (resource, amount) in limits {
            requests.entry(resource).or_insert(amount);
        }
    }
}

fn use_host_ports(container: &mut Map<String, Value>) {
    for port in items_mut(container, "ports") {
        if is_unset(port, "hostPort")
            && let Some(number) = port.get("containerPort").cloned()
        {
            port.insert("hostPort".to_owned(), number);
        }
    }
}

/// The deprecated name of the service account has the same value.
///
/// Source: `SetDefaults_PodSpec`.
pub(super) fn pod_spec(fields: &mut Map<String, Value>) {
    if text(fields, "serviceAccountName").is_empty() {
        let deprecated = text(fields, "serviceAccount").to_owned();
        if !deprecated.is_empty() {
            fields.insert("serviceAccountName".to_owned(), deprecated.into());
        }
    }
    if let Some(name) = fields.get("serviceAccountName").cloned() {
        fields.insert("serviceAccount".to_owned(), name);
    }
}

/// Source: `SetDefaults_Container`.
pub(super) fn container(fields: &mut Map<String, Value>) {
    if text(fields, "imagePullPolicy").is_empty() {
        let policy = pull_policy(text(fields, "image"));
        fields.insert("imagePullPolicy".to_owned(), policy.into());
    }
}

/// Source: `SetDefaults_Volume`.
pub(super) fn volume(fields: &mut Map<String, Value>) {
    let has_source = fields
        .iter()
        .any(|(name, value)| name != "name" && !value.is_null());
    if !has_source {
        fields.insert("emptyDir".to_owned(), Value::Object(Map::new()));
    }
    if let Some(image) = object_mut(fields, "image")
        && text(image, "pullPolicy").is_empty()
    {
        let policy = pull_policy(text(image, "reference"));
        image.insert("pullPolicy".to_owned(), policy.into());
    }
}

/// The longest path of an image, in bytes.
const PATH_MAX_BYTES: usize = 255;

/// What an image without a path has before its name.
const PATH_PREFIX: &str = "library/";

/// `Always` for the tag `latest`, which is also the default of an image without a tag and digest.
///
/// Source: `pkg/util/parsers`, `ParseImageName`.
fn pull_policy(image: &str) -> &'static str {
    let (name, has_digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    let is_latest = match last.rsplit_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !has_digest && is_image_name(name),
    };
    if is_latest { "Always" } else { "IfNotPresent" }
}

/// Whether the name of an image can be parsed: only then has it the default tag.
fn is_image_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_inner = |it: u8| {
            it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, b'.' | b'_' | b'-')
        };
        let is_edge =
            |it: Option<&u8>| it.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
        let bytes = part.as_bytes();
        bytes.iter().all(|it| is_inner(*it)) && is_edge(bytes.first()) && is_edge(bytes.last())
    };
    // The first part may be a host with upper-case letters and a port.
    let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
    let path = match name.split_once('/') {
        Some((first, path)) if is_host(first) => path,
        _ => name,
    };
    // A path of one part gets a prefix.
    let prefix = if path.contains('/') {
        0
    } else {
        PATH_PREFIX.len()
    };
    let is_digest = name.len() == 64 && name.bytes().all(|it| it.is_ascii_hexdigit());
    path.split('/').all(is_part)
        && path.len().saturating_add(prefix) <= PATH_MAX_BYTES
        && !is_digest
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn pull_policy_follows_the_tag() {
        for (image, expected) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.27", "IfNotPresent"),
            ("images.example:5000/team/nginx", "Always"),
            ("images.example:5000/team/nginx:1", "IfNotPresent"),
            ("nginx@sha256:0123", "IfNotPresent"),
            ("Not An Image", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), expected, "{image}");
        }
    }
}

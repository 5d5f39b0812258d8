//! The place of a JSON Schema in a catalogue, as a template of kubeconform.

use lockkeeper_crd_schema::builtin::Release;
use std::fmt::Write;
use std::str::FromStr;
use thiserror::Error;

/// The path below a location that names no file, as in kubeconform.
const STANDARD_PATH: &str = "/{{.NormalizedKubernetesVersion}}-standalone{{.StrictSuffix}}/{{.ResourceKind}}{{.KindSuffix}}.json";

/// The template of the path of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaLocation {
    parts: Vec<Part>,
}

/// An error of the template of a location.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LocationError {
    /// The location is a URL.
    #[error("schemas are not downloaded; clone the catalogue and name its folder")]
    Remote,
    /// The location is that of kubeconform's own catalogue.
    #[error(
        "`default` is kubeconform's catalogue of built-in kinds, which are checked without schemas; remove it"
    )]
    Default,
    /// A placeholder has no end.
    #[error("a placeholder has no `}}}}`")]
    Unclosed,
    /// A placeholder is none of kubeconform's.
    #[error(
        "unknown placeholder {0:?}; use .Group, .ResourceKind, .ResourceAPIVersion, .KindSuffix, .StrictSuffix or .NormalizedKubernetesVersion"
    )]
    UnknownPlaceholder(String),
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(Placeholder),
}

/// A value that depends on the kind or the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    Group,
    KindSuffix,
    KubernetesVersion,
    ResourceApiVersion,
    ResourceKind,
}

impl FromStr for SchemaLocation {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Err(LocationError::Remote);
        }
        if text == "default" {
            return Err(LocationError::Default);
        }
        let mut parts = Vec::new();
        parse(text, &mut parts)?;
        if !text.ends_with("json") {
            parse(STANDARD_PATH, &mut parts)?;
        }
        Ok(Self { parts })
    }
}

impl SchemaLocation {
    /// The path of the schema of a kind in a release of Kubernetes; `None` if the kind or its version is no name that a path
    /// can contain.
    #[must_use]
    pub fn path(&self, release: Release, api_version: &str, kind: &str) -> Option<String> {
        // Kubeconform takes the version for the group of the core kinds.
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if !is_name(version) || !is_name(kind) || !(group.is_empty() || is_name(group)) {
            return None;
        }
        let group_or_version = if group.is_empty() { version } else { group };
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Placeholder(Placeholder::Group) => out.push_str(group_or_version),
                Part::Placeholder(Placeholder::ResourceApiVersion) => out.push_str(version),
                // Kubeconform writes a patch release; its catalogue has the first one of each release.
                Part::Placeholder(Placeholder::KubernetesVersion) => {
                    let _ = write!(out, "v{release}.0");
                }
                Part::Placeholder(Placeholder::ResourceKind) => out.push_str(&kind.to_lowercase()),
                Part::Placeholder(Placeholder::KindSuffix) => {
                    let first = group_or_version.split('.').next().unwrap_or_default();
                    // Writing to a text cannot fail.
                    let _ = write!(out, "-{}", first.to_lowercase());
                    if !group.is_empty() {
                        let _ = write!(out, "-{}", version.to_lowercase());
                    }
                }
            }
        }
        Some(out)
    }
}

/// Adds the parts of a template.
fn parse(text: &str, parts: &mut Vec<Part>) -> Result<(), LocationError> {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or(LocationError::Unclosed)?;
        parts.push(Part::Text(before.to_owned()));
        parts.push(match name.trim() {
            ".Group" => Part::Placeholder(Placeholder::Group),
            ".KindSuffix" => Part::Placeholder(Placeholder::KindSuffix),
            ".ResourceAPIVersion" => Part::Placeholder(Placeholder::ResourceApiVersion),
            ".ResourceKind" => Part::Placeholder(Placeholder::ResourceKind),
            ".NormalizedKubernetesVersion" => Part::Placeholder(Placeholder::KubernetesVersion),
            // Unknown fields are errors.
            ".StrictSuffix" => Part::Text("-strict".to_owned()),
            other => return Err(LocationError::UnknownPlaceholder(other.to_owned())),
        });
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(())
}

/// Whether a text is a group, a version or a kind. A path from it stays below the folder of the catalogue.
fn is_name(text: &str) -> bool {
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.');
    text.starts_with(|it: char| it.is_ascii_alphanumeric()) && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::{LocationError, Release, SchemaLocation};

    /// Kubeconform's paths: `pkg/registry/registry.go`, `schemaPath`.
    #[test]
    fn paths_are_those_of_kubeconform() {
        for (template, api_version, kind, expected) in [
            (
                "crds/{{.Group}}/{{ .ResourceKind }}_{{.ResourceAPIVersion}}.json",
                "cert-manager.io/v1",
                "Certificate",
                Some("crds/cert-manager.io/certificate_v1.json"),
            ),
            (
                "schemas",
                "cert-manager.io/v1",
                "Certificate",
                Some("schemas/v1.37.0-standalone-strict/certificate-cert-manager-v1.json"),
            ),
            (
                "schemas",
                "v1",
                "Thing",
                Some("schemas/v1.37.0-standalone-strict/thing-v1.json"),
            ),
            ("{{.ResourceKind}}.json", "a/v1", "../x", None),
            ("{{.Group}}.json", "../v1", "X", None),
            ("{{.Group}}.json", "a/v/1", "X", None),
            ("{{.ResourceKind}}.json", "a/v1", "", None),
        ] {
            let location: SchemaLocation = template.parse().unwrap();
            let path = location.path(Release::NEWEST, api_version, kind);
            assert_eq!(path.as_deref(), expected, "{template} {api_version} {kind}");
        }
    }

    #[test]
    fn paths_have_the_version_of_kubernetes() {
        let location: SchemaLocation = "schemas".parse().unwrap();
        let release = "1.33.4".parse().unwrap();
        let path = location.path(release, "cert-manager.io/v1", "Certificate");
        assert_eq!(
            path.as_deref(),
            Some("schemas/v1.33.0-standalone-strict/certificate-cert-manager-v1.json")
        );
    }

    #[test]
    fn templates_of_other_places_and_placeholders_are_errors() {
        for (template, expected) in [
            ("https://example.com/{{.Group}}.json", LocationError::Remote),
            ("http://example.com", LocationError::Remote),
            ("default", LocationError::Default),
            ("a/{{.Group", LocationError::Unclosed),
            (
                "a/{{.Kind}}.json",
                LocationError::UnknownPlaceholder(".Kind".to_owned()),
            ),
        ] {
            assert_eq!(template.parse::<SchemaLocation>(), Err(expected));
        }
    }
}

//! Certificates that all replicas share: a Secret, and the objects that are told of its CA.

use super::deserialize_in_range;
use super::namespaced_name::{NamespacedName, is_name};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// How long a change of certificates is given to reach everybody, by default, in seconds: the
/// replicas, and the API servers, which hear of it by a watch. That takes seconds; ten minutes
/// are for a bad day.
pub const OVERLAP_SECONDS_DEFAULT: u64 = 600;

/// The overlaps that make sense, in seconds. Above an hour a CA of one day could end before its
/// successor is in use.
pub const OVERLAP_SECONDS_RANGE: RangeInclusive<u64> = 1..=3600;

/// How long a CA is good for by default, in days: ten years.
pub const CA_DAYS_DEFAULT: u64 = 3650;

/// The lives of a CA that make sense, in days.
pub const CA_DAYS_RANGE: RangeInclusive<u64> = 1..=36_500;

/// How long a serving certificate is good for by default, in days.
pub const SERVING_DAYS_DEFAULT: u64 = 365;

/// The lives of a serving certificate that make sense, in days.
pub const SERVING_DAYS_RANGE: RangeInclusive<u64> = 1..=3650;

/// Certificates in a Secret that all replicas share.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CertificateSettings {
    /// The Secret that holds the CA and the serving certificate, as `namespace/name`. The server
    /// makes what is in it, renews it and rotates the CA. Absent, certificates come from files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub secret: Option<NamespacedName>,
    /// The objects that get the CA bundle of the Secret, as `kind/name`, such as
    /// `customresourcedefinitions/workloads.lockkeeper.dev`. One that does not exist is waited for.
    pub inject: Vec<InjectionTarget>,
    /// How long a change is given to reach every replica and every API server before the next step
    /// of a rotation, in seconds, from 1 to 3600. A short one is for trying it out.
    #[serde(deserialize_with = "overlap_seconds")]
    #[schemars(range(min = *OVERLAP_SECONDS_RANGE.start(), max = *OVERLAP_SECONDS_RANGE.end()))]
    pub overlap_seconds: u64,
    /// How long a new CA is good for, in days, from 1 to 36500.
    #[serde(deserialize_with = "ca_days")]
    #[schemars(range(min = *CA_DAYS_RANGE.start(), max = *CA_DAYS_RANGE.end()))]
    pub ca_days: u64,
    /// How long a new serving certificate is good for, in days, from 1 to 3650. It never outlives
    /// its CA.
    #[serde(deserialize_with = "serving_days")]
    #[schemars(range(min = *SERVING_DAYS_RANGE.start(), max = *SERVING_DAYS_RANGE.end()))]
    pub serving_days: u64,
}

impl Default for CertificateSettings {
    fn default() -> Self {
        let named = |kind| InjectionTarget {
            kind,
            name: "lockkeeper".to_owned(),
        };
        Self {
            secret: None,
            inject: vec![
                named(InjectionKind::ValidatingWebhookConfiguration),
                named(InjectionKind::MutatingWebhookConfiguration),
            ],
            overlap_seconds: OVERLAP_SECONDS_DEFAULT,
            ca_days: CA_DAYS_DEFAULT,
            serving_days: SERVING_DAYS_DEFAULT,
        }
    }
}

fn overlap_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserialize_in_range(&OVERLAP_SECONDS_RANGE, deserializer)
}

fn ca_days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserialize_in_range(&CA_DAYS_RANGE, deserializer)
}

fn serving_days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserialize_in_range(&SERVING_DAYS_RANGE, deserializer)
}

/// A text that names no object with a CA bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectionError {
    /// The kind is none that has a CA bundle.
    #[error(
        "{0:?} is no kind with a CA bundle; give validatingwebhookconfigurations/NAME, \
         mutatingwebhookconfigurations/NAME or customresourcedefinitions/NAME"
    )]
    Kind(String),
    /// The kind is known, and what follows is not a name.
    #[error("{0:?} does not name an object; give its kind and its name, as in {1}/lockkeeper")]
    Name(String, InjectionKind),
}

/// A kind of object that says by which CA a webhook is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionKind {
    /// Every entry of it gets the bundle.
    ValidatingWebhookConfiguration,
    /// Every entry of it gets the bundle.
    MutatingWebhookConfiguration,
    /// Its conversion webhook gets the bundle, if it has one.
    CustomResourceDefinition,
}

impl InjectionKind {
    const ALL: [Self; 3] = [
        Self::ValidatingWebhookConfiguration,
        Self::MutatingWebhookConfiguration,
        Self::CustomResourceDefinition,
    ];

    /// The resource, as in a rule of RBAC.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::ValidatingWebhookConfiguration => "validatingwebhookconfigurations",
            Self::MutatingWebhookConfiguration => "mutatingwebhookconfigurations",
            Self::CustomResourceDefinition => "customresourcedefinitions",
        }
    }

    /// The resource, or what kubectl takes for it: the singular.
    fn parse(word: &str) -> Option<Self> {
        let same = |kind: &Self| {
            let plural = kind.plural();
            word == plural || plural.strip_suffix('s') == Some(word)
        };
        Self::ALL.into_iter().find(same)
    }
}

impl fmt::Display for InjectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.plural())
    }
}

/// An object that gets the CA bundle: its kind and its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct InjectionTarget {
    kind: InjectionKind,
    name: String,
}

impl InjectionTarget {
    /// What kind of object it is.
    #[must_use]
    pub fn kind(&self) -> InjectionKind {
        self.kind
    }

    /// Its name. None of the kinds is in a namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for InjectionTarget {
    type Err = InjectionError;

    fn from_str(text: &str) -> Result<Self, InjectionError> {
        let (kind, name) = text.split_once('/').unwrap_or((text, ""));
        let kind = InjectionKind::parse(&kind.to_ascii_lowercase())
            .ok_or_else(|| InjectionError::Kind(text.to_owned()))?;
        if !is_name(name) {
            return Err(InjectionError::Name(text.to_owned(), kind));
        }
        Ok(Self {
            kind,
            name: name.to_owned(),
        })
    }
}

impl TryFrom<String> for InjectionTarget {
    type Error = InjectionError;

    fn try_from(text: String) -> Result<Self, InjectionError> {
        text.parse()
    }
}

impl From<InjectionTarget> for String {
    fn from(target: InjectionTarget) -> Self {
        target.to_string()
    }
}

impl fmt::Display for InjectionTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_defaults_are_in_range() {
        assert!(OVERLAP_SECONDS_RANGE.contains(&OVERLAP_SECONDS_DEFAULT));
        assert!(CA_DAYS_RANGE.contains(&CA_DAYS_DEFAULT));
        assert!(SERVING_DAYS_RANGE.contains(&SERVING_DAYS_DEFAULT));
    }

    #[track_caller]
    fn check_target(text: &str, expected: Result<&str, &InjectionError>) {
        let parsed = text.parse::<InjectionTarget>().map(String::from);
        assert_eq!(parsed.as_deref(), expected);
    }

    #[test]
    fn injection_target_parses_kind_and_name() {
        for text in [
            "validatingwebhookconfigurations/lockkeeper",
            "mutatingwebhookconfigurations/a.b",
            "customresourcedefinitions/workloads.lockkeeper.dev",
        ] {
            check_target(text, Ok(text));
        }
        let plural = "validatingwebhookconfigurations/a";
        check_target("validatingwebhookconfiguration/a", Ok(plural));
        check_target("ValidatingWebhookConfiguration/a", Ok(plural));
        for text in ["", "a", "/a", "deployments/a", "secrets/a", "s/a"] {
            check_target(text, Err(&InjectionError::Kind(text.to_owned())));
        }
        let kind = InjectionKind::CustomResourceDefinition;
        for text in [
            "customresourcedefinitions",
            "customresourcedefinitions/",
            "customresourcedefinitions/A",
            "customresourcedefinitions/a/b",
        ] {
            let expected = InjectionError::Name(text.to_owned(), kind);
            check_target(text, Err(&expected));
        }
    }
}

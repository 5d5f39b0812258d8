//! Certificates that all replicas share: a Secret, and the objects that get its CA bundle.

use super::bounded::deserialize_in_range;
use super::namespaced_name::NamespacedName;
use crate::names::is_dns_subdomain;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The default time for a certificate change to reach all replicas and API servers, in seconds. Watches
/// deliver it within seconds; ten minutes allow for outages.
pub const OVERLAP_SECONDS_DEFAULT: u64 = 600;

/// The accepted overlaps, in seconds. With more than an hour, a CA with a lifetime of one day could expire
/// before its successor is in use.
pub const OVERLAP_SECONDS_RANGE: RangeInclusive<u64> = 1..=3600;

/// The default lifetime of a CA, in days: ten years.
pub const CA_DAYS_DEFAULT: u64 = 3650;

/// The accepted lifetimes of a CA, in days.
pub const CA_DAYS_RANGE: RangeInclusive<u64> = 1..=36_500;

/// The default lifetime of a serving certificate, in days.
pub const SERVING_DAYS_DEFAULT: u64 = 365;

/// The accepted lifetimes of a serving certificate, in days.
pub const SERVING_DAYS_RANGE: RangeInclusive<u64> = 1..=3650;

/// Certificates in a Secret that all replicas share.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CertificateSettings {
    /// The Secret with the CA and the serving certificate, as `namespace/name`. The server creates its
    /// contents, renews them and rotates the CA. Unset: certificates come from files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub secret: Option<NamespacedName>,
    /// Objects that get the CA bundle of the Secret, as `kind/name`, such as
    /// `customresourcedefinitions/workloads.lockkeeper.dev`. Missing objects are injected once they exist.
    pub inject: Vec<InjectionTarget>,
    /// How long each step of a rotation waits for all replicas and API servers to pick up the change, in
    /// seconds, from 1 to 3600. Use a short time only for testing.
    #[serde(deserialize_with = "overlap_seconds")]
    #[schemars(range(min = *OVERLAP_SECONDS_RANGE.start(), max = *OVERLAP_SECONDS_RANGE.end()))]
    pub overlap_seconds: u64,
    /// Lifetime of a new CA, in days, from 1 to 36500.
    #[serde(deserialize_with = "ca_days")]
    #[schemars(range(min = *CA_DAYS_RANGE.start(), max = *CA_DAYS_RANGE.end()))]
    pub ca_days: u64,
    /// Lifetime of a new serving certificate, in days, from 1 to 3650. It never outlives its CA.
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

/// A text that does not name an object with a CA bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectionError {
    /// The kind has no CA bundle.
    #[error(
        "{0:?} is not a kind with a CA bundle; give validatingwebhookconfigurations/NAME, \
         mutatingwebhookconfigurations/NAME or customresourcedefinitions/NAME"
    )]
    Kind(String),
    /// The kind is valid, but the name is not.
    #[error("{0:?} does not name an object; give its kind and its name, as in {1}/lockkeeper")]
    Name(String, InjectionKind),
}

/// A kind with the CA bundle of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionKind {
    /// Each webhook entry gets the bundle.
    ValidatingWebhookConfiguration,
    /// Each webhook entry gets the bundle.
    MutatingWebhookConfiguration,
    /// The conversion webhook gets the bundle, if there is one.
    CustomResourceDefinition,
}

impl InjectionKind {
    const ALL: [Self; 3] = [
        Self::ValidatingWebhookConfiguration,
        Self::MutatingWebhookConfiguration,
        Self::CustomResourceDefinition,
    ];

    /// The resource name, as in RBAC rules.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::ValidatingWebhookConfiguration => "validatingwebhookconfigurations",
            Self::MutatingWebhookConfiguration => "mutatingwebhookconfigurations",
            Self::CustomResourceDefinition => "customresourcedefinitions",
        }
    }

    /// Parses the resource name, or its singular as kubectl does.
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
    /// The kind of the object.
    #[must_use]
    pub fn kind(&self) -> InjectionKind {
        self.kind
    }

    /// The name of the object; all kinds are cluster-scoped.
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
        if !is_dns_subdomain(name) {
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

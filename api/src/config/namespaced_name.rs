//! Names of namespaced objects, as `namespace/name`.

use crate::names::is_dns_subdomain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A text that is not a valid `namespace/name`: the namespace is missing, or one of the parts is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not of the form namespace/name; \
     give both, such as lockkeeper-system/lockkeeper-tls"
)]
pub struct NameError(String);

/// An object in a namespace, such as `lockkeeper-system/lockkeeper-tls`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct NamespacedName {
    namespace: String,
    name: String,
}

impl NamespacedName {
    /// A built-in default, checked by a test.
    pub(super) fn from_default(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name within the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for NamespacedName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.split_once('/') {
            Some((namespace, name)) if is_dns_subdomain(namespace) && is_dns_subdomain(name) => {
                Ok(Self {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err(NameError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for NamespacedName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<NamespacedName> for String {
    fn from(name: NamespacedName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaced_name_parses_namespace_and_name() {
        for text in ["lockkeeper-system/lockkeeper-tls", "a/b.c-d.e"] {
            let parsed = text.parse::<NamespacedName>().map(String::from);
            assert_eq!(parsed.as_deref(), Ok(text));
        }
        let long = format!("a/{}", "b".repeat(254));
        for text in [
            "", "a", "/", "a/", "/b", "a/b/c", "A/b", "a/b_c", "a/-b", "a/b-", "a/b..c", "a/ b",
            &long,
        ] {
            let expected = Err(NameError(text.to_owned()));
            assert_eq!(text.parse::<NamespacedName>(), expected);
        }
    }
}

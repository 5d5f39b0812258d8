//! The Secret as it was read, and its problems.

use super::annotations::{RENEW_ANNOTATION, RENEW_CA};
use super::contents::{SecretContents, SecretContentsError};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use lockkeeper_api::config::NamespacedName;
use std::sync::Arc;

/// A Secret, or its absence, with the parsed contents.
pub(super) struct ObservedSecret {
    secret: Option<Secret>,
    contents: Result<Option<Arc<SecretContents>>, SecretContentsError>,
}

impl ObservedSecret {
    /// Parses the Secret. Contents that equal `held` share its memory.
    pub(super) fn new(secret: Option<Secret>, held: Option<&Arc<SecretContents>>) -> Self {
        let data = secret.as_ref().and_then(|secret| secret.data.as_ref());
        let contents = data.map_or(Ok(None), SecretContents::read);
        let contents = contents.map(|contents| {
            contents.map(|new| match held {
                Some(held) if **held == new => Arc::clone(held),
                _ => Arc::new(new),
            })
        });
        Self { secret, contents }
    }

    /// Returns the Secret itself.
    pub(super) fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// Returns its contents, if they are valid.
    pub(super) fn valid_contents(&self) -> Option<&Arc<SecretContents>> {
        self.contents.as_ref().ok()?.as_ref()
    }

    /// Returns true if its contents are invalid.
    pub(super) fn is_invalid(&self) -> bool {
        self.contents.is_err()
    }

    /// Returns true if this is a later version of the same object. Versions that are no numbers are not newer.
    pub(super) fn is_newer_than(&self, other: Option<&Secret>) -> bool {
        let version = |metadata: &ObjectMeta| metadata.resource_version.as_ref()?.parse().ok();
        let (Some(this), Some(other)) = (&self.secret, other) else {
            return false;
        };
        let versions: (Option<u64>, Option<u64>) =
            (version(&this.metadata), version(&other.metadata));
        match versions {
            // Kubernetes guarantees comparable versions since 1.35. Another uid is a new object.
            (Some(a), Some(b)) => this.metadata.uid == other.metadata.uid && a > b,
            _ => false,
        }
    }

    /// Returns true if the annotation requests a new CA.
    pub(super) fn requests_renewal(&self) -> bool {
        let annotations = self.secret.as_ref();
        let annotations = annotations.and_then(|secret| secret.metadata.annotations.as_ref());
        let requested = annotations.and_then(|all| all.get(RENEW_ANNOTATION));
        requested.is_some_and(|value| value == RENEW_CA)
    }

    /// Returns the problem with the Secret and its remedy. An empty Secret is a problem only if this
    /// replica `is_held`.
    pub(super) fn problem(&self, name: &NamespacedName, is_held: bool) -> Option<String> {
        let error = match (&self.contents, &self.secret) {
            (Err(error), _) => error,
            (Ok(None), None) if is_held => return Some(format!("Secret {name} was deleted")),
            (Ok(None), Some(_)) if is_held => return Some(format!("Secret {name} was emptied")),
            _ => return None,
        };
        let (namespace, secret) = (name.namespace(), name.name());
        Some(format!(
            "cannot use Secret {name}: {error}; correct it, or remove its data, and a new CA \
             is made: kubectl -n {namespace} patch secret {secret} --type=merge -p '{{\"data\":null}}'"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(version: &str, uid: &str) -> Secret {
        let mut secret = Secret::default();
        secret.metadata.resource_version = Some(version.to_owned());
        secret.metadata.uid = Some(uid.to_owned());
        secret
    }

    #[track_caller]
    fn check(version: &str, other: &Secret, expected: bool) {
        let seen = ObservedSecret::new(Some(secret(version, "a")), None);
        assert_eq!(seen.is_newer_than(Some(other)), expected);
    }

    #[test]
    fn newer_resource_version_of_same_object_wins() {
        check("10", &secret("9", "a"), true);
        check("9", &secret("10", "a"), false);
        check("9", &secret("9", "a"), false);
        check("10", &secret("9", "made again"), false);
        check("x", &secret("9", "a"), false);
        assert!(!ObservedSecret::new(Some(secret("9", "a")), None).is_newer_than(None));
        assert!(!ObservedSecret::new(None, None).is_newer_than(Some(&secret("9", "a"))));
    }
}

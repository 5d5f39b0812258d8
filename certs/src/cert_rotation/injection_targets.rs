//! The objects that get the CA bundle, as this replica knows them.

use super::ca_injection;
use super::secret_store::{self, StoreError};
use crate::tls::LastFailure;
use kube::core::DynamicObject;
use kube::{Api, Client};
use lockkeeper_api::config::InjectionTarget;
use rustls::pki_types::CertificateDer;
use tracing::{info, warn};

/// What is known of an object.
#[derive(Debug)]
enum ObservedTarget {
    /// Nothing yet.
    Unread,
    Absent,
    Present(Box<DynamicObject>),
}

/// One object that gets the bundle.
pub(super) struct TrackedTarget {
    reference: InjectionTarget,
    api: Api<DynamicObject>,
    observed: ObservedTarget,
    /// Why it could not be read or changed the last time.
    last_error: Option<String>,
    logged: LastFailure,
    was_externally_managed: bool,
}

impl TrackedTarget {
    pub(super) fn new(client: &Client, reference: InjectionTarget) -> Self {
        Self {
            api: secret_store::injection_api(client, reference.kind()),
            reference,
            observed: ObservedTarget::Unread,
            last_error: None,
            logged: LastFailure::default(),
            was_externally_managed: false,
        }
    }

    pub(super) fn api(&self) -> Api<DynamicObject> {
        self.api.clone()
    }

    pub(super) fn name(&self) -> &str {
        self.reference.name()
    }

    /// Takes what was read.
    pub(super) fn observe(&mut self, object: Option<DynamicObject>) {
        self.last_error = None;
        self.logged.clear();
        let is_left = object
            .as_ref()
            .is_some_and(ca_injection::is_managed_externally);
        if is_left && !self.was_externally_managed {
            let target = self.reference.to_string();
            info!(target, "left to cert-manager, as its annotation says");
        }
        self.was_externally_managed = is_left;
        self.observed = object.map_or(ObservedTarget::Absent, |object| {
            ObservedTarget::Present(Box::new(object))
        });
    }

    /// Takes that it could not be read or changed.
    pub(super) fn record_error(&mut self, doing: &str, verbs: &str, reason: &str) {
        let target = &self.reference;
        let kind = target.kind();
        let trouble =
            format!("cannot {doing} {target}: {reason}; does the account have {verbs} on {kind}?");
        if self.logged.is_new(&trouble) {
            warn!(trouble, "the CA bundle may not be where it belongs");
        }
        self.last_error = Some(trouble);
    }

    /// The object, if it is there and the bundle in it is ours to keep.
    fn managed_object(&self) -> Option<&DynamicObject> {
        match &self.observed {
            ObservedTarget::Present(object) if !self.was_externally_managed => Some(object),
            _ => None,
        }
    }

    /// Whether it is known, and trusts this CA unless it is absent or left to others.
    pub(super) fn trusts_ca(&self, ca: &CertificateDer<'_>) -> bool {
        if matches!(self.observed, ObservedTarget::Unread) {
            return false;
        }
        let kind = self.reference.kind();
        self.managed_object()
            .is_none_or(|object| ca_injection::trusts_ca(kind, &object.data, ca))
    }

    /// Why the server should not be sent requests, as far as this object tells.
    pub(super) fn problem(&self, signer: &CertificateDer<'_>) -> Option<String> {
        if self.trusts_ca(signer) {
            return None;
        }
        let target = &self.reference;
        Some(
            self.last_error
                .clone()
                .unwrap_or_else(|| match self.observed {
                    ObservedTarget::Unread => format!("{target} has not been read yet"),
                    _ => format!("{target} does not trust the serving certificate yet"),
                }),
        )
    }

    /// Why it could not be read or changed the last time.
    pub(super) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Whether an entry has another bundle than this one.
    pub(super) fn needs_bundle(&self, bundle: &str) -> bool {
        let kind = self.reference.kind();
        self.managed_object()
            .is_some_and(|object| ca_injection::bundle_patch(kind, object, bundle).is_some())
    }

    /// Gives every entry this bundle, which must have been read from the Secret after the object
    /// was: then no older bundle ever takes the place of a newer one. True if it is done; false if
    /// somebody else was first, and the object was read again.
    pub(super) async fn inject(&mut self, bundle: &str) -> Result<bool, ()> {
        let kind = self.reference.kind();
        let patch = self
            .managed_object()
            .and_then(|object| ca_injection::bundle_patch(kind, object, bundle));
        let Some(patch) = patch else {
            return Ok(true);
        };
        match secret_store::patch_target(&self.api, self.reference.name(), patch).await {
            Ok(object) => {
                let target = self.reference.to_string();
                info!(target, "the CA bundle was put in");
                self.observe(Some(object));
                Ok(true)
            }
            Err(StoreError::Conflict) => {
                match secret_store::read_target(&self.api, self.reference.name()).await {
                    Ok(object) => {
                        self.observe(object);
                        Ok(false)
                    }
                    Err(StoreError::Forbidden(reason) | StoreError::Failed(reason)) => {
                        self.record_error("read", "get, list and watch", &reason);
                        Err(())
                    }
                    Err(StoreError::Conflict) => Ok(false),
                }
            }
            Err(StoreError::Forbidden(reason) | StoreError::Failed(reason)) => {
                self.record_error("change", "patch", &reason);
                Err(())
            }
        }
    }
}

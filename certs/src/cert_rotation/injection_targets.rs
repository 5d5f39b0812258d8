//! The targets of CA injection, as this replica observed them.

use super::ca_injection;
use super::secret_store::{self, StoreError};
use crate::tls::LastFailure;
use kube::core::DynamicObject;
use kube::{Api, Client};
use lockkeeper_api::config::InjectionTarget;
use rustls::pki_types::CertificateDer;
use tracing::{info, warn};

/// The observed state of a target.
#[derive(Debug)]
enum ObservedTarget {
    /// Not read yet.
    Unread,
    Absent,
    Present(Box<DynamicObject>),
}

/// One target of CA injection.
pub(super) struct TrackedTarget {
    reference: InjectionTarget,
    api: Api<DynamicObject>,
    observed: ObservedTarget,
    /// The error of the last read or write.
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

    /// Sets the observed object.
    pub(super) fn observe(&mut self, object: Option<DynamicObject>) {
        self.last_error = None;
        self.logged.clear();
        let is_left = object
            .as_ref()
            .is_some_and(ca_injection::is_managed_externally);
        if is_left && !self.was_externally_managed {
            let target = self.reference.to_string();
            info!(target, "CA injection is left to cert-manager, as annotated");
        }
        self.was_externally_managed = is_left;
        self.observed = object.map_or(ObservedTarget::Absent, |object| {
            ObservedTarget::Present(Box::new(object))
        });
    }

    /// Sets the error of a read or write.
    pub(super) fn record_error(&mut self, doing: &str, verbs: &str, reason: &str) {
        let target = &self.reference;
        let kind = target.kind();
        let trouble =
            format!("cannot {doing} {target}: {reason}; does the account have {verbs} on {kind}?");
        if self.logged.is_new(&trouble) {
            warn!(trouble, "CA injection failed");
        }
        self.last_error = Some(trouble);
    }

    /// Returns the object, if it exists and lockkeeper injects its bundle.
    fn managed_object(&self) -> Option<&DynamicObject> {
        match &self.observed {
            ObservedTarget::Present(object) if !self.was_externally_managed => Some(object),
            _ => None,
        }
    }

    /// Returns true if the target was read, and trusts this CA unless it is absent or managed by
    /// cert-manager.
    pub(super) fn trusts_ca(&self, ca: &CertificateDer<'_>) -> bool {
        if matches!(self.observed, ObservedTarget::Unread) {
            return false;
        }
        let kind = self.reference.kind();
        // cert-manager is responsible for its targets, and no API server calls an absent one.
        self.managed_object()
            .is_none_or(|object| ca_injection::trusts_ca(kind, &object.data, ca))
    }

    /// Returns why this target makes the server unready, if it does.
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

    /// Returns the error of the last read or write.
    pub(super) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Returns true if a webhook of the target has another bundle.
    pub(super) fn needs_bundle(&self, bundle: &str) -> bool {
        let kind = self.reference.kind();
        self.managed_object()
            .is_some_and(|object| ca_injection::bundle_patch(kind, object, bundle).is_some())
    }

    /// Injects this bundle into every webhook. The bundle must have been read from the Secret after
    /// the target: then an older bundle never replaces a newer one. Returns false if another client
    /// was faster, and the target was read again.
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
                info!(target, "injected the CA bundle");
                self.observe(Some(object));
                Ok(true)
            }
            Err(StoreError::Conflict) => {
                // The next attempt needs the current version, which the watch may deliver later.
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

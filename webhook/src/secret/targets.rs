//! The objects that get the CA bundle, as this replica knows them.

use kube::core::DynamicObject;
use kube::{Api, Client};
use lockkeeper_api::config::InjectionTarget;
use rustls::pki_types::CertificateDer;
use tracing::{info, warn};

use super::cluster::{self, Refusal};
use super::injection;
use crate::tls::LastFailure;

/// What is known of an object.
#[derive(Debug)]
enum Known {
    /// Nothing yet.
    Unread,
    Absent,
    Present(Box<DynamicObject>),
}

/// One object that gets the bundle.
pub(super) struct Target {
    reference: InjectionTarget,
    api: Api<DynamicObject>,
    known: Known,
    /// Why it could not be read or changed the last time.
    trouble: Option<String>,
    logged: LastFailure,
    was_left: bool,
}

impl Target {
    pub(super) fn new(client: &Client, reference: InjectionTarget) -> Self {
        Self {
            api: cluster::objects(client, reference.kind()),
            reference,
            known: Known::Unread,
            trouble: None,
            logged: LastFailure::default(),
            was_left: false,
        }
    }

    pub(super) fn api(&self) -> Api<DynamicObject> {
        self.api.clone()
    }

    pub(super) fn name(&self) -> &str {
        self.reference.name()
    }

    /// Takes what was read.
    pub(super) fn take(&mut self, object: Option<DynamicObject>) {
        self.trouble = None;
        self.logged.clear();
        let is_left = object.as_ref().is_some_and(injection::is_left_to_others);
        if is_left && !self.was_left {
            let target = self.reference.to_string();
            info!(target, "left to cert-manager, as its annotation says");
        }
        self.was_left = is_left;
        self.known = object.map_or(Known::Absent, |object| Known::Present(Box::new(object)));
    }

    /// Takes that it could not be read or changed.
    pub(super) fn fail(&mut self, doing: &str, verbs: &str, reason: &str) {
        let target = &self.reference;
        let kind = target.kind();
        let trouble =
            format!("cannot {doing} {target}: {reason}; does the account have {verbs} on {kind}?");
        if self.logged.is_new(&trouble) {
            warn!(trouble, "the CA bundle may not be where it belongs");
        }
        self.trouble = Some(trouble);
    }

    /// The object, if it is there and the bundle in it is ours to keep.
    fn ours(&self) -> Option<&DynamicObject> {
        match &self.known {
            Known::Present(object) if !self.was_left => Some(object),
            _ => None,
        }
    }

    /// Whether it is known, and trusts this CA unless it is absent or left to others.
    pub(super) fn trusts(&self, ca: &CertificateDer<'_>) -> bool {
        if matches!(self.known, Known::Unread) {
            return false;
        }
        let kind = self.reference.kind();
        self.ours()
            .is_none_or(|object| injection::trusts(kind, &object.data, ca))
    }

    /// Why the server should not be sent requests, as far as this object tells.
    pub(super) fn problem(&self, signer: &CertificateDer<'_>) -> Option<String> {
        if self.trusts(signer) {
            return None;
        }
        let target = &self.reference;
        Some(self.trouble.clone().unwrap_or_else(|| match self.known {
            Known::Unread => format!("{target} has not been read yet"),
            _ => format!("{target} does not trust the serving certificate yet"),
        }))
    }

    /// Why it could not be read or changed the last time.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Whether an entry has another bundle than this one.
    pub(super) fn lacks(&self, bundle: &str) -> bool {
        let kind = self.reference.kind();
        self.ours()
            .is_some_and(|object| injection::patch(kind, object, bundle).is_some())
    }

    /// Gives every entry this bundle, which must have been read from the Secret after the object
    /// was: then no older bundle ever takes the place of a newer one. True if it is done; false if
    /// somebody else was first, and the object was read again.
    pub(super) async fn inject(&mut self, bundle: &str) -> Result<bool, ()> {
        let kind = self.reference.kind();
        let patch = self
            .ours()
            .and_then(|object| injection::patch(kind, object, bundle));
        let Some(patch) = patch else {
            return Ok(true);
        };
        match cluster::change(&self.api, self.reference.name(), patch).await {
            Ok(object) => {
                let target = self.reference.to_string();
                info!(target, "the CA bundle was put in");
                self.take(Some(object));
                Ok(true)
            }
            Err(Refusal::Outrun) => match cluster::read(&self.api, self.reference.name()).await {
                Ok(object) => {
                    self.take(object);
                    Ok(false)
                }
                Err(Refusal::Forbidden(reason) | Refusal::Failed(reason)) => {
                    self.fail("read", "get, list and watch", &reason);
                    Err(())
                }
                Err(Refusal::Outrun) => Ok(false),
            },
            Err(Refusal::Forbidden(reason) | Refusal::Failed(reason)) => {
                self.fail("change", "patch", &reason);
                Err(())
            }
        }
    }
}

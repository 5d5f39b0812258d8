//! Requests to the API server. Each has a timeout, and a failed write may have succeeded: the object is
//! always read again.

use super::annotations::RENEW_ANNOTATION;
use super::contents::SecretContents;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Api, Client};
use lockkeeper_api::config::{InjectionKind, NamespacedName};
use lockkeeper_kube_support::error_chain::ErrorChain;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Longest for one request, in seconds.
const REQUEST_TIMEOUT_S: u64 = 10;

/// The field manager of writes, for `kubectl get --show-managed-fields`.
const FIELD_MANAGER: &str = "lockkeeper";

/// A Secret with a certificate and its key (`kubernetes.io/tls`).
const SECRET_TYPE: &str = "kubernetes.io/tls";

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoreError {
    /// Another client was faster, or the object was deleted: read again.
    Conflict,
    /// The account has no permission.
    Forbidden(String),
    /// Another error.
    Failed(String),
}

/// The Secret at the API server.
pub(super) struct SecretStore {
    secrets: Api<Secret>,
    name: String,
}

impl SecretStore {
    pub(super) fn new(client: &Client, secret: &NamespacedName) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), secret.namespace()),
            name: secret.name().to_owned(),
        }
    }

    pub(super) fn api(&self) -> Api<Secret> {
        self.secrets.clone()
    }

    /// Reads the Secret; `None` if it does not exist.
    pub(super) async fn read(&self) -> Result<Option<Secret>, StoreError> {
        with_timeout(self.secrets.get_opt(&self.name)).await
    }

    /// Creates the Secret with these contents.
    pub(super) async fn create(&self, contents: &SecretContents) -> Result<Secret, StoreError> {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            data: Some(contents.data()),
            type_: Some(SECRET_TYPE.to_owned()),
            ..Secret::default()
        };
        let by = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        with_timeout(self.secrets.create(&by, &secret)).await
    }

    /// Replaces the contents of the Secret if it still is `before`. Also removes the request for a new
    /// CA if it `is_granted`.
    pub(super) async fn replace(
        &self,
        before: &Secret,
        contents: &SecretContents,
        is_granted: bool,
    ) -> Result<Secret, StoreError> {
        // The API server rejects the patch with 409 if the Secret has changed since.
        let mut metadata = json!({"resourceVersion": before.metadata.resource_version});
        if is_granted && let Some(metadata) = metadata.as_object_mut() {
            // Null removes the key in a merge patch (RFC 7396).
            let annotations = json!({RENEW_ANNOTATION: null});
            metadata.insert("annotations".to_owned(), annotations);
        }
        let patch = Patch::Merge(json!({"metadata": metadata, "data": contents.data()}));
        with_timeout(self.secrets.patch(&self.name, &patch_params(), &patch)).await
    }
}

/// Returns the API of the objects of one kind that get a bundle.
pub(super) fn injection_api(client: &Client, kind: InjectionKind) -> Api<DynamicObject> {
    let resource = match kind {
        InjectionKind::ValidatingWebhookConfiguration => {
            ApiResource::erase::<ValidatingWebhookConfiguration>(&())
        }
        InjectionKind::MutatingWebhookConfiguration => {
            ApiResource::erase::<MutatingWebhookConfiguration>(&())
        }
        InjectionKind::CustomResourceDefinition => {
            ApiResource::erase::<CustomResourceDefinition>(&())
        }
    };
    Api::all_with(client.clone(), &resource)
}

/// Reads a target; `None` if it does not exist.
pub(super) async fn read_target(
    api: &Api<DynamicObject>,
    name: &str,
) -> Result<Option<DynamicObject>, StoreError> {
    with_timeout(api.get_opt(name)).await
}

/// Patches a target, if it still has the resource version of the patch.
pub(super) async fn patch_target(
    api: &Api<DynamicObject>,
    name: &str,
    patch: Value,
) -> Result<DynamicObject, StoreError> {
    with_timeout(api.patch(name, &patch_params(), &Patch::Merge(patch))).await
}

fn patch_params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

async fn with_timeout<T>(
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, StoreError> {
    let limit = Duration::from_secs(REQUEST_TIMEOUT_S);
    match timeout(limit, answer).await {
        Ok(Ok(object)) => Ok(object),
        // An object that was deleted or created meanwhile must be read again too.
        Ok(Err(kube::Error::Api(status)))
            if status.is_conflict() || status.is_already_exists() || status.is_not_found() =>
        {
            Err(StoreError::Conflict)
        }
        Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => {
            Err(StoreError::Forbidden(status.message))
        }
        Ok(Err(error)) => Err(StoreError::Failed(error_reason(&error))),
        Err(_) => Err(StoreError::Failed(format!(
            "no response within {REQUEST_TIMEOUT_S} s"
        ))),
    }
}

/// Returns the reason for which a watch failed.
pub(super) fn watch_reason(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error_reason(error),
        error => ErrorChain(error).to_string(),
    }
}

/// Returns the reason of an error without the content of the response.
fn error_reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        // Its text may quote the Secret, and so a key.
        kube::Error::SerdeError(_) => "the response has an unexpected form".to_owned(),
        error => ErrorChain(error).to_string(),
    }
}

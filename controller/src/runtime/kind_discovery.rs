//! Discovery of kinds that a cluster may lack, and of those that are installed later.

use super::watch::Watches;
use crate::{Input, Kind};
use std::time::Duration;
use tokio::time::timeout;

/// How often discovery looks for further kinds.
const KIND_DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// The pause before discovery is tried again as long as it has not responded.
const KIND_DISCOVERY_RETRY: Duration = Duration::from_secs(1);

/// Watches a kind as soon as the cluster has it, until `stopped` resolves.
pub(super) fn watch_when_installed(
    watches: Watches,
    kind: Kind,
    stopped: impl Future<Output = ()> + Send + 'static,
) {
    let Some(resource) = watches.resource(kind) else {
        return;
    };
    tokio::spawn(async move {
        let mut stopped = Box::pin(stopped);
        let mut is_known_missing = false;
        while !watches.inputs.is_closed() {
            let request = watches
                .client
                .list_api_group_resources(&resource.api_version);
            let response = timeout(KIND_DISCOVERY_INTERVAL, request).await;
            let is_installed = match &response {
                Ok(Ok(list)) => Some(list.resources.iter().any(|it| it.name == resource.plural)),
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => Some(false),
                _ => None,
            };
            if is_installed == Some(true) {
                tracing::info!(kind = %resource.kind, "kind found; watching it");
                // Before the watch, so that no decision is written until its list is complete. A closed
                // channel means that the controller has stopped.
                watches.send(Input::KindAvailable(kind)).await;
                watches.start_until(kind, stopped);
                return;
            }
            if is_installed == Some(false) && !is_known_missing {
                is_known_missing = true;
                watches.send(Input::KindMissing(kind)).await;
            }
            // Before the first response no decision is written.
            let pause = if is_known_missing {
                KIND_DISCOVERY_INTERVAL
            } else {
                KIND_DISCOVERY_RETRY
            };
            if timeout(pause, &mut stopped).await.is_ok() {
                return;
            }
        }
    });
}

//! The connections of the controller and of observe mode: to the API server, and the port of probes.

use crate::kubeconfig;
use anyhow::{Context, Error, anyhow};
use lockkeeper_api::config::OptionalListen;
use lockkeeper_kube_support::api_client::ApiClients;
use std::path::PathBuf;
use tokio::net::TcpListener;

/// Binds the port of probes, if there is one.
pub(crate) async fn bind(listen: &OptionalListen) -> Result<Option<TcpListener>, Error> {
    let OptionalListen::At(address) = listen else {
        return Ok(None);
    };
    let bound = TcpListener::bind(address.as_str()).await;
    let remedy = "set another --control-listen, or off";
    let bound = bound.with_context(|| format!("cannot listen on {address}; {remedy}"))?;
    Ok(Some(bound))
}

/// The clients of the cluster of a kubeconfig, or of the one that the process runs in.
pub(crate) async fn clients(kubeconfig: Option<PathBuf>) -> Result<ApiClients, Error> {
    // As kubectl: a file in the environment or the home directory, then the pod's service account.
    if kubeconfig.is_some() || kubeconfig::has_default() {
        return kubeconfig::clients(kubeconfig.as_deref()).await;
    }
    let config = kube::Config::incluster().map_err(|error| {
        anyhow!("no cluster: set --kubeconfig or KUBECONFIG, or run in a pod ({error})")
    })?;
    Ok(ApiClients::new(config)?)
}

//! Builds a client from a kubeconfig.

use anyhow::{Error, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use lockkeeper_check::yaml::place_and_message;
use std::path::Path;

/// Builds a client for the current context of the file. An error names the file and the problem.
pub(crate) async fn client(path: &Path) -> Result<Client, Error> {
    client_with_context(path, None).await
}

/// Builds a client for a context of the file; for the current one if it is `None`.
pub(crate) async fn client_with_context(
    path: &Path,
    context: Option<&str>,
) -> Result<Client, Error> {
    let explain = |error| match error {
        KubeconfigError::LoadContext(name) if context.is_some() => anyhow!(
            "{} has no context {name:?}; kubectl config get-contexts lists them",
            path.display()
        ),
        error => describe_error(path, &error),
    };
    let read = Kubeconfig::read_from(path).map_err(explain)?;
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(read, &options).await;
    let config = config.map_err(explain)?;
    Client::try_from(config).map_err(|error| anyhow!("cannot use {}: {error}", path.display()))
}

/// Adds the file, which kube's messages do not always name. They contain their causes already.
fn describe_error(path: &Path, error: &KubeconfigError) -> Error {
    let shown = path.display();
    match error {
        KubeconfigError::ReadConfig(reason, _) => {
            anyhow!(
                "cannot read {shown}; check the path of --kubeconfig and its permissions: {reason}"
            )
        }
        KubeconfigError::Parse(error) => {
            let (place, message) = place_and_message(error);
            anyhow!("{shown}{place}: {message}")
        }
        KubeconfigError::CurrentContextNotSet => anyhow!(
            "{shown} has no current-context; is it a kubeconfig? kubectl config use-context sets one"
        ),
        KubeconfigError::LoadContext(name) => {
            anyhow!(
                "{shown} has no context {name:?}, which is its current-context; set an existing one"
            )
        }
        other => anyhow!("cannot use {shown}: {other}"),
    }
}

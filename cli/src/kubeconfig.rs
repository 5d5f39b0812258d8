//! A client of the API server that a kubeconfig names.

use anyhow::{Error, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use lockkeeper_check::yaml::place_and_message;
use std::path::Path;

/// Reads the file, of which the current context is used. An error names it, and says what is wrong with it.
pub(crate) async fn client(path: &Path) -> Result<Client, Error> {
    client_with_context(path, None).await
}

/// The same for a context of the file, by its name.
pub(crate) async fn client_with_context(
    path: &Path,
    context: Option<&str>,
) -> Result<Client, Error> {
    let explain = |error| match error {
        KubeconfigError::LoadContext(name) if context.is_some() => anyhow!(
            "{} has no context {name:?}; kubectl config get-contexts lists those it has",
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

/// kube's texts already hold their causes, and do not always name the file.
fn describe_error(path: &Path, error: &KubeconfigError) -> Error {
    let shown = path.display();
    match error {
        KubeconfigError::ReadConfig(reason, _) => {
            anyhow!("cannot read {shown}; check the path of --kubeconfig and its rights: {reason}")
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
                "{shown} has no context {name:?}, which is its current-context; name one it has"
            )
        }
        other => anyhow!("cannot use {shown}: {other}"),
    }
}

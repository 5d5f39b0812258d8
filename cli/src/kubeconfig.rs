//! Builds a client from a kubeconfig.

use anyhow::{Error, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use lockkeeper_check::yaml::place_and_message;
use lockkeeper_kube_support::api_client::ApiClients;
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The environment variable with the kubeconfig files, as of kubectl.
const VARIABLE: &str = "KUBECONFIG";

/// The kubeconfig in the home directory, as of kubectl.
const IN_HOME: &str = ".kube/config";

/// What to do without a kubeconfig.
pub(crate) const MISSING: &str =
    "no kubeconfig: set --kubeconfig or KUBECONFIG, or create ~/.kube/config";

/// A client and the address of its API server.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The URL, for messages.
    pub(crate) address: String,
    /// The namespace of the context.
    pub(crate) namespace: String,
}

/// Reads the current context of the file, if it is given, so that an error is reported before anything starts. Connects
/// to no server, and runs no credential plugin.
pub(crate) fn validate(path: Option<&Path>) -> Result<(), Error> {
    if path.is_none() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(load(path, None)).map(drop)
}

/// Whether there is a kubeconfig in the environment or the home directory.
pub(crate) fn has_default() -> bool {
    !default_files().is_empty()
}

/// Whether the environment names a kubeconfig.
pub(crate) fn is_in_environment() -> bool {
    env::var_os(VARIABLE).is_some_and(|it| !it.is_empty())
}

/// Builds a client for a context; for the current one if it is `None`. Without a path, the files are those that kubectl
/// uses.
pub(crate) async fn connect(
    path: Option<&Path>,
    context: Option<&str>,
) -> Result<Connection, Error> {
    connect_as(path, context, None).await
}

/// Like [`connect`]; the requests impersonate an account, if one is given.
pub(crate) async fn connect_as(
    path: Option<&Path>,
    context: Option<&str>,
    account: Option<&str>,
) -> Result<Connection, Error> {
    let mut loaded = load(path, context).await?;
    if let Some(account) = account {
        loaded.config.auth_info.impersonate = Some(account.to_owned());
    }
    let address = loaded.config.cluster_url.to_string();
    let address = address.trim_end_matches('/').to_owned();
    let namespace = loaded.config.default_namespace.clone();
    let client = Client::try_from(loaded.config);
    let client =
        client.map_err(|error| anyhow!("{}: {error}{}", loaded.subject, loaded.plugins))?;
    Ok(Connection {
        client,
        address,
        namespace,
    })
}

/// The names of the contexts. Without a path, the files are those that kubectl uses.
pub(crate) fn context_names(path: Option<&Path>) -> Result<BTreeSet<String>, Error> {
    let files = path.map_or_else(default_files, |it| vec![it.to_owned()]);
    let contexts = read_merged(&files)?.contexts;
    Ok(contexts.into_iter().map(|it| it.name).collect())
}

/// Builds the clients of a process that runs for long, for the current context.
pub(crate) async fn clients(path: Option<&Path>) -> Result<ApiClients, Error> {
    let loaded = load(path, None).await?;
    ApiClients::new(loaded.config)
        .map_err(|error| anyhow!("{}: {error}{}", loaded.subject, loaded.plugins))
}

/// The configuration of a context, with texts for an error of the client.
struct LoadedConfig {
    config: Config,
    subject: String,
    plugins: String,
}

/// Whether there is no kubeconfig at all.
pub(crate) fn is_missing(path: Option<&Path>) -> bool {
    path.is_none() && default_files().is_empty()
}

async fn load(path: Option<&Path>, context: Option<&str>) -> Result<LoadedConfig, Error> {
    let files = match path {
        Some(path) => vec![path.to_owned()],
        None => default_files(),
    };
    let Some(first) = files.first() else {
        return Err(anyhow!("{MISSING}"));
    };
    let explain = |error| match error {
        KubeconfigError::LoadContext(name) if context.is_some() => anyhow!(
            "{} has no context {name:?}; kubectl config get-contexts lists them",
            first.display()
        ),
        error => describe_error(first, &error),
    };
    let read = read_merged(&files)?;
    let plugins = plugins(&read);
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(read, &options).await;
    Ok(LoadedConfig {
        config: config.map_err(explain)?,
        subject: format!("cannot use {}", first.display()),
        plugins,
    })
}

/// Reads kubeconfig files. What is in several of them is that of the first one.
fn read_merged(files: &[PathBuf]) -> Result<Kubeconfig, Error> {
    let mut read = Kubeconfig::default();
    for file in files {
        let next = Kubeconfig::read_from(file).map_err(|error| describe_error(file, &error))?;
        read = read
            .merge(next)
            .map_err(|error| describe_error(file, &error))?;
    }
    Ok(read)
}

/// The credential plugins of a kubeconfig, for the message when one of them fails.
fn plugins(config: &Kubeconfig) -> String {
    let users = config.auth_infos.iter();
    let plugins = users.filter_map(|it| it.auth_info.as_ref()?.exec.as_ref()?.command.as_deref());
    let plugins: Vec<&str> = plugins.collect();
    if plugins.is_empty() {
        return String::new();
    }
    format!("; its credential plugins are {}", plugins.join(", "))
}

/// The existing files that kubectl uses without flags. All files of the variable if none of them exists, so that reading
/// them reports it.
fn default_files() -> Vec<PathBuf> {
    files_of(env::var_os(VARIABLE).as_deref(), env::home_dir().as_deref())
}

fn files_of(variable: Option<&OsStr>, home: Option<&Path>) -> Vec<PathBuf> {
    let listed: Vec<PathBuf> = variable
        .map(|it| env::split_paths(it).collect::<Vec<_>>())
        .unwrap_or_default();
    let named: Vec<PathBuf> = listed
        .into_iter()
        .filter(|it| !it.as_os_str().is_empty())
        .collect();
    if named.is_empty() {
        let file = home.map(|it| it.join(IN_HOME));
        return file.filter(|it| it.exists()).into_iter().collect();
    }
    let existing: Vec<PathBuf> = named.iter().filter(|it| it.exists()).cloned().collect();
    if existing.is_empty() { named } else { existing }
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

#[cfg(test)]
mod tests {
    use super::{IN_HOME, files_of};
    use std::ffi::OsStr;
    use std::fs;
    use std::path::PathBuf;
    use tempfile::TempDir;

    #[test]
    fn files_of_prefers_variable_over_home() {
        let folder = TempDir::new().unwrap();
        let home = folder.path();
        assert!(files_of(None, Some(home)).is_empty());
        let in_home = home.join(IN_HOME);
        fs::create_dir_all(in_home.parent().unwrap()).unwrap();
        fs::write(&in_home, "").unwrap();
        let (one, missing) = (home.join("one"), home.join("missing"));
        fs::write(&one, "").unwrap();
        let files =
            |variable: &str| -> Vec<PathBuf> { files_of(Some(OsStr::new(variable)), Some(home)) };
        assert_eq!(files(""), std::slice::from_ref(&in_home));
        assert_eq!(files_of(None, Some(home)), [in_home]);
        let both = format!("{}::{}", missing.display(), one.display());
        assert_eq!(files(&both), [one]);
        assert_eq!(files(missing.to_str().unwrap()), [missing]);
    }
}

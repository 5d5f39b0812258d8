//! Completes the names of a cluster's objects on the command line of a shell.

use crate::kubeconfig::{self, connect_as};
use anyhow::Error;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::core::PartialObjectMeta;
use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime;
use tokio::time::timeout;

/// The longest time for an answer: the shell waits for it.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The most objects of a kind that are listed.
const OBJECTS_MAX: u32 = 500;

/// The versions of the kinds of queues and workloads, the preferred one first. The first that the cluster serves is used.
const QUEUE_VERSIONS: [&str; 3] = [
    "lockkeeper.dev/v1alpha1",
    "kueue.x-k8s.io/v1beta2",
    "kueue.x-k8s.io/v1beta1",
];

/// The prefixes of the argument of `stop` and `resume`, with kind, resource and whether it is namespaced.
const STOPPABLE_KINDS: [(&str, &str, &str, bool); 3] = [
    ("clusterqueue/", "ClusterQueue", "clusterqueues", false),
    ("localqueue/", "LocalQueue", "localqueues", true),
    ("workload/", "Workload", "workloads", true),
];

/// Completes Workloads, and the jobs that own them as `kind/name`.
pub(crate) fn workloads() -> ArgValueCompleter {
    completer(async |names, _| {
        let found = names
            .list(&QUEUE_VERSIONS, "Workload", "workloads", true)
            .await?;
        let jobs = found.iter().filter_map(|it| {
            let mut owners = it.owner_references.iter().flatten();
            let job = owners.find(|it| it.controller == Some(true))?;
            Some(format!("{}/{}", job.kind.to_lowercase(), job.name))
        });
        let own = found.iter().filter_map(|it| it.name.clone());
        Ok(own.chain(jobs).collect())
    })
}

/// Completes `clusterqueue/NAME`, `localqueue/NAME` and `workload/NAME`.
pub(crate) fn stoppable_objects() -> ArgValueCompleter {
    completer(async |names, current| {
        let mut found = BTreeSet::new();
        for (prefix, kind, plural, is_namespaced) in STOPPABLE_KINDS {
            if current.starts_with(prefix) {
                let objects = names
                    .list(&QUEUE_VERSIONS, kind, plural, is_namespaced)
                    .await?;
                let objects = objects.into_iter().filter_map(|it| it.name);
                found.extend(objects.map(|it| format!("{prefix}{it}")));
            } else {
                found.insert(prefix.to_owned());
            }
        }
        Ok(found)
    })
}

/// Completes namespaces.
pub(crate) fn namespaces() -> ArgValueCompleter {
    completer(async |names, _| {
        let found = names
            .list(&["v1"], "Namespace", "namespaces", false)
            .await?;
        Ok(found.into_iter().filter_map(|it| it.name).collect())
    })
}

/// Completes contexts of the kubeconfig, without a request.
pub(crate) fn contexts() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let flags = SourceFlags::of_command_line();
        let names = kubeconfig::context_names(flags.kubeconfig.as_deref());
        candidates(names.unwrap_or_default(), current)
    })
}

/// A completer that asks the cluster which the flags of the command line name. Without an answer there is nothing to
/// complete: an error would disturb the line that the user edits.
fn completer(
    list: impl AsyncFn(&ClusterNames, &str) -> Result<BTreeSet<String>, Error> + Send + Sync + 'static,
) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let flags = SourceFlags::of_command_line();
        let text = current.to_string_lossy();
        let names = blocking(async {
            let names = ClusterNames::connect(flags).await?;
            list(&names, &text).await
        });
        candidates(names.unwrap_or_default(), current)
    })
}

/// Runs a request until it ends or [`TIMEOUT`] has passed.
fn blocking<T>(request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { timeout(TIMEOUT, request).await? })
}

/// The names that start with what is typed.
fn candidates(names: BTreeSet<String>, current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let matching = names.into_iter().filter(|it| it.starts_with(&*current));
    matching.map(CompletionCandidate::new).collect()
}

/// The cluster, and the namespace of names without one.
struct ClusterNames {
    client: Client,
    namespace: String,
}

impl ClusterNames {
    async fn connect(flags: SourceFlags) -> Result<Self, Error> {
        if flags.has_files {
            return Err(Error::msg("the objects are those of files"));
        }
        let (file, context) = (flags.kubeconfig.as_deref(), flags.context.as_deref());
        let connection = connect_as(file, context, flags.account.as_deref()).await?;
        Ok(Self {
            client: connection.client,
            namespace: flags.namespace.unwrap_or(connection.namespace),
        })
    }

    /// The metadata of the objects of a kind, in the first version that the cluster serves.
    async fn list(
        &self,
        versions: &[&str],
        kind: &str,
        plural: &str,
        is_namespaced: bool,
    ) -> Result<Vec<ObjectMeta>, Error> {
        for version in versions {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let kind = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk_with_plural(&kind, plural);
            let api: Api<DynamicObject> = if is_namespaced {
                Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
            } else {
                Api::all_with(self.client.clone(), &resource)
            };
            match api
                .list_metadata(&ListParams::default().limit(OBJECTS_MAX))
                .await
            {
                Ok(found) => {
                    let metadata = |it: PartialObjectMeta<DynamicObject>| it.metadata;
                    return Ok(found.items.into_iter().map(metadata).collect());
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Vec::new())
    }
}

/// The flags on an incomplete command line that name the source of the objects.
#[derive(Debug, Default, PartialEq, Eq)]
struct SourceFlags {
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    account: Option<String>,
    namespace: Option<String>,
    /// Whether the objects are those of files.
    has_files: bool,
}

impl SourceFlags {
    /// The flags of the command line to complete. It follows `--` in the arguments of this process.
    fn of_command_line() -> Self {
        let words = env::args_os().skip_while(|it| it != "--").skip(1);
        Self::parse(words)
    }

    fn parse(words: impl Iterator<Item = OsString>) -> Self {
        let mut flags = Self::default();
        let mut words = words.filter_map(|it| it.into_string().ok());
        while let Some(word) = words.next() {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            let mut value = || value.clone().or_else(|| words.next());
            match flag.as_str() {
                "--kubeconfig" => flags.kubeconfig = value().map(PathBuf::from),
                "--context" => flags.context = value(),
                "--as" => flags.account = value(),
                "--namespace" | "-n" => flags.namespace = value(),
                "--dump" | "--scenario" => flags.has_files = true,
                _ => {}
            }
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::{SourceFlags, candidates};
    use clap_complete::engine::CompletionCandidate;
    use std::collections::BTreeSet;
    use std::ffi::{OsStr, OsString};
    use std::path::PathBuf;

    #[test]
    fn flags_of_an_incomplete_command_line_are_found() {
        let words = "lockkeeper explain -n team-a --context=dev --kubeconfig file --as anna job/";
        let expected = SourceFlags {
            kubeconfig: Some(PathBuf::from("file")),
            context: Some("dev".to_owned()),
            account: Some("anna".to_owned()),
            namespace: Some("team-a".to_owned()),
            has_files: false,
        };
        assert_eq!(
            SourceFlags::parse(words.split(' ').map(OsString::from)),
            expected
        );
        let words = ["explain", "--dump", "d.yaml", "--namespace"];
        let flags = SourceFlags::parse(words.into_iter().map(OsString::from));
        assert!(flags.has_files && flags.namespace.is_none());
    }

    #[test]
    fn candidates_start_with_what_is_typed() {
        let names = BTreeSet::from(["job/a".to_owned(), "a".to_owned(), "job/b".to_owned()]);
        let found = candidates(names, OsStr::new("job/"));
        let values: Vec<&OsStr> = found.iter().map(CompletionCandidate::get_value).collect();
        assert_eq!(values, ["job/a", "job/b"]);
    }
}

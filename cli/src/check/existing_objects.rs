//! Existing objects, to resolve references: other files, or a cluster.

use super::{cluster_list, inputs};
use crate::world_files::{INDEXED_KINDS, declare_all_known};
use crate::{Failure, kubeconfig};
use clap::Args;
use cluster_list::ListError;
use kube::Client;
use lockkeeper_check::ListTarget;
use lockkeeper_check::collect::collect_facts;
use lockkeeper_check::report::CheckedFile;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use std::path::PathBuf;
use tokio::runtime;

#[derive(Args, Debug)]
pub(super) struct ExistingObjects {
    /// Existing objects, used to resolve references but not checked; repeatable
    #[arg(long, value_name = "PATH")]
    world: Vec<PathBuf>,

    /// Report references to objects that are neither checked nor in --world
    #[arg(long)]
    closed: bool,

    /// Resolve references with the objects of this cluster (read-only)
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Check the objects stored in the cluster instead of files
    #[arg(long)]
    pub(super) stored: bool,

    /// Also write findings as PolicyReports (YAML); `-` writes only them to stdout
    #[arg(long, value_name = "FILE", requires = "stored")]
    pub(super) policy_report: Option<PathBuf>,
}

impl ExistingObjects {
    /// Whether there are no objects but those that are checked or in --world.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }
}

/// The facts of the existing objects, and the files that cannot be read.
pub(super) fn load_index(
    arguments: &ExistingObjects,
) -> Result<(Index, Vec<CheckedFile>), Failure> {
    let names_cluster = arguments.kubeconfig.is_some() || arguments.context.is_some();
    // The audit lists all objects itself.
    let (mut index, mut unreadable) = if names_cluster && !arguments.stored {
        with_client(arguments, async |client| {
            list_facts(&client)
                .await
                .map_err(cluster_list::usage_failure)
        })?
    } else {
        (Index::default(), Vec::new())
    };
    for input in inputs::list_inputs(&arguments.world, &[]) {
        match input.read() {
            Ok(source) => index.extend(collect_facts(&source)),
            Err(error) => unreadable.push(CheckedFile {
                name: input.name,
                outcome: Err(error),
            }),
        }
    }
    if arguments.closed {
        declare_all_known(&mut index);
    }
    Ok((index, unreadable))
}

/// Runs an operation with a client of the cluster. A client that cannot be built is a usage error.
pub(super) fn with_client<T>(
    arguments: &ExistingObjects,
    operation: impl AsyncFnOnce(Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (path, context) = (
        arguments.kubeconfig.as_deref(),
        arguments.context.as_deref(),
    );
    runtime.block_on(async {
        let connection = kubeconfig::connect(path, context)
            .await
            .map_err(Failure::Usage)?;
        let address = format!("API server {}", connection.address);
        operation(connection.client)
            .await
            .map_err(|failure| match failure {
                Failure::Usage(error) if error.is::<ListError>() => {
                    Failure::Usage(error.context(address))
                }
                other => other,
            })
    })
}

/// The facts of all objects that rules look up, and the kinds that may not be listed. At most one page of objects is in
/// memory.
async fn list_facts(client: &Client) -> Result<(Index, Vec<CheckedFile>), ListError> {
    let mut index = Index::default();
    let mut unreadable = Vec::new();
    for (kind, version, name, plural) in INDEXED_KINDS {
        let target = ListTarget {
            version,
            kind: name,
            plural,
        };
        let listed = cluster_list::for_each_object(client, &target, |object| {
            // An object that does not fit its type has no facts.
            let _ = facts::ingest(&mut index, &object);
        });
        match listed.await {
            // Without this mark a rule could not distinguish an absent object from an unknown one.
            Ok(_) => index.mark_complete(kind),
            Err(error) => unreadable.push(cluster_list::unreadable_kind(&target, error)?),
        }
    }
    Ok((index, unreadable))
}

#[cfg(test)]
mod tests {
    use super::super::cluster_list::tests::fake_api_server;
    use super::list_facts;
    use lockkeeper_policies::cluster_view::{ClusterView, Lookup};
    use lockkeeper_policies::index::IndexedKind;
    use serde_json::{Value, json};

    fn class(name: &str, value: i64) -> Value {
        json!({"metadata": {"name": name}, "value": value})
    }

    #[tokio::test]
    async fn load_index_lists_all_indexed_kinds() {
        let (client, _) = fake_api_server(&[(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            vec![
                vec![class("low", 1), class("high", 2)],
                vec![class("top", 3)],
            ],
        )]);
        let (index, unreadable) = list_facts(&client).await.unwrap();
        assert!(unreadable.is_empty());
        assert_eq!(index.count(IndexedKind::PriorityClass), 3);
        assert!(matches!(index.priority_class("top"), Lookup::Found(it) if it.value == 3));
        assert_eq!(index.priority_class("none"), Lookup::Absent);
        // The kind is not installed, so there are no objects.
        assert_eq!(index.quota("any"), Lookup::Absent);
    }
}

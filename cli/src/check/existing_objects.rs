//! What is there besides what is judged: other files, or a cluster.

use super::report::CheckedFile;
use super::{cluster_list, source};
use crate::world_files::{INDEXED_KINDS, declare_all_known};
use crate::{Failure, kubeconfig};
use clap::Args;
use cluster_list::{ListError, ListTarget};
use kube::Client;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use std::path::{Path, PathBuf};
use tokio::runtime;

/// The flags.
#[derive(Args, Debug)]
pub(super) struct ExistingObjects {
    /// Files and folders with what is there already: rules know of it, and it is not judged; may be given several times
    #[arg(long, value_name = "PATH")]
    world: Vec<PathBuf>,

    /// What is neither checked nor given by --world does not exist
    #[arg(long)]
    closed: bool,

    /// A kubeconfig: the objects that rules ask about are listed from its cluster. Nothing is written there
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig, in place of its current one
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,

    /// Judge what the cluster of the kubeconfig holds now, as if it were made anew
    #[arg(long, requires = "kubeconfig")]
    pub(super) stored: bool,

    /// Where findings are written as PolicyReports besides, as YAML; `-` is standard output, in place of all else
    #[arg(long, value_name = "FILE", requires = "stored")]
    pub(super) policy_report: Option<PathBuf>,
}

/// What is known of it, and the files that cannot be read.
pub(super) fn load_index(
    arguments: &ExistingObjects,
) -> Result<(Index, Vec<CheckedFile>), Failure> {
    let mut index = match &arguments.kubeconfig {
        // All that is there is listed when it is judged.
        Some(_) if arguments.stored => Index::default(),
        Some(path) => with_client(path, arguments, async |client| {
            list_facts(&client)
                .await
                .map_err(cluster_list::usage_failure)
        })?,
        None => Index::default(),
    };
    let mut unreadable = Vec::new();
    for input in source::list_inputs(&arguments.world) {
        match input.read() {
            Ok(source) => index.extend(super::collect_facts(&source)),
            Err(problem) => unreadable.push(CheckedFile {
                name: input.name,
                outcome: Err(problem),
            }),
        }
    }
    if arguments.closed {
        declare_all_known(&mut index);
    }
    Ok((index, unreadable))
}

/// Talks with the cluster of a kubeconfig. What goes wrong there is what the user gave.
pub(super) fn with_client<T>(
    path: &Path,
    arguments: &ExistingObjects,
    ask: impl AsyncFnOnce(Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = kubeconfig::client_with_context(path, arguments.context.as_deref()).await;
        ask(client.map_err(Failure::Usage)?).await
    })
}

/// The facts of all objects that rules ask about. Of the objects themselves no more than a page is in memory.
async fn list_facts(client: &Client) -> Result<Index, ListError> {
    let mut index = Index::default();
    for (kind, version, name, plural) in INDEXED_KINDS {
        let listing = ListTarget {
            version,
            kind: name,
            plural,
        };
        cluster_list::for_each_object(client, &listing, |object| {
            // What does not fit its type has no facts; the cluster has it all the same.
            let _ = facts::ingest(&mut index, &object);
        })
        .await?;
        index.mark_complete(kind);
    }
    Ok(index)
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
        let index = list_facts(&client).await.unwrap();
        assert_eq!(index.count(IndexedKind::PriorityClass), 3);
        assert!(matches!(index.priority_class("top"), Lookup::Found(it) if it.value == 3));
        assert_eq!(index.priority_class("none"), Lookup::Absent);
        // Nobody installed that kind: there are none.
        assert_eq!(index.quota("any"), Lookup::Absent);
    }
}

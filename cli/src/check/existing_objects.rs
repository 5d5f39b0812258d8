//! Existing objects of other files or a cluster, to resolve references, and the definitions and admission policies of a
//! cluster.

use super::inputs::Input;
use super::{cluster_list, cluster_policies, inputs};
use crate::world_files::INDEXED_KINDS;
use crate::{Failure, kubeconfig};
use clap::Args;
use cluster_list::ListError;
use kube::Client;
use lockkeeper_check::collect::collect_facts;
use lockkeeper_check::report::CheckedFile;
use lockkeeper_check::{DefinitionSet, ListTarget, PolicySet};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use serde_json::Value;
use std::path::PathBuf;
use tokio::runtime;

/// The definitions of a cluster.
const DEFINITIONS: ListTarget<'static> = ListTarget {
    version: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

#[derive(Args, Debug)]
pub(super) struct ExistingObjects {
    /// Existing objects, used to resolve references but not checked; repeatable
    #[arg(long, value_name = "PATH")]
    world: Vec<PathBuf>,

    /// Report references to objects that are neither checked nor in --world
    #[arg(long)]
    closed: bool,

    /// Use the definitions and the objects of this cluster (read-only)
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

/// The existing objects, as a check uses them.
#[derive(Default)]
pub(super) struct ExistingState {
    /// The facts that rules look up.
    pub(super) index: Index,
    /// The definitions of the cluster.
    pub(super) definitions: DefinitionSet,
    /// The admission policies of the cluster.
    pub(super) policies: PolicySet,
    /// The files of `--world`.
    pub(super) world: Vec<Input>,
    /// The files and kinds that cannot be read.
    pub(super) unreadable: Vec<CheckedFile>,
}

/// What to list from the cluster besides the objects that rules look up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs<'a> {
    pub(super) definitions: bool,
    /// The admission policies, with the parameters of these objects as well; `None` without policies.
    pub(super) policies: Option<&'a [Value]>,
}

/// Reads the existing objects.
pub(super) fn load(
    arguments: &ExistingObjects,
    needs: Needs<'_>,
) -> Result<ExistingState, Failure> {
    let names_cluster = arguments.kubeconfig.is_some() || arguments.context.is_some();
    // The audit lists all objects itself.
    let mut state = if names_cluster && !arguments.stored {
        with_client(arguments, async |client| {
            list_state(&client, needs)
                .await
                .map_err(cluster_list::usage_failure)
        })?
    } else {
        ExistingState::default()
    };
    state.world = inputs::list_inputs(&arguments.world, &[]);
    for input in &state.world {
        match input.read() {
            Ok(source) => state.index.extend(collect_facts(&source)),
            Err(error) => state.unreadable.push(CheckedFile {
                name: input.name.clone(),
                outcome: Err(error),
            }),
        }
    }
    if arguments.closed {
        state.index.mark_all_complete();
    }
    Ok(state)
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

/// The facts of all objects that rules look up, the definitions, and the kinds that may not be listed. At most one page
/// of objects is in memory.
async fn list_state(client: &Client, needs: Needs<'_>) -> Result<ExistingState, ListError> {
    let mut state = ExistingState::default();
    for (kind, version, name, plural) in INDEXED_KINDS {
        let target = ListTarget {
            version,
            kind: name,
            plural,
        };
        let listed = cluster_list::for_each_object(client, &target, |object| {
            // An object that does not fit its type has no facts.
            let _ = facts::ingest(&mut state.index, &object);
        });
        match listed.await {
            // Without this mark a rule could not distinguish an absent object from an unknown one.
            Ok(_) => state.index.mark_complete(kind),
            Err(error) => {
                let kind = cluster_list::unreadable_kind(&target, error)?;
                state.unreadable.push(kind);
            }
        }
    }
    if needs.definitions {
        list_definitions(client, &mut state).await?;
    }
    if let Some(objects) = needs.policies {
        let (policies, unreadable) =
            cluster_policies::list(client, objects, &state.definitions).await?;
        state.policies = policies;
        state.unreadable.extend(unreadable);
    }
    Ok(state)
}

async fn list_definitions(client: &Client, state: &mut ExistingState) -> Result<(), ListError> {
    let listed = cluster_list::for_each_object(client, &DEFINITIONS, |definition| {
        // The API server stores no definition without group, kind or versions.
        let _ = state.definitions.add(&definition);
    });
    if let Err(error) = listed.await {
        let kind = cluster_list::unreadable_kind(&DEFINITIONS, error)?;
        state.unreadable.push(kind);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::cluster_list::tests::{fake_api_server, serve_responses, status};
    use super::{Needs, list_state};
    use lockkeeper_policies::cluster_view::{ClusterView, Lookup};
    use lockkeeper_policies::index::IndexedKind;
    use serde_json::{Value, json};

    fn class(name: &str, value: i64) -> Value {
        json!({"metadata": {"name": name}, "value": value})
    }

    #[tokio::test]
    async fn list_state_lists_all_indexed_kinds() {
        let (client, _) = fake_api_server(&[(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            vec![
                vec![class("low", 1), class("high", 2)],
                vec![class("top", 3)],
            ],
        )]);
        let state = list_state(&client, NOTHING).await.unwrap();
        assert!(state.unreadable.is_empty());
        let index = state.index;
        assert_eq!(index.count(IndexedKind::PriorityClass), 3);
        assert!(matches!(index.priority_class("top"), Lookup::Found(it) if it.value == 3));
        assert_eq!(index.priority_class("none"), Lookup::Absent);
        // The kind is not installed, so there are no objects.
        assert_eq!(index.quota("any"), Lookup::Absent);
    }
    const NOTHING: Needs<'_> = Needs {
        definitions: false,
        policies: None,
    };
    const DEFINITIONS_PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

    #[tokio::test]
    async fn list_state_adds_definitions_on_request() {
        let versions = json!([{"name": "v1", "served": true}]);
        let spec =
            json!({"group": "example.com", "names": {"kind": "Widget"}, "versions": versions});
        let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": spec});
        let pages = [(DEFINITIONS_PATH, vec![vec![definition]])];
        for is_needed in [false, true] {
            let (client, requests) = fake_api_server(&pages);
            let needs = Needs {
                definitions: is_needed,
                ..NOTHING
            };
            let state = list_state(&client, needs).await.unwrap();
            assert!(state.unreadable.is_empty());
            assert_eq!(state.definitions.is_empty(), !is_needed);
            let requests = requests.lock().unwrap();
            let is_listed = requests.iter().any(|it| it.starts_with(DEFINITIONS_PATH));
            assert_eq!(is_listed, is_needed);
        }
    }

    #[tokio::test]
    async fn list_state_without_rights_on_definitions_reports_them() {
        let (client, _) = serve_responses(|path, _| match path {
            DEFINITIONS_PATH => (403, status(403, "forbidden")),
            _ => (404, status(404, "not found")),
        });
        let needs = Needs {
            definitions: true,
            ..NOTHING
        };
        let state = list_state(&client, needs).await.unwrap();
        assert!(state.definitions.is_empty());
        let names: Vec<&str> = state.unreadable.iter().map(|it| &*it.name).collect();
        let expected = "customresourcedefinitions (apiextensions.k8s.io/v1)";
        assert_eq!(names, [expected]);
    }
}

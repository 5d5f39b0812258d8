//! The watches of observe mode: they read, and nothing else.

use super::unix_time::unix_time_ms;
use anyhow::{Error, anyhow};
use futures_util::StreamExt;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta};
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use lockkeeper_api::foreign::kueue;
use lockkeeper_kube_support::list_item::ListItem;
use lockkeeper_kube_support::watch_stream::{restarting_watch, watch_config};
use lockkeeper_observe::ObjectKind;
use serde_json::Value;
use std::collections::BTreeSet;
use std::pin::pin;
use tokio::sync::mpsc::Sender;

/// Objects per page of a list.
const PAGE_SIZE: u32 = 500;

/// Workloads per page of a list, whose pod templates may be large.
const WORKLOADS_PAGE_SIZE: u32 = 50;

/// The versions of Kueue's API, the newest first.
const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// A kind, its name and plural. Workloads come last, so that their queues are known first.
const KINDS: [(ObjectKind, &str, &str); 6] = [
    (
        ObjectKind::ResourceFlavor,
        "ResourceFlavor",
        "resourceflavors",
    ),
    (ObjectKind::Cohort, "Cohort", "cohorts"),
    (ObjectKind::ClusterQueue, "ClusterQueue", "clusterqueues"),
    (ObjectKind::LocalQueue, "LocalQueue", "localqueues"),
    (
        ObjectKind::PriorityClass,
        "WorkloadPriorityClass",
        "workloadpriorityclasses",
    ),
    (ObjectKind::Workload, "Workload", "workloads"),
];

/// Kinds of Kubernetes: kind, group, name and plural, in the version `v1`.
const CORE_KINDS: [(ObjectKind, &str, &str, &str); 3] = [
    (ObjectKind::Namespace, "", "Namespace", "namespaces"),
    (ObjectKind::LimitRange, "", "LimitRange", "limitranges"),
    (
        ObjectKind::RuntimeClass,
        "node.k8s.io",
        "RuntimeClass",
        "runtimeclasses",
    ),
];

/// What a watch delivers.
#[derive(Debug)]
pub(super) enum WatchedChange {
    /// An object was added or changed.
    Applied(Value),
    /// An object was deleted.
    Deleted {
        kind: ObjectKind,
        namespace: String,
        name: String,
    },
    /// An object is no JSON, or nested too deep.
    Unreadable { name: String, reason: String },
    /// The list of a kind is complete.
    Listed(ObjectKind),
}

/// A change, and when it was delivered, in milliseconds since 1970.
#[derive(Debug)]
pub(super) struct WatchedEvent {
    pub(super) at_ms: i64,
    pub(super) change: WatchedChange,
}

type Item = ListItem<DynamicObject>;

/// A kind that is watched.
pub(super) struct WatchedKind {
    pub(super) kind: ObjectKind,
    resource: ApiResource,
}

/// The kinds that the cluster has.
///
/// # Errors
///
/// The API server does not respond, or Kueue is not installed.
pub(super) async fn watched_kinds(client: &Client) -> Result<Vec<WatchedKind>, Error> {
    let core = CORE_KINDS.iter();
    let core = core.map(|(kind, group, name, plural)| {
        let named = GroupVersionKind::gvk(group, "v1", name);
        WatchedKind {
            kind: *kind,
            resource: ApiResource::from_gvk_with_plural(&named, plural),
        }
    });
    let mut kinds: Vec<WatchedKind> = core.collect();
    for version in VERSIONS {
        let served = client
            .list_api_group_resources(&format!("{}/{version}", kueue::GROUP))
            .await;
        let served = match served {
            Ok(served) => served.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => {
                return Err(anyhow!(
                    "the API server does not respond to discovery: {error}"
                ));
            }
        };
        let has = |plural: &str| served.iter().any(|it| it.name == plural);
        if !has("workloads") {
            continue;
        }
        for (kind, name, plural) in KINDS {
            if has(plural) {
                let of = GroupVersionKind::gvk(kueue::GROUP, version, name);
                let resource = ApiResource::from_gvk_with_plural(&of, plural);
                kinds.push(WatchedKind { kind, resource });
            }
        }
        return Ok(kinds);
    }
    Err(anyhow!(
        "the cluster has no Workloads of {}: install Kueue, or select another cluster",
        kueue::GROUP
    ))
}

/// Starts a task that watches a kind until the receiver is dropped.
pub(super) fn start(client: &Client, watched: WatchedKind, events: Sender<WatchedEvent>) {
    let WatchedKind { kind, resource } = watched;
    let api: Api<Item> = Api::all_with(client.clone(), &resource);
    let config = watch_config(if kind == ObjectKind::Workload {
        WORKLOADS_PAGE_SIZE
    } else {
        PAGE_SIZE
    });
    tokio::spawn(async move {
        let stream = restarting_watch(move || watcher(api.clone(), config.clone()));
        let mut stream = pin!(stream);
        let mut names = ListedNames::new(kind);
        while let Some(event) = stream.next().await {
            let changes = match event {
                Ok(event) => names.changes(event),
                Err(error) => {
                    let remedy = "the account needs get, list and watch";
                    tracing::warn!(kind = resource.plural, %error, remedy, "watch failed; restarting");
                    continue;
                }
            };
            let at_ms = unix_time_ms();
            for change in changes {
                if events.send(WatchedEvent { at_ms, change }).await.is_err() {
                    return;
                }
            }
        }
    });
}

/// The names that a watch has reported: an object missing in a new list was deleted.
struct ListedNames {
    kind: ObjectKind,
    reported: BTreeSet<(String, String)>,
    listing: BTreeSet<(String, String)>,
}

impl ListedNames {
    const fn new(kind: ObjectKind) -> Self {
        Self {
            kind,
            reported: BTreeSet::new(),
            listing: BTreeSet::new(),
        }
    }

    fn changes(&mut self, event: Event<Item>) -> Vec<WatchedChange> {
        match event {
            Event::Init => {
                self.listing.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let name = full_name(&object.metadata);
                self.listing.insert(name.clone());
                self.reported.insert(name.clone());
                vec![read(&name, &object)]
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listing);
                let gone = self.reported.difference(&listed).cloned();
                let mut changes: Vec<_> = gone.map(|it| self.deleted(it)).collect();
                self.reported = listed;
                changes.push(WatchedChange::Listed(self.kind));
                changes
            }
            Event::Apply(object) => {
                let name = full_name(&object.metadata);
                self.reported.insert(name.clone());
                vec![read(&name, &object)]
            }
            Event::Delete(object) => {
                let name = full_name(&object.metadata);
                self.reported.remove(&name);
                vec![self.deleted(name)]
            }
        }
    }

    fn deleted(&self, (namespace, name): (String, String)) -> WatchedChange {
        WatchedChange::Deleted {
            kind: self.kind,
            namespace,
            name,
        }
    }
}

fn full_name(metadata: &ObjectMeta) -> (String, String) {
    let text = |of: &Option<String>| of.clone().unwrap_or_default();
    (text(&metadata.namespace), text(&metadata.name))
}

fn read((namespace, name): &(String, String), object: &Item) -> WatchedChange {
    match serde_json::from_str::<Value>(object.text()) {
        Ok(value) => WatchedChange::Applied(value),
        Err(error) => WatchedChange::Unreadable {
            name: format!("{namespace}/{name}"),
            reason: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Item, ListedNames, WatchedChange};
    use kube::runtime::watcher::Event;
    use lockkeeper_observe::ObjectKind;
    use serde_json::json;

    fn object(name: &str) -> Item {
        let value = json!({"metadata": {"name": name, "namespace": "n"}});
        serde_json::from_value(value).unwrap()
    }

    fn described(changes: &[WatchedChange]) -> Vec<String> {
        let changes = changes.iter().map(|it| match it {
            WatchedChange::Applied(value) => format!("applied {}", value["metadata"]["name"]),
            WatchedChange::Deleted { name, .. } => format!("deleted {name}"),
            WatchedChange::Unreadable { name, .. } => format!("unreadable {name}"),
            WatchedChange::Listed(_) => "listed".to_owned(),
        });
        changes.collect()
    }

    #[test]
    fn object_missing_in_new_list_is_deleted() {
        let mut names = ListedNames::new(ObjectKind::Workload);
        let mut take = |event| described(&names.changes(event));
        take(Event::Init);
        assert_eq!(take(Event::InitApply(object("a"))), ["applied \"a\""]);
        assert_eq!(take(Event::InitDone), ["listed"]);
        take(Event::Apply(object("b")));
        take(Event::Apply(object("c")));
        assert_eq!(take(Event::Delete(object("c"))), ["deleted c"]);
        take(Event::Init);
        take(Event::InitApply(object("b")));
        assert_eq!(take(Event::InitDone), ["deleted a", "listed"]);
    }

    #[test]
    fn too_deep_object_is_unreadable() {
        let mut names = ListedNames::new(ObjectKind::Workload);
        let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let text =
            format!(r#"{{"metadata": {{"name": "deep", "namespace": "n"}}, "spec": {nested}}}"#);
        let deep: Item = serde_json::from_str(&text).unwrap();
        let changes = names.changes(Event::Apply(deep));
        assert_eq!(described(&changes), ["unreadable n/deep"]);
    }
}

//! Watches: turns watch events into inputs of the reconciler.

use super::raw_object::RawObject;
use crate::job_adapters::KINDS;
use crate::{Input, Kind, ObjectKey};
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::core::ApiResource;
use kube::runtime::watcher;
use kube::runtime::watcher::{Config, Error, Event};
use kube::{Api, Client};
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload, labels};
use lockkeeper_kube_support::watch_stream::restarting_watch;
use std::collections::BTreeSet;
use std::pin::pin;
use tokio::sync::mpsc::Sender;

/// Objects per page of a list.
const PAGE_SIZE: u32 = 500;

/// Starts a task that watches one kind until the receiver is dropped.
pub(super) fn start_watch(client: &Client, kind: Kind, inputs: Sender<Input>) {
    let resource = resource(kind);
    let api: Api<RawObject> = Api::all_with(client.clone(), &resource);
    let mut config = Config::default().page_size(PAGE_SIZE);
    if matches!(kind, Kind::Job(_)) {
        // A job that loses the label is delivered as deleted.
        config = config.labels(labels::QUEUE_NAME);
    }
    tokio::spawn(async move {
        let events = restarting_watch(move || watcher(api.clone(), config.clone()));
        forward_events(kind, events, &inputs).await;
    });
}

/// Forwards watch events as inputs, until the receiver is dropped.
async fn forward_events(
    kind: Kind,
    events: impl Stream<Item = Result<Event<RawObject>, Error>>,
    inputs: &Sender<Input>,
) {
    let mut names = ListedKeys::default();
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        let decoded = match event {
            Ok(event) => names.handle_event(kind, event),
            Err(error) => {
                let kind = resource(kind).plural;
                tracing::warn!(kind, %error, "watch failed; restarting");
                continue;
            }
        };
        for input in decoded {
            if inputs.send(input).await.is_err() {
                return;
            }
        }
    }
}

fn resource(kind: Kind) -> ApiResource {
    match kind {
        Kind::ClusterQueue => ApiResource::erase::<ClusterQueue>(&()),
        Kind::Cohort => ApiResource::erase::<Cohort>(&()),
        Kind::LocalQueue => ApiResource::erase::<LocalQueue>(&()),
        Kind::ResourceFlavor => ApiResource::erase::<ResourceFlavor>(&()),
        Kind::PriorityClass => ApiResource::erase::<PriorityClass>(&()),
        Kind::Namespace => ApiResource::erase::<Namespace>(&()),
        Kind::Workload => ApiResource::erase::<Workload>(&()),
        Kind::Job(at) => job_resource(at),
    }
}

/// The API resource of a kind of job.
pub(super) fn job_resource(at: usize) -> ApiResource {
    let resource = KINDS.get(at).map(|it| it.resource());
    let text = |of: fn(&crate::job_adapters::Resource) -> &'static str| {
        resource.as_ref().map_or("", of).to_owned()
    };
    ApiResource {
        group: text(|it| it.group),
        version: text(|it| it.version),
        api_version: resource.map_or_else(String::new, |it| it.api_version()),
        kind: text(|it| it.kind),
        plural: text(|it| it.plural),
    }
}

/// The keys that a watch has reported: an object missing from a new list was deleted.
#[derive(Default)]
struct ListedKeys {
    reported: BTreeSet<ObjectKey>,
    listing: BTreeSet<ObjectKey>,
}

impl ListedKeys {
    fn handle_event(&mut self, kind: Kind, event: Event<RawObject>) -> Vec<Input> {
        match event {
            Event::Init => {
                self.listing.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let name = ObjectKey::from_metadata(&object.metadata);
                // Counts as reported even if this list is never completed.
                self.reported.insert(name.clone());
                self.listing.insert(name.clone());
                vec![Input::applied(kind, name, object.value)]
            }
            Event::InitDone => {
                // The watch may have missed deletions while it was broken.
                let listing = std::mem::take(&mut self.listing);
                let before = std::mem::replace(&mut self.reported, listing);
                let lost = before
                    .into_iter()
                    .filter(|name| !self.reported.contains(name));
                let mut inputs: Vec<Input> = lost.map(|name| Input::deleted(kind, name)).collect();
                inputs.push(Input::Listed(kind));
                inputs
            }
            Event::Apply(object) => {
                let name = ObjectKey::from_metadata(&object.metadata);
                self.reported.insert(name.clone());
                vec![Input::applied(kind, name, object.value)]
            }
            Event::Delete(object) => {
                let name = ObjectKey::from_metadata(&object.metadata);
                self.reported.remove(&name);
                vec![Input::deleted(kind, name)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::Change;
    use futures_util::stream;
    use serde_json::{Value, json};
    use tokio::sync::mpsc;

    fn object(name: &str, spec: &Value) -> RawObject {
        let value = json!({
            "metadata": {"name": name, "namespace": "n"}, "spec": spec,
        });
        serde_json::from_value(value).unwrap()
    }

    fn queue(name: &str) -> RawObject {
        object(name, &json!({"clusterQueue": "q"}))
    }

    fn describe(inputs: &[Input]) -> Vec<String> {
        let one = |input: &Input| match input {
            Input::LocalQueue(Change::Applied(it)) => {
                format!("seen {}", it.metadata.name.as_deref().unwrap_or_default())
            }
            Input::LocalQueue(Change::Deleted(name)) => format!("gone {}", name.name()),
            Input::Listed(_) => "listed".to_owned(),
            Input::Unreadable(_, name, _) => format!("unreadable {}", name.name()),
            _ => "?".to_owned(),
        };
        inputs.iter().map(one).collect()
    }

    #[test]
    fn relist_without_object_deletes_it() {
        let mut names = ListedKeys::default();
        let mut take = |event| describe(&names.handle_event(Kind::LocalQueue, event));
        assert_eq!(take(Event::Init), [""; 0]);
        assert_eq!(take(Event::InitApply(queue("a"))), ["seen a"]);
        assert_eq!(take(Event::InitApply(queue("b"))), ["seen b"]);
        assert_eq!(take(Event::InitDone), ["listed"]);
        assert_eq!(take(Event::Apply(queue("c"))), ["seen c"]);
        assert_eq!(take(Event::Delete(queue("b"))), ["gone b"]);
        take(Event::Init);
        take(Event::InitApply(queue("a")));
        take(Event::InitApply(queue("d")));
        // A new list: an object that was reported before and is not in the list was deleted.
        take(Event::Init);
        take(Event::InitApply(queue("c")));
        assert_eq!(take(Event::InitDone), ["gone a", "gone d", "listed"]);
    }

    #[test]
    fn unreadable_object_is_reported_and_blocks_no_other() {
        let mut names = ListedKeys::default();
        let broken = object("x", &json!({"clusterQueue": 7}));
        let inputs = names.handle_event(Kind::LocalQueue, Event::Apply(broken));
        assert_eq!(describe(&inputs), ["unreadable x"]);
    }

    #[tokio::test]
    async fn watch_event_after_error_is_forwarded() {
        let (inputs, mut received) = mpsc::channel(8);
        let events = [Err(Error::NoResourceVersion), Ok(Event::Apply(queue("a")))];
        forward_events(Kind::LocalQueue, stream::iter(events), &inputs).await;
        drop(inputs);
        let mut all = Vec::new();
        received.recv_many(&mut all, 8).await;
        assert_eq!(describe(&all), ["seen a"]);
    }
}

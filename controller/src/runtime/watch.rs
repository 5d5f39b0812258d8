//! Watches: turns watch events into inputs of the reconciler.

use super::api_resource::resource;
use crate::job_adapters::{JobAdapter, JobKinds, TemplateSource};
use crate::{Change, Input, Kind, ObjectKey};
use arc_swap::ArcSwap;
use futures_util::{Stream, StreamExt};
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::runtime::watcher::{Error, Event};
use kube::{Api, Client};
use lockkeeper_api::labels;
use lockkeeper_kube_support::api_client::WatchAges;
use lockkeeper_kube_support::list_item::ListItem;
use lockkeeper_kube_support::watch_stream::{is_kind_absent, restarting_watch, watch_config};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;

/// Objects per page of a list.
const PAGE_SIZE: u32 = 500;

/// Workloads per page of a list. Each may have one and a half megabytes, and kube has a page in memory three times for
/// a moment.
const TEMPLATES_PAGE_SIZE: u32 = 20;

/// The pods that use room on nodes: those that are bound and have not ended. A pod that ends is delivered as deleted.
const BOUND_PODS: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

/// The objects of all watches, still as text.
type Item = ListItem<DynamicObject>;

/// An input from a watch.
#[derive(Debug)]
pub(super) struct WatchInput {
    pub(super) input: Input,
    /// The number of the list that the input comes from, or follows.
    pub(super) list: u64,
}

impl WatchInput {
    /// Whether it completes a list that began before the current one: it may miss the last writes of the former
    /// leader.
    pub(super) fn is_outdated(&self, current_list: u64) -> bool {
        matches!(self.input, Input::Listed(_)) && self.list < current_list
    }
}

/// Starts the watches of all kinds.
#[derive(Clone)]
pub(super) struct Watches {
    pub(super) client: Client,
    pub(super) inputs: Sender<WatchInput>,
    /// The number of the current list. When it changes, every kind is listed again.
    pub(super) lists: watch::Receiver<u64>,
    /// The largest spec of a job, in bytes.
    pub(super) job_spec_max_bytes: usize,
    /// The times since the last responses to the watches.
    pub(super) ages: WatchAges,
    /// The kinds of jobs, for the objects that arrive from now on.
    pub(super) job_kinds: Arc<ArcSwap<JobKinds>>,
}

impl Watches {
    /// Sends an input that comes from no list. A closed channel means that the controller has stopped.
    pub(super) async fn send(&self, input: Input) {
        let list = *self.lists.borrow();
        let _ = self.inputs.send(WatchInput { input, list }).await;
    }

    /// The API resource of a kind; `None` for an unknown kind of jobs.
    pub(super) fn resource(&self, kind: Kind) -> Option<ApiResource> {
        resource(&self.job_kinds.load(), kind)
    }

    /// Starts a task that watches one kind until the receiver is dropped.
    pub(super) fn start(&self, kind: Kind) {
        self.start_until(kind, pending());
    }

    /// Like [`Self::start`], until `stopped` resolves. All objects are reported as deleted then.
    pub(super) fn start_until(
        &self,
        kind: Kind,
        stopped: impl Future<Output = ()> + Send + 'static,
    ) {
        let (client, job_kinds) = (self.client.clone(), Arc::clone(&self.job_kinds));
        let ages = self.ages.clone();
        let mut config = watch_config(match kind {
            Kind::Workload => TEMPLATES_PAGE_SIZE,
            Kind::Job(at) => {
                let kinds = self.job_kinds.load();
                kinds.get(at).map_or(PAGE_SIZE, JobAdapter::list_page_size)
            }
            _ => PAGE_SIZE,
        });
        if matches!(kind, Kind::Job(_)) {
            // A job that loses the label is delivered as deleted.
            config = config.labels(labels::QUEUE_NAME);
        }
        if kind == Kind::BoundPod {
            config = config.fields(BOUND_PODS);
        }
        let (inputs, mut lists) = (self.inputs.clone(), self.lists.clone());
        let mut names = ListedKeys::new(self.job_spec_max_bytes, Arc::clone(&self.job_kinds));
        tokio::spawn(async move {
            let watching = async {
                let mut is_watching = true;
                while is_watching {
                    // The declaration of a kind may have another version now.
                    let Some(resource) = resource(&job_kinds.load(), kind) else {
                        return;
                    };
                    let api: Api<Item> = Api::all_with(client.clone(), &resource);
                    let config = config.clone();
                    let events = restarting_watch(move || watcher(api.clone(), config.clone()));
                    is_watching =
                        forward_events(kind, events, &mut names, &inputs, &mut lists).await;
                }
            };
            let is_stopped = tokio::select! {
                () = watching => false,
                () = stopped => true,
            };
            if is_stopped {
                // A watch that is stopped on purpose must not look like one without a connection.
                if let Some(of) = resource(&names.job_kinds.load(), kind) {
                    ages.forget(&of.plural, &of.group);
                }
                let list = *lists.borrow();
                for input in names.delete_all(kind) {
                    // A closed channel means that the controller has stopped.
                    let _ = inputs.send(WatchInput { input, list }).await;
                }
            }
        });
    }
}

/// Forwards watch events as inputs. Returns true when the kind has to be listed again, and false when the events end
/// or the receiver is dropped.
async fn forward_events(
    kind: Kind,
    events: impl Stream<Item = Result<Event<Item>, Error>>,
    names: &mut ListedKeys,
    inputs: &Sender<WatchInput>,
    lists: &mut watch::Receiver<u64>,
) -> bool {
    let list = *lists.borrow_and_update();
    let mut events = pin!(events);
    let mut is_absent = false;
    loop {
        let event = tokio::select! {
            biased;
            changed = lists.changed() => return changed.is_ok(),
            event = events.next() => event,
        };
        let decoded = match event {
            Some(Ok(event)) => names.handle_event(kind, event),
            Some(Err(error)) => {
                let of = resource(&names.job_kinds.load(), kind);
                let plural = of.map(|it| it.plural).unwrap_or_default();
                tracing::warn!(kind = plural, %error, "watch failed; restarting");
                if matches!(kind, Kind::Job(_)) && is_forbidden(&error) {
                    let input = Input::KindForbidden(kind);
                    // A closed channel means that the controller has stopped.
                    let _ = inputs.send(WatchInput { input, list }).await;
                }
                // The cluster has lost the kind since the last list: nothing is left to list, and a new leader must
                // not wait for it.
                let is_lost = names.was_listed && is_kind_absent(&error);
                if !is_lost || std::mem::replace(&mut is_absent, true) {
                    continue;
                }
                vec![Input::Listed(kind)]
            }
            None => return false,
        };
        for input in decoded {
            if inputs.send(WatchInput { input, list }).await.is_err() {
                return false;
            }
        }
    }
}

/// Whether the account of the controller may not list a kind.
fn is_forbidden(error: &Error) -> bool {
    let (Error::InitialListFailed(kube::Error::Api(status))
    | Error::WatchStartFailed(kube::Error::Api(status))
    | Error::WatchError(status)) = error
    else {
        return false;
    };
    status.code == 403
}

/// The keys that a watch has reported: an object missing from a new list was deleted.
struct ListedKeys {
    /// The largest spec of a job, in bytes.
    job_spec_max_bytes: usize,
    job_kinds: Arc<ArcSwap<JobKinds>>,
    /// With the newest resource version that was reported.
    reported: BTreeMap<ObjectKey, u64>,
    listing: BTreeSet<ObjectKey>,
    /// Whether a list was completed.
    was_listed: bool,
}

impl ListedKeys {
    fn new(job_spec_max_bytes: usize, job_kinds: Arc<ArcSwap<JobKinds>>) -> Self {
        Self {
            job_spec_max_bytes,
            job_kinds,
            reported: BTreeMap::new(),
            listing: BTreeSet::new(),
            was_listed: false,
        }
    }

    /// The deletions of all reported objects.
    fn delete_all(&mut self, kind: Kind) -> Vec<Input> {
        let names = std::mem::take(&mut self.reported).into_keys();
        names.map(|name| Input::deleted(kind, name)).collect()
    }

    fn handle_event(&mut self, kind: Kind, event: Event<Item>) -> Vec<Input> {
        match event {
            Event::Init => {
                self.listing.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let name = ObjectKey::from_metadata(&object.metadata);
                let version = version(&object);
                // Counts as reported even if this list is never completed.
                let before = self.reported.insert(name.clone(), version);
                self.listing.insert(name.clone());
                let mut inputs = self.decode(kind, name, &object);
                // A list is newer than all events before it, unless the API server's storage went back.
                if before.is_some_and(|before| version < before) {
                    inputs.insert(0, Input::Restored(kind));
                }
                inputs
            }
            Event::InitDone => {
                // The watch may have missed deletions while it was broken.
                let listing = std::mem::take(&mut self.listing);
                self.was_listed = true;
                let mut inputs = Vec::new();
                self.reported.retain(|name, _| {
                    let is_listed = listing.contains(name);
                    if !is_listed {
                        inputs.push(Input::deleted(kind, name.clone()));
                    }
                    is_listed
                });
                inputs.push(Input::Listed(kind));
                inputs
            }
            Event::Apply(object) => {
                let name = ObjectKey::from_metadata(&object.metadata);
                self.reported.insert(name.clone(), version(&object));
                self.decode(kind, name, &object)
            }
            Event::Delete(object) => {
                let name = ObjectKey::from_metadata(&object.metadata);
                self.reported.remove(&name);
                vec![Input::deleted(kind, name)]
            }
        }
    }

    /// Decodes one object. Managed fields are half of an object, and are skipped.
    ///
    /// A job with a large spec is decoded without its pod templates, so that it gets no workload and stays suspended.
    fn decode(&self, kind: Kind, name: ObjectKey, object: &Item) -> Vec<Input> {
        let mut value = match serde_json::from_str::<Value>(object.text()) {
            Ok(value) => value,
            Err(error) => return vec![Input::Unreadable(kind, name, error.to_string())],
        };
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let kinds = self.job_kinds.load();
        let mut input = Input::applied_with(&kinds, kind, name.clone(), value);
        let spec_bytes = spec_bytes(object);
        let max = self.job_spec_max_bytes;
        if let Input::Job(_, Change::Applied(job)) = &mut input
            && spec_bytes > max
        {
            job.template_source = TemplateSource::TooLarge;
            let error = format!(
                "the spec has {spec_bytes} bytes, and the limit is {max}; move data to a ConfigMap"
            );
            return vec![input, Input::Unreadable(kind, name, error)];
        }
        vec![input]
    }
}

/// The resource version of an object; 0 if it has none.
fn version(object: &Item) -> u64 {
    let version = object.metadata.resource_version.as_deref();
    version.and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// The size of the spec of an object, in bytes.
fn spec_bytes(object: &Item) -> usize {
    #[derive(Deserialize)]
    struct Parts<'a> {
        #[serde(borrow)]
        spec: Option<&'a RawValue>,
    }
    let parts = serde_json::from_str::<Parts<'_>>(object.text()).ok();
    let spec = parts.and_then(|it| it.spec);
    spec.map_or(0, |it| it.get().len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use futures_util::stream;
    use serde_json::json;
    use tokio::sync::mpsc;

    const MAX: usize = 1_000;

    fn object(name: &str, spec: &Value) -> Item {
        let value = json!({
            "metadata": {"name": name, "namespace": "n"}, "spec": spec,
        });
        serde_json::from_value(value).unwrap()
    }

    fn queue(name: &str) -> Item {
        object(name, &json!({"clusterQueue": "q"}))
    }

    fn describe(inputs: &[Input]) -> Vec<String> {
        let one = |input: &Input| match input {
            Input::LocalQueue(Change::Applied(it)) => {
                format!("seen {}", it.metadata.name.as_deref().unwrap_or_default())
            }
            Input::LocalQueue(Change::Deleted(name)) => format!("gone {}", name.name()),
            Input::Listed(_) => "listed".to_owned(),
            Input::Restored(_) => "restored".to_owned(),
            Input::Unreadable(_, name, _) => format!("unreadable {}", name.name()),
            _ => "?".to_owned(),
        };
        inputs.iter().map(one).collect()
    }

    #[test]
    fn relist_without_object_deletes_it() {
        let mut names = ListedKeys::new(MAX, Arc::default());
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
        let mut names = ListedKeys::new(MAX, Arc::default());
        let broken = object("x", &json!({"clusterQueue": 7}));
        let inputs = names.handle_event(Kind::LocalQueue, Event::Apply(broken));
        assert_eq!(describe(&inputs), ["unreadable x"]);
    }

    #[test]
    fn too_deep_object_is_unreadable_and_blocks_no_other() {
        let mut names = ListedKeys::new(MAX, Arc::default());
        let depth = 200;
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text =
            format!(r#"{{"metadata": {{"name": "deep", "namespace": "n"}}, "spec": {nested}}}"#);
        let deep: Item = serde_json::from_str(&text).unwrap();
        let mut take = |event| describe(&names.handle_event(Kind::LocalQueue, event));
        take(Event::Init);
        assert_eq!(take(Event::InitApply(deep)), ["unreadable deep"]);
        assert_eq!(take(Event::InitApply(queue("a"))), ["seen a"]);
        assert_eq!(take(Event::InitDone), ["listed"]);
    }

    #[test]
    fn job_with_too_large_spec_is_reported_and_has_no_templates() {
        let mut names = ListedKeys::new(MAX, Arc::default());
        let job = |bytes| {
            let data = json!([{"name": "c", "image": "a".repeat(bytes)}]);
            object("j", &json!({"template": {"spec": {"containers": data}}}))
        };
        for (bytes, is_large) in [(MAX, true), (MAX / 2, false)] {
            let inputs = names.handle_event(Kind::Job(0), Event::Apply(job(bytes)));
            let [Input::Job(_, Change::Applied(view)), reports @ ..] = &inputs[..] else {
                unreachable!("{inputs:?}");
            };
            assert_eq!(view.template_source == TemplateSource::TooLarge, is_large);
            let reported = describe(reports);
            assert_eq!(reported == ["unreadable j"], is_large, "{reported:?}");
        }
    }

    #[test]
    fn list_with_older_version_than_reported_restores_kind() {
        let at = |version: u64| {
            let value = json!({
                "metadata": {"name": "a", "namespace": "n", "resourceVersion": version.to_string()},
                "spec": {"clusterQueue": "q"},
            });
            serde_json::from_value::<Item>(value).unwrap()
        };
        let mut names = ListedKeys::new(MAX, Arc::default());
        let mut take = |event| describe(&names.handle_event(Kind::LocalQueue, event));
        take(Event::Init);
        assert_eq!(take(Event::InitApply(at(5))), ["seen a"]);
        assert_eq!(take(Event::Apply(at(9))), ["seen a"]);
        take(Event::Init);
        assert_eq!(take(Event::InitApply(at(9))), ["seen a"]);
        take(Event::Init);
        assert_eq!(take(Event::InitApply(at(5))), ["restored", "seen a"]);
        assert_eq!(take(Event::Apply(at(6))), ["seen a"]);
    }

    #[tokio::test]
    async fn watch_event_after_error_is_forwarded() {
        let (inputs, mut received) = mpsc::channel(8);
        let events = [Err(Error::NoResourceVersion), Ok(Event::Apply(queue("a")))];
        let mut names = ListedKeys::new(MAX, Arc::default());
        let (_sender, mut lists) = watch::channel(0);
        let events = stream::iter(events);
        forward_events(Kind::LocalQueue, events, &mut names, &inputs, &mut lists).await;
        drop(inputs);
        let mut all = Vec::new();
        received.recv_many(&mut all, 8).await;
        let all: Vec<Input> = all.into_iter().map(|it| it.input).collect();
        assert_eq!(describe(&all), ["seen a"]);
    }

    #[test]
    fn only_the_end_of_an_earlier_list_is_outdated() {
        let listed = |list| WatchInput {
            input: Input::Listed(Kind::Workload),
            list,
        };
        assert!(listed(0).is_outdated(1));
        assert!(!listed(1).is_outdated(1));
        let input = Input::deleted(Kind::Workload, ObjectKey::new("n", "w"));
        assert!(!WatchInput { input, list: 0 }.is_outdated(1));
    }

    #[tokio::test]
    async fn absent_kind_is_listed_once_for_a_new_leader_if_it_was_listed_before() {
        let absent = || {
            let status = kube::core::Status::failure("", "").with_code(404).boxed();
            Err(Error::InitialListFailed(kube::Error::Api(status)))
        };
        let mut names = ListedKeys::new(MAX, Arc::default());
        let (_sender, mut lists) = watch::channel(0);
        for (events, expected) in [
            (vec![absent()], vec![]),
            (vec![Ok(Event::Init), Ok(Event::InitDone)], vec!["listed"]),
            (vec![absent(), absent()], vec!["listed"]),
        ] {
            let (inputs, mut received) = mpsc::channel(8);
            let events = stream::iter(events);
            forward_events(Kind::Job(1), events, &mut names, &inputs, &mut lists).await;
            drop(inputs);
            let mut all = Vec::new();
            received.recv_many(&mut all, 8).await;
            let all: Vec<Input> = all.into_iter().map(|it| it.input).collect();
            assert_eq!(describe(&all), expected);
        }
    }

    #[tokio::test]
    async fn watch_is_listed_again_for_new_leader_with_number_of_that_list() {
        let (inputs, mut received) = mpsc::channel(8);
        let mut names = ListedKeys::new(MAX, Arc::default());
        let (sender, mut lists) = watch::channel(0);
        let first = stream::iter([Ok(Event::InitApply(queue("a")))]).chain(stream::pending());
        let forwarded = async {
            let is_again =
                forward_events(Kind::LocalQueue, first, &mut names, &inputs, &mut lists).await;
            assert!(is_again);
            let second = stream::iter([Ok(Event::Init), Ok(Event::InitDone)]);
            forward_events(Kind::LocalQueue, second, &mut names, &inputs, &mut lists).await
        };
        let leads = async {
            let seen = received.recv().await.unwrap();
            assert_eq!(
                (describe(&[seen.input]), seen.list),
                (vec!["seen a".to_owned()], 0)
            );
            sender.send_replace(1);
            let mut all = Vec::new();
            while all.len() < 2 {
                let next = received.recv().await.unwrap();
                assert_eq!(next.list, 1);
                all.push(next.input);
            }
            assert_eq!(describe(&all), ["gone a", "listed"]);
        };
        let (is_again, ()) = tokio::join!(forwarded, leads);
        assert!(!is_again);
    }
}

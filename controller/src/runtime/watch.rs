//! Watches: turns watch events into inputs of the reconciler.

use super::api_resource::resource;
use super::listed_keys::{Item, ListedKeys};
use crate::job_adapters::{JobAdapter, JobKinds};
use crate::{Input, Kind};
use arc_swap::ArcSwap;
use futures_util::{Stream, StreamExt};
use kube::core::ApiResource;
use kube::runtime::watcher;
use kube::runtime::watcher::{Error, Event};
use kube::{Api, Client};
use lockkeeper_api::labels;
use lockkeeper_kube_support::api_client::WatchAges;
use lockkeeper_kube_support::watch_stream::{is_kind_absent, restarting_watch, watch_config};
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
pub(super) fn is_forbidden(error: &Error) -> bool {
    let (Error::InitialListFailed(kube::Error::Api(status))
    | Error::WatchStartFailed(kube::Error::Api(status))
    | Error::WatchError(status)) = error
    else {
        return false;
    };
    status.code == 403
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::listed_keys::tests::{MAX, describe, queue};
    use super::*;
    use crate::ObjectKey;
    use futures_util::stream;
    use tokio::sync::mpsc;

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

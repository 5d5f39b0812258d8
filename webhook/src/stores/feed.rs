//! Feeds watch events into the index.

use super::{Store, StoreReadiness};
use futures_util::{Stream, StreamExt};
use kube::Resource;
use kube::runtime::watcher::{Event, Result as WatchResult};
use lockkeeper_kube_support::error_chain::ErrorChain;
use lockkeeper_kube_support::list_item::ListItem;
use lockkeeper_kube_support::watch_stream::{
    ABSENT_RETRY_SECONDS, is_kind_absent, restarting_watch, restarting_watch_if_installed,
};
use lockkeeper_policies::cluster_view::ObjectName;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::time::Duration;
use tokio::time::Instant;

/// Pause between two attempts to lock the index for an update, in milliseconds.
const LOCK_RETRY_MS: u64 = 1;

/// State shared by all watches.
#[derive(Clone)]
pub(super) struct IndexFeed {
    pub(super) index: Arc<RwLock<Index>>,
    /// The longest time that an update waits for requests that are being evaluated.
    pub(super) lag_max: Duration,
    pub(super) readiness: StoreReadiness,
}

/// Feeds one watch into the index, in a separate task. `watch` starts it, also after an error.
pub(super) fn spawn<K, S>(
    store: Store,
    watch: impl Fn() -> S + Send + 'static,
    feed: &IndexFeed,
    facts_of: impl Fn(&K) -> Option<Facts> + Send + Sync + 'static,
) where
    K: Resource + DeserializeOwned + Send + 'static,
    S: Stream<Item = WatchResult<Event<ListItem<K>>>> + Send + 'static,
{
    let feed = feed.clone();
    let facts_of = move |item: &ListItem<K>| facts_of_item(store, item, &facts_of);
    tokio::spawn(async move {
        if store.is_optional {
            feed_index(
                store,
                restarting_watch_if_installed(watch),
                &feed,
                &facts_of,
            )
            .await;
        } else {
            feed_index(store, restarting_watch(watch), &feed, &facts_of).await;
        }
    });
}

/// Returns the facts of an object; `None` if it cannot be decoded, or has none.
fn facts_of_item<K: DeserializeOwned>(
    store: Store,
    item: &ListItem<K>,
    facts_of: impl Fn(&K) -> Option<Facts>,
) -> Option<Facts> {
    match item.decode() {
        Ok(object) => facts_of(&object),
        Err(error) => {
            let object = facts::object_name(&item.metadata);
            tracing::warn!(store = store.name, %object, %error, "object cannot be decoded; ignoring it");
            None
        }
    }
}

/// Feeds a watch into the index.
pub(super) async fn feed_index<K: Resource>(
    store: Store,
    events: impl Stream<Item = WatchResult<Event<K>>>,
    feed: &IndexFeed,
    facts_of: &impl Fn(&K) -> Option<Facts>,
) {
    let Store { name, kind, .. } = store;
    let mut events = pin!(events);
    let mut listed = BTreeSet::new();
    let mut is_missing = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let done = matches!(event, Event::InitDone);
                let mut index = lock_for_change(&feed.index, feed.lag_max).await;
                apply_event(&mut index, kind, &mut listed, event, facts_of);
                drop(index);
                if done {
                    is_missing = false;
                    feed.readiness.mark_synced(name);
                }
            }
            // The kind is not installed, so there is nothing to list. Logged once.
            Err(error) if store.is_optional && is_kind_absent(&error) => {
                if !is_missing {
                    let every_seconds = ABSENT_RETRY_SECONDS;
                    tracing::info!(
                        store = name,
                        every_seconds,
                        "not installed: it is looked for"
                    );
                }
                is_missing = true;
                feed.readiness.mark_settled(name);
            }
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::warn!(store = name, %error, "watch failed; retrying");
            }
        }
    }
}

/// Locks the index for an update. Polls until `lag_max`, then waits in the queue of the lock.
pub(super) async fn lock_for_change(
    index: &RwLock<Index>,
    lag_max: Duration,
) -> RwLockWriteGuard<'_, Index> {
    let started = Instant::now();
    loop {
        // A waiting writer blocks every later reader, and the evaluation of a large object can hold
        // the read lock for more than a tenth of a second.
        match index.try_write() {
            Ok(index) => return index,
            Err(TryLockError::Poisoned(index)) => return index.into_inner(),
            Err(TryLockError::WouldBlock) if started.elapsed() >= lag_max => break,
            Err(TryLockError::WouldBlock) => {}
        }
        tokio::time::sleep(Duration::from_millis(LOCK_RETRY_MS)).await;
    }
    // The stores must not become stale for ever.
    index.write().unwrap_or_else(PoisonError::into_inner)
}

/// Applies one event to the index. `listed` has the names of a list that is in progress.
pub(super) fn apply_event<K: Resource>(
    index: &mut Index,
    kind: IndexedKind,
    listed: &mut BTreeSet<ObjectName>,
    event: Event<K>,
    facts_of: impl Fn(&K) -> Option<Facts>,
) {
    match event {
        // A list that failed in the middle starts again with this event.
        Event::Init => listed.clear(),
        Event::InitApply(object) => {
            listed.insert(facts::object_name(object.meta()));
            put_object(index, kind, &object, facts_of);
        }
        Event::InitDone => {
            // Objects that were deleted while the watch was interrupted are in no event.
            index.retain(kind, listed);
            listed.clear();
        }
        Event::Apply(object) => put_object(index, kind, &object, facts_of),
        Event::Delete(object) => index.remove(kind, &facts::object_name(object.meta())),
    }
}

fn put_object<K: Resource>(
    index: &mut Index,
    kind: IndexedKind,
    object: &K,
    facts_of: impl Fn(&K) -> Option<Facts>,
) {
    let name = facts::object_name(object.meta());
    match facts_of(object) {
        Some(facts) => index.apply(name, facts),
        // Facts of an earlier version must not outlive the version that decodes.
        None => index.remove(kind, &name),
    }
}

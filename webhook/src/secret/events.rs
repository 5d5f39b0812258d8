//! What the watches tell.

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::core::DynamicObject;
use kube::runtime::watcher::Error;
use kube::runtime::{WatchStreamExt, watcher};

use super::targets::Target;

/// An object as it is now, `None` if there is none; or why nobody knows.
pub(super) enum Event {
    Secret(Result<Option<Secret>, Error>),
    /// The target in this place.
    Target(usize, Result<Option<DynamicObject>, Error>),
}

/// All events of the Secret and of the targets. A watch that breaks is taken up again with growing
/// pauses. Each asks for one object by its name: a right to that name is enough.
pub(super) fn of(
    secrets: Api<Secret>,
    name: &str,
    targets: &[Target],
) -> SelectAll<BoxStream<'static, Event>> {
    let secrets = watcher::watch_object(secrets, name).default_backoff();
    let mut all = SelectAll::new();
    all.push(secrets.map(Event::Secret).boxed());
    for (place, target) in targets.iter().enumerate() {
        let objects = watcher::watch_object(target.api(), target.name()).default_backoff();
        let objects = objects.map(move |object| Event::Target(place, object));
        all.push(objects.boxed());
    }
    all
}

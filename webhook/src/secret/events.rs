//! What the watches tell.

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::core::DynamicObject;
use kube::runtime::watcher;
use kube::runtime::watcher::Error;

use super::targets::Target;
use crate::watching::unending;

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
    let name = name.to_owned();
    let secrets = unending(move || watcher::watch_object(secrets.clone(), &name));
    let mut all = SelectAll::new();
    all.push(secrets.map(Event::Secret).boxed());
    for (place, target) in targets.iter().enumerate() {
        let (api, name) = (target.api(), target.name().to_owned());
        let objects = unending(move || watcher::watch_object(api.clone(), &name));
        let objects = objects.map(move |object| Event::Target(place, object));
        all.push(objects.boxed());
    }
    all
}

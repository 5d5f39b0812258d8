//! Events of the watches.

use super::injection_targets::TrackedTarget;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::core::DynamicObject;
use kube::runtime::watcher::Error;
use lockkeeper_kube_support::watch_stream::{restarting_watch, watch_object};

/// The current object, `None` if it does not exist; or the error of the watch.
pub(super) enum RotationEvent {
    Secret(Result<Option<Secret>, Error>),
    /// The target with this index.
    Target(usize, Result<Option<DynamicObject>, Error>),
}

/// Returns all events of the Secret and of the targets. A failed watch is restarted with exponential
/// backoff. Each watch selects one object by its name, so a permission for that name is enough.
pub(super) fn event_stream(
    secrets: Api<Secret>,
    name: &str,
    targets: &[TrackedTarget],
) -> SelectAll<BoxStream<'static, RotationEvent>> {
    let name = name.to_owned();
    let secrets = restarting_watch(move || watch_object(secrets.clone(), &name));
    let mut all = SelectAll::new();
    all.push(secrets.map(RotationEvent::Secret).boxed());
    for (place, target) in targets.iter().enumerate() {
        let (api, name) = (target.api(), target.name().to_owned());
        let objects = restarting_watch(move || watch_object(api.clone(), &name));
        let objects = objects.map(move |object| RotationEvent::Target(place, object));
        all.push(objects.boxed());
    }
    all
}

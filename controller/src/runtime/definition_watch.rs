//! Watches the `CustomResourceDefinition` of a declared kind, and compares the declaration with each version of it.

use super::watch::{Watches, is_forbidden};
use crate::{DeclaredJobKind, DefinitionCheck, Input};
use futures_util::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use lockkeeper_job_kinds::{check_against_definition, describe_errors};
use lockkeeper_kube_support::watch_stream::{restarting_watch, watch_config};
use std::pin::pin;

/// Starts the watch; it ends when `stopped` resolves. The definition itself is not kept: it may have a megabyte.
pub(super) fn start_definition_watch(
    watches: Watches,
    declared: DeclaredJobKind,
    stopped: impl Future<Output = ()> + Send + 'static,
) {
    let resource = ApiResource::erase::<CustomResourceDefinition>(&());
    let (plural, group) = (resource.plural.clone(), resource.group.clone());
    let ages = watches.ages.clone();
    tokio::spawn(async move {
        let watching = forward_checks(&watches, &declared, &resource);
        tokio::select! {
            () = watching => {}
            () = stopped => {}
        }
        // A watch that is stopped on purpose must not look like one without a connection. The watches of other definitions record
        // their next response.
        ages.forget(&plural, &group);
    });
}

async fn forward_checks(watches: &Watches, declared: &DeclaredJobKind, resource: &ApiResource) {
    let name = declared.declaration.metadata.name.clone();
    let name = name.unwrap_or_default();
    let api: Api<DynamicObject> = Api::all_with(watches.client.clone(), resource);
    let config = watch_config(1).fields(&format!("metadata.name={name}"));
    let events = restarting_watch(move || watcher(api.clone(), config.clone()));
    let mut events = pin!(events);
    let mut last = None;
    let (mut is_found, mut was_found) = (false, false);
    while let Some(event) = events.next().await {
        let check = match event {
            Ok(Event::Init) => {
                is_found = false;
                continue;
            }
            Ok(Event::InitApply(definition) | Event::Apply(definition)) => {
                (is_found, was_found) = (true, true);
                check(declared, &definition)
            }
            Ok(Event::InitDone) if is_found => continue,
            Ok(Event::InitDone | Event::Delete(_)) if was_found => DefinitionCheck::Deleted,
            Ok(Event::InitDone | Event::Delete(_)) => DefinitionCheck::Missing,
            Err(error) if is_forbidden(&error) => {
                // Without the right there is no response, and nothing to wait for.
                watches.ages.forget(&resource.plural, &resource.group);
                let right = "the controller has no right to list customresourcedefinitions";
                DefinitionCheck::Unreadable(right.to_owned())
            }
            Err(error) => {
                tracing::warn!(definition = name, %error, "watch failed; restarting");
                continue;
            }
        };
        if last.as_ref() != Some(&check) {
            last = Some(check.clone());
            let input = Input::DefinitionChecked {
                job_kind: name.clone(),
                revision: declared.revision,
                check,
            };
            watches.send(input).await;
        }
    }
}

fn check(declared: &DeclaredJobKind, definition: &DynamicObject) -> DefinitionCheck {
    let definition = match serde_json::to_value(definition) {
        Ok(definition) => definition,
        Err(error) => return DefinitionCheck::Unreadable(error.to_string()),
    };
    match check_against_definition(&declared.declaration, &definition) {
        Ok(_) => DefinitionCheck::Fits,
        Err(errors) => DefinitionCheck::Differs(describe_errors(&errors)),
    }
}

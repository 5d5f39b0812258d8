//! The result of an API server without webhooks for an object.

use std::collections::{BTreeMap, BTreeSet};

use lockkeeper_api::foreign::kueue;
use lockkeeper_policies::registry::{self, Registration};
use serde_json::{Value, json};

use super::ReportedCause;
use super::objects::TestObject;
use crate::client::Client;
use crate::kubectl::Kubectl;
use crate::wait;

/// The result for an object.
pub enum DryRunOutcome {
    /// The API server would store this object.
    Accepted(Value),
    /// The object is invalid, for these causes.
    Rejected(Vec<ReportedCause>),
    /// The API server does not know the kind.
    UnknownKind,
    /// The object is not validated: the request cannot be decoded, or an admission plugin rejects it first.
    NotValidated,
}

/// The API server, and the paths of its kinds.
pub struct Api {
    client: Client,
    /// The plural of each kind and whether it is namespaced, by API version and kind; an unknown version has none.
    kinds: BTreeMap<String, BTreeMap<String, (String, bool)>>,
}

impl Api {
    /// Creates the namespaces of the objects.
    #[track_caller]
    pub fn new(kubectl: &Kubectl, client: Client, given: &[TestObject]) -> Self {
        let spaces = given.iter().map(|it| &it.object["metadata"]["namespace"]);
        let spaces: BTreeSet<&str> = spaces.filter_map(Value::as_str).collect();
        let name =
            |it: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": it}});
        // Some are invalid names, on purpose.
        let is_name = |name: &str| {
            let mut bytes = name.bytes();
            name.len() < 64
                && bytes.all(|it| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'-'))
                && !name.starts_with('-')
        };
        let spaces: Vec<Value> = spaces
            .into_iter()
            .filter(|it| is_name(it) && !it.is_empty())
            .map(name)
            .collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": spaces});
        kubectl
            .apply(&list.to_string(), &["--server-side"])
            .expect_accepted();
        let mut api = Self {
            client,
            kinds: BTreeMap::new(),
        };
        api.wait_for_kinds();
        api
    }

    /// Waits until the newly installed kinds are served.
    #[track_caller]
    fn wait_for_kinds(&mut self) {
        let all = registry::known_registrations();
        let installed = |it: &&Registration| it.own || it.group == kueue::GROUP;
        let known = wait::until(
            || {
                self.kinds.clear();
                let mut installed = all.iter().filter(installed);
                let is_known = |registration: &Registration| {
                    let version = format!("{}/{}", registration.group, registration.version);
                    self.resource("/apis", &version, &registration.kind)
                        .is_some()
                };
                Ok(installed.all(is_known).then_some(()))
            },
            || "some kinds are never served".to_owned(),
        );
        known.unwrap_or_else(|e| panic!("{e}"));
    }

    /// The result of a dry run of a creation.
    pub fn dry_run(&mut self, object: &Value) -> DryRunOutcome {
        let Some(path) = self.path(object) else {
            return DryRunOutcome::UnknownKind;
        };
        let path = format!("{path}?dryRun=All&fieldValidation=Warn");
        let answer = self.client.create(&path, object).unwrap();
        let causes = answer.body["details"]["causes"].as_array();
        match (answer.status, causes) {
            (200 | 201, _) => DryRunOutcome::Accepted(answer.body),
            (422, Some(causes)) => {
                let causes = causes
                    .iter()
                    .filter(|it| !is_incomplete_validation_note(it));
                DryRunOutcome::Rejected(causes.map(reported_cause).collect())
            }
            _ => DryRunOutcome::NotValidated,
        }
    }

    fn path(&mut self, object: &Value) -> Option<String> {
        let version = object["apiVersion"].as_str()?;
        let root = if version.contains('/') {
            "/apis"
        } else {
            "/api"
        };
        let (plural, is_namespaced) = self.resource(root, version, object["kind"].as_str()?)?;
        let root = format!("{root}/{version}");
        if !is_namespaced {
            return Some(format!("{root}/{plural}"));
        }
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .filter(|it| !it.is_empty());
        Some(format!(
            "{root}/namespaces/{}/{plural}",
            namespace.unwrap_or("default")
        ))
    }

    fn resource(&mut self, root: &str, version: &str, kind: &str) -> Option<(String, bool)> {
        if !self.kinds.contains_key(version) {
            // For an unknown version the response is plain text.
            let answer = self.client.get(&format!("{root}/{version}"));
            let known = answer.map(|it| it.body).unwrap_or_default();
            let all = known["resources"].as_array().into_iter().flatten();
            let whole = all.filter(|it| !it["name"].as_str().unwrap_or_default().contains('/'));
            let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
            let kinds = whole.map(|item| {
                (
                    text(item, "kind"),
                    (text(item, "name"), item["namespaced"] == true),
                )
            });
            self.kinds.insert(version.to_owned(), kinds.collect());
        }
        self.kinds[version].get(kind).cloned()
    }
}

/// Whether a cause only reports that not all rules were checked.
fn is_incomplete_validation_note(cause: &Value) -> bool {
    let message = cause["message"].as_str().unwrap_or_default();
    message.contains("some validation rules were not checked")
}

/// A cause of a rejection.
pub fn reported_cause(cause: &Value) -> ReportedCause {
    let text = |key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    ReportedCause {
        rule: String::new(),
        field: text("field"),
        kind: text("reason"),
    }
}

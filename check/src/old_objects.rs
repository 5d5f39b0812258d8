//! The objects before a change, by which the new ones are compared.

use crate::definitions::is_whole;
use crate::document::{Document, Identity};
use lockkeeper_crd_schema::builtin::Release;
use serde_json::Value;
use std::collections::BTreeMap;

/// Group, kind, namespace and name.
type Key = (String, String, String, String);

/// The most old objects of one name. Those that were added first are dropped.
const FORMS_MAX: usize = 16;

/// Old objects by group, kind, namespace and name. The version may change.
#[derive(Debug, Default)]
pub struct OldObjects {
    objects: BTreeMap<Key, OldForms>,
    release: Release,
}

/// The old objects of one name, such as those of overlays for several clusters. All are whole, or none.
#[derive(Debug, Default)]
struct OldForms {
    values: Vec<Value>,
    are_whole: bool,
}

impl OldObjects {
    /// No objects yet; those of built-in kinds will be read as this release of Kubernetes reads them.
    #[must_use]
    pub fn new(release: Release) -> Self {
        Self {
            objects: BTreeMap::new(),
            release,
        }
    }

    /// Adds an object. Of several objects with the same name, patches and incomplete objects of built-in kinds are dropped
    /// for whole ones. An object without a name is not added: the API server generates its name, so it does not exist
    /// yet. Costs a validation of an object of a built-in kind.
    pub fn add(&mut self, document: Document) {
        let key = key(&Identity::from_object(&document.value));
        if key.3.is_empty() {
            return;
        }
        let is_whole = !document.is_patch && is_whole(self.release, &document.value);
        let forms = self.objects.entry(key).or_default();
        forms.add(document.value, is_whole);
    }

    /// The old forms of an object; only the equal one if it has not changed.
    pub(crate) fn find(&self, object: &Value) -> &[Value] {
        if self.objects.is_empty() {
            return &[];
        }
        let forms = self.objects.get(&key(&Identity::from_object(object)));
        let values = forms.map_or(&[][..], |it| &it.values);
        let equal = values.iter().find(|it| *it == object);
        equal.map_or(values, std::slice::from_ref)
    }
}

impl OldForms {
    fn add(&mut self, value: Value, is_whole: bool) {
        if self.are_whole && !is_whole {
            return;
        }
        if is_whole && !self.are_whole {
            self.values.clear();
            self.are_whole = true;
        }
        if self.values.contains(&value) {
            return;
        }
        if self.values.len() == FORMS_MAX {
            self.values.remove(0);
        }
        self.values.push(value);
    }
}

fn key(identity: &Identity) -> Key {
    let (group, _) = identity
        .api_version
        .split_once('/')
        .unwrap_or(("", &identity.api_version));
    (
        group.to_owned(),
        identity.kind.clone(),
        identity.namespace.clone(),
        identity.name.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::{FORMS_MAX, OldObjects};
    use crate::document::Document;
    use serde_json::{Value, json};

    fn object(version: &str, namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": version, "kind": "Widget",
            "metadata": {"namespace": namespace, "name": name},
        })
    }

    fn old_objects(values: impl IntoIterator<Item = Value>) -> OldObjects {
        let mut old = OldObjects::default();
        for value in values {
            old.add(Document {
                number: 0,
                pointer: String::new(),
                value,
                origin: None,
                is_patch: false,
            });
        }
        old
    }

    #[test]
    fn old_objects_are_found_by_group_kind_namespace_and_name() {
        let old = old_objects([
            object("example.com/v1", "a", "x"),
            object("example.com/v1", "a", ""),
        ]);
        for (version, namespace, name, is_found) in [
            ("example.com/v1", "a", "x", true),
            ("example.com/v2", "a", "x", true),
            ("example.org/v1", "a", "x", false),
            ("example.com/v1", "b", "x", false),
            ("example.com/v1", "a", "y", false),
            ("example.com/v1", "a", "", false),
        ] {
            let found = old.find(&object(version, namespace, name));
            assert_eq!(!found.is_empty(), is_found, "{version} {namespace} {name}");
        }
    }

    fn config_map(data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
    }

    #[test]
    fn whole_objects_replace_incomplete_ones_of_the_same_name() {
        let (one, two) = (json!({"a": "1"}), json!({"a": "2"}));
        let (one, two) = (config_map(&one), config_map(&two));
        let incomplete = config_map(&json!({"a key": "1"}));
        let new = config_map(&json!({"a": "3"}));
        let objects = [&incomplete, &one, &two, &one, &incomplete];
        let old = old_objects(objects.into_iter().cloned());
        assert_eq!(old.find(&new), [one.clone(), two.clone()]);
        assert_eq!(old.find(&two), [two]);
        let only = old_objects([incomplete.clone()]);
        assert_eq!(only.find(&new), [incomplete]);
    }

    #[test]
    fn old_objects_of_one_name_are_limited() {
        let forms = (0..=FORMS_MAX).map(|it| config_map(&json!({"a": it.to_string()})));
        let old = old_objects(forms);
        let found = old.find(&config_map(&json!({})));
        assert_eq!(found.len(), FORMS_MAX);
        assert_eq!(found[0]["data"]["a"], "1");
    }
}

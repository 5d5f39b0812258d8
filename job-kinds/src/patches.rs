//! The writes of a job: merge patches (RFC 7386) of its `spec`. They name only declared fields.

use crate::declared_kind::DeclaredKind;
use crate::job_path::JobPath;
use crate::parts::PodSets;
use crate::template_place::{TemplatePlace, template_of_fields};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The parts of a job with its pod templates, as the user wrote them: what a write of its placement needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodTemplateSource(Value);

/// The field with the values of the declared lists, maps and templates, by path.
const ROOTS: &str = "roots";

/// The field with the places of the templates.
const PLACES: &str = "places";

/// A write of the pods of a pod set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSetWrite {
    /// The merge patch of the `spec` of the pods.
    pub pod_spec: Value,
    /// The number of pods; ignored unless the declaration has the field of the number.
    pub count: Option<i32>,
}

impl PodTemplateSource {
    /// The source from its JSON.
    #[must_use]
    pub fn from_json(json: Value) -> Self {
        Self(json)
    }

    /// The JSON of the source.
    #[must_use]
    pub fn into_json(self) -> Value {
        self.0
    }

    pub(crate) fn of<'a>(
        kind: &DeclaredKind,
        object: &Value,
        places: impl Iterator<Item = &'a TemplatePlace>,
    ) -> Self {
        let places: Vec<Value> = places
            .map(|it| json!([it.source, it.item, it.requests]))
            .collect();
        let roots = kind.template_roots().filter_map(|path| {
            let value = path.get(object)?.clone();
            Some((path.to_string(), value))
        });
        let roots: Map<String, Value> = roots.collect();
        Self(json!({ROOTS: roots, PLACES: places}))
    }

    /// The places of the templates; those of another declaration may not exist in this one.
    fn places(&self) -> Vec<TemplatePlace> {
        let places = self.0.get(PLACES).and_then(Value::as_array);
        let place = |it: &Value| {
            let source = it
                .get(0)?
                .as_u64()
                .and_then(|it| usize::try_from(it).ok())?;
            let item = it.get(1)?.clone();
            let requests = it.get(2).and_then(Value::as_object).cloned();
            Some(TemplatePlace {
                source,
                item,
                requests,
            })
        };
        places.into_iter().flatten().filter_map(place).collect()
    }
}

impl DeclaredKind {
    /// The paths of the declared lists, maps and single templates.
    fn template_roots(&self) -> impl Iterator<Item = &JobPath> {
        self.pod_sets
            .iter()
            .map(|it| it.for_each.as_ref().unwrap_or(&it.pods.path))
    }

    /// The patch that suspends a job, and resets the declared fields.
    #[must_use]
    pub fn suspend_patch(&self) -> Value {
        let mut out = self.suspension.path.wrap(self.suspension.suspended.clone());
        for reset in &self.resets {
            merge_keeping_nulls(&mut out, reset.path.wrap(reset.value.clone()));
        }
        below_spec(out)
    }

    /// The patch that starts a job.
    #[must_use]
    pub fn start_patch(&self) -> Value {
        below_spec(self.suspension.path.wrap(self.suspension.started.clone()))
    }

    /// The pod templates of a job, in the order of its pod sets; null for one that the source does not have.
    #[must_use]
    pub fn templates(&self, source: &PodTemplateSource) -> Vec<Value> {
        let places = source.places();
        let templates = places.iter().map(|it| {
            let pods = self.pods_at(source, it)?;
            match &it.requests {
                None => Some(pods.clone()),
                Some(requests) => Some(template_of_fields(pods, requests)),
            }
        });
        templates.map(Option::unwrap_or_default).collect()
    }

    /// The value of the field that describes the pods.
    fn pods_at<'a>(
        &self,
        source: &'a PodTemplateSource,
        place: &TemplatePlace,
    ) -> Option<&'a Value> {
        let pod_sets = self.pod_sets.get(place.source)?;
        let root = |path: &JobPath| source.0.get(ROOTS)?.get(path.to_string());
        match &pod_sets.for_each {
            None => root(&pod_sets.pods.path),
            Some(path) => pod_sets.pods.path.get(item_at(root(path)?, &place.item)?),
        }
    }

    /// The patch of the pods, in the order of the pod sets. Of a list all items are written, because a merge patch replaces
    /// lists. `None` if the source does not have a template.
    #[must_use]
    pub fn placement_patch(
        &self,
        source: &PodTemplateSource,
        writes: &[PodSetWrite],
    ) -> Option<Value> {
        let mut lists: BTreeMap<&JobPath, Value> = BTreeMap::new();
        let mut out = json!({});
        for (place, write) in source.places().iter().zip(writes) {
            let pod_sets = self.pod_sets.get(place.source)?;
            let change = pod_sets.change(write);
            if change.as_object().is_none_or(Map::is_empty) {
                continue;
            }
            let Some(path) = &pod_sets.for_each else {
                self.pods_at(source, place)?;
                merge_keeping_nulls(&mut out, change);
                continue;
            };
            let root = source.0.get(ROOTS)?.get(path.to_string())?;
            if let Some(key) = place.item.as_str() {
                item_at(root, &place.item)?;
                merge_keeping_nulls(&mut out, path.wrap(json!({key: change})));
                continue;
            }
            let list = lists.entry(path).or_insert_with(|| root.clone());
            let index = usize::try_from(place.item.as_u64()?).ok()?;
            json_patch::merge(list.get_mut(index)?, &change);
        }
        for (path, list) in lists {
            merge_keeping_nulls(&mut out, path.wrap(list));
        }
        Some(below_spec(out))
    }
}

impl PodSets {
    /// The patch of the root or the item; empty if it changes nothing.
    fn change(&self, write: &PodSetWrite) -> Value {
        let has_fields = write.pod_spec.as_object().is_some_and(|it| !it.is_empty());
        let mut out = if has_fields {
            self.pods.patch(&write.pod_spec)
        } else {
            json!({})
        };
        if let (Some(path), Some(count)) = (self.count.field(), write.count) {
            merge_keeping_nulls(&mut out, path.wrap(Value::from(count)));
        }
        out
    }
}

/// An item of a list, or the value of a key in a map.
fn item_at<'a>(root: &'a Value, item: &Value) -> Option<&'a Value> {
    match item {
        Value::String(key) => root.get(key),
        Value::Number(index) => root.get(usize::try_from(index.as_u64()?).ok()?),
        _ => None,
    }
}

/// The part of an object below `spec`.
fn below_spec(mut object: Value) -> Value {
    object
        .get_mut("spec")
        .map_or_else(|| json!({}), Value::take)
}

/// Merges a patch into another one. Nulls stay: they remove fields when the whole patch is applied.
fn merge_keeping_nulls(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                match into.get_mut(&name) {
                    Some(existing) => merge_keeping_nulls(existing, value),
                    None => {
                        into.insert(name, value);
                    }
                }
            }
        }
        (into, patch) => *into = patch,
    }
}

//! Kueue's labels and annotations.

use super::super::GROUP;
use super::{DroppedField, KueueConversion, dropped_fields, fields_of};
use crate::field_path::FieldPath;
use crate::labels;
use serde_json::Value;

/// kubectl's copy of what was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The depth of the search for metadata.
const DEPTH_MAX: usize = 64;

/// Labels, then annotations: Kueue's names, and lockkeeper's.
const CONVERTED_NAMES: [(&str, &[(&str, &str)]); 2] = [
    (
        "labels",
        &[
            ("queue-name", labels::QUEUE_NAME),
            ("priority-class", labels::PRIORITY_CLASS),
            ("max-exec-time-seconds", labels::MAX_EXECUTION_TIME),
        ],
    ),
    (
        "annotations",
        &[("job-min-parallelism", labels::MIN_PARALLELISM)],
    ),
];

/// The pointers to the labels of queued objects.
fn queue_name_path(version: &str, kind: &str) -> Option<FieldPath> {
    match (version, kind) {
        ("batch/v1", "Job") | ("jobset.x-k8s.io/v1alpha2", "JobSet") | ("v1", "Pod") => {
            Some(FieldPath::new("metadata"))
        }
        ("batch/v1", "CronJob") => Some(
            FieldPath::new("spec")
                .named("jobTemplate")
                .named("metadata"),
        ),
        _ => None,
    }
}

/// The name without Kueue's prefix; `None` if it has another prefix.
fn kueue_name(name: &str) -> Option<&str> {
    let (of, short) = name.split_once('/')?;
    match of.strip_suffix(GROUP)? {
        "" => Some(short),
        part if part.ends_with('.') => Some(name),
        _ => None,
    }
}

/// Replaces Kueue's labels of a job or pod by lockkeeper's; `None` if there are none.
pub(super) fn convert(object: &Value, version: &str, kind: &str) -> Option<KueueConversion> {
    let mut places = Vec::new();
    find_metadata(object, &FieldPath::default(), 0, &mut places);
    let mut out = KueueConversion::default();
    let mut object = object.clone();
    let home = queue_name_path(version, kind);
    for place in places {
        let is_home = home
            .as_ref()
            .is_some_and(|it| it.pointer() == place.pointer());
        convert_metadata(&mut object, &place, is_home, &mut out);
    }
    if home.is_some() {
        let is_changed = !out.dropped.is_empty() || !out.renamed.is_empty();
        out.object = Some(object);
        return is_changed.then_some(out);
    }
    // Other kinds are converted only if they are queued.
    let name = format!("{GROUP}/queue-name");
    let label = |it: &&DroppedField| it.field.pointer().ends_with(&name.replace('/', "~1"));
    let queued = out.dropped.iter().find(label)?;
    Some(KueueConversion::unconvertible(
        queued.field.clone(),
        dropped_fields::JOB_ADVICE,
    ))
}

/// Finds the paths of all metadata with a label or annotation of Kueue.
fn find_metadata(value: &Value, at: &FieldPath, depth: usize, out: &mut Vec<FieldPath>) {
    // Manifests are input of users: deep nesting must not exhaust the stack.
    if depth > DEPTH_MAX {
        return;
    }
    let below = depth.saturating_add(1);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let at = at.clone().named(name.as_str());
                if name == "metadata" {
                    let maps = CONVERTED_NAMES
                        .iter()
                        .filter_map(|(map, _)| value.get(map)?.as_object());
                    if maps.flatten().any(|(name, _)| kueue_name(name).is_some()) {
                        out.push(at);
                    }
                } else {
                    find_metadata(value, &at, below, out);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_metadata(item, &at.clone().index(index), below, out);
            }
        }
        _ => {}
    }
}

/// Removes Kueue's and kubectl's names from all metadata of an object.
pub(super) fn remove_kueue_names(object: &mut Value, out: &mut KueueConversion) {
    let mut places = vec![FieldPath::new("metadata")];
    find_metadata(object, &FieldPath::default(), 0, &mut places);
    for place in places {
        convert_metadata(object, &place, false, out);
    }
}

/// Removes Kueue's names from metadata. In the metadata of queued objects, lockkeeper's names replace them.
fn convert_metadata(object: &mut Value, at: &FieldPath, is_home: bool, out: &mut KueueConversion) {
    let Some(metadata) = object.pointer_mut(&at.pointer()) else {
        return;
    };
    for (map, known) in CONVERTED_NAMES {
        let Some(fields) = fields_of(metadata, map) else {
            continue;
        };
        let place = at.clone().named(map);
        // Copied, because names are removed and inserted in the loop.
        let names: Vec<String> = fields.keys().cloned().collect();
        for name in names {
            let field = place.clone().key(name.as_str());
            let Some(short) = kueue_name(&name) else {
                if name == LAST_APPLIED && !is_home {
                    fields.remove(&name);
                    out.drop_field(field, dropped_fields::LAST_APPLIED_ADVICE);
                }
                continue;
            };
            let own = known.iter().find(|it| it.0 == short && is_home);
            match (own, fields.remove(&name)) {
                (Some((_, own)), Some(value)) if !fields.contains_key(*own) => {
                    let to = place.clone().key(*own).pointer();
                    fields.insert((*own).to_owned(), value);
                    out.rename_field(field.pointer(), to);
                }
                (Some(_), _) => {
                    out.drop_field(field, "lockkeeper's label exists already; remove this one");
                }
                (None, _) => out.drop_field(field, dropped_fields::label_advice(short)),
            }
        }
        if fields.is_empty()
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.remove(map);
        }
    }
}

//! Decodes objects and adds their facts to an index.

use super::extract::{
    cluster_queue_facts, cluster_scoped_name, cohort_facts, elastic_quota_facts, flavor_facts,
    is_finished, kueue_cluster_queue_facts, kueue_cohort_facts, kueue_flavor_facts,
    kueue_local_queue_facts, local_queue_facts, object_name, pod_facts, priority_class_facts,
    template_facts, template_facts_v1beta1, workload_facts, workload_priority_class_facts,
};
use crate::cluster_view::ObjectName;
use crate::cohort_trees::{FlavorFacts, Project};
use crate::index::{Facts, Index};
use crate::quota::QuotaFields;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::foreign::koordinator::{self, ElasticQuota};
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::foreign::scheduling::{self, v1beta1};
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// The result of [`ingest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngestOutcome {
    /// The facts were added.
    Ingested,
    /// No rule uses objects of this kind.
    Ignored,
}

/// The name and facts of an object; `None` if no rule uses objects of its kind.
type Decoded = Result<Option<(ObjectName, Facts)>, serde_json::Error>;

/// Adds the facts of an object, given as JSON, to an index.
///
/// # Errors
///
/// If the object does not decode. If other objects may refer to it, its name is added all the same.
pub fn ingest(index: &mut Index, object: &Value) -> Result<IngestOutcome, serde_json::Error> {
    decode(object, |name, facts| index.apply(name, facts))
}

/// Merges the facts of an object that may be in the index in another version.
///
/// # Errors
///
/// As [`ingest`].
pub fn collect(index: &mut Index, object: &Value) -> Result<IngestOutcome, serde_json::Error> {
    decode(object, |name, facts| index.merge(name, facts))
}

fn decode(
    object: &Value,
    put: impl FnOnce(ObjectName, Facts),
) -> Result<IngestOutcome, serde_json::Error> {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = text("kind");
    let read = match text("apiVersion").split_once('/').unwrap_or_default() {
        ("lockkeeper.dev", "v1alpha1") => decode_own(kind, object),
        (kueue::GROUP, version @ ("v1beta1" | "v1beta2")) => decode_kueue(version, kind, object),
        _ => decode_other(object),
    };
    match read {
        Ok(None) => Ok(IngestOutcome::Ignored),
        Ok(Some((name, facts))) => {
            put(name, facts);
            Ok(IngestOutcome::Ingested)
        }
        Err(error) => {
            // The object exists although it does not decode: references to it are not dangling.
            if let Some((name, facts)) = partial_facts(object) {
                put(name, facts);
            }
            Err(error)
        }
    }
}

/// The facts of an object that does not decode. An error in one object must not cause findings in all objects that
/// refer to it.
fn partial_facts(object: &Value) -> Option<(ObjectName, Facts)> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let name = ObjectName {
        namespace: String::new(),
        name: text("/metadata/name")?.to_owned(),
    };
    let family = match text("/apiVersion")?.split_once('/')?.0 {
        "lockkeeper.dev" => Project::Lockkeeper,
        kueue::GROUP => Project::Kueue,
        _ => return None,
    };
    // Kueue's kinds have the same fields, and policies are plain strings.
    let facts = match text("/kind")? {
        "ClusterQueue" => {
            let read = kueue::ClusterQueue::deserialize(object);
            let facts = read.map(|it| QuotaFields::facts(&it)).unwrap_or_default();
            Facts::ClusterQueue(family, Arc::new(facts))
        }
        "Cohort" => {
            let read = kueue::Cohort::deserialize(object);
            let facts = read.map(|it| QuotaFields::facts(&it)).unwrap_or_default();
            Facts::Cohort(family, Arc::new(facts))
        }
        "ResourceFlavor" => Facts::ResourceFlavor(family, FlavorFacts::default()),
        _ => return None,
    };
    Some((name, facts))
}

fn decode_own(kind: &str, object: &Value) -> Decoded {
    Ok(Some(match kind {
        "Workload" => {
            let workload = Workload::deserialize(object)?;
            (
                object_name(&workload.metadata),
                own_workload_facts(&workload),
            )
        }
        "ClusterQueue" => {
            let queue = ClusterQueue::deserialize(object)?;
            (
                cluster_scoped_name(&queue.metadata),
                cluster_queue_facts(&queue),
            )
        }
        "Cohort" => {
            let cohort = Cohort::deserialize(object)?;
            (cluster_scoped_name(&cohort.metadata), cohort_facts(&cohort))
        }
        "ResourceFlavor" => {
            let flavor = ResourceFlavor::deserialize(object)?;
            (cluster_scoped_name(&flavor.metadata), flavor_facts(&flavor))
        }
        "LocalQueue" => {
            let queue = LocalQueue::deserialize(object)?;
            (object_name(&queue.metadata), local_queue_facts(&queue))
        }
        _ => return Ok(None),
    }))
}

fn decode_kueue(version: &str, kind: &str, object: &Value) -> Decoded {
    Ok(Some(match kind {
        "ClusterQueue" => {
            let queue: kueue::ClusterQueue =
                decode_with_former_name(version, object, ("cohort", "cohortName"))?;
            let facts = kueue_cluster_queue_facts(&queue);
            (cluster_scoped_name(&queue.metadata), facts)
        }
        "Cohort" => {
            let cohort: kueue::Cohort =
                decode_with_former_name(version, object, ("parent", "parentName"))?;
            (
                cluster_scoped_name(&cohort.metadata),
                kueue_cohort_facts(&cohort),
            )
        }
        "ResourceFlavor" => {
            let flavor = kueue::ResourceFlavor::deserialize(object)?;
            (
                cluster_scoped_name(&flavor.metadata),
                kueue_flavor_facts(&flavor),
            )
        }
        "LocalQueue" => {
            let queue = kueue::LocalQueue::deserialize(object)?;
            (
                object_name(&queue.metadata),
                kueue_local_queue_facts(&queue),
            )
        }
        "WorkloadPriorityClass" => {
            let class = kueue::WorkloadPriorityClass::deserialize(object)?;
            let facts = workload_priority_class_facts(&class);
            (cluster_scoped_name(&class.metadata), facts)
        }
        _ => return Ok(None),
    }))
}

/// Decodes an object of Kueue with a field that an older version names differently.
fn decode_with_former_name<T: DeserializeOwned>(
    version: &str,
    object: &Value,
    (before, now): (&str, &str),
) -> Result<T, serde_json::Error> {
    // Only v1beta1 names the field differently; the current version needs no copy.
    if version == kueue::VERSION {
        return T::deserialize(object);
    }
    let mut object = object.clone();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(value) = spec.remove(before)
    {
        spec.insert(now.to_owned(), value);
    }
    T::deserialize(object)
}

fn decode_other(object: &Value) -> Decoded {
    let text = |key| object.get(key).and_then(Value::as_str);
    Ok(Some(match (text("apiVersion"), text("kind")) {
        (Some("scheduling.k8s.io/v1"), Some("PriorityClass")) => {
            let class = PriorityClass::deserialize(object)?;
            let facts = Facts::PriorityClass(priority_class_facts(&class));
            (cluster_scoped_name(&class.metadata), facts)
        }
        (Some("scheduling.k8s.io/v1alpha2"), Some("Workload")) => {
            let workload = scheduling::Workload::deserialize(object)?;
            let facts = Facts::Templates(template_facts(&workload));
            (object_name(&workload.metadata), facts)
        }
        (Some("scheduling.k8s.io/v1beta1" | "scheduling.k8s.io/v1alpha3"), Some("Workload")) => {
            let workload = v1beta1::Workload::deserialize(object)?;
            let facts = Facts::Templates(template_facts_v1beta1(&workload));
            (object_name(&workload.metadata), facts)
        }
        (Some("v1"), Some("Pod")) => {
            let pod = Pod::deserialize(object)?;
            (object_name(&pod.metadata), pod_facts(&pod))
        }
        (Some("scheduling.sigs.k8s.io/v1alpha1"), Some(koordinator::KIND)) => {
            let quota = ElasticQuota::deserialize(object)?;
            (object_name(&quota.metadata), elastic_quota_facts(&quota))
        }
        _ => return Ok(None),
    }))
}

fn own_workload_facts(workload: &Workload) -> Facts {
    let spec = &workload.spec;
    let status = workload.status.as_ref();
    let finished = status.is_some_and(|status| is_finished(&status.conditions));
    workload_facts(
        [
            spec.priority_class_name.as_deref(),
            spec.preemption_priority_class_name.as_deref(),
        ],
        finished,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::cluster_view::{ClusterView, Lookup};
    use crate::cohort_trees::NodeKind;
    use crate::index::IndexedKind;
    use serde_json::json;

    /// Ingests an object of lockkeeper that does not decode, and returns the index.
    fn broken(kind: &str, spec: &Value) -> Index {
        let mut index = Index::default();
        let object = json!({
            "apiVersion": "lockkeeper.dev/v1alpha1", "kind": kind,
            "metadata": {"name": "a"}, "spec": spec,
        });
        assert!(ingest(&mut index, &object).is_err());
        index
    }

    #[test]
    fn ingest_undecodable_object_keeps_its_name() {
        let flavor = json!({"name": "spot", "resources": [{"name": "cpu", "nominalQuota": 1}]});
        let groups = json!([{"coveredResources": ["cpu"], "flavors": [flavor]}]);
        let queue = json!({
            "cohortName": "c", "queueingStrategy": "Fifo", "resourceGroups": groups,
        });
        let index = broken("ClusterQueue", &queue);
        let tree = index.tree(Project::Lockkeeper);
        let facts = tree.node(NodeKind::Queue, "a").unwrap();
        assert_eq!(facts.parent.as_deref(), Some("c"));
        assert_eq!(tree.users("spot").count(), 1);

        let kind = IndexedKind::ClusterQueue(Project::Lockkeeper);
        let index = broken("ClusterQueue", &json!({"resourceGroups": 1}));
        assert_eq!(index.exists(kind, "a"), Lookup::Found(()));
        let kind = IndexedKind::Cohort(Project::Lockkeeper);
        let index = broken("Cohort", &json!({"parentName": 1}));
        assert_eq!(index.exists(kind, "a"), Lookup::Found(()));
        let kind = IndexedKind::ResourceFlavor(Project::Lockkeeper);
        let index = broken("ResourceFlavor", &json!({"nodeLabels": 1}));
        assert_eq!(index.exists(kind, "a"), Lookup::Found(()));
    }

    /// Objects of several clusters in one folder, as in `check`.
    #[test]
    fn collect_two_versions_of_an_object_marks_tree_ambiguous() {
        let queue = |cohort: &str| {
            json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
                "metadata": {"name": "a"}, "spec": {"cohortName": cohort},
            })
        };
        for (second, ambiguous) in [("c", false), ("d", true)] {
            let mut index = Index::default();
            for cohort in ["c", second] {
                collect(&mut index, &queue(cohort)).unwrap();
            }
            assert_eq!(index.tree(Project::Kueue).is_ambiguous(), ambiguous);
            assert!(!index.tree(Project::Lockkeeper).is_ambiguous());
        }
    }

    #[test]
    fn ingest_v1beta1_reads_former_cohort_field() {
        let mut index = Index::default();
        for (kind, field) in [("ClusterQueue", "cohort"), ("Cohort", "parent")] {
            let object = json!({
                "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind,
                "metadata": {"name": kind}, "spec": {field: "c"},
            });
            ingest(&mut index, &object).unwrap();
        }
        assert_eq!(index.tree(Project::Kueue).children("c").count(), 2);
        assert_eq!(index.tree(Project::Lockkeeper).children("c").count(), 0);
    }
}

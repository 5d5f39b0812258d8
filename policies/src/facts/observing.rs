//! Objects as they are written, taken into an index.

use super::{
    cluster_scoped, is_finished, name_of, of_cluster_queue, of_cohort, of_flavor,
    of_kueue_cluster_queue, of_kueue_cohort, of_kueue_flavor, of_kueue_local_queue,
    of_later_templates, of_local_queue, of_priority_class, of_quota, of_templates, of_whole_pod,
    of_workload, of_workload_priority_class,
};
use crate::index::{Facts, Index};
use crate::quota::HasQuota;
use crate::trees::{Family, FlavorFacts};
use crate::world::ObjectName;
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

/// What [`observe`] did with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Its facts were taken.
    Taken,
    /// No rule asks for objects like it.
    NotUsed,
}

/// An object's name and facts; `None` if no rule asks for objects like it.
type Read = Result<Option<(ObjectName, Facts)>, serde_json::Error>;

/// Takes the facts of an object, given as JSON, into an index.
///
/// # Errors
///
/// When it is of a kind that rules use and does not fit it. If others may name it, it is there all the same.
pub fn observe(index: &mut Index, object: &Value) -> Result<Observed, serde_json::Error> {
    take(object, |name, facts| index.apply(name, facts))
}

/// Takes the facts of an object among others, some of which may be the same one in another version.
///
/// # Errors
///
/// As [`observe`].
pub fn gather(index: &mut Index, object: &Value) -> Result<Observed, serde_json::Error> {
    take(object, |name, facts| index.join(name, facts))
}

fn take(
    object: &Value,
    put: impl FnOnce(ObjectName, Facts),
) -> Result<Observed, serde_json::Error> {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = text("kind");
    let read = match text("apiVersion").split_once('/').unwrap_or_default() {
        ("lockkeeper.dev", "v1alpha1") => own(kind, object),
        (kueue::GROUP, version @ ("v1beta1" | "v1beta2")) => of_kueue(version, kind, object),
        _ => of_others(object),
    };
    match read {
        Ok(None) => Ok(Observed::NotUsed),
        Ok(Some((name, facts))) => {
            put(name, facts);
            Ok(Observed::Taken)
        }
        Err(error) => {
            if let Some((name, facts)) = rough(object) {
                put(name, facts);
            }
            Err(error)
        }
    }
}

/// What can be told of an object that does not fit its kind. A fault in one object is not to be found in all that
/// name it.
fn rough(object: &Value) -> Option<(ObjectName, Facts)> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let name = ObjectName {
        namespace: String::new(),
        name: text("/metadata/name")?.to_owned(),
    };
    let family = match text("/apiVersion")?.split_once('/')?.0 {
        "lockkeeper.dev" => Family::Own,
        kueue::GROUP => Family::Kueue,
        _ => return None,
    };
    // Kueue's kinds have the same fields, and are read with any text for a policy.
    let facts = match text("/kind")? {
        "ClusterQueue" => {
            let read = kueue::ClusterQueue::deserialize(object);
            let facts = read.map(|it| HasQuota::facts(&it)).unwrap_or_default();
            Facts::ClusterQueue(family, Arc::new(facts))
        }
        "Cohort" => {
            let read = kueue::Cohort::deserialize(object);
            let facts = read.map(|it| HasQuota::facts(&it)).unwrap_or_default();
            Facts::Cohort(family, Arc::new(facts))
        }
        "ResourceFlavor" => Facts::ResourceFlavor(family, FlavorFacts::default()),
        _ => return None,
    };
    Some((name, facts))
}

fn own(kind: &str, object: &Value) -> Read {
    Ok(Some(match kind {
        "Workload" => {
            let workload = Workload::deserialize(object)?;
            (name_of(&workload.metadata), workload_facts(&workload))
        }
        "ClusterQueue" => {
            let queue = ClusterQueue::deserialize(object)?;
            (cluster_scoped(&queue.metadata), of_cluster_queue(&queue))
        }
        "Cohort" => {
            let cohort = Cohort::deserialize(object)?;
            (cluster_scoped(&cohort.metadata), of_cohort(&cohort))
        }
        "ResourceFlavor" => {
            let flavor = ResourceFlavor::deserialize(object)?;
            (cluster_scoped(&flavor.metadata), of_flavor(&flavor))
        }
        "LocalQueue" => {
            let queue = LocalQueue::deserialize(object)?;
            (name_of(&queue.metadata), of_local_queue(&queue))
        }
        _ => return Ok(None),
    }))
}

fn of_kueue(version: &str, kind: &str, object: &Value) -> Read {
    Ok(Some(match kind {
        "ClusterQueue" => {
            let queue: kueue::ClusterQueue = read(version, object, ("cohort", "cohortName"))?;
            let facts = of_kueue_cluster_queue(&queue);
            (cluster_scoped(&queue.metadata), facts)
        }
        "Cohort" => {
            let cohort: kueue::Cohort = read(version, object, ("parent", "parentName"))?;
            (cluster_scoped(&cohort.metadata), of_kueue_cohort(&cohort))
        }
        "ResourceFlavor" => {
            let flavor = kueue::ResourceFlavor::deserialize(object)?;
            (cluster_scoped(&flavor.metadata), of_kueue_flavor(&flavor))
        }
        "LocalQueue" => {
            let queue = kueue::LocalQueue::deserialize(object)?;
            (name_of(&queue.metadata), of_kueue_local_queue(&queue))
        }
        "WorkloadPriorityClass" => {
            let class = kueue::WorkloadPriorityClass::deserialize(object)?;
            let facts = of_workload_priority_class(&class);
            (cluster_scoped(&class.metadata), facts)
        }
        _ => return Ok(None),
    }))
}

/// Reads an object of Kueue's whose field had another name in the version before.
fn read<T: DeserializeOwned>(
    version: &str,
    object: &Value,
    (before, now): (&str, &str),
) -> Result<T, serde_json::Error> {
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

fn of_others(object: &Value) -> Read {
    let text = |key| object.get(key).and_then(Value::as_str);
    Ok(Some(match (text("apiVersion"), text("kind")) {
        (Some("scheduling.k8s.io/v1"), Some("PriorityClass")) => {
            let class = PriorityClass::deserialize(object)?;
            let facts = Facts::PriorityClass(of_priority_class(&class));
            (cluster_scoped(&class.metadata), facts)
        }
        (Some("scheduling.k8s.io/v1alpha2"), Some("Workload")) => {
            let workload = scheduling::Workload::deserialize(object)?;
            let facts = Facts::Templates(of_templates(&workload));
            (name_of(&workload.metadata), facts)
        }
        (Some("scheduling.k8s.io/v1beta1" | "scheduling.k8s.io/v1alpha3"), Some("Workload")) => {
            let workload = v1beta1::Workload::deserialize(object)?;
            let facts = Facts::Templates(of_later_templates(&workload));
            (name_of(&workload.metadata), facts)
        }
        (Some("v1"), Some("Pod")) => {
            let pod = Pod::deserialize(object)?;
            (name_of(&pod.metadata), of_whole_pod(&pod))
        }
        (Some("scheduling.sigs.k8s.io/v1alpha1"), Some(koordinator::KIND)) => {
            let quota = ElasticQuota::deserialize(object)?;
            (name_of(&quota.metadata), of_quota(&quota))
        }
        _ => return Ok(None),
    }))
}

fn workload_facts(workload: &Workload) -> Facts {
    let spec = &workload.spec;
    let status = workload.status.as_ref();
    let finished = status.is_some_and(|status| is_finished(&status.conditions));
    of_workload(
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
    use crate::index::IndexedKind;
    use crate::trees::NodeKind;
    use crate::world::{Lookup, World};
    use serde_json::json;

    /// Takes an object of lockkeeper's that cannot be read, and gives back what is known then.
    fn broken(kind: &str, spec: &Value) -> Index {
        let mut index = Index::default();
        let object = json!({
            "apiVersion": "lockkeeper.dev/v1alpha1", "kind": kind,
            "metadata": {"name": "a"}, "spec": spec,
        });
        assert!(observe(&mut index, &object).is_err());
        index
    }

    #[test]
    fn what_cannot_be_read_is_there_all_the_same() {
        let flavor = json!({"name": "spot", "resources": [{"name": "cpu", "nominalQuota": 1}]});
        let groups = json!([{"coveredResources": ["cpu"], "flavors": [flavor]}]);
        let queue = json!({
            "cohortName": "c", "queueingStrategy": "Fifo", "resourceGroups": groups,
        });
        let index = broken("ClusterQueue", &queue);
        let tree = index.tree(Family::Own);
        let facts = tree.node(NodeKind::Queue, "a").unwrap();
        assert_eq!(facts.above.as_deref(), Some("c"));
        assert_eq!(tree.users("spot").count(), 1);

        let kind = IndexedKind::ClusterQueue(Family::Own);
        let index = broken("ClusterQueue", &json!({"resourceGroups": 1}));
        assert_eq!(index.exists(kind, "a"), Lookup::Found(()));
        let kind = IndexedKind::Cohort(Family::Own);
        let index = broken("Cohort", &json!({"parentName": 1}));
        assert_eq!(index.exists(kind, "a"), Lookup::Found(()));
        let kind = IndexedKind::ResourceFlavor(Family::Own);
        let index = broken("ResourceFlavor", &json!({"nodeLabels": 1}));
        assert_eq!(index.exists(kind, "a"), Lookup::Found(()));
    }

    /// Objects of several clusters, as `check` finds them in one folder.
    #[test]
    fn another_version_makes_what_is_known_ambiguous() {
        let queue = |cohort: &str| {
            json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
                "metadata": {"name": "a"}, "spec": {"cohortName": cohort},
            })
        };
        for (second, ambiguous) in [("c", false), ("d", true)] {
            let mut index = Index::default();
            for cohort in ["c", second] {
                gather(&mut index, &queue(cohort)).unwrap();
            }
            assert_eq!(index.tree(Family::Kueue).is_ambiguous(), ambiguous);
            assert!(!index.tree(Family::Own).is_ambiguous());
        }
    }

    #[test]
    fn the_version_before_names_the_cohort_otherwise() {
        let mut index = Index::default();
        for (kind, field) in [("ClusterQueue", "cohort"), ("Cohort", "parent")] {
            let object = json!({
                "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind,
                "metadata": {"name": kind}, "spec": {field: "c"},
            });
            observe(&mut index, &object).unwrap();
        }
        assert_eq!(index.tree(Family::Kueue).below("c").count(), 2);
        assert_eq!(index.tree(Family::Own).below("c").count(), 0);
    }
}

//! Objects as the facts that rules use of them.

use crate::index::{Facts, Index, IndexedKind};
use crate::world::{ObjectName, PreemptibleLabel, PriorityClassFacts};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;
use lockkeeper_api::{Workload, labels};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The namespace and name in an object's metadata.
#[must_use]
pub fn name_of(metadata: &ObjectMeta) -> ObjectName {
    ObjectName {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}

/// The name of an object of a cluster-scoped kind. A namespace that a file gives it means nothing.
fn cluster_scoped(metadata: &ObjectMeta) -> ObjectName {
    ObjectName {
        namespace: String::new(),
        ..name_of(metadata)
    }
}

/// The facts of a PriorityClass.
#[must_use]
pub fn of_priority_class(class: &PriorityClass) -> PriorityClassFacts {
    PriorityClassFacts {
        value: class.value.unwrap_or_default(),
        global_default: class.global_default == Some(true),
    }
}

/// The facts of a Workload that names these classes. A finished one uses none.
#[must_use]
pub fn of_workload(classes: [Option<&str>; 2], finished: bool) -> Facts {
    let named = classes.into_iter().flatten().map(str::to_owned);
    Facts::Workload {
        classes: if finished {
            BTreeSet::new()
        } else {
            named.collect()
        },
    }
}

/// Whether the conditions of a Workload say that it has finished.
#[must_use]
pub fn is_finished(conditions: &[Condition]) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|condition| condition.type_ == "Finished" && condition.status == "True")
}

/// The facts of a pod with these labels; `None` when it belongs to no job.
#[must_use]
pub fn of_pod(own: Option<&BTreeMap<String, String>>) -> Option<Facts> {
    let own = own?;
    Some(Facts::Pod {
        job: own.get(labels::JOB)?.clone(),
        label: PreemptibleLabel::of(own.get(labels::PREEMPTIBLE).map(String::as_str)),
    })
}

/// What [`observe`] did with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Its facts were taken.
    Taken,
    /// No rule asks for objects like it.
    NotUsed,
}

/// Takes the facts of an object, given as JSON, into an index.
///
/// # Errors
///
/// When it is of a kind that rules use and does not fit it.
pub fn observe(index: &mut Index, object: &Value) -> Result<Observed, serde_json::Error> {
    let api_version = object.get("apiVersion").and_then(Value::as_str);
    let kind = object.get("kind").and_then(Value::as_str);
    let (name, facts) = match (api_version, kind) {
        (Some("scheduling.k8s.io/v1"), Some("PriorityClass")) => {
            let class = PriorityClass::deserialize(object)?;
            (
                cluster_scoped(&class.metadata),
                Some(Facts::PriorityClass(of_priority_class(&class))),
            )
        }
        (Some("lockkeeper.dev/v1alpha1"), Some("Workload")) => {
            let workload = Workload::deserialize(object)?;
            (name_of(&workload.metadata), Some(workload_facts(&workload)))
        }
        (Some("v1"), Some("Pod")) => {
            index.declare_known(IndexedKind::Pod);
            let pod = Pod::deserialize(object)?;
            (name_of(&pod.metadata), of_pod(pod.metadata.labels.as_ref()))
        }
        _ => return Ok(Observed::NotUsed),
    };
    match facts {
        None => Ok(Observed::NotUsed),
        Some(facts) => {
            index.apply(name, facts);
            Ok(Observed::Taken)
        }
    }
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

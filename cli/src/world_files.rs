//! Reads existing objects from files (`--world`).

use crate::manifest_text::read_documents;
use anyhow::{Context, Error, anyhow};
use lockkeeper_crdgen::manifests::{FileList, ListedFile};
use lockkeeper_policies::cohort_trees::Project;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Index, IndexedKind};
use serde_json::Value;
use std::fs;
use std::path::Path;

const LOCKKEEPER: &str = "lockkeeper.dev/v1alpha1";
const KUEUE: &str = "kueue.x-k8s.io/v1beta2";

/// The kinds that rules look up: apiVersion, kind and resource name.
#[rustfmt::skip]
pub(crate) const INDEXED_KINDS: [(IndexedKind, &str, &str, &str); 14] = [
    (IndexedKind::PriorityClass, "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
    (IndexedKind::Workload, LOCKKEEPER, "Workload", "workloads"),
    (IndexedKind::Pod, "v1", "Pod", "pods"),
    (IndexedKind::ElasticQuota, "scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "elasticquotas"),
    (IndexedKind::Templates, "scheduling.k8s.io/v1alpha2", "Workload", "workloads"),
    (IndexedKind::ClusterQueue(Project::Lockkeeper), LOCKKEEPER, "ClusterQueue", "clusterqueues"),
    (IndexedKind::Cohort(Project::Lockkeeper), LOCKKEEPER, "Cohort", "cohorts"),
    (IndexedKind::ResourceFlavor(Project::Lockkeeper), LOCKKEEPER, "ResourceFlavor", "resourceflavors"),
    (IndexedKind::LocalQueue(Project::Lockkeeper), LOCKKEEPER, "LocalQueue", "localqueues"),
    (IndexedKind::ClusterQueue(Project::Kueue), KUEUE, "ClusterQueue", "clusterqueues"),
    (IndexedKind::Cohort(Project::Kueue), KUEUE, "Cohort", "cohorts"),
    (IndexedKind::ResourceFlavor(Project::Kueue), KUEUE, "ResourceFlavor", "resourceflavors"),
    (IndexedKind::LocalQueue(Project::Kueue), KUEUE, "LocalQueue", "localqueues"),
    (IndexedKind::WorkloadPriorityClass, KUEUE, "WorkloadPriorityClass", "workloadpriorityclasses"),
];

/// Reads every object in the YAML and JSON files of a folder into an index. Objects that are not there do not
/// exist.
pub(crate) fn read_folder(folder: &Path) -> Result<Index, Error> {
    let shown = folder.display();
    // Reports a missing folder; the list of files would be empty.
    fs::read_dir(folder).with_context(|| {
        format!("cannot read the folder {shown}; set --world to a folder with YAML and JSON files")
    })?;
    let mut index = Index::default();
    index.mark_all_complete();
    for listed in FileList::default().list(folder) {
        let file = match listed {
            ListedFile::File(path) => path,
            ListedFile::Unreadable { path, reason } => {
                let shown = path.display();
                return Err(anyhow!(
                    "cannot read {shown}; fix it, or remove it from the folder: {reason}"
                ));
            }
        };
        let documents = read_documents(&file)
            .map_err(|error| anyhow!("{error:#}; fix it, or remove it from the folder"))?;
        for object in &documents {
            ingest(&mut index, object).with_context(|| file.display().to_string())?;
        }
    }
    Ok(index)
}

/// Adds one object, or every item of a list.
fn ingest(index: &mut Index, object: &Value) -> Result<(), Error> {
    if let Some(items) = object.get("items").and_then(Value::as_array) {
        return items.iter().try_for_each(|item| ingest(index, item));
    }
    facts::ingest(index, object).with_context(|| describe(object))?;
    Ok(())
}

fn describe(object: &Value) -> String {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("?")
    };
    format!("{} {}", text("/kind"), text("/metadata/name"))
}

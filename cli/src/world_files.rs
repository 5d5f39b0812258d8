//! Reads existing objects from files (`--world`).

use anyhow::{Context, Error, anyhow, bail};
use lockkeeper_check::yaml::place_and_message;
use lockkeeper_policies::cohort_trees::Project;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Index, IndexedKind};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The largest accepted file, in bytes: 64 MiB.
const FILE_SIZE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The deepest nesting of folders to read.
const DEPTH_MAX: usize = 16;

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

/// Marks every kind of an index as complete: objects that it does not have do not exist.
pub(crate) fn declare_all_known(index: &mut Index) {
    for kind in IndexedKind::ALL {
        index.mark_complete(kind);
    }
}

/// Reads every object in the YAML and JSON files of a folder into an index. Objects that are not there do not
/// exist.
pub(crate) fn read_folder(folder: &Path) -> Result<Index, Error> {
    let mut files = Vec::new();
    collect_files(folder, DEPTH_MAX, &mut files)?;
    let mut index = Index::default();
    declare_all_known(&mut index);
    for file in files {
        for object in &documents(&file)? {
            ingest(&mut index, object).with_context(|| file.display().to_string())?;
        }
    }
    Ok(index)
}

/// Collects the files below a folder, in the order of their names.
fn collect_files(folder: &Path, depth: usize, out: &mut Vec<PathBuf>) -> Result<(), Error> {
    let shown = folder.display();
    // A symbolic link may form a loop of folders.
    if depth == 0 {
        bail!("{shown}: folders are nested more than {DEPTH_MAX} deep");
    }
    let read = || {
        format!("cannot read the folder {shown}; set --world to a folder with YAML and JSON files")
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(read)? {
        paths.push(entry.with_context(read)?.path());
    }
    paths.sort();
    for path in paths {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            collect_files(&path, depth.saturating_sub(1), out)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            out.push(path);
        }
    }
    Ok(())
}

fn documents(file: &Path) -> Result<Vec<Value>, Error> {
    let shown = file.display();
    let read = || format!("cannot read {shown}; fix it, or remove it from the folder");
    let size = fs::metadata(file).with_context(read)?.len();
    if size > FILE_SIZE_MAX_BYTES {
        bail!("{shown} has {size} bytes; at most {FILE_SIZE_MAX_BYTES} are read");
    }
    let text = fs::read_to_string(file).with_context(read)?;
    serde_saphyr::from_multiple(&text).map_err(|error| {
        let (place, message) = place_and_message(&error);
        anyhow!("{shown}{place}: {message}")
    })
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

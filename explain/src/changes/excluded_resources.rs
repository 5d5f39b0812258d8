//! Requests without quota.

use crate::change::Change;
use crate::project::Project;
use crate::trial::{Outcome, Trial};
use lockkeeper_cluster_state::uncovered_resources;

/// The requested resources that the ClusterQueue does not cover, if the workload fits on free quota without them.
pub(super) fn change(trial: &mut Trial) -> Option<Change> {
    let uncovered = uncovered_resources(&trial.cluster, &trial.workload);
    let uncovered: Vec<String> = uncovered.into_iter().collect();
    if uncovered.is_empty() || trial.with_excluded(&uncovered) != Outcome::Fits {
        return None;
    }
    Some(Change::ExcludedResources {
        field: match trial.project {
            Project::Lockkeeper => "resources.excludePrefixes",
            Project::Kueue => "resources.excludeResourcePrefixes",
        },
        prefixes: uncovered,
    })
}

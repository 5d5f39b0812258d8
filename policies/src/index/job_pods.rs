//! The pods of jobs, grouped by their preemption labels.

use crate::cluster_view::{ObjectName, PodPreemptionLabels, PodPriority, PreemptibleLabel};
use crate::multimap::remove_from;
use std::collections::{BTreeMap, BTreeSet};

/// Namespace, job and the labels of the pods.
type Key = (String, String, PodPreemptionLabels);

/// The smallest labels in their order.
const SMALLEST: PodPreemptionLabels = PodPreemptionLabels {
    preemptible: PreemptibleLabel::Missing,
    can_preempt: false,
    priority: PodPriority::Unknown,
};

/// The names of pods. Pods of one job that say the same are together, and jobs seldom have two such
/// groups.
#[derive(Clone, Debug, Default)]
pub(super) struct JobPods {
    groups: BTreeMap<Key, BTreeSet<String>>,
}

impl JobPods {
    pub(super) fn insert(&mut self, pod: &ObjectName, job: &str, says: &PodPreemptionLabels) {
        let key = (pod.namespace.clone(), job.to_owned(), says.clone());
        self.groups.entry(key).or_default().insert(pod.name.clone());
    }

    pub(super) fn remove(&mut self, pod: &ObjectName, job: &str, says: &PodPreemptionLabels) {
        let key = (pod.namespace.clone(), job.to_owned(), says.clone());
        remove_from(&mut self.groups, &key, &pod.name);
    }

    /// The first pod by name other than `except`, of the first group of which `holds`. Costs
    /// O(log n) and the number of the job's groups.
    pub(super) fn find_first(
        &self,
        namespace: &str,
        job: &str,
        except: &str,
        holds: &dyn Fn(&PodPreemptionLabels) -> bool,
    ) -> Option<(&str, &PodPreemptionLabels)> {
        let from = (namespace.to_owned(), job.to_owned(), SMALLEST);
        let mut groups = self
            .groups
            .range(from..)
            .take_while(|((its_namespace, its_job, _), _)| {
                its_namespace == namespace && its_job == job
            })
            .filter(|((_, _, says), _)| holds(says));
        groups.find_map(|((_, _, says), pods)| {
            let pod = pods.iter().find(|name| *name != except)?;
            Some((pod.as_str(), says))
        })
    }
}

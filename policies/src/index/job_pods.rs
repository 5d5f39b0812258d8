//! The pods of jobs, grouped by their preemption labels.

use crate::cluster_view::{ObjectName, PodPreemptionLabels, PodPriority, PreemptibleLabel};
use crate::multimap::remove_from;
use std::collections::{BTreeMap, BTreeSet};

/// The namespace, the job and the labels of a group of pods.
type Key = (String, String, PodPreemptionLabels);

/// The smallest labels in sort order, the start of a range.
const SMALLEST: PodPreemptionLabels = PodPreemptionLabels {
    preemptible: PreemptibleLabel::Missing,
    can_preempt: false,
    priority: PodPriority::Unknown,
};

/// The names of pods, grouped by namespace, job and labels. Few jobs have more than one group.
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

    /// The first pod by name other than `except`, in the first group for which the predicate is true. Costs O(log n)
    /// plus the number of groups of the job.
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
            // The labels are the last part of the key, so the groups of a job are adjacent.
            .take_while(|((its_namespace, its_job, _), _)| {
                its_namespace == namespace && its_job == job
            })
            .filter(|((_, _, says), _)| holds(says));
        groups.find_map(|((_, _, says), pods)| {
            // The index may contain the stored version of the pod under review.
            let pod = pods.iter().find(|name| *name != except)?;
            Some((pod.as_str(), says))
        })
    }
}

//! The pods of a preemptor on their nodes, beside which others are added.

use super::inter_pod::InterPodRejection;
use super::inter_pod_counts::{CountsMark, InterPodCounts};
use super::inter_pod_table::CounterId;
use crate::ids::{HostId, PodId, SymbolId};
use std::collections::{BTreeMap, BTreeSet};

/// The pods that must be alone in a domain.
type PodsByDomain = BTreeMap<(CounterId, SymbolId), Vec<(PodId, HostId)>>;

/// The pods of a preemptor that other pods restrict, on their nodes.
#[derive(Debug)]
pub struct PlacedPods {
    /// In order.
    pods: Vec<(PodId, HostId)>,
    /// If only anti-affinity restricts them: a pod for each domain that some pods must not be in.
    by_domain: Option<PodsByDomain>,
}

impl PlacedPods {
    /// Adds the pods of a preemptor to the counts.
    #[must_use]
    pub fn add(
        counts: &mut InterPodCounts<'_>,
        pods: &[PodId],
        placement: &[Option<HostId>],
    ) -> Self {
        let pods = pods.iter().zip(placement);
        let pods = pods.filter_map(|(pod, host)| Some((*pod, (*host)?)));
        let pods: Vec<(PodId, HostId)> = pods.collect();
        for (pod, host) in &pods {
            counts.add(*pod, *host);
        }
        let table = counts.table();
        let by_domain = table.is_order_irrelevant().then(|| {
            let mut by_domain = PodsByDomain::new();
            let mut kinds = BTreeSet::new();
            for (pod, host) in &pods {
                if !kinds.insert((table.kind_of(*pod), *host)) {
                    continue;
                }
                for domain in table.excluding_domains(*pod, *host) {
                    by_domain.entry(domain).or_default().push((*pod, *host));
                }
            }
            by_domain
        });
        Self { pods, by_domain }
    }

    /// Whether pods that are added may give these the affinity or the even spread that they lack.
    #[must_use]
    pub const fn may_need_others(&self) -> bool {
        self.by_domain.is_none()
    }

    /// The first of the pods that could not start beside the pods that were added since a mark, and before it those of the
    /// preemptor. The first pod with an affinity to the others, for example, can start only while no such pod runs elsewhere.
    /// Costs the added pods; with affinity or spread, all pods of the preemptor.
    #[must_use]
    pub fn conflict(
        &self,
        counts: &mut InterPodCounts<'_>,
        since: CountsMark,
    ) -> Option<(HostId, InterPodRejection)> {
        let mut changed = counts.changed_since(since).peekable();
        // Most pods restrict no pod of the preemptor.
        changed.peek()?;
        let Some(by_domain) = &self.by_domain else {
            drop(changed);
            return self.conflict_in_order(counts);
        };
        let pods = changed.filter_map(|it| by_domain.get(&it)).flatten();
        let conflicts = pods.filter_map(|(pod, host)| {
            let rejection = counts.rejection_of_added(*pod, *host)?;
            Some((*host, rejection))
        });
        // Whatever the order of the added pods.
        conflicts.min()
    }

    fn conflict_in_order(
        &self,
        counts: &mut InterPodCounts<'_>,
    ) -> Option<(HostId, InterPodRejection)> {
        let mark = counts.mark();
        for (pod, host) in &self.pods {
            counts.remove(*pod, *host);
        }
        let mut conflict = None;
        for (pod, host) in &self.pods {
            if let Some(rejection) = counts.rejection_of(*pod, *host) {
                conflict = Some((*host, rejection));
                break;
            }
            counts.add(*pod, *host);
        }
        counts.roll_back(mark);
        conflict
    }
}

//! The quota of a ClusterQueue on each level of its tree.

use super::model::State;
use super::reactivation::apply_changes;
use crate::amount::Amount;
use crate::ids::{FlavorResource, NodeId};
use crate::quota::{UsageStore, View};

/// The quota of one flavor and resource at a ClusterQueue or a cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLevel {
    /// The ClusterQueue or cohort.
    pub node: NodeId,
    /// Its own nominal quota.
    pub nominal: Amount,
    /// The nominal quota and what its members lend to it.
    pub quota: Amount,
    /// The usage. At a cohort: what its members use beyond the quota that they do not lend.
    pub usage: Amount,
    /// What a workload of the queue could use here in addition; negative if more is used than the limits permit.
    pub available: Amount,
    /// What may still be borrowed under the borrowing limit; `None` without a limit, and at the root.
    pub borrowable: Option<Amount>,
    /// Whether the borrowing limit, and not what is free above, limits `available`.
    pub is_limited_by_borrowing: bool,
}

/// Returns the levels of a ClusterQueue from itself up to the root of its tree, for one flavor and resource. Empty
/// without quota or usage of it.
///
/// Costs the square of the depth of the tree.
#[must_use]
pub fn quota_levels(state: &mut State, queue: NodeId, of: FlavorResource) -> Vec<QuotaLevel> {
    apply_changes(state);
    let mut overlay = std::mem::take(&mut state.overlay);
    let view = View::new(&state.tree, &state.usage, &mut overlay);
    let mut levels = Vec::new();
    let mut next = state.tree.node(queue).cell(of);
    while let Some(id) = next {
        let cell = state.tree.cell(id);
        let usage = view.usage(id);
        // The most that the parent contributes: the quota that the node lends to it, and what may be borrowed.
        let from_parent = cell.borrowable(usage);
        let lent = cell.subtree.minus(usage.max(cell.local)).or_zero();
        let above = cell.parent.map(|parent| view.available(parent));
        levels.push(QuotaLevel {
            node: cell.node,
            nominal: cell.nominal,
            quota: cell.subtree,
            usage,
            available: view.available(id),
            borrowable: (above.is_some() && !from_parent.is_unlimited())
                .then(|| from_parent.minus(lent).or_zero()),
            is_limited_by_borrowing: above.is_some_and(|above| from_parent < above),
        });
        next = cell.parent;
    }
    state.overlay = overlay;
    levels
}

#[cfg(test)]
mod tests {
    use super::quota_levels;
    use crate::{
        Amount, CohortSpec, FlavorFungibility, FlavorQuotas, FlavorResource, NodeId, Preemption,
        QueueSpec, QueueingStrategy, Quota, Reservation, ResourceGroup, State, WorkloadSpec,
    };

    fn queue(
        state: &mut State,
        of: FlavorResource,
        name: &str,
        nominal: i64,
        borrow: Option<i64>,
    ) -> NodeId {
        let quota = Quota {
            nominal: Amount::new(nominal),
            borrowing_limit: borrow.map(Amount::new),
            lending_limit: None,
        };
        state.set_queue(QueueSpec {
            name,
            cohort: Some("team"),
            groups: vec![ResourceGroup {
                resources: vec![of.resource],
                flavors: vec![FlavorQuotas {
                    flavor: of.flavor,
                    quotas: vec![(of.resource, quota)],
                }],
            }],
            preemption: Preemption::default(),
            fungibility: FlavorFungibility::default(),
            strategy: QueueingStrategy::BestEffortFifo,
            backfill: None,
            weight: 1.0,
            elastic: None,
            is_active: true,
        })
    }

    #[test]
    fn quota_levels_go_from_queue_to_root() {
        let mut state = State::default();
        let (flavor, resource) = (state.flavor("f"), state.resource("cpu"));
        let of = FlavorResource { flavor, resource };
        let team = state.set_cohort(CohortSpec {
            name: "team",
            parent: Some("all"),
            quotas: vec![(
                of,
                Quota {
                    nominal: Amount::new(5),
                    borrowing_limit: None,
                    lending_limit: None,
                },
            )],
            weight: 1.0,
        });
        let one = queue(&mut state, of, "one", 10, Some(3));
        queue(&mut state, of, "two", 20, None);
        let held = Reservation {
            usage: vec![(of, Amount::new(11))],
            reserved_at_s: 0,
            is_evicted: false,
        };
        let spec = WorkloadSpec {
            name: "w",
            uid: "w",
            queue: "one",
            priority: 0,
            preemption_priority: None,
            order_time: 0,
            waiting_since_s: 0,
            pod_sets: Vec::new(),
            is_in_scope: true,
            preemption_labels: crate::job::PreemptionLabels::default(),
        };
        state.add_admitted(spec, &held);
        let levels = quota_levels(&mut state, one, of);
        let nodes: Vec<NodeId> = levels.iter().map(|it| it.node).collect();
        assert_eq!(nodes, [one, team, state.cohort("all").unwrap()]);
        // Its limit permits 13, and the cohort has 35, of which 11 are used.
        assert!(levels[0].is_limited_by_borrowing && !levels[1].is_limited_by_borrowing);
        assert_eq!(levels[0].available, Amount::new(2));
        assert_eq!(levels[0].borrowable, Some(Amount::new(2)));
        assert_eq!(
            (levels[1].quota, levels[1].usage),
            (Amount::new(35), Amount::new(11))
        );
        assert_eq!(levels[1].available, Amount::new(24));
        assert_eq!(levels[2].borrowable, None);
        let other = FlavorResource {
            flavor,
            resource: state.resource("gpu"),
        };
        assert_eq!(quota_levels(&mut state, one, other), []);
    }
}

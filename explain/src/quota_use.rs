//! The use of quota in the tree of a workload, before and after its admission.

use crate::listing::{QuotaSums, node_kind, quota_sums};
use crate::world::World;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{Amount, Mode, Reservation, Trace, TreeView, WhatIf};

/// The use of quota by a ClusterQueue or cohort for one flavor and resource, in the unit of the core: milli for cpu, whole units
/// for all other resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaUse {
    /// `ClusterQueue` or `Cohort`.
    pub kind: &'static str,
    /// The names from the root of the tree, as `/root/cohort/queue`.
    pub path: String,
    /// The ResourceFlavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The nominal quota; of a cohort, with that of all ClusterQueues and cohorts below.
    pub nominal: i64,
    /// The usage; of a cohort, that of all ClusterQueues below.
    pub used: i64,
    /// The usage once the workload is admitted, if it were the only pending one, and its victims for quota have released theirs.
    /// `None` if it has quota already or does not fit.
    pub used_after: Option<i64>,
}

/// The use of quota in the tree of cohorts of a workload, each cohort before its members; of all trees if the workload is in no
/// ClusterQueue.
///
/// Costs a decision on the workload, and two copies of the sums.
#[must_use]
pub fn quota_use(world: &World, key: &str) -> Vec<QuotaUse> {
    let mut cluster = world.cluster.clone();
    let before = quota_sums(&mut cluster);
    let root = root_of(&mut cluster, key);
    let after = admit_alone(&mut cluster, key).map(|()| quota_sums(&mut cluster));
    let state = cluster.state();
    let QuotaSums { sums, free, .. } = before;
    let uses = sums.into_iter().filter_map(|(of, sum)| {
        let (path, pair) = &of;
        let is_in_tree = root.as_deref().is_none_or(|it| first_name(path) == it);
        is_in_tree.then(|| QuotaUse {
            kind: node_kind(free.contains_key(&of)),
            path: path.clone(),
            flavor: state.flavor_name(pair.flavor).to_owned(),
            resource: state.resource_name(pair.resource).to_owned(),
            nominal: sum.nominal.get(),
            used: sum.used.get(),
            used_after: after.as_ref().map(|it| {
                let sum = it.sums.get(&of).map(|it| it.used);
                sum.unwrap_or(Amount::ZERO).get()
            }),
        })
    });
    let mut uses: Vec<QuotaUse> = uses.collect();
    uses.sort_by(|a, b| (&a.path, &a.flavor, &a.resource).cmp(&(&b.path, &b.flavor, &b.resource)));
    uses
}

/// The name of the root of the tree of a workload.
fn root_of(cluster: &mut ClusterState, key: &str) -> Option<String> {
    let id = cluster.state().workload(key)?;
    let queue = cluster.state().workload_view(id).queue()?;
    let path = TreeView::new(cluster.state_mut()).path(queue);
    Some(first_name(&path).to_owned())
}

/// The first name of a path.
fn first_name(path: &str) -> &str {
    let names = path.strip_prefix('/').unwrap_or(path);
    names.split('/').next().unwrap_or(names)
}

/// Admits a workload that has no quota, without its victims; `None` if it does not fit.
fn admit_alone(cluster: &mut ClusterState, key: &str) -> Option<()> {
    let id = cluster.state().workload(key)?;
    if cluster.state().workload_view(id).reservation().is_some() {
        return None;
    }
    let now_s = cluster.now_ms().div_euclid(1_000);
    let state = cluster.state_mut();
    let nomination = WhatIf::new(state).nominate(id, Trace::off())?;
    let fits = match nomination.assignment.mode {
        Mode::Fit => true,
        Mode::Preempt => !nomination.victims.is_empty(),
        Mode::NoFit => false,
    };
    if !fits {
        return None;
    }
    for victim in &nomination.victims {
        state.release(victim.workload);
    }
    let reservation = Reservation::from_assignment(&nomination.assignment, now_s);
    state.reserve(id, &reservation);
    Some(())
}

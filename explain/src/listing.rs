//! Lists of pending workloads and of quota, over the whole world.

use crate::identity::controlling_job;
use crate::world::World;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::pending_reason::{INADMISSIBLE, PENDING, not_queued_message};
use lockkeeper_cluster_state::{ClusterState, NotQueuedReason, WorkloadPhase, quantity};
use lockkeeper_preemption::{Amount, FlavorResource, NodeId, TreeView, WorkloadView, quota_levels};
use serde::Serialize;
use std::collections::BTreeMap;

/// A workload without quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkload {
    /// The position in its ClusterQueue, from 0; absent if it is in backoff or not queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The job that owns it, as `Kind/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Its ClusterQueue; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_queue: Option<String>,
    /// Its LocalQueue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_queue: Option<String>,
    /// Its priority in the queue.
    pub priority: i32,
    /// Since when it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The reason as in its condition `QuotaReserved`.
    pub reason: String,
    /// The message of that condition.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// All workloads without quota, by ClusterQueue and position; those that are not queued come last.
#[must_use]
pub fn pending_workloads(world: &World) -> Vec<PendingWorkload> {
    let state = world.cluster.state();
    let mut positions = BTreeMap::new();
    for (_, queue) in state.queues() {
        let pending = state.node_view(queue).pending();
        positions.extend(pending.into_iter().enumerate().map(|(at, id)| (id, at)));
    }
    let mut rows: Vec<PendingWorkload> = Vec::new();
    for (key, workload) in &world.workloads {
        let (reason, message) = match world.cluster.phase(key) {
            None
            | Some(Ok(
                WorkloadPhase::Admitted | WorkloadPhase::NotQueued(NotQueuedReason::Finished),
            )) => continue,
            Some(Ok(WorkloadPhase::Pending | WorkloadPhase::OnHold(_))) => {
                reported_reason(workload)
            }
            Some(Ok(WorkloadPhase::NotQueued(_))) if world.is_partial => reported_reason(workload),
            Some(Ok(WorkloadPhase::NotQueued(reason))) => {
                let message = not_queued_message(world.cluster.objects(), workload, reason);
                (INADMISSIBLE.to_owned(), message)
            }
            Some(Err(error)) => (INADMISSIBLE.to_owned(), error.to_string()),
        };
        let id = state.workload(key);
        let view = id.map(|id| state.workload_view(id));
        let queue = view.and_then(WorkloadView::queue);
        let created = workload.metadata.creation_timestamp.as_ref();
        rows.push(PendingWorkload {
            position: id.and_then(|id| positions.get(&id).copied()),
            namespace: workload.metadata.namespace.clone().unwrap_or_default(),
            name: workload.metadata.name.clone().unwrap_or_default(),
            job: controlling_job(workload),
            cluster_queue: queue.map(|it| state.node_view(it).name().to_owned()),
            local_queue: workload.spec.queue_name.clone(),
            priority: view.map_or(0, WorkloadView::priority),
            created: created.map(|it| it.0.to_string()),
            reason,
            message,
        });
    }
    rows.sort_by_cached_key(|it| {
        let place = it.position.unwrap_or(usize::MAX);
        let queue = it.cluster_queue.clone();
        (
            queue.is_none(),
            queue,
            place,
            it.namespace.clone(),
            it.name.clone(),
        )
    });
    rows
}

/// Reason and message of the condition `QuotaReserved=False`.
pub(crate) fn reported_reason(workload: &Workload) -> (String, String) {
    let conditions = workload.status.iter().flat_map(|it| &it.conditions);
    let mut conditions =
        conditions.filter(|it| it.type_ == "QuotaReserved" && it.status == "False");
    match conditions.next() {
        Some(condition) => (one_line(&condition.reason), one_line(&condition.message)),
        None => (PENDING.to_owned(), String::new()),
    }
}

/// A text of a condition without control characters: a line break would look like a line of the answer.
pub(crate) fn one_line(text: &str) -> String {
    let visible = |it: char| if it.is_control() { ' ' } else { it };
    text.chars().map(visible).collect()
}

/// The quota of a ClusterQueue or cohort for one flavor and resource, as quantities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaRow {
    /// `ClusterQueue` or `Cohort`.
    pub kind: &'static str,
    /// The names from the root of the tree, as `/root/cohort/queue`.
    pub path: String,
    /// The ResourceFlavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The nominal quota; of a cohort, with that of all ClusterQueues and cohorts below.
    pub nominal: String,
    /// The usage; of a cohort, that of all ClusterQueues below.
    pub used: String,
    /// The usage beyond the nominal quota, of a ClusterQueue.
    pub borrowed: String,
    /// What a workload could use in addition, of a ClusterQueue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<String>,
    /// The number of pending workloads; of a cohort, in all ClusterQueues below.
    pub pending: usize,
}

/// The quota of a node for a flavor and resource; of a cohort, with that of all below.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) nominal: Amount,
    pub(crate) used: Amount,
    borrowed: Amount,
}

/// The path of a node, with a flavor and resource.
pub(crate) type QuotaKey = (String, FlavorResource);

/// The quota of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotaSums {
    pub(crate) sums: BTreeMap<QuotaKey, Sums>,
    /// Of ClusterQueues: what a workload could use in addition.
    pub(crate) free: BTreeMap<QuotaKey, Amount>,
    /// By path: the number of pending workloads.
    pending: BTreeMap<String, usize>,
}

/// The quota of every ClusterQueue and cohort, each cohort before its members.
#[must_use]
pub fn quota_rows(world: &World) -> Vec<QuotaRow> {
    let mut cluster = world.cluster.clone();
    let QuotaSums {
        sums,
        free,
        pending,
    } = quota_sums(&mut cluster);
    let state = cluster.state();
    let mut rows: Vec<QuotaRow> = sums
        .into_iter()
        .map(|((path, of), sum)| {
            let resource = state.resource_name(of.resource).to_owned();
            let text = |amount: Amount| quantity(&resource, amount).to_string();
            let own_free = free.get(&(path.clone(), of)).copied();
            QuotaRow {
                kind: node_kind(own_free.is_some()),
                flavor: state.flavor_name(of.flavor).to_owned(),
                nominal: text(sum.nominal),
                used: text(sum.used),
                borrowed: text(sum.borrowed),
                free: own_free.map(text),
                pending: pending.get(&path).copied().unwrap_or_default(),
                path,
                resource,
            }
        })
        .collect();
    rows.sort_by(|a, b| (&a.path, &a.flavor, &a.resource).cmp(&(&b.path, &b.flavor, &b.resource)));
    rows
}

/// The kind of a node.
pub(crate) const fn node_kind(is_queue: bool) -> &'static str {
    if is_queue { "ClusterQueue" } else { "Cohort" }
}

/// Sums quota and use up to the roots.
pub(crate) fn quota_sums(cluster: &mut ClusterState) -> QuotaSums {
    cluster.state_mut().apply_changes();
    let queues: Vec<_> = cluster.state().queues().map(|(_, id)| id).collect();
    let paths: Vec<String> = {
        let mut tree = TreeView::new(cluster.state_mut());
        queues.iter().map(|it| tree.path(*it)).collect()
    };
    let QuotaSums {
        mut sums,
        mut free,
        mut pending,
    } = QuotaSums::default();
    for ((path, of), nominal) in cohort_quotas(cluster, &queues, &paths) {
        for above in prefixes(&path) {
            let sum = sums.entry((above.to_owned(), of)).or_default();
            sum.nominal = sum.nominal.plus(nominal);
        }
    }
    let state = cluster.state();
    for (queue, path) in queues.iter().zip(&paths) {
        let view = state.node_view(*queue);
        let counts = view.pending_counts();
        for above in prefixes(path) {
            let number = pending.entry(above.to_owned()).or_default();
            *number = number
                .saturating_add(counts.queued)
                .saturating_add(counts.backing_off);
        }
        for (of, used) in view.usage() {
            free.insert((path.clone(), of), view.available(of));
            for above in prefixes(path) {
                let sum = sums.entry((above.to_owned(), of)).or_default();
                sum.nominal = sum.nominal.plus(view.nominal(of));
                sum.used = sum.used.plus(used);
                sum.borrowed = sum.borrowed.plus(view.borrowed(of));
            }
        }
    }
    QuotaSums {
        sums,
        free,
        pending,
    }
}

/// The quota of cohorts of their own, by path, for the flavors and resources of the ClusterQueues below.
fn cohort_quotas(
    cluster: &mut ClusterState,
    queues: &[NodeId],
    paths: &[String],
) -> BTreeMap<(String, FlavorResource), Amount> {
    let mut quotas = BTreeMap::new();
    for (queue, path) in queues.iter().zip(paths) {
        let view = cluster.state().node_view(*queue);
        let cells: Vec<FlavorResource> = view.usage().into_iter().map(|(of, _)| of).collect();
        let mut above: Vec<&str> = prefixes(path).collect();
        // The nearest cohort first, as the levels.
        above.reverse();
        for of in cells {
            let levels = quota_levels(cluster.state_mut(), *queue, of);
            for (path, level) in above.iter().zip(levels).skip(1) {
                quotas.insert(((*path).to_owned(), of), level.nominal);
            }
        }
    }
    quotas
}

/// A path and all paths above it, the longest last: `/a`, `/a/b`.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
    ends.chain([path.len()]).filter_map(|end| path.get(..end))
}

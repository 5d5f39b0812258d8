//! The workloads of a tree of cohorts that may use quota before a pending workload starts.

use crate::preemption_within_queue::is_preemption_within_possible;
use crate::trial::Trial;
use crate::world::World;
use lockkeeper_api::ClusterQueue;
use lockkeeper_cluster_state::latest_end_s;
use lockkeeper_preemption::{
    FlavorId, FlavorResource, NodeId, PodSet, QueueingStrategy, ResourceId, State, WorkloadId,
};
use std::collections::BTreeMap;

/// Amounts by flavor and resource, in units of the core.
pub(crate) type Amounts = BTreeMap<FlavorResource, i64>;

/// A pending workload.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) queue: NodeId,
    pub(crate) priority: i32,
    pub(crate) preemption_priority: i32,
    /// Its maximum execution time in seconds; `None` is no limit.
    pub(crate) max_s: Option<i64>,
    /// The most that it can use.
    pub(crate) most: Amounts,
    /// It fits if all amounts of one of these fit. Empty if its ClusterQueue has no flavor for it.
    pub(crate) alternatives: Vec<Amounts>,
    /// Whether it also starts with fewer pods.
    pub(crate) is_scalable: bool,
    /// Whether its queue does not try later workloads while it waits.
    pub(crate) blocks_its_queue: bool,
}

/// An admitted workload.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) id: WorkloadId,
    pub(crate) queue: NodeId,
    pub(crate) preemption_priority: i32,
    /// When it ends at the latest, in seconds since 1970; `None` is not known.
    pub(crate) ends_s: Option<i64>,
    pub(crate) usage: Amounts,
}

/// A pending workload, and the workloads that may delay it.
#[derive(Clone, Debug)]
pub(crate) struct Contest {
    pub(crate) subject: Contender,
    /// The pending workloads of the tree that may start before it.
    pub(crate) pending: Vec<Contender>,
    pub(crate) running: Vec<Running>,
    /// Whether no later workload of its ClusterQueue starts before it.
    pub(crate) is_strict: bool,
    /// Whether a workload of its ClusterQueue is in backoff or being evicted: it may come ahead of others later.
    pub(crate) has_returning: bool,
}

impl Contest {
    /// Collects the workloads of the tree of a pending workload, those of its own queue in queue order. `None` if it is
    /// not in its queue, if its queue has backfill and it is not the head, if a ClusterQueue permits preemptions among its own
    /// workloads, or if the flavor search of one of them may never end. Costs a step per pod set and flavor of each.
    pub(crate) fn new(world: &World, trial: &Trial, state: &mut State) -> Option<Self> {
        let id = trial.id()?;
        let own = state.workload_view(id).queue()?;
        let place = state
            .node_view(own)
            .pending()
            .iter()
            .position(|it| *it == id);
        let has_backfill = state.node_view(own).has_backfill();
        // A head that never fits would block it for ever.
        if has_backfill && place.is_some_and(|it| it > 0) {
            return None;
        }
        let is_strict = place.is_some()
            && state.node_view(own).strategy() == QueueingStrategy::StrictFifo
            // Workloads behind it may start first.
            && !has_backfill;
        let running = running(world, trial, state);
        let mut has_returning = false;
        let mut lists = Vec::new();
        for name in &trial.queues {
            let queue = state.queue(name)?;
            let object = world.cluster().objects().cluster_queue(name)?;
            let mut ids = state.node_view(queue).pending();
            if let (true, true, Some(place)) = (queue == own, is_strict, place) {
                ids.truncate(place);
            }
            let known = ids.len();
            ids.extend(state.node_view(queue).backing_off());
            // After its eviction, a workload is pending again.
            let of_queue = running.iter().filter(|it| it.queue == queue);
            let of_queue: Vec<WorkloadId> = of_queue.map(|it| it.id).collect();
            ids.extend(of_queue.iter().filter(|it| is_evicted(state, **it)));
            has_returning |= queue == own && ids.len() != known;
            ids.retain(|it| *it != id);
            ids.extend((queue == own).then_some(id));
            let policy = object.spec.preemption.as_ref();
            let policy = policy.and_then(|it| it.within_cluster_queue);
            // First, since it needs no amounts: many clusters have such a policy.
            if is_preemption_within_possible(state, policy.unwrap_or_default(), &ids, &of_queue) {
                return None;
            }
            lists.push((object, ids));
        }
        let mut pending = Vec::new();
        for (object, ids) in lists {
            let groups = groups(state, object);
            for other in ids.into_iter().filter(|it| *it != id) {
                pending.push(contender(state, &groups, other)?);
            }
        }
        let groups = groups(state, &trial.queue);
        let subject = contender(state, &groups, id)?;
        Some(Self {
            subject,
            pending,
            running,
            is_strict,
            has_returning,
        })
    }

    /// The workloads of which one does not fit while the subject waits: itself, and those that delay it without quota.
    ///
    /// A workload at the head of a `StrictFIFO` queue delays those behind it, and the heads of other queues by the quota
    /// that each cycle reserves for it.
    pub(crate) fn blockers(&self) -> impl Iterator<Item = &Contender> {
        let blocking = self.pending.iter().filter(|it| it.blocks_its_queue);
        std::iter::once(&self.subject).chain(blocking)
    }
}

fn is_evicted(state: &State, id: WorkloadId) -> bool {
    let reservation = state.workload_view(id).reservation();
    reservation.is_some_and(|it| it.is_evicted)
}

fn running(world: &World, trial: &Trial, state: &State) -> Vec<Running> {
    let now_s = world.cluster().now_ms().div_euclid(1000);
    let others = trial.others.iter().filter_map(|id| {
        let view = state.workload_view(*id);
        let reservation = view.reservation()?;
        let ends_s = world
            .workload(state.workload_name(*id))
            .and_then(|it| latest_end_s(it));
        // The limit of a workload that exceeds it is not enforced; and that of an evicted one starts again.
        let ends_s = ends_s.filter(|it| *it >= now_s && !reservation.is_evicted);
        let usage = reservation.usage.into_iter();
        Some(Running {
            id: *id,
            queue: view.queue()?,
            preemption_priority: view.preemption_priority(),
            ends_s,
            usage: usage.map(|(of, amount)| (of, amount.get())).collect(),
        })
    });
    others.collect()
}

/// A resource group in the core's ids.
struct Group {
    resources: Vec<ResourceId>,
    flavors: Vec<FlavorId>,
}

fn groups(state: &mut State, queue: &ClusterQueue) -> Vec<Group> {
    let groups = queue.spec.resource_groups.iter();
    let groups = groups.map(|group| Group {
        resources: group
            .covered_resources
            .iter()
            .map(|it| state.resource(it))
            .collect(),
        flavors: group
            .flavors
            .iter()
            .map(|it| state.flavor(&it.name))
            .collect(),
    });
    groups.collect()
}

fn contender(state: &State, groups: &[Group], id: WorkloadId) -> Option<Contender> {
    let view = state.workload_view(id);
    let queue = view.queue()?;
    let mut most = Amounts::new();
    let mut alternatives = vec![Amounts::new()];
    let mut has_choice = false;
    for pod_set in view.pod_sets() {
        if has_uncovered_request(pod_set, groups) {
            alternatives.clear();
        }
        for group in groups {
            let requests = requests(pod_set, group);
            if requests.is_empty() {
                continue;
            }
            let eligible = |it: &&FlavorId| !pod_set.ineligible.contains(it);
            let flavors: Vec<FlavorId> = group.flavors.iter().filter(eligible).copied().collect();
            // The flavor search over two such choices may never end.
            if flavors.len() > 1 && std::mem::replace(&mut has_choice, true) {
                return None;
            }
            alternatives = combine(&alternatives, &flavors, &requests);
            for flavor in flavors {
                add(&mut most, flavor, &requests);
            }
        }
    }
    Some(Contender {
        queue,
        priority: view.priority(),
        preemption_priority: view.preemption_priority(),
        max_s: view.execution_time_max_s(),
        most,
        alternatives,
        is_scalable: view.pod_sets().iter().any(|it| it.count_min.is_some()),
        blocks_its_queue: state.node_view(queue).strategy() == QueueingStrategy::StrictFifo,
    })
}

/// Each alternative with each of the flavors.
fn combine(
    alternatives: &[Amounts],
    flavors: &[FlavorId],
    requests: &[(ResourceId, i64)],
) -> Vec<Amounts> {
    let pairs = alternatives
        .iter()
        .flat_map(|amounts| flavors.iter().map(move |it| (amounts, *it)));
    let combined = pairs.map(|(amounts, flavor)| {
        let mut amounts = amounts.clone();
        add(&mut amounts, flavor, requests);
        amounts
    });
    combined.collect()
}

fn add(amounts: &mut Amounts, flavor: FlavorId, requests: &[(ResourceId, i64)]) {
    for (resource, amount) in requests {
        let resource = *resource;
        let sum = amounts
            .entry(FlavorResource { flavor, resource })
            .or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// The requests of a pod set for the resources of a group, without zeros; for `pods`, the number of its pods.
fn requests(pod_set: &PodSet, group: &Group) -> Vec<(ResourceId, i64)> {
    let covers = |it: &ResourceId| group.resources.contains(it);
    let requests = pod_set.requests.iter();
    let requests = requests.map(|(resource, amount)| (*resource, amount.get()));
    let requests = requests.filter(|(it, _)| *it != ResourceId::PODS);
    let pods = std::iter::once((ResourceId::PODS, pod_set.count));
    let all = requests.chain(pods);
    all.filter(|(it, amount)| covers(it) && *amount > 0)
        .collect()
}

fn has_uncovered_request(pod_set: &PodSet, groups: &[Group]) -> bool {
    pod_set.requests.iter().any(|(resource, amount)| {
        *resource != ResourceId::PODS
            && amount.get() > 0
            && !groups.iter().any(|it| it.resources.contains(resource))
    })
}

//! The queues and cohorts of a cluster, by cohort tree, without workloads.

use lockkeeper_api::cluster_queue::ClusterQueueSpec;
use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_cluster_state::{ObjectError, cohort_spec, queue_spec};
use lockkeeper_preemption::{
    Amount, CohortSpec, FlavorFungibility, Options, Preemption, QueueSpec, QueueingStrategy, Quota,
    ResourceId, State, TreeView,
};
use std::collections::BTreeMap;

/// The maximum number of queues of a tree in a search. The other queues are assumed to use their whole nominal quota
/// and to lend nothing.
const QUEUES_MAX: usize = 10;

/// The maximum number of queues with equal specs in a search: more of them add no behaviour that three do not have.
const EQUAL_QUEUES_MAX: usize = 3;

/// A cohort tree: queues that can lend to each other, and their cohorts.
#[derive(Clone, Debug, Default)]
pub struct CohortTree<'a> {
    /// The name of the root cohort, or of the queue if it has no cohort.
    pub root: String,
    /// The queues, by name.
    pub queues: Vec<&'a ClusterQueue>,
    /// The cohorts that are objects, by name.
    pub cohorts: Vec<&'a Cohort>,
    /// Whether a cohort is in another one.
    pub is_nested: bool,
}

/// The cohort trees of queues and cohorts, by the names of their roots. Queues in a cohort cycle are left out. Quotas
/// are not read.
#[must_use]
pub fn cohort_trees<'a>(
    queues: impl IntoIterator<Item = &'a ClusterQueue>,
    cohorts: impl IntoIterator<Item = &'a Cohort>,
) -> Vec<CohortTree<'a>> {
    let mut state = State::new(Options::default());
    let mut named = BTreeMap::new();
    for cohort in cohorts {
        let name = cohort.metadata.name.as_deref().unwrap_or_default();
        named.insert(name.to_owned(), cohort);
        state.set_cohort(CohortSpec {
            name,
            parent: cohort.spec.parent_name.as_deref(),
            quotas: Vec::new(),
            weight: 1.0,
        });
    }
    let mut nodes = Vec::new();
    for queue in queues {
        let id = state.set_queue(QueueSpec {
            name: queue_name(queue),
            cohort: queue.spec.cohort_name.as_deref(),
            groups: Vec::new(),
            preemption: Preemption::default(),
            fungibility: FlavorFungibility::default(),
            strategy: QueueingStrategy::default(),
            backfill: None,
            elastic: None,
            weight: 1.0,
            is_active: true,
        });
        nodes.push((queue, id));
    }
    // A queue and a cohort may have the same name.
    let mut trees: BTreeMap<(bool, String), CohortTree<'a>> = BTreeMap::new();
    for (queue, id) in nodes {
        // The core excludes such a queue from all decisions.
        if TreeView::new(&mut state).is_in_cohort_cycle(id) {
            continue;
        }
        let path = TreeView::new(&mut state).path(id);
        // The path starts with a slash and ends with the queue itself.
        let mut ancestors = path.split('/').skip(1);
        let root = ancestors.next().unwrap_or_default().to_owned();
        let below = ancestors.count();
        let tree = trees.entry((below > 0, root.clone())).or_default();
        tree.root = root;
        tree.queues.push(queue);
        tree.is_nested |= below > 1;
    }
    for (name, cohort) in named {
        let path = state
            .cohort(&name)
            .map(|id| TreeView::new(&mut state).path(id));
        let root = path.as_deref().and_then(|it| it.split('/').nth(1));
        let tree = root.and_then(|it| trees.get_mut(&(true, it.to_owned())));
        if let Some(tree) = tree {
            tree.cohorts.push(cohort);
        }
    }
    let mut trees: Vec<CohortTree<'a>> = trees.into_values().collect();
    for tree in &mut trees {
        tree.queues.sort_by_key(|it| queue_name(it));
    }
    trees
}

fn queue_name(queue: &ClusterQueue) -> &str {
    queue.metadata.name.as_deref().unwrap_or_default()
}

/// The properties of a queue that a search needs.
#[derive(Clone, Debug)]
pub struct QueueProfile {
    /// Its name.
    pub name: String,
    /// Its preemption policy.
    pub preemption: Preemption,
    /// Whether it is in a cohort.
    pub has_cohort: bool,
    /// Whether it may use more than its nominal quota.
    pub may_borrow: bool,
    /// The maximum usage of a workload in it, for each resource with quota.
    pub(crate) max_usage: BTreeMap<ResourceId, Amount>,
}

impl QueueProfile {
    /// The maximum usage of a resource; zero without quota.
    pub(crate) fn max_usage_of(&self, resource: ResourceId) -> i64 {
        self.max_usage.get(&resource).map_or(0, |it| it.get())
    }
}

/// A cohort tree without workloads.
#[derive(Clone, Debug)]
pub struct SimulatedCluster {
    pub(crate) state: State,
    /// The queues in the search, by name.
    pub(crate) queues: Vec<QueueProfile>,
    /// All quotas of queues and cohorts.
    quotas: Vec<(ResourceId, Quota)>,
    /// How many queues are left out.
    pub(crate) excluded_queues: usize,
}

impl SimulatedCluster {
    /// Builds the state of a tree, from at most `QUEUES_MAX` of its queues.
    ///
    /// # Errors
    ///
    /// The first [`ObjectError`] of an object that cannot be converted.
    pub fn new(tree: &CohortTree<'_>, options: Options) -> Result<Self, ObjectError> {
        let mut cluster = Self {
            state: State::new(options),
            queues: Vec::new(),
            quotas: Vec::new(),
            excluded_queues: 0,
        };
        let selected = select_queues(&tree.queues);
        cluster.excluded_queues = tree.queues.len().saturating_sub(selected.len());
        for cohort in &tree.cohorts {
            let spec = cohort_spec(cohort, &mut cluster.state)?;
            let quotas = spec.quotas.iter();
            let quotas = quotas.map(|(of, quota)| (of.resource, *quota));
            cluster.quotas.extend(quotas);
            cluster.state.set_cohort(spec);
        }
        for queue in selected {
            let spec = queue_spec(queue, &mut cluster.state, true)?;
            let flavors = spec.groups.iter().flat_map(|it| &it.flavors);
            let quotas: Vec<_> = flavors.flat_map(|it| it.quotas.iter().copied()).collect();
            let is_free =
                |(_, quota): &(ResourceId, Quota)| quota.borrowing_limit != Some(Amount::ZERO);
            cluster.queues.push(QueueProfile {
                name: spec.name.to_owned(),
                preemption: spec.preemption,
                has_cohort: spec.cohort.is_some(),
                may_borrow: spec.cohort.is_some() && quotas.iter().any(is_free),
                max_usage: max_usage_by_resource(&quotas, spec.cohort.is_some()),
            });
            cluster.quotas.extend(quotas);
            cluster.state.set_queue(spec);
        }
        // Each run starts from a copy, so apply the changes once.
        cluster.state.apply_changes();
        Ok(cluster)
    }

    /// The queues in the search, by name.
    #[must_use]
    pub fn queues(&self) -> &[QueueProfile] {
        &self.queues
    }

    /// The id of a resource.
    pub fn resource(&mut self, name: &str) -> ResourceId {
        self.state.resource(name)
    }

    /// The name of a resource.
    pub(crate) fn resource_name(&self, id: ResourceId) -> &str {
        self.state.resource_name(id)
    }

    /// All quotas of a resource in the tree.
    pub(crate) fn quotas_of(&self, resource: ResourceId) -> impl Iterator<Item = &Quota> {
        let all = self.quotas.iter();
        all.filter(move |(of, _)| *of == resource)
            .map(|(_, quota)| quota)
    }

    /// The maximum usage of a workload in the tree.
    pub(crate) fn total(&self, resource: ResourceId) -> i64 {
        let nominal = self.quotas_of(resource).map(|it| it.nominal);
        nominal.fold(Amount::ZERO, Amount::plus).get()
    }
}

/// The maximum usage by resource. A pod set uses a single flavor, so the largest flavor counts.
fn max_usage_by_resource(
    quotas: &[(ResourceId, Quota)],
    has_cohort: bool,
) -> BTreeMap<ResourceId, Amount> {
    let mut most = BTreeMap::new();
    for (resource, quota) in quotas {
        let more = if has_cohort {
            quota.borrowing_limit.unwrap_or(Amount::UNLIMITED)
        } else {
            Amount::ZERO
        };
        let of_all: &mut Amount = most.entry(*resource).or_insert(Amount::ZERO);
        *of_all = quota.nominal.plus(more).max(*of_all);
    }
    most
}

/// Selects the queues for a search: few in total, and few with equal specs.
fn select_queues<'a>(queues: &[&'a ClusterQueue]) -> Vec<&'a ClusterQueue> {
    let mut selected: Vec<&ClusterQueue> = Vec::new();
    for queue in queues {
        let is_equal = |it: &&&ClusterQueue| has_equal_spec(&it.spec, &queue.spec);
        let is_one_of_many = selected.iter().filter(is_equal).count() >= EQUAL_QUEUES_MAX;
        let has_room = selected.len() < QUEUES_MAX && !is_one_of_many;
        // A small tree is searched as it is, equal queues included.
        if has_room || queues.len() <= QUEUES_MAX {
            selected.push(queue);
        }
    }
    selected
}

fn has_equal_spec(a: &ClusterQueueSpec, b: &ClusterQueueSpec) -> bool {
    a.cohort_name == b.cohort_name
        && a.resource_groups == b.resource_groups
        && a.preemption == b.preemption
        && a.queueing_strategy == b.queueing_strategy
        && a.flavor_fungibility == b.flavor_fungibility
        && a.fair_sharing == b.fair_sharing
        && a.elastic == b.elastic
}

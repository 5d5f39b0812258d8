//! The queues and cohorts of a cluster, without anybody in them.

use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_preemption::{Amount, Options, Preemption, Quota, ResourceId, State};
use lockkeeper_snapshot::objects::{ObjectError, cohort_spec, queue_spec};
use std::collections::{BTreeMap, BTreeSet};

/// A queue as a search sees it.
#[derive(Clone, Debug)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// Whom it may preempt.
    pub preemption: Preemption,
    /// The resources that it has quota of.
    pub resources: BTreeSet<ResourceId>,
    /// All its quotas.
    quotas: Vec<(ResourceId, Quota)>,
}

/// Queues that can lend to each other.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The name of the cohort at the root; that of the queue where there is no cohort.
    pub root: String,
    /// The queues, by name.
    pub queues: Vec<Contender>,
    /// The quotas of its cohorts.
    pub(crate) quotas: Vec<(ResourceId, Quota)>,
}

/// Queues and cohorts, and the state that they make.
#[derive(Clone, Debug)]
pub struct Site {
    /// The state, in which nobody is.
    pub state: State,
    trees: BTreeMap<String, Tree>,
}

impl Site {
    /// Reads queues and cohorts. A queue on a circle of cohorts takes part in nothing.
    ///
    /// # Errors
    ///
    /// The first [`ObjectError`] of an object that the core cannot have.
    pub fn new(
        queues: &[ClusterQueue],
        cohorts: &[Cohort],
        options: Options,
    ) -> Result<Self, ObjectError> {
        let mut state = State::new(options);
        let mut of_cohorts: BTreeMap<String, Vec<(ResourceId, Quota)>> = BTreeMap::new();
        for cohort in cohorts {
            let spec = cohort_spec(cohort, &mut state)?;
            let quotas = spec.quotas.iter();
            let quotas = quotas.map(|(of, quota)| (of.resource, *quota)).collect();
            of_cohorts.insert(spec.name.to_owned(), quotas);
            state.set_cohort(spec);
        }
        let mut contenders = Vec::new();
        for queue in queues {
            let spec = queue_spec(queue, &mut state, true)?;
            let flavors = spec.groups.iter().flat_map(|it| &it.flavors);
            let quotas: Vec<_> = flavors.flat_map(|it| it.quotas.iter().copied()).collect();
            let contender = Contender {
                name: spec.name.to_owned(),
                preemption: spec.preemption,
                resources: quotas.iter().map(|(of, _)| *of).collect(),
                quotas,
            };
            contenders.push((contender, state.set_queue(spec)));
        }
        let mut trees: BTreeMap<String, Tree> = BTreeMap::new();
        for (contender, id) in contenders {
            if state.is_on_circle(id) {
                continue;
            }
            let path = state.path(id);
            // A queue and a cohort of the same name are not the same.
            let is_alone = path.matches('/').count() == 1;
            let root = path.split('/').nth(1).unwrap_or_default();
            let key = if is_alone { path.as_str() } else { root };
            let tree = trees.entry(key.to_owned()).or_default();
            root.clone_into(&mut tree.root);
            tree.queues.push(contender);
        }
        for (name, quotas) in of_cohorts {
            let root = state.cohort(&name).map(|id| state.path(id));
            let root = root.as_deref().and_then(|it| it.split('/').nth(1));
            if let Some(tree) = root.and_then(|it| trees.get_mut(it)) {
                tree.quotas.extend(quotas);
            }
        }
        for tree in trees.values_mut() {
            tree.queues.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(Self { state, trees })
    }

    /// The trees, by the name of their root.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.trees.values()
    }
}

impl Tree {
    /// All quotas of a resource in the tree.
    pub(crate) fn quotas_of(&self, resource: ResourceId) -> impl Iterator<Item = &Quota> {
        let queues = self.queues.iter().flat_map(|it| &it.quotas);
        let all = queues.chain(&self.quotas);
        all.filter(move |(of, _)| *of == resource)
            .map(|(_, quota)| quota)
    }

    /// The most that a workload could ever have of a resource.
    pub(crate) fn total(&self, resource: ResourceId) -> i64 {
        let nominal = self.quotas_of(resource).map(|it| it.nominal);
        nominal.fold(Amount::ZERO, Amount::plus).get()
    }
}

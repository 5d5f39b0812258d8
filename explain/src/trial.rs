//! Decides on a workload as if it were the only pending one, after a change that is undone again.

use crate::project::Project;
use crate::world::World;
use lockkeeper_api::cluster_queue::ClusterQueueSpec;
use lockkeeper_api::workload::Admission;
use lockkeeper_api::{ClusterQueue, Workload};
use lockkeeper_cluster_state::{ClusterState, admission_after_preemption};
use lockkeeper_preemption::{Mode, NodeId, Trace, TreeView, WhatIf, WorkloadId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It fits on free quota.
    Fits,
    /// It fits after as many preemptions.
    FitsAfterPreempting(usize),
    /// It does not fit.
    DoesNotFit,
}

/// A copy of the cluster state for trials with one workload.
pub(crate) struct Trial {
    pub(crate) cluster: ClusterState,
    pub(crate) workload: Arc<Workload>,
    pub(crate) queue: Arc<ClusterQueue>,
    pub(crate) project: Project,
    /// The key of the workload.
    pub(crate) key: String,
    /// The names from the root of its tree of cohorts down to its ClusterQueue, as `/root/cohort/queue`.
    pub(crate) path: String,
    /// The ClusterQueues of its tree, sorted by name.
    pub(crate) queues: Vec<String>,
    /// The other workloads with quota in its tree.
    pub(crate) others: Vec<WorkloadId>,
}

impl Trial {
    /// Copies the state of a world for trials with a workload; `None` if it is in no ClusterQueue of the world.
    pub(crate) fn new(world: &World, key: &str) -> Option<Self> {
        let workload = Arc::clone(world.workload(key)?);
        let mut cluster = world.cluster.clone();
        let own = cluster.state().workload(key)?;
        let node = cluster.state().workload_view(own).queue()?;
        let name = cluster.state().node_view(node).name();
        let queue = Arc::clone(world.cluster.objects().cluster_queue(name)?);
        let nodes: Vec<NodeId> = cluster.state().queues().map(|(_, id)| id).collect();
        let mut tree = TreeView::new(cluster.state_mut());
        let path = tree.path(node);
        let tree: BTreeSet<NodeId> = nodes
            .into_iter()
            .filter(|it| root(&tree.path(*it)) == root(&path))
            .collect();
        let state = cluster.state();
        let names = tree.iter().map(|it| state.node_view(*it).name().to_owned());
        let mut queues: Vec<String> = names.collect();
        queues.sort_unstable();
        let others = world.workload_keys().filter_map(|it| state.workload(it));
        let others = others.filter(|id| {
            let view = state.workload_view(*id);
            let is_in_tree = view.queue().is_some_and(|it| tree.contains(&it));
            *id != own && is_in_tree && view.reservation().is_some()
        });
        let others = others.collect();
        Some(Self {
            cluster,
            workload,
            queue,
            project: world.project,
            key: key.to_owned(),
            path,
            queues,
            others,
        })
    }

    /// The id of the workload in the core's state.
    pub(crate) fn id(&self) -> Option<WorkloadId> {
        self.cluster.state().workload(&self.key)
    }

    /// The name of its ClusterQueue.
    pub(crate) fn queue_name(&self) -> String {
        self.queue.metadata.name.clone().unwrap_or_default()
    }

    /// Decides with the current state.
    pub(crate) fn outcome(&mut self) -> Outcome {
        let Some(id) = self.id() else {
            return Outcome::DoesNotFit;
        };
        let nomination = WhatIf::new(self.cluster.state_mut()).nominate(id, Trace::off());
        let Some(nomination) = nomination else {
            return Outcome::DoesNotFit;
        };
        // An admission of fewer pods (`minCount`) counts too: the workload starts.
        match (nomination.assignment.mode, nomination.victims.len()) {
            (Mode::Fit, _) => Outcome::Fits,
            (Mode::Preempt, victims) if victims > 0 => Outcome::FitsAfterPreempting(victims),
            _ => Outcome::DoesNotFit,
        }
    }

    /// The flavors that the workload is admitted with if it fits now, or after preemption.
    pub(crate) fn admission(&mut self) -> Option<Admission> {
        let id = self.id()?;
        let nomination = WhatIf::new(self.cluster.state_mut()).nominate(id, Trace::off())?;
        admission_after_preemption(self.cluster.state(), id, &nomination.assignment)
    }

    /// Decides with another spec of the ClusterQueue.
    pub(crate) fn with_queue(&mut self, edit: impl FnOnce(&mut ClusterQueueSpec)) -> Outcome {
        self.in_queue(edit, Self::outcome)
            .unwrap_or(Outcome::DoesNotFit)
    }

    /// The result of other trials with another spec of the ClusterQueue; `None` if the spec is invalid.
    pub(crate) fn in_queue<T>(
        &mut self,
        edit: impl FnOnce(&mut ClusterQueueSpec),
        trials: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let mut changed = ClusterQueue::clone(&self.queue);
        edit(&mut changed.spec);
        let changed = Arc::new(changed);
        self.cluster.set_cluster_queue(Arc::clone(&changed)).ok()?;
        let original = std::mem::replace(&mut self.queue, changed);
        let result = trials(self);
        self.queue = original;
        // The original was accepted before, so it is accepted again.
        let restored = self.cluster.set_cluster_queue(Arc::clone(&self.queue));
        debug_assert!(restored.is_ok(), "the spec of the input is valid");
        Some(result)
    }

    /// Decides with another form of the workload.
    pub(crate) fn with_workload(&mut self, edit: impl FnOnce(&mut Workload)) -> Outcome {
        let mut changed = Workload::clone(&self.workload);
        edit(&mut changed);
        if self.cluster.set_workload(Arc::new(changed)).is_err() {
            return Outcome::DoesNotFit;
        }
        let outcome = self.outcome();
        let restored = self.cluster.set_workload(Arc::clone(&self.workload));
        debug_assert!(restored.is_ok(), "the workload of the input is valid");
        outcome
    }

    /// Decides without the requests of some resources.
    pub(crate) fn with_excluded(&mut self, resources: &[String]) -> Outcome {
        let mut changed = self.cluster.clone();
        let excluded = self.cluster.objects().excluded_resource_prefixes();
        changed.exclude_resources([excluded, resources].concat());
        if changed.set_workload(Arc::clone(&self.workload)).is_err() {
            return Outcome::DoesNotFit;
        }
        std::mem::swap(&mut self.cluster, &mut changed);
        let outcome = self.outcome();
        std::mem::swap(&mut self.cluster, &mut changed);
        outcome
    }

    /// Decides as if an admitted workload had ended.
    pub(crate) fn without(&mut self, other: WorkloadId) -> Outcome {
        let state = self.cluster.state_mut();
        let Some(reservation) = state.workload_view(other).reservation() else {
            return Outcome::DoesNotFit;
        };
        state.release(other);
        let outcome = self.outcome();
        self.cluster.state_mut().reserve(other, &reservation);
        outcome
    }
}

/// The first name of a path.
fn root(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

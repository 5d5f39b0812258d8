//! The steps of jobs that are placed on nodes, as the controller takes them.
//!
//! A job for which a cycle has found quota starts if its pods fit. If they fit after preemptions, it keeps its quota and waits
//! until its victims have released their nodes. If they do not fit, it is out of its queue until nodes or quota change.

use super::job_state::Phase;
use super::job_trace::Job;
use super::node_placement::{NodePlacement, NodePlan, address};
use super::pods_ready::release;
use super::result::{EvictionReason, RunAssignment};
use super::simulation::Simulation;
use lockkeeper_preemption::Assignment;
use std::sync::Arc;

impl Simulation<'_> {
    /// Plans the nodes of a job for which a cycle has found quota. `None` if it does not fit: it waits for nodes.
    pub(super) fn find_nodes(&mut self, index: usize, assignment: &Assignment) -> Option<NodePlan> {
        let placement = self.placement.as_mut().filter(|it| it.places(index));
        let (Some(placement), Some(job)) = (placement, self.jobs.get(index)) else {
            return Some(NodePlan::NotPlaced);
        };
        let shared = self
            .assignments
            .share(&self.state, job.workload, assignment);
        let plan = placement.plan(index, &shared);
        if plan == NodePlan::DoesNotFit {
            self.wait_for_nodes(index);
            return None;
        }
        Some(plan)
    }

    /// Whether a job fits on nodes when these jobs are gone; otherwise it waits for nodes, and preempts none. Without victims it
    /// waits for earlier ones.
    pub(super) fn fits_after(
        &mut self,
        index: usize,
        assignment: &Assignment,
        victims: &[(usize, EvictionReason)],
    ) -> bool {
        let placement = self.placement.as_mut().filter(|it| it.places(index));
        let (Some(placement), Some(job)) = (placement, self.jobs.get(index)) else {
            return true;
        };
        let victims: Vec<usize> = victims.iter().map(|it| it.0).collect();
        let shared = self
            .assignments
            .share(&self.state, job.workload, assignment);
        if victims.is_empty() || placement.fits_after(index, &shared, &victims) {
            return true;
        }
        self.wait_for_nodes(index);
        false
    }

    /// Starts a job with quota, or reserves its nodes and preempts the jobs on them.
    pub(super) fn start_or_nominate(
        &mut self,
        index: usize,
        assignment: &Arc<RunAssignment>,
        plan: NodePlan,
        stopped: &mut Vec<usize>,
    ) {
        let now_s = self.now_s;
        let (nodes, victims) = match plan {
            NodePlan::NotPlaced | NodePlan::DoesNotFit => {
                return self.start(index, Arc::clone(assignment), None);
            }
            NodePlan::Fits(nodes) => {
                let placement = self.placement.as_mut();
                let nodes = placement.map(|it| it.start(index, assignment, &nodes, now_s));
                return self.start(index, Arc::clone(assignment), nodes);
            }
            NodePlan::Waits(nodes, victims) => (nodes, victims),
        };
        if let Some(placement) = &mut self.placement {
            placement.nominate(index, assignment, nodes);
        }
        if let Some(job) = self.jobs.get_mut(index) {
            job.phase = Phase::Nominated;
        }
        let created_s = self.trace.jobs.get(index).map_or(0, Job::created_s);
        self.lifecycles.reserve(index, created_s);
        let victims = victims.into_iter().map(|it| (it, EvictionReason::Nodes));
        self.preempt(index, victims.collect(), stopped);
    }

    /// Continues the jobs that wait for their nodes, and puts jobs that wait for any nodes into their queues again if nodes
    /// have changed. Returns whether a job has started, lost its quota, or is in its queue again.
    pub(super) fn update_placement(&mut self) -> bool {
        let nominated = self.placement.as_ref().map(NodePlacement::nominated);
        let mut is_changed = false;
        let mut stopped = Vec::new();
        for index in nominated.unwrap_or_default() {
            is_changed |= self.advance(index, &mut stopped);
        }
        if self.trace.grace_period_seconds == 0 {
            for victim in stopped {
                release(self, victim);
                is_changed = true;
            }
        }
        let revision = self.placement.as_ref().map(NodePlacement::revision);
        let again = revision.map(|it| self.waiting.next(it)).unwrap_or_default();
        if !again.is_empty() {
            // The queues have other workloads than in the cycles before.
            self.queue_history.clear();
            is_changed = true;
        }
        for index in again {
            self.enqueue(index);
        }
        is_changed
    }

    /// Plans a job again that waits for its nodes. Returns whether it has started or lost its quota.
    fn advance(&mut self, index: usize, stopped: &mut Vec<usize>) -> bool {
        let Some(placement) = &mut self.placement else {
            return false;
        };
        let Some(assignment) = placement.assignment(index) else {
            return false;
        };
        let plan = placement.plan(index, &assignment);
        match plan {
            NodePlan::Fits(_) => {
                self.start_or_nominate(index, &assignment, plan, stopped);
                true
            }
            NodePlan::Waits(..) => {
                self.start_or_nominate(index, &assignment, plan, stopped);
                false
            }
            NodePlan::DoesNotFit | NodePlan::NotPlaced => {
                self.withdraw(index);
                self.wait_for_nodes(index);
                true
            }
        }
    }

    /// A job that waits for its nodes gives up its quota, and is pending again.
    pub(super) fn withdraw(&mut self, index: usize) {
        let now_s = self.now_s;
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        job.phase = Phase::Pending;
        self.usage.release(&mut job.held, now_s);
        self.state.release(job.workload);
        self.lifecycles.withdraw(index);
        if let Some(placement) = &mut self.placement {
            placement.remove(index);
        }
    }

    /// Takes a job out of its queue until nodes or quota change.
    fn wait_for_nodes(&mut self, index: usize) {
        let spec = self.trace.jobs.get(index);
        let (Some(spec), Some(job)) = (spec, self.jobs.get(index)) else {
            return;
        };
        self.state.remove(job.workload);
        let class = (job.queue, address(spec), spec.priority);
        let order_time_s = self.order_time_s(index);
        self.waiting.insert(class, order_time_s, index);
        self.queue_history.park();
    }
}

//! The parts of the reconciler, and the read-only view of them for planning.

use super::adoption::is_adopting;
use super::adoption_holds::AdoptionHolds;
use super::counters::{Counters, Eviction};
use super::cycle_state::CycleState;
use super::event_batch::JournalState;
use super::event_recorder::EventRecorder;
use super::in_flight::InFlightWrites;
use super::model::Model;
use super::output::ObjectRef;
use super::placement::node_placement::NodePlacement;
use super::placement::units::{enable, sync_unit};
use super::queue_store::admitting_cluster_queue;
use super::random::Random;
use super::settings::Settings;
use super::work_queue::WorkQueue;
use super::write_tracker::WriteTracker;
use crate::job_adapters::POD_GROUP;
use crate::key::{JobKey, ObjectKey};
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::{ClusterState, Completeness, end_hold};
use lockkeeper_preemption::Algorithm;
use lockkeeper_preemption::requeue::Jitter;
use std::sync::Arc;

/// The parts of the reconciler. Each part owns its data and methods; code that involves several parts is a
/// free function over this.
#[derive(Debug)]
pub(super) struct ReconcilerState {
    pub(super) settings: Settings,
    pub(super) model: Model,
    /// The objects mapped onto the state of the preemption core; it also carries the time.
    pub(super) cluster: ClusterState,
    pub(super) work_queue: WorkQueue,
    pub(super) in_flight: InFlightWrites,
    pub(super) event_recorder: EventRecorder,
    pub(super) cycle: CycleState,
    pub(super) journal: JournalState,
    pub(super) random: Random,
    pub(super) is_leading: bool,
    pub(super) counters: Counters,
    /// How long admitted workloads were pending, in seconds, since metrics read it last.
    pub(super) admission_waits_s: Vec<i64>,
    /// The evictions since metrics were last updated.
    pub(super) evictions: Vec<Eviction>,
    /// `None` until a ClusterQueue places workloads on nodes.
    pub(super) placement: Option<Box<NodePlacement>>,
    pub(super) adoption_holds: AdoptionHolds,
}

/// The read-only input of planning.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) settings: &'a Settings,
    pub(super) model: &'a Model,
    pub(super) cluster: &'a ClusterState,
    pub(super) placement: Option<&'a NodePlacement>,
    pub(super) adoption_holds: &'a AdoptionHolds,
    pub(super) jitter: Jitter,
    pub(super) now_ms: i64,
}

/// The cluster state before the first input.
pub(super) fn empty_cluster(settings: &Settings) -> ClusterState {
    let mut cluster = ClusterState::new(
        settings.options.clone(),
        settings.requeue.clone(),
        Completeness::Complete,
    );
    cluster.exclude_resources(settings.excluded_resource_prefixes.clone());
    // An unwritten admission is preempted first: withdrawing it costs no write.
    cluster.state_mut().treat_new_as_newest();
    cluster
}

impl ReconcilerState {
    /// No objects, and not leading.
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            model: Model::new(settings.optional_kinds(), settings.template_bytes_max),
            cluster: empty_cluster(&settings),
            work_queue: WorkQueue::default(),
            in_flight: InFlightWrites::new(settings.writes_max),
            event_recorder: EventRecorder::default(),
            cycle: CycleState::default(),
            journal: JournalState::default(),
            random: Random::new(settings.seed),
            is_leading: false,
            counters: Counters::default(),
            admission_waits_s: Vec::new(),
            evictions: Vec::new(),
            placement: None,
            adoption_holds: AdoptionHolds::default(),
            settings,
        }
    }

    pub(super) fn view(&self, now_ms: i64) -> View<'_> {
        View {
            settings: &self.settings,
            model: &self.model,
            cluster: &self.cluster,
            placement: self.placement.as_deref(),
            adoption_holds: &self.adoption_holds,
            jitter: self.random.jitter(),
            now_ms,
        }
    }

    pub(super) fn set_now(&mut self, now_ms: i64) {
        self.cluster.set_now(now_ms);
        self.event_recorder.set_now(now_ms, &self.settings.instance);
    }

    /// Updates the core's state from the object of a workload. One with a job that another controller manages stays
    /// out of its queue, and so does one that is adopted, since `lockkeeper adopt` writes its admission, and a group without all
    /// its pods.
    pub(super) fn sync_workload(&mut self, key: &ObjectKey) {
        let Some(workload) = self.model.workloads.get(key) else {
            return;
        };
        let job = self.model.job_of(workload);
        let job_kind = workload.job.as_ref().map(|it| it.kind);
        let is_foreign = job.is_some_and(|it| it.view.foreign_manager.is_some());
        let is_adopted = is_adopting(workload, self.cluster.now_ms());
        let is_incomplete = job.is_some_and(|it| it.view.is_incomplete);
        let placement = self.placement.as_ref();
        let is_waiting = placement.is_some_and(|it| it.waiting.contains(key));
        let is_kept_out =
            (is_foreign || is_adopted || is_incomplete || is_waiting) && !workload.holds_quota();
        // An object that the core rejects gets the error as its pending reason.
        let _ = self.cluster.set_workload(Arc::clone(&workload.object));
        if is_kept_out && self.cluster.is_assumed(key.key()) && workload.may_be_admitted() {
            // Its admission may be stored, so its quota is in use until that is known.
            if let Some(workload) = self.model.workloads.get_mut(key) {
                workload.is_stale = workload.decision().is_some();
            }
        } else if is_kept_out {
            self.cluster.hold_until(key.key(), i64::MAX);
        } else if job_kind == Some(POD_GROUP) {
            // A hold of an incomplete group ends without a change of the workload.
            end_hold(&mut self.cluster, key.key());
        }
        if let Some(placement) = &mut self.placement {
            sync_unit(placement, &self.cluster, &self.model, key);
        }
    }

    /// Places workloads on nodes from now on.
    pub(super) fn enable_placement(&mut self) {
        if self.placement.is_none() {
            self.placement = Some(enable(&self.cluster, &self.model));
        }
    }

    pub(super) fn tracker(&self, object: &ObjectRef) -> Option<&WriteTracker> {
        match object {
            ObjectRef::Event(number) => self.event_recorder.tracker(*number),
            ObjectRef::VictimPod(key) => {
                let placement = self.placement.as_ref()?;
                placement.victims.get(key).map(|it| &it.tracker)
            }
            other => self.model.tracker(other),
        }
    }

    pub(super) fn tracker_mut(&mut self, object: &ObjectRef) -> Option<&mut WriteTracker> {
        match object {
            ObjectRef::Event(number) => self.event_recorder.tracker_mut(*number),
            ObjectRef::VictimPod(key) => {
                let placement = self.placement.as_mut()?;
                placement.victims.get_mut(key).map(|it| &mut it.tracker)
            }
            other => self.model.tracker_mut(other),
        }
    }

    pub(super) fn enqueue_all(&mut self) {
        let workloads = self.model.workloads.keys().cloned();
        let jobs = self.model.jobs.keys().cloned().map(ObjectRef::Job);
        for object in workloads.map(ObjectRef::Workload).chain(jobs) {
            self.work_queue.enqueue(object);
        }
        for object in self.model.declared_kinds.object_refs() {
            self.work_queue.enqueue(object);
        }
        self.enqueue_all_queues();
        self.enqueue_events();
    }

    /// Enqueues the job of a workload that has changed; of a group, its pods, too.
    pub(super) fn enqueue_job_of_workload(&mut self, job: JobKey) {
        if job.kind == POD_GROUP {
            self.model.pod_groups.set_workload_changed(&job.name);
        }
        self.work_queue.enqueue(ObjectRef::Job(job));
    }

    pub(super) fn enqueue_events(&mut self) {
        for number in self.event_recorder.take_unqueued() {
            self.work_queue.enqueue(ObjectRef::Event(number));
        }
    }

    pub(super) fn enqueue_all_queues(&mut self) {
        for object in self.model.queues.object_refs() {
            self.work_queue.enqueue(object);
        }
    }

    /// Enqueues the LocalQueues of a ClusterQueue, and their workloads.
    pub(super) fn enqueue_pending_in(&mut self, cluster_queue: &str) {
        let local_queues = self.model.queues.local_queues.iter();
        let local_queues: Vec<ObjectKey> = local_queues
            .filter(|(_, it)| it.object.spec.cluster_queue == cluster_queue)
            .map(|(key, _)| key.clone())
            .collect();
        for key in local_queues {
            self.enqueue_workloads_of(&key);
            self.work_queue.enqueue(ObjectRef::LocalQueue(key));
        }
    }

    /// Enqueues the workloads that a ClusterQueue has admitted, through any LocalQueue.
    pub(super) fn enqueue_admitted_in(&mut self, cluster_queue: &str) {
        for (key, workload) in &self.model.workloads {
            if admitting_cluster_queue(&workload.object) == Some(cluster_queue) {
                self.work_queue.enqueue(ObjectRef::Workload(key.clone()));
            }
        }
    }

    pub(super) fn enqueue_workloads_of(&mut self, local_queue: &ObjectKey) {
        let (namespace, name) = (local_queue.namespace(), local_queue.name());
        for workload in self.cluster.workloads_in_local_queue(namespace, name) {
            let key = ObjectKey::from_metadata(&workload.metadata);
            self.work_queue.enqueue(ObjectRef::Workload(key));
        }
    }

    /// Enqueues the workloads without a priority in their status: a class they name may exist now.
    pub(super) fn enqueue_without_priority(&mut self) {
        for (key, workload) in &self.model.workloads {
            let status = workload.object.status.as_ref();
            if status.is_none_or(|it| it.priority.is_none()) {
                self.work_queue.enqueue(ObjectRef::Workload(key.clone()));
            }
        }
    }

    /// Enqueues the queues with a status that counts a workload.
    pub(super) fn enqueue_queues_of(&mut self, workload: &Workload) {
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(local_queue) = workload.spec.queue_name.as_deref() {
            if let Some(it) = self.cluster.objects().local_queue(namespace, local_queue) {
                let cluster_queue = it.cluster_queue.clone();
                self.enqueue_cluster_queue(&cluster_queue);
            }
            let key = ObjectKey::new(namespace, local_queue);
            self.work_queue.enqueue(ObjectRef::LocalQueue(key));
        }
        // The LocalQueue may point to another ClusterQueue since the admission.
        if let Some(cluster_queue) = admitting_cluster_queue(workload) {
            self.enqueue_cluster_queue(cluster_queue);
        }
    }

    /// Enqueues a ClusterQueue, and under fair sharing its cohorts, because their shares count its usage.
    pub(super) fn enqueue_cluster_queue(&mut self, name: &str) {
        if self.settings.options.algorithm != Algorithm::Classical {
            for cohort in self.model.queues.cohorts_above(name) {
                self.work_queue.enqueue(ObjectRef::Cohort(cohort));
            }
        }
        let queue = ObjectRef::ClusterQueue(name.to_owned());
        self.work_queue.enqueue(queue);
    }
}

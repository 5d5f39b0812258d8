//! Which pods of a group take part in its workload.

use super::member_role::{MemberProblem, MemberRole};
use crate::job_adapters::{
    GroupClaim, JobResult, JobView, PodSetView, group_uid, has_same_requests,
};
use crate::key::ObjectKey;
use crate::reconciler::model::TrackedWorkload;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockkeeper_api::workload::POD_SETS_MAX;
use lockkeeper_api::workload::PodSet;
use lockkeeper_cluster_state::PodGroupSource;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a pod of a group does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MemberPhase {
    /// It has no gate, or it terminates: it uses quota.
    Running,
    Succeeded,
    /// It waits with its gate.
    Waiting,
    /// It has failed, or its node does not respond: another pod may replace it.
    Failed,
    /// It was deleted before it was admitted, or after it has failed.
    Gone,
}

/// The pods of a group, and its view as one job.
#[derive(Clone, Debug)]
pub(super) struct Roster {
    pub(super) view: JobView,
    pub(super) roles: BTreeMap<ObjectKey, MemberRole>,
    /// Whether no pod runs or waits, and at least one has ended.
    pub(super) has_ended: bool,
    /// Whether all pods have succeeded.
    pub(super) has_succeeded: bool,
}

/// The number of pods by state.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    running: i32,
    ready: i32,
    waiting: i32,
    succeeded: i32,
    failed: i32,
}

/// The places of an admitted pod set.
#[derive(Clone, Copy, Debug)]
struct Places {
    admitted: i32,
    /// Those whose quota was released, because their pods have succeeded.
    reclaimed: i32,
}

/// A pod set while the roster is built.
#[derive(Debug, Default)]
struct SetInProgress {
    /// Running and waiting pods.
    active: i32,
    succeeded: i32,
    template: Option<Arc<PodTemplateSpec>>,
}

/// The view of a group without pods.
pub(super) fn group_view(group: &ObjectKey) -> JobView {
    JobView {
        name: group.clone(),
        uid: group_uid(group),
        is_unchanged: true,
        ..JobView::default()
    }
}

impl Roster {
    /// The roster of a group with at least one pod. Running pods come first, then those that were created first. While the
    /// workload is admitted, a pod takes a place of its pod set; else the first pods are the group.
    pub(super) fn new(
        group: &ObjectKey,
        mut members: Vec<(&JobView, MemberPhase)>,
        workload: Option<&TrackedWorkload>,
    ) -> Self {
        members.retain(|(pod, _)| pod.group.is_some());
        members.sort_by(|(one, phase), (other, other_phase)| {
            let created = |pod: &JobView| pod.group.as_ref().map_or(0, |it| it.created_s);
            let one = (phase, created(one), &one.name);
            one.cmp(&(other_phase, created(other), &other.name))
        });
        let mut builder = Builder::new(group, &members, workload);
        for (pod, phase) in &members {
            if let Some(claim) = &pod.group {
                builder.add(pod, claim, *phase);
            }
        }
        builder.finish()
    }
}

/// Builds a roster.
struct Builder<'a> {
    view: JobView,
    total: Option<i32>,
    needed: i32,
    first: Option<&'a JobView>,
    /// The pod sets of the workload.
    stored: &'a [PodSet],
    /// The places of each pod set while the workload is admitted.
    places: Option<BTreeMap<&'a str, Places>>,
    /// Whether a pod runs that the controller did not start: no other pod starts until it is deleted.
    has_foreign_pod: bool,
    sets: BTreeMap<String, SetInProgress>,
    counts: Counts,
    roles: BTreeMap<ObjectKey, MemberRole>,
}

impl<'a> Builder<'a> {
    fn new(
        group: &ObjectKey,
        members: &[(&'a JobView, MemberPhase)],
        workload: Option<&'a TrackedWorkload>,
    ) -> Self {
        let first = members.first().map(|(pod, _)| *pod);
        let claim = first.and_then(|it| it.group.as_ref());
        let mut view = group_view(group);
        if let Some(first) = first {
            view.queue.clone_from(&first.queue);
            view.priority_class.clone_from(&first.priority_class);
            view.preemption_priority_class
                .clone_from(&first.preemption_priority_class);
            view.disruption_mode = first.disruption_mode;
            view.maximum_execution_time_s = first.maximum_execution_time_s;
        }
        Self {
            view,
            total: claim.and_then(|it| it.total),
            needed: claim.map_or(i32::MAX, |it| it.needed),
            first,
            stored: workload.map_or(&[], |it| &it.object.spec.pod_sets),
            places: workload.filter(|it| it.should_run()).and_then(places),
            has_foreign_pod: false,
            sets: BTreeMap::new(),
            counts: Counts::default(),
            roles: BTreeMap::new(),
        }
    }

    fn add(&mut self, pod: &JobView, claim: &GroupClaim, phase: MemberPhase) {
        self.view.version = self.view.version.max(pod.version);
        match phase {
            MemberPhase::Gone => return,
            MemberPhase::Failed => {
                self.counts.failed = self.counts.failed.saturating_add(1);
                return;
            }
            MemberPhase::Running | MemberPhase::Succeeded | MemberPhase::Waiting => {}
        }
        let role = self
            .problem(pod, claim, phase)
            .map_or_else(|| self.place(pod, claim, phase), MemberRole::Excluded);
        self.roles.insert(pod.name.clone(), role);
    }

    fn problem(
        &self,
        pod: &JobView,
        claim: &GroupClaim,
        phase: MemberPhase,
    ) -> Option<MemberProblem> {
        // A pod that runs uses quota, whatever its labels say now.
        if phase != MemberPhase::Waiting {
            return None;
        }
        if self.total.is_none() {
            return Some(match claim.source {
                PodGroupSource::Metadata => MemberProblem::NoTotal,
                PodGroupSource::PodGroup { .. } => MemberProblem::NoPodGroup,
            });
        }
        let first = self.first?;
        let first_claim = first.group.as_ref()?;
        let differs = |is_other: bool, field| is_other.then_some(MemberProblem::Differs(field));
        differs(pod.queue != first.queue, "queue")
            .or_else(|| differs(pod.priority_class != first.priority_class, "priority class"))
            .or_else(|| {
                differs(
                    pod.preemption_priority_class != first.preemption_priority_class,
                    "preemption priority class",
                )
            })
            .or_else(|| {
                differs(
                    (claim.total, claim.needed) != (first_claim.total, first_claim.needed),
                    "number of pods",
                )
            })
    }

    /// The pod set of the workload with this name.
    fn stored(&self, name: &str) -> Option<&'a PodSet> {
        self.stored.iter().find(|it| it.name() == name)
    }

    /// The name of the pod set of a pod. A pod that was started has the placement of its flavor, so that its shape is
    /// another one: it is in the pod set of its annotation if that has the same requests. Users can write any number of templates
    /// whose shapes have one name: each further one gets another name, because it must not take a place of the first. `None` if there are
    /// more of them than a workload has pod sets.
    fn pod_set_name<'b>(
        &self,
        claim: &'b GroupClaim,
        phase: MemberPhase,
        template: &Arc<PodTemplateSpec>,
    ) -> Option<Cow<'b, str>> {
        let has_started = phase != MemberPhase::Waiting;
        let started_in = claim.started_in.as_deref().filter(|name| {
            let stored = self.stored(name).filter(|_| has_started);
            stored.is_some_and(|it| {
                has_same_requests(template.spec.as_ref(), it.template.spec.as_ref())
            })
        });
        if let Some(name) = started_in {
            return Some(Cow::Borrowed(name));
        }
        if self.may_contain(&claim.shape, template) {
            return Some(Cow::Borrowed(&claim.shape));
        }
        let others = (1..POD_SETS_MAX).map(|number| match number {
            1 => format!("{}-other", claim.shape),
            more => format!("{}-other-{more}", claim.shape),
        });
        let mut free = others.filter(|name| self.may_contain(name, template));
        free.next().map(Cow::Owned)
    }

    /// Whether the pod set with this name has this template, or does not exist yet.
    fn may_contain(&self, name: &str, template: &Arc<PodTemplateSpec>) -> bool {
        let stored = self.stored(name).map(|it| &it.template);
        let known = stored.or_else(|| self.sets.get(name)?.template.as_ref());
        known.is_none_or(|it| Arc::ptr_eq(it, template) || it == template)
    }

    /// Finds a place for a pod that does not differ from its group.
    fn place(&mut self, pod: &JobView, claim: &GroupClaim, phase: MemberPhase) -> MemberRole {
        if phase == MemberPhase::Running && self.places.is_some() && claim.started_in.is_none() {
            // It is deleted, and does not take the place of another.
            self.counts.running = self.counts.running.saturating_add(1);
            self.has_foreign_pod = true;
            return MemberRole::Excluded(MemberProblem::Full);
        }
        let template = pod.pod_sets.first().map(|it| Arc::clone(&it.template));
        let template = template.unwrap_or_default();
        let Some(name) = self.pod_set_name(claim, phase, &template) else {
            if phase == MemberPhase::Running {
                self.counts.running = self.counts.running.saturating_add(1);
            }
            return MemberRole::Excluded(MemberProblem::Full);
        };
        let name = &*name;
        let stored_template = self.stored(name).map(|it| Arc::clone(&it.template));
        let present = self.counts.running + self.counts.waiting + self.counts.succeeded;
        let is_full = match &self.places {
            Some(places) => places.get(name).is_none_or(|places| {
                let set = self.sets.get(name);
                let (active, succeeded) = set.map_or((0, 0), |it| (it.active, it.succeeded));
                active.saturating_add(places.used_up(succeeded)) >= places.admitted
            }),
            None => present >= self.total.unwrap_or_default(),
        };
        let is_full = is_full || self.has_foreign_pod;
        if is_full && phase == MemberPhase::Waiting {
            return MemberRole::Excluded(MemberProblem::Full);
        }
        let set = self.sets.entry(name.to_owned()).or_default();
        if set.template.is_none() {
            set.template = stored_template.or(Some(template));
        }
        let (of_set, of_group) = match phase {
            MemberPhase::Running => (&mut set.active, &mut self.counts.running),
            MemberPhase::Succeeded => (&mut set.succeeded, &mut self.counts.succeeded),
            _ => (&mut set.active, &mut self.counts.waiting),
        };
        *of_set = of_set.saturating_add(1);
        *of_group = of_group.saturating_add(1);
        if phase == MemberPhase::Running && pod.is_ready {
            self.counts.ready = self.counts.ready.saturating_add(1);
        }
        MemberRole::Member(name.to_owned())
    }

    /// The pod sets as the workload has them, and after them new ones. An admitted pod set keeps its places for pods that
    /// replace others.
    fn pod_sets(&mut self) -> Vec<PodSetView> {
        let mut sets = std::mem::take(&mut self.sets);
        let mut all = Vec::new();
        for stored in self.stored {
            let places = self.places.as_ref().and_then(|it| it.get(stored.name()));
            let set = sets.remove(stored.name());
            if set.is_none() && places.is_none() {
                continue;
            }
            let set = set.unwrap_or_default();
            let (count, remaining) = match places {
                Some(places) => {
                    let remaining = places
                        .admitted
                        .saturating_sub(places.used_up(set.succeeded));
                    (places.admitted, remaining)
                }
                None => (set.active.saturating_add(set.succeeded), set.active),
            };
            let template = Arc::clone(&stored.template);
            // More pods run than were admitted.
            let (count, remaining) = (count.max(set.active), remaining.max(set.active));
            all.push(pod_set_view(
                stored.name().to_owned(),
                count,
                remaining,
                template,
            ));
        }
        all.extend(sets.into_iter().map(|(name, set)| {
            let count = set.active.saturating_add(set.succeeded);
            pod_set_view(name, count, set.active, set.template.unwrap_or_default())
        }));
        all
    }

    fn finish(mut self) -> Roster {
        let counts = self.counts;
        let has_ended =
            counts.running + counts.waiting == 0 && counts.succeeded + counts.failed > 0;
        let has_succeeded = has_ended && self.total.is_some_and(|total| counts.succeeded >= total);
        let is_stopped = counts.running == 0;
        let present = counts.running + counts.waiting + counts.succeeded;
        let view = &mut self.view;
        view.is_suspended = is_stopped;
        view.is_quiescent = is_stopped;
        // An admitted group whose pods have ended waits for its result, not for pods.
        let awaits_result = has_ended && self.places.is_some();
        view.is_incomplete = present < self.needed && !awaits_result;
        view.is_ready =
            !view.is_incomplete && counts.ready == counts.running && counts.waiting == 0;
        view.result = has_ended.then(|| JobResult {
            is_success: counts.failed == 0,
            message: format!(
                "{} pods have succeeded, and {} have failed",
                counts.succeeded, counts.failed
            ),
        });
        self.view.pod_sets = self.pod_sets();
        Roster {
            view: self.view,
            roles: self.roles,
            has_ended,
            has_succeeded,
        }
    }
}

fn pod_set_view(
    name: String,
    count: i32,
    remaining: i32,
    template: Arc<PodTemplateSpec>,
) -> PodSetView {
    PodSetView {
        name,
        count,
        remaining,
        job_count: 0,
        min_count: None,
        template,
    }
}

impl Places {
    /// The places that no other pod takes: of pods that have succeeded, gone or not.
    fn used_up(self, succeeded: i32) -> i32 {
        succeeded.max(self.reclaimed)
    }
}

/// The places of each pod set of an admitted workload.
fn places(workload: &TrackedWorkload) -> Option<BTreeMap<&str, Places>> {
    let status = workload.object.status.as_ref()?;
    let admission = status.admission.as_ref()?;
    let assignments = admission.pod_set_assignments.iter().map(|it| {
        let places = Places {
            admitted: it.count,
            reclaimed: status.reclaimed(it),
        };
        (it.name.as_str(), places)
    });
    Some(assignments.collect())
}

#[cfg(test)]
mod tests;

//! What happened to one workload.

use crate::observer::ReplayObserver;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::journal::{ClusterEvent, CycleRecord};
use lockkeeper_cluster_state::pending_reason::{NAMESPACE_MISMATCH, decision_message};
use lockkeeper_cluster_state::{ClusterState, workload_key};
use lockkeeper_preemption::{Cycle, Decision};

/// One event of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEvent {
    /// In milliseconds since 1970.
    pub at_ms: i64,
    /// `Created`, `Admitted`, `Preempts`, `Pending`, `Preempted`, `Evicted`, `QuotaReleased`, `Finished`, `Deleted` or
    /// `AdmissionWithdrawn`.
    pub event: &'static str,
    /// The rest, as text.
    pub message: String,
}

/// What happened to one workload, from a replay.
#[derive(Debug)]
pub struct History {
    /// `namespace/name`.
    workload: String,
    events: Vec<HistoryEvent>,
    /// The last object.
    object: Option<Workload>,
    last_reason: String,
    /// The time at which its assumed admission ended, until the next event tells why.
    reverted_at_ms: Option<i64>,
    /// Whether a cycle has preempted it, and it has not released its quota: later cycles name it again.
    is_preempted: bool,
}

impl History {
    /// The history of a workload (`namespace/name`).
    #[must_use]
    pub fn of(workload: &str) -> Self {
        Self {
            workload: workload.to_owned(),
            events: Vec::new(),
            object: None,
            last_reason: String::new(),
            reverted_at_ms: None,
            is_preempted: false,
        }
    }

    /// The events, from the first to the last.
    #[must_use]
    pub fn events(&self) -> &[HistoryEvent] {
        &self.events
    }

    fn set_object(&mut self, now_ms: i64, workload: &Workload) {
        let uid = |it: &Workload| it.metadata.uid.clone();
        let before = self.object.take();
        let before = before.filter(|it| uid(it) == uid(workload));
        if before.is_none() {
            self.add_changed(now_ms, "Created", creation_text(workload));
        }
        let had_quota = before.as_ref().is_some_and(has_admission);
        for (condition, event) in [("Evicted", "Evicted"), ("Finished", "Finished")] {
            let reason = condition_reason(workload, condition);
            let earlier = before
                .as_ref()
                .and_then(|it| condition_reason(it, condition));
            if let Some(reason) = reason.filter(|_| reason != earlier) {
                self.add(now_ms, event, reason.to_owned());
            }
        }
        if had_quota && !has_admission(workload) {
            self.is_preempted = false;
            self.add(now_ms, "QuotaReleased", String::new());
        }
        self.object = Some(workload.clone());
    }

    /// Adds an event that is not the same as the last of its kind.
    fn add_changed(&mut self, now_ms: i64, event: &'static str, message: String) {
        let reason = format!("{event} {message}");
        if self.last_reason != reason {
            self.add(now_ms, event, message);
            self.last_reason = reason;
        }
    }

    fn add(&mut self, at_ms: i64, event: &'static str, message: String) {
        self.last_reason.clear();
        self.events.push(HistoryEvent {
            at_ms,
            event,
            message,
        });
    }
}

impl ReplayObserver for History {
    fn before_event(&mut self, cluster: &ClusterState, event: &ClusterEvent) {
        let now_ms = cluster.now_ms();
        let own = match event {
            ClusterEvent::Workload(it) if workload_key(it) == self.workload => Some(&**it),
            _ => None,
        };
        // The object with the admission takes the place of the assumed one.
        if let Some(at_ms) = self.reverted_at_ms.take()
            && !own.is_some_and(has_admission)
        {
            self.add(at_ms, "AdmissionWithdrawn", "it was not written".to_owned());
        }
        match event {
            ClusterEvent::WorkloadRemoved(key) if *key == self.workload => {
                self.object = None;
                self.add(now_ms, "Deleted", String::new());
            }
            ClusterEvent::AdmissionReverted(key) if *key == self.workload => {
                self.reverted_at_ms = Some(now_ms);
                self.is_preempted = false;
            }
            _ => {}
        }
        if let Some(workload) = own {
            self.set_object(now_ms, workload);
        }
    }

    fn after_cycle(&mut self, cluster: &ClusterState, cycle: &Cycle, record: &CycleRecord) {
        let (state, now_ms) = (cluster.state(), cluster.now_ms());
        let mut out_of_scope = cycle.out_of_scope.iter();
        if out_of_scope.any(|id| state.workload_name(*id) == self.workload) {
            self.add_changed(now_ms, "Pending", NAMESPACE_MISMATCH.to_owned());
        }
        for entry in &cycle.entries {
            let name = state.workload_name(entry.workload);
            if let Decision::Preempt(victims) = &entry.decision {
                let mut victims = victims.iter();
                let own = victims.find(|it| state.workload_name(it.workload) == self.workload);
                if let Some(victim) = own
                    && !std::mem::replace(&mut self.is_preempted, true)
                {
                    let reason = victim.reason.as_str();
                    self.add(now_ms, "Preempted", format!("by {name} ({reason})"));
                }
            }
            if name != self.workload {
                continue;
            }
            match &entry.decision {
                Decision::Admit => {
                    let message = admission_text(record, name);
                    self.add(now_ms, "Admitted", message);
                }
                Decision::Preempt(victims) => {
                    let victims: Vec<String> = victims
                        .iter()
                        .map(|it| {
                            let name = state.workload_name(it.workload);
                            format!("{name} ({})", it.reason.as_str())
                        })
                        .collect();
                    self.add_changed(now_ms, "Preempts", victims.join(", "));
                }
                _ => self.add_changed(now_ms, "Pending", decision_message(state, entry)),
            }
        }
    }
}

fn has_admission(workload: &Workload) -> bool {
    let status = workload.status.as_ref();
    status.is_some_and(|it| it.admission.is_some())
}

/// The reason of a condition that is true.
fn condition_reason<'a>(workload: &'a Workload, of: &str) -> Option<&'a str> {
    let mut conditions = workload.status.iter().flat_map(|it| &it.conditions);
    let found = conditions.find(|it| it.type_ == of && it.status == "True")?;
    Some(&found.reason)
}

fn creation_text(workload: &Workload) -> String {
    let spec = &workload.spec;
    let pods: i64 = spec
        .pod_sets
        .iter()
        .map(|it| i64::from(it.count.unwrap_or(1)))
        .sum();
    let queue = spec.queue_name.as_deref().unwrap_or("none");
    let plural = if pods == 1 { "" } else { "s" };
    let class = spec.priority_class_name.as_deref();
    let class = class.map_or(String::new(), |it| format!(", priority class {it}"));
    format!("LocalQueue {queue}{class}, {pods} pod{plural}")
}

/// The flavors of an admission.
fn admission_text(record: &CycleRecord, workload: &str) -> String {
    let mut decisions = record.decisions.iter();
    let decision = decisions.find(|it| &*it.workload == workload);
    let pod_sets = decision.into_iter().flat_map(|it| &it.pod_sets);
    let texts: Vec<String> = pod_sets.map(ToString::to_string).collect();
    texts.join("; ")
}

//! Decisions of Kueue.

use crate::report::DecisionKind;
use crate::workload_facts::{admission, preempted};
use lockkeeper_api::Workload;
use lockkeeper_api::workload::Admission;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What Kueue has decided.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// It has admitted the workload.
    Admission(Box<Admission>),
    /// It has preempted these workloads for it, with these reasons.
    Preemption(BTreeMap<Arc<str>, String>),
}

/// A decision of Kueue on a workload.
#[derive(Clone, Debug)]
pub(crate) struct KueueDecision {
    /// The workload: the preemptor of a preemption.
    pub(crate) key: Arc<str>,
    /// Its ClusterQueue.
    pub(crate) queue: Arc<str>,
    pub(crate) what: What,
    /// When it was decided, in seconds since 1970.
    pub(crate) decided_s: i64,
    /// The position of its first change.
    pub(crate) first_seq: u64,
    /// The positions of all its changes.
    pub(crate) seqs: BTreeSet<u64>,
    /// When its last change was delivered, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// Kueue's reason: the message of a condition.
    pub(crate) message: String,
}

impl KueueDecision {
    /// Its kind.
    pub(crate) const fn kind(&self) -> DecisionKind {
        match self.what {
            What::Admission(_) => DecisionKind::Admission,
            What::Preemption(_) => DecisionKind::Preemption,
        }
    }

    /// The decision as text.
    pub(crate) fn text(&self) -> String {
        let what = match &self.what {
            What::Admission(admission) => format!("admits it {}", admission_text(admission)),
            What::Preemption(victims) => format!("preempts {}", victims_text(victims)),
        };
        if self.message.is_empty() {
            what
        } else {
            format!("{what}: {}", self.message)
        }
    }

    /// Adds a victim.
    pub(crate) fn add_victim(&mut self, key: &Arc<str>, victim: &Workload, seq: u64, at_ms: i64) {
        let reason = preempted(victim).map(|it| it.reason.clone());
        if let What::Preemption(victims) = &mut self.what {
            victims.insert(Arc::clone(key), reason.unwrap_or_default());
            self.seqs.insert(seq);
            self.at_ms = at_ms;
        }
    }
}

/// The admission of a workload, without its usage.
pub(crate) fn admission_of(workload: &Workload) -> Option<Box<Admission>> {
    admission(workload).cloned().map(Box::new)
}

/// An admission as text: the flavors of each pod set, and the number of its pods.
pub(crate) fn admission_text(admission: &Admission) -> String {
    let pod_sets = admission.pod_set_assignments.iter().map(|it| {
        let flavors: BTreeSet<&str> = it.flavors.values().map(String::as_str).collect();
        let flavors: Vec<&str> = flavors.into_iter().collect();
        format!("{} x {} on {}", it.count, it.name, flavors.join(", "))
    });
    let pod_sets: Vec<String> = pod_sets.collect();
    format!("({})", pod_sets.join("; "))
}

/// Whether two admissions give the same flavors and numbers of pods.
pub(crate) fn is_same_admission(one: &Admission, other: &Admission) -> bool {
    let parts = |of: &Admission| {
        let pod_sets = of.pod_set_assignments.iter();
        let pod_sets = pod_sets.map(|it| (it.name.clone(), (it.count, it.flavors.clone())));
        pod_sets.collect::<BTreeMap<_, _>>()
    };
    one.cluster_queue == other.cluster_queue && parts(one) == parts(other)
}

/// Victims as text, with the reasons; at most five.
pub(crate) fn victims_text(victims: &BTreeMap<Arc<str>, String>) -> String {
    const NAMES_MAX: usize = 5;
    let names = victims.iter().take(NAMES_MAX);
    let names: Vec<String> = names.map(|(key, why)| format!("{key} ({why})")).collect();
    match victims.len().saturating_sub(NAMES_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

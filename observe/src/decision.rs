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
    /// When it was decided, in seconds since 1970; the first part, if it is merged.
    pub(crate) decided_s: i64,
    /// The position of its first change.
    pub(crate) first_seq: u64,
    /// The workload and second of each of its changes, by position.
    pub(crate) seqs: BTreeMap<u64, (Arc<str>, i64)>,
    /// The positions of the changes of other preemptions for the workload that came before: Kueue has decided after them.
    pub(crate) preceding: BTreeSet<u64>,
    /// When its last change was delivered, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// Whether further victims belong to another decision: the workload or one of the victims was admitted since.
    pub(crate) is_closed: bool,
    /// Other preemptions for the workload, a second before or after, that are compared already.
    pub(crate) siblings: Vec<Self>,
    /// Whether the core decides the same on it and a sibling as one preemption.
    pub(crate) is_confirmed: bool,
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

    /// Whether a workload is one of its victims.
    pub(crate) fn has_victim(&self, key: &str) -> bool {
        match &self.what {
            What::Preemption(victims) => victims.contains_key(key),
            What::Admission(_) => false,
        }
    }

    /// Whether another victim may be one of it.
    pub(crate) fn may_have_victim(&self, key: &str) -> bool {
        self.kind() == DecisionKind::Preemption && !self.is_closed && !self.has_victim(key)
    }

    /// Adds a victim that was preempted in a second, by a change.
    pub(crate) fn add_victim(&mut self, key: &Arc<str>, victim: &Workload, second: i64, seq: u64) {
        let reason = preempted(victim).map(|it| it.reason.clone());
        if let What::Preemption(victims) = &mut self.what {
            victims.insert(Arc::clone(key), reason.unwrap_or_default());
            self.seqs.insert(seq, (Arc::clone(key), second));
        }
    }

    /// Whether these are all its victims.
    pub(crate) fn has_all_victims(&self, preempted: &BTreeSet<Arc<str>>) -> bool {
        match &self.what {
            What::Preemption(victims) => victims.keys().eq(preempted),
            What::Admission(_) => false,
        }
    }

    /// Whether both may be parts of one preemption, whose conditions were written in two seconds.
    pub(crate) fn is_sibling(&self, other: &Self) -> bool {
        self.key == other.key
            && self.kind() == DecisionKind::Preemption
            && other.kind() == DecisionKind::Preemption
            && self.decided_s.abs_diff(other.decided_s) == 1
    }

    /// Both as one preemption; `None` if a victim is in both.
    pub(crate) fn merged(&self, other: &Self) -> Option<Self> {
        let (What::Preemption(own), What::Preemption(others)) = (&self.what, &other.what) else {
            return None;
        };
        if own.keys().any(|it| others.contains_key(it)) {
            return None;
        }
        let mut victims = own.clone();
        victims.extend(others.clone());
        let mut seqs = self.seqs.clone();
        seqs.extend(other.seqs.clone());
        Some(Self {
            what: What::Preemption(victims),
            decided_s: self.decided_s.min(other.decided_s),
            first_seq: self.first_seq.min(other.first_seq),
            seqs,
            at_ms: self.at_ms.max(other.at_ms),
            siblings: Vec::new(),
            ..self.clone()
        })
    }

    /// The preemption of the other victims, if some were preempted by a cycle before. `None` if it is no preemption, or if
    /// none or all of its victims are left.
    pub(crate) fn after_part(&self, part: &BTreeSet<Arc<str>>) -> Option<Self> {
        let What::Preemption(victims) = &self.what else {
            return None;
        };
        let mut rest = victims.clone();
        rest.retain(|key, _| !part.contains(key));
        if rest.is_empty() || rest.len() == victims.len() {
            return None;
        }
        let all = self.seqs.clone().into_iter();
        let (seqs, before): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.partition(|(_, (key, _))| rest.contains_key(key));
        let mut preceding = self.preceding.clone();
        preceding.extend(before.into_keys());
        let first_seq = seqs.keys().next()?;
        let decided_s = seqs.values().map(|(_, second)| second).min()?;
        Some(Self {
            what: What::Preemption(rest),
            first_seq: *first_seq,
            decided_s: *decided_s,
            preceding,
            seqs,
            ..self.clone()
        })
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

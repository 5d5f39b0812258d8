//! Jobs under elastic quotas, written down: the cases of the conformance data, and of what people write for
//! `lockkeeper explain --scenario` (docs/scenario.md).
//!
//! A case says in `kind` what it asks. A field that is not known is refused, so that nothing is passed over.

mod case;
mod door;
mod marks;
mod per_pod;
mod quota;
mod round;
mod shares;
mod story;

pub use door::CaseError;
pub use marks::Preemptor;

use serde_json::Value;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    JobAdmission,
    MayTriggerPreemption,
    PreemptionQuotaGate,
    JobPreemption,
    Prefilter,
    PrefilterParent,
    CanPreempt,
    SelectVictimsOnNode,
    RuntimeQuota,
    OveruseRevoke,
}

const KINDS: [(&str, Kind); 10] = [
    ("job_admission", Kind::JobAdmission),
    ("may_trigger_preemption", Kind::MayTriggerPreemption),
    ("preemption_quota_gate", Kind::PreemptionQuotaGate),
    ("job_preemption", Kind::JobPreemption),
    ("prefilter", Kind::Prefilter),
    ("prefilter_parent", Kind::PrefilterParent),
    ("can_preempt", Kind::CanPreempt),
    ("select_victims_on_node", Kind::SelectVictimsOnNode),
    ("runtime_quota", Kind::RuntimeQuota),
    ("overuse_revoke", Kind::OveruseRevoke),
];

/// What a case says about itself, and what somebody found for it.
const REMARKS: [&str; 8] = [
    "id", "kind", "origin", "rule", "title", "note", "source", "expected",
];

/// A case that was read.
#[derive(Clone, Debug)]
pub struct Case {
    kind: Kind,
    asked: Value,
}

/// A decision told.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The decision, in the field names of the cases.
    pub decision: Value,
    /// What was considered, in order; empty where there is nothing to consider.
    pub trace: Vec<Value>,
    /// Both for a person.
    pub text: String,
}

impl Case {
    /// Whether a scenario is such a case.
    #[must_use]
    pub fn is_one(scenario: &Value) -> bool {
        kind_of(scenario).is_some()
    }

    /// Takes a case.
    ///
    /// # Errors
    ///
    /// [`CaseError::Kind`] if it is none.
    pub fn of(mut scenario: Value) -> Result<Self, CaseError> {
        let kind = kind_of(&scenario).ok_or_else(|| CaseError::Kind {
            kind: scenario.get("kind").unwrap_or(&Value::Null).to_string(),
        })?;
        if let Some(fields) = scenario.as_object_mut() {
            fields.retain(|field, _| !REMARKS.contains(&field.as_str()));
        }
        Ok(Self {
            kind,
            asked: scenario,
        })
    }

    /// Decides it.
    ///
    /// # Errors
    ///
    /// A [`CaseError`] with the place of what cannot be: a field that is not known or missing, an amount that is
    /// negative or too large, a name twice, a name that nothing has.
    pub fn decide(&self) -> Result<Told, CaseError> {
        let asked = &self.asked;
        match self.kind {
            Kind::JobAdmission => quota::admission(asked),
            Kind::MayTriggerPreemption => quota::trigger(asked),
            Kind::PreemptionQuotaGate => quota::gate(asked),
            Kind::JobPreemption => round::decide(asked),
            Kind::Prefilter => per_pod::prefilter(asked),
            Kind::PrefilterParent => per_pod::prefilter_parent(asked),
            Kind::CanPreempt => per_pod::can_preempt(asked),
            Kind::SelectVictimsOnNode => per_pod::victims_on_node(asked),
            Kind::RuntimeQuota => shares::runtime(asked),
            Kind::OveruseRevoke => shares::revoke(asked),
        }
    }
}

fn kind_of(scenario: &Value) -> Option<Kind> {
    let kind = scenario.get("kind")?.as_str()?;
    let (_, kind) = KINDS.iter().find(|(name, _)| *name == kind)?;
    // Cases of kube-scheduler's own plugin go by the same name, and know no quota.
    let is_of_quota = *kind != Kind::SelectVictimsOnNode || scenario.get("quota").is_some();
    is_of_quota.then_some(*kind)
}

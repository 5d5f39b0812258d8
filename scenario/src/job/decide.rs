//! Reads a case and decides it by its kind.

use super::answer::CaseAnswer;
use super::resolve::CaseError;
use super::{job_preemption, per_pod, quota_check, runtime_quota};
use serde_json::Value;

/// The kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaseKind {
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

const CASE_KINDS: [(&str, CaseKind); 10] = [
    ("job_admission", CaseKind::JobAdmission),
    ("may_trigger_preemption", CaseKind::MayTriggerPreemption),
    ("preemption_quota_gate", CaseKind::PreemptionQuotaGate),
    ("job_preemption", CaseKind::JobPreemption),
    ("prefilter", CaseKind::Prefilter),
    ("prefilter_parent", CaseKind::PrefilterParent),
    ("can_preempt", CaseKind::CanPreempt),
    ("select_victims_on_node", CaseKind::SelectVictimsOnNode),
    ("runtime_quota", CaseKind::RuntimeQuota),
    ("overuse_revoke", CaseKind::OveruseRevoke),
];

/// Fields of a case that are not inputs: its description and its recorded result.
const COMMENT_FIELDS: [&str; 8] = [
    "id", "kind", "origin", "rule", "title", "note", "source", "expected",
];

/// A parsed case.
#[derive(Clone, Debug)]
pub struct Case {
    kind: CaseKind,
    fields: Value,
}

impl Case {
    /// Whether a scenario is such a case.
    #[must_use]
    pub fn is_job_case(scenario: &Value) -> bool {
        case_kind(scenario).is_some()
    }

    /// Parses a case.
    ///
    /// # Errors
    ///
    /// [`CaseError::Kind`] for an unknown kind.
    pub fn parse(mut scenario: Value) -> Result<Self, CaseError> {
        let kind = case_kind(&scenario).ok_or_else(|| CaseError::Kind {
            kind: scenario.get("kind").unwrap_or(&Value::Null).to_string(),
        })?;
        if let Some(fields) = scenario.as_object_mut() {
            fields.retain(|field, _| !COMMENT_FIELDS.contains(&field.as_str()));
        }
        Ok(Self {
            kind,
            fields: scenario,
        })
    }

    /// Decides the case.
    ///
    /// # Errors
    ///
    /// A [`CaseError`] with the field path: an unknown or missing field, an amount that is negative or too large, a
    /// duplicate name, or a reference to an unknown name.
    pub fn decide(&self) -> Result<CaseAnswer, CaseError> {
        let fields = &self.fields;
        match self.kind {
            CaseKind::JobAdmission => quota_check::admission(fields),
            CaseKind::MayTriggerPreemption => quota_check::trigger(fields),
            CaseKind::PreemptionQuotaGate => quota_check::gate(fields),
            CaseKind::JobPreemption => job_preemption::decide(fields),
            CaseKind::Prefilter => per_pod::prefilter(fields),
            CaseKind::PrefilterParent => per_pod::prefilter_parent(fields),
            CaseKind::CanPreempt => per_pod::can_preempt(fields),
            CaseKind::SelectVictimsOnNode => per_pod::victims_on_node(fields),
            CaseKind::RuntimeQuota => runtime_quota::runtime(fields),
            CaseKind::OveruseRevoke => runtime_quota::revoke(fields),
        }
    }
}

fn case_kind(scenario: &Value) -> Option<CaseKind> {
    let kind = scenario.get("kind")?.as_str()?;
    let (_, kind) = CASE_KINDS.iter().find(|(name, _)| *name == kind)?;
    // Cases of kube-scheduler's own plugin have the same name, but no quota.
    let is_of_quota = *kind != CaseKind::SelectVictimsOnNode || scenario.get("quota").is_some();
    is_of_quota.then_some(*kind)
}

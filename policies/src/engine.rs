//! Runs the rules of an object.

use crate::exceptions::Exception;
use crate::finding::{Finding, Findings, Identity};
use crate::rule::{Change, Check, Context, Rule, Transition};
use crate::settings::Settings;
use crate::validated_kind::ValidatedKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::config::Action;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most findings in one verdict. Further findings are only counted.
pub const FINDINGS_MAX: usize = 100;

/// The operation under review, with its objects.
pub enum ReviewSubject<'a, T> {
    /// A new object.
    Create(&'a T),
    /// The stored and the new object.
    Update(Change<'a, T>),
    /// The object to delete.
    Delete(&'a T),
}

/// The findings by their action. A rejected object is a value, not an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Findings that reject the object.
    pub denials: Vec<Finding>,
    /// Findings returned to the client as warnings.
    pub warnings: Vec<Finding>,
    /// Findings for the audit log.
    pub audits: Vec<Finding>,
    /// Findings that an exception covers; they go to the audit log with the reason of the exception.
    pub exempted: Vec<Exempted>,
    /// The number of findings past [`FINDINGS_MAX`], of any action.
    pub omitted: usize,
}

/// A finding that an exception covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exempted {
    /// The finding.
    pub finding: Finding,
    /// The exception that covers it.
    pub exception: Arc<Exception>,
}

impl Verdict {
    /// Whether the object is accepted.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.denials.is_empty()
    }

    /// Adds the findings of a rule under its action, or as exempted if an exception covers the object.
    pub(crate) fn record(
        &mut self,
        rule: &str,
        action: Action,
        findings: Vec<Finding>,
        settings: &Settings,
        object: &ObjectMeta,
    ) {
        if findings.is_empty() {
            return;
        }
        // Exceptions are for findings that reach the client; audit findings stay as they are.
        let is_reported = matches!(action, Action::Enforce | Action::Warn);
        match settings
            .exceptions
            .find_covering(rule, object)
            .filter(|_| is_reported)
        {
            Some(exception) => self.exempt(exception, findings),
            None => self.push_findings(action, findings),
        }
    }

    fn exempt(&mut self, exception: &Arc<Exception>, findings: Vec<Finding>) {
        for finding in findings {
            if self.reported() >= FINDINGS_MAX {
                self.omitted += 1;
                continue;
            }
            self.exempted.push(Exempted {
                finding,
                exception: Arc::clone(exception),
            });
        }
    }

    fn reported(&self) -> usize {
        self.denials.len() + self.warnings.len() + self.audits.len() + self.exempted.len()
    }

    fn push_findings(&mut self, action: Action, findings: Vec<Finding>) {
        for finding in findings {
            let reported = self.reported();
            // A rejection must have a reason, even past the limit.
            let first_denial = action == Action::Enforce && self.denials.is_empty();
            if reported >= FINDINGS_MAX && !first_denial {
                self.omitted += 1;
                continue;
            }
            match action {
                Action::Enforce => self.denials.push(finding),
                Action::Warn => self.warnings.push(finding),
                Action::Audit => self.audits.push(finding),
                Action::Off => {}
            }
        }
    }
}

/// Runs every rule of a kind on an object. Costs O(n log n) in the size of the object.
///
/// Updates ratchet: a finding counts only if the stored object does not have the same one (same rule, path, value
/// and text; list items match by key). So a rule added later never blocks an unrelated change, such as the removal
/// of a finalizer, and no update makes an object worse. Kinds without [`ValidatedKind::RATCHETS`] and
/// [`Check::Transition`] rules do not ratchet. An update that changes no field that rules read
/// ([`ValidatedKind::is_unchanged`]) is not reviewed.
#[must_use]
pub fn review<T: ValidatedKind>(subject: &ReviewSubject<'_, T>, context: &Context<'_>) -> Verdict {
    let object = match subject {
        ReviewSubject::Create(object) | ReviewSubject::Delete(object) => object,
        ReviewSubject::Update(change) => change.new,
    };
    // Controllers update status and metadata often, and no rule reads most of these fields.
    if let ReviewSubject::Update(change) = subject
        && T::is_unchanged(change.old, change.new)
    {
        return Verdict::default();
    }
    let namespace = object.meta().namespace.as_deref();
    let mut verdict = Verdict::default();
    for rule in T::rules() {
        let action = context.settings.action(rule.id, rule.action, namespace);
        if action != Action::Off {
            let findings = run_rule(rule, subject, context);
            verdict.record(rule.id, action, findings, context.settings, object.meta());
        }
    }
    verdict
}

/// The findings of one rule.
fn run_rule<T: ValidatedKind>(
    rule: &Rule<T>,
    subject: &ReviewSubject<'_, T>,
    context: &Context<'_>,
) -> Vec<Finding> {
    match (&rule.check, subject) {
        (
            Check::Object(_) | Check::Context(_) | Check::Create(_),
            ReviewSubject::Create(object),
        ) => check_state(rule, object, context),
        (Check::Object(_) | Check::Context(_), ReviewSubject::Update(change)) => {
            let mut findings = check_state(rule, change.new, context);
            if T::RATCHETS && !findings.is_empty() {
                // Most updates have no findings, so the stored object is evaluated only here.
                drop_preexisting(&mut findings, &check_state(rule, change.old, context));
            }
            findings
        }
        (Check::Transition(check), ReviewSubject::Create(new)) => {
            let mut out = Findings::new(rule.id);
            check(&Transition { old: None, new }, context, &mut out);
            out.into_items()
        }
        (Check::Transition(check), ReviewSubject::Update(Change { old, new })) => {
            let mut out = Findings::new(rule.id);
            let old = Some(*old);
            check(&Transition { old, new }, context, &mut out);
            out.into_items()
        }
        (Check::Change(check), ReviewSubject::Update(change)) => {
            let mut out = Findings::new(rule.id);
            check(change, context, &mut out);
            out.into_items()
        }
        (Check::Delete(check), ReviewSubject::Delete(object)) => {
            let mut out = Findings::new(rule.id);
            check(object, context, &mut out);
            out.into_items()
        }
        (Check::Create(_), ReviewSubject::Update(_) | ReviewSubject::Delete(_))
        | (Check::Change(_), ReviewSubject::Create(_) | ReviewSubject::Delete(_))
        | (Check::Delete(_), ReviewSubject::Create(_) | ReviewSubject::Update(_))
        | (Check::Object(_) | Check::Context(_) | Check::Transition(_), ReviewSubject::Delete(_)) => {
            Vec::new()
        }
    }
}

/// Drops pre-existing findings. Each earlier finding cancels one equal finding, so a third copy of a duplicate is
/// still reported. Costs O(n log n).
pub(crate) fn drop_preexisting(findings: &mut Vec<Finding>, before: &[Finding]) {
    let mut preexisting: BTreeMap<Identity, usize> = BTreeMap::new();
    for finding in before {
        let count = preexisting.entry(finding.identity()).or_default();
        *count = count.saturating_add(1);
    }
    findings.retain(|finding| match preexisting.get_mut(&finding.identity()) {
        Some(count) if *count > 0 => {
            *count = count.saturating_sub(1);
            false
        }
        _ => true,
    });
}

/// The findings of a rule in one version of an object.
fn check_state<T>(rule: &Rule<T>, object: &T, context: &Context<'_>) -> Vec<Finding> {
    let mut out = Findings::new(rule.id);
    match rule.check {
        Check::Object(check) => check(object, &mut out),
        Check::Context(check) | Check::Create(check) => check(object, context, &mut out),
        Check::Transition(_) | Check::Change(_) | Check::Delete(_) => {}
    }
    out.into_items()
}

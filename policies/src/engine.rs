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

/// The most findings that one review reports. The rest is counted, as far as rules looked.
pub const FINDINGS_MAX: usize = 100;

/// What is to be judged.
pub enum ReviewSubject<'a, T> {
    /// An object that would be made.
    Create(&'a T),
    /// An object that would be changed.
    Update(Change<'a, T>),
    /// An object that would be deleted.
    Delete(&'a T),
}

/// The findings, sorted by what happens to them. A refused object is a value, not an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// For these the object is refused.
    pub denials: Vec<Finding>,
    /// These the client is warned of.
    pub warnings: Vec<Finding>,
    /// These are noted in the audit log.
    pub audits: Vec<Finding>,
    /// These an exception of the administrator covers: they are noted in the audit log, with its reason.
    pub exempted: Vec<Exempted>,
    /// How many more there were past [`FINDINGS_MAX`], whatever their action.
    pub omitted: usize,
}

/// A finding that the object is not refused for, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exempted {
    /// What was found.
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

    /// Takes what a rule found, with its action, unless an exception covers the object.
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
        let is_told = matches!(action, Action::Enforce | Action::Warn);
        match settings
            .exceptions
            .find_covering(rule, object)
            .filter(|_| is_told)
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
            let taken = self.reported();
            // A refusal without its reason would be worse than one finding too many.
            let first_denial = action == Action::Enforce && self.denials.is_empty();
            if taken >= FINDINGS_MAX && !first_denial {
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

/// Judges an object by every rule of its kind. Costs O(n log n) by the size of the object.
///
/// An update is not refused for what the stored object already has: a finding counts only if the
/// old object does not give the same one (same rule, place, value and text; list items are matched
/// by their key). So a rule that came later never stands in the way of an unrelated change, such as
/// the removal of a finalizer, and no update makes an object worse. [`Guarded::RATCHETS`] and
/// [`Check::Versions`] are the exceptions. An update that touches nothing that rules of the kind look at
/// ([`Guarded::is_untouched`]) is not judged at all.
#[must_use]
pub fn review<T: ValidatedKind>(subject: &ReviewSubject<'_, T>, context: &Context<'_>) -> Verdict {
    let object = match subject {
        ReviewSubject::Create(object) | ReviewSubject::Delete(object) => object,
        ReviewSubject::Update(change) => change.new,
    };
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

/// Drops the findings that were there before. Each one before excuses one now, so that a third copy
/// of what stood there twice is still found. Costs O(n log n).
pub(crate) fn drop_preexisting(findings: &mut Vec<Finding>, before: &[Finding]) {
    let mut excused: BTreeMap<Identity, usize> = BTreeMap::new();
    for finding in before {
        let count = excused.entry(finding.identity()).or_default();
        *count = count.saturating_add(1);
    }
    findings.retain(|finding| match excused.get_mut(&finding.identity()) {
        Some(count) if *count > 0 => {
            *count = count.saturating_sub(1);
            false
        }
        _ => true,
    });
}

/// The findings of a rule in one state of an object.
fn check_state<T>(rule: &Rule<T>, object: &T, context: &Context<'_>) -> Vec<Finding> {
    let mut out = Findings::new(rule.id);
    match rule.check {
        Check::Object(check) => check(object, &mut out),
        Check::Context(check) | Check::Create(check) => check(object, context, &mut out),
        Check::Transition(_) | Check::Change(_) | Check::Delete(_) => {}
    }
    out.into_items()
}

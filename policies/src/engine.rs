//! Runs the rules of an object.

use crate::exceptions::Exception;
use crate::finding::{Finding, Findings, Identity};
use crate::guarded::Guarded;
use crate::rule::{Change, Check, Context, Rule, Versions};
use crate::settings::Settings;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::config::Action;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most findings that one review reports. The rest is counted, as far as rules looked.
pub const FINDINGS_MAX: usize = 100;

/// What is to be judged.
pub enum Subject<'a, T> {
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
    pub excused: Vec<Excused>,
    /// How many more there were past [`FINDINGS_MAX`], whatever their action.
    pub omitted: usize,
}

/// A finding that the object is not refused for, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excused {
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
    pub(crate) fn settle(
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
            .covering(rule, object)
            .filter(|_| is_told)
        {
            Some(exception) => self.excuse(exception, findings),
            None => self.take(action, findings),
        }
    }

    fn excuse(&mut self, exception: &Arc<Exception>, findings: Vec<Finding>) {
        for finding in findings {
            if self.taken() >= FINDINGS_MAX {
                self.omitted += 1;
                continue;
            }
            self.excused.push(Excused {
                finding,
                exception: Arc::clone(exception),
            });
        }
    }

    fn taken(&self) -> usize {
        self.denials.len() + self.warnings.len() + self.audits.len() + self.excused.len()
    }

    fn take(&mut self, action: Action, findings: Vec<Finding>) {
        for finding in findings {
            let taken = self.taken();
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
pub fn review<T: Guarded>(subject: &Subject<'_, T>, context: &Context<'_>) -> Verdict {
    let object = match subject {
        Subject::Create(object) | Subject::Delete(object) => object,
        Subject::Update(change) => change.new,
    };
    if let Subject::Update(change) = subject
        && T::is_untouched(change.old, change.new)
    {
        return Verdict::default();
    }
    let namespace = object.meta().namespace.as_deref();
    let mut verdict = Verdict::default();
    for rule in T::rules() {
        let action = context.settings.action(rule.id, rule.action, namespace);
        if action != Action::Off {
            let findings = run(rule, subject, context);
            verdict.settle(rule.id, action, findings, context.settings, object.meta());
        }
    }
    verdict
}

/// The findings of one rule.
fn run<T: Guarded>(
    rule: &Rule<T>,
    subject: &Subject<'_, T>,
    context: &Context<'_>,
) -> Vec<Finding> {
    match (&rule.check, subject) {
        (Check::Object(_) | Check::Context(_) | Check::Create(_), Subject::Create(object)) => {
            state(rule, object, context)
        }
        (Check::Object(_) | Check::Context(_), Subject::Update(change)) => {
            let mut findings = state(rule, change.new, context);
            if T::RATCHETS && !findings.is_empty() {
                excuse(&mut findings, &state(rule, change.old, context));
            }
            findings
        }
        (Check::Versions(check), Subject::Create(new)) => {
            let mut out = Findings::new(rule.id);
            check(&Versions { old: None, new }, context, &mut out);
            out.into_items()
        }
        (Check::Versions(check), Subject::Update(Change { old, new })) => {
            let mut out = Findings::new(rule.id);
            let old = Some(*old);
            check(&Versions { old, new }, context, &mut out);
            out.into_items()
        }
        (Check::Change(check), Subject::Update(change)) => {
            let mut out = Findings::new(rule.id);
            check(change, context, &mut out);
            out.into_items()
        }
        (Check::Delete(check), Subject::Delete(object)) => {
            let mut out = Findings::new(rule.id);
            check(object, context, &mut out);
            out.into_items()
        }
        (Check::Create(_), Subject::Update(_) | Subject::Delete(_))
        | (Check::Change(_), Subject::Create(_) | Subject::Delete(_))
        | (Check::Delete(_), Subject::Create(_) | Subject::Update(_))
        | (Check::Object(_) | Check::Context(_) | Check::Versions(_), Subject::Delete(_)) => {
            Vec::new()
        }
    }
}

/// Drops the findings that were there before. Each one before excuses one now, so that a third copy
/// of what stood there twice is still found. Costs O(n log n).
pub(crate) fn excuse(findings: &mut Vec<Finding>, before: &[Finding]) {
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
fn state<T>(rule: &Rule<T>, object: &T, context: &Context<'_>) -> Vec<Finding> {
    let mut out = Findings::new(rule.id);
    match rule.check {
        Check::Object(check) => check(object, &mut out),
        Check::Context(check) | Check::Create(check) => check(object, context, &mut out),
        Check::Versions(_) | Check::Change(_) | Check::Delete(_) => {}
    }
    out.into_items()
}

//! Suppressions: an annotation on an object that silences findings. Only `lockkeeper check` reads it; the webhook does
//! not.

use crate::finding::{Finding, Findings};
use crate::registry;
pub use crate::suppression_rule::{ACTION, ID};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The annotation: entries such as `CQ007: reason`, separated by line breaks or semicolons.
pub const ANNOTATION: &str = "lockkeeper.dev/ignore";

/// The most suppressions of one object.
const SUPPRESSIONS_MAX: usize = 100;

/// The suppressions of one object.
#[derive(Debug)]
pub struct Suppressions {
    entries: Vec<SuppressionEntry>,
    problems: Findings,
}

#[derive(Debug)]
struct SuppressionEntry {
    rule: &'static str,
    reason: String,
    is_used: bool,
}

impl Suppressions {
    /// Reads the annotation of an object; `None` if it has none.
    #[must_use]
    pub fn parse(object: &Value) -> Option<Self> {
        let annotations = object.get("metadata")?.get("annotations")?;
        let text = annotations.get(ANNOTATION)?.as_str()?;
        let mut out = Self {
            entries: Vec::new(),
            problems: Findings::new(ID),
        };
        let all = text.split(['\n', ';']).map(str::trim);
        for entry in all.filter(|it| !it.is_empty()).take(SUPPRESSIONS_MAX) {
            out.add_entry(entry);
        }
        if out.entries.is_empty() && text.trim().is_empty() {
            out.add_problem(
                "",
                "it names no rule; write CQ007: and the reason, or remove it",
            );
        }
        Some(out)
    }

    fn add_entry(&mut self, entry: &str) {
        let (id, reason) = entry.split_once(':').unwrap_or((entry, ""));
        let (id, reason) = (id.trim(), reason.trim());
        let Some(rule) = registry::find(&id.to_ascii_uppercase()) else {
            let detail =
                "there is no such rule; each line is the id of a rule, a colon and the reason";
            return self.add_problem(entry, detail);
        };
        // A suppression without a reason has no effect, so that each one is justified.
        if reason.is_empty() {
            return self.add_problem(
                entry,
                "it has no reason, so it suppresses nothing; add one after a colon",
            );
        }
        self.entries.push(SuppressionEntry {
            rule: rule.id,
            reason: reason.to_owned(),
            is_used: false,
        });
    }

    fn add_problem(&mut self, entry: &str, detail: &'static str) {
        self.problems.invalid(field(), entry, detail);
    }

    /// The reason of the suppression of a rule; `None` if the rule is not suppressed.
    pub fn reason(&mut self, rule: &str) -> Option<&str> {
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|it| it.rule == rule)?;
        // The first of equal entries is used; a second one is reported as unused.
        entry.is_used = true;
        Some(&entry.reason)
    }

    /// Findings for suppressions without effect. If not all rules ran (`is_complete` is false), unused suppressions
    /// are not reported: a rule that did not run may need them.
    #[must_use]
    pub fn into_unused_findings(mut self, is_complete: bool) -> Vec<Finding> {
        let entries = std::mem::take(&mut self.entries);
        for entry in entries.iter().filter(|it| is_complete && !it.is_used) {
            self.add_problem(entry.rule, "it suppresses no finding; remove it");
        }
        self.problems.into_items()
    }
}

fn field() -> FieldPath {
    FieldPath::new("metadata.annotations").key(ANNOTATION)
}

//! A diagnosis as text, for snapshots.

use lockkeeper_doctor::Diagnosis;
use std::fmt::Write as _;

/// Writes the findings and what was not checked, one on each line.
pub fn write_text(out: &mut String, title: &str, diagnosis: &Diagnosis) {
    writeln!(out, "## {title}").unwrap();
    for it in &diagnosis.findings {
        writeln!(
            out,
            "{} {}: {}: {}",
            it.check.id, it.object, it.field, it.evidence
        )
        .unwrap();
    }
    for reason in &diagnosis.not_checked {
        writeln!(out, "not checked: {reason}").unwrap();
    }
}

//! The findings as text.

use lockkeeper_doctor::{Diagnosis, Finding, Severity};
use std::fmt::Write as _;

/// The findings by check, what was not checked, and the counts.
pub(super) fn text_report(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    // The findings are sorted by check.
    for findings in diagnosis.findings.chunk_by(|a, b| a.check == b.check) {
        write_check(&mut out, findings);
    }
    if !diagnosis.not_checked.is_empty() {
        out.push_str("Not checked:\n");
        for reason in &diagnosis.not_checked {
            let _ = writeln!(out, "  {reason}");
        }
        out.push('\n');
    }
    let count = |severity: Severity| {
        let findings = diagnosis.findings.iter();
        let count = findings.filter(|it| it.severity() == severity).count();
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", severity.name())
    };
    let _ = writeln!(
        out,
        "{}, {}",
        count(Severity::Error),
        count(Severity::Warning)
    );
    out
}

/// Writes the findings of one check. Writing to a string cannot fail.
fn write_check(out: &mut String, findings: &[Finding]) {
    let Some(first) = findings.first() else {
        return;
    };
    let check = first.check;
    let _ = writeln!(
        out,
        "{}[{}]: {}",
        check.severity.name(),
        check.id,
        check.title
    );
    for finding in findings {
        let _ = writeln!(out, "  {} {}", finding.object, finding.field);
        let _ = writeln!(out, "    {}", finding.evidence);
    }
    let _ = writeln!(out, "  risk:   {}", check.risk);
    let _ = writeln!(out, "  fix:    {}", check.fix);
    let _ = writeln!(out, "  source: {}\n", check.source);
}

//! The Content-Security-Policy of a report.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The style sheet of reports and of plots.
pub(crate) const STYLE: &str = include_str!("style.css");

/// The script of reports.
pub(crate) const SCRIPT: &str = include_str!("script.js");

/// Returns the policy: only the report's script and style sheet, no connection, no form, and no text as HTML.
pub(crate) fn policy() -> String {
    let (script, style) = (hash(SCRIPT), hash(STYLE));
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// Returns the policy of a page without a script.
pub(crate) fn policy_without_script() -> String {
    let style = hash(STYLE);
    format!(
        "default-src 'none'; style-src '{style}'; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, STYLE, policy};

    #[test]
    fn policy_permits_no_inline_code() {
        let policy = policy();
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(policy.matches("sha256-").count(), 2);
    }

    /// They are embedded without escapes, in HTML and in XML.
    #[test]
    fn script_and_style_end_no_element() {
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains(['<', '&']));
        for text in [SCRIPT, STYLE] {
            assert!(!text.contains("http"), "nothing is loaded");
        }
    }
}

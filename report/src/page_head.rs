//! The head of a page.

use crate::content_security::STYLE;
use maud::{Markup, PreEscaped, html};

/// What the head of a page says.
pub(crate) struct PageHead<'a> {
    /// The title of the document.
    pub(crate) title: &'a str,
    /// The Content-Security-Policy, which permits the style sheet of reports.
    pub(crate) policy: &'a str,
    /// The command that writes the page.
    pub(crate) generator: &'static str,
}

impl PageHead<'_> {
    pub(crate) fn markup(&self) -> Markup {
        html! {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(self.policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(self.generator);
                link rel="icon" href="data:,";
                title { (self.title) }
                style { (PreEscaped(STYLE)) }
            }
        }
    }
}

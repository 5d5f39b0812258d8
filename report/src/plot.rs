//! Plots: an SVG element, its caption, and its values as a table.

use crate::content_security::STYLE;
use crate::markup_text::permitted_text;
use maud::{Markup, PreEscaped, html};

/// A plot that is wider, in pixels, has the width of the page.
const WIDE_MIN: i64 = 600;

/// The SVG file of a plot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlotFile {
    /// The file name, such as `1-wait-times-by-queue.svg`. It has no part of the input.
    pub name: String,
    /// The text of the file.
    pub svg: String,
}

/// The time axis of a plot, for the script: it shows the row of the table at the pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeAxis {
    /// The left end, in pixels.
    pub(crate) left: i64,
    /// In pixels.
    pub(crate) length: i64,
    /// The time at the right end, in seconds.
    pub(crate) until_s: i64,
    /// The distance between the rows of the table, in seconds.
    pub(crate) interval_s: i64,
}

/// A plot.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The kind, as a part of file names.
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    /// In pixels.
    pub(crate) width: i64,
    /// In pixels.
    pub(crate) height: i64,
    /// The content of the SVG element.
    pub(crate) content: Markup,
    pub(crate) time_axis: Option<TimeAxis>,
    /// A remark under the plot.
    pub(crate) note: Option<String>,
    /// The values as a table.
    pub(crate) table: Markup,
}

impl Plot {
    /// Returns the figure for the page.
    pub(crate) fn figure(&self) -> Markup {
        let axis = self.time_axis.map(|it| {
            let TimeAxis {
                left,
                length,
                until_s,
                interval_s,
            } = it;
            format!("{left} {length} {until_s} {interval_s}")
        });
        html! {
            figure.wide[self.width > WIDE_MIN] data-axis=[axis] {
                figcaption { (self.title) }
                div.scroll tabindex="0" role="group" aria-label=(self.title) { (self.svg()) }
                @if let Some(note) = &self.note { p.note { (note) } }
                details { summary { "Values as a table" } div.scroll tabindex="0" role="group" aria-label={ "Values: " (self.title) } { (self.table) } }
            }
        }
    }

    fn svg(&self) -> Markup {
        let view = format!("0 0 {} {}", self.width, self.height);
        let class = if self.width > WIDE_MIN {
            "plot wide"
        } else {
            "plot"
        };
        html! {
            svg class=(class) viewBox=(view) role="img" aria-label=(self.title) { (self.content) }
        }
    }

    /// Returns the SVG file. The number makes the names of a report's plots unique.
    pub(crate) fn file(&self, number: usize) -> PlotFile {
        let view = format!("0 -28 {} {}", self.width, self.height.saturating_add(28));
        let svg = html! {
            svg.plot xmlns="http://www.w3.org/2000/svg" width=(self.width) height=(self.height.saturating_add(28)) viewBox=(view) {
                title { (self.title) }
                // The style sheet has no "<", so it is text in HTML and in XML.
                style { (PreEscaped(STYLE)) }
                rect.background x="0" y="-28" width=(self.width) height=(self.height.saturating_add(28)) {}
                text.heading x="8" y="-10" { (self.title) }
                (self.content)
            }
        };
        PlotFile {
            name: format!("{number:03}-{}.svg", self.kind),
            svg: permitted_text(svg.into_string()),
        }
    }
}

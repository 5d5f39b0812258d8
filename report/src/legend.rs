//! Legends of plots.

use crate::amount_text::short_name;
use maud::{Markup, html};

/// The height of a row, in pixels.
const ROW_HEIGHT: i64 = 18;

/// The width of an entry, in pixels.
const ENTRY_WIDTH: i64 = 150;

/// The most characters of an entry.
const NAME_CHARACTERS_MAX: usize = 20;

/// An entry of a legend.
#[derive(Clone, Debug)]
pub(crate) struct LegendEntry {
    pub(crate) name: String,
    /// The class of the style sheet.
    pub(crate) class: String,
    pub(crate) is_line: bool,
}

/// Draws a legend from the upper left corner; returns it and its height in pixels.
pub(crate) fn draw_legend(entries: &[LegendEntry], left: i64, width: i64) -> (Markup, i64) {
    let columns = width.checked_div(ENTRY_WIDTH).unwrap_or(1).max(1);
    let position = |at: usize| {
        let at = i64::try_from(at).unwrap_or_default();
        let column = at.checked_rem(columns).unwrap_or_default();
        let row = at.checked_div(columns).unwrap_or_default();
        let x = left.saturating_add(column.saturating_mul(ENTRY_WIDTH));
        (x, row.saturating_mul(ROW_HEIGHT))
    };
    let markup = html! {
        @for (at, entry) in entries.iter().enumerate() {
            @let (x, y) = position(at);
            g {
                @if entry.name.chars().count() > NAME_CHARACTERS_MAX { title { (entry.name) } }
                @if entry.is_line {
                    path class=(entry.class) d={ "M" (x) " " (y.saturating_add(9)) "h14" } {}
                } @else {
                    rect class=(entry.class) x=(x) y=(y.saturating_add(3)) width="12" height="12" rx="2" {}
                }
                text x=(x.saturating_add(18)) y=(y.saturating_add(13)) { (short_name(&entry.name, NAME_CHARACTERS_MAX)) }
            }
        }
    };
    let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    let rows = count.saturating_add(columns.saturating_sub(1));
    let rows = rows.checked_div(columns).unwrap_or_default();
    (markup, rows.saturating_mul(ROW_HEIGHT))
}

//! Legends of plots.

use crate::amount_text::short_name;
use maud::{Markup, html};

/// The height of a row, in pixels.
const ROW_HEIGHT: i64 = 18;

/// The width of an entry without its name, in pixels.
const SYMBOL_WIDTH: i64 = 34;

/// The width of a character, in pixels: that of a wide font.
const CHARACTER_WIDTH: i64 = 7;

/// The most characters of an entry.
const NAME_CHARACTERS_MAX: usize = 24;

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
    let right = left.saturating_add(width);
    let (mut x, mut y) = (left, 0_i64);
    let positions = entries.iter().map(|entry| {
        let characters = entry.name.chars().count().min(NAME_CHARACTERS_MAX);
        let characters = i64::try_from(characters).unwrap_or_default();
        let entry_width = characters.saturating_mul(CHARACTER_WIDTH);
        let entry_width = entry_width.saturating_add(SYMBOL_WIDTH);
        if x > left && x.saturating_add(entry_width) > right {
            (x, y) = (left, y.saturating_add(ROW_HEIGHT));
        }
        let position = (x, y);
        x = x.saturating_add(entry_width);
        position
    });
    let positions: Vec<(i64, i64)> = positions.collect();
    let markup = html! {
        @for (entry, (x, y)) in entries.iter().zip(&positions) {
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
    let last = positions.last().map(|(_, y)| y.saturating_add(ROW_HEIGHT));
    (markup, last.unwrap_or_default())
}

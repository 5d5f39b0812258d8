//! The quota tree: cohorts and ClusterQueues with their quota and use.

use super::areas::{row, split_bottom, split_top};
use super::canvas::Canvas;
use super::cell_row::{Column, column_areas, draw_cells};
use super::key::Key;
use super::list_state::ListState;
use super::motion::Motion;
use super::palette::{DIM, HEADING, Mark, SELECTED};
use super::pane::{Context, Handled, Pane};
use super::usage_rows::UsageRow;
use super::view::View;
use crate::amount_text::{amount_text, mean_text, percent_text};
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// The cells of a bar, and those of the nominal quota.
const BAR_WIDTH: u16 = 12;
const NOMINAL_WIDTH: u16 = 8;

/// The deepest level with an indentation of its own.
const DEPTH_MAX: usize = 8;

/// At this width there is space for the bars, and then for the kinds.
const WIDTH_WITH_BARS: u16 = 78;
const WIDTH_WITH_KINDS: u16 = 100;

/// The view.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreeView {
    pub(crate) list: ListState,
}

impl Pane for TreeView {
    fn keys(&self) -> &'static str {
        "↑↓ select  r resource  Enter over time"
    }

    fn handle(&mut self, key: Key, context: Context<'_, '_>) -> Handled {
        let rows = context.shown.usage_rows();
        let count = rows.rows.len();
        match key {
            Key::Enter => return Handled::Show(View::Usage),
            Key::Char('r') => {
                let next = rows.next_resource(self.list.selected(count));
                self.list.select(next);
            }
            _ => {
                let motion = Motion::from_key(key);
                if !motion.is_some_and(|it| self.list.step(it, count)) {
                    return Handled::No;
                }
            }
        }
        Handled::Yes
    }

    fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, context: Context<'_, '_>) {
        let until_s = context.shown.simulation.until_s();
        let rows = context.shown.usage_rows();
        let (mut area, note) = split_bottom(area, 1);
        if rows.omitted > 0 {
            let text = format!(
                "{} more cohorts and ClusterQueues are left out.",
                rows.omitted
            );
            canvas.text(note, &text, DIM);
        } else {
            area.height = area.height.saturating_add(note.height);
        }
        let layout = Layout::new(area.width);
        let (head, body) = split_top(area, 1);
        let heading = HEADING;
        draw_cells(canvas, head, &layout.columns, layout.heads(), heading);
        let window = self.list.window(usize::from(body.height), rows.rows.len());
        let selected = self.list.selected(rows.rows.len());
        let first = window.start;
        for (offset, at) in (0_u16..).zip(window) {
            let Some(it) = rows.rows.get(at) else { break };
            let line = row(body, offset);
            // The first visible row has its name, too.
            let is_named = it.is_first || at == first;
            layout.draw(canvas, line, it, is_named, until_s);
            if at == selected {
                canvas.restyle(line, SELECTED);
            }
        }
        if rows.rows.is_empty() {
            canvas.text(row(body, 0), "No quota and no use.", Style::new());
        }
    }
}

/// The columns for a width.
struct Layout {
    has_kinds: bool,
    has_bars: bool,
    columns: Vec<Column>,
}

impl Layout {
    fn new(width: u16) -> Self {
        let has_kinds = width >= WIDTH_WITH_KINDS;
        let has_bars = width >= WIDTH_WITH_BARS;
        let column = |width: u16, is_right: bool| Column { width, is_right };
        let mut columns = vec![column(0, false)];
        columns.extend(has_kinds.then(|| column(12, false)));
        columns.push(column(if has_bars { 14 } else { 9 }, false));
        columns.extend([column(9, true), column(8, true)]);
        columns.extend(has_bars.then(|| column(BAR_WIDTH, false)));
        columns.extend([column(8, true), column(9, true)]);
        let others = columns.iter().skip(1);
        let others = others.map(|it| it.width.saturating_add(1));
        let name = width.saturating_sub(others.fold(0, u16::saturating_add));
        if let Some(first) = columns.first_mut() {
            first.width = name;
        }
        Self {
            has_kinds,
            has_bars,
            columns,
        }
    }

    fn heads(&self) -> Vec<&'static str> {
        let mut heads = vec!["Name"];
        heads.extend(self.has_kinds.then_some("Kind"));
        heads.extend(["Resource", "Nominal", "Mean use"]);
        heads.extend(self.has_bars.then_some("Use"));
        heads.extend([if self.has_bars { "" } else { "Use" }, "Peak use"]);
        heads
    }

    /// The name of a resource, without its domain if there is no space for it.
    fn resource_text(&self, resource: &str) -> String {
        let at = if self.has_kinds { 2 } else { 1 };
        let width = self.columns.get(at).map_or(0, |it| it.width);
        match resource.rsplit_once('/') {
            Some((_, name)) if resource.chars().count() > usize::from(width) => format!("…/{name}"),
            _ => resource.to_owned(),
        }
    }

    fn draw(
        &self,
        canvas: &mut Canvas<'_>,
        line: Rect,
        it: &UsageRow,
        is_named: bool,
        until_s: i64,
    ) {
        let mark = if it.is_queue { "" } else { "▾ " };
        let indentation = "  ".repeat(it.depth.min(DEPTH_MAX));
        let name = if is_named {
            format!("{indentation}{mark}{}", it.name)
        } else {
            String::new()
        };
        let kind = match (is_named, it.is_queue) {
            (false, _) => "",
            (true, true) => "ClusterQueue",
            (true, false) => "Cohort",
        };
        let nominal = mean_text(&it.resource, it.nominal, until_s);
        let used = mean_text(&it.resource, it.used, until_s);
        let share = percent_text(it.used, it.nominal);
        let peak = amount_text(&it.resource, it.peak);
        let mut texts = vec![name.as_str()];
        texts.extend(self.has_kinds.then_some(kind));
        let resource = self.resource_text(&it.resource);
        texts.extend([resource.as_str(), &nominal, &used]);
        texts.extend(self.has_bars.then_some(""));
        texts.extend([share.as_str(), &peak]);
        draw_cells(canvas, line, &self.columns, texts, Style::new());
        if self.has_bars {
            let bar = self.columns.len().saturating_sub(3);
            if let Some(place) = column_areas(line, &self.columns).nth(bar) {
                draw_bar(canvas, place, it.used, it.nominal);
            }
        }
    }
}

/// A bar in which the nominal quota is at a mark. Beyond the width of the bar, it ends there.
fn draw_bar(canvas: &mut Canvas<'_>, area: Rect, used: i128, nominal: i128) {
    let length = used.saturating_mul(i128::from(NOMINAL_WIDTH));
    // Half a cell more rounds to the nearest one.
    let length = length.saturating_add(nominal.div_euclid(2).max(0));
    let length = length.checked_div(nominal).unwrap_or_default();
    let length = u16::try_from(length.max(0)).unwrap_or(u16::MAX);
    let mark = canvas.palette.quota(used > nominal);
    for offset in 0..length.min(area.width) {
        canvas.glyph((area.x.saturating_add(offset), area.y), mark);
    }
    let nominal_mark = Mark {
        glyph: '│',
        style: Style::new(),
    };
    canvas.glyph((area.x.saturating_add(NOMINAL_WIDTH), area.y), nominal_mark);
}

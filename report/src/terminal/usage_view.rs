//! The use of the selected cohort or ClusterQueue over time.

use super::areas::{split_left, split_top};
use super::canvas::Canvas;
use super::chart_view::ChartView;
use super::key::Key;
use super::list_state::ListState;
use super::motion::Motion;
use super::palette::DIM;
use super::pane::{Context, Handled, Pane};
use crate::stacked_chart::StackedChart;
use crate::usage_charts::{cohort_chart, queue_chart};
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// The view.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageView {
    pub(crate) list: ListState,
    chart: ChartView,
}

impl Pane for UsageView {
    fn keys(&self) -> &'static str {
        "↑↓ queue  r resource  ←→ values"
    }

    fn handle(&mut self, key: Key, context: Context<'_, '_>) -> Handled {
        let rows = context.shown.usage_rows();
        let count = rows.rows.len();
        if key == Key::Char('r') {
            let next = rows.next_resource(self.list.selected(count));
            self.list.select(next);
            return Handled::Yes;
        }
        let Some(motion) = Motion::from_key(key) else {
            return Handled::No;
        };
        if !self.chart.step(motion) {
            self.list.step(motion, count);
        }
        Handled::Yes
    }

    fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, context: Context<'_, '_>) {
        let data = context.shown;
        let rows = &data.usage_rows().rows;
        let (head, area) = split_top(area, 1);
        let at = self.list.selected(rows.len());
        self.list.select(at);
        let Some(selected) = rows.get(at) else {
            canvas.text(head, "No quota and no use.", Style::new());
            return;
        };
        let number = format!("{} of {}  ", at.saturating_add(1), rows.len());
        let written = canvas.text(head, &number, DIM);
        let (_, rest) = split_left(head, written);
        let path = path(context, selected.node);
        canvas.text(rest, &path, DIM);
        let chart = || -> Option<StackedChart<'_>> {
            let usage = data.usage();
            let resource = &selected.resource;
            match usage.tree.nodes.get(selected.node)?.queue {
                Some(queue) => queue_chart(&data.simulation, usage, queue, resource),
                None => cohort_chart(&data.simulation, usage, selected.node, resource),
            }
        };
        self.chart.draw(canvas, area, (context.at, at), chart);
    }
}

/// The cohorts above a node and its name.
fn path(context: Context<'_, '_>, at: usize) -> String {
    let nodes = &context.shown.usage().tree.nodes;
    let mut names = Vec::new();
    let mut depth = usize::MAX;
    let before = nodes.iter().take(at.saturating_add(1)).rev();
    for node in before {
        if node.depth < depth {
            names.push(node.name);
            depth = node.depth;
        }
        if depth == 0 {
            break;
        }
    }
    names.reverse();
    names.join(" › ")
}

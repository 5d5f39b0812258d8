//! The numbers of workloads by state over time, of a simulation or of each ClusterQueue.

use super::areas::split_top;
use super::canvas::Canvas;
use super::chart_view::ChartView;
use super::key::Key;
use super::list_state::ListState;
use super::motion::Motion;
use super::palette::DIM;
use super::pane::{Context, Handled, Pane};
use crate::stacked_chart::ChartSize;
use crate::state_plot::state_chart;
use ratatui_core::layout::Rect;

/// The view.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatesView {
    /// The first row is the whole simulation, the others are its ClusterQueues.
    list: ListState,
    chart: ChartView,
}

impl Pane for StatesView {
    fn keys(&self) -> &'static str {
        "↑↓ all or a queue  ←→ values"
    }

    fn handle(&mut self, key: Key, context: Context<'_, '_>) -> Handled {
        let Some(motion) = Motion::from_key(key) else {
            return Handled::No;
        };
        if !self.chart.step(motion) {
            self.list.step(motion, charts_count(context));
        }
        Handled::Yes
    }

    fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, context: Context<'_, '_>) {
        let count = charts_count(context);
        let at = self.list.selected(count);
        self.list.select(at);
        let (head, area) = split_top(area, 1);
        let number = format!("{} of {count}", at.saturating_add(1));
        canvas.text(head, &number, DIM);
        let data = context.shown;
        let queues = &data.simulation.trace.cluster_queues;
        let queue = at.checked_sub(1).and_then(|it| queues.get(it));
        let queue = queue.map(|it| it.name.as_str());
        self.chart.draw(canvas, area, (context.at, at), || {
            let histories = data.histories();
            Some(state_chart(
                &data.simulation,
                histories,
                queue,
                ChartSize::Wide,
            ))
        });
    }
}

fn charts_count(context: Context<'_, '_>) -> usize {
    let queues = context.shown.simulation.trace.cluster_queues.len();
    queues.saturating_add(1)
}

//! What all views have in common.

use super::canvas::Canvas;
use super::key::Key;
use super::simulation_data::SimulationData;
use super::view::View;
use ratatui_core::layout::Rect;

/// The simulations, and which one is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a, 'b> {
    pub(crate) simulations: &'b [SimulationData<'a>],
    /// The index of the one that is shown.
    pub(crate) at: usize,
    pub(crate) shown: &'b SimulationData<'a>,
    pub(crate) wait_bounds_s: &'b [i64],
}

/// What a view does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handled {
    /// The key has no meaning in the view.
    No,
    /// The view has changed, or stays as it is.
    Yes,
    /// Another view follows.
    Show(View),
    /// The Gantt chart follows with a workload, by index.
    ShowWorkload(usize),
}

/// The keys and the content of a view.
pub(crate) trait Pane {
    /// The keys, for the last row of the terminal.
    fn keys(&self) -> &'static str;

    /// Whether characters are text.
    fn is_typing(&self) -> bool {
        false
    }

    /// Handles a key.
    fn handle(&mut self, key: Key, context: Context<'_, '_>) -> Handled;

    /// Draws the visible part. Computes what was not shown before.
    fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, context: Context<'_, '_>);
}

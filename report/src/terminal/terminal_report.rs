//! The report as a state machine.

use super::areas::{split_bottom, split_left, split_top};
use super::canvas::Canvas;
use super::comparison_view::ComparisonView;
use super::gantt_view::GanttView;
use super::help::draw_help;
use super::key::{Key, Next};
use super::palette::{HEADING, Palette, SELECTED};
use super::pane::{Context, Handled, Pane};
use super::simulation_data::SimulationData;
use super::states_view::StatesView;
use super::table_view::TableView;
use super::tree_view::TreeView;
use super::usage_view::UsageView;
use super::view::View;
use super::wait_view::WaitView;
use crate::simulation::Simulation;
use crate::wait_rows::common_wait_bounds_s;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use ratatui_core::terminal::Frame;

/// The smallest terminal.
const WIDTH_MIN: u16 = 60;
const HEIGHT_MIN: u16 = 15;

/// The keys of all views.
const COMMON_KEYS: &str = "  Tab view  ? help  q quit";

/// The views of simulations in a terminal.
#[derive(Debug)]
pub struct TerminalReport<'a> {
    simulations: Vec<SimulationData<'a>>,
    /// The index of the one that is shown.
    at: usize,
    wait_bounds_s: Vec<i64>,
    view: View,
    is_help_shown: bool,
    palette: Palette,
    panes: Panes,
}

/// The states of the views.
#[derive(Debug, Default)]
struct Panes {
    comparison: ComparisonView,
    quota: TreeView,
    usage: UsageView,
    states: StatesView,
    gantt: GanttView,
    waits: WaitView,
    table: TableView,
}

impl Panes {
    fn shown(&mut self, view: View) -> &mut dyn Pane {
        match view {
            View::Comparison => &mut self.comparison,
            View::Quota => &mut self.quota,
            View::Usage => &mut self.usage,
            View::States => &mut self.states,
            View::Gantt => &mut self.gantt,
            View::Waits => &mut self.waits,
            View::Table => &mut self.table,
        }
    }
}

impl<'a> TerminalReport<'a> {
    /// Returns the report with its first view. Costs nothing for a simulation until a view shows it.
    #[must_use]
    pub fn new(simulations: &[Simulation<'a>]) -> Self {
        Self {
            simulations: simulations
                .iter()
                .copied()
                .map(SimulationData::new)
                .collect(),
            at: 0,
            wait_bounds_s: common_wait_bounds_s(simulations),
            view: View::default(),
            is_help_shown: false,
            palette: Palette { has_colors: true },
            panes: Panes::default(),
        }
    }

    /// Returns the same report with or without colours.
    #[must_use]
    pub fn with_colors(mut self, has_colors: bool) -> Self {
        self.palette = Palette { has_colors };
        self
    }

    /// Handles a key.
    pub fn handle(&mut self, key: Key) -> Next {
        let view = self.view;
        let (panes, context) = self.parts();
        let pane = panes.shown(view);
        if let Some(context) = context.filter(|_| pane.is_typing()) {
            pane.handle(key, context);
            return Next::Continue;
        }
        if self.is_help_shown {
            self.is_help_shown = false;
            return Next::Continue;
        }
        match key {
            Key::Char('q') | Key::Escape => return Next::Quit,
            Key::Char('?') => self.is_help_shown = true,
            Key::Tab => self.show(self.view.after(1)),
            Key::BackTab => self.show(self.view.after(View::ALL.len().saturating_sub(1))),
            Key::Char('n') => self.show_simulation(1),
            Key::Char('p') => self.show_simulation(self.simulations.len().saturating_sub(1)),
            Key::Char(digit @ '1'..='7') => {
                self.show(View::from_digit(digit).unwrap_or_default());
            }
            _ => self.handle_in_view(key),
        }
        Next::Continue
    }

    /// Draws the visible part of the view. Computes what was not shown before.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let mut canvas = Canvas {
            buffer: frame.buffer_mut(),
            palette: self.palette,
        };
        if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
            let text = format!("The terminal is smaller than {WIDTH_MIN}×{HEIGHT_MIN}.");
            canvas.text(area, &text, Style::new());
            return;
        }
        let (tabs, area) = split_top(area, 1);
        let (title, area) = split_top(area, 1);
        let (body, keys) = split_bottom(area, 1);
        self.draw_tabs(&mut canvas, tabs);
        self.draw_title(&mut canvas, title);
        let view = self.view;
        let is_help_shown = self.is_help_shown;
        let (panes, context) = self.parts();
        let pane = panes.shown(view);
        match context {
            _ if is_help_shown => draw_help(&mut canvas, body),
            Some(context) => pane.draw(&mut canvas, body, context),
            None => {
                canvas.text(body, "There are no simulations.", Style::new());
            }
        }
        draw_keys(&mut canvas, keys, pane, is_help_shown);
    }

    /// The states of the views, and what they show; `None` without simulations.
    fn parts(&mut self) -> (&mut Panes, Option<Context<'a, '_>>) {
        let context = self.simulations.get(self.at).map(|shown| Context {
            simulations: &self.simulations,
            at: self.at,
            shown,
            wait_bounds_s: &self.wait_bounds_s,
        });
        (&mut self.panes, context)
    }

    fn handle_in_view(&mut self, key: Key) {
        let view = self.view;
        let (panes, context) = self.parts();
        let Some(context) = context else { return };
        match panes.shown(view).handle(key, context) {
            Handled::Yes | Handled::No => {}
            Handled::Show(view) => self.show(view),
            Handled::ShowWorkload(job) => {
                if context.shown.simulation.is_detailed() {
                    panes.gantt.select(context.shown.gantt_rows(), job);
                }
                self.show(View::Gantt);
            }
        }
    }

    /// Shows a view. The quota tree and the use over time have the same selection.
    fn show(&mut self, view: View) {
        match self.view {
            View::Quota => self.panes.usage.list = self.panes.quota.list,
            View::Usage => self.panes.quota.list = self.panes.usage.list,
            _ => {}
        }
        self.view = view;
    }

    /// Shows the simulation so many further, and after the last one the first.
    fn show_simulation(&mut self, by: usize) {
        let at = self.at.saturating_add(by);
        self.at = at.checked_rem(self.simulations.len()).unwrap_or_default();
    }

    fn draw_tabs(&self, canvas: &mut Canvas<'_>, row: Rect) {
        let mut rest = row;
        for (at, view) in View::ALL.into_iter().enumerate() {
            let text = format!("{} {}", at.saturating_add(1), view.name());
            let style = if view == self.view {
                SELECTED
            } else {
                Style::new()
            };
            let written = canvas.text(rest, &text, style);
            (_, rest) = split_left(rest, written.saturating_add(1));
        }
    }

    fn draw_title(&self, canvas: &mut Canvas<'_>, row: Rect) {
        let mut title = if self.is_help_shown {
            "Keys".to_owned()
        } else {
            self.view.title().to_owned()
        };
        if let Some(data) = self.simulations.get(self.at) {
            let count = self.simulations.len();
            let number = if count > 1 {
                format!(" {} of {count}", self.at.saturating_add(1))
            } else {
                String::new()
            };
            title = format!("{title} │{number} {}", data.simulation.title());
        }
        canvas.text(row, &title, HEADING);
    }
}

/// The keys of a view, and those of all views as far as there is space.
fn draw_keys(canvas: &mut Canvas<'_>, row: Rect, pane: &dyn Pane, is_help_shown: bool) {
    let style = SELECTED;
    canvas.restyle(row, style);
    if is_help_shown {
        canvas.text(row, "any key: back", style);
        return;
    }
    let written = canvas.text(row, pane.keys(), style);
    let (_, rest) = split_left(row, written);
    if pane.is_typing() {
        return;
    }
    let is_fitting = usize::from(rest.width) >= COMMON_KEYS.len();
    let keys = if is_fitting { COMMON_KEYS } else { "  ? q" };
    canvas.text(rest, keys, style);
}

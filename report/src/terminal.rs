//! The views of a report in a terminal, as a state machine: keys change what [`TerminalReport::draw`] draws.
//!
//! It reads no keys and writes to no terminal; the program that uses it does.

mod areas;
mod canvas;
mod cell_row;
mod chart_columns;
mod chart_view;
mod comparison_view;
mod filter_text;
mod gantt_bars;
mod gantt_detail;
mod gantt_rows;
mod gantt_view;
mod help;
mod key;
mod list_state;
mod motion;
mod palette;
mod pane;
mod simulation_data;
mod states_view;
mod table_view;
mod terminal_report;
mod time_scale;
mod tree_view;
mod usage_rows;
mod usage_view;
mod view;
mod visible_text;
mod wait_view;
mod workload_order;

pub use key::{Key, Next};
pub use terminal_report::TerminalReport;

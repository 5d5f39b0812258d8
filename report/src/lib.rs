//! Reports of simulations: one HTML file with plots, without scripts, fonts or images from elsewhere.
//!
//! [`render`] writes the report of one or several [`Simulation`]s, [`plot_files`] each plot as an SVG file of its own, and
//! [`TerminalReport`] draws the same views into the cells of a terminal. [`render_decision`] writes a page about one decision. The same input gives the same bytes: coordinates are
//! integers, and nothing depends on a clock.
//!
//! All names in a report are untrusted. Templates escape text and attributes; the data for the script is JSON without
//! the character `<`; a Content-Security-Policy permits only the report's own script and style sheet.
#![deny(clippy::arithmetic_side_effects)]

mod amount_text;
mod cohort_tree;
mod comparison;
mod comparison_rows;
mod content_security;
mod decision_page;
mod gantt;
mod gantt_layout;
mod legend;
mod markup_text;
mod node_rows;
mod page;
mod page_head;
mod plot;
mod plot_set;
mod quota_steps;
mod quota_tree;
mod quota_usage;
mod report;
mod script_data;
mod sections;
mod simulation;
mod simulation_plots;
mod stacked_chart;
mod state_plot;
mod step_series;
mod svg_path;
mod terminal;
mod time_text;
mod usage_charts;
mod usage_plots;
mod value_axis;
mod wait_groups;
mod wait_plot;
mod wait_rows;
mod workload_rows;
mod workload_states;
mod workload_table;

pub use decision_page::{DecisionReport, DecisionTable, NodeQuota, render_decision};
pub use plot::PlotFile;
pub use report::{plot_files, render};
pub use simulation::{SIMULATIONS_MAX, Simulation, WORKLOADS_MAX};
pub use terminal::{Key, Next, TerminalReport};

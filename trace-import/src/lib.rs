//! Reads other formats as traces of jobs for `lockkeeper simulate`.
//!
//! [`parse_swf`] reads the Standard Workload Format, [`parse_csv`] tables with a [`Mapping`] of their columns, [`parse_rows`] the
//! rows of other such tables,
//! [`generator_trace`] the files of Kueue's performance generator, and [`dump_trace`] the objects of a cluster. [`LogRecorder`] takes the timeline from the decision log of a controller. A value that
//! the input does not have is never guessed silently: each assumption is counted in
//! [`JobTrace::assumptions`](lockkeeper_simulate::timeline::JobTrace::assumptions).
//!
//! Pure: text and objects in, traces out.
#![deny(clippy::arithmetic_side_effects)]

mod amounts;
mod assumption_counts;
mod cluster_dump;
mod csv_table;
mod dump_queues;
mod import_error;
mod kueue_generator;
mod label;
mod log_recording;
mod mapping;
mod shortened;
mod swf;
mod table_rows;
mod time_value;
mod trace_builder;

pub use cluster_dump::{DumpSettings, dump_trace};
pub use csv_table::parse_csv;
pub use import_error::{ImportError, ImportProblem};
pub use kueue_generator::{GeneratorFile, generator_trace};
pub use label::Label;
pub use log_recording::{LogRecorder, LogRecording};
pub use mapping::{
    CsvColumns, CsvMapping, Defaults, Mapping, QueueRule, RequestsOf, SwfMapping, TimeFormat,
};
pub use swf::parse_swf;
pub use table_rows::parse_rows;
pub use trace_builder::ImportedTrace;

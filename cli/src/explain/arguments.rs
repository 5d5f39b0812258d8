//! Flags of `lockkeeper explain`.

use crate::live_names;
use crate::report_format::{to_pretty_json, to_yaml};
use crate::world_source::SourceArguments;
use anyhow::Error;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// Flags of `lockkeeper explain`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Workload NAME, or KIND/NAME of its job, such as job/train
    #[arg(value_name = "WORKLOAD", add = live_names::workloads(), required_unless_present_any = ["scenario", "filename"])]
    pub(super) subject: Option<String>,

    /// Explain what would happen to the job or Workload of a manifest, if it were submitted now; `-` reads stdin
    #[arg(long, short = 'f', value_name = "FILE", conflicts_with_all = ["subject", "scenario"])]
    pub(super) filename: Option<PathBuf>,

    /// Namespace of the workload [default: that of the context; with --dump all]
    #[arg(long, short, add = live_names::namespaces())]
    pub(super) namespace: Option<String>,

    #[command(flatten)]
    pub(super) source: SourceArguments,

    #[command(flatten)]
    pub(super) scenario: ScenarioArguments,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(super) output: Output,

    /// Write a report about the decision as one HTML file; `-` is stdout
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    pub(super) report: Option<PathBuf>,

    /// Which scheduler to reproduce, known bugs included [default: the one that a scenario was recorded from, or whose
    /// objects there are, else lockkeeper]
    #[arg(long, value_name = "WHOSE")]
    pub(super) compatibility: Option<CompatibilityTarget>,
}

/// Flags for scenario files.
#[derive(Debug, Args)]
pub(super) struct ScenarioArguments {
    /// Explain the decisions for a scenario file (YAML, JSON, or one JSON object per line; `-` reads stdin)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["subject", "dump", "namespace", "config", "kubeconfig", "context", "account"])]
    pub(super) scenario: Option<PathBuf>,

    /// Id of the scenario, if the file has several
    #[arg(long, value_name = "ID", requires = "scenario")]
    pub(super) id: Option<String>,

    /// Explain only this workload of the scenario
    #[arg(long, value_name = "NAME", requires = "scenario")]
    pub(super) workload: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Output {
    Human,
    Json,
    Yaml,
}

impl Output {
    /// An answer in this format, as data or as text.
    pub(super) fn format<T: Serialize>(
        self,
        data: impl FnOnce() -> T,
        text: impl FnOnce() -> Result<String, Error>,
    ) -> Result<String, Error> {
        match self {
            Self::Human => text(),
            Self::Json => to_pretty_json(&data()),
            Self::Yaml => to_yaml(&data()),
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum CompatibilityTarget {
    Lockkeeper,
    Kueue,
    KubeScheduler,
}

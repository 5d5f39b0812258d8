//! The mapping of fields of a record onto a job: the file of `--map`.

use crate::label::Label;
use lockkeeper_scenario::AmountText;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How records of the Standard Workload Format or of a CSV file become jobs. Unknown keys are rejected, because a
/// misspelled one would have no effect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Mapping {
    /// The ClusterQueue of a record: the first rule that matches decides. A CSV file without rules has the names of
    /// ClusterQueues in its column `queue`.
    pub queues: Vec<QueueRule>,
    /// The ClusterQueue of records that no rule matches; without it such a record is an error.
    pub default_queue: Option<String>,
    /// The values of unknown fields. Each use is counted as an assumption.
    pub defaults: Defaults,
    /// Whether records are sorted by arrival; otherwise unsorted records are an error.
    pub sort: bool,
    /// For the Standard Workload Format.
    pub swf: SwfMapping,
    /// For CSV files.
    pub csv: CsvMapping,
}

/// A rule for the ClusterQueue of records. A rule without conditions matches all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct QueueRule {
    /// The queue of the record.
    pub queue: Option<Label>,
    /// The partition of the record.
    pub partition: Option<Label>,
    /// The user of the record.
    pub user: Option<Label>,
    /// The group of the record.
    pub group: Option<Label>,
    /// The ClusterQueue. Without it, the records are left out, and counted.
    pub cluster_queue: Option<String>,
    /// The priority, if the record has none.
    pub priority: Option<i32>,
}

/// The values of unknown fields.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Defaults {
    /// The run time in seconds; without it, jobs with an unknown run time are left out.
    pub run_seconds: Option<i64>,
    /// The priority; without it 0.
    pub priority: Option<i32>,
    /// The requests of the whole job, by resource; without it, jobs with unknown requests are left out.
    pub requests: BTreeMap<String, AmountText>,
}

/// The meaning of fields of the Standard Workload Format.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SwfMapping {
    /// The resources of a processor; without it one cpu.
    pub processor: BTreeMap<String, AmountText>,
    /// The resource of the requested memory; without it, memory is not considered.
    pub memory: Option<String>,
}

/// The form of a CSV file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CsvMapping {
    /// The character between fields; one byte.
    pub delimiter: char,
    /// The columns, by the names in the first row.
    pub columns: CsvColumns,
    /// The form of times.
    pub times: TimeFormat,
    /// What the requests are for.
    pub requests_of: RequestsOf,
}

impl Default for CsvMapping {
    fn default() -> Self {
        Self {
            delimiter: ',',
            columns: CsvColumns::default(),
            times: TimeFormat::default(),
            requests_of: RequestsOf::default(),
        }
    }
}

/// The columns of a CSV file. An empty field is unknown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CsvColumns {
    /// The name of the job; without it the number of its line.
    pub name: Option<String>,
    /// When the job was submitted; required.
    pub arrival: Option<String>,
    /// The run time in seconds (in milliseconds if times are).
    pub run_seconds: Option<String>,
    /// The limit of the run time in seconds, for backfill.
    pub maximum_execution_time_seconds: Option<String>,
    /// When the job started, for the run time.
    pub start: Option<String>,
    /// When the job ended, for the run time.
    pub end: Option<String>,
    /// The queue.
    pub queue: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// The group.
    pub group: Option<String>,
    /// The priority.
    pub priority: Option<String>,
    /// The number of pods; without it 1.
    pub pods: Option<String>,
    /// The column of each resource, with quantities as Kubernetes writes them.
    pub requests: BTreeMap<String, String>,
}

impl CsvColumns {
    /// The names of all columns.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        let single = [
            &self.name,
            &self.arrival,
            &self.run_seconds,
            &self.maximum_execution_time_seconds,
            &self.start,
            &self.end,
            &self.queue,
            &self.partition,
            &self.user,
            &self.group,
            &self.priority,
            &self.pods,
        ];
        single.into_iter().flatten().chain(self.requests.values())
    }
}

/// The form of times in a CSV file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeFormat {
    /// Seconds, from any start.
    #[default]
    Seconds,
    /// Milliseconds, from any start.
    Milliseconds,
    /// Dates with a time zone, such as `2026-11-29T08:00:00Z`.
    Rfc3339,
}

/// What the requests of a record are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestsOf {
    /// All pods together.
    #[default]
    Job,
    /// Each pod.
    Pod,
}

//! Errors of imports.

use crate::shortened::shortened;

/// Why a file cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ImportError {
    /// The line in the file, from 1; `None` if the whole input is concerned.
    pub line: Option<u64>,
    /// The mistake.
    pub problem: ImportProblem,
}

impl ImportError {
    pub(crate) fn at(line: u64, problem: ImportProblem) -> Self {
        Self {
            line: Some(line),
            problem,
        }
    }

    /// A field whose value is shown shortened: files may have fields of any length.
    pub(crate) fn value(line: u64, field: &str, value: &str, expected: &'static str) -> Self {
        Self::at(
            line,
            ImportProblem::Value {
                field: field.to_owned(),
                value: shortened(value),
                expected,
            },
        )
    }

    pub(crate) fn general(problem: ImportProblem) -> Self {
        Self {
            line: None,
            problem,
        }
    }
}

/// A mistake in a file that is imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportProblem {
    /// A record has too few or too many fields.
    #[error("{found} fields; a record of the Standard Workload Format has 18")]
    FieldCount {
        /// The number of fields.
        found: usize,
    },
    /// A field has no number, time or amount.
    #[error("{field}: {value:?} is {expected}")]
    Value {
        /// The field.
        field: String,
        /// Its value, shortened.
        value: String,
        /// What is wrong with it, and what is accepted.
        expected: &'static str,
    },
    /// A record ends before it starts.
    #[error("the job ends at {end:?}, before its start at {start:?}")]
    EndBeforeStart {
        /// The start.
        start: String,
        /// The end.
        end: String,
    },
    /// The records are not sorted by arrival.
    #[error(
        "the job arrives {seconds} s before that of the previous record; sort the file, or set `sort: true` in the mapping"
    )]
    Unsorted {
        /// The difference in seconds, rounded up.
        seconds: i64,
    },
    /// No rule says which ClusterQueue a record belongs to.
    #[error(
        "no rule of the mapping matches {record}; add a rule to `queues`, or set `defaultQueue`, in the file of --map"
    )]
    NoQueue {
        /// The queue, partition, user and group of the record.
        record: String,
    },
    /// Two records have the same name.
    #[error("the job name {name:?} occurs twice; use unique names")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// An amount does not fit into 64 bits.
    #[error("{field}: the amount is too large; all of a resource together must stay below 2^63")]
    TooLarge {
        /// The field or the resource.
        field: String,
    },
    /// The mapping names no column for a required field.
    #[error(
        "the mapping names no column for {field}; add `csv: {{columns: {{{field}: NAME}}}}` to the file of --map"
    )]
    NoColumn {
        /// The key of the mapping.
        field: &'static str,
    },
    /// The file lacks a column.
    #[error("no column {name:?}, which the mapping names for {field}; the file has {columns}")]
    UnknownColumn {
        /// The key of the mapping.
        field: String,
        /// The name of the column.
        name: String,
        /// The columns of the file.
        columns: String,
    },
    /// The delimiter is not one byte.
    #[error("csv.delimiter: {0:?} is no single ASCII character")]
    Delimiter(char),
    /// The CSV reader rejects the file.
    #[error("{0}")]
    Csv(String),
    /// A row of a table cannot be read.
    #[error("{0}")]
    Row(String),
    /// There are more objects than are read.
    #[error("the file has more than {max} {of}; split it, or reduce the counts")]
    TooMany {
        /// The limit.
        max: u64,
        /// The objects.
        of: &'static str,
    },
    /// Workloads of a dump have no run time.
    #[error(
        "{count} workloads have no maximumExecutionTimeSeconds, so their run time is unknown; give one with --assume-run-seconds"
    )]
    NoRunTime {
        /// The number of workloads.
        count: u64,
    },
    /// A file without jobs.
    #[error("the input has no job{0}")]
    NoJob(&'static str),
    /// A value in a generator file or a dump is out of range.
    #[error("{at}: {value} is out of range; use {accepted}")]
    Range {
        /// The field path.
        at: String,
        /// The value.
        value: String,
        /// The accepted values.
        accepted: &'static str,
    },
}

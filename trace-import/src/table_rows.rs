//! The rows of tables: the columns of a mapping, and the job of each row.

use crate::amounts::{multiplied, quantity};
use crate::import_error::{ImportError, ImportProblem};
use crate::mapping::{CsvColumns, CsvMapping, Mapping, RequestsOf, TimeFormat};
use crate::shortened::shortened;
use crate::time_value::parse_time_ms;
use crate::trace_builder::{ImportedTrace, Record, TraceBuilder};
use csv::StringRecord;

/// Reads the rows of a table that has the form of a CSV file: `header` has the names of its columns.
///
/// Costs the rows, and for each job the number of rules and the logarithm of the number of jobs.
///
/// # Errors
///
/// The first mistake, with the number of its row, from 1.
pub fn parse_rows(
    header: &StringRecord,
    rows: impl Iterator<Item = Result<StringRecord, String>>,
    mapping: &Mapping,
) -> Result<ImportedTrace, ImportError> {
    let columns = Columns::new(&mapping.csv.columns, header, None)?;
    let mut builder = TraceBuilder::new(mapping);
    for (line, row) in (1..).zip(rows) {
        let row = row.map_err(|error| ImportError::at(line, ImportProblem::Row(error)))?;
        let fields = RowFields {
            row: &row,
            format: &mapping.csv,
            line,
            unnamed: "row",
        };
        let job = fields.record(&columns, &mut builder)?;
        builder.add(job)?;
    }
    builder.finish()
}

/// The longest limit of a run time: the latest time of a simulation.
const LIMIT_MAX_S: i64 = 1 << 40;

/// The positions of the columns.
#[derive(Debug)]
pub(crate) struct Columns<'m> {
    name: Option<usize>,
    arrival: usize,
    run_seconds: Option<usize>,
    limit: Option<usize>,
    start: Option<usize>,
    end: Option<usize>,
    queue: Option<usize>,
    partition: Option<usize>,
    user: Option<usize>,
    group: Option<usize>,
    priority: Option<usize>,
    pods: Option<usize>,
    requests: Vec<(&'m str, usize)>,
}

impl<'m> Columns<'m> {
    /// Finds the columns of the mapping. `line` is that of the header.
    pub(crate) fn new(
        names: &'m CsvColumns,
        header: &StringRecord,
        line: Option<u64>,
    ) -> Result<Self, ImportError> {
        let find = |field: &str, name: &String| {
            let at = header.iter().position(|it| it == name);
            at.ok_or_else(|| {
                let columns: Vec<&str> = header.iter().collect();
                ImportError {
                    line,
                    problem: ImportProblem::UnknownColumn {
                        field: field.to_owned(),
                        name: name.clone(),
                        columns: shortened(&columns.join(", ")),
                    },
                }
            })
        };
        let optional = |field: &str, name: &Option<String>| {
            let name = name.as_ref();
            name.map(|name| find(field, name)).transpose()
        };
        let arrival = names
            .arrival
            .as_ref()
            .ok_or_else(|| ImportError::general(ImportProblem::NoColumn { field: "arrival" }))?;
        let requests = names.requests.iter().map(|(resource, name)| {
            let at = find(&format!("requests.{resource}"), name)?;
            Ok((resource.as_str(), at))
        });
        Ok(Self {
            name: optional("name", &names.name)?,
            arrival: find("arrival", arrival)?,
            run_seconds: optional("runSeconds", &names.run_seconds)?,
            limit: optional(
                "maximumExecutionTimeSeconds",
                &names.maximum_execution_time_seconds,
            )?,
            start: optional("start", &names.start)?,
            end: optional("end", &names.end)?,
            queue: optional("queue", &names.queue)?,
            partition: optional("partition", &names.partition)?,
            user: optional("user", &names.user)?,
            group: optional("group", &names.group)?,
            priority: optional("priority", &names.priority)?,
            pods: optional("pods", &names.pods)?,
            requests: requests.collect::<Result<_, ImportError>>()?,
        })
    }
}

/// The fields of a row.
pub(crate) struct RowFields<'r> {
    pub(crate) row: &'r StringRecord,
    pub(crate) format: &'r CsvMapping,
    /// The line or the number of the row, from 1.
    pub(crate) line: u64,
    /// What the name of a job without one begins with.
    pub(crate) unnamed: &'static str,
}

impl<'r> RowFields<'r> {
    /// The job of the row.
    pub(crate) fn record<'t>(
        &self,
        columns: &Columns<'t>,
        builder: &mut TraceBuilder<'_>,
    ) -> Result<Record<'t>, ImportError>
    where
        'r: 't,
    {
        let arrival = self.text(Some(columns.arrival));
        if arrival.is_empty() {
            return Err(self.mistake("arrival", "", "empty; each job needs a time of arrival"));
        }
        let pods = self.number("pods", columns.pods, 1..=2_147_483_647)?;
        if pods.is_none() && columns.pods.is_some() {
            builder.assumptions.add("number of pods unknown: 1");
        }
        let pods = pods.unwrap_or(1);
        let mut requests = Vec::with_capacity(columns.requests.len());
        for (resource, at) in &columns.requests {
            let text = self.text(Some(*at));
            if text.is_empty() {
                continue;
            }
            let amount = quantity(text, resource, self.line)?;
            let times = match self.format.requests_of {
                RequestsOf::Job => 1,
                RequestsOf::Pod => pods,
            };
            // In the unit of the core, so that equal amounts are stored once.
            requests.push((*resource, multiplied(amount, times, resource, self.line)?));
        }
        let name = self.text(columns.name);
        let priority = self.number("priority", columns.priority, -2_147_483_648..=2_147_483_647)?;
        Ok(Record {
            line: self.line,
            name: if name.is_empty() {
                format!("{}-{}", self.unnamed, self.line).into()
            } else {
                name.into()
            },
            arrival_ms: parse_time_ms(arrival, self.format.times, "arrival", self.line)?,
            run_ms: self.run_ms(columns)?,
            limit_s: self.number(
                "maximumExecutionTimeSeconds",
                columns.limit,
                1..=LIMIT_MAX_S,
            )?,
            queue: self.text(columns.queue),
            names_cluster_queue: true,
            partition: self.text(columns.partition),
            user: self.text(columns.user),
            group: self.text(columns.group),
            priority: priority.and_then(|it| i32::try_from(it).ok()),
            pods,
            requests,
        })
    }

    /// The run time: that of its column, or from the start to the end.
    fn run_ms(&self, columns: &Columns<'_>) -> Result<Option<i64>, ImportError> {
        let run = self.text(columns.run_seconds);
        if !run.is_empty() {
            let format = match self.format.times {
                TimeFormat::Milliseconds => TimeFormat::Milliseconds,
                // A duration is no date.
                TimeFormat::Seconds | TimeFormat::Rfc3339 => TimeFormat::Seconds,
            };
            return parse_time_ms(run, format, "runSeconds", self.line).map(Some);
        }
        let (start, end) = (self.text(columns.start), self.text(columns.end));
        if start.is_empty() || end.is_empty() {
            return Ok(None);
        }
        let start_ms = parse_time_ms(start, self.format.times, "start", self.line)?;
        let end_ms = parse_time_ms(end, self.format.times, "end", self.line)?;
        if end_ms < start_ms {
            return Err(ImportError::at(
                self.line,
                ImportProblem::EndBeforeStart {
                    start: shortened(start),
                    end: shortened(end),
                },
            ));
        }
        Ok(Some(end_ms.saturating_sub(start_ms)))
    }

    /// The text of a column; empty if there is none.
    fn text(&self, at: Option<usize>) -> &'r str {
        at.and_then(|at| self.row.get(at)).unwrap_or_default()
    }

    fn number(
        &self,
        field: &str,
        at: Option<usize>,
        accepted: std::ops::RangeInclusive<i64>,
    ) -> Result<Option<i64>, ImportError> {
        let text = self.text(at);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|it| accepted.contains(it));
        let number = number.ok_or_else(|| {
            let expected = if *accepted.start() == 1 {
                "no number of pods; use 1 to 2147483647"
            } else {
                "no priority; use a whole number of 32 bits"
            };
            self.mistake(field, text, expected)
        })?;
        Ok(Some(number))
    }

    fn mistake(&self, field: &str, value: &str, expected: &'static str) -> ImportError {
        ImportError::value(self.line, field, value, expected)
    }
}

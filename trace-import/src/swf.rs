//! The Standard Workload Format of the Parallel Workloads Archive: 18 numbers in each line, -1 for unknown values.

use crate::amounts::multiplied;
use crate::import_error::{ImportError, ImportProblem};
use crate::mapping::Mapping;
use crate::trace_builder::{ImportedTrace, Record, TraceBuilder};
use lockkeeper_scenario::AmountText;

/// The fields of a record.
const FIELDS: usize = 18;
const FIELD_NAMES: [&str; FIELDS] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];

/// The most processors of a job: the most pods of a pod set.
const PROCESSORS_MAX: i64 = 2_147_483_647;

/// The statuses of records that describe a part of a job; another record has the whole job.
const PARTIAL_STATUSES: [i64; 3] = [2, 3, 4];

/// Reads a file in the Standard Workload Format. Comments start with `;`. Each processor is one pod.
///
/// Costs the text, and for each job the number of rules and the logarithm of the number of jobs.
///
/// # Errors
///
/// The first mistake, with its line.
pub fn parse_swf(text: &str, mapping: &Mapping) -> Result<ImportedTrace, ImportError> {
    let processor = processor_resources(mapping)?;
    let mut builder = TraceBuilder::new(mapping);
    for (line, text) in (1_u64..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with(';') {
            continue;
        }
        let words = split_fields(text, line)?;
        let values = parse_fields(&words, line)?;
        add_record(&mut builder, mapping, &processor, &words, &values, line)?;
    }
    builder.finish()
}

/// The resources of a processor: those of the mapping, or one cpu.
fn processor_resources(mapping: &Mapping) -> Result<Vec<(&str, AmountText)>, ImportError> {
    let given = &mapping.swf.processor;
    if given.is_empty() {
        return Ok(vec![("cpu", AmountText::Number(1_000))]);
    }
    let given = given.iter().map(|(resource, amount)| {
        if amount.in_core_units(resource).is_some_and(|it| it < 0) {
            return Err(ImportError::general(ImportProblem::Range {
                at: format!("swf.processor.{resource}"),
                value: "a negative amount".to_owned(),
                accepted: "zero or more",
            }));
        }
        Ok((resource.as_str(), *amount))
    });
    given.collect()
}

fn split_fields(text: &str, line: u64) -> Result<[&str; FIELDS], ImportError> {
    let mut fields = [""; FIELDS];
    let mut found = 0_usize;
    for word in text.split_ascii_whitespace() {
        if let Some(field) = fields.get_mut(found) {
            *field = word;
        }
        found = found.saturating_add(1);
    }
    if found == FIELDS {
        Ok(fields)
    } else {
        Err(ImportError::at(line, ImportProblem::FieldCount { found }))
    }
}

/// The fields as whole numbers; only the average CPU time may have decimals, which are cut off.
fn parse_fields(words: &[&str; FIELDS], line: u64) -> Result<Values, ImportError> {
    let mut values = [0; FIELDS];
    for ((word, value), name) in words.iter().zip(&mut values).zip(FIELD_NAMES) {
        let whole = word.split_once('.').map_or(*word, |(whole, _)| whole);
        let read = if name == "average CPU time" {
            whole
        } else {
            word
        };
        *value = read.parse().map_err(|_| {
            let expected = "no whole number; use -1 for an unknown value";
            ImportError::value(line, name, word, expected)
        })?;
    }
    let [
        _,
        submit_s,
        _,
        run_s,
        allocated,
        _,
        _,
        requested,
        requested_s,
        memory_kb,
        status,
        _,
        _,
        _,
        _,
        _,
        preceding,
        _,
    ] = values;
    Ok(Values {
        submit_s,
        run_s,
        allocated,
        requested,
        requested_s,
        memory_kb,
        status,
        preceding,
    })
}

/// The fields that matter, -1 for unknown ones.
#[derive(Clone, Copy, Debug)]
struct Values {
    submit_s: i64,
    run_s: i64,
    allocated: i64,
    requested: i64,
    requested_s: i64,
    memory_kb: i64,
    status: i64,
    preceding: i64,
}

fn add_record(
    builder: &mut TraceBuilder<'_>,
    mapping: &Mapping,
    processor: &[(&str, AmountText)],
    words: &[&str; FIELDS],
    values: &Values,
    line: u64,
) -> Result<(), ImportError> {
    let [number, .., user, group, _, queue, partition, _, _] = *words;
    let assumptions = &mut builder.assumptions;
    if PARTIAL_STATUSES.contains(&values.status) {
        assumptions.add("record left out: it describes a part of a job (status 2, 3 or 4)");
        return Ok(());
    }
    let submit_s = checked_time(values.submit_s, "submit time", line)?;
    let run_s = match (values.run_s, values.requested_s) {
        (-1, -1) => None,
        (-1, requested_s) => {
            assumptions.add("run time unknown: the requested time is used");
            Some(checked_time(requested_s, "requested time", line)?)
        }
        (run_s, _) => Some(checked_time(run_s, "run time", line)?),
    };
    let processors = match (values.requested, values.allocated) {
        (1.., _) => Some(values.requested),
        (_, 1..) => {
            assumptions.add("requested processors unknown: the allocated ones are used");
            Some(values.allocated)
        }
        _ => None,
    };
    if values.preceding > 0 {
        assumptions.add(
            "preceding job and think time are not considered: the job arrives at its submit time",
        );
    }
    let mut requests = Vec::with_capacity(processor.len().saturating_add(1));
    if let Some(processors) = processors {
        checked_range(processors, PROCESSORS_MAX, "processors", line)?;
        if mapping.swf.processor.is_empty() {
            assumptions.add("swf.processor is not in the mapping: a processor is one cpu");
        }
        for (resource, each) in processor {
            let total = multiplied(*each, processors, resource, line)?;
            requests.push((*resource, total));
        }
        match (&mapping.swf.memory, values.memory_kb) {
            (_, ..0) | (None, 0) => {}
            (None, _) => assumptions
                .add("requested memory is not considered: swf.memory is not in the mapping"),
            (Some(resource), memory_kb) => {
                let each = multiplied(AmountText::Number(memory_kb), 1_024, resource, line)?;
                let total = multiplied(each, processors, resource, line)?;
                requests.push((resource, total));
            }
        }
    }
    builder.add(Record {
        line,
        name: format!("job-{number}").into(),
        arrival_ms: submit_s.saturating_mul(1_000),
        run_ms: run_s.map(|it| it.saturating_mul(1_000)),
        queue: known(queue),
        names_cluster_queue: false,
        partition: known(partition),
        user: known(user),
        group: known(group),
        priority: None,
        pods: processors.unwrap_or(1),
        requests,
    })
}

/// The text of a field; empty if it is unknown.
fn known(word: &str) -> &str {
    if word == "-1" { "" } else { word }
}

/// A time of at most 2^40 seconds, the latest time of a simulation.
fn checked_time(seconds: i64, field: &str, line: u64) -> Result<i64, ImportError> {
    checked_range(seconds, 1 << 40, field, line)
}

fn checked_range(value: i64, max: i64, field: &str, line: u64) -> Result<i64, ImportError> {
    if (0..=max).contains(&value) {
        return Ok(value);
    }
    let expected = if value < 0 {
        "negative; use zero or more, or -1 for an unknown run time"
    } else {
        "too large"
    };
    Err(ImportError::value(
        line,
        field,
        &value.to_string(),
        expected,
    ))
}

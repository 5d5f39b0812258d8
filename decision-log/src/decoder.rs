//! Reads lines as events, and checks their hashes.

use crate::chain::{Chain, split_hash};
use crate::error::LogError;
use crate::record::{FORMAT, LINE_START, LogHeader, Record, WorkloadRecord};
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::journal::ClusterEvent;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// The content of a line.
#[derive(Debug)]
pub(crate) enum Line {
    /// A file begins: the following events make its objects.
    Header(Box<LogHeader>),
    Event(Box<ClusterEvent>),
    /// A part of the following lines.
    Definition,
}

/// Reads lines in order.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    chain: Chain,
    has_begun: bool,
    specs: HashMap<u32, Value>,
}

impl Decoder {
    /// Reads the next line, without its end.
    pub(crate) fn decode(&mut self, line: &str) -> Result<Line, LogError> {
        let split = split_hash(line);
        let (content, hash) = match &split {
            Some((content, hash)) => (content.as_str(), Some(*hash)),
            None => (line, None),
        };
        let line = parse(content)?;
        if let Parsed::Record(Record::Header(header)) = &line {
            self.begin_file(header)?;
        }
        if !self.has_begun {
            return Err(LogError::NoHeader);
        }
        self.chain.add(content);
        if let Some(hash) = hash
            && self.chain.seal() != hash
        {
            return Err(LogError::Hash);
        }
        Ok(match line {
            Parsed::Event(event) => Line::Event(event),
            Parsed::Record(Record::Header(header)) => Line::Header(header),
            Parsed::Record(Record::Spec(it)) => {
                self.specs.insert(it.id, it.spec);
                Line::Definition
            }
            Parsed::Record(Record::Workload(it)) => {
                let workload = Arc::new(self.workload(&it)?);
                Line::Event(Box::new(ClusterEvent::Workload(workload)))
            }
        })
    }

    fn begin_file(&mut self, header: &LogHeader) -> Result<(), LogError> {
        if header.format != FORMAT {
            return Err(LogError::Format {
                found: header.format,
                known: FORMAT,
            });
        }
        let hash = self.chain.seal();
        // Without `continues` another process began, or decisions are missing in between.
        let is_continued = header.continues.as_ref().is_none_or(|it| *it == hash);
        if self.has_begun && !is_continued {
            return Err(LogError::NotContinued);
        }
        self.chain = Chain::default();
        self.has_begun = true;
        self.specs.clear();
        Ok(())
    }

    fn workload(&self, record: &WorkloadRecord) -> Result<Workload, LogError> {
        let spec = self.specs.get(&record.spec);
        let spec = spec.ok_or(LogError::UnknownSpec(record.spec))?;
        serde_json::from_value(json!({
            "metadata": record.metadata, "spec": spec, "status": record.status,
        }))
        .map_err(LogError::Syntax)
    }
}

/// A line by itself.
enum Parsed {
    Record(Record),
    Event(Box<ClusterEvent>),
}

fn parse(line: &str) -> Result<Parsed, LogError> {
    let event = line
        .strip_prefix(LINE_START)
        .and_then(|it| it.split_once('"'));
    let parsed = if matches!(event, Some(("header" | "spec" | "workload", _))) {
        serde_json::from_str(line).map(Parsed::Record)
    } else {
        serde_json::from_str(line).map(Parsed::Event)
    };
    parsed.map_err(LogError::Syntax)
}

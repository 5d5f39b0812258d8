//! Reads lines as events, and checks their hashes.

use crate::chain::{Chain, split_hash};
use crate::error::LogError;
use crate::record::{FORMAT, LogHeader, Record, WorkloadRecord};
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::journal::{ClusterEvent, ObjectChange};
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
        let record: Record = serde_json::from_str(content).map_err(LogError::Syntax)?;
        if let Record::Header(header) = record {
            self.begin_file(&header)?;
            self.chain.add(content);
            return Ok(Line::Header(header));
        }
        if !self.has_begun {
            return Err(LogError::NoHeader);
        }
        self.chain.add(content);
        if let Some(hash) = hash {
            let expected = self.chain.seal();
            if expected != hash {
                return Err(LogError::Hash);
            }
        }
        Ok(match self.event(record)? {
            Some(event) => Line::Event(Box::new(event)),
            None => Line::Definition,
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

    /// `None` for a definition.
    fn event(&mut self, record: Record) -> Result<Option<ClusterEvent>, LogError> {
        let record = match object_change(record) {
            Ok(change) => return Ok(Some(ClusterEvent::Object(change))),
            Err(record) => record,
        };
        Ok(Some(match record {
            Record::Spec(it) => {
                self.specs.insert(it.id, it.spec);
                return Ok(None);
            }
            Record::Time(now_ms) => ClusterEvent::Time(now_ms),
            Record::Workload(it) => ClusterEvent::Workload(Arc::new(self.workload(&it)?)),
            Record::WorkloadSynced(key) => ClusterEvent::WorkloadSynced(key),
            Record::WorkloadRemoved(key) => ClusterEvent::WorkloadRemoved(key),
            Record::AdmissionReverted(key) => ClusterEvent::AdmissionReverted(key),
            Record::Held(it) => ClusterEvent::Held {
                workload: it.workload,
                until_s: it.until,
            },
            Record::HoldEnded(key) => ClusterEvent::HoldEnded(key),
            Record::Stuck(workload) => ClusterEvent::Stuck {
                workload,
                is_stuck: true,
            },
            Record::StuckEnded(workload) => ClusterEvent::Stuck {
                workload,
                is_stuck: false,
            },
            Record::Evicted(key) => ClusterEvent::Evicted(key),
            Record::SearchedAgain(key) => ClusterEvent::SearchedAgain(key),
            Record::Cycle(cycle) => ClusterEvent::Cycle(cycle),
            _ => return Ok(None),
        }))
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

/// The change of an object other than a Workload; other records are returned as they are.
fn object_change(record: Record) -> Result<ObjectChange, Record> {
    Ok(match record {
        Record::ClusterQueue(it) => ObjectChange::ClusterQueue(Arc::from(it)),
        Record::ClusterQueueRemoved(name) => ObjectChange::ClusterQueueRemoved(name),
        Record::Cohort(it) => ObjectChange::Cohort(it),
        Record::CohortRemoved(name) => ObjectChange::CohortRemoved(name),
        Record::ResourceFlavor(it) => ObjectChange::ResourceFlavor(it),
        Record::ResourceFlavorRemoved(name) => ObjectChange::ResourceFlavorRemoved(name),
        Record::LocalQueue(it) => ObjectChange::LocalQueue(it),
        Record::LocalQueueRemoved(key) => {
            let (namespace, name) = key.split_once('/').unwrap_or(("", &key));
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            ObjectChange::LocalQueueRemoved { namespace, name }
        }
        Record::Namespace(it) => ObjectChange::Namespace {
            name: it.name,
            labels: it.labels,
        },
        Record::NamespaceRemoved(name) => ObjectChange::NamespaceRemoved(name),
        Record::PriorityClass(it) => ObjectChange::PriorityClass(it),
        Record::PriorityClassRemoved(name) => ObjectChange::PriorityClassRemoved(name),
        other => return Err(other),
    })
}

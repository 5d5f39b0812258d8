//! Writes events as lines.

use crate::chain::{Chain, with_hash};

use crate::record::{LogHeader, Record, SpecRecord, WorkloadRecord};
use crate::reduced::reduced;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::journal::ClusterEvent;
use lockkeeper_cluster_state::workload_key;
use lockkeeper_explain::reduce_object;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

/// The most specs that are remembered to be written once. A tenant may create Workloads without two equal specs.
const SPECS_MAX: usize = 65_536;

type SpecHash = [u8; 32];

/// The spec of a Workload that is written already.
#[derive(Debug)]
struct KnownWorkload {
    uid: String,
    generation: Option<i64>,
    /// Whether its spec has pod sets: the controller keeps none of a finished workload, whose status may be cleared.
    has_pod_sets: bool,
    spec: u32,
}

/// Writes events as lines. Memory: about a hundred bytes per workload, and per distinct spec.
#[derive(Debug)]
pub struct Encoder {
    header: LogHeader,
    chain: Chain,
    has_begun: bool,
    next_spec: u32,
    specs: HashMap<SpecHash, u32>,
    /// By `namespace/name`.
    workloads: HashMap<String, KnownWorkload>,
}

impl Encoder {
    /// An encoder that writes this header at the start of each file.
    #[must_use]
    pub fn new(header: LogHeader) -> Self {
        Self {
            header,
            chain: Chain::default(),
            has_begun: false,
            next_spec: 0,
            specs: HashMap::new(),
            workloads: HashMap::new(),
        }
    }

    /// Begins a file: the next events must be those of a restarted journal. `continues`: no event is missing between the file
    /// before and this one.
    ///
    /// # Errors
    ///
    /// As [`Self::encode`].
    pub fn begin_file(
        &mut self,
        continues: bool,
        out: &mut String,
    ) -> Result<(), serde_json::Error> {
        // The header has the hash of the file before, and the hashes of this file cover the header.
        let hash = self.chain.seal();
        self.header.continues = (continues && self.has_begun).then_some(hash);
        self.chain = Chain::default();
        self.has_begun = true;
        // Everything is defined again: each file can be read alone.
        self.specs.clear();
        self.workloads.clear();
        self.next_spec = 0;
        let header = Record::Header(Box::new(self.header.clone()));
        self.write(&header, out)
    }

    /// Appends the lines of an event.
    ///
    /// # Errors
    ///
    /// If an object cannot be written as JSON.
    pub fn encode(
        &mut self,
        event: &ClusterEvent,
        out: &mut String,
    ) -> Result<(), serde_json::Error> {
        match event {
            ClusterEvent::Object(change) => self.write(&ClusterEvent::Object(reduced(change)), out),
            ClusterEvent::Workload(it) => {
                let record = self.workload_record(it, out)?;
                self.write(&Record::Workload(Box::new(record)), out)
            }
            ClusterEvent::WorkloadRemoved(key) => {
                self.workloads.remove(key);
                self.write(event, out)
            }
            ClusterEvent::Cycle(cycle) if !cycle.decisions.is_empty() => {
                self.write_with_hash(event, out)
            }
            _ => self.write(event, out),
        }
    }

    /// The record of a Workload. Writes its spec first, if it is new.
    fn workload_record(
        &mut self,
        workload: &Arc<Workload>,
        out: &mut String,
    ) -> Result<WorkloadRecord, serde_json::Error> {
        let metadata = &workload.metadata;
        let key = workload_key(workload);
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let has_pod_sets = !workload.spec.pod_sets.is_empty();
        let known = self.workloads.get(&key);
        let known = known.filter(|it| {
            it.uid == uid
                && it.generation == metadata.generation
                && it.generation.is_some()
                && it.has_pod_sets == has_pod_sets
        });
        let spec = match known.map(|it| it.spec) {
            Some(spec) => spec,
            None => self.spec(workload, out)?,
        };
        self.workloads.insert(
            key,
            KnownWorkload {
                uid: uid.to_owned(),
                generation: metadata.generation,
                has_pod_sets,
                spec,
            },
        );
        let metadata = ObjectMeta {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            generation: metadata.generation,
            creation_timestamp: metadata.creation_timestamp.clone(),
            deletion_timestamp: metadata.deletion_timestamp.clone(),
            labels: metadata.labels.clone(),
            ..ObjectMeta::default()
        };
        let mut object = json!({"metadata": metadata, "status": workload.status});
        reduce_object(&mut object);
        let mut take = |field: &str| object.get_mut(field).map(Value::take);
        let metadata = take("metadata").unwrap_or_default();
        let mut status = take("status").filter(|it| !it.is_null());
        let conditions = status.as_mut().and_then(|it| it.get_mut("conditions"));
        let conditions = conditions.and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            // No decision reads it, and it may be long.
            if let Some(message) = condition.get_mut("message") {
                *message = json!("");
            }
        }
        Ok(WorkloadRecord {
            metadata,
            spec,
            status,
        })
    }

    fn spec(&mut self, workload: &Workload, out: &mut String) -> Result<u32, serde_json::Error> {
        let mut object = json!({"spec": workload.spec});
        reduce_object(&mut object);
        let spec = object.get_mut("spec").map(Value::take).unwrap_or_default();
        let hash: SpecHash = Sha256::digest(spec.to_string()).into();
        if let Some(id) = self.specs.get(&hash) {
            return Ok(*id);
        }
        let id = self.next_spec;
        self.next_spec = id.saturating_add(1);
        if self.specs.len() < SPECS_MAX {
            self.specs.insert(hash, id);
        }
        self.write(&Record::Spec(SpecRecord { id, spec }), out)?;
        Ok(id)
    }

    fn write(
        &mut self,
        record: &impl Serialize,
        out: &mut String,
    ) -> Result<(), serde_json::Error> {
        let line = serde_json::to_string(record)?;
        self.chain.add(&line);
        out.push_str(&line);
        out.push('\n');
        Ok(())
    }

    fn write_with_hash(
        &mut self,
        record: &impl Serialize,
        out: &mut String,
    ) -> Result<(), serde_json::Error> {
        let line = serde_json::to_string(record)?;
        self.chain.add(&line);
        let hash = self.chain.seal();
        out.push_str(&with_hash(&line, &hash));
        out.push('\n');
        Ok(())
    }
}

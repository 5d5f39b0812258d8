//! Writes events as lines.

use crate::chain::{Chain, push_hash};
use crate::record::{LogHeader, Record, SpecRecord};
use crate::reduced::reduced;
use crate::workload_line::WorkloadLine;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::journal::{ClusterEvent, CycleRecord};
use lockkeeper_cluster_state::workload_key;
use lockkeeper_explain::reduce_object;
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// The most specs that are remembered to be written once. A tenant may create Workloads without two equal specs.
const SPECS_MAX: usize = 65_536;

type SpecHash = [u8; 32];

/// The specs that are written already.
#[derive(Debug, Default)]
struct Specs {
    next_id: u32,
    /// By the hash of the spec as it is written.
    written: HashMap<SpecHash, u32>,
    /// By the hash of the whole spec, which is faster to get.
    whole: HashMap<SpecHash, u32>,
    /// The JSON text of a spec. Kept for its memory.
    text: Vec<u8>,
}

/// The last version of a Workload that is written already.
#[derive(Debug)]
struct KnownWorkload {
    uid: String,
    resource_version: String,
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
    specs: Specs,
    /// The line that is written. Kept for its memory.
    line: Vec<u8>,
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
            specs: Specs::default(),
            line: Vec::new(),
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
        self.specs = Specs::default();
        self.workloads.clear();
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
                let spec = self.known_spec(it, out)?;
                self.write(&WorkloadLine::new(it, spec), out)
            }
            ClusterEvent::WorkloadRemoved(key) => {
                self.workloads.remove(key);
                self.write(event, out)
            }
            ClusterEvent::Cycle(cycle) if !cycle.decisions.is_empty() => {
                let cycle = self.with_versions(cycle);
                self.write_with_hash(&ClusterEvent::Cycle(cycle), out)
            }
            _ => self.write(event, out),
        }
    }

    /// The decisions with the versions of their objects.
    fn with_versions(&self, cycle: &CycleRecord) -> CycleRecord {
        let mut cycle = cycle.clone();
        for decision in &mut cycle.decisions {
            if let Some(known) = self.workloads.get(&*decision.workload) {
                decision
                    .resource_version
                    .clone_from(&known.resource_version);
            }
        }
        cycle
    }

    /// The number of the spec of a Workload. Writes the spec first, if it is new.
    fn known_spec(
        &mut self,
        workload: &Workload,
        out: &mut String,
    ) -> Result<u32, serde_json::Error> {
        let metadata = &workload.metadata;
        let key = workload_key(workload);
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let resource_version = metadata.resource_version.as_deref().unwrap_or_default();
        let has_pod_sets = !workload.spec.pod_sets.is_empty();
        if let Some(known) = self.workloads.get_mut(&key)
            && known.uid == uid
            && known.generation == metadata.generation
            && known.generation.is_some()
            && known.has_pod_sets == has_pod_sets
        {
            resource_version.clone_into(&mut known.resource_version);
            return Ok(known.spec);
        }
        let spec = self.spec(workload, out)?;
        self.workloads.insert(
            key,
            KnownWorkload {
                uid: uid.to_owned(),
                resource_version: resource_version.to_owned(),
                generation: metadata.generation,
                has_pod_sets,
                spec,
            },
        );
        Ok(spec)
    }

    fn spec(&mut self, workload: &Workload, out: &mut String) -> Result<u32, serde_json::Error> {
        let specs = &mut self.specs;
        specs.text.clear();
        serde_json::to_writer(&mut specs.text, &workload.spec)?;
        let whole: SpecHash = Sha256::digest(&specs.text).into();
        if let Some(id) = specs.whole.get(&whole) {
            return Ok(*id);
        }
        let mut object = json!({"spec": workload.spec});
        reduce_object(&mut object);
        let spec = object.get_mut("spec").map(Value::take).unwrap_or_default();
        let hash: SpecHash = Sha256::digest(spec.to_string()).into();
        let known = specs.written.get(&hash).copied();
        let id = known.unwrap_or(specs.next_id);
        if specs.whole.len() < SPECS_MAX {
            specs.whole.insert(whole, id);
        }
        if known.is_none() {
            specs.next_id = id.saturating_add(1);
            if specs.written.len() < SPECS_MAX {
                specs.written.insert(hash, id);
            }
            self.write(&Record::Spec(SpecRecord { id, spec }), out)?;
        }
        Ok(id)
    }

    fn write(
        &mut self,
        record: &impl Serialize,
        out: &mut String,
    ) -> Result<(), serde_json::Error> {
        self.push_line(record, out)?;
        out.push('\n');
        Ok(())
    }

    fn write_with_hash(
        &mut self,
        record: &impl Serialize,
        out: &mut String,
    ) -> Result<(), serde_json::Error> {
        self.push_line(record, out)?;
        push_hash(out, &self.chain.seal());
        out.push('\n');
        Ok(())
    }

    /// Appends a line without its end, and adds it to the chain.
    fn push_line(
        &mut self,
        record: &impl Serialize,
        out: &mut String,
    ) -> Result<(), serde_json::Error> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)?;
        let line = str::from_utf8(&self.line).map_err(serde_json::Error::custom)?;
        self.chain.add(line);
        out.push_str(line);
        Ok(())
    }
}

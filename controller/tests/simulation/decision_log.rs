//! The decision log of a process is decided again at once: each decision must be the same.

use lockkeeper_api::config::Config;
use lockkeeper_cluster_state::journal::ClusterEvent;
use lockkeeper_cluster_state::{ClusterState, Completeness};
use lockkeeper_controller::{EventBatch, Settings};
use lockkeeper_decision_log::{Encoder, LogHeader, Replay};
use std::collections::BTreeMap;

/// Encodes the events of a process, and decides them again.
pub struct DecisionLogCheck {
    encoder: Encoder,
    replay: Replay,
    has_begun: bool,
    batches: usize,
    /// The number of victims in the first decision of each workload that preempts.
    first_victims: BTreeMap<String, usize>,
}

/// The number of batches in a file.
const FILE_BATCHES: usize = 60;

impl DecisionLogCheck {
    pub fn new(settings: &Settings) -> Self {
        let mut empty = ClusterState::new(
            settings.options.clone(),
            settings.requeue.clone(),
            Completeness::Complete,
        );
        empty.state_mut().treat_new_as_newest();
        Self {
            encoder: Encoder::new(LogHeader::new("0", "simulated", &Config::default())),
            replay: Replay::from_state(empty),
            has_begun: false,
            batches: 0,
            first_victims: BTreeMap::new(),
        }
    }

    /// Whether the next file should begin.
    pub fn is_file_full(&self) -> bool {
        self.batches % FILE_BATCHES == FILE_BATCHES - 1
    }

    /// The number of decisions that were made again.
    pub fn decisions(&self) -> u64 {
        self.replay.summary().decisions
    }

    /// The number of victims in the first decision of a workload, `namespace/name`, to preempt.
    pub fn first_victims(&self, workload: &str) -> Option<usize> {
        self.first_victims.get(workload).copied()
    }

    pub fn check(&mut self, batches: Vec<EventBatch>) -> Result<(), String> {
        let mut lines = String::new();
        for batch in batches {
            self.batches += 1;
            if batch.is_start {
                self.encoder.begin_file(self.has_begun, &mut lines).unwrap();
                self.has_begun = true;
            }
            for event in &batch.events {
                self.encoder.encode(event, &mut lines).unwrap();
                self.record_victims(event);
            }
        }
        for line in lines.lines() {
            let read = self.replay.read_line(line);
            if let Some(difference) = read.map_err(|error| format!("{error}: {line}"))? {
                return Err(format!(
                    "the decision log is decided differently: {difference:#?}"
                ));
            }
        }
        Ok(())
    }

    fn record_victims(&mut self, event: &ClusterEvent) {
        let ClusterEvent::Cycle(cycle) = event else {
            return;
        };
        let preempting = cycle.decisions.iter().filter(|it| !it.victims.is_empty());
        for decision in preempting {
            let entry = self.first_victims.entry(decision.workload.to_string());
            entry.or_insert(decision.victims.len());
        }
    }
}

//! Decides again what a log records.

use crate::decoder::{Decoder, Line};
use crate::error::LogError;
use crate::observer::ReplayObserver;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_cluster_state::journal::{
    ClusterEvent, CycleRecord, DecisionRecord, apply, cycle_record,
};

/// The first decision that is not made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The time of the cycle, in milliseconds since 1970.
    pub at_ms: i64,
    /// The decision in the log; `None` if there is none.
    pub recorded: Option<DecisionRecord>,
    /// The decision of the replay; `None` if there is none.
    pub replayed: Option<DecisionRecord>,
    /// The version of lockkeeper that wrote the log.
    pub version: String,
}

/// What has been decided again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// The lines.
    pub lines: u64,
    /// The cycles.
    pub cycles: u64,
    /// The decisions.
    pub decisions: u64,
    /// The time of the first line, in milliseconds since 1970.
    pub from_ms: Option<i64>,
    /// The time of the last line, in milliseconds since 1970.
    pub to_ms: Option<i64>,
}

/// Reads a log, line by line, decides again, and tells an observer what happens.
#[derive(Debug, Default)]
pub struct Replay<O = ()> {
    decoder: Decoder,
    cluster: Option<ClusterState>,
    /// The state at each start, in place of one with the settings of the header.
    empty: Option<ClusterState>,
    version: String,
    summary: ReplaySummary,
    observer: O,
}

impl Replay {
    /// A replay that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A replay with the settings of this state, which has no objects, in place of those in the log.
    #[must_use]
    pub fn from_state(empty: ClusterState) -> Self {
        Self {
            empty: Some(empty),
            ..Self::default()
        }
    }
}

impl<O: ReplayObserver> Replay<O> {
    /// A replay that tells this observer what happens.
    #[must_use]
    pub fn with_observer(observer: O) -> Self {
        Self {
            decoder: Decoder::default(),
            cluster: None,
            empty: None,
            version: String::new(),
            summary: ReplaySummary::default(),
            observer,
        }
    }

    /// What has been decided again.
    #[must_use]
    pub const fn summary(&self) -> ReplaySummary {
        self.summary
    }

    /// The observer.
    #[must_use]
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Reads the next line, without its end. Returns the first difference of a cycle.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if it is no line of a log that continues the lines before.
    pub fn read_line(&mut self, line: &str) -> Result<Option<Difference>, LogError> {
        self.summary.lines = self.summary.lines.saturating_add(1);
        match self.decoder.decode(line)? {
            Line::Definition => Ok(None),
            Line::Header(header) => {
                self.version.clone_from(&header.version);
                let empty = self.empty.clone();
                self.cluster = Some(empty.unwrap_or_else(|| header.empty_cluster()));
                self.observer.begin_file();
                Ok(None)
            }
            Line::Event(event) => Ok(self.handle_event(&event)),
        }
    }

    fn handle_event(&mut self, event: &ClusterEvent) -> Option<Difference> {
        let cluster = self.cluster.as_mut()?;
        if let ClusterEvent::Time(now_ms) = event {
            self.summary.from_ms.get_or_insert(*now_ms);
            self.summary.to_ms = Some(*now_ms);
        }
        self.observer.before_event(cluster, event);
        let Some(cycle) = apply(cluster, event) else {
            self.observer.after_event(cluster, event);
            return None;
        };
        let replayed = cycle_record(cluster, &cycle);
        self.observer.after_cycle(cluster, &cycle, &replayed);
        let ClusterEvent::Cycle(recorded) = event else {
            return None;
        };
        self.summary.cycles = self.summary.cycles.saturating_add(1);
        let decisions = u64::try_from(recorded.decisions.len()).unwrap_or(u64::MAX);
        self.summary.decisions = self.summary.decisions.saturating_add(decisions);
        let (recorded, replayed) = first_difference(recorded, &replayed)?;
        Some(Difference {
            at_ms: cluster.now_ms(),
            recorded: recorded.cloned(),
            replayed: replayed.cloned(),
            version: self.version.clone(),
        })
    }
}

/// The first decisions of two records that differ.
fn first_difference<'a>(
    recorded: &'a CycleRecord,
    replayed: &'a CycleRecord,
) -> Option<(Option<&'a DecisionRecord>, Option<&'a DecisionRecord>)> {
    let length = recorded.decisions.len().max(replayed.decisions.len());
    (0..length)
        .map(|at| (recorded.decisions.get(at), replayed.decisions.get(at)))
        .find(|(recorded, replayed)| recorded != replayed)
}

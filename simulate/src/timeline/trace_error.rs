//! Errors of traces.

use lockkeeper_api::config::ConfigConflict;
use lockkeeper_scenario::ScenarioError;

/// Why a trace cannot be simulated. Each error names the field and the accepted values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A ClusterQueue, a cohort or a pod set is invalid.
    #[error(transparent)]
    Quota(#[from] ScenarioError),
    /// Settings of `waitForPodsReady` conflict.
    #[error("{key}: {conflict}")]
    PodsReady {
        /// The field path.
        key: &'static str,
        /// The conflict.
        conflict: ConfigConflict,
    },
    /// Two jobs have the same name.
    #[error("{at}: duplicate job name {name:?}; use unique names")]
    DuplicateJob {
        /// The field path.
        at: String,
        /// The name.
        name: String,
    },
    /// A ClusterQueue is not in the trace.
    #[error("{at}: unknown ClusterQueue {name:?}; add it to clusterQueues or correct the name")]
    UnknownQueue {
        /// The field path.
        at: String,
        /// The name.
        name: String,
    },
    /// A time or duration is out of range.
    #[error("{at}: {value} is out of range; use {least} to {TIME_MAX_S}")]
    Time {
        /// The field path.
        at: String,
        /// The value, in seconds.
        value: i64,
        /// The least accepted value.
        least: i64,
    },
    /// Jobs or changes are not sorted by time.
    #[error(
        "{at}: {value} is before {previous}, the time of the previous entry; sort the entries by time"
    )]
    Unsorted {
        /// The field path.
        at: String,
        /// The time, in seconds.
        value: i64,
        /// The time of the entry before.
        previous: i64,
    },
    /// A job that runs at the start has ended before.
    #[error(
        "{at}: the job has run for {ran_s} s of {run_s} s and would have ended before the start; remove it or increase runSeconds"
    )]
    EndedBeforeStart {
        /// The field path.
        at: String,
        /// How long it has run, in seconds.
        ran_s: i64,
        /// Its run time, in seconds.
        run_s: i64,
    },
    /// A job runs at the start and arrives later.
    #[error("{at}: {arrival_s} with ranSeconds; a job that runs at the start arrives at 0")]
    RunsBeforeArrival {
        /// The field path.
        at: String,
        /// Its arrival, in seconds.
        arrival_s: i64,
    },
    /// A job that runs at the start has no flavor for a requested resource.
    #[error(
        "{at}: no flavor for {resource}; a job that runs at the start needs one for each requested resource"
    )]
    NoFlavor {
        /// The field path.
        at: String,
        /// The resource.
        resource: String,
    },
    /// A job has no pod set.
    #[error("{at}: a job needs at least one pod set")]
    NoPodSet {
        /// The field path.
        at: String,
    },
    /// Two nodes have the same name.
    #[error("{at}: duplicate node name {name:?}; use unique names")]
    DuplicateNode {
        /// The field path.
        at: String,
        /// The name.
        name: String,
    },
    /// There are no or too many nodes.
    #[error("{at}: use 1 or more, and at most {max} nodes in all")]
    NodeCount {
        /// The field path.
        at: String,
        /// The most nodes of a trace.
        max: u64,
    },
    /// An amount of a node is negative or too large.
    #[error("{at}: the amount of {resource} is negative or does not fit into 64 bits")]
    NodeAmount {
        /// The field path.
        at: String,
        /// The resource.
        resource: String,
    },
    /// The pods of a job that runs at the start do not fit on nodes.
    #[error(
        "{at}: its pods do not fit on the nodes beside those of the jobs before it; add nodes or remove ranSeconds"
    )]
    NoRoomOnNodes {
        /// The field path.
        at: String,
    },
    /// The limit on cycles is zero.
    #[error("maxCyclesPerInstant: 0 permits no cycle; use 1 or more")]
    NoCycles,
    /// The limit on preemptions is zero.
    #[error("maxPreemptionsPerJob: 0 permits no preemption; use 1 or more")]
    NoPreemptions,
}

/// The latest time of a trace in seconds: 2^40, so that sums of times do not overflow.
pub(super) const TIME_MAX_S: i64 = 1 << 40;

//! Settings of the controller, which admits, preempts and requeues workloads.

use super::bounded::BoundedInt;
use super::conflict::{BoundCheck, ConfigConflict};
use super::decision_log::DecisionLogSettings;
use super::listen::{ListenAddress, OptionalListen};
use super::namespaced_name::NamespacedName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The default address of the controller's probes and metrics. The webhook uses 9443 to 9445.
const LISTEN_DEFAULT: &str = "127.0.0.1:9446";

/// The controller, which admits workloads.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ControllerSettings {
    /// Leader election among replicas. The other replicas stand by.
    pub leader_election: LeaderElection,
    /// Address and port of `/livez`, `/readyz` and `/metrics`, over plain HTTP; `off` disables them. Port 0
    /// selects a free one. In a pod use `0.0.0.0:9446`, so that the port is reachable from outside.
    pub listen: OptionalListen,
    /// Concurrent writes to the API server.
    pub writes_max: BoundedInt<1, 256>,
    /// Minimum interval between two status writes of one ClusterQueue, Cohort or LocalQueue, in seconds. The
    /// first change after an idle interval and changes caused by a changed spec are written at once; other
    /// changes are combined. For a queue that changes all the time the interval grows up to fourfold.
    pub status_interval_seconds: BoundedInt<1, 300>,
    /// Pending reasons written to workload conditions per second (burst ×10); 0 writes none. Admissions and
    /// preemptions are always written.
    pub pending_reason_writes_per_second: BoundedInt<0, 1_000>,
    /// Events emitted per second for evictions (burst ×10). Further evictions are summarised once a minute
    /// per LocalQueue. The conditions of each evicted workload state the reason in any case.
    pub eviction_events_per_second: BoundedInt<0, 1_000>,
    /// How long the controller waits for the controller of a job to acknowledge a start before it suspends the job
    /// of an evicted workload, in seconds; and then for the acknowledgement of the stop, before it releases the
    /// quota of a job whose status counts no pods.
    pub job_response_seconds: BoundedInt<1, 3_600>,
    /// How long after its eviction a workload may hold its quota, in seconds. Then it gets the condition
    /// `EvictionStuck`, and other workloads are preempted instead.
    pub stuck_eviction_seconds: BoundedInt<1, 86_400>,
    /// How long finished Workloads are kept, in seconds. Without it they are kept until their job is deleted. The job is
    /// not deleted; `ttlSecondsAfterFinished` of a Job does that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_workload_retention_seconds: Option<BoundedInt<0, 31_536_000>>,
    /// Limit for the spec of a Job or JobSet with a queue name, in bytes. A larger one stays suspended, and an event
    /// reports it: the controller has the pod templates of all jobs in memory.
    pub job_spec_max_bytes: BoundedInt<16_384, 4_194_304>,
    /// The decision log.
    pub decision_log: DecisionLogSettings,
    /// How long a stopping process waits for writes in flight, in seconds.
    pub shutdown_seconds: BoundedInt<0, 3_600>,
    /// Decide and report, but write nothing.
    pub dry_run: bool,
}

impl Default for ControllerSettings {
    fn default() -> Self {
        Self {
            leader_election: LeaderElection::default(),
            listen: OptionalListen::At(ListenAddress::from_default(LISTEN_DEFAULT)),
            writes_max: const { BoundedInt::from_default(16) },
            // With a shorter interval, thirty queues would write as much as all workloads.
            status_interval_seconds: const { BoundedInt::from_default(5) },
            // Each is a write, and during a burst most workloads are admitted soon after.
            pending_reason_writes_per_second: const { BoundedInt::from_default(5) },
            // Each is a write, and hundreds of single events are not readable.
            eviction_events_per_second: const { BoundedInt::from_default(5) },
            // A job controller that works responds within a second; this covers its restart.
            job_response_seconds: const { BoundedInt::from_default(60) },
            // Both acknowledgements may take the time above.
            stuck_eviction_seconds: const { BoundedInt::from_default(120) },
            // Users read in the Workload why a job has failed.
            finished_workload_retention_seconds: None,
            // Templates have a few kilobytes; large data belongs into a ConfigMap.
            job_spec_max_bytes: const { BoundedInt::from_default(262_144) },
            decision_log: DecisionLogSettings::default(),
            shutdown_seconds: const { BoundedInt::from_default(10) },
            dry_run: false,
        }
    }
}

/// Leader election among replicas. The default times are those of Kubernetes' own controllers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElection {
    /// Enable leader election. Turn it off only with a single replica.
    pub enable: bool,
    /// The Lease, as `namespace/name`.
    pub lease: NamespacedName,
    /// How long a Lease stays valid without renewal, in seconds. Then another replica may acquire it.
    pub lease_seconds: BoundedInt<3, 3_600>,
    /// How long the leader tries to renew the Lease, in seconds. Then it stops writing, before another
    /// replica can acquire the Lease.
    pub renew_seconds: BoundedInt<2, 3_600>,
    /// Interval between two attempts to acquire or renew the Lease, in seconds.
    pub retry_seconds: BoundedInt<1, 3_600>,
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            enable: true,
            lease: NamespacedName::from_default("lockkeeper-system", "lockkeeper-controller"),
            lease_seconds: const { BoundedInt::from_default(15) },
            renew_seconds: const { BoundedInt::from_default(10) },
            retry_seconds: const { BoundedInt::from_default(2) },
        }
    }
}

impl ControllerSettings {
    pub(super) fn check(&self) -> Result<(), ConfigConflict> {
        let election = &self.leader_election;
        ConfigConflict::reject_not_below([
            BoundCheck {
                key: "controller.leaderElection.renewSeconds",
                value: election.renew_seconds.get(),
                bound_key: "controller.leaderElection.leaseSeconds",
                bound: election.lease_seconds.get(),
                why: "another replica could acquire the Lease while this one still writes",
            },
            BoundCheck {
                key: "controller.leaderElection.retrySeconds",
                value: election.retry_seconds.get(),
                bound_key: "controller.leaderElection.renewSeconds",
                bound: election.renew_seconds.get(),
                why: "the holder could try to renew the Lease only once",
            },
        ])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[track_caller]
    fn check(retry: u64, renew: u64, lease: u64, wrong: Option<(&str, &str)>) {
        let given = serde_json::json!({"leaderElection":
            {"retrySeconds": retry, "renewSeconds": renew, "leaseSeconds": lease}});
        let settings: ControllerSettings = serde_json::from_value(given).unwrap();
        let keys = settings.check().map_err(|wrong| wrong.keys());
        assert_eq!(keys.err(), wrong);
    }

    #[test]
    fn leader_election_intervals_out_of_order_are_rejected() {
        assert_eq!(ControllerSettings::default().check(), Ok(()));
        check(1, 2, 3, None);
        let (retry, renew, lease) = (
            "controller.leaderElection.retrySeconds",
            "controller.leaderElection.renewSeconds",
            "controller.leaderElection.leaseSeconds",
        );
        check(1, 3, 3, Some((renew, lease)));
        check(1, 4, 3, Some((renew, lease)));
        check(2, 2, 3, Some((retry, renew)));
        check(3, 2, 3, Some((retry, renew)));
    }
}

//! The process that admits workloads, preempts and requeues them.

use super::bounded::BoundedInt;
use super::conflict::{BoundCheck, ConfigConflict};
use super::listen::{ListenAddress, OptionalListen};
use super::namespaced_name::NamespacedName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The address of the controller's probes and metrics by default. The webhook's are 9443 and 9444.
const LISTEN_DEFAULT: &str = "127.0.0.1:9446";

/// The process that admits workloads.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ControllerSettings {
    /// Which of several replicas works. The others wait.
    pub leader_election: LeaderElection,
    /// The address and port of `/livez`, `/readyz` and `/metrics`, over plain HTTP; `off` opens none.
    /// Port 0 takes a free one. In a pod it must be `0.0.0.0:9446`, or nobody outside it can ask.
    pub listen: OptionalListen,
    /// Writes to the API server in flight at once.
    pub writes_max: BoundedInt<1, 256>,
    /// Shortest between two writes of the status of one ClusterQueue, Cohort or LocalQueue, in seconds.
    /// The first change after a rest is written at once, and so is what comes of a changed spec; what changes
    /// within that time is written together at its end. Of a queue that changes all the time it is up to
    /// four times as long.
    pub status_interval_seconds: BoundedInt<1, 300>,
    /// How many waiting workloads are told per second why they wait, in their conditions; after a quiet
    /// time ten times as many at once. 0 tells none. Those that are admitted or preempted are always told.
    pub pending_reason_writes_per_second: BoundedInt<0, 1_000>,
    /// How many evictions are told per second in an event of their own; after a quiet time ten times as many
    /// at once. What comes on top is told in sum, every minute for each LocalQueue. The conditions of
    /// each evicted workload say why in any case.
    pub eviction_events_per_second: BoundedInt<0, 1_000>,
    /// How long a stopping process waits for writes in flight, in seconds.
    pub shutdown_seconds: BoundedInt<0, 3_600>,
    /// Decides and reports, and writes nothing.
    pub dry_run: bool,
}

impl Default for ControllerSettings {
    fn default() -> Self {
        Self {
            leader_election: LeaderElection::default(),
            listen: OptionalListen::At(ListenAddress::from_default(LISTEN_DEFAULT)),
            writes_max: const { BoundedInt::from_default(16) },
            // Nobody looks at sums more often, and thirty queues would write as much as all workloads.
            status_interval_seconds: const { BoundedInt::from_default(5) },
            // Each is a write, and in a flood most are admitted or told otherwise before anybody looks.
            pending_reason_writes_per_second: const { BoundedInt::from_default(5) },
            // In a storm nobody reads hundreds of events one by one, and each is a write.
            eviction_events_per_second: const { BoundedInt::from_default(5) },
            shutdown_seconds: const { BoundedInt::from_default(10) },
            dry_run: false,
        }
    }
}

/// Which of several replicas works. The times are those of Kubernetes' own controllers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElection {
    /// Whether a replica works only while it holds the Lease. Without it there must be one replica.
    pub enable: bool,
    /// The Lease, as `namespace/name`.
    pub lease: NamespacedName,
    /// How long the others wait for a holder that is not heard of, in seconds, before one of them takes
    /// the Lease.
    pub lease_seconds: BoundedInt<3, 3_600>,
    /// For how long the holder tries to renew the Lease, in seconds. Then it stops to write: before
    /// anybody else can hold it.
    pub renew_seconds: BoundedInt<2, 3_600>,
    /// How long it waits between two tries, in seconds.
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
                why: "the Lease could be taken over from a holder that still writes",
            },
            BoundCheck {
                key: "controller.leaderElection.retrySeconds",
                value: election.retry_seconds.get(),
                bound_key: "controller.leaderElection.renewSeconds",
                bound: election.renew_seconds.get(),
                why: "the holder would have one try to renew the Lease",
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

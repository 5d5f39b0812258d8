//! Workloads: kinds that create pods.

mod apps;
mod batch;
mod job_policies;
mod rollout;
mod schedule;

pub(super) use apps::{
    validate_daemon_set, validate_deployment, validate_replica_set, validate_stateful_set,
};
pub(super) use batch::{validate_cron_job, validate_job};
pub(super) use rollout::{int_or_percent, is_over_100_percent};

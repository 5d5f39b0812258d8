//! Leader election by a Lease (`coordination.k8s.io`).

use super::RunError;
use super::lease::{LeaseCandidate, LeaseTiming};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Error};
use lockkeeper_kube_support::error_chain::ErrorChain;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The timeout of releasing the lease at shutdown, in seconds.
const RELEASE_TIMEOUT_SECONDS: u64 = 2;

/// The Lease of the leader election.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The holder identity of this process.
    pub identity: String,
    /// Durations, as in client-go.
    pub timing: LeaseTiming,
}

/// The end of this process's leadership; `None` if it does not lead.
pub(super) type LeaderUntil = watch::Receiver<Option<Instant>>;

/// Starts a task that acquires and renews the lease, until the receiver is dropped.
pub(super) fn start_election(
    client: &Client,
    settings: LeaseSettings,
) -> (LeaderUntil, LeaderElector) {
    let (sender, lead) = watch::channel(None);
    let elector = LeaderElector {
        leases: Api::namespaced(client.clone(), &settings.namespace),
        name: settings.name,
        timing: settings.timing,
        candidate: LeaseCandidate::new(settings.identity, settings.timing),
        started: Instant::now(),
    };
    let mut own = elector.clone_for_task();
    tokio::spawn(async move {
        let mut was_logged = false;
        while !sender.is_closed() {
            let begun = Instant::now();
            let limit = own.timing.retry_period.max(Duration::from_secs(1));
            match timeout(limit, own.try_acquire_or_renew()).await {
                Ok(Ok(is_held)) => {
                    was_logged = false;
                    // Counted from before the write: other candidates can only have observed it later.
                    let until = is_held.then(|| begun + own.timing.renew_deadline);
                    sender.send_replace(until);
                }
                Ok(Err(error)) => {
                    // The leadership lasts until the deadline of the last renewal.
                    if !was_logged {
                        let error = ErrorChain(&error).to_string();
                        tracing::warn!(lease = %own.name, %error, "cannot renew the lease; retrying");
                    }
                    was_logged = true;
                }
                Err(_) => {
                    tracing::warn!(lease = %own.name, "timeout while renewing the lease; retrying");
                }
            }
            sleep(own.timing.retry_period).await;
        }
    });
    (lead, elector)
}

/// Acquires, renews and releases the lease.
pub(super) struct LeaderElector {
    leases: Api<Lease>,
    name: String,
    timing: LeaseTiming,
    candidate: LeaseCandidate,
    started: Instant,
}

impl LeaderElector {
    fn clone_for_task(&self) -> Self {
        Self {
            leases: self.leases.clone(),
            name: self.name.clone(),
            timing: self.timing,
            candidate: self.candidate.restarted(),
            started: self.started,
        }
    }

    /// Acquires or renews the lease; false if another process holds it.
    async fn try_acquire_or_renew(&mut self) -> Result<bool, Error> {
        let lease = self.leases.get_opt(&self.name).await?;
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let spec = lease.as_ref().and_then(|it| it.spec.as_ref());
        let Some(wanted) = self.candidate.try_acquire(spec, now_ms, &wall_clock_now()) else {
            return Ok(false);
        };
        let by = PostParams::default();
        let written = if let Some(mut lease) = lease {
            // With the resource version that was read, a concurrent write is a conflict.
            lease.spec = Some(wanted);
            self.leases.replace(&self.name, &by, &lease).await
        } else {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(wanted),
            };
            self.leases.create(&by, &lease).await
        };
        match written {
            Ok(_) => Ok(true),
            // Another candidate has written the lease first.
            Err(Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Releases the lease, if this process holds it.
    pub(super) async fn release(self) {
        let limit = Duration::from_secs(RELEASE_TIMEOUT_SECONDS);
        let released = timeout(limit, async {
            let Some(mut lease) = self.leases.get_opt(&self.name).await? else {
                return Ok::<_, Error>(());
            };
            let spec = lease.spec.clone().unwrap_or_default();
            if let Some(free) = self.candidate.release(&spec, &wall_clock_now()) {
                lease.spec = Some(free);
                let by = PostParams::default();
                self.leases.replace(&self.name, &by, &lease).await?;
            }
            Ok(())
        });
        if !matches!(released.await, Ok(Ok(()))) {
            tracing::warn!("cannot release the lease; it will expire");
        }
    }
}

fn wall_clock_now() -> MicroTime {
    MicroTime(Timestamp::now())
}

/// Checks that the Lease can be read, so that missing RBAC rights are reported at the start.
pub(super) async fn check_access(
    client: &Client,
    settings: &LeaseSettings,
) -> Result<(), RunError> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), &settings.namespace);
    match leases.get_opt(&settings.name).await {
        Err(Error::Api(status)) if status.code == 403 => Err(RunError::Lease {
            name: format!("{}/{}", settings.namespace, settings.name),
            why: status.message,
        }),
        _ => Ok(()),
    }
}

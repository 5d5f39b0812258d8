//! Leader election by a Lease (`coordination.k8s.io`).

use super::RunError;
use super::leadership_gate::LeadershipGate;
use super::lease::{LeaseCandidate, LeaseTiming};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Error};
use lockkeeper_kube_support::api_client::ApiClients;
use lockkeeper_kube_support::error_chain::ErrorChain;
use std::thread;
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

/// The time during which this process leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leadership {
    /// From then on it may write: late writes of the former leader have ended.
    pub(super) from: Instant,
    /// Until then it may write, unless the lease is renewed before.
    pub(super) until: Instant,
}

impl Leadership {
    pub(super) fn contains(&self, now: Instant) -> bool {
        (self.from..self.until).contains(&now)
    }

    /// The next time at which the leadership begins or ends; `None` if it has ended.
    pub(super) fn next_change(&self, now: Instant) -> Option<Instant> {
        [self.from, self.until].into_iter().find(|it| *it > now)
    }
}

/// The time limit of a write that begins now: at most `max`, and with leader election at most the rest of the
/// leadership.
pub(super) fn write_timeout(
    leadership: Option<&LeadershipWatch>,
    max: Duration,
    now: Instant,
) -> Duration {
    leadership.map_or(max, |leadership| {
        let rest = leadership
            .borrow()
            .map(|it| it.until.saturating_duration_since(now));
        rest.unwrap_or_default().min(max)
    })
}

/// The leadership of this process; `None` if it does not lead.
pub(super) type LeadershipWatch = watch::Receiver<Option<Leadership>>;

/// Starts a thread that acquires and renews the lease while the gate is open, until the receiver is dropped.
///
/// # Errors
///
/// If the thread cannot be started.
pub(super) fn start_election(
    clients: &ApiClients,
    settings: LeaseSettings,
    gate: LeadershipGate,
) -> Result<(LeadershipWatch, LeaderElector), RunError> {
    let (sender, lead) = watch::channel(None);
    let elector = LeaderElector {
        leases: Api::namespaced(clients.watches.clone(), &settings.namespace),
        candidate: LeaseCandidate::new(settings.identity.clone(), settings.timing),
        name: settings.name.clone(),
        timing: settings.timing,
        started: Instant::now(),
        held: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RunError::LeaseThread)?;
    let clients = clients.clone();
    let run = move || {
        runtime.block_on(async {
            // A client of its own: its connections are driven by the runtime that made it.
            match clients.for_this_runtime() {
                Ok(client) => elect(client, settings, gate, sender).await,
                Err(error) => tracing::error!(%error, "cannot renew the lease"),
            }
        });
    };
    // Decisions may take longer than the lease lasts, and must not delay its renewal.
    thread::Builder::new()
        .name("lease".to_owned())
        .spawn(run)
        .map_err(RunError::LeaseThread)?;
    Ok((lead, elector))
}

/// Acquires and renews the lease until the receiver is dropped.
async fn elect(
    client: Client,
    settings: LeaseSettings,
    gate: LeadershipGate,
    sender: watch::Sender<Option<Leadership>>,
) {
    let mut own = LeaderElector {
        leases: Api::namespaced(client, &settings.namespace),
        candidate: LeaseCandidate::new(settings.identity, settings.timing),
        name: settings.name,
        timing: settings.timing,
        started: Instant::now(),
        held: None,
    };
    let mut was_logged = false;
    let mut leads_from = None;
    while !sender.is_closed() {
        // Not released: writes may be in flight. The lease expires, and the next leader waits for them.
        let attempt = if gate.is_open() {
            own.try_acquire_or_renew().await
        } else {
            own.held = None;
            Ok(LeaseAttempt::NotHeld)
        };
        match attempt {
            Ok(LeaseAttempt::Held {
                sent_at,
                waits_for_predecessor,
            }) => {
                was_logged = false;
                if waits_for_predecessor {
                    leads_from = None;
                }
                let wait = own.timing.takeover_wait(waits_for_predecessor);
                let from = *leads_from.get_or_insert_with(|| Instant::now() + wait);
                // Counted from before the write: other candidates can only have observed it later.
                let until = sent_at + own.timing.renew_deadline;
                sender.send_replace(Some(Leadership { from, until }));
            }
            Ok(LeaseAttempt::NotHeld) => {
                was_logged = false;
                leads_from = None;
                sender.send_replace(None);
            }
            Err(error) => {
                // The leadership lasts until the deadline of the last renewal.
                if !was_logged {
                    tracing::warn!(lease = %own.name, %error, "cannot renew the lease; retrying");
                }
                was_logged = true;
            }
        }
        sleep(own.timing.retry_period).await;
    }
}

/// Acquires, renews and releases the lease.
pub(super) struct LeaderElector {
    leases: Api<Lease>,
    name: String,
    timing: LeaseTiming,
    candidate: LeaseCandidate,
    started: Instant,
    /// The lease as this process wrote it last: it is renewed without another GET.
    held: Option<Lease>,
}

/// The result of an attempt to acquire or renew the lease.
enum LeaseAttempt {
    Held {
        /// The time before the write.
        sent_at: Instant,
        /// The lease was taken from a holder that had not released it.
        waits_for_predecessor: bool,
    },
    NotHeld,
}

/// Why an attempt to acquire or renew the lease failed.
#[derive(Debug, thiserror::Error)]
enum LeaseError {
    #[error("{}", ErrorChain(.0))]
    Api(#[from] Error),
    #[error("no response within {} s", .0.as_secs())]
    Timeout(Duration),
}

impl LeaderElector {
    /// Acquires or renews the lease.
    async fn try_acquire_or_renew(&mut self) -> Result<LeaseAttempt, LeaseError> {
        // After an error the lease may have been written: it is read again.
        let lease = match self.held.take() {
            Some(lease) => Some(lease),
            None => self.limited(self.leases.get_opt(&self.name)).await?,
        };
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let spec = lease.as_ref().and_then(|it| it.spec.as_ref());
        let waits_for_predecessor = self.candidate.is_foreign(spec);
        let Some(wanted) = self.candidate.try_acquire(spec, now_ms, &wall_clock_now()) else {
            return Ok(LeaseAttempt::NotHeld);
        };
        let sent_at = Instant::now();
        match self.limited(self.write(lease, wanted)).await {
            Ok(written) => {
                self.held = Some(written);
                Ok(LeaseAttempt::Held {
                    sent_at,
                    waits_for_predecessor,
                })
            }
            // Another candidate has written the lease first.
            Err(LeaseError::Api(Error::Api(status))) if status.code == 409 => {
                Ok(LeaseAttempt::NotHeld)
            }
            Err(error) => Err(error),
        }
    }

    async fn write(&self, lease: Option<Lease>, wanted: LeaseSpec) -> Result<Lease, Error> {
        let by = PostParams::default();
        if let Some(mut lease) = lease {
            // With the resource version that was read, a concurrent write is a conflict.
            lease.spec = Some(wanted);
            return self.leases.replace(&self.name, &by, &lease).await;
        }
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(wanted),
        };
        self.leases.create(&by, &lease).await
    }

    /// Runs one request to its end or its time limit.
    async fn limited<T>(
        &self,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, LeaseError> {
        let limit = self.timing.request_timeout();
        let response = timeout(limit, request).await;
        Ok(response.map_err(|_| LeaseError::Timeout(limit))??)
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

#[cfg(test)]
mod tests;

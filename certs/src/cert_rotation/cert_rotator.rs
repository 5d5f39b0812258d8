//! Executes the rotation: watches the Secret and the targets, plans, writes, and reports problems.
//!
//! Every round has the same steps: load the Secret, execute the planned steps, inject the bundle into the
//! targets, report the health. A failed round is repeated with exponential backoff, for ever; the watches
//! have their own backoff.

use super::contents::SecretContents;
use super::events::{self, RotationEvent};
use super::injection_targets::TrackedTarget;
use super::observed_secret::ObservedSecret;
use super::plan::{RotationPlan, RotationState, RotationStep, StableSince, StoredState};
use super::secret_store::{self, SecretStore};
use super::settings::CertRotationSettings;
use crate::ca_bundle::CaBundle;
use crate::self_signed;
use crate::tls::{CertSlot, CertificateStatus, LastFailure, ServerTls};
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use lockkeeper_kube_support::health::Health;
use rustls::pki_types::CertificateDer;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

#[cfg(test)]
mod tests;
mod write;

/// The most writes in one round. A whole rotation needs fewer; more mean that another client reverts them.
const WRITES_PER_ROUND_MAX: u32 = 8;

/// Pause after a failed round, in seconds: the first, and the longest.
const RETRY_S: u64 = 1;
const RETRY_MAX_S: u64 = 60;

/// Rotates the certificates of a Secret and serves them.
pub struct CertRotator {
    settings: CertRotationSettings,
    store: SecretStore,
    targets: Vec<TrackedTarget>,
    cert_slot: Option<CertSlot>,
    status: CertificateStatus,
    health: Arc<Health>,
    bundle: watch::Sender<CaBundle>,
    /// The Secret as it was read last; `None` before the first read.
    observed: Option<ObservedSecret>,
    /// The valid contents that are served.
    active_contents: Option<Arc<SecretContents>>,
    ca_injected_since: StableSince<CertificateDer<'static>>,
    served_since: StableSince<CertificateDer<'static>>,
    started: Instant,
    /// Why the Secret cannot be read.
    read_error: String,
    logged: LoggedFailures,
    /// The number of failed rounds in a row.
    failed_rounds: u32,
}

/// The last logged reasons, so that each reason is logged once while it persists.
#[derive(Debug, Default)]
struct LoggedFailures {
    watch: LastFailure,
    contents: LastFailure,
    problem: LastFailure,
}

/// The description of a problem, for `/readyz`.
type Problem = String;

impl CertRotator {
    /// Rotates the certificates of `settings` at the API server of `client`, and serves them with
    /// `serving`, which must come from the same settings. Problems are reported to `health`.
    #[must_use]
    pub fn new(
        settings: CertRotationSettings,
        client: &Client,
        serving: &ServerTls,
        health: Arc<Health>,
    ) -> Self {
        let targets = settings.injection_targets.iter().cloned();
        Self {
            store: SecretStore::new(client, &settings.secret),
            targets: targets
                .map(|target| TrackedTarget::new(client, target))
                .collect(),
            cert_slot: serving.cert_slot(),
            status: serving.status(),
            health,
            bundle: watch::Sender::default(),
            observed: None,
            active_contents: None,
            ca_injected_since: StableSince::default(),
            served_since: StableSince::default(),
            started: Instant::now(),
            read_error: "it has not been read yet".to_owned(),
            logged: LoggedFailures::default(),
            failed_rounds: 0,
            settings,
        }
    }

    /// Returns the CA bundle of the served certificate, with its changes.
    #[must_use]
    pub fn bundle(&self) -> watch::Receiver<CaBundle> {
        self.bundle.subscribe()
    }

    /// Runs until the process ends.
    pub async fn run(mut self) {
        self.report_health(None);
        let mut events =
            events::event_stream(self.store.api(), self.settings.secret.name(), &self.targets);
        // The first round starts with the first event: before it, the Secret is unknown.
        let mut pause = Duration::MAX;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.handle_event(event),
                    // Watches do not end; if one did, the timer still starts rounds.
                    None => sleep(Duration::from_secs(RETRY_MAX_S)).await,
                },
                () = sleep(pause) => {}
            }
            // Events that arrived in the meantime belong to the same round.
            while let Some(Some(event)) = events.next().now_or_never() {
                self.handle_event(event);
            }
            pause = self.run_round().await;
        }
    }

    fn handle_event(&mut self, event: RotationEvent) {
        match event {
            RotationEvent::Secret(Ok(secret)) => {
                self.logged.watch.clear();
                // Writes of this replica are newer than the events that the watch delivers
                // next.
                if !self
                    .observed
                    .as_ref()
                    .is_some_and(|seen| seen.is_newer_than(secret.as_ref()))
                {
                    self.observe_secret(secret);
                }
            }
            RotationEvent::Secret(Err(error)) => {
                self.read_error = secret_store::watch_reason(&error);
                self.status.count_failure();
                let secret = self.settings.secret.to_string();
                let reason = self.read_error.as_str();
                if self.logged.watch.is_new(reason) {
                    warn!(secret, reason, "cannot watch the Secret; retrying");
                }
            }
            RotationEvent::Target(place, result) => {
                let Some(target) = self.targets.get_mut(place) else {
                    return;
                };
                match result {
                    Ok(object) => target.observe(object),
                    Err(error) => {
                        let reason = secret_store::watch_reason(&error);
                        target.record_error("read", "get, list and watch", &reason);
                    }
                }
            }
        }
    }

    /// Loads the Secret and serves its contents if they are valid and new.
    fn observe_secret(&mut self, secret: Option<Secret>) {
        let seen = ObservedSecret::new(secret, self.active_contents.as_ref());
        if let Some(contents) = seen.valid_contents() {
            self.activate_contents(&Arc::clone(contents));
        }
        self.observed = Some(seen);
    }

    fn activate_contents(&mut self, contents: &Arc<SecretContents>) {
        // `ObservedSecret` shares equal contents, so the pointers can be compared.
        if self
            .active_contents
            .as_ref()
            .is_some_and(|held| Arc::ptr_eq(held, contents))
        {
            return;
        }
        let is_first = self.active_contents.is_none();
        let ends_s = contents.validity().ends_s;
        let is_new = self
            .cert_slot
            .as_ref()
            .is_some_and(|slot| slot.replace(contents.certified_key(), ends_s));
        if is_new && !is_first {
            self.status.count_reload();
        }
        let all = contents.cas().iter();
        let all: Arc<[_]> = all.map(|authority| authority.certificate.clone()).collect();
        let (secret, authorities) = (self.settings.secret.to_string(), all.len());
        info!(
            secret,
            authorities,
            is_new,
            not_after = ends_s,
            "loaded certificates from the Secret"
        );
        self.bundle.send_replace(Some(all));
        self.active_contents = Some(Arc::clone(contents));
    }

    /// Runs one round; returns the pause before the next one if no event arrives.
    async fn run_round(&mut self) -> Duration {
        let renewed = self.reconcile().await;
        // Also after a failed renewal: a target may lack the bundle that is stored.
        let injected = self.inject_bundle().await;
        let trouble = renewed.and(injected).err();
        self.report_health(trouble.as_deref());
        if trouble.is_none() {
            self.failed_rounds = 0;
            return self.plan().map_or(Duration::MAX, |plan| plan.recheck_after);
        }
        // The exponent is limited, because a long shift overflows.
        let pause_s = RETRY_S
            .saturating_mul(1 << self.failed_rounds.min(10))
            .min(RETRY_MAX_S);
        self.failed_rounds = self.failed_rounds.saturating_add(1);
        Duration::from_secs(pause_s)
    }

    /// Writes until no step is planned.
    async fn reconcile(&mut self) -> Result<(), Problem> {
        for _ in 0..WRITES_PER_ROUND_MAX {
            let Some(plan) = self.plan() else {
                let secret = &self.settings.secret;
                return Err(format!("cannot read Secret {secret}: {}", self.read_error));
            };
            let held = self.active_contents.is_some();
            let secret = &self.settings.secret;
            match self
                .observed
                .as_ref()
                .and_then(|seen| seen.problem(secret, held))
            {
                None => self.logged.contents.clear(),
                Some(fault) => {
                    self.status.count_failure();
                    // This replica has nothing to restore, so an administrator must act.
                    if plan.step == RotationStep::Wait {
                        return Err(fault);
                    }
                    if self.logged.contents.is_new(&fault) {
                        warn!(fault, "restoring the Secret with the served certificates");
                    }
                }
            }
            if plan.step == RotationStep::Wait {
                return Ok(());
            }
            self.apply_step(plan.step).await?;
        }
        let secret = &self.settings.secret;
        Err(format!(
            "Secret {secret} is changed by another client repeatedly; find and stop it"
        ))
    }

    fn plan(&mut self) -> Option<RotationPlan> {
        let seen = self.observed.as_ref()?;
        let now = self.started.elapsed();
        let contents = seen.valid_contents().map(|contents| &**contents);
        let stored = match contents {
            Some(contents) => StoredState::Valid(contents),
            None if seen.is_invalid() => StoredState::Invalid,
            None => StoredState::Empty,
        };
        let newest = contents.and_then(|contents| contents.cas().first());
        let newest = newest.map(|authority| authority.certificate.clone());
        let in_all = newest.filter(|ca| self.targets.iter().all(|target| target.trusts_ca(ca)));
        let leaf = contents.and_then(|contents| contents.certified_key().cert.first().cloned());
        let situation = RotationState {
            now_s: self_signed::unix_seconds(SystemTime::now()).unwrap_or(0),
            stored,
            active: self.active_contents.as_deref(),
            renewal_requested: seen.requests_renewal(),
            names: &self.settings.issuer.names,
            overlap: self.settings.overlap,
            ca_injected_for: self.ca_injected_since.observe(now, in_all),
            served_for: self.served_since.observe(now, leaf).unwrap_or_default(),
        };
        Some(situation.plan())
    }

    /// Reports the health and logs problems.
    fn report_health(&self, trouble: Option<&str>) {
        match trouble {
            Some(trouble) => {
                if self.logged.problem.is_new(trouble) {
                    warn!(trouble, "certificate rotation failed; retrying");
                }
            }
            None => self.logged.problem.clear(),
        }
        let Some(held) = &self.active_contents else {
            let waiting = || format!("Secret {} has not been read yet", self.settings.secret);
            self.health
                .set_certificate_error(Some(trouble.map_or_else(waiting, str::to_owned)));
            return;
        };
        // A failed round alone does not make the server unready, because it has a certificate. A
        // target that does not trust the certificate's CA does.
        let problems = held.signer().map(|signer| {
            let each = self.targets.iter();
            let each = each.filter_map(|target| target.problem(&signer.certificate));
            each.collect::<Vec<_>>().join("; ")
        });
        self.health
            .set_certificate_error(problems.filter(|problems| !problems.is_empty()));
    }
}

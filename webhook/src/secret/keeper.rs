//! The one that acts: it watches the Secret and the targets, plans, writes, and says what is wrong.
//!
//! Whatever happened, the round is the same: take over what the Secret holds, carry out what is
//! planned, give the targets the bundle, tell whether all is well. A round that comes to nothing is
//! repeated with growing pauses, for ever; the watches have pauses of their own.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use rustls::pki_types::CertificateDer;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::Settings;
use super::cluster::{self, Store};
use super::contents::Contents;
use super::events::{self, Event};
use super::plan::{Plan, Since, Situation, Step, Stored};
use super::seen::Seen;
use super::targets::Target;
use crate::bootstrap;
use crate::readiness::{Bundle, Health};
use crate::tls::{CertificateStatus, LastFailure, Serving, Slot};

mod writing;

/// The most writes in one round. A whole rotation is fewer; what needs more is a fight.
const WRITES_MAX: u32 = 8;

/// Pause after a round that came to nothing, in seconds: the first, and the longest.
const RETRY_S: u64 = 1;
const RETRY_MAX_S: u64 = 60;

/// Keeps the certificates of a Secret, and serves them.
pub struct Keeper {
    settings: Settings,
    store: Store,
    targets: Vec<Target>,
    slot: Option<Slot>,
    status: CertificateStatus,
    health: Arc<Health>,
    bundle: watch::Sender<Bundle>,
    /// What the Secret held when it was last read; `None` before the first time.
    seen: Option<Seen>,
    /// The good contents that were taken over last: what is served.
    held: Option<Arc<Contents>>,
    standing: Since<CertificateDer<'static>>,
    served: Since<CertificateDer<'static>>,
    started: Instant,
    /// Why the Secret could not be read.
    unread: String,
    logged: Logged,
    /// How many rounds in a row came to nothing.
    failures: u32,
}

/// What was logged last, so that each reason is logged once for as long as it stays.
#[derive(Debug, Default)]
struct Logged {
    watch: LastFailure,
    contents: LastFailure,
    trouble: LastFailure,
}

/// What goes wrong, in full: it stands in an answer of `/readyz`.
type Trouble = String;

impl Keeper {
    /// Keeps what `settings` say, at the API server of `client`, and puts it into `serving`, which
    /// they have made. `health` is told whether all is well.
    #[must_use]
    pub fn new(
        settings: Settings,
        client: &Client,
        serving: &Serving,
        health: Arc<Health>,
    ) -> Self {
        let targets = settings.inject.iter().cloned();
        Self {
            store: Store::new(client, &settings.secret),
            targets: targets.map(|target| Target::new(client, target)).collect(),
            slot: serving.slot(),
            status: serving.status(),
            health,
            bundle: watch::Sender::default(),
            seen: None,
            held: None,
            standing: Since::default(),
            served: Since::default(),
            started: Instant::now(),
            unread: "it has not been read yet".to_owned(),
            logged: Logged::default(),
            failures: 0,
            settings,
        }
    }

    /// The CA bundle of the pair that is served, as it changes.
    #[must_use]
    pub fn bundle(&self) -> watch::Receiver<Bundle> {
        self.bundle.subscribe()
    }

    /// Keeps it for as long as the process lives.
    pub async fn run(mut self) {
        self.tell(None);
        let mut events = events::of(self.store.api(), self.settings.secret.name(), &self.targets);
        let mut pause = Duration::MAX;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.take(event),
                    // Watches do not end; if one did, the clock goes on.
                    None => sleep(Duration::from_secs(RETRY_MAX_S)).await,
                },
                () = sleep(pause) => {}
            }
            // What has come meanwhile belongs to the same round.
            while let Some(Some(event)) = events.next().now_or_never() {
                self.take(event);
            }
            pause = self.round().await;
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Secret(Ok(secret)) => {
                self.logged.watch.clear();
                // What this replica wrote meanwhile is newer than what a watch is about to tell.
                if !self
                    .seen
                    .as_ref()
                    .is_some_and(|seen| seen.is_newer_than(secret.as_ref()))
                {
                    self.see(secret);
                }
            }
            Event::Secret(Err(error)) => {
                self.unread = cluster::watch_reason(&error);
                self.status.count_failure();
                let secret = self.settings.secret.to_string();
                let reason = self.unread.as_str();
                if self.logged.watch.is_new(reason) {
                    warn!(secret, reason, "cannot watch the Secret; trying again");
                }
            }
            Event::Target(place, result) => {
                let Some(target) = self.targets.get_mut(place) else {
                    return;
                };
                match result {
                    Ok(object) => target.take(object),
                    Err(error) => {
                        let reason = cluster::watch_reason(&error);
                        target.fail("read", "get, list and watch", &reason);
                    }
                }
            }
        }
    }

    /// Takes what was read of the Secret, and serves it if it is good and new.
    fn see(&mut self, secret: Option<Secret>) {
        let seen = Seen::new(secret, self.held.as_ref());
        if let Some(contents) = seen.good() {
            self.take_over(&Arc::clone(contents));
        }
        self.seen = Some(seen);
    }

    fn take_over(&mut self, contents: &Arc<Contents>) {
        if self
            .held
            .as_ref()
            .is_some_and(|held| Arc::ptr_eq(held, contents))
        {
            return;
        }
        let is_first = self.held.is_none();
        let ends_s = contents.validity().ends_s;
        let is_new = self
            .slot
            .as_ref()
            .is_some_and(|slot| slot.put(contents.pair(), ends_s));
        if is_new && !is_first {
            self.status.count_reload();
        }
        let all = contents.authorities().iter();
        let all: Arc<[_]> = all.map(|authority| authority.certificate.clone()).collect();
        let (secret, authorities) = (self.settings.secret.to_string(), all.len());
        info!(
            secret,
            authorities,
            is_new,
            not_after = ends_s,
            "took over what the Secret holds"
        );
        self.bundle.send_replace(Some(all));
        self.held = Some(Arc::clone(contents));
    }

    /// One round; how long to wait for the next one if nothing happens.
    async fn round(&mut self) -> Duration {
        let renewed = self.renew().await;
        let injected = self.inject().await;
        let trouble = renewed.and(injected).err();
        self.tell(trouble.as_deref());
        if trouble.is_none() {
            self.failures = 0;
            return self.plan().map_or(Duration::MAX, |plan| plan.look_again);
        }
        let pause_s = RETRY_S
            .saturating_mul(1 << self.failures.min(10))
            .min(RETRY_MAX_S);
        self.failures = self.failures.saturating_add(1);
        Duration::from_secs(pause_s)
    }

    /// Writes until there is nothing to write.
    async fn renew(&mut self) -> Result<(), Trouble> {
        for _ in 0..WRITES_MAX {
            let Some(plan) = self.plan() else {
                let secret = &self.settings.secret;
                return Err(format!("cannot read Secret {secret}: {}", self.unread));
            };
            let held = self.held.is_some();
            let secret = &self.settings.secret;
            match self.seen.as_ref().and_then(|seen| seen.fault(secret, held)) {
                None => self.logged.contents.clear(),
                Some(fault) => {
                    self.status.count_failure();
                    if plan.step == Step::Rest {
                        return Err(fault);
                    }
                    if self.logged.contents.is_new(&fault) {
                        warn!(fault, "writing back what is served");
                    }
                }
            }
            if plan.step == Step::Rest {
                return Ok(());
            }
            self.carry_out(plan.step).await?;
        }
        let secret = &self.settings.secret;
        Err(format!(
            "Secret {secret} is changed by others again and again; who writes it?"
        ))
    }

    fn plan(&mut self) -> Option<Plan> {
        let seen = self.seen.as_ref()?;
        let now = self.started.elapsed();
        let contents = seen.good().map(|contents| &**contents);
        let stored = match contents {
            Some(contents) => Stored::Good(contents),
            None if seen.is_broken() => Stored::Broken,
            None => Stored::Nothing,
        };
        let newest = contents.and_then(|contents| contents.authorities().first());
        let newest = newest.map(|authority| authority.certificate.clone());
        let in_all = newest.filter(|ca| self.targets.iter().all(|target| target.trusts(ca)));
        let leaf = contents.and_then(|contents| contents.pair().cert.first().cloned());
        let situation = Situation {
            now_s: bootstrap::seconds(SystemTime::now()).unwrap_or(0),
            stored,
            held: self.held.as_deref(),
            renewal_asked: seen.asks_for_renewal(),
            names: &self.settings.maker.names,
            overlap: self.settings.overlap,
            standing: self.standing.observe(now, in_all),
            served: self.served.observe(now, leaf).unwrap_or_default(),
        };
        Some(situation.plan())
    }

    /// Says whether the server should be sent requests, and what went wrong.
    fn tell(&self, trouble: Option<&str>) {
        match trouble {
            Some(trouble) => {
                if self.logged.trouble.is_new(trouble) {
                    warn!(trouble, "the certificates need care; trying again");
                }
            }
            None => self.logged.trouble.clear(),
        }
        let Some(held) = &self.held else {
            let waiting = || format!("Secret {} has not been read yet", self.settings.secret);
            self.health
                .set_certificates(Some(trouble.map_or_else(waiting, str::to_owned)));
            return;
        };
        let problems = held.signer().map(|signer| {
            let each = self.targets.iter();
            let each = each.filter_map(|target| target.problem(&signer.certificate));
            each.collect::<Vec<_>>().join("; ")
        });
        self.health
            .set_certificates(problems.filter(|problems| !problems.is_empty()));
    }
}

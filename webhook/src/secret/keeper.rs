//! The one that acts: it watches the Secret and the targets, plans, writes, and says what is wrong.
//!
//! Whatever happened, the round is the same: take over what the Secret holds, carry out what is
//! planned, give the targets the bundle, tell whether all is well. A round that comes to nothing is
//! repeated with growing pauses, for ever; the watches have pauses of their own.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::stream::{BoxStream, SelectAll};
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::core::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use rustls::pki_types::CertificateDer;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::cluster::{self, Refusal, Store};
use super::contents::{Contents, ContentsError};
use super::plan::{Plan, Since, Situation, Step, Stored};
use super::targets::Target;
use super::{RENEW_ANNOTATION, RENEW_CA, Settings};
use crate::bootstrap;
use crate::readiness::{Bundle, Health};
use crate::tls::{CertificateStatus, LastFailure, Serving, Slot};

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

/// The Secret as it was read, and what is in it.
struct Seen {
    secret: Option<Secret>,
    contents: Result<Option<Arc<Contents>>, ContentsError>,
}

/// What a watch tells.
enum Event {
    Secret(Result<Option<Secret>, watcher::Error>),
    Target(usize, Result<Option<DynamicObject>, watcher::Error>),
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
        let mut events = self.events();
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

    fn events(&self) -> SelectAll<BoxStream<'static, Event>> {
        let name = self.settings.secret.name();
        let secrets = watcher::watch_object(self.store.api(), name).default_backoff();
        let mut all = SelectAll::new();
        all.push(secrets.map(Event::Secret).boxed());
        for (place, target) in self.targets.iter().enumerate() {
            let objects = watcher::watch_object(target.api(), target.name()).default_backoff();
            all.push(objects.map(move |it| Event::Target(place, it)).boxed());
        }
        all
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Secret(Ok(secret)) => {
                self.logged.watch.clear();
                self.see(secret);
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
        let data = secret.as_ref().and_then(|secret| secret.data.as_ref());
        let contents = match data.map_or(Ok(None), Contents::read) {
            // The same contents again need not be held twice.
            Ok(Some(new)) => match &self.held {
                Some(held) if **held == new => Ok(Some(Arc::clone(held))),
                _ => Ok(Some(Arc::new(new))),
            },
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        if let Ok(Some(contents)) = &contents {
            self.take_over(&Arc::clone(contents));
        }
        self.seen = Some(Seen { secret, contents });
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
            match self.fault_of_contents() {
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
        let stored = match &seen.contents {
            Ok(Some(contents)) => Stored::Good(contents),
            Ok(None) => Stored::Nothing,
            Err(_) => Stored::Broken,
        };
        let contents = match stored {
            Stored::Good(contents) => Some(contents),
            _ => None,
        };
        let newest = contents.and_then(|contents| contents.authorities().first());
        let newest = newest.map(|authority| authority.certificate.clone());
        let in_all = newest.filter(|ca| self.targets.iter().all(|target| target.trusts(ca)));
        let leaf = contents.and_then(|contents| contents.pair().cert.first().cloned());
        let situation = Situation {
            now_s: bootstrap::seconds(SystemTime::now()).unwrap_or(0),
            stored,
            held: self.held.as_deref(),
            renewal_asked: asks_for_renewal(seen.secret.as_ref()),
            names: &self.settings.maker.names,
            overlap: self.settings.overlap,
            standing: self.standing.observe(now, in_all),
            served: self.served.observe(now, leaf).unwrap_or_default(),
        };
        Some(situation.plan())
    }

    /// What is wrong with what the Secret holds, and what to do about it.
    fn fault_of_contents(&self) -> Option<Trouble> {
        let seen = self.seen.as_ref()?;
        let secret = &self.settings.secret;
        let (namespace, name) = (secret.namespace(), secret.name());
        let error = match (&seen.contents, &self.held) {
            (Err(error), _) => error,
            (Ok(None), Some(_)) if seen.secret.is_none() => {
                return Some(format!("Secret {secret} is gone"));
            }
            (Ok(None), Some(_)) => return Some(format!("Secret {secret} was emptied")),
            _ => return None,
        };
        Some(format!(
            "cannot use Secret {secret}: {error}; put it right, or remove what it holds, and a new \
             CA is made: kubectl -n {namespace} patch secret {name} --type=merge -p '{{\"data\":null}}'"
        ))
    }

    /// Makes what the step asks for and writes it.
    async fn carry_out(&mut self, step: Step) -> Result<(), Trouble> {
        let Some(seen) = &self.seen else {
            return Ok(());
        };
        let stored = seen.contents.as_ref().ok().and_then(Option::as_deref);
        let secret = &self.settings.secret;
        let now_s = bootstrap::seconds(SystemTime::now()).map_err(|error| error.to_string())?;
        let contents = self
            .settings
            .maker
            .after(step, stored, self.held.as_deref(), now_s)
            .map_err(|error| format!("cannot renew Secret {secret}: {error}"))?;
        let is_granted = matches!(step, Step::Found | Step::Announce | Step::Acknowledge);
        let written = match &seen.secret {
            Some(before) => self.store.replace(before, &contents, is_granted).await,
            None => self.store.create(&contents).await,
        };
        match written {
            Ok(written) => {
                info!(secret = secret.to_string(), ?step, "the Secret was written");
                self.see(Some(written));
                Ok(())
            }
            Err(Refusal::Outrun) => self.read_again().await,
            Err(Refusal::Forbidden(reason)) if seen.secret.is_none() => Err(format!(
                "Secret {secret} does not exist: {reason}; apply the installation again \
                 (examples/install/server.yaml), which has it, empty"
            )),
            Err(Refusal::Forbidden(reason)) => Err(format!(
                "cannot write Secret {secret}: {reason}; give the account the verb patch on it"
            )),
            Err(Refusal::Failed(reason)) => Err(format!("cannot write Secret {secret}: {reason}")),
        }
    }

    async fn read_again(&mut self) -> Result<(), Trouble> {
        match self.store.read().await {
            Ok(secret) => {
                self.see(secret);
                Ok(())
            }
            Err(Refusal::Outrun) => Ok(()),
            Err(Refusal::Forbidden(reason) | Refusal::Failed(reason)) => {
                let secret = &self.settings.secret;
                Err(format!("cannot read Secret {secret}: {reason}"))
            }
        }
    }

    /// Gives the bundle to every target that lacks it. What the Secret holds is read just before:
    /// a replica that lags behind must not put an old bundle in place of a new one.
    async fn inject(&mut self) -> Result<(), Trouble> {
        for _ in 0..WRITES_MAX {
            let Some(bundle) = self.stored_bundle() else {
                return Ok(());
            };
            if !self.targets.iter().any(|target| target.lacks(&bundle)) {
                return Ok(());
            }
            self.read_again().await?;
            let Some(bundle) = self.stored_bundle() else {
                return Ok(());
            };
            let mut result = Ok(());
            for target in &mut self.targets {
                result = result.and(target.inject(&bundle).await.map(drop));
            }
            if result.is_err() {
                let troubles = self.targets.iter().filter_map(Target::trouble);
                return Err(troubles.collect::<Vec<_>>().join("; "));
            }
        }
        Err("the CA bundles are changed by others again and again; who writes them?".to_owned())
    }

    fn stored_bundle(&self) -> Option<String> {
        let contents = self.seen.as_ref()?.contents.as_ref().ok()?.as_deref()?;
        Some(contents.bundle().to_owned())
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

fn asks_for_renewal(secret: Option<&Secret>) -> bool {
    let annotations = secret.and_then(|secret| secret.metadata.annotations.as_ref());
    annotations
        .and_then(|all| all.get(RENEW_ANNOTATION))
        .is_some_and(|what| what == RENEW_CA)
}

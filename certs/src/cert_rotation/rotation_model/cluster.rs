//! A Secret, targets, replicas and API servers, each with its own, possibly stale view of the others.

use super::super::apply_step::CertIssuer;
use super::super::contents::SecretContents;
use super::super::plan::{RotationState, RotationStep, StableSince, StoredState};
use super::super::tests::{NOW_S, cert_issuer};
use super::OVERLAP_S;
use crate::self_signed::DAY_S;
use rustls::pki_types::CertificateDer;
use std::sync::Arc;
use std::time::Duration;

/// Rounds after which all replicas must be idle.
const ROUNDS_MAX: u32 = 8;

/// Steps in a row after which two replicas must be reverting each other.
const CONFLICT_STEPS: u32 = 40;

pub(super) type CaCertificates = Vec<CertificateDer<'static>>;

/// A state and the time since which it exists. Its index in the history is its version.
#[derive(Clone, Debug)]
pub(super) struct Revision<T> {
    at_s: u64,
    pub(super) state: T,
}

#[derive(Clone, Debug)]
pub(super) struct SecretState {
    pub(super) contents: Option<Arc<SecretContents>>,
    pub(super) renewal_requested: bool,
}

/// A target: `None` is absent; no CAs is no bundle.
pub(super) type TargetBundle = Option<CaCertificates>;

/// An in-flight write.
#[derive(Debug)]
pub(super) enum PendingWrite {
    Secret {
        version: usize,
        after: SecretState,
    },
    Target {
        target: usize,
        version: usize,
        bundle: CaCertificates,
    },
}

pub(super) struct Replica {
    pub(super) issuer: CertIssuer,
    is_running: bool,
    /// The version of the Secret that the replica uses, and the one that its watch delivered last.
    observed: Option<usize>,
    watched: usize,
    targets: Vec<usize>,
    pub(super) active_contents: Option<Arc<SecretContents>>,
    ca_injected_since: StableSince<CertificateDer<'static>>,
    served_since: StableSince<CertificateDer<'static>>,
    pub(super) pending_write: Option<PendingWrite>,
}

impl Replica {
    fn new(place: usize, targets: usize) -> Self {
        let own = format!("r{}", place % 2);
        Self {
            issuer: cert_issuer(&["localhost", &own]),
            is_running: true,
            observed: None,
            watched: 0,
            targets: vec![0; targets],
            active_contents: None,
            ca_injected_since: StableSince::default(),
            served_since: StableSince::default(),
            pending_write: None,
        }
    }
}

pub(super) struct RotationCluster {
    now_s: u64,
    pub(super) secret: Vec<Revision<SecretState>>,
    pub(super) targets: Vec<Vec<Revision<TargetBundle>>>,
    pub(super) replicas: Vec<Replica>,
    /// For each API server, the version of each target that it uses.
    servers: Vec<Vec<usize>>,
    pub(super) secret_writes: usize,
    pub(super) target_writes: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A replica observes every change and executes its plan.
    Run(usize),
    AdvanceTime(u64),
    Jump(u64),
    Watch(usize),
    WatchTarget(usize, usize),
    Serve(usize, usize),
    Decide(usize),
    CommitWrite(usize),
    Crash(usize),
    Renew,
    Remove(usize),
    Make(usize),
}

impl RotationCluster {
    pub(super) fn new(replicas: usize, targets: usize, servers: usize) -> Self {
        let nothing = SecretState {
            contents: None,
            renewal_requested: false,
        };
        let absent = vec![Revision {
            at_s: NOW_S,
            state: None,
        }];
        Self {
            now_s: NOW_S,
            secret: vec![Revision {
                at_s: NOW_S,
                state: nothing,
            }],
            targets: vec![absent; targets],
            replicas: (0..replicas)
                .map(|place| Replica::new(place, targets))
                .collect(),
            servers: vec![vec![0; targets]; servers],
            secret_writes: 0,
            target_writes: 0,
        }
    }

    pub(super) fn apply(&mut self, action: &Action) {
        let (replicas, targets, servers) =
            (self.replicas.len(), self.targets.len(), self.servers.len());
        match *action {
            Action::Run(place) => self.run(place % replicas),
            Action::AdvanceTime(seconds) => self.advance_time(seconds),
            Action::Jump(days) => {
                self.settle();
                self.advance_time(days * DAY_S);
            }
            Action::Watch(place) => self.deliver_watch_event(place % replicas),
            Action::WatchTarget(place, target) => {
                let (replica, target) = (&mut self.replicas[place % replicas], target % targets);
                let last = self.targets[target].len() - 1;
                replica.targets[target] = last.min(replica.targets[target] + 1);
            }
            Action::Serve(server, target) => {
                let target = target % targets;
                let last = self.targets[target].len() - 1;
                let view = &mut self.servers[server % servers][target];
                *view = last.min(*view + 1);
            }
            Action::Decide(place) => self.plan_write(place % replicas),
            Action::CommitWrite(place) => self.commit_write(place % replicas),
            Action::Crash(place) => self.crash(place % replicas),
            Action::Renew => {
                let mut what = self.secret.last().unwrap().state.clone();
                what.renewal_requested = true;
                self.write_secret(what);
            }
            Action::Remove(target) => self.write_target(target % targets, None),
            Action::Make(target) => {
                let target = target % targets;
                if self.targets[target].last().unwrap().state.is_none() {
                    self.write_target(target, Some(Vec::new()));
                }
            }
        }
    }

    /// Limits staleness to the overlap: a view that would exceed it advances to the next version
    /// first.
    fn advance_time(&mut self, seconds: u64) {
        let then_s = self.now_s + seconds;
        let late = |at_s: u64| at_s + OVERLAP_S <= then_s;
        for place in 0..self.replicas.len() {
            while let Some(next) = self.secret.get(self.replicas[place].watched + 1)
                && late(next.at_s)
            {
                self.deliver_watch_event(place);
            }
            for (target, history) in self.targets.iter().enumerate() {
                let view = &mut self.replicas[place].targets[target];
                while history.get(*view + 1).is_some_and(|next| late(next.at_s)) {
                    *view += 1;
                }
            }
        }
        for server in &mut self.servers {
            for (view, history) in server.iter_mut().zip(&self.targets) {
                while history.get(*view + 1).is_some_and(|next| late(next.at_s)) {
                    *view += 1;
                }
            }
        }
        self.check();
        self.now_s = then_s;
    }

    /// The watch of a replica delivers the next version, which may be older than the one it has read.
    fn deliver_watch_event(&mut self, place: usize) {
        let replica = &mut self.replicas[place];
        replica.watched = (self.secret.len() - 1).min(replica.watched + 1);
        let version = replica.watched;
        self.observe(place, version);
    }

    fn observe(&mut self, place: usize, version: usize) {
        let replica = &mut self.replicas[place];
        if !replica.is_running {
            return;
        }
        replica.observed = Some(version);
        if let Some(contents) = &self.secret[version].state.contents {
            replica.active_contents = Some(Arc::clone(contents));
        }
    }

    /// A replica plans with its view and sends a write.
    fn plan_write(&mut self, place: usize) {
        let now = Duration::from_secs(self.now_s);
        let replica = &mut self.replicas[place];
        let (true, Some(version), None) =
            (replica.is_running, replica.observed, &replica.pending_write)
        else {
            return;
        };
        let stores = &self.secret[version].state;
        let contents = stores.contents.as_deref();
        let views = self.targets.iter().zip(&replica.targets);
        let known: Vec<&TargetBundle> =
            views.map(|(history, view)| &history[*view].state).collect();
        let newest = contents.map(|contents| contents.cas()[0].certificate.clone());
        let in_all = newest.filter(|ca| {
            known
                .iter()
                .all(|target| target.as_ref().is_none_or(|all| all.contains(ca)))
        });
        let leaf = contents.map(|contents| contents.certified_key().cert[0].clone());
        let situation = RotationState {
            now_s: self.now_s,
            stored: contents.map_or(StoredState::Empty, StoredState::Valid),
            active: replica.active_contents.as_deref(),
            renewal_requested: stores.renewal_requested,
            names: &replica.issuer.names,
            overlap: Duration::from_secs(OVERLAP_S),
            ca_injected_for: replica.ca_injected_since.observe(now, in_all),
            served_for: replica.served_since.observe(now, leaf).unwrap_or_default(),
        };
        let step = situation.plan().step;
        if step != RotationStep::Wait {
            let held = replica.active_contents.as_deref();
            let made = replica
                .issuer
                .apply(step, contents, held, self.now_s)
                .unwrap();
            let granted = matches!(
                step,
                RotationStep::Create | RotationStep::AnnounceCa | RotationStep::Acknowledge
            );
            let after = SecretState {
                contents: Some(Arc::new(made)),
                renewal_requested: stores.renewal_requested && !granted,
            };
            replica.pending_write = Some(PendingWrite::Secret { version, after });
            return;
        }
        let bundle = contents.map(ca_certificates).unwrap_or_default();
        let lacks = |target: &&TargetBundle| target.as_ref().is_some_and(|all| *all != bundle);
        let Some(target) = known.iter().position(lacks) else {
            return;
        };
        // The target was read before the Secret is.
        let version = replica.targets[target];
        self.observe(place, self.secret.len() - 1);
        let read = self.secret.last().unwrap().state.contents.as_deref();
        let bundle = read.map(ca_certificates).unwrap_or_default();
        self.replicas[place].pending_write = Some(PendingWrite::Target {
            target,
            version,
            bundle,
        });
    }

    /// The write of a replica arrives at the API server.
    fn commit_write(&mut self, place: usize) {
        match self.replicas[place].pending_write.take() {
            Some(PendingWrite::Secret { version, after }) => {
                if version + 1 == self.secret.len() {
                    self.secret_writes += 1;
                    self.write_secret(after);
                }
                self.observe(place, self.secret.len() - 1);
            }
            Some(PendingWrite::Target {
                target,
                version,
                bundle,
            }) => {
                if version + 1 == self.targets[target].len() {
                    self.target_writes += 1;
                    self.write_target(target, Some(bundle));
                }
                self.replicas[place].targets[target] = self.targets[target].len() - 1;
            }
            None => {}
        }
    }

    /// The replica restarts without its memory; its in-flight write may still arrive.
    fn crash(&mut self, place: usize) {
        let targets = self
            .targets
            .iter()
            .map(|history| history.len() - 1)
            .collect();
        let old = &mut self.replicas[place];
        let back = Replica {
            is_running: !old.is_running,
            watched: self.secret.len() - 1,
            targets,
            pending_write: old.pending_write.take(),
            ..Replica::new(place, 0)
        };
        *old = back;
        self.observe(place, self.secret.len() - 1);
    }

    fn write_secret(&mut self, what: SecretState) {
        self.secret.push(Revision {
            at_s: self.now_s,
            state: what,
        });
    }

    fn write_target(&mut self, target: usize, what: TargetBundle) {
        self.targets[target].push(Revision {
            at_s: self.now_s,
            state: what,
        });
    }

    /// All replicas restart, observe every change and execute their plans; returns the number of
    /// writes.
    pub(super) fn settle(&mut self) -> usize {
        let before = self.secret_writes + self.target_writes;
        for _ in 0..ROUNDS_MAX {
            self.round();
            self.advance_time(OVERLAP_S);
        }
        self.secret_writes + self.target_writes - before
    }

    fn round(&mut self) {
        for place in 0..self.replicas.len() {
            if !self.replicas[place].is_running {
                self.crash(place);
            }
            self.run(place);
        }
    }

    fn run(&mut self, place: usize) {
        for tries in 0.. {
            assert!(
                tries < CONFLICT_STEPS,
                "replica {place} never comes to rest"
            );
            // In-flight writes arrive first.
            self.commit_write(place);
            self.check();
            self.replicas[place].watched = self.secret.len() - 1;
            self.observe(place, self.secret.len() - 1);
            let views = self.replicas[place].targets.iter_mut();
            for (view, history) in views.zip(&self.targets) {
                *view = history.len() - 1;
            }
            self.plan_write(place);
            if self.replicas[place].pending_write.is_none() {
                break;
            }
        }
    }

    /// Checks that every bundle that an API server uses trusts every served certificate.
    #[track_caller]
    pub(super) fn check(&self) {
        let held = self.replicas.iter().filter(|replica| replica.is_running);
        for contents in held.filter_map(|replica| replica.active_contents.as_ref()) {
            assert!(!contents.validity().has_expired(self.now_s));
            let signer = &contents.signer().unwrap().certificate;
            for (server, views) in self.servers.iter().enumerate() {
                for (target, view) in views.iter().enumerate() {
                    let trusted = self.targets[target][*view].state.as_ref();
                    let trusted = trusted.filter(|all| !all.is_empty());
                    assert!(
                        trusted.is_none_or(|all| all.contains(signer)),
                        "API server {server} does not trust the served certificate, by target {target}"
                    );
                }
            }
        }
    }
}

pub(super) fn ca_certificates(contents: &SecretContents) -> CaCertificates {
    let all = contents.cas().iter();
    all.map(|authority| authority.certificate.clone()).collect()
}

//! A Secret, targets, replicas and API servers, each with a view of its own of the others.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use super::super::contents::Contents;
use super::super::plan::{Since, Situation, Step, Stored};
use super::super::steps::Maker;
use super::super::tests::{NOW_S, maker};
use super::OVERLAP_S;
use crate::bootstrap::DAY_S;

/// Rounds after which nobody has anything to do.
const ROUNDS: u32 = 8;

/// Steps in one go after which two replicas must be fighting.
const FIGHT: u32 = 40;

pub(super) type Authorities = Vec<CertificateDer<'static>>;

/// A state of something, and when it came to be. Its place in the history is its version.
#[derive(Clone, Debug)]
pub(super) struct Version<T> {
    at_s: u64,
    pub(super) what: T,
}

#[derive(Clone, Debug)]
pub(super) struct Stores {
    pub(super) contents: Option<Arc<Contents>>,
    pub(super) asked: bool,
}

/// A target: `None` is absent; no authorities is no bundle.
pub(super) type TargetState = Option<Authorities>;

/// A write on its way.
#[derive(Debug)]
pub(super) enum Pending {
    Secret {
        version: usize,
        after: Stores,
    },
    Target {
        target: usize,
        version: usize,
        bundle: Authorities,
    },
}

pub(super) struct Replica {
    pub(super) maker: Maker,
    lives: bool,
    /// The version of the Secret that it goes by, and the one that its watch has come to.
    seen: Option<usize>,
    watched: usize,
    targets: Vec<usize>,
    pub(super) held: Option<Arc<Contents>>,
    standing: Since<CertificateDer<'static>>,
    served: Since<CertificateDer<'static>>,
    pub(super) pending: Option<Pending>,
}

impl Replica {
    fn new(place: usize, targets: usize) -> Self {
        let own = format!("r{}", place % 2);
        Self {
            maker: maker(&["localhost", &own]),
            lives: true,
            seen: None,
            watched: 0,
            targets: vec![0; targets],
            held: None,
            standing: Since::default(),
            served: Since::default(),
            pending: None,
        }
    }
}

pub(super) struct World {
    now_s: u64,
    pub(super) secret: Vec<Version<Stores>>,
    pub(super) targets: Vec<Vec<Version<TargetState>>>,
    pub(super) replicas: Vec<Replica>,
    /// For each API server the version of each target that it goes by.
    servers: Vec<Vec<usize>>,
    pub(super) secret_writes: usize,
    pub(super) target_writes: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A replica hears of everything and does what it wants to do.
    Run(usize),
    Pass(u64),
    Jump(u64),
    Watch(usize),
    WatchTarget(usize, usize),
    Serve(usize, usize),
    Decide(usize),
    Land(usize),
    Crash(usize),
    Renew,
    Remove(usize),
    Make(usize),
}

impl World {
    pub(super) fn new(replicas: usize, targets: usize, servers: usize) -> Self {
        let nothing = Stores {
            contents: None,
            asked: false,
        };
        let absent = vec![Version {
            at_s: NOW_S,
            what: None,
        }];
        Self {
            now_s: NOW_S,
            secret: vec![Version {
                at_s: NOW_S,
                what: nothing,
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

    pub(super) fn act(&mut self, action: &Action) {
        let (replicas, targets, servers) =
            (self.replicas.len(), self.targets.len(), self.servers.len());
        match *action {
            Action::Run(place) => self.run(place % replicas),
            Action::Pass(seconds) => self.pass(seconds),
            Action::Jump(days) => {
                self.settle();
                self.pass(days * DAY_S);
            }
            Action::Watch(place) => self.watch(place % replicas),
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
            Action::Decide(place) => self.decide(place % replicas),
            Action::Land(place) => self.land(place % replicas),
            Action::Crash(place) => self.crash(place % replicas),
            Action::Renew => {
                let mut what = self.secret.last().unwrap().what.clone();
                what.asked = true;
                self.write_secret(what);
            }
            Action::Remove(target) => self.write_target(target % targets, None),
            Action::Make(target) => {
                let target = target % targets;
                if self.targets[target].last().unwrap().what.is_none() {
                    self.write_target(target, Some(Vec::new()));
                }
            }
        }
    }

    /// Nobody lags by the overlap: who would is told of the next version before the time passes.
    fn pass(&mut self, seconds: u64) {
        let then_s = self.now_s + seconds;
        let late = |at_s: u64| at_s + OVERLAP_S <= then_s;
        for place in 0..self.replicas.len() {
            while let Some(next) = self.secret.get(self.replicas[place].watched + 1)
                && late(next.at_s)
            {
                self.watch(place);
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

    /// The watch of a replica comes to the next version, which may be older than what it has read.
    fn watch(&mut self, place: usize) {
        let replica = &mut self.replicas[place];
        replica.watched = (self.secret.len() - 1).min(replica.watched + 1);
        let version = replica.watched;
        self.see(place, version);
    }

    fn see(&mut self, place: usize, version: usize) {
        let replica = &mut self.replicas[place];
        if !replica.lives {
            return;
        }
        replica.seen = Some(version);
        if let Some(contents) = &self.secret[version].what.contents {
            replica.held = Some(Arc::clone(contents));
        }
    }

    /// A replica plans by what it knows and sends a write.
    fn decide(&mut self, place: usize) {
        let now = Duration::from_secs(self.now_s);
        let replica = &mut self.replicas[place];
        let (true, Some(version), None) = (replica.lives, replica.seen, &replica.pending) else {
            return;
        };
        let stores = &self.secret[version].what;
        let contents = stores.contents.as_deref();
        let views = self.targets.iter().zip(&replica.targets);
        let known: Vec<&TargetState> = views.map(|(history, view)| &history[*view].what).collect();
        let newest = contents.map(|contents| contents.authorities()[0].certificate.clone());
        let in_all = newest.filter(|ca| {
            known
                .iter()
                .all(|target| target.as_ref().is_none_or(|all| all.contains(ca)))
        });
        let leaf = contents.map(|contents| contents.pair().cert[0].clone());
        let situation = Situation {
            now_s: self.now_s,
            stored: contents.map_or(Stored::Nothing, Stored::Good),
            held: replica.held.as_deref(),
            renewal_asked: stores.asked,
            names: &replica.maker.names,
            overlap: Duration::from_secs(OVERLAP_S),
            standing: replica.standing.observe(now, in_all),
            served: replica.served.observe(now, leaf).unwrap_or_default(),
        };
        let step = situation.plan().step;
        if step != Step::Rest {
            let held = replica.held.as_deref();
            let made = replica
                .maker
                .after(step, contents, held, self.now_s)
                .unwrap();
            let granted = matches!(step, Step::Found | Step::Announce | Step::Acknowledge);
            let after = Stores {
                contents: Some(Arc::new(made)),
                asked: stores.asked && !granted,
            };
            replica.pending = Some(Pending::Secret { version, after });
            return;
        }
        let bundle = contents.map(authorities).unwrap_or_default();
        let lacks = |target: &&TargetState| target.as_ref().is_some_and(|all| *all != bundle);
        let Some(target) = known.iter().position(lacks) else {
            return;
        };
        // The version of the target was read before the Secret is.
        let version = replica.targets[target];
        self.see(place, self.secret.len() - 1);
        let read = self.secret.last().unwrap().what.contents.as_deref();
        let bundle = read.map(authorities).unwrap_or_default();
        self.replicas[place].pending = Some(Pending::Target {
            target,
            version,
            bundle,
        });
    }

    /// The write of a replica comes to the API server.
    fn land(&mut self, place: usize) {
        match self.replicas[place].pending.take() {
            Some(Pending::Secret { version, after }) => {
                if version + 1 == self.secret.len() {
                    self.secret_writes += 1;
                    self.write_secret(after);
                }
                self.see(place, self.secret.len() - 1);
            }
            Some(Pending::Target {
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

    /// The replica is gone, with its memory; what it has sent may still arrive. Or it comes back.
    fn crash(&mut self, place: usize) {
        let targets = self
            .targets
            .iter()
            .map(|history| history.len() - 1)
            .collect();
        let old = &mut self.replicas[place];
        let back = Replica {
            lives: !old.lives,
            watched: self.secret.len() - 1,
            targets,
            pending: old.pending.take(),
            ..Replica::new(place, 0)
        };
        *old = back;
        self.see(place, self.secret.len() - 1);
    }

    fn write_secret(&mut self, what: Stores) {
        self.secret.push(Version {
            at_s: self.now_s,
            what,
        });
    }

    fn write_target(&mut self, target: usize, what: TargetState) {
        self.targets[target].push(Version {
            at_s: self.now_s,
            what,
        });
    }

    /// All come back, hear of everything, and do what they want to do; how many writes there were.
    pub(super) fn settle(&mut self) -> usize {
        let before = self.secret_writes + self.target_writes;
        for _ in 0..ROUNDS {
            self.round();
            self.pass(OVERLAP_S);
        }
        self.secret_writes + self.target_writes - before
    }

    fn round(&mut self) {
        for place in 0..self.replicas.len() {
            if !self.replicas[place].lives {
                self.crash(place);
            }
            self.run(place);
        }
    }

    fn run(&mut self, place: usize) {
        for tries in 0.. {
            assert!(tries < FIGHT, "replica {place} never comes to rest");
            // What is on its way comes first.
            self.land(place);
            self.check();
            self.replicas[place].watched = self.secret.len() - 1;
            self.see(place, self.secret.len() - 1);
            let views = self.replicas[place].targets.iter_mut();
            for (view, history) in views.zip(&self.targets) {
                *view = history.len() - 1;
            }
            self.decide(place);
            if self.replicas[place].pending.is_none() {
                break;
            }
        }
    }

    /// Every bundle that an API server goes by trusts every pair that is served.
    #[track_caller]
    pub(super) fn check(&self) {
        let held = self.replicas.iter().filter(|replica| replica.lives);
        for contents in held.filter_map(|replica| replica.held.as_ref()) {
            assert!(!contents.validity().has_ended(self.now_s));
            let signer = &contents.signer().unwrap().certificate;
            for (server, views) in self.servers.iter().enumerate() {
                for (target, view) in views.iter().enumerate() {
                    let trusted = self.targets[target][*view].what.as_ref();
                    let trusted = trusted.filter(|all| !all.is_empty());
                    assert!(
                        trusted.is_none_or(|all| all.contains(signer)),
                        "API server {server} does not trust what is served, by target {target}"
                    );
                }
            }
        }
    }
}

pub(super) fn authorities(contents: &Contents) -> Authorities {
    let all = contents.authorities().iter();
    all.map(|authority| authority.certificate.clone()).collect()
}

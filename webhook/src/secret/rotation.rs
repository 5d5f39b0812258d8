//! Rotations with any number of replicas and API servers that hear of each other late, crash and
//! come back: what an API server trusts is always what a replica serves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use rustls::pki_types::CertificateDer;

use super::contents::Contents;
use super::plan::{Since, Situation, Stored};
use super::tests::{NOW_S, maker};
use super::*;
use crate::bootstrap::DAY_S;

const OVERLAP_S: u64 = 600;

/// Rounds after which nobody has anything to do.
const ROUNDS: u32 = 8;

/// Steps in one go after which two replicas must be fighting.
const FIGHT: u32 = 40;

type Authorities = Vec<CertificateDer<'static>>;

/// A state of something, and when it came to be. Its place in the history is its version.
#[derive(Clone, Debug)]
struct Version<T> {
    at_s: u64,
    what: T,
}

#[derive(Clone, Debug)]
struct Stores {
    contents: Option<Arc<Contents>>,
    asked: bool,
}

/// A target: `None` is absent; no authorities is no bundle.
type TargetState = Option<Authorities>;

/// A write on its way.
#[derive(Debug)]
enum Pending {
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

struct Replica {
    maker: Maker,
    lives: bool,
    /// The version of the Secret that it goes by, and the one that its watch has come to.
    seen: Option<usize>,
    watched: usize,
    targets: Vec<usize>,
    held: Option<Arc<Contents>>,
    standing: Since<CertificateDer<'static>>,
    served: Since<CertificateDer<'static>>,
    pending: Option<Pending>,
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

struct World {
    now_s: u64,
    secret: Vec<Version<Stores>>,
    targets: Vec<Vec<Version<TargetState>>>,
    replicas: Vec<Replica>,
    /// For each API server the version of each target that it goes by.
    servers: Vec<Vec<usize>>,
    secret_writes: usize,
    target_writes: usize,
}

#[derive(Clone, Debug)]
enum Action {
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

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..4_usize).prop_map(Action::Run),
        2 => (1..OVERLAP_S).prop_map(Action::Pass),
        3 => Just(Action::Pass(OVERLAP_S)),
        1 => (1..20_u64).prop_map(Action::Jump),
        4 => (0..4_usize).prop_map(Action::Watch),
        3 => (0..4_usize, 0..2_usize).prop_map(|(replica, target)| Action::WatchTarget(replica, target)),
        3 => (0..3_usize, 0..2_usize).prop_map(|(server, target)| Action::Serve(server, target)),
        8 => (0..4_usize).prop_map(Action::Decide),
        6 => (0..4_usize).prop_map(Action::Land),
        1 => (0..4_usize).prop_map(Action::Crash),
        2 => Just(Action::Renew),
        1 => (0..2_usize).prop_map(Action::Remove),
        2 => (0..2_usize).prop_map(Action::Make),
    ]
}

impl World {
    fn new(replicas: usize, targets: usize, servers: usize) -> Self {
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

    fn act(&mut self, action: &Action) {
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
    fn settle(&mut self) -> usize {
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
    fn check(&self) {
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

fn authorities(contents: &Contents) -> Authorities {
    let all = contents.authorities().iter();
    all.map(|authority| authority.certificate.clone()).collect()
}

fn run([replicas, targets, servers]: [usize; 3], is_settled: bool, actions: &[Action]) {
    let mut world = World::new(replicas, targets, servers);
    if is_settled {
        for target in 0..targets {
            world.act(&Action::Make(target));
        }
        world.settle();
    }
    for action in actions {
        world.act(action);
        world.check();
    }
    for target in 0..targets {
        world.act(&Action::Make(target));
    }
    world.settle();
    assert_eq!(world.settle(), 0, "writes go on where nothing changes");

    let stored = world.secret.last().unwrap();
    let contents = stored.what.contents.as_ref().unwrap();
    assert!(!stored.what.asked);
    assert_eq!(contents.authorities().len(), 1);
    for replica in &world.replicas {
        assert_eq!(replica.held.as_deref(), Some(&**contents));
        assert!(
            replica
                .maker
                .names
                .iter()
                .all(|name| contents.has_name(name))
        );
    }
    for history in &world.targets {
        assert_eq!(history.last().unwrap().what, Some(authorities(contents)));
    }
    let count = |is: fn(&Action) -> bool| actions.iter().filter(|action| is(action)).count();
    let renewals = count(|action| matches!(action, Action::Renew));
    let jumps = count(|action| matches!(action, Action::Jump(_)));
    // Found, both names, three steps and an acknowledgement a renewal, and as much a jump.
    let most = 3 + 4 * (renewals + jumps);
    assert!(
        world.secret_writes <= most,
        "{} writes of the Secret",
        world.secret_writes
    );
    let made = count(|action| matches!(action, Action::Make(_))) + targets;
    let most = made + targets * (most + 1);
    assert!(
        world.target_writes <= most,
        "{} writes of targets",
        world.target_writes
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_served_is_trusted(
        replicas in 1..=4_usize,
        targets in 1..=2_usize,
        servers in 1..=3_usize,
        is_settled in any::<bool>(),
        actions in vec(action(), 0..120),
    ) {
        run([replicas, targets, servers], is_settled, &actions);
    }
}

#[test]
fn a_rotation_asked_for_is_completed() {
    let (make, renew) = (Action::Make(0), Action::Renew);
    let mut world = World::new(2, 1, 1);
    world.act(&make);
    world.settle();
    let first = Arc::clone(world.replicas[0].held.as_ref().unwrap());
    world.act(&renew);
    // Announced, told, issued, retired, told.
    assert_eq!(world.settle(), 5);
    let second = world.replicas[0].held.as_ref().unwrap();
    assert_ne!(second.authorities(), first.authorities());
}

/// A world of two replicas in which one has sent a bundle to the target and the other has rotated
/// the CA meanwhile, and who sent what.
fn with_a_late_bundle() -> World {
    let mut world = World::new(2, 1, 1);
    world.settle();
    world.act(&Action::Make(0));
    world.act(&Action::WatchTarget(1, 0));
    world.act(&Action::Decide(1));
    assert!(matches!(
        world.replicas[1].pending,
        Some(Pending::Target { .. })
    ));
    world.act(&Action::Renew);
    for _ in 0..3 {
        world.act(&Action::Run(0));
        world.act(&Action::Pass(OVERLAP_S));
    }
    assert_eq!(
        world
            .secret
            .last()
            .unwrap()
            .what
            .contents
            .as_ref()
            .unwrap()
            .authorities()
            .len(),
        1
    );
    world
}

#[test]
fn a_bundle_that_arrives_late_takes_the_place_of_none() {
    let mut world = with_a_late_bundle();
    let before = world.targets[0].len();
    world.act(&Action::Land(1));
    assert_eq!(world.targets[0].len(), before);
    world.act(&Action::Serve(0, 0));
    world.check();
}

#[test]
fn a_replica_that_lags_injects_what_the_secret_holds_now() {
    let mut world = World::new(2, 1, 1);
    world.act(&Action::Make(0));
    world.settle();
    world.act(&Action::Renew);
    world.act(&Action::Run(0));
    // It has not heard of the new CA, and sees a bundle that is not the one it knows.
    world.act(&Action::WatchTarget(1, 0));
    world.act(&Action::Decide(1));
    if let Some(Pending::Target { bundle, .. }) = &world.replicas[1].pending {
        assert_eq!(bundle.len(), 2);
    } else {
        panic!("it wants to write the target");
    }
    let before = world.target_writes;
    world.act(&Action::Land(1));
    world.act(&Action::Run(0));
    assert_eq!(world.target_writes, before + 1);
}

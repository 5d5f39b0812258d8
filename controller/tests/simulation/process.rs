//! A controller process: its reconciler, its watches, and the results on their way to it.

use crate::api::Api;
use crate::decision_log::DecisionLogCheck;
use crate::declared_jobs::known_kind;
use crate::fields::text;
use crate::jobs::JOB;
use crate::quota::Limits;
use lockkeeper_controller::{Input, Kind, ObjectKey, Reconciler, Settings, WriteId, WriteResult};
use lockkeeper_testkit::Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// The watch of one kind.
#[derive(Default)]
pub struct SimulatedWatch {
    /// Of an incomplete list: the objects still to deliver, and the names delivered so far.
    listing: Option<(VecDeque<Rc<Value>>, BTreeSet<ObjectKey>)>,
    /// The position in the log up to which events were delivered.
    log_position: usize,
    known: BTreeSet<ObjectKey>,
}

impl SimulatedWatch {
    /// Breaks the watch: all objects are listed again.
    pub fn relist(&mut self, api: &Api, kind: Kind) {
        let all = api.all(kind).filter(|(_, it)| is_watched(kind, it));
        let objects = all.map(|(_, it)| Rc::clone(it)).collect();
        self.listing = Some((objects, BTreeSet::new()));
        self.log_position = api.log(kind).len();
    }

    /// Whether it has an event to deliver.
    pub fn is_behind(&self, api: &Api, kind: Kind) -> bool {
        self.listing.is_some() || self.log_position < api.log(kind).len()
    }

    /// The next event; one at a time except at the end of a list.
    fn next(&mut self, api: &Api, kind: Kind) -> Vec<WatchEvent> {
        if let Some((objects, names)) = &mut self.listing {
            if let Some(object) = objects.pop_front() {
                let name = crate::fields::object_key(&object);
                names.insert(name.clone());
                // Counts as delivered even if the list is never completed.
                self.known.insert(name.clone());
                return vec![WatchEvent::Applied(name, object)];
            }
            let names = std::mem::take(names);
            let before = std::mem::replace(&mut self.known, names);
            self.listing = None;
            let lost = before.into_iter().filter(|it| !self.known.contains(it));
            let mut events: Vec<WatchEvent> = lost.map(WatchEvent::Deleted).collect();
            events.push(WatchEvent::Listed);
            return events;
        }
        let Some(event) = api.log(kind).get(self.log_position) else {
            return Vec::new();
        };
        self.log_position += 1;
        match &event.object {
            Some(object) if is_watched(kind, object) => {
                self.known.insert(event.name.clone());
                vec![WatchEvent::Applied(event.name.clone(), Rc::clone(object))]
            }
            _ if self.known.remove(&event.name) => vec![WatchEvent::Deleted(event.name.clone())],
            _ => Vec::new(),
        }
    }
}

/// An event of a watch.
pub enum WatchEvent {
    Applied(ObjectKey, Rc<Value>),
    Deleted(ObjectKey),
    Listed,
}

/// Jobs are watched by their label.
fn is_watched(kind: Kind, object: &Value) -> bool {
    !matches!(kind, Kind::Job(_))
        || object["metadata"]["labels"]
            .get("lockkeeper.dev/queue-name")
            .is_some()
}

/// The input of an object; of a Job, as a job of the declared kind if there is one.
fn applied(api: &Api, kind: Kind, name: ObjectKey, object: &Value) -> Input {
    match &api.declared {
        Some(declared) if kind == JOB => {
            let kind = known_kind(api.declared.as_ref(), kind);
            Input::applied_with(declared.kinds(), kind, name, declared.declared(object))
        }
        _ => Input::applied(kind, name, object.clone()),
    }
}

pub struct ControllerProcess {
    pub number: u64,
    pub reconciler: Reconciler,
    pub decision_log: DecisionLogCheck,
    pub watches: BTreeMap<Kind, SimulatedWatch>,
    /// The last delivered version of each object.
    pub view: BTreeMap<(Kind, ObjectKey), Rc<Value>>,
    pub write_results: Vec<(WriteId, WriteResult)>,
    pub wake_at_ms: Option<i64>,
    /// Whether an input was handled since the last poll.
    pub has_new_input: bool,
    pub is_leading: bool,
}

impl ControllerProcess {
    pub fn new(number: u64, settings: Settings, api: &Api) -> Self {
        let mut watches = BTreeMap::new();
        let jobs = settings.job_kinds.iter().map(|at| Kind::Job(*at));
        let pod_groups = settings.has_pod_groups.then_some(Kind::PodGroup);
        for kind in Kind::FIXED.into_iter().chain(jobs).chain(pod_groups) {
            let mut watch = SimulatedWatch::default();
            watch.relist(api, kind);
            watches.insert(kind, watch);
        }
        let mut settings = settings;
        if api.declared.is_some() {
            settings.job_kinds.retain(|at| Kind::Job(*at) != JOB);
        }
        let mut reconciler = Reconciler::new(settings.clone());
        if let Some(declared) = &api.declared {
            reconciler.handle_input(api.now_ms, declared.declare());
        }
        Self {
            number,
            decision_log: DecisionLogCheck::new(&settings),
            reconciler,
            watches,
            view: BTreeMap::new(),
            write_results: Vec::new(),
            wake_at_ms: None,
            has_new_input: false,
            is_leading: false,
        }
    }

    /// Whether the process has observed all writes up to a version.
    pub fn has_observed(&self, api: &Api, until: u64) -> bool {
        self.watches.iter().all(|(kind, watch)| {
            let next = api.log(*kind).get(watch.log_position);
            watch.listing.is_none() && next.is_none_or(|it| it.version > until)
        })
    }

    /// The newest version up to which the process has observed all changes.
    pub fn observed_version(&self, api: &Api) -> u64 {
        let observed = self.watches.iter().map(|(kind, watch)| {
            let next = api.log(*kind).get(watch.log_position);
            let last = next.map_or(api.version(), |it| it.version - 1);
            if watch.listing.is_some() { 0 } else { last }
        });
        observed.min().unwrap_or_default()
    }

    /// The kinds with events to deliver.
    pub fn kinds_behind(&self, api: &Api) -> Vec<Kind> {
        let watches = self.watches.iter();
        let behind = watches.filter(|(kind, it)| it.is_behind(api, **kind));
        behind.map(|(kind, _)| *kind).collect()
    }

    /// Handles the next event of a watch, and returns its description.
    pub fn handle_next_event(&mut self, api: &Api, kind: Kind) -> Vec<String> {
        let events = self.watches.get_mut(&kind).unwrap().next(api, kind);
        let mut lines = Vec::new();
        for event in events {
            let (line, input) = match event {
                WatchEvent::Applied(name, object) => {
                    let version = text(&object, "/metadata/resourceVersion");
                    let line = format!("sees {kind:?} {name} at {version}");
                    self.view.insert((kind, name.clone()), Rc::clone(&object));
                    (line, applied(api, kind, name, &object))
                }
                WatchEvent::Deleted(name) => {
                    self.view.remove(&(kind, name.clone()));
                    (
                        format!("misses {kind:?} {name}"),
                        Input::deleted(known_kind(api.declared.as_ref(), kind), name),
                    )
                }
                WatchEvent::Listed => (
                    format!("completes the list of {kind:?}"),
                    Input::Listed(known_kind(api.declared.as_ref(), kind)),
                ),
            };
            lines.push(line);
            self.reconciler.handle_input(api.now_ms, input);
        }
        if self.reconciler.needs_nodes() {
            for kind in Kind::NODES {
                self.watches.entry(kind).or_insert_with(|| {
                    let mut watch = SimulatedWatch::default();
                    watch.relist(api, kind);
                    watch
                });
            }
        }
        self.has_new_input = true;
        lines
    }

    pub fn deliver_write_result(&mut self, now_ms: i64, dice: &mut Rng) -> (WriteId, WriteResult) {
        let at = dice.below(self.write_results.len());
        let (ticket, outcome) = self.write_results.swap_remove(at);
        let input = Input::WriteFinished(ticket, outcome.clone());
        self.reconciler.handle_input(now_ms, input);
        self.has_new_input = true;
        (ticket, outcome)
    }

    /// A new leader lists all kinds again.
    pub fn set_leading(&mut self, api: &Api, is_leading: bool) {
        self.is_leading = is_leading;
        self.reconciler
            .handle_input(api.now_ms, Input::Leadership(is_leading));
        if is_leading {
            for (kind, watch) in &mut self.watches {
                watch.relist(api, *kind);
            }
        }
        self.has_new_input = true;
    }

    /// Lists all kinds again after the versions of the API server went back; the runtime reports that before the list.
    pub fn observe_restored_versions(&mut self, api: &Api) {
        let kinds: Vec<Kind> = self.watches.keys().copied().collect();
        for kind in kinds {
            let input = Input::Restored(known_kind(api.declared.as_ref(), kind));
            self.reconciler.handle_input(api.now_ms, input);
            self.watches.get_mut(&kind).unwrap().relist(api, kind);
        }
    }

    /// The limits as the process has observed them.
    pub fn limits(&self) -> Limits {
        let is_limit = |kind: Kind| matches!(kind, Kind::ClusterQueue | Kind::Cohort);
        let limits = self.view.iter().filter(|((kind, _), _)| is_limit(*kind));
        let limits = limits.map(|(key, it)| (key.clone(), Rc::clone(it)));
        limits.collect()
    }
}

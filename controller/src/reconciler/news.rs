//! Events, and how many waiting workloads are told why they wait.
//!
//! An event is for what somebody has to know of who did not ask for it: a preemption, a timeout, a
//! deactivation, a refusal. That a workload is admitted stands in its conditions, and an event for each would
//! be a third more writes. What is told again within [`QUIET_MS`] is not told again. Where many are evicted at
//! once, the first are told one by one, and the rest in sum for each LocalQueue.

use super::conditions::cut;
use super::input::{JobName, Name};
use super::job::reference;
use super::output::{Verb, What};
use super::purse::Purse;
use super::workload::Known;
use super::{Plan, Reconciler, Track};
use crate::jobs::KINDS;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::{GROUP, VERSION};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// For how long the same is not told again, in milliseconds.
const QUIET_MS: i64 = 600_000;

/// The most events that wait to be written; what comes on top is dropped.
const WAITING_MAX: usize = 1_000;

/// The most that is remembered of what was told.
const TOLD_MAX: usize = 10_000;

/// How often an event is tried.
const TRIES_MAX: u32 = 3;

/// The longest note of an event, in bytes.
const NOTE_MAX: usize = 1_024;

/// How often evictions that were not told one by one are told in sum, in milliseconds.
const SUM_MS: i64 = 60_000;

/// The most sums that are kept; evictions of further LocalQueues are only counted as dropped.
const SUMS_MAX: usize = 1_000;

/// An event that is not written yet.
#[derive(Debug)]
struct Item {
    track: Track,
    tries: u32,
    message: Message,
}

/// What is told of an object.
#[derive(Debug)]
struct Message {
    regarding: Value,
    namespace: String,
    is_warning: bool,
    reason: String,
    note: String,
}

impl Message {
    fn normal(about: &About, reason: String, note: String) -> Self {
        Self::new(about, false, reason, note)
    }

    fn warning(about: &About, reason: &str, note: String) -> Self {
        Self::new(about, true, reason.to_owned(), note)
    }

    fn new(about: &About, is_warning: bool, reason: String, mut note: String) -> Self {
        let namespace = match about.name.namespace() {
            "" => "default",
            namespace => namespace,
        };
        note.truncate(cut(&note, NOTE_MAX).len());
        Self {
            regarding: about.reference(),
            namespace: namespace.to_owned(),
            is_warning,
            reason,
            note,
        }
    }
}

/// An object that something is told of.
struct About<'a> {
    api_version: String,
    kind: &'a str,
    name: &'a Name,
    uid: Option<&'a str>,
}

impl<'a> About<'a> {
    fn ours(kind: &'a str, name: &'a Name, uid: Option<&'a str>) -> Self {
        Self {
            api_version: format!("{GROUP}/{VERSION}"),
            kind,
            name,
            uid,
        }
    }

    fn workload(name: &'a Name, known: &'a Known) -> Self {
        Self::ours("Workload", name, known.seen.metadata.uid.as_deref())
    }

    fn reference(&self) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": self.kind,
            "name": self.name.name(), "namespace": self.name.namespace(), "uid": self.uid,
        })
    }
}

/// The events that wait, and what may be spent on news.
#[derive(Debug, Default)]
pub(super) struct News {
    waiting: BTreeMap<u64, Item>,
    unmarked: Vec<u64>,
    told: BTreeMap<(String, String), i64>,
    numbers: u64,
    dropped: u64,
    now_ms: i64,
    instance: String,
    notices: Purse,
    evictions: Purse,
    /// Evictions that were not told one by one, by LocalQueue and reason.
    sums: BTreeMap<(Name, String), u64>,
    sums_due_ms: Option<i64>,
}

impl News {
    pub(super) fn set_now(&mut self, now_ms: i64, instance: &str) {
        self.now_ms = now_ms;
        if self.instance != instance {
            instance.clone_into(&mut self.instance);
        }
    }

    /// Tells what was not told in the last while.
    fn push(&mut self, message: Message) {
        let key = (
            format!("{}", message.regarding),
            format!("{} {}", message.reason, message.note),
        );
        let is_told = self.told.get(&key);
        if is_told.is_some_and(|at_ms| self.now_ms.saturating_sub(*at_ms) < QUIET_MS) {
            return;
        }
        if !self.add(message) {
            return;
        }
        if self.told.len() >= TOLD_MAX {
            let oldest_ms = self.now_ms.saturating_sub(QUIET_MS);
            self.told.retain(|_, at_ms| *at_ms > oldest_ms);
            if self.told.len() >= TOLD_MAX {
                self.told.clear();
            }
        }
        self.told.insert(key, self.now_ms);
    }

    /// Whether there is room for one more.
    fn add(&mut self, message: Message) -> bool {
        if self.waiting.len() >= WAITING_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return false;
        }
        self.numbers = self.numbers.wrapping_add(1);
        let item = Item {
            track: Track::default(),
            tries: 0,
            message,
        };
        self.waiting.insert(self.numbers, item);
        self.unmarked.push(self.numbers);
        true
    }

    /// Those that were not looked at yet.
    pub(super) fn unmarked(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unmarked)
    }

    pub(super) fn warn_unreadable(&mut self, kind: &str, name: &Name, error: &str) {
        let group = KINDS.iter().map(|it| it.resource());
        let mut group = group.filter(|it| it.kind == kind);
        let mut about = About::ours(kind, name, None);
        if let Some(resource) = group.next() {
            about.api_version = resource.api_version();
        }
        let note = format!("It cannot be read and is left as it is: {error}");
        self.push(Message::warning(&about, "Unreadable", note));
    }

    pub(super) fn warn_job(&mut self, job: &JobName, what: What, why: &str) {
        let (kind, name) = reference(job);
        let version = KINDS.get(job.kind).map(|it| it.resource().api_version());
        let about = About {
            api_version: version.unwrap_or_default(),
            kind,
            name,
            uid: None,
        };
        let doing = match what {
            What::CreateWorkload => "make its workload",
            What::StartJob => "start it",
            _ => "stop it",
        };
        let note = format!("Cannot {doing}: {why}");
        self.push(Message::warning(&about, "Refused", note));
    }

    pub(super) fn plan(&self, number: u64) -> Plan {
        if self.waiting.contains_key(&number) {
            Plan::write(What::Event)
        } else {
            Plan::REST
        }
    }

    pub(super) fn draft(&self, number: u64, now_ms: i64) -> Option<Verb> {
        let message = &self.waiting.get(&number)?.message;
        let at = Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let about = message.regarding.get("name").and_then(Value::as_str);
        let about = cut(about.unwrap_or("event"), 200).trim_end_matches(['-', '.']);
        Some(Verb::Create(json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{about}.{now_ms:x}{number:04x}"),
                "namespace": message.namespace,
            },
            "eventTime": format!("{at:.6}"),
            "reportingController": "lockkeeper.dev/controller",
            "reportingInstance": self.instance,
            "action": message.reason,
            "reason": message.reason,
            "type": if message.is_warning { "Warning" } else { "Normal" },
            "regarding": message.regarding,
            "note": message.note,
        })))
    }

    pub(super) fn answered(&mut self, number: u64, is_done: bool) {
        let Some(item) = self.waiting.get_mut(&number) else {
            return;
        };
        item.tries = item.tries.saturating_add(1);
        item.track.awaits = 0;
        if is_done || item.tries >= TRIES_MAX {
            self.waiting.remove(&number);
        }
    }

    pub(super) fn track(&self, number: u64) -> Option<&Track> {
        self.waiting.get(&number).map(|it| &it.track)
    }

    pub(super) fn track_mut(&mut self, number: u64) -> Option<&mut Track> {
        self.waiting.get_mut(&number).map(|it| &mut it.track)
    }

    /// Whether somebody could be told soon why it waits, so that it is worth the words.
    pub(super) const fn has_notices(&self) -> bool {
        self.notices.has_token()
    }

    /// Whether one more workload may be told now why it waits.
    pub(super) fn take_notice(&mut self, now_ms: i64, per_second: u32) -> bool {
        self.notices.take(now_ms, per_second)
    }

    /// One more eviction of a LocalQueue's workloads is told in sum.
    fn sum_up(&mut self, queue: Name, reason: &str) {
        let key = (queue, reason.to_owned());
        if self.sums.len() >= SUMS_MAX && !self.sums.contains_key(&key) {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        let sum = self.sums.entry(key).or_default();
        *sum = sum.saturating_add(1);
        let due_ms = self.now_ms.saturating_add(SUM_MS);
        self.sums_due_ms = Some(self.sums_due_ms.unwrap_or(due_ms).min(due_ms));
    }

    /// When sums are to be told.
    pub(super) const fn sums_due_ms(&self) -> Option<i64> {
        self.sums_due_ms
    }

    /// The sums, if it is time to tell them.
    fn take_sums(&mut self) -> BTreeMap<(Name, String), u64> {
        if self.sums_due_ms.is_none_or(|due_ms| due_ms > self.now_ms) {
            return BTreeMap::new();
        }
        self.sums_due_ms = None;
        std::mem::take(&mut self.sums)
    }

    /// Events that were not written because too many waited.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Reconciler {
    /// What was written about a workload, for those who did not ask for it.
    pub(super) fn tell(&mut self, name: &Name, what: What) {
        let Some(known) = self.workloads.get(name) else {
            return;
        };
        let about = About::workload(name, known);
        let message = match (what, known.last.as_deref()) {
            (What::Evict, Some((reason, note))) => {
                let reason = format!("EvictedDueTo{reason}");
                let per_second = self.settings.eviction_events_per_second;
                if !self.news.evictions.take(self.news.now_ms, per_second)
                    && let Some(door) = &known.seen.spec.queue_name
                {
                    let door = Name::new(name.namespace(), door);
                    self.news.sum_up(door, &reason);
                    return;
                }
                Message::normal(&about, reason, note.clone())
            }
            (What::Deactivate, Some((reason, note))) => {
                Message::warning(&about, reason, note.clone())
            }
            _ => return,
        };
        self.news.push(message);
    }

    /// Tells how many were evicted who were not told one by one.
    pub(super) fn tell_sums(&mut self) {
        for ((door, reason), sum) in self.news.take_sums() {
            let seen = self.queues.local_queues.get(&door).map(|it| &it.seen);
            let uid = seen.and_then(|it| it.metadata.uid.as_deref());
            let note = format!(
                "{sum} more of its workloads were evicted in the last {} s; the condition Evicted of each says why",
                SUM_MS.div_euclid(1_000)
            );
            let about = About::ours("LocalQueue", &door, uid);
            self.news.add(Message::normal(&about, reason, note));
        }
        self.mark_news();
    }

    /// What was decided about a workload, and cannot be written.
    pub(super) fn warn_workload(&mut self, name: &Name, what: What, why: &str) {
        let doing = match what {
            What::Admit => "admit",
            What::Evict => "evict",
            _ => return,
        };
        let Some(known) = self.workloads.get(name) else {
            return;
        };
        let note = format!("Cannot {doing} it: {why}");
        let message = Message::warning(&About::workload(name, known), "Refused", note);
        self.news.push(message);
    }
}

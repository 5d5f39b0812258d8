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
    regarding: Value,
    namespace: String,
    is_warning: bool,
    reason: String,
    note: String,
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

    fn push(
        &mut self,
        regarding: Value,
        namespace: &str,
        is_warning: bool,
        reason: &str,
        note: &str,
    ) {
        let key = (format!("{regarding}"), format!("{reason} {note}"));
        let is_told = self.told.get(&key);
        if is_told.is_some_and(|at_ms| self.now_ms.saturating_sub(*at_ms) < QUIET_MS) {
            return;
        }
        if !self.add(regarding, namespace, is_warning, reason, note) {
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
    fn add(
        &mut self,
        regarding: Value,
        namespace: &str,
        is_warning: bool,
        reason: &str,
        note: &str,
    ) -> bool {
        if self.waiting.len() >= WAITING_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return false;
        }
        self.numbers = self.numbers.wrapping_add(1);
        let namespace = if namespace.is_empty() {
            "default"
        } else {
            namespace
        };
        self.waiting.insert(
            self.numbers,
            Item {
                track: Track::default(),
                tries: 0,
                regarding,
                namespace: namespace.to_owned(),
                is_warning,
                reason: reason.to_owned(),
                note: cut(note, NOTE_MAX).to_owned(),
            },
        );
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
        let version = group
            .next()
            .map_or_else(|| format!("{GROUP}/{VERSION}"), |it| it.api_version());
        let regarding = json!({
            "apiVersion": version, "kind": kind, "name": name.name(), "namespace": name.namespace(),
        });
        let note = format!("It cannot be read and is left as it is: {error}");
        self.push(regarding, name.namespace(), true, "Unreadable", &note);
    }

    pub(super) fn warn_job(&mut self, job: &JobName, what: What, why: &str) {
        let (kind, name) = reference(job);
        let version = KINDS.get(job.kind).map(|it| it.resource().api_version());
        let regarding = json!({
            "apiVersion": version, "kind": kind, "name": name.name(), "namespace": name.namespace(),
        });
        let doing = match what {
            What::CreateWorkload => "make its workload",
            What::StartJob => "start it",
            _ => "stop it",
        };
        let note = format!("Cannot {doing}: {why}");
        self.push(regarding, name.namespace(), true, "Refused", &note);
    }

    pub(super) fn plan(&self, number: u64) -> Plan {
        if self.waiting.contains_key(&number) {
            Plan::write(What::Event)
        } else {
            Plan::REST
        }
    }

    pub(super) fn draft(&self, number: u64, now_ms: i64) -> Option<Verb> {
        let item = self.waiting.get(&number)?;
        let at = Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let about = item.regarding.get("name").and_then(Value::as_str);
        let about = cut(about.unwrap_or("event"), 200).trim_end_matches(['-', '.']);
        Some(Verb::Create(json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{about}.{now_ms:x}{number:04x}"),
                "namespace": item.namespace,
            },
            "eventTime": format!("{at:.6}"),
            "reportingController": "lockkeeper.dev/controller",
            "reportingInstance": self.instance,
            "action": item.reason,
            "reason": item.reason,
            "type": if item.is_warning { "Warning" } else { "Normal" },
            "regarding": item.regarding,
            "note": item.note,
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
        let (is_warning, reason, note) = match (what, &known.last) {
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
                (false, reason, note.clone())
            }
            (What::Deactivate, Some((reason, note))) => (true, reason.clone(), note.clone()),
            _ => return,
        };
        let regarding = regarding(name, known);
        self.news
            .push(regarding, name.namespace(), is_warning, &reason, &note);
    }

    /// Tells how many were evicted who were not told one by one.
    pub(super) fn tell_sums(&mut self) {
        for ((door, reason), sum) in self.news.take_sums() {
            let seen = self.queues.local_queues.get(&door).map(|it| &it.seen);
            let regarding = json!({
                "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "LocalQueue",
                "name": door.name(), "namespace": door.namespace(),
                "uid": seen.and_then(|it| it.metadata.uid.clone()),
            });
            let note = format!(
                "{sum} more of its workloads were evicted in the last {} s; the condition Evicted of each says why",
                SUM_MS.div_euclid(1_000)
            );
            self.news
                .add(regarding, door.namespace(), false, &reason, &note);
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
        let regarding = regarding(name, known);
        self.news
            .push(regarding, name.namespace(), true, "Refused", &note);
    }
}

fn regarding(name: &Name, known: &Known) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Workload",
        "name": name.name(), "namespace": name.namespace(), "uid": known.seen.metadata.uid,
    })
}

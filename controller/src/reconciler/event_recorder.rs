//! Events, and how many waiting workloads are told why they wait.
//!
//! An event is for what somebody has to know of who did not ask for it: a preemption, a timeout, a
//! deactivation, a refusal. That a workload is admitted stands in its conditions, and an event for each would
//! be a third more writes. What is told again within [`QUIET_MS`] is not told again. Where many are evicted at
//! once, the first are told one by one, and the rest in sum for each LocalQueue.

use super::conditions::truncate_at_char;
use super::input::{JobKey, ObjectKey};
use super::job::kind_and_key;
use super::output::{WriteOp, WritePurpose};
use super::rate_limit::TokenBucket;
use super::workload::TrackedWorkload;
use super::{Plan, Reconciler, WriteTracker};
use crate::job_adapters::KINDS;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::{GROUP, VERSION};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// For how long the same is not told again, in milliseconds.
const DEDUP_WINDOW_MS: i64 = 600_000;

/// The most events that wait to be written; what comes on top is dropped.
const PENDING_EVENTS_MAX: usize = 1_000;

/// The most that is remembered of what was told.
const RECENT_EVENTS_MAX: usize = 10_000;

/// How often an event is tried.
const ATTEMPTS_MAX: u32 = 3;

/// The longest note of an event, in bytes.
const NOTE_MAX: usize = 1_024;

/// How often evictions that were not told one by one are told in sum, in milliseconds.
const SUMMARY_INTERVAL_MS: i64 = 60_000;

/// The most sums that are kept; evictions of further LocalQueues are only counted as dropped.
const SUMMARIES_MAX: usize = 1_000;

/// An event that is not written yet.
#[derive(Debug)]
struct PendingEvent {
    tracker: WriteTracker,
    attempts: u32,
    draft: EventDraft,
}

/// What is told of an object.
#[derive(Debug)]
struct EventDraft {
    regarding: Value,
    namespace: String,
    is_warning: bool,
    reason: String,
    note: String,
}

impl EventDraft {
    fn normal(about: &EventSubject, reason: String, note: String) -> Self {
        Self::new(about, false, reason, note)
    }

    fn warning(about: &EventSubject, reason: &str, note: String) -> Self {
        Self::new(about, true, reason.to_owned(), note)
    }

    fn new(about: &EventSubject, is_warning: bool, reason: String, mut note: String) -> Self {
        let namespace = match about.name.namespace() {
            "" => "default",
            namespace => namespace,
        };
        note.truncate(truncate_at_char(&note, NOTE_MAX).len());
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
struct EventSubject<'a> {
    api_version: String,
    kind: &'a str,
    name: &'a ObjectKey,
    uid: Option<&'a str>,
}

impl<'a> EventSubject<'a> {
    fn for_api_group(kind: &'a str, name: &'a ObjectKey, uid: Option<&'a str>) -> Self {
        Self {
            api_version: format!("{GROUP}/{VERSION}"),
            kind,
            name,
            uid,
        }
    }

    fn for_workload(name: &'a ObjectKey, known: &'a TrackedWorkload) -> Self {
        Self::for_api_group("Workload", name, known.object.metadata.uid.as_deref())
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
pub(super) struct EventRecorder {
    pending: BTreeMap<u64, PendingEvent>,
    unqueued: Vec<u64>,
    recent: BTreeMap<(String, String), i64>,
    last_number: u64,
    dropped: u64,
    now_ms: i64,
    instance: String,
    pending_reasons: TokenBucket,
    evictions: TokenBucket,
    /// Evictions that were not told one by one, by LocalQueue and reason.
    eviction_summaries: BTreeMap<(ObjectKey, String), u64>,
    summaries_due_ms: Option<i64>,
}

impl EventRecorder {
    pub(super) fn set_now(&mut self, now_ms: i64, instance: &str) {
        self.now_ms = now_ms;
        if self.instance != instance {
            instance.clone_into(&mut self.instance);
        }
    }

    /// Tells what was not told in the last while.
    fn record(&mut self, message: EventDraft) {
        let key = (
            format!("{}", message.regarding),
            format!("{} {}", message.reason, message.note),
        );
        let is_told = self.recent.get(&key);
        if is_told.is_some_and(|at_ms| self.now_ms.saturating_sub(*at_ms) < DEDUP_WINDOW_MS) {
            return;
        }
        if !self.enqueue(message) {
            return;
        }
        if self.recent.len() >= RECENT_EVENTS_MAX {
            let oldest_ms = self.now_ms.saturating_sub(DEDUP_WINDOW_MS);
            self.recent.retain(|_, at_ms| *at_ms > oldest_ms);
            if self.recent.len() >= RECENT_EVENTS_MAX {
                self.recent.clear();
            }
        }
        self.recent.insert(key, self.now_ms);
    }

    /// Whether there is room for one more.
    fn enqueue(&mut self, message: EventDraft) -> bool {
        if self.pending.len() >= PENDING_EVENTS_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return false;
        }
        self.last_number = self.last_number.wrapping_add(1);
        let item = PendingEvent {
            tracker: WriteTracker::default(),
            attempts: 0,
            draft: message,
        };
        self.pending.insert(self.last_number, item);
        self.unqueued.push(self.last_number);
        true
    }

    /// Those that were not looked at yet.
    pub(super) fn take_unqueued(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unqueued)
    }

    pub(super) fn record_unreadable(&mut self, kind: &str, name: &ObjectKey, error: &str) {
        let group = KINDS.iter().map(|it| it.resource());
        let mut group = group.filter(|it| it.kind == kind);
        let mut about = EventSubject::for_api_group(kind, name, None);
        if let Some(resource) = group.next() {
            about.api_version = resource.api_version();
        }
        let note = format!("It cannot be read and is left as it is: {error}");
        self.record(EventDraft::warning(&about, "Unreadable", note));
    }

    pub(super) fn record_rejected_job_write(
        &mut self,
        job: &JobKey,
        what: WritePurpose,
        why: &str,
    ) {
        let (kind, name) = kind_and_key(job);
        let version = KINDS.get(job.kind).map(|it| it.resource().api_version());
        let about = EventSubject {
            api_version: version.unwrap_or_default(),
            kind,
            name,
            uid: None,
        };
        let doing = match what {
            WritePurpose::CreateWorkload => "make its workload",
            WritePurpose::StartJob => "start it",
            _ => "stop it",
        };
        let note = format!("Cannot {doing}: {why}");
        self.record(EventDraft::warning(&about, "Refused", note));
    }

    pub(super) fn plan(&self, number: u64) -> Plan {
        if self.pending.contains_key(&number) {
            Plan::write(WritePurpose::Event)
        } else {
            Plan::NOTHING
        }
    }

    pub(super) fn build_write(&self, number: u64, now_ms: i64) -> Option<WriteOp> {
        let message = &self.pending.get(&number)?.draft;
        let at = Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let about = message.regarding.get("name").and_then(Value::as_str);
        let about = truncate_at_char(about.unwrap_or("event"), 200).trim_end_matches(['-', '.']);
        Some(WriteOp::Create(json!({
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

    pub(super) fn handle_write_result(&mut self, number: u64, is_done: bool) {
        let Some(item) = self.pending.get_mut(&number) else {
            return;
        };
        item.attempts = item.attempts.saturating_add(1);
        item.tracker.min_version = 0;
        if is_done || item.attempts >= ATTEMPTS_MAX {
            self.pending.remove(&number);
        }
    }

    pub(super) fn tracker(&self, number: u64) -> Option<&WriteTracker> {
        self.pending.get(&number).map(|it| &it.tracker)
    }

    pub(super) fn tracker_mut(&mut self, number: u64) -> Option<&mut WriteTracker> {
        self.pending.get_mut(&number).map(|it| &mut it.tracker)
    }

    /// Whether somebody could be told soon why it waits, so that it is worth the words.
    pub(super) const fn has_pending_reason_token(&self) -> bool {
        self.pending_reasons.has_token()
    }

    /// Whether one more workload may be told now why it waits.
    pub(super) fn take_pending_reason_token(&mut self, now_ms: i64, per_second: u32) -> bool {
        self.pending_reasons.try_take(now_ms, per_second)
    }

    /// One more eviction of a LocalQueue's workloads is told in sum.
    fn add_to_summary(&mut self, queue: ObjectKey, reason: &str) {
        let key = (queue, reason.to_owned());
        if self.eviction_summaries.len() >= SUMMARIES_MAX
            && !self.eviction_summaries.contains_key(&key)
        {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        let sum = self.eviction_summaries.entry(key).or_default();
        *sum = sum.saturating_add(1);
        let due_ms = self.now_ms.saturating_add(SUMMARY_INTERVAL_MS);
        self.summaries_due_ms = Some(self.summaries_due_ms.unwrap_or(due_ms).min(due_ms));
    }

    /// When sums are to be told.
    pub(super) const fn summaries_due_ms(&self) -> Option<i64> {
        self.summaries_due_ms
    }

    /// The sums, if it is time to tell them.
    fn take_due_summaries(&mut self) -> BTreeMap<(ObjectKey, String), u64> {
        if self
            .summaries_due_ms
            .is_none_or(|due_ms| due_ms > self.now_ms)
        {
            return BTreeMap::new();
        }
        self.summaries_due_ms = None;
        std::mem::take(&mut self.eviction_summaries)
    }

    /// Events that were not written because too many waited.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Reconciler {
    /// What was written about a workload, for those who did not ask for it.
    pub(super) fn record_eviction(&mut self, name: &ObjectKey, what: WritePurpose) {
        let Some(known) = self.workloads.get(name) else {
            return;
        };
        let about = EventSubject::for_workload(name, known);
        let message = match (what, known.in_flight_event.as_deref()) {
            (WritePurpose::Evict, Some((reason, note))) => {
                let reason = format!("EvictedDueTo{reason}");
                let per_second = self.settings.eviction_events_per_second;
                if !self
                    .event_recorder
                    .evictions
                    .try_take(self.event_recorder.now_ms, per_second)
                    && let Some(door) = &known.object.spec.queue_name
                {
                    let door = ObjectKey::new(name.namespace(), door);
                    self.event_recorder.add_to_summary(door, &reason);
                    return;
                }
                EventDraft::normal(&about, reason, note.clone())
            }
            (WritePurpose::Deactivate, Some((reason, note))) => {
                EventDraft::warning(&about, reason, note.clone())
            }
            _ => return,
        };
        self.event_recorder.record(message);
    }

    /// Tells how many were evicted who were not told one by one.
    pub(super) fn flush_summaries(&mut self) {
        for ((door, reason), sum) in self.event_recorder.take_due_summaries() {
            let seen = self.queues.local_queues.get(&door).map(|it| &it.object);
            let uid = seen.and_then(|it| it.metadata.uid.as_deref());
            let note = format!(
                "{sum} more of its workloads were evicted in the last {} s; the condition Evicted of each says why",
                SUMMARY_INTERVAL_MS.div_euclid(1_000)
            );
            let about = EventSubject::for_api_group("LocalQueue", &door, uid);
            self.event_recorder
                .enqueue(EventDraft::normal(&about, reason, note));
        }
        self.enqueue_events();
    }

    /// What was decided about a workload, and cannot be written.
    pub(super) fn record_rejected_workload_write(
        &mut self,
        name: &ObjectKey,
        what: WritePurpose,
        why: &str,
    ) {
        let doing = match what {
            WritePurpose::Admit => "admit",
            WritePurpose::Evict => "evict",
            _ => return,
        };
        let Some(known) = self.workloads.get(name) else {
            return;
        };
        let note = format!("Cannot {doing} it: {why}");
        let message =
            EventDraft::warning(&EventSubject::for_workload(name, known), "Refused", note);
        self.event_recorder.record(message);
    }
}

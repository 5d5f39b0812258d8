//! Records Kubernetes events, and limits how many pending reasons are written.
//!
//! Events report changes that users did not request: preemptions, timeouts, deactivations, rejected writes. Admissions
//! have conditions only; an event for each would add a third to the writes. An event that repeats within
//! [`DEDUP_WINDOW_MS`] is dropped. Mass evictions get one event each up to a rate, and the rest a summary per
//! LocalQueue.

use super::model::{SuccessRecord, TrackedWorkload};
use super::output::{WriteOp, WritePurpose};
use super::placement::victim_pod::PodPreemption;
use super::queue_store::QueueStore;
use super::rate_limit::TokenBucket;
use super::status::conditions::truncate_at_char;
use super::write_tracker::WriteTracker;
use crate::job_adapters::JobKinds;
use crate::key::{JobKey, ObjectKey};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::labels::SOFT_EVICTION;
use lockkeeper_api::{GROUP, VERSION};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// For how long a repeated event is dropped, in milliseconds.
const DEDUP_WINDOW_MS: i64 = 600_000;

/// The most events that are pending; further ones are dropped and counted.
const PENDING_EVENTS_MAX: usize = 1_000;

/// The most recent events that are remembered for deduplication.
const RECENT_EVENTS_MAX: usize = 10_000;

/// Attempts to write an event before it is dropped.
const ATTEMPTS_MAX: u32 = 3;

/// The longest note of an event, in bytes.
const NOTE_MAX: usize = 1_024;

/// The interval of eviction summaries, in milliseconds.
const SUMMARY_INTERVAL_MS: i64 = 60_000;

/// The most summaries that are kept; evictions of further LocalQueues are only counted as dropped.
const SUMMARIES_MAX: usize = 1_000;

/// An event that is not written yet.
#[derive(Debug)]
struct PendingEvent {
    tracker: WriteTracker,
    attempts: u32,
    draft: EventDraft,
}

/// The content of an event.
#[derive(Debug)]
struct EventDraft {
    regarding: Value,
    related: Option<Value>,
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
            // Events of cluster-scoped objects are in this namespace, as in client-go.
            "" => "default",
            namespace => namespace,
        };
        note.truncate(truncate_at_char(&note, NOTE_MAX).len());
        Self {
            regarding: about.reference(),
            related: None,
            namespace: namespace.to_owned(),
            is_warning,
            reason,
            note,
        }
    }
}

/// The object that an event is about.
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

    /// The job that controls a workload. Users read its events, and do not know the name of the workload.
    fn for_job_of(name: &'a ObjectKey, known: &'a TrackedWorkload) -> Option<Value> {
        let owners = known.object.metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|it| it.controller == Some(true));
        let owner = owners.next()?;
        Some(json!({
            "apiVersion": owner.api_version, "kind": owner.kind,
            "name": owner.name, "namespace": name.namespace(), "uid": owner.uid,
        }))
    }

    fn reference(&self) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": self.kind,
            "name": self.name.name(), "namespace": self.name.namespace(), "uid": self.uid,
        })
    }
}

/// The pending events, and the token buckets of evictions and pending reasons.
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
    /// Evictions without their own event, by LocalQueue and reason.
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

    /// Records an event, unless the same one was recorded recently.
    fn record(&mut self, message: EventDraft) {
        let key = (
            format!("{}", message.regarding),
            format!("{} {}", message.reason, message.note),
        );
        let recorded = self.recent.get(&key);
        if recorded.is_some_and(|at_ms| self.now_ms.saturating_sub(*at_ms) < DEDUP_WINDOW_MS) {
            return;
        }
        // A dropped event is not remembered, so that its repetition can be written.
        if !self.enqueue(message) {
            return;
        }
        if self.recent.len() >= RECENT_EVENTS_MAX {
            let oldest_ms = self.now_ms.saturating_sub(DEDUP_WINDOW_MS);
            self.recent.retain(|_, at_ms| *at_ms > oldest_ms);
            if self.recent.len() >= RECENT_EVENTS_MAX {
                // All are recent: repeated events are better than memory without a limit.
                self.recent.clear();
            }
        }
        self.recent.insert(key, self.now_ms);
    }

    /// Adds an event; false if too many are pending.
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

    /// The events that are not in the work queue yet.
    pub(super) fn take_unqueued(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unqueued)
    }

    /// Records that an object of a kind of the controller's API group, or of the given API version, cannot be decoded.
    pub(super) fn record_unreadable(
        &mut self,
        kind: &str,
        api_version: Option<String>,
        name: &ObjectKey,
        error: &str,
    ) {
        let mut about = EventSubject::for_api_group(kind, name, None);
        if let Some(version) = api_version {
            about.api_version = version;
        }
        let note = format!("Cannot be decoded, left unchanged: {error}");
        self.record(EventDraft::warning(&about, "DecodingFailed", note));
    }

    /// Records that a `JobKind` has mistakes.
    pub(super) fn record_rejected_declaration(&mut self, name: &ObjectKey, problem: &str) {
        let about = EventSubject::for_api_group("JobKind", name, None);
        let note =
            format!("Not used; the last declaration without a mistake stays in effect: {problem}");
        self.record(EventDraft::warning(&about, "InvalidDeclaration", note));
    }

    pub(super) fn record_rejected_job_write(
        &mut self,
        kinds: &JobKinds,
        job: &JobKey,
        what: WritePurpose,
        why: &str,
    ) {
        let version = kinds.get(job.kind).map(|it| it.resource().api_version());
        let about = EventSubject {
            api_version: version.unwrap_or_default(),
            kind: kinds.name(job.kind),
            name: &job.name,
            uid: None,
        };
        let doing = match what {
            WritePurpose::CreateWorkload => "create the workload",
            WritePurpose::StartJob => "start the job",
            _ => "stop the job",
        };
        let note = format!("Cannot {doing}: {why}");
        self.record(EventDraft::warning(&about, "WriteRejected", note));
    }

    /// Records that a pod was marked for soft eviction: its owner, and the component that deletes it, read its events.
    pub(super) fn record_soft_eviction(&mut self, pod: &ObjectKey, uid: &str) {
        let note = format!(
            "Preempted; the label {SOFT_EVICTION} names the preemptor, and another component deletes the pod"
        );
        self.record_preempted_pod(pod, uid, note);
    }

    /// Records that a single pod was evicted or deleted for a workload on its node. Another namespace learns
    /// only the uid of the workload: its name belongs to another tenant.
    pub(super) fn record_pod_eviction(&mut self, pod: &ObjectKey, preemption: &PodPreemption) {
        let PodPreemption {
            uid,
            preemptor,
            preemptor_uid,
        } = preemption;
        let name = if preemptor.namespace() == pod.namespace() {
            format!("; preemptor: {preemptor}")
        } else {
            String::new()
        };
        let note = format!(
            "Preempted to accommodate a workload (UID: {preemptor_uid}) due to prioritization on nodes{name}"
        );
        self.record_preempted_pod(pod, uid, note);
    }

    fn record_preempted_pod(&mut self, pod: &ObjectKey, uid: &str, note: String) {
        let about = EventSubject {
            api_version: "v1".to_owned(),
            kind: "Pod",
            name: pod,
            uid: Some(uid),
        };
        self.record(EventDraft::normal(&about, "Preempted".to_owned(), note));
    }

    /// Whether an event is still to be written.
    pub(super) fn is_pending(&self, number: u64) -> bool {
        self.pending.contains_key(&number)
    }

    pub(super) fn build_write(&self, number: u64, now_ms: i64) -> Option<WriteOp> {
        let message = &self.pending.get(&number)?.draft;
        let at = Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let about = message.regarding.get("name").and_then(Value::as_str);
        // Leaves room for the suffix: an object name has at most 253 characters.
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
            "related": message.related,
            "note": message.note,
        })))
    }

    pub(super) fn handle_write_result(&mut self, number: u64, is_done: bool) {
        let Some(item) = self.pending.get_mut(&number) else {
            return;
        };
        item.attempts = item.attempts.saturating_add(1);
        // Events are not watched: a retry must not wait for a version.
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

    /// Whether a pending reason could be written soon, so that composing its message is worth the time.
    pub(super) const fn has_pending_reason_token(&self) -> bool {
        self.pending_reasons.has_token()
    }

    /// Takes a token for writing one pending reason, if there is one.
    pub(super) fn take_pending_reason_token(&mut self, now_ms: i64, per_second: u32) -> bool {
        self.pending_reasons.try_take(now_ms, per_second)
    }

    /// Counts an eviction in the summary of its LocalQueue.
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

    /// When the summaries are due, in milliseconds since 1970.
    pub(super) const fn summaries_due_ms(&self) -> Option<i64> {
        self.summaries_due_ms
    }

    /// The summaries, if they are due.
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

    /// Events that were dropped because too many were pending.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Records the eviction or deactivation that was just written, or counts it in a summary.
    pub(super) fn record_eviction(
        &mut self,
        key: &ObjectKey,
        workload: &TrackedWorkload,
        purpose: WritePurpose,
        events_per_second: u32,
    ) {
        let Some(record) = workload.in_flight_record.as_deref() else {
            return;
        };
        let SuccessRecord {
            reason,
            message: note,
            ..
        } = record;
        let subject = EventSubject::for_workload(key, workload);
        let mut draft = match purpose {
            WritePurpose::Evict => {
                let reason = format!("EvictedDueTo{reason}");
                if !self.evictions.try_take(self.now_ms, events_per_second)
                    && let Some(local_queue) = &workload.object.spec.queue_name
                {
                    let local_queue = ObjectKey::new(key.namespace(), local_queue);
                    self.add_to_summary(local_queue, &reason);
                    return;
                }
                EventDraft::normal(&subject, reason, note.clone())
            }
            WritePurpose::Deactivate | WritePurpose::StuckEviction => {
                EventDraft::warning(&subject, reason, note.clone())
            }
            _ => return,
        };
        if let Some(job) = EventSubject::for_job_of(key, workload) {
            draft.related = Some(std::mem::replace(&mut draft.regarding, job));
        }
        self.record(draft);
    }

    /// Records the due summaries of evictions.
    pub(super) fn flush_summaries(&mut self, queues: &QueueStore) {
        for ((local_queue, reason), count) in self.take_due_summaries() {
            let object = queues.local_queues.get(&local_queue).map(|it| &it.object);
            let uid = object.and_then(|it| it.metadata.uid.as_deref());
            let note = format!(
                "{count} more of its workloads were evicted in the last {} s; see the condition Evicted of each",
                SUMMARY_INTERVAL_MS.div_euclid(1_000)
            );
            let subject = EventSubject::for_api_group("LocalQueue", &local_queue, uid);
            // Not deduplicated: two intervals may have the same count.
            self.enqueue(EventDraft::normal(&subject, reason, note));
        }
    }

    /// Records that the API server has rejected the write of a decision.
    pub(super) fn record_rejected_workload_write(
        &mut self,
        key: &ObjectKey,
        workload: &TrackedWorkload,
        purpose: WritePurpose,
        why: &str,
    ) {
        let verb = match purpose {
            WritePurpose::Admit => "admit",
            WritePurpose::Evict => "evict",
            WritePurpose::ReadJob => "read the job of",
            _ => return,
        };
        let note = format!("Cannot {verb} the workload: {why}");
        let subject = EventSubject::for_workload(key, workload);
        self.record(EventDraft::warning(&subject, "WriteRejected", note));
    }
}

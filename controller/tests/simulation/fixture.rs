//! A small cluster without faults: every write is executed at once and in order.

use crate::api::Api;
use crate::fields::{list, text};
use crate::objects;
use crate::process::ControllerProcess;
use crate::write::{execute, written_object};
use lockkeeper_api::labels;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_controller::{
    Counters, Eviction, Kind, ObjectKey, QuotaUsage, Settings, WriteOp, WritePurpose, WriteRequest,
    WriteResult,
};
use lockkeeper_policies::settings::Settings as RuleSettings;
use lockkeeper_preemption::Options;
use lockkeeper_preemption::requeue::RequeueSettings as Requeue;
use serde_json::{Value, json};

/// The start time, in milliseconds since 1970.
pub const BEGIN_MS: i64 = 1_700_000_000_000;

/// The pause of the reconciler between two rounds of cycles.
const DECIDE_PAUSE_MS: i64 = 20;

/// The most polls until no write is due.
const POLLS_MAX: usize = 100_000;

pub struct Fixture {
    pub api: Api,
    process: ControllerProcess,
    settings: Settings,
    /// The writes of workloads, jobs and events.
    write_lines: Vec<String>,
    /// The events: kind and name of the object, reason, note.
    pub events: Vec<String>,
    /// The API server rejects writes with this prefix of `purpose name`.
    pub rejects_prefix: Option<String>,
}

/// The settings of a fixture with default requeueing.
pub fn default_settings() -> Settings {
    Settings {
        options: Options::default(),
        requeue: Requeue::default(),
        excluded_resource_prefixes: Vec::new(),
        rules: RuleSettings::default(),
        writes_max: 8,
        status_interval_ms: 1000,
        pending_reason_writes_per_second: 100,
        eviction_events_per_second: 5,
        job_response_ms: 60_000,
        stuck_eviction_ms: 120_000,
        finished_retention_ms: None,
        has_decision_log: false,
        template_bytes_max: usize::MAX,
        job_kinds: vec![0, 1],
        has_pod_groups: false,
        has_job_kinds: false,
        seed: 1,
        instance: "stage".to_owned(),
    }
}

impl Fixture {
    /// A fixture with a queue of this many CPUs, and the priority classes.
    pub fn new(requeue: Requeue, cpu: u32) -> Self {
        Self::with_settings(requeue, cpu, |_| {})
    }

    /// Like `new`, with other settings.
    pub fn with_settings(requeue: Requeue, cpu: u32, change: impl FnOnce(&mut Settings)) -> Self {
        let mut api = Api::new(BEGIN_MS);
        api.create(Kind::Namespace, objects::namespace()).unwrap();
        // As the webhook creates them.
        let finalizers = json!([labels::RESOURCE_IN_USE]);
        let mut spot = objects::flavor("spot");
        spot["metadata"]["finalizers"] = finalizers.clone();
        api.create(Kind::ResourceFlavor, spot).unwrap();
        for (name, value) in objects::CLASSES {
            api.create(Kind::PriorityClass, objects::class(name, value))
                .unwrap();
        }
        let flavor = json!({"name": "spot", "resources": [{"name": "cpu", "nominalQuota": cpu}]});
        let queue = json!({
            "metadata": {"name": "main", "finalizers": finalizers},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
                "preemption": {"withinClusterQueue": "LowerPriority"},
            },
        });
        api.create(Kind::ClusterQueue, queue).unwrap();
        api.create(Kind::LocalQueue, objects::local_queue("main"))
            .unwrap();
        let mut settings = Settings {
            requeue,
            ..default_settings()
        };
        change(&mut settings);
        let mut process = ControllerProcess::new(1, settings.clone(), &api);
        process.set_leading(&api, true);
        Self {
            api,
            process,
            settings,
            write_lines: Vec::new(),
            events: Vec::new(),
            rejects_prefix: None,
        }
    }

    /// Runs until no write is due, and returns the writes.
    pub fn settle(&mut self) -> Vec<String> {
        for _ in 0..POLLS_MAX {
            let writes = self.poll_writes();
            if writes.is_empty() {
                let now_ms = self.api.now_ms;
                let soon_ms = now_ms + DECIDE_PAUSE_MS;
                let wake_at_ms = self.process.wake_at_ms;
                let Some(at_ms) = wake_at_ms.filter(|at_ms| *at_ms <= soon_ms) else {
                    return std::mem::take(&mut self.write_lines);
                };
                assert!(now_ms < at_ms, "due again without a write");
                self.api.now_ms = at_ms;
            }
            self.finish_writes(writes);
        }
        panic!("the controller polls without an end");
    }

    /// Delivers all watch events.
    fn deliver_events(&mut self) {
        while let Some(kind) = self.process.kinds_behind(&self.api).first() {
            self.process.handle_next_event(&self.api, *kind);
        }
    }

    /// Delivers all watch events and polls the reconciler.
    pub fn poll_writes(&mut self) -> Vec<WriteRequest> {
        self.poll_writes_while(|| true)
    }

    /// Like [`Self::poll_writes`]; a poll runs another cycle only while `continues` returns true.
    pub fn poll_writes_while(&mut self, continues: impl FnMut() -> bool) -> Vec<WriteRequest> {
        self.deliver_events();
        let now_ms = self.api.now_ms;
        let output = self.process.reconciler.poll_while(now_ms, continues);
        self.process.wake_at_ms = output.wake_at_ms;
        output.writes
    }

    /// The time of the next poll, if one is due without an input.
    pub const fn wake_at_ms(&self) -> Option<i64> {
        self.process.wake_at_ms
    }

    /// Runs until the next writes contain one with this purpose, and returns them.
    pub fn poll_until(&mut self, purpose: WritePurpose) -> Vec<WriteRequest> {
        for _ in 0..POLLS_MAX {
            let writes = self.poll_writes();
            if writes.iter().any(|it| it.purpose == purpose) {
                return writes;
            }
            self.finish_writes(writes);
            self.api.now_ms += 1_000;
        }
        panic!("the controller never plans {}", purpose.as_str());
    }

    /// Replaces the process; its writes in flight are lost.
    pub fn restart(&mut self) {
        let number = self.process.number + 1;
        self.process = ControllerProcess::new(number, self.settings.clone(), &self.api);
        self.process.set_leading(&self.api, true);
    }

    pub fn set_leading(&mut self, is_leading: bool) {
        self.process.set_leading(&self.api, is_leading);
    }

    /// The number of objects to plan, now or later.
    pub fn queued_objects(&self) -> usize {
        self.process.reconciler.queued_objects()
    }

    /// Replaces the storage of the API server by an older state of it.
    pub fn restore(&mut self, mut before: Api) {
        before.now_ms = self.api.now_ms;
        self.api = before;
        self.process.observe_restored_versions(&self.api);
    }

    /// Executes the writes and delivers their results.
    pub fn finish_writes(&mut self, writes: Vec<WriteRequest>) {
        self.execute_writes(writes);
        self.deliver_write_results();
    }

    /// Executes the writes; the watches show them before their results arrive. Returns the writes that follow.
    pub fn finish_writes_late(&mut self, writes: Vec<WriteRequest>) -> Vec<WriteRequest> {
        self.execute_writes(writes);
        let following = self.poll_writes();
        self.deliver_write_results();
        following
    }

    fn execute_writes(&mut self, writes: Vec<WriteRequest>) {
        for write in writes {
            let (_, name) = written_object(&write);
            let line = format!("{} {}", write.purpose.as_str(), name.name());
            let line = line.trim_end().to_owned();
            let prefix = self.rejects_prefix.as_ref();
            let is_rejected = prefix.is_some_and(|it| line.starts_with(it.as_str()));
            if write.purpose != WritePurpose::QueueStatus {
                self.write_lines.push(line);
            }
            if let (WritePurpose::Event, WriteOp::Create(event)) = (write.purpose, &write.op) {
                let fields = ["/regarding/kind", "/regarding/name", "/reason", "/note"];
                self.events.push(fields.map(|it| text(event, it)).join(" "));
            }
            let outcome = if is_rejected {
                WriteResult::Rejected("rejected by the test".to_owned())
            } else {
                execute(&mut self.api, &write).unwrap()
            };
            self.process.write_results.push((write.id, outcome));
        }
    }

    fn deliver_write_results(&mut self) {
        let mut dice = crate::simulation::seeded_rng(0);
        while !self.process.write_results.is_empty() {
            self.process
                .deliver_write_result(self.api.now_ms, &mut dice);
        }
    }

    /// Delivers that the results of writes are not known; they were not executed.
    pub fn lose_writes(&mut self, writes: Vec<WriteRequest>) {
        let lost = || WriteResult::Failed("no response".to_owned());
        let results = writes.into_iter().map(|it| (it.id, lost()));
        self.process.write_results.extend(results);
        self.deliver_write_results();
    }

    /// Begins the decision log again.
    pub fn restart_decision_log(&mut self) {
        self.process.reconciler.restart_events();
    }

    /// Advances the time from timer to timer.
    pub fn advance(&mut self, ms: i64) -> Vec<String> {
        let end_ms = self.api.now_ms + ms;
        let mut lines = self.settle();
        while let Some(at_ms) = self.process.wake_at_ms.filter(|at_ms| *at_ms <= end_ms) {
            self.api.now_ms = self.api.now_ms.max(at_ms);
            lines.extend(self.settle());
        }
        self.api.now_ms = end_ms;
        lines.extend(self.settle());
        lines
    }

    pub const fn counters(&self) -> Counters {
        self.process.reconciler.counters()
    }

    pub fn take_evictions(&mut self) -> Vec<Eviction> {
        self.process.reconciler.take_evictions()
    }

    /// The pending workloads by ClusterQueue and reason.
    pub fn unadmitted_workloads(&self) -> Vec<(String, usize)> {
        let counts = self.process.reconciler.unadmitted_workloads();
        let line = |((queue, reason), count)| (format!("{queue} {reason}"), count);
        counts.into_iter().map(line).collect()
    }

    /// The usage and the nominal quota, a line for each resource.
    pub fn quota_usage(&self) -> Vec<String> {
        let line = |it: QuotaUsage<'_>| {
            format!(
                "{} {} {} {} of {}",
                it.cluster_queue, it.flavor, it.resource, it.used, it.nominal
            )
        };
        let usage = self.process.reconciler.quota_usage();
        usage.into_iter().map(line).collect()
    }

    /// The objects as the controller sees them.
    pub const fn objects(&self) -> &ClusterState {
        self.process.reconciler.objects()
    }

    pub const fn stuck_evictions(&self) -> usize {
        self.process.reconciler.stuck_evictions()
    }

    /// Changes an object as its user.
    pub fn change(&mut self, kind: Kind, name: &str, patch: &Value) {
        let name = ObjectKey::new(objects::NAMESPACE, name);
        self.api.patch(kind, &name, patch, false).unwrap();
    }

    pub fn status(&mut self, kind: Kind, name: &str, status: &Value) {
        let name = ObjectKey::new(objects::NAMESPACE, name);
        let patch = json!({"status": status});
        self.api.patch(kind, &name, &patch, true).unwrap();
    }

    pub fn get(&self, kind: Kind, name: &str) -> &Value {
        let name = ObjectKey::new(objects::NAMESPACE, name);
        self.api.get(kind, &name).unwrap()
    }

    /// The name of a job's workload.
    pub fn workload_of(&self, job: &str) -> String {
        let mut workloads = self.api.all(Kind::Workload);
        let is_its = |it: &Value| text(it, "/metadata/ownerReferences/0/name") == job;
        let found = workloads.find(|(_, it)| is_its(it));
        found.unwrap().0.name().to_owned()
    }

    /// The conditions of a job's workload, one per line.
    pub fn conditions(&self, job: &str) -> Vec<String> {
        let workload = self.get(Kind::Workload, &self.workload_of(job));
        let conditions = list(workload, "/status/conditions").iter();
        let line = |value: &Value| {
            let [of, status, reason, message] =
                ["/type", "/status", "/reason", "/message"].map(|field| text(value, field));
            format!("{of}={status} {reason}: {message}")
        };
        let mut lines: Vec<String> = conditions.map(line).collect();
        lines.sort();
        lines
    }
}

//! Whether jobs fit into the free quota, one after another, without preemption.

use super::candidate::job_key;
use super::objects::ClusterObjects;
use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec,
};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Config;
use lockkeeper_api::workload::Admission;
use lockkeeper_cluster_state::pod_default_objects::{set_limit_range, set_runtime_class};
use lockkeeper_cluster_state::settings::{requeue_settings, scheduling_options};
use lockkeeper_cluster_state::{
    ClusterState, Completeness, NotQueuedReason, WorkloadPhase, admission, pending_message,
    uncovered_resources_message, workload_key,
};
use lockkeeper_controller::adoption_manifest;
use lockkeeper_controller::job_adapters::{JobKinds, JobView};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Decision, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The settings that decide whether a workload fits.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    options: Options,
    requeue: RequeueSettings,
    excluded_prefixes: Vec<String>,
    /// The largest spec of a job that the controller admits, in bytes.
    pub(crate) job_spec_max_bytes: usize,
    now_ms: i64,
}

impl Settings {
    /// The settings of the controller's configuration. `now_s` is in seconds since 1970.
    pub(crate) fn new(config: &Config, now_s: i64) -> Self {
        let mut options = scheduling_options(config);
        // A running job has all its pods: fewer cannot be admitted.
        options.disable_partial_admission = true;
        Self {
            options,
            requeue: requeue_settings(config),
            excluded_prefixes: config.resources.exclude_prefixes.clone(),
            job_spec_max_bytes: config.controller.job_spec_max_bytes.count(),
            now_ms: now_s.saturating_mul(1000),
        }
    }
}

/// The quota of a cluster, with the jobs that were found to fit.
#[derive(Debug)]
pub(crate) struct QuotaCheck {
    cluster: ClusterState,
    job_kinds: JobKinds,
    now_ms: i64,
    /// The keys of the node labels of all flavors.
    label_keys: BTreeSet<String>,
}

impl QuotaCheck {
    /// The quota that the admitted workloads of a cluster leave. Pending workloads do not count: the pods of a running job
    /// use resources already.
    pub(crate) fn new(objects: &ClusterObjects, job_kinds: &JobKinds, settings: &Settings) -> Self {
        let (options, requeue) = (settings.options.clone(), settings.requeue.clone());
        let mut cluster = ClusterState::new(options, requeue, Completeness::Complete);
        cluster.exclude_resources(settings.excluded_prefixes.clone());
        cluster.set_now(settings.now_ms);
        for flavor in &objects.flavors {
            let mut flavor = flavor.clone();
            // The controller adds them to a job that it starts; running pods have only their own.
            flavor.spec.tolerations = Vec::new();
            cluster.set_resource_flavor(&flavor);
        }
        // An object that is rejected here admits nothing, as in the controller.
        for cohort in &objects.cohorts {
            let _ = cluster.set_cohort(cohort);
        }
        for queue in &objects.cluster_queues {
            let _ = cluster.set_cluster_queue(Arc::new(queue.clone()));
        }
        for class in &objects.priority_classes {
            cluster.set_priority_class(class);
        }
        for limit_range in &objects.limit_ranges {
            set_limit_range(&mut cluster, limit_range);
        }
        for class in &objects.runtime_classes {
            set_runtime_class(&mut cluster, class);
        }
        for namespace in &objects.namespaces {
            let name = namespace.metadata.name.clone().unwrap_or_default();
            let labels = namespace.metadata.labels.clone().unwrap_or_default();
            cluster.set_namespace(&name, labels);
        }
        for queue in &objects.local_queues {
            cluster.set_local_queue(queue);
        }
        let admitted = |it: &&Workload| it.status.as_ref().is_some_and(|it| it.admission.is_some());
        for workload in objects.workloads.iter().filter(admitted) {
            let phase = cluster.set_workload(Arc::new(workload.clone()));
            if !matches!(phase, Ok(WorkloadPhase::Admitted)) {
                cluster.remove_workload(&workload_key(workload));
            }
        }
        let labels = objects
            .flavors
            .iter()
            .flat_map(|it| it.spec.node_labels.keys());
        Self {
            cluster,
            job_kinds: job_kinds.clone(),
            now_ms: settings.now_ms,
            label_keys: labels.cloned().collect(),
        }
    }

    /// The objects, for priorities.
    pub(crate) fn into_cluster(self) -> ClusterState {
        self.cluster
    }

    /// Reserves the quota of a job of the kind with this index in the LocalQueue of its view. The error is the reason why it does not fit.
    pub(crate) fn admit(&mut self, kind: usize, job: &JobView) -> Result<Admission, String> {
        let workload = self.workload(kind, job)?;
        let key = workload_key(&workload);
        let phase = self.cluster.set_workload(Arc::clone(&workload));
        let admitted = match phase {
            Err(error) => Err(error.to_string()),
            Ok(WorkloadPhase::NotQueued(reason)) => Err(self.not_queued(&workload, reason)),
            Ok(_) => self.decide(&key, &workload),
        };
        if admitted.is_err() {
            self.cluster.remove_workload(&key);
        }
        admitted
    }

    fn decide(&mut self, key: &str, workload: &Workload) -> Result<Admission, String> {
        if let Some(message) = uncovered_resources_message(&self.cluster, workload) {
            return Err(message);
        }
        let cycle = self.cluster.next_cycle(self.now_ms, true);
        let state = self.cluster.state();
        let id = state.workload(key);
        if cycle.out_of_scope.iter().any(|it| Some(*it) == id) {
            return Err(
                "the namespace does not match the ClusterQueue's spec.namespaceSelector".to_owned(),
            );
        }
        let mut entries = cycle.entries.iter();
        let Some(entry) = entries.find(|it| Some(it.workload) == id) else {
            return Err(
                "the ClusterQueue is inactive: it is stopped or deleted, or a flavor does not exist"
                    .to_owned(),
            );
        };
        match &entry.decision {
            Decision::Admit => admission(state, entry.workload, entry.assignment())
                .ok_or_else(|| "the admission cannot be recorded".to_owned()),
            Decision::Preempt(victims) => Err(format!(
                "{}; it would need the preemption of {} workloads, and an adoption preempts none",
                pending_message(state, entry),
                victims.len()
            )),
            Decision::NoCandidates | Decision::NoFit => {
                Err(self.explain(pending_message(state, entry), workload))
            }
            Decision::DeferredFit | Decision::Skip(_) => {
                Err("waits for the victims of other workloads to release quota".to_owned())
            }
        }
    }

    /// Adds the node labels that the pods do not select.
    fn explain(&self, message: String, workload: &Workload) -> String {
        let pods = workload.spec.pod_sets.iter();
        let specs = pods.filter_map(|it| it.template.spec.as_ref());
        let mut missing: BTreeSet<&str> = BTreeSet::new();
        for spec in specs {
            let selected = spec.node_selector.iter().flatten().map(|it| it.0.as_str());
            let selected: BTreeSet<&str> = selected.collect();
            let keys = self.label_keys.iter().map(String::as_str);
            missing.extend(keys.filter(|it| !selected.contains(it)));
        }
        if missing.is_empty() || !message.contains("NoMatchingFlavor") {
            return message;
        }
        let missing: Vec<&str> = missing.into_iter().collect();
        format!(
            "{message}; running pods keep their placement, so a flavor counts only if they select its node labels: {}",
            missing.join(", ")
        )
    }

    /// The workload of a job, whose pods can use only the flavors that they select.
    fn workload(&self, kind: usize, job: &JobView) -> Result<Arc<Workload>, String> {
        let manifest = adoption_manifest(&self.job_kinds, &job_key(kind, job), job);
        let manifest = manifest.ok_or("it has no pod template")?;
        let mut workload: Workload =
            serde_json::from_value(manifest).map_err(|error| error.to_string())?;
        for pod_set in &mut workload.spec.pod_sets {
            let template = Arc::make_mut(&mut pod_set.template);
            if let Some(spec) = &mut template.spec {
                exclude_unselected_flavors(spec, &self.label_keys);
            }
        }
        Ok(Arc::new(workload))
    }

    fn not_queued(&self, workload: &Workload, reason: NotQueuedReason) -> String {
        let queue = workload.spec.queue_name.as_deref().unwrap_or_default();
        match reason {
            NotQueuedReason::NoLocalQueue => {
                format!("LocalQueue {queue} does not exist in its namespace")
            }
            NotQueuedReason::NoClusterQueue => {
                format!("the ClusterQueue of LocalQueue {queue} does not exist or is invalid")
            }
            NotQueuedReason::LocalQueueStopped => {
                format!("LocalQueue {queue} is stopped (spec.stopPolicy)")
            }
            NotQueuedReason::NoPriorityClass => "its PriorityClass does not exist".to_owned(),
            NotQueuedReason::PriorityClassNotAllowed => {
                let objects = self.cluster.objects();
                let class = objects
                    .disallowed_priority_class(workload)
                    .unwrap_or_default();
                format!("PriorityClass {class} is not allowed in LocalQueue {queue}")
            }
            NotQueuedReason::Finished | NotQueuedReason::Inactive => {
                "its Workload is not active".to_owned()
            }
        }
    }
}

/// Restricts a pod to flavors without the node labels that it does not select. The controller adds the labels of a flavor to
/// a job that it starts, but cannot add them to running pods.
fn exclude_unselected_flavors(spec: &mut PodSpec, label_keys: &BTreeSet<String>) {
    let selected: BTreeSet<String> = selected_labels(spec).into_keys().collect();
    let absent: Vec<NodeSelectorRequirement> = label_keys
        .difference(&selected)
        .map(|key| NodeSelectorRequirement {
            key: key.clone(),
            operator: "DoesNotExist".to_owned(),
            values: None,
        })
        .collect();
    if absent.is_empty() {
        return;
    }
    let affinity = spec.affinity.get_or_insert_with(Affinity::default);
    let nodes = affinity
        .node_affinity
        .get_or_insert_with(NodeAffinity::default);
    let required = nodes
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_with(NodeSelector::default);
    if required.node_selector_terms.is_empty() {
        required
            .node_selector_terms
            .push(NodeSelectorTerm::default());
    }
    for term in &mut required.node_selector_terms {
        let all = term.match_expressions.get_or_insert_with(Vec::new);
        all.extend(absent.iter().cloned());
    }
}

/// The node labels that a pod requires with one value: by its node selector, or by every term of its required affinity.
fn selected_labels(spec: &PodSpec) -> BTreeMap<String, String> {
    let mut out = spec.node_selector.clone().unwrap_or_default();
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|it| it.node_affinity.as_ref());
    let required = affinity.and_then(|it| {
        it.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let terms = required.map(|it| it.node_selector_terms.as_slice());
    let mut terms = terms.unwrap_or_default().iter().map(single_values);
    if let Some(first) = terms.next() {
        let rest: Vec<_> = terms.collect();
        let is_in_all =
            |it: &(String, String)| rest.iter().all(|term| term.get(&it.0) == Some(&it.1));
        out.extend(first.into_iter().filter(is_in_all));
    }
    out
}

/// The labels that a term requires with one value.
fn single_values(term: &NodeSelectorTerm) -> BTreeMap<String, String> {
    let all = term.match_expressions.iter().flatten();
    let single = all.filter_map(|it| match it.values.as_deref() {
        Some([value]) if it.operator == "In" => Some((it.key.clone(), value.clone())),
        _ => None,
    });
    single.collect()
}

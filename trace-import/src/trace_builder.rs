//! Builds a trace from records, one at a time.

use crate::amounts::multiplied;
use crate::assumption_counts::AssumptionCounts;
use crate::import_error::{ImportError, ImportProblem};
use crate::label::Label;
use crate::mapping::{Mapping, QueueRule};
use crate::shortened::shortened;
use lockkeeper_scenario::{AmountText, PodSet};
use lockkeeper_simulate::timeline::{Job, JobTrace, PodSetTable};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A trace, and the line of each of its jobs.
#[derive(Clone, Debug)]
pub struct ImportedTrace {
    /// The trace. A file of jobs has no ClusterQueues: a configuration adds them.
    pub trace: JobTrace,
    /// By job: its line in the file, from 1.
    pub lines: Vec<u64>,
}

/// One job of a file. Empty texts are unknown.
#[derive(Clone, Debug)]
pub(crate) struct Record<'t> {
    pub(crate) line: u64,
    pub(crate) name: Arc<str>,
    /// Milliseconds from any start.
    pub(crate) arrival_ms: i64,
    /// `None` if it is unknown.
    pub(crate) run_ms: Option<i64>,
    /// The limit of its run time in seconds; `None` if it has none.
    pub(crate) limit_s: Option<i64>,
    pub(crate) queue: &'t str,
    /// Whether the queue is the name of a ClusterQueue if the mapping has no rules.
    pub(crate) names_cluster_queue: bool,
    pub(crate) partition: &'t str,
    pub(crate) user: &'t str,
    pub(crate) group: &'t str,
    pub(crate) priority: Option<i32>,
    pub(crate) pods: i64,
    /// Of all pods together.
    pub(crate) requests: Vec<(&'t str, AmountText)>,
}

/// Collects records.
#[derive(Debug)]
pub(crate) struct TraceBuilder<'m> {
    mapping: &'m Mapping,
    /// With the time of arrival in milliseconds and the line.
    jobs: Vec<(i64, u64, Job)>,
    names: BTreeSet<Arc<str>>,
    queues: BTreeMap<&'m str, Arc<str>>,
    named_queues: BTreeSet<Arc<str>>,
    pod_sets: PodSetTable,
    latest_ms: Option<i64>,
    pub(crate) assumptions: AssumptionCounts,
}

impl<'m> TraceBuilder<'m> {
    pub(crate) fn new(mapping: &'m Mapping) -> Self {
        Self {
            mapping,
            jobs: Vec::new(),
            names: BTreeSet::new(),
            queues: BTreeMap::new(),
            named_queues: BTreeSet::new(),
            pod_sets: PodSetTable::default(),
            latest_ms: None,
            assumptions: AssumptionCounts::default(),
        }
    }

    /// Adds a job, or counts why it is left out. Costs the number of rules, and the logarithm of the number of jobs.
    pub(crate) fn add(&mut self, record: Record<'_>) -> Result<(), ImportError> {
        self.check_order(&record)?;
        let rule = self.matching_rule(&record)?;
        let Some(cluster_queue) = self.cluster_queue(rule, &record) else {
            self.assumptions
                .add("job left out: its rule in the mapping has no clusterQueue");
            return Ok(());
        };
        let Some(run_seconds) = self.run_seconds(&record) else {
            return Ok(());
        };
        let Some(pod_set) = self.pod_set(&record)? else {
            self.assumptions
                .add("job left out: its requests are unknown");
            return Ok(());
        };
        let limit_s = self.limit_s(&record, run_seconds);
        let priority = self.priority(rule, &record);
        if !self.names.insert(Arc::clone(&record.name)) {
            let name = record.name.to_string();
            return Err(ImportError::at(
                record.line,
                ImportProblem::DuplicateName { name },
            ));
        }
        let job = Job {
            name: record.name,
            uid: String::new(),
            cluster_queue,
            arrival: 0,
            run_seconds,
            ready_seconds: None,
            maximum_execution_time_seconds: limit_s,
            priority,
            waited_seconds: 0,
            ran_seconds: None,
            pod_sets: self.pod_sets.share(vec![pod_set]),
        };
        self.jobs.push((record.arrival_ms, record.line, job));
        Ok(())
    }

    /// Returns the trace. Times count from the first arrival.
    pub(crate) fn finish(mut self) -> Result<ImportedTrace, ImportError> {
        // Stable: jobs of one time stay in the order of the file.
        self.jobs.sort_by_key(|(arrival_ms, ..)| *arrival_ms);
        let Some((start_ms, ..)) = self.jobs.first() else {
            let hint = if self.assumptions.is_empty() {
                ""
            } else {
                ": all records are left out; give default values in the file of --map"
            };
            return Err(ImportError::general(ImportProblem::NoJob(hint)));
        };
        let start_ms = *start_ms;
        let mut lines = Vec::with_capacity(self.jobs.len());
        let mut jobs = Vec::with_capacity(self.jobs.len());
        for (arrival_ms, line, mut job) in self.jobs {
            job.arrival = arrival_ms.saturating_sub(start_ms).div_euclid(1_000);
            lines.push(line);
            jobs.push(job);
        }
        let trace = JobTrace {
            jobs: Arc::new(jobs),
            assumptions: self.assumptions.into_assumptions(),
            ..JobTrace::default()
        };
        Ok(ImportedTrace { trace, lines })
    }

    fn check_order(&mut self, record: &Record<'_>) -> Result<(), ImportError> {
        let latest_ms = self.latest_ms.unwrap_or(record.arrival_ms);
        self.latest_ms = Some(latest_ms.max(record.arrival_ms));
        let early_ms = latest_ms.saturating_sub(record.arrival_ms);
        if early_ms <= 0 {
            return Ok(());
        }
        if self.mapping.sort {
            self.assumptions
                .add("records are sorted by arrival: this one came later in the file");
            return Ok(());
        }
        let seconds = early_ms.saturating_add(999).div_euclid(1_000);
        Err(ImportError::at(
            record.line,
            ImportProblem::Unsorted { seconds },
        ))
    }

    /// The first rule that matches; `None` for the default queue, or the queue that the record names.
    fn matching_rule(&self, record: &Record<'_>) -> Result<Option<&'m QueueRule>, ImportError> {
        let rule = self.mapping.queues.iter().find(|it| it.matches(record));
        let has_name = self.is_named(record);
        if rule.is_some() || self.mapping.default_queue.is_some() || has_name {
            return Ok(rule);
        }
        let parts = [
            ("queue", record.queue),
            ("partition", record.partition),
            ("user", record.user),
            ("group", record.group),
        ];
        let parts = parts.iter().filter(|(_, value)| !value.is_empty());
        let parts = parts.map(|(field, value)| format!("{field} {}", shortened(value)));
        let parts: Vec<String> = parts.collect();
        let record_text = if parts.is_empty() {
            "a record without queue, partition, user and group".to_owned()
        } else {
            parts.join(", ")
        };
        Err(ImportError::at(
            record.line,
            ImportProblem::NoQueue {
                record: record_text,
            },
        ))
    }

    /// Whether a record names its ClusterQueue itself.
    fn is_named(&self, record: &Record<'_>) -> bool {
        record.names_cluster_queue && self.mapping.queues.is_empty() && !record.queue.is_empty()
    }

    fn cluster_queue(
        &mut self,
        rule: Option<&'m QueueRule>,
        record: &Record<'_>,
    ) -> Option<Arc<str>> {
        let name = match rule {
            Some(rule) => rule.cluster_queue.as_deref()?,
            None if self.is_named(record) => {
                return Some(self.named_queue(record.queue));
            }
            None => {
                self.assumptions
                    .add("queue unknown or without a rule: defaultQueue of the mapping is used");
                self.mapping.default_queue.as_deref()?
            }
        };
        let shared = self.queues.entry(name).or_insert_with(|| name.into());
        Some(Arc::clone(shared))
    }

    fn named_queue(&mut self, name: &str) -> Arc<str> {
        if let Some(shared) = self.named_queues.get(name) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = name.into();
        self.named_queues.insert(Arc::clone(&shared));
        shared
    }

    /// The run time in seconds, rounded up; `None` if the job is left out.
    fn run_seconds(&mut self, record: &Record<'_>) -> Option<i64> {
        match record.run_ms {
            Some(0) => {
                self.assumptions
                    .add("job left out: its run time is 0, it never ran");
                None
            }
            Some(ms) => {
                if ms.rem_euclid(1_000) != 0 {
                    self.assumptions.add("run time rounded up to whole seconds");
                }
                Some(ms.saturating_add(999).div_euclid(1_000))
            }
            None => {
                let default_s = self.mapping.defaults.run_seconds;
                match default_s {
                    Some(seconds) => self.assumptions.add(&format!(
                        "run time unknown: {seconds} s (defaults.runSeconds of the mapping)"
                    )),
                    None => self
                        .assumptions
                        .add("job left out: its run time is unknown"),
                }
                default_s
            }
        }
    }

    /// The limit of the run time: a job that exceeded it was not stopped, so it is limited by its run time.
    fn limit_s(&mut self, record: &Record<'_>, run_s: i64) -> Option<i64> {
        let limit_s = record.limit_s.filter(|it| *it > 0)?;
        if limit_s < run_s {
            self.assumptions
                .add("job ran longer than its limit: its run time is its limit");
        }
        Some(limit_s.max(run_s))
    }

    fn priority(&mut self, rule: Option<&QueueRule>, record: &Record<'_>) -> i32 {
        if let Some(priority) = record.priority {
            return priority;
        }
        if let Some(priority) = rule.and_then(|it| it.priority) {
            return priority;
        }
        let (priority, from) = match self.mapping.defaults.priority {
            Some(priority) => (priority, " (defaults.priority of the mapping)"),
            None => (0, ""),
        };
        self.assumptions
            .add(&format!("priority unknown: {priority}{from}"));
        priority
    }

    /// The pods of a job; `None` if its requests are unknown.
    fn pod_set(&mut self, record: &Record<'_>) -> Result<Option<PodSet>, ImportError> {
        let mut requests: BTreeMap<String, AmountText> = BTreeMap::new();
        let defaults = &self.mapping.defaults.requests;
        for (resource, amount) in &record.requests {
            requests.insert((*resource).to_owned(), *amount);
        }
        for (resource, amount) in defaults {
            if !requests.contains_key(resource) {
                // In the unit of the core, so that equal amounts are stored once.
                let amount = multiplied(*amount, 1, resource, record.line)?;
                requests.insert(resource.clone(), amount);
                self.assumptions.add(&format!(
                    "request of {resource} unknown: that of defaults.requests of the mapping"
                ));
            }
        }
        if requests.is_empty() {
            return Ok(None);
        }
        Ok(Some(PodSet {
            name: "main".to_owned(),
            count: record.pods,
            min_count: None,
            requests,
            flavors: BTreeMap::new(),
            ineligible_flavors: Vec::new(),
        }))
    }
}

impl QueueRule {
    fn matches(&self, record: &Record<'_>) -> bool {
        let is = |label: &Option<Label>, value: &str| {
            label.as_ref().is_none_or(|it| it.as_str() == value)
        };
        is(&self.queue, record.queue)
            && is(&self.partition, record.partition)
            && is(&self.user, record.user)
            && is(&self.group, record.group)
    }
}

//! The generator's configuration, as Kueue has it.

use anyhow::{Context, Error};
use serde::Deserialize;
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, Deserialize)]
pub struct Generator {
    pub cohorts: Vec<Cohort>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cohort {
    pub class_name: String,
    pub count: usize,
    pub queues_sets: Vec<Queues>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queues {
    pub class_name: String,
    pub count: usize,
    pub nominal_quota: u64,
    pub borrowing_limit: u64,
    pub reclaim_within_cohort: String,
    pub within_cluster_queue: String,
    pub workloads_sets: Vec<Workloads>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workloads {
    pub count: usize,
    pub creation_interval_ms: u64,
    #[serde(rename = "workloads")]
    pub classes: Vec<WorkloadClass>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadClass {
    pub class_name: String,
    pub runtime_ms: u64,
    pub priority: i32,
    pub request: u64,
}

/// One queue and its progress.
pub struct Queue<'a> {
    pub cohort: String,
    pub name: String,
    pub spec: &'a Queues,
}

impl Generator {
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_saphyr::from_str(&text).with_context(|| format!("cannot parse {}", path.display()))
    }

    pub fn queues(&self) -> Vec<Queue<'_>> {
        let mut out = Vec::new();
        for cohort in &self.cohorts {
            for at in 0..cohort.count {
                let name = format!("{}-{at}", cohort.class_name);
                for of in &cohort.queues_sets {
                    for number in 0..of.count {
                        out.push(Queue {
                            cohort: name.clone(),
                            name: format!("{name}-{}-{number}", of.class_name),
                            spec: of,
                        });
                    }
                }
            }
        }
        out
    }

    /// The classes of workloads, once each.
    pub fn classes(&self) -> Vec<&WorkloadClass> {
        let mut out: Vec<&WorkloadClass> = Vec::new();
        let queues = self.cohorts.iter().flat_map(|it| &it.queues_sets);
        let all = queues.flat_map(|it| &it.workloads_sets);
        for class in all.flat_map(|it| &it.classes) {
            if out.iter().all(|it| it.class_name != class.class_name) {
                out.push(class);
            }
        }
        out
    }

    /// Scales the number of workloads and keeps the proportions.
    pub fn scale(&mut self, workloads: usize) {
        let total = self.total().max(1);
        let queues = self.cohorts.iter_mut().flat_map(|it| &mut it.queues_sets);
        for set in queues.flat_map(|it| &mut it.workloads_sets) {
            set.count = (set.count * workloads).div_ceil(total);
        }
    }

    pub fn total(&self) -> usize {
        let queues = self.queues();
        let sets = queues.iter().flat_map(|it| &it.spec.workloads_sets);
        sets.map(|it| it.count * it.classes.len()).sum()
    }
}

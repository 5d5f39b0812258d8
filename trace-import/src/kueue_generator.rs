//! The files of Kueue's performance generator (`test/performance/scheduler`): cohorts of ClusterQueues, and sets of
//! workloads that are created at intervals.

use crate::assumption_counts::AssumptionCounts;
use crate::import_error::{ImportError, ImportProblem};
use lockkeeper_api::cluster_queue::{
    FlavorFungibility, QueueingStrategy, ReclaimWithinCohort, WithinClusterQueue,
};
use lockkeeper_api::quantity::Quantity;
use lockkeeper_scenario::{
    AmountText, ClusterQueue, Cohort, Flavor, PodSet, Preemption, Quota, ResourceGroup,
};
use lockkeeper_simulate::timeline::{Job, JobTrace, PodSetTable};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The most workloads of a file.
const WORKLOADS_MAX: u64 = 10_000_000;
/// The most ClusterQueues of a file.
const QUEUES_MAX: u64 = 100_000;
/// The longest time in milliseconds: 2^50, about 35,000 years.
const TIME_MAX_MS: u64 = 1 << 50;
/// The flavor of all quotas if the file names none.
const DEFAULT_FLAVOR: &str = "rf";

/// A generator file: an object with `cohorts`, or in older releases of Kueue the list alone.
#[derive(Clone, Debug, Default)]
pub struct GeneratorFile {
    cohorts: Vec<CohortSet>,
    flavor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileObject {
    cohorts: Vec<CohortSet>,
    #[serde(default)]
    resource_flavor: Option<FlavorObject>,
}

#[derive(Deserialize)]
struct FlavorObject {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CohortSet {
    class_name: String,
    count: u64,
    #[serde(default)]
    queues_sets: Vec<QueueSet>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueSet {
    class_name: String,
    count: u64,
    nominal_quota: Quantity,
    #[serde(default)]
    borrowing_limit: Option<Quantity>,
    #[serde(default)]
    reclaim_within_cohort: Option<ReclaimWithinCohort>,
    #[serde(default)]
    within_cluster_queue: Option<WithinClusterQueue>,
    #[serde(default)]
    workloads_sets: Vec<WorkloadSet>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadSet {
    count: u64,
    #[serde(default)]
    creation_interval_ms: u64,
    workloads: Vec<WorkloadTemplate>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadTemplate {
    class_name: String,
    runtime_ms: u64,
    #[serde(default)]
    priority: i32,
    request: Quantity,
    #[serde(default)]
    pod_count: i64,
    #[serde(default)]
    tas_level: String,
    #[serde(default)]
    devices: i64,
}

impl<'de> Deserialize<'de> for GeneratorFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FileVisitor)
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = GeneratorFile;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with cohorts, or a list of cohorts")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GeneratorFile, A::Error> {
        let file = FileObject::deserialize(MapAccessDeserializer::new(map))?;
        Ok(GeneratorFile {
            cohorts: file.cohorts,
            flavor: file.resource_flavor.and_then(|it| it.name),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<GeneratorFile, A::Error> {
        Ok(GeneratorFile {
            cohorts: Vec::deserialize(SeqAccessDeserializer::new(list))?,
            flavor: None,
        })
    }
}

/// A template, and the field path of its set.
struct Generated<'f> {
    template: &'f WorkloadTemplate,
    set: &'f WorkloadSet,
    cluster_queue: Arc<str>,
    set_at: usize,
    template_at: usize,
    path: String,
}

/// Returns the trace of a generator file, with its ClusterQueues. A second of the simulation is the greatest common
/// divisor of all times in the file, because simulations have whole seconds.
///
/// Costs the workloads and the logarithm of their number.
///
/// # Errors
///
/// The first value that is out of range, with its field path.
pub fn generator_trace(file: &GeneratorFile) -> Result<JobTrace, ImportError> {
    let mut trace = JobTrace::default();
    let sets = add_queues(file, &mut trace)?;
    check_times(&sets)?;
    let times = sets
        .iter()
        .flat_map(|it| [it.set.creation_interval_ms, it.template.runtime_ms]);
    let unit_ms = times.fold(0, greatest_common_divisor).max(1);
    let mut assumptions = AssumptionCounts::default();
    assumptions.add(&format!(
        "1 s of the simulation is {unit_ms} ms of the file"
    ));
    let mut jobs = Vec::new();
    let mut pod_sets = PodSetTable::default();
    for generated in &sets {
        add_jobs(generated, unit_ms, &mut pod_sets, &mut jobs)?;
        let count = generated.set.count;
        let template = generated.template;
        if !template.tas_level.is_empty() {
            assumptions.add_times("the topology of the pods is not considered", count);
        }
        if template.devices > 0 {
            assumptions.add_times("the devices of the pods are not considered", count);
        }
    }
    // Stable: workloads of one time stay in the order of the file.
    jobs.sort_by_key(|it: &Job| it.arrival);
    let Some(first) = jobs.first().map(|it| it.arrival) else {
        return Err(ImportError::general(ImportProblem::NoJob(
            ": all counts are 0",
        )));
    };
    for job in &mut jobs {
        job.arrival = job.arrival.saturating_sub(first);
    }
    trace.jobs = Arc::new(jobs);
    trace.assumptions = assumptions.into_assumptions();
    Ok(trace)
}

/// Adds the cohorts and ClusterQueues; returns the sets of workloads of each queue.
fn add_queues<'f>(
    file: &'f GeneratorFile,
    trace: &mut JobTrace,
) -> Result<Vec<Generated<'f>>, ImportError> {
    let flavor = file.flavor.as_deref().unwrap_or(DEFAULT_FLAVOR);
    let mut sets = Vec::new();
    let mut workloads = 0_u64;
    for (cohort_at, cohort_set) in file.cohorts.iter().enumerate() {
        for cohort_number in 0..cohort_set.count {
            check_count(trace.cohorts.len(), QUEUES_MAX, "cohorts")?;
            let cohort = format!("{}-{cohort_number}", cohort_set.class_name);
            trace.cohorts.push(Cohort {
                name: cohort.clone(),
                parent: None,
                fair_weight: 1.0,
                quotas: Vec::new(),
            });
            for (set_at, set) in cohort_set.queues_sets.iter().enumerate() {
                for number in 0..set.count {
                    check_count(trace.cluster_queues.len(), QUEUES_MAX, "ClusterQueues")?;
                    let name = format!("{}-{set_at}-{number}-{cohort}", set.class_name);
                    let path = format!("cohorts[{cohort_at}].queuesSets[{set_at}]");
                    for generated in workload_sets(set, &name, &path) {
                        workloads = workloads.saturating_add(generated.set.count);
                        if workloads > WORKLOADS_MAX {
                            return Err(too_many(WORKLOADS_MAX, "workloads"));
                        }
                        sets.push(generated);
                    }
                    trace
                        .cluster_queues
                        .push(cluster_queue(set, name, &cohort, flavor));
                }
            }
        }
    }
    Ok(sets)
}

fn check_count(count: usize, max: u64, of: &'static str) -> Result<(), ImportError> {
    if u64::try_from(count).is_ok_and(|it| it < max) {
        Ok(())
    } else {
        Err(too_many(max, of))
    }
}

fn too_many(max: u64, of: &'static str) -> ImportError {
    ImportError::general(ImportProblem::TooMany { max, of })
}

fn workload_sets<'f>(
    set: &'f QueueSet,
    queue: &str,
    path: &str,
) -> impl Iterator<Item = Generated<'f>> {
    let queue: Arc<str> = queue.into();
    let sets = set.workloads_sets.iter().enumerate();
    sets.flat_map(move |(set_at, set)| {
        let queue = Arc::clone(&queue);
        let path = format!("{path}.workloadsSets[{set_at}]");
        let templates = set.workloads.iter().enumerate();
        templates.map(move |(template_at, template)| Generated {
            template,
            set,
            cluster_queue: Arc::clone(&queue),
            set_at,
            template_at,
            path: path.clone(),
        })
    })
}

fn cluster_queue(set: &QueueSet, name: String, cohort: &str, flavor: &str) -> ClusterQueue {
    let quota = Quota {
        flavor: String::new(),
        resource: "cpu".to_owned(),
        nominal: AmountText::Quantity(set.nominal_quota),
        borrowing_limit: set.borrowing_limit.map(AmountText::Quantity),
        lending_limit: None,
    };
    ClusterQueue {
        name,
        cohort: Some(cohort.to_owned()),
        fair_weight: 1.0,
        resource_groups: vec![ResourceGroup {
            resources: vec!["cpu".to_owned()],
            flavors: vec![Flavor {
                name: flavor.to_owned(),
                quotas: vec![quota],
            }],
        }],
        preemption: Preemption {
            within_cluster_queue: set.within_cluster_queue,
            reclaim_within_cohort: set.reclaim_within_cohort,
            ..Preemption::default()
        },
        flavor_fungibility: FlavorFungibility::default(),
        queueing_strategy: QueueingStrategy::default(),
        backfill: None,
        namespace_selector: None,
        elastic: None,
        inactive: false,
        usage: Vec::new(),
    }
}

/// Checks the times and the counts of pods.
fn check_times(sets: &[Generated<'_>]) -> Result<(), ImportError> {
    for generated in sets {
        let range = |field: &str, value: String, accepted| {
            ImportError::general(ImportProblem::Range {
                at: format!("{}.{field}", generated.path),
                value,
                accepted,
            })
        };
        let template = generated.template;
        let at = |field: &str| format!("workloads[{}].{field}", generated.template_at);
        if !(1..=TIME_MAX_MS).contains(&template.runtime_ms) {
            let value = template.runtime_ms.to_string();
            return Err(range(&at("runtimeMs"), value, "1 to 2^50"));
        }
        let templates = u64::try_from(generated.set.workloads.len()).unwrap_or(u64::MAX);
        let last_ms = generated.set.count.checked_mul(templates);
        let last_ms = last_ms.and_then(|it| it.checked_mul(generated.set.creation_interval_ms));
        if last_ms.is_none_or(|it| it > TIME_MAX_MS) {
            let value = generated.set.creation_interval_ms.to_string();
            return Err(range(
                "creationIntervalMs",
                value,
                "an interval whose last workload is created before 2^50 ms",
            ));
        }
        if !(0..=2_147_483_647).contains(&template.pod_count) {
            let value = template.pod_count.to_string();
            return Err(range(&at("podCount"), value, "0 to 2147483647"));
        }
        let cpu = AmountText::Quantity(template.request).in_core_units("cpu");
        let total = cpu.and_then(|it| it.checked_mul(template.pod_count.max(1)));
        if total.is_none_or(|it| it < 0) {
            let value = template.request.to_string();
            return Err(range(&at("request"), value, "zero or more, below 2^63"));
        }
    }
    Ok(())
}

fn add_jobs(
    generated: &Generated<'_>,
    unit_ms: u64,
    pod_sets: &mut PodSetTable,
    jobs: &mut Vec<Job>,
) -> Result<(), ImportError> {
    let template = generated.template;
    // Kueue's generator counts 0 as one pod.
    let count = template.pod_count.max(1);
    let cpu = AmountText::Quantity(template.request).in_core_units("cpu");
    let cpu = cpu.unwrap_or_default().saturating_mul(count);
    let shared = pod_sets.share(vec![PodSet {
        name: "main".to_owned(),
        count,
        min_count: None,
        requests: BTreeMap::from([("cpu".to_owned(), AmountText::Number(cpu))]),
        flavors: BTreeMap::new(),
        ineligible_flavors: Vec::new(),
    }]);
    let templates = u64::try_from(generated.set.workloads.len()).unwrap_or(u64::MAX);
    let template_at = u64::try_from(generated.template_at).unwrap_or(u64::MAX);
    let seconds = |ms: u64| {
        let units = ms
            .checked_div(unit_ms)
            .and_then(|it| i64::try_from(it).ok());
        units.ok_or_else(|| {
            ImportError::general(ImportProblem::TooLarge {
                field: generated.path.clone(),
            })
        })
    };
    for number in 0..generated.set.count {
        // The generator waits for the interval before each workload.
        let created = number.saturating_mul(templates).saturating_add(template_at);
        let created_ms = created
            .saturating_add(1)
            .saturating_mul(generated.set.creation_interval_ms);
        let name = format!(
            "{}/{}-{}-{number}-{}",
            generated.cluster_queue, template.class_name, generated.set_at, generated.template_at
        );
        jobs.push(Job {
            name: name.into(),
            uid: String::new(),
            cluster_queue: Arc::clone(&generated.cluster_queue),
            arrival: seconds(created_ms)?,
            run_seconds: seconds(template.runtime_ms)?,
            ready_seconds: None,
            maximum_execution_time_seconds: None,
            priority: template.priority,
            waited_seconds: 0,
            ran_seconds: None,
            pod_sets: Arc::clone(&shared),
        });
    }
    Ok(())
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a.checked_rem(b).unwrap_or_default());
    }
    a
}

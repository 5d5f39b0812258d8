//! Generates objects from choices. Amounts are small, so that resources are scarce.

use super::choices::Choices;
use super::cluster_model::{
    COHORTS, ClusterModel, Cohort, FLAVORS, Group, Limits, ModelReservation, Pair, Pods, QUEUES,
    Queue, Workload,
};
use crate::reference::tree::Tree;
use lockkeeper_preemption::{
    Algorithm, BorrowWithinCohort, BorrowingGate, Compatibility, Damping, FairStrategy,
    FlavorFungibility, Fungibility, KueueBugs, Options, Preemption, PreemptionLimits, Preference,
    QueueingStrategy, ReclaimWithinCohort, WithinClusterQueue,
};
use std::collections::BTreeMap;

/// Options of the random clusters.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorOptions {
    /// Only with fair sharing, or only without; `None` is either.
    pub is_fair: Option<bool>,
    /// Only policies that permit to preempt strictly lower priorities.
    pub is_strict: bool,
    /// Whether the workloads at the start may exceed the quota.
    pub may_overcommit: bool,
    /// Whether queues and cohorts do not change.
    pub has_fixed_queues: bool,
}

impl GeneratorOptions {
    pub const ANY: Self = Self {
        is_fair: None,
        is_strict: false,
        may_overcommit: true,
        has_fixed_queues: false,
    };
}

/// The resources of the groups, and how many flavors each may have.
const LAYOUTS: [&[(&[usize], &[usize])]; 6] = [
    &[(&[1], &[0])],
    &[(&[1], &[0, 1])],
    &[(&[1, 2], &[0, 1, 2])],
    &[(&[1], &[0, 1]), (&[2], &[2])],
    &[(&[0, 1], &[0, 1])],
    &[(&[1, 2], &[0])],
];

pub fn options(dice: &mut Choices<'_>, kind: GeneratorOptions) -> Options {
    let is_fair = dice.one_in(2);
    let strategies: &[FairStrategy] = dice.pick(&[
        &[
            FairStrategy::LessThanOrEqualToFinalShare,
            FairStrategy::LessThanInitialShare,
        ][..],
        &[FairStrategy::LessThanOrEqualToFinalShare],
        &[FairStrategy::LessThanInitialShare],
        &[],
    ]);
    Options {
        algorithm: if kind.is_fair.unwrap_or(is_fair) {
            Algorithm::FairSharing(strategies.to_vec())
        } else {
            Algorithm::Classical
        },
        compatibility: dice.pick(&[Compatibility::Kueue, Compatibility::Lockkeeper]),
        borrowing_gate: if dice.one_in(3) {
            BorrowingGate::Cohort
        } else {
            BorrowingGate::Quota
        },
        disable_partial_admission: dice.one_in(3),
        disable_recomputation: dice.one_in(3),
        // The plain reference has no damping.
        damping: Damping::Off,
        victims_per_cycle_max: None,
        preemption_limits: PreemptionLimits::default(),
        kueue_bugs: KueueBugs::default(),
    }
}

/// A cluster with queues, cohorts and running workloads.
pub fn cluster_model(dice: &mut Choices<'_>, kind: GeneratorOptions) -> ClusterModel {
    let mut cluster_model = ClusterModel {
        options: options(dice, kind),
        ..ClusterModel::default()
    };
    let layout = dice.below(LAYOUTS.len());
    let cohorts = dice.below(COHORTS.len() + 1);
    for (at, name) in COHORTS[..cohorts].iter().enumerate() {
        let parent = dice.below(at + 1).checked_sub(1);
        let mut cohort = cohort(dice, name, layout);
        cohort.parent = parent.map(|it| COHORTS[it].to_owned());
        cluster_model.cohorts.insert(cohort.name.clone(), cohort);
    }
    for name in &QUEUES[..=dice.below(QUEUES.len())] {
        let mut queue = queue(dice, name, layout, kind);
        queue.cohort = Some(COHORTS[dice.below(cohorts.max(1))].to_owned());
        if dice.one_in(8) {
            queue.cohort = None;
        }
        cluster_model.queues.insert(queue.name.clone(), queue);
    }
    for number in 0..dice.below(16) {
        let mut workload = workload(dice, number, &cluster_model);
        workload.reservation = Some(reservation(dice, &workload, &cluster_model));
        let may_overcommit = kind.may_overcommit && dice.one_in(5);
        if may_overcommit || fits(&cluster_model, &workload) {
            cluster_model
                .workloads
                .insert(workload.name.clone(), workload);
        }
    }
    cluster_model
}

/// A cluster with some pending workloads, named from `w100` on.
pub fn with_pending_workloads(dice: &mut Choices<'_>, kind: GeneratorOptions) -> ClusterModel {
    let mut cluster_model = cluster_model(dice, kind);
    for number in 100..=100 + dice.below(6) {
        let workload = workload(dice, number, &cluster_model);
        if cluster_model.queues.contains_key(&workload.queue) {
            cluster_model
                .workloads
                .insert(workload.name.clone(), workload);
        }
    }
    cluster_model
}

/// A few queues and as many pending workloads that compete for the same quota.
pub fn contended_cluster(dice: &mut Choices<'_>, kind: GeneratorOptions) -> ClusterModel {
    let mut cluster_model = ClusterModel {
        options: options(dice, kind),
        ..ClusterModel::default()
    };
    let layout = dice.pick(&[0, 0, 1, 5]);
    let cohorts = 1 + dice.below(3);
    for (at, name) in COHORTS[..cohorts].iter().enumerate() {
        let mut cohort = cohort(dice, name, layout);
        cohort.parent = (at > 0).then(|| COHORTS[dice.below(at)].to_owned());
        cohort.weight = 1.0;
        cluster_model.cohorts.insert(cohort.name.clone(), cohort);
    }
    for name in &QUEUES[..2 + dice.below(3)] {
        let mut queue = queue(dice, name, layout, kind);
        queue.cohort = Some(COHORTS[dice.below(cohorts)].to_owned());
        queue.is_active = true;
        cluster_model.queues.insert(queue.name.clone(), queue);
    }
    for number in 100..102 + dice.below(5) {
        let mut workload = workload(dice, number, &cluster_model);
        workload.is_in_scope = true;
        workload.pods.truncate(1);
        let pods = &mut workload.pods[0];
        pods.count = 1;
        pods.count_min = None;
        pods.ineligible.clear();
        pods.requests = vec![(1, dice.amount(0, 6)), (2, dice.amount(0, 6))];
        if layout != 5 || dice.one_in(4) {
            pods.requests.truncate(1);
        }
        pods.requests.retain(|(_, amount)| *amount != 0);
        cluster_model
            .workloads
            .insert(workload.name.clone(), workload);
    }
    cluster_model
}

fn fits(cluster_model: &ClusterModel, workload: &Workload) -> bool {
    let tree = Tree::new(cluster_model);
    let queue = tree.index(&workload.queue, true);
    let usage = &workload.reservation.as_ref().unwrap().usage;
    let mut usage = usage.iter();
    usage.all(|(pair, amount)| *amount <= tree.available(queue, *pair))
}

fn limits(dice: &mut Choices<'_>, most: i64) -> Limits {
    let nominal = dice.amount(0, most);
    let limit = |dice: &mut Choices<'_>, most: i64| {
        let limit = dice.amount(0, most);
        dice.one_in(3).then_some(limit)
    };
    Limits {
        nominal,
        borrowing: limit(dice, 4),
        lending: limit(dice, nominal),
    }
}

pub fn cohort(dice: &mut Choices<'_>, name: &str, layout: usize) -> Cohort {
    let mut quotas = BTreeMap::new();
    for (resources, flavors) in LAYOUTS[layout] {
        for pair in flavors
            .iter()
            .flat_map(|f| resources.iter().map(|r| (*f, *r)))
        {
            if dice.one_in(3) {
                quotas.insert(pair, limits(dice, 5));
            }
        }
    }
    Cohort {
        name: name.to_owned(),
        parent: None,
        quotas,
        weight: weight(dice),
    }
}

fn weight(dice: &mut Choices<'_>) -> f64 {
    dice.pick(&[1.0, 1.0, 1.0, 2.0, 0.5, 0.0])
}

pub fn queue(dice: &mut Choices<'_>, name: &str, layout: usize, kind: GeneratorOptions) -> Queue {
    let layout = if dice.one_in(10) {
        dice.below(LAYOUTS.len())
    } else {
        layout
    };
    let groups = LAYOUTS[layout].iter().map(|(resources, flavors)| {
        let mut flavors = flavors.to_vec();
        let first = dice.below(flavors.len());
        flavors.rotate_left(first);
        if dice.one_in(4) {
            flavors.truncate(1);
        }
        let flavors = flavors.into_iter().map(|flavor| {
            let quotas = resources.iter().map(|_| limits(dice, 9)).collect();
            (flavor, quotas)
        });
        Group {
            resources: resources.to_vec(),
            flavors: flavors.collect(),
        }
    });
    let groups = groups.collect();
    Queue {
        name: name.to_owned(),
        cohort: None,
        groups,
        preemption: preemption(dice, kind),
        fungibility: FlavorFungibility {
            when_can_borrow: dice.pick(&[Fungibility::MayStopSearch, Fungibility::TryNextFlavor]),
            when_can_preempt: dice.pick(&[Fungibility::TryNextFlavor, Fungibility::MayStopSearch]),
            preference: dice.pick(&[
                Preference::BorrowingOverPreemption,
                Preference::PreemptionOverBorrowing,
            ]),
        },
        strategy: dice.pick(&[
            QueueingStrategy::BestEffortFifo,
            QueueingStrategy::BestEffortFifo,
            QueueingStrategy::StrictFifo,
        ]),
        weight: weight(dice),
        is_active: !dice.one_in(20),
    }
}

pub fn preemption(dice: &mut Choices<'_>, kind: GeneratorOptions) -> Preemption {
    let within = [
        WithinClusterQueue::LowerPriority,
        WithinClusterQueue::Never,
        WithinClusterQueue::LowerOrNewerEqualPriority,
    ];
    let reclaim = [
        ReclaimWithinCohort::LowerPriority,
        ReclaimWithinCohort::Never,
        ReclaimWithinCohort::Any,
    ];
    let threshold = dice.amount(-1, 3);
    let threshold_max = dice.one_in(2).then(|| i32::try_from(threshold).unwrap());
    let kinds = if kind.is_strict { 2 } else { 3 };
    Preemption {
        within_cluster_queue: dice.pick(&within[..kinds]),
        reclaim_within_cohort: dice.pick(&reclaim[..kinds]),
        borrow_within_cohort: dice.pick(&[
            BorrowWithinCohort::Never,
            BorrowWithinCohort::LowerPriority { threshold_max },
        ]),
        limits: PreemptionLimits::default(),
    }
}

/// A workload of some queue of the cluster.
pub fn workload(dice: &mut Choices<'_>, number: usize, cluster_model: &ClusterModel) -> Workload {
    let mut names: Vec<String> = cluster_model.queues.keys().cloned().collect();
    names.push(QUEUES[0].to_owned());
    let queue = dice.pick(&names);
    let sets = 1 + usize::from(dice.one_in(4));
    let pods = (0..sets).map(|_| pods(dice)).collect();
    // Uids have another order than names.
    let uid = format!("u{}-{number}", dice.below(4));
    let priority = i32::try_from(dice.amount(0, 3)).unwrap();
    let order_time = 1000 + dice.amount(0, 7);
    // One in three has another preemption priority; it follows from choices that are made anyway.
    let higher = match number % 3 {
        0 => i32::try_from(order_time % 4).unwrap() - 1,
        _ => 0,
    };
    Workload {
        name: format!("w{number}"),
        uid,
        queue,
        priority,
        preemption_priority: priority + higher,
        order_time,
        pods,
        is_in_scope: !dice.one_in(20),
        reservation: None,
    }
}

fn pods(dice: &mut Choices<'_>) -> Pods {
    let count = dice.amount(1, 3);
    let least = dice.amount(0, 3).min(count);
    let mut requests = vec![(1, count * (1 + dice.amount(0, 2)))];
    if dice.one_in(2) {
        requests.push((2, count * dice.amount(0, 2)));
    }
    let ineligible = dice.below(FLAVORS.len());
    Pods {
        count,
        count_min: dice.one_in(4).then_some(least),
        requests,
        ineligible: if dice.one_in(6) {
            vec![ineligible]
        } else {
            Vec::new()
        },
    }
}

/// A possible reservation of a workload: its requests in some flavor of its queue.
pub fn reservation(
    dice: &mut Choices<'_>,
    workload: &Workload,
    cluster_model: &ClusterModel,
) -> ModelReservation {
    let mut usage: BTreeMap<Pair, i64> = BTreeMap::new();
    let groups = cluster_model
        .queues
        .get(&workload.queue)
        .map(|it| it.groups.clone());
    for (resource, amount) in workload.pods.iter().flat_map(|it| &it.requests) {
        let mut groups = groups.iter().flatten();
        let group = groups.find(|it| it.resources.contains(resource));
        let mut flavors: Vec<usize> = group
            .iter()
            .flat_map(|it| it.flavors.iter().map(|(flavor, _)| *flavor))
            .collect();
        if group.is_none() || dice.one_in(12) {
            // The queue changed after the admission.
            flavors = vec![0, 1, 2];
        }
        *usage.entry((dice.pick(&flavors), *resource)).or_default() += amount;
    }
    ModelReservation {
        usage,
        reserved_at_s: 2000 + dice.amount(0, 5),
        is_evicted: dice.one_in(8),
    }
}

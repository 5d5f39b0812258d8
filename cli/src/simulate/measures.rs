//! The measures of a simulation as a flat list, for CSV and Markdown.

use lockkeeper_simulate::timeline::{
    GroupMetrics, JobTrace, Metrics, Outcome, PodsReadyStats, Timeline, WaitTimes,
};
use std::fmt::Display;

/// One measure. The names of scopes and measures are stable (docs/simulate.md).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Measure {
    /// What it concerns.
    pub(crate) key: MeasureKey,
    /// Its value.
    pub(crate) value: String,
}

/// What a measure concerns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MeasureKey {
    /// `total`, `eviction`, `queue`, `priority`, `quota`, `flavor`, `resource`, `node`, `share` or
    /// `assumption`.
    pub(crate) scope: &'static str,
    /// The ClusterQueue, the priority, the reason of evictions, or the text of an assumption; else empty.
    pub(crate) name: String,
    /// The flavor of a quota.
    pub(crate) flavor: String,
    /// The resource of a quota.
    pub(crate) resource: String,
    /// The measure.
    pub(crate) measure: &'static str,
}

/// Collects measures.
#[derive(Debug, Default)]
struct MeasureList(Vec<Measure>);

impl MeasureList {
    fn add(
        &mut self,
        scope: &'static str,
        names: [&str; 3],
        measure: &'static str,
        value: &dyn Display,
    ) {
        let [name, flavor, resource] = names.map(str::to_owned);
        self.0.push(Measure {
            key: MeasureKey {
                scope,
                name,
                flavor,
                resource,
                measure,
            },
            value: value.to_string(),
        });
    }

    fn add_wait(&mut self, scope: &'static str, name: &str, wait: &WaitTimes) {
        let names = [name, "", ""];
        for (measure, value) in [
            ("wait_p50_seconds", wait.p50),
            ("wait_p90_seconds", wait.p90),
            ("wait_p95_seconds", wait.p95),
            ("wait_p99_seconds", wait.p99),
            ("wait_max_seconds", wait.max),
            ("wait_sum_seconds", wait.sum),
        ] {
            self.add(scope, names, measure, &value);
        }
    }

    fn add_group(&mut self, scope: &'static str, group: &GroupMetrics) {
        let names = [group.name.as_str(), "", ""];
        self.add(scope, names, "jobs", &group.jobs);
        self.add(scope, names, "finished", &group.finished);
        self.add(scope, names, "never_admitted", &group.never_admitted);
        self.add(scope, names, "preemptions", &group.preemptions);
        if let Some(pods_ready) = &group.pods_ready {
            self.add(scope, names, "evictions", &pods_ready.evictions);
            self.add(scope, names, "deactivated", &pods_ready.deactivated);
        }
        self.add(scope, names, "lost_seconds", &group.lost_seconds);
        self.add_wait(scope, &group.name, &group.wait);
        let slowdown = &group.slowdown;
        for (measure, value) in [
            ("slowdown_p50", slowdown.p50),
            ("slowdown_p90", slowdown.p90),
            ("slowdown_p95", slowdown.p95),
            ("slowdown_p99", slowdown.p99),
            ("slowdown_max", slowdown.max),
            ("slowdown_mean", slowdown.mean),
        ] {
            self.add(scope, names, measure, &value);
        }
    }

    fn add_totals(&mut self, timeline: &Timeline, metrics: &Metrics) {
        let none = ["", "", ""];
        let stats = &timeline.stats;
        self.add("total", none, "outcome", &outcome_name(timeline.outcome));
        self.add("total", none, "makespan_seconds", &timeline.makespan_s);
        self.add("total", none, "cycles", &timeline.cycles);
        self.add("total", none, "jobs", &stats.jobs);
        self.add("total", none, "finished", &stats.finished);
        self.add("total", none, "never_admitted", &stats.never_admitted);
        self.add("total", none, "admissions", &stats.admissions);
        self.add("total", none, "backfilled", &stats.backfilled);
        self.add("total", none, "preemptions", &stats.preemptions);
        let repeated_preemptions = &metrics.repeated_preemptions;
        self.add(
            "total",
            none,
            "preempted_jobs",
            &repeated_preemptions.preempted_jobs,
        );
        self.add(
            "total",
            none,
            "repeatedly_preempted_jobs",
            &repeated_preemptions.repeatedly_preempted_jobs,
        );
        self.add(
            "total",
            none,
            "most_preemptions_of_a_job",
            &repeated_preemptions.most_preemptions,
        );
        self.add("total", none, "lost_seconds", &stats.lost_seconds);
        self.add_wait("total", "", &stats.wait);
        self.add("total", none, "jain_index", &metrics.fairness.jain_index);
    }

    /// What happened because pods were not ready.
    fn add_pods_ready(&mut self, stats: &PodsReadyStats) {
        let none = ["", "", ""];
        self.add("total", none, "evictions", &stats.evictions);
        self.add("total", none, "requeues", &stats.requeues);
        self.add("total", none, "deactivated", &stats.deactivated);
        self.add("total", none, "not_ready_seconds", &stats.not_ready_seconds);
        self.add("total", none, "evicted_lost_seconds", &stats.lost_seconds);
        for (reason, count) in &stats.evictions_by_reason {
            self.add("eviction", [reason, "", ""], "count", count);
        }
    }

    fn add_quotas(&mut self, metrics: &Metrics) {
        for quota in &metrics.quotas {
            let names = [&*quota.cluster_queue, &*quota.flavor, &*quota.resource];
            let utilization = quota
                .utilization
                .map_or_else(String::new, |it| format!("{it:.4}"));
            self.add("quota", names, "utilization", &utilization);
            self.add("quota", names, "peak", &quota.peak);
            self.add(
                "quota",
                names,
                "above_nominal_seconds",
                &quota.above_nominal_seconds,
            );
            self.add("quota", names, "wasted_amount_seconds", &quota.wasted);
        }
        for (scope, pools) in [
            ("flavor", &metrics.flavors),
            ("resource", &metrics.resources),
        ] {
            for pool in pools {
                let utilization = pool
                    .utilization
                    .map_or_else(String::new, |it| it.to_string());
                let names = ["", pool.flavor.as_str(), pool.resource.as_str()];
                self.add(scope, names, "utilization", &utilization);
            }
        }
        for node in &metrics.nodes {
            let names = ["", "", node.resource.as_str()];
            let utilization = node.utilization;
            let utilization = utilization.map_or_else(String::new, |it| it.to_string());
            self.add("node", names, "utilization", &utilization);
            self.add("node", names, "peak", &node.peak);
        }
    }
}

/// Returns the measures of a simulation, in a fixed order.
pub(crate) fn measures(trace: &JobTrace, timeline: &Timeline, metrics: &Metrics) -> Vec<Measure> {
    let mut list = MeasureList::default();
    list.add_totals(timeline, metrics);
    if let Some(stats) = &timeline.stats.pods_ready {
        list.add_pods_ready(stats);
    }
    for group in &metrics.queues {
        list.add_group("queue", group);
    }
    for group in &metrics.priorities {
        list.add_group("priority", group);
    }
    list.add_quotas(metrics);
    for share in &metrics.fairness.shares {
        let names = [share.cluster_queue.as_str(), "", ""];
        list.add("share", names, "dominant_share", &share.dominant_share);
    }
    for assumption in &trace.assumptions {
        let names = [assumption.text.as_str(), "", ""];
        list.add("assumption", names, "count", &assumption.count);
    }
    list.0
}
/// The stable name of an outcome.
pub(crate) const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Drained => "drained",
        Outcome::Stuck => "stuck",
        Outcome::Livelock => "livelock",
        Outcome::Loop => "loop",
        Outcome::Recorded => "recorded",
    }
}

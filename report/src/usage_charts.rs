//! Charts of the use of one cohort or ClusterQueue over time.

use crate::quota_steps::queue_quota;
use crate::quota_usage::QuotaUsage;
use crate::simulation::Simulation;
use crate::stacked_chart::{ChartSize, Line, Series, StackedChart};
use crate::step_series::{Steps, integral, peak, sum_steps};
use std::cmp::Reverse;

/// The most series of a plot; the others are one series.
const SERIES_MAX: usize = 8;

/// A limit is drawn if it is at most this many times the quota and the use; otherwise it would make them invisible.
const LIMIT_FACTOR_MAX: i64 = 3;

/// Returns the chart of a cohort, stacked by its children; `None` without quota and use.
pub(crate) fn cohort_chart<'a>(
    simulation: &Simulation<'_>,
    usage: &QuotaUsage<'_>,
    at: usize,
    resource: &'a str,
) -> Option<StackedChart<'a>> {
    let until_s = simulation.until_s();
    let cohort = usage.tree.nodes.get(at)?;
    let children = usage.tree.children(at).filter_map(|child| {
        let node = usage.tree.nodes.get(child)?;
        Some((node.name, usage.usage(child, resource)))
    });
    let series = largest(children.collect(), until_s);
    let nominal = usage.nominal(at, resource);
    if series.is_empty() && nominal.is_empty() {
        return None;
    }
    Some(StackedChart {
        kind: "cohort-usage",
        title: format!("{resource} of cohort {}, by child", cohort.name),
        resource,
        series,
        lines: vec![nominal_line(nominal)],
        until_s,
        least_peak: 0,
        size: if cohort.depth == 0 {
            ChartSize::Wide
        } else {
            ChartSize::Half
        },
    })
}

/// Returns the chart of the ClusterQueue with an index in the trace, stacked by flavor; `None` without quota and use.
pub(crate) fn queue_chart<'a>(
    simulation: &Simulation<'_>,
    usage: &QuotaUsage<'_>,
    at: usize,
    resource: &'a str,
) -> Option<StackedChart<'a>> {
    let until_s = simulation.until_s();
    let queue = simulation.trace.cluster_queues.get(at)?;
    let flavors = usage.by_flavor(at, resource).into_iter();
    let flavors = flavors.map(|(name, steps)| (name, steps.clone()));
    let series = largest(flavors.collect(), until_s);
    let quota = queue_quota(simulation.trace, at, resource);
    if series.is_empty() && quota.nominal.is_empty() {
        return None;
    }
    let used = peak(&sum_steps(series.iter().map(|it| &it.steps)));
    let visible = used.max(peak(&quota.nominal));
    let visible = visible.saturating_mul(LIMIT_FACTOR_MAX);
    let mut lines = vec![nominal_line(quota.nominal)];
    lines.extend(
        quota
            .limit
            .filter(|it| peak(it) <= visible)
            .map(|steps| Line {
                name: "borrowing limit",
                class: "limit",
                steps,
            }),
    );
    lines.extend(quota.reserved.map(|steps| Line {
        name: "not lent",
        class: "reserved",
        steps,
    }));
    Some(StackedChart {
        kind: "queue-usage",
        title: format!("{resource} of ClusterQueue {}, by flavor", queue.name),
        resource,
        series,
        lines,
        until_s,
        least_peak: 0,
        size: ChartSize::Half,
    })
}

fn nominal_line(steps: Steps) -> Line {
    Line {
        name: "nominal quota",
        class: "nominal",
        steps,
    }
}

/// The series with the most use in their order, and the sum of the others.
fn largest(all: Vec<(&str, Steps)>, until_s: i64) -> Vec<Series> {
    let used = all.into_iter().filter(|(_, steps)| !steps.is_empty());
    let mut series: Vec<(usize, &str, Steps)> = used
        .enumerate()
        .map(|(at, (name, steps))| (at, name, steps))
        .collect();
    let mut rest = Vec::new();
    if series.len() > SERIES_MAX {
        series.sort_by_cached_key(|(_, _, steps)| Reverse(integral(steps, until_s)));
        rest = series.split_off(SERIES_MAX.saturating_sub(1));
        series.sort_by_key(|(at, ..)| *at);
    }
    let named = series.into_iter().enumerate();
    let named = named.map(|(at, (_, name, steps))| Series {
        name: name.to_owned(),
        class: format!("s{at}"),
        steps,
    });
    let mut series: Vec<Series> = named.collect();
    if !rest.is_empty() {
        series.push(Series {
            name: format!("{} others", rest.len()),
            class: "other".to_owned(),
            steps: sum_steps(rest.iter().map(|(_, _, steps)| steps)),
        });
    }
    series
}

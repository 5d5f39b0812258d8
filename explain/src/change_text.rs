//! Prints the smallest changes as text.

use crate::change::{AmountChange, Change, PolicyField};
use crate::count_text::count;
use std::fmt::{self, Write};

/// Writes the section about the changes.
pub(crate) fn write_changes(out: &mut impl Write, changes: &[Change]) -> fmt::Result {
    if changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nEach of these changes alone is sufficient")?;
    for change in changes {
        writeln!(out, "  {}", change_text(change))?;
    }
    Ok(())
}

fn change_text(change: &Change) -> String {
    match change {
        Change::NominalQuota {
            cluster_queue,
            amounts,
        } => format!(
            "nominal quota of ClusterQueue {cluster_queue}: {}",
            amounts_text(amounts)
        ),
        Change::BorrowingLimit {
            cluster_queue,
            amounts,
        } => format!(
            "borrowing limit of ClusterQueue {cluster_queue}: {}",
            amounts_text(amounts)
        ),
        Change::Priority {
            priority_min,
            class,
            victims,
        } => {
            let priority = priority_text(*priority_min, class.as_deref());
            format!("{priority}{}", preempting(*victims))
        }
        Change::PreemptionPolicy {
            cluster_queue,
            fields,
            victims,
        } => {
            let policy = policy_text(cluster_queue, fields);
            format!("{policy}{}", preempting(*victims))
        }
        Change::PolicyAndPriority {
            cluster_queue,
            fields,
            priority_min,
            class,
            victims,
        } => format!(
            "both {} and {}{}",
            policy_text(cluster_queue, fields),
            priority_text(*priority_min, class.as_deref()),
            preempting(*victims)
        ),
        Change::WorkloadEnds { workloads, total } => workload_ends_text(workloads, *total),
        Change::ExcludedResources { field, prefixes } => {
            format!(
                "configuration of the scheduler, {field}: {}",
                prefixes.join(", ")
            )
        }
        Change::FewerPods { pod_set, count, of } => {
            format!("{count} instead of {of} pods of pod set {pod_set}")
        }
    }
}

fn preempting(victims: usize) -> String {
    match victims {
        0 => String::new(),
        more => format!("; it then preempts {}", count(more, "workload")),
    }
}

fn priority_text(priority_min: i32, class: Option<&str>) -> String {
    let class = class.map(|it| format!(", for example PriorityClass {it}"));
    format!(
        "priority {priority_min} or higher{}",
        class.unwrap_or_default()
    )
}

fn policy_text(cluster_queue: &str, fields: &[PolicyField]) -> String {
    let fields = fields
        .iter()
        .map(|it| format!("{}: {}", it.field, it.value));
    let fields: Vec<String> = fields.collect();
    format!("ClusterQueue {cluster_queue}, {}", fields.join(", "))
}

fn workload_ends_text(workloads: &[String], total: usize) -> String {
    let more = total.saturating_sub(workloads.len());
    let more = if more > 0 {
        format!(" or {more} more")
    } else {
        String::new()
    };
    let one_of = if total > 1 {
        "one of these workloads ends: "
    } else {
        "this workload ends: "
    };
    format!("{one_of}{}{more}", workloads.join(", "))
}

fn amounts_text(amounts: &[AmountChange]) -> String {
    let amounts = amounts.iter().map(|it| {
        format!(
            "{} of flavor {}: {} more, {} in all",
            it.resource, it.flavor, it.by, it.to
        )
    });
    let amounts: Vec<String> = amounts.collect();
    amounts.join("; ")
}

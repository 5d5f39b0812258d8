//! The report about the decision on a workload, as an HTML page.

use lockkeeper_explain::{
    Answer, Forecast, PlacementResult, QuotaUse, Situation, World, quota_use,
};
use lockkeeper_report::{DecisionReport, DecisionTable, NodeQuota, render_decision};

/// Returns the page about the answer, which is also given as text.
pub(super) fn decision_page(world: &World, key: &str, answer: &Answer, text: String) -> String {
    let subject = &answer.workload;
    let name = format!("{}/{}", subject.namespace, subject.name);
    let starts = fits_on_nodes(answer);
    render_decision(&DecisionReport {
        summary: format!("{name} {}", answer.summary),
        subject: name,
        facts: facts(answer),
        tables: vec![
            quota_table(answer),
            victims_table(answer),
            node_victims_table(answer),
            candidates_table(answer),
            preemptors_table(answer),
        ],
        quota: quota_use(world, key)
            .into_iter()
            .map(|it| node_quota(it, starts))
            .collect(),
        text,
    })
}

fn facts(answer: &Answer) -> Vec<(&'static str, String)> {
    let subject = &answer.workload;
    let position = answer.position.as_ref().map(|it| {
        let number = it.in_cluster_queue.saturating_add(1);
        format!("{number} of {}", it.pending)
    });
    // The forecast is about quota.
    let forecast = answer.forecast.as_ref().filter(|_| fits_on_nodes(answer));
    let path = subject.path.as_ref().or(subject.cluster_queue.as_ref());
    let facts = [
        ("State", Some(situation_text(answer.situation).to_owned())),
        ("Reason", Some(answer.reason.clone())),
        ("Forecast", forecast.map(forecast_text)),
        (
            "Starts by",
            answer.starts_by.as_ref().map(|it| it.time.clone()),
        ),
        ("Position", position),
        ("ClusterQueue", path.cloned()),
        ("LocalQueue", subject.local_queue.clone()),
        ("Job", subject.job.clone()),
        ("Priority", Some(subject.priority.to_string())),
        (
            "Preemption priority",
            Some(subject.preemption_priority.to_string()),
        ),
    ];
    let facts = facts.into_iter();
    let facts = facts.filter_map(|(name, value)| Some((name, value.filter(|it| !it.is_empty())?)));
    facts.collect()
}

/// Whether the pods fit on nodes, or nodes do not matter.
fn fits_on_nodes(answer: &Answer) -> bool {
    let placement = answer.placement.as_ref();
    placement.is_none_or(|it| it.result != PlacementResult::DoesNotFit)
}

const fn situation_text(situation: Situation) -> &'static str {
    match situation {
        Situation::Finished => "finished",
        Situation::Running => "running",
        Situation::Evicting => "is being evicted",
        Situation::Pending => "pending",
        Situation::BackingOff => "in backoff",
        Situation::NotQueued => "not queued",
        Situation::Invalid => "invalid",
    }
}

fn forecast_text(forecast: &Forecast) -> String {
    match forecast {
        Forecast::Admitted { .. } => "is admitted".to_owned(),
        Forecast::Preempts { victims, .. } => match victims.len() {
            1 => "preempts 1 workload".to_owned(),
            more => format!("preempts {more} workloads"),
        },
        Forecast::Waits { .. } => "waits".to_owned(),
        Forecast::Unknown => "unknown".to_owned(),
    }
}

fn quota_table(answer: &Answer) -> DecisionTable {
    let rows = answer.quota.iter().map(|it| {
        vec![
            it.flavor.clone(),
            it.resource.clone(),
            it.requested.clone(),
            it.free.clone(),
            it.short.clone(),
            it.limited_by.clone(),
        ]
    });
    DecisionTable {
        title: "Request",
        caption: "The quota that the workload requests or uses.",
        columns: vec![
            "Flavor",
            "Resource",
            "Requested",
            "Free",
            "Missing",
            "Limited by",
        ],
        rows: rows.collect(),
    }
}

fn victims_table(answer: &Answer) -> DecisionTable {
    let rows = answer.victims.iter().map(|it| {
        vec![
            it.workload.clone(),
            it.cluster_queue.clone(),
            it.preemption_priority.to_string(),
            it.reason.to_owned(),
        ]
    });
    DecisionTable {
        title: "Victims",
        caption: "The workloads that it would preempt for quota, if it were the only pending workload.",
        columns: vec!["Workload", "ClusterQueue", "Preemption priority", "Reason"],
        rows: rows.collect(),
    }
}

fn node_victims_table(answer: &Answer) -> DecisionTable {
    let victims = answer.placement.iter().flat_map(|it| &it.victims);
    let rows = victims.map(|it| {
        let violates = if it.violates_budget { "yes" } else { "no" };
        vec![it.kind.to_owned(), it.name.clone(), violates.to_owned()]
    });
    DecisionTable {
        title: "Victims on nodes",
        caption: "The units that are preempted for their room on nodes.",
        columns: vec!["Kind", "Name", "Violates a disruption budget"],
        rows: rows.collect(),
    }
}

fn candidates_table(answer: &Answer) -> DecisionTable {
    let rows = answer.candidates.iter().map(|it| {
        let may_be = if it.may_be_preempted { "yes" } else { "no" };
        vec![
            it.workload.clone(),
            it.cluster_queue.clone(),
            it.preemption_priority.to_string(),
            may_be.to_owned(),
            it.reason.clone(),
        ]
    });
    DecisionTable {
        title: "Candidates",
        caption: "The workloads with quota that this one lacks.",
        columns: vec![
            "Workload",
            "ClusterQueue",
            "Preemption priority",
            "May be preempted",
            "Reason",
        ],
        rows: rows.collect(),
    }
}

fn preemptors_table(answer: &Answer) -> DecisionTable {
    let rows = answer.preemptors.iter().map(|it| {
        let least = it.priority_min.map(|it| it.to_string());
        vec![
            it.cluster_queue.clone(),
            least.unwrap_or_else(|| "any".to_owned()),
            it.reason.to_owned(),
        ]
    });
    DecisionTable {
        title: "Possible preemptors",
        caption: "The ClusterQueues whose workloads could preempt this one.",
        columns: vec!["ClusterQueue", "Lowest priority", "Reason"],
        rows: rows.collect(),
    }
}

fn node_quota(quota: QuotaUse, starts: bool) -> NodeQuota {
    let name = quota.path.rsplit('/').next().unwrap_or_default().to_owned();
    NodeQuota {
        depth: quota.path.matches('/').count().saturating_sub(1),
        name,
        path: quota.path,
        kind: quota.kind,
        flavor: quota.flavor,
        resource: quota.resource,
        nominal: quota.nominal,
        used: quota.used,
        used_after: quota.used_after.filter(|_| starts),
    }
}

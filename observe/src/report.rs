//! The result of the comparison.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use std::fmt::{self, Write};

/// The kind of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DecisionKind {
    /// A workload was admitted.
    Admission,
    /// Workloads were preempted for another.
    Preemption,
    /// The core admits a workload or preempts for it, and Kueue does not.
    Missing,
}

impl DecisionKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Admission, Self::Preemption, Self::Missing];

    /// The name, as a label of metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Preemption => "preemption",
            Self::Missing => "missing",
        }
    }
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResultKind {
    /// The core decides the same.
    Agreed,
    /// The core decides otherwise.
    Different,
    /// The core decides otherwise, and something that it does not consider may be the cause.
    Explained,
    /// The core decides otherwise on all states that were compared, and Kueue may have had more of them than the bounds allow.
    Ambiguous,
}

impl ResultKind {
    /// All results.
    pub const ALL: [Self; 4] = [
        Self::Agreed,
        Self::Different,
        Self::Explained,
        Self::Ambiguous,
    ];

    /// The name, as a label of metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::Different => "different",
            Self::Explained => "explained",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// Numbers of compared decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// The core decides the same.
    pub agreed: u64,
    /// The core decides otherwise.
    pub different: u64,
    /// The core decides otherwise, with an explanation.
    pub explained: u64,
    /// The core decides otherwise on all states that were compared, and there are more.
    pub ambiguous: u64,
}

impl Counts {
    /// The number of a result.
    #[must_use]
    pub const fn get(&self, result: ResultKind) -> u64 {
        match result {
            ResultKind::Agreed => self.agreed,
            ResultKind::Different => self.different,
            ResultKind::Explained => self.explained,
            ResultKind::Ambiguous => self.ambiguous,
        }
    }

    pub(crate) const fn add(&mut self, result: ResultKind) {
        let count = match result {
            ResultKind::Agreed => &mut self.agreed,
            ResultKind::Different => &mut self.different,
            ResultKind::Explained => &mut self.explained,
            ResultKind::Ambiguous => &mut self.ambiguous,
        };
        *count = count.saturating_add(1);
    }
}

/// A decision on which Kueue and the core differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// When Kueue decided, or since when the core decides otherwise; RFC 3339, in seconds.
    pub time: String,
    /// The kind of the decision.
    pub decision: DecisionKind,
    /// The result of the comparison; never `agreed`.
    pub result: ResultKind,
    /// The workload, as `namespace/name`: the preemptor of a preemption.
    pub workload: String,
    /// Its ClusterQueue.
    pub cluster_queue: String,
    /// What Kueue does, and its reason.
    pub kueue: String,
    /// What the core does, and its reason.
    pub lockkeeper: String,
    /// What the core does not consider; empty if the difference is not explained.
    pub explanations: Vec<String>,
}

/// All results, for `/observed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Since when decisions are compared; RFC 3339. Absent before all lists are complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Admissions.
    pub admissions: Counts,
    /// Preemptions.
    pub preemptions: Counts,
    /// Decisions that Kueue does not make within the bound.
    pub missing: Counts,
    /// Decisions that are not compared yet.
    pub waiting: usize,
    /// Objects that cannot be read.
    pub unreadable: u64,
    /// Settings of Kueue that are not considered.
    pub not_considered: Vec<String>,
    /// The last differences, the newest last.
    pub differences: Vec<Difference>,
}

impl Report {
    /// The counts of a kind of decision.
    #[must_use]
    pub const fn counts(&self, kind: DecisionKind) -> &Counts {
        match kind {
            DecisionKind::Admission => &self.admissions,
            DecisionKind::Preemption => &self.preemptions,
            DecisionKind::Missing => &self.missing,
        }
    }

    pub(crate) const fn count(&mut self, kind: DecisionKind, result: ResultKind) {
        let counts = match kind {
            DecisionKind::Admission => &mut self.admissions,
            DecisionKind::Preemption => &mut self.preemptions,
            DecisionKind::Missing => &mut self.missing,
        };
        counts.add(result);
    }

    /// Counts a difference, as an explained one if it has explanations, and keeps it with the last ones.
    pub(crate) fn record(&mut self, most: usize, mut difference: Difference) -> Difference {
        if !difference.explanations.is_empty() {
            difference.result = ResultKind::Explained;
        }
        self.count(difference.decision, difference.result);
        if self.differences.len() >= most {
            self.differences.drain(..1);
        }
        self.differences.push(difference.clone());
        difference
    }
}

/// Writes a report as text.
///
/// # Errors
///
/// Those of `out`.
pub fn write_report(report: &Report, out: &mut impl Write) -> fmt::Result {
    match &report.since {
        Some(since) => writeln!(out, "Comparing the decisions of Kueue since {since}\n")?,
        None => writeln!(out, "Listing objects; no decision is compared yet\n")?,
    }
    writeln!(
        out,
        "DECISION     AGREED   DIFFERENT   EXPLAINED   AMBIGUOUS"
    )?;
    for kind in DecisionKind::ALL {
        let counts = report.counts(kind);
        writeln!(
            out,
            "{:<10} {:>8} {:>11} {:>11} {:>11}",
            kind.as_str(),
            counts.agreed,
            counts.different,
            counts.explained,
            counts.ambiguous
        )?;
    }
    if report.unreadable > 0 {
        writeln!(out, "\n{} objects cannot be read", report.unreadable)?;
    }
    if !report.not_considered.is_empty() {
        writeln!(out, "\nNot considered")?;
        for text in &report.not_considered {
            writeln!(out, "  {text}")?;
        }
    }
    for difference in &report.differences {
        writeln!(
            out,
            "\n{} {} {} in ClusterQueue {}",
            difference.time,
            difference.decision.as_str(),
            difference.workload,
            difference.cluster_queue
        )?;
        writeln!(out, "  Kueue       {}", difference.kueue)?;
        writeln!(out, "  lockkeeper  {}", difference.lockkeeper)?;
        if difference.result == ResultKind::Ambiguous {
            writeln!(
                out,
                "  ambiguous   more states are possible than were compared"
            )?;
        }
        for text in &difference.explanations {
            writeln!(out, "  explained   {text}")?;
        }
    }
    Ok(())
}

/// A second as RFC 3339.
pub(crate) fn rfc3339(second: i64) -> String {
    Timestamp::from_second(second).map_or_else(|_| second.to_string(), |it| it.to_string())
}

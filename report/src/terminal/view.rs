//! The views of a report.

/// A view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    /// The measures of all simulations.
    #[default]
    Comparison,
    /// Cohorts and ClusterQueues.
    Quota,
    /// The use of a cohort or a ClusterQueue over time.
    Usage,
    /// The numbers of workloads by state over time.
    States,
    /// Workloads over time.
    Gantt,
    /// Waits by ClusterQueue and priority.
    Waits,
    /// The table of workloads.
    Table,
}

impl View {
    /// All views, in their order.
    pub(crate) const ALL: [Self; 7] = [
        Self::Comparison,
        Self::Quota,
        Self::Usage,
        Self::States,
        Self::Gantt,
        Self::Waits,
        Self::Table,
    ];

    /// The short name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Comparison => "Comparison",
            Self::Quota => "Quota",
            Self::Usage => "Use",
            Self::States => "States",
            Self::Gantt => "Gantt",
            Self::Waits => "Waits",
            Self::Table => "Table",
        }
    }

    /// The heading of the same part of the report.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Comparison => "Comparison",
            Self::Quota => "Quota and use",
            Self::Usage => "Quota and use over time",
            Self::States => "Workloads over time",
            Self::Gantt => "Gantt chart of workloads",
            Self::Waits => "Wait times",
            Self::Table => "Workloads",
        }
    }

    /// Returns the position in [`Self::ALL`].
    pub(crate) fn index(self) -> usize {
        let position = Self::ALL.iter().position(|it| *it == self);
        position.unwrap_or_default()
    }

    /// Returns the view of a digit.
    pub(crate) fn from_digit(digit: char) -> Option<Self> {
        let number = usize::try_from(digit.to_digit(10)?).ok()?;
        Self::ALL.get(number.checked_sub(1)?).copied()
    }

    /// Returns the view so many further, and after the last one the first.
    pub(crate) fn after(self, by: usize) -> Self {
        let at = self.index().saturating_add(by);
        let at = at.checked_rem(Self::ALL.len()).unwrap_or_default();
        Self::ALL.get(at).copied().unwrap_or_default()
    }
}

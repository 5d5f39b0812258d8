//! Which pods may be victims, and which may trigger preemption: one truth table.
//!
//! Source: Koordinator's proposal 20240115-support-job-level-preemption, "Key Concept", "API" and
//! "Compatibility" (R5 and R7 in `docs/job.md`). Labels are parsed as in Koordinator
//! (`apis/extension`, `IsPodNonPreemptible`): only the exact value `false` means no, any other value means yes.
//!
//! The proposal contradicts itself on a pod without the label `preemptible`. Here `disableDefaultPreemptiable` decides,
//! and by default such a pod may be a victim, as in Koordinator. The proposal does not define `can-preempt` together
//! with a `preemptionPolicy` of `Never`; its example sets both, so both must permit preemption.

/// The value of one of the labels `quota.scheduling.koordinator.sh/preemptible` and `…/can-preempt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelValue {
    /// The label is absent.
    #[default]
    Missing,
    /// The value is exactly `false`.
    No,
    /// Any other value.
    Yes,
}

impl LabelValue {
    /// Parses the value of a label.
    #[must_use]
    pub fn from_value(value: Option<&str>) -> Self {
        match value {
            None => Self::Missing,
            // Only this value, as in Koordinator's `IsPodNonPreemptible`.
            Some("false") => Self::No,
            Some(_) => Self::Yes,
        }
    }

    /// The stricter of two values: no, then missing, then yes.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Missing, _) | (_, Self::Missing) => Self::Missing,
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }
}

/// The labels and the policy of a pod about preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PreemptionLabels {
    /// The label `preemptible`.
    pub preemptible: LabelValue,
    /// The label `can-preempt`.
    pub can_preempt: LabelValue,
    /// Whether its `preemptionPolicy` is `Never`. An absent one is `PreemptLowerPriority`.
    pub never_preempts: bool,
}

/// The preemption defaults of a quota; all off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElasticDefaults {
    /// `disableDefaultPreemptiable`: a pod without the label `preemptible` is non-preemptible.
    pub disable_default_preemptible: bool,
    /// `disableDefaultTriggerPreemption`: a pod without the label `can-preempt` does not trigger preemption.
    pub disable_default_trigger: bool,
    /// `podShouldBeDeletedWhenPreempted`: victims are deleted, and not marked for soft eviction.
    pub delete_victims: bool,
}

/// Whether a pod or a job may be preempted, which also selects its quota limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preemptibility {
    /// Never a victim; limited by the quota's min, and with all pods by its max.
    NonPreemptible,
    /// May be a victim; limited by the quota's max less the reserve for non-preemptible pods.
    Preemptible,
}

impl Preemptibility {
    /// The text in explanations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NonPreemptible => "non-preemptible",
            Self::Preemptible => "preemptible",
        }
    }
}

/// What happens to a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimAction {
    /// It gets the label `scheduling.koordinator.sh/soft-eviction`; another component deletes it.
    SoftEvict,
    /// It is deleted at once.
    Delete,
}

impl VictimAction {
    /// The text in explanations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SoftEvict => "patch soft-eviction",
            Self::Delete => "delete",
        }
    }
}

impl ElasticDefaults {
    /// The preemptibility of a pod (R7).
    #[must_use]
    pub const fn preemptibility(self, labels: PreemptionLabels) -> Preemptibility {
        match labels.preemptible {
            LabelValue::No => Preemptibility::NonPreemptible,
            LabelValue::Missing if self.disable_default_preemptible => {
                Preemptibility::NonPreemptible
            }
            LabelValue::Missing | LabelValue::Yes => Preemptibility::Preemptible,
        }
    }

    /// Whether a pod may trigger preemption (R5): neither its policy nor its label nor the default for an absent label
    /// may forbid it.
    #[must_use]
    pub const fn may_trigger_preemption(self, labels: PreemptionLabels) -> bool {
        // The proposal's example sets both the policy and the label, so both must permit it.
        !labels.never_preempts
            && match labels.can_preempt {
                LabelValue::No => false,
                LabelValue::Missing => !self.disable_default_trigger,
                LabelValue::Yes => true,
            }
    }

    /// What happens to victims (R11).
    #[must_use]
    pub const fn victim_action(self) -> VictimAction {
        if self.delete_victims {
            VictimAction::Delete
        } else {
            VictimAction::SoftEvict
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ElasticDefaults, LabelValue, Preemptibility, PreemptionLabels, VictimAction};
    use Preemptibility::{NonPreemptible, Preemptible};

    /// The truth table of `docs/job.md`, row by row.
    #[test]
    fn class_follows_truth_table() {
        // The label, `disable_default_preemptible`, the expected preemptibility.
        for (preemptible, disabled, expected) in [
            (None, false, Preemptible),
            (None, true, NonPreemptible),
            (Some("true"), false, Preemptible),
            (Some("true"), true, Preemptible),
            (Some("false"), false, NonPreemptible),
            (Some("false"), true, NonPreemptible),
            (Some("False"), false, Preemptible),
            (Some("False"), true, Preemptible),
            (Some(""), true, Preemptible),
        ] {
            // The other label, the other default and the policy do not affect it.
            for (other, never_preempts) in [(None, false), (Some("false"), true), (Some("x"), true)]
            {
                let labels = PreemptionLabels {
                    preemptible: LabelValue::from_value(preemptible),
                    can_preempt: LabelValue::from_value(other),
                    never_preempts,
                };
                for disable_default_trigger in [false, true] {
                    let defaults = ElasticDefaults {
                        disable_default_preemptible: disabled,
                        disable_default_trigger,
                        delete_victims: never_preempts,
                    };
                    assert_eq!(
                        defaults.preemptibility(labels),
                        expected,
                        "{labels:?} {defaults:?}"
                    );
                }
            }
        }
        // The policy Never, the label, the switch that disables the default, whether it may trigger.
        for (never_preempts, can_preempt, disabled, expected) in [
            (false, None, false, true),
            (false, None, true, false),
            (false, Some("true"), false, true),
            (false, Some("true"), true, true),
            (false, Some("false"), false, false),
            (false, Some("false"), true, false),
            (false, Some("yes"), true, true),
            (true, None, false, false),
            (true, None, true, false),
            (true, Some("true"), false, false),
            (true, Some("true"), true, false),
            (true, Some("false"), false, false),
            (true, Some("false"), true, false),
        ] {
            for other in [None, Some("false"), Some("true")] {
                let labels = PreemptionLabels {
                    preemptible: LabelValue::from_value(other),
                    can_preempt: LabelValue::from_value(can_preempt),
                    never_preempts,
                };
                for disable_default_preemptible in [false, true] {
                    let defaults = ElasticDefaults {
                        disable_default_preemptible,
                        disable_default_trigger: disabled,
                        delete_victims: false,
                    };
                    assert_eq!(
                        defaults.may_trigger_preemption(labels),
                        expected,
                        "{labels:?} {defaults:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn victim_action_follows_delete_victims_switch() {
        let action = |delete_victims| {
            let defaults = ElasticDefaults {
                delete_victims,
                ..ElasticDefaults::default()
            };
            defaults.victim_action()
        };
        assert_eq!(action(false), VictimAction::SoftEvict);
        assert_eq!(action(true), VictimAction::Delete);
    }
}

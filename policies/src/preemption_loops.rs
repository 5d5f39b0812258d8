//! Whether the policies of queues alone rule out preemption loops: workloads that preempt each other without end.
//!
//! The verdicts hold for Kueue's rules and a fixed set of workloads: none is created, deleted or finishes. With
//! lockkeeper's damping there are no preemption loops.
//!
//! 1. **No queue preempts.** Trivial.
//! 2. **No preemptor borrows, and each preempts only workloads after it in the order.** Suppose preemption continues
//!    without end. Let A be the first, by priority and then time, of the workloads that preempt infinitely often.
//!    Every preemptor of A is before A in the order, so from some time on A is not preempted. Hence A is never
//!    admitted: an admitted A would remain and preempt no more. When the victims of A are gone, A fits within its
//!    nominal quota, unless workloads that were decided before A took it. A does not borrow, so those workloads do
//!    not borrow either, and are before A by priority or time. By the choice of A they preempt finitely often, so
//!    they take the quota of A finitely often. Then A is admitted: a contradiction.
//!
//!    Under fair sharing the order is by share. The share of a queue that does not borrow is zero, so the argument
//!    holds if no cohort is nested.
//!
//! In all other cases the result depends on amounts; `lockkeeper check` searches for an example.

/// The rule whose findings a search replaces by examples.
pub const RULE: &str = "CQ024";

/// The workloads of other queues of the tree that a queue may preempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrossQueueScope {
    /// None.
    #[default]
    Never,
    /// Workloads of lower priority.
    LowerPriority,
    /// All.
    Any,
}

/// The preemption policies of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePreemption {
    /// Whether workloads preempt others of the queue.
    pub preempts_within_queue: bool,
    /// The preemptible workloads of other queues.
    pub cross_queue_scope: CrossQueueScope,
    /// Whether the queue may use more than its nominal quota.
    pub may_borrow: bool,
}

/// The preemption algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionRules {
    /// Fair sharing.
    pub is_fair: bool,
    /// Damping: preempted quota is held, and preemption loops are interrupted.
    pub is_damped: bool,
}

/// Whether a tree can have preemption loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopVerdict {
    /// No queue preempts.
    NoPreemption,
    /// Damping prevents loops.
    Damped,
    /// No preemptor borrows, and each preempts only workloads after it in the order.
    StrictlyOrdered,
    /// The policies alone do not decide it.
    Unknown,
}

/// The verdict for the queues of one tree. `is_nested` is whether one of its cohorts has a parent.
#[must_use]
pub fn loop_verdict(
    queues: &[QueuePreemption],
    is_nested: bool,
    rules: PreemptionRules,
) -> LoopVerdict {
    let preempts = |queue: &&QueuePreemption| {
        queue.preempts_within_queue || queue.cross_queue_scope != CrossQueueScope::Never
    };
    let mut preemptors = queues.iter().filter(preempts).peekable();
    if preemptors.peek().is_none() {
        return LoopVerdict::NoPreemption;
    }
    if rules.is_damped {
        return LoopVerdict::Damped;
    }
    // Under fair sharing the argument of case 2 needs a tree without nested cohorts.
    let is_ordered = !(rules.is_fair && is_nested);
    if is_ordered
        && preemptors.all(|it| !it.may_borrow && it.cross_queue_scope != CrossQueueScope::Any)
    {
        LoopVerdict::StrictlyOrdered
    } else {
        LoopVerdict::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_PREEMPTION: QueuePreemption = QueuePreemption {
        preempts_within_queue: false,
        cross_queue_scope: CrossQueueScope::Never,
        may_borrow: true,
    };
    const STRICTLY_ORDERED: QueuePreemption = QueuePreemption {
        preempts_within_queue: true,
        cross_queue_scope: CrossQueueScope::LowerPriority,
        may_borrow: false,
    };

    #[test]
    fn loop_verdict_is_that_of_the_worst_queue() {
        let any = QueuePreemption {
            cross_queue_scope: CrossQueueScope::Any,
            ..STRICTLY_ORDERED
        };
        let borrower = QueuePreemption {
            may_borrow: true,
            ..STRICTLY_ORDERED
        };
        let classical = PreemptionRules::default();
        let fair = PreemptionRules {
            is_fair: true,
            ..classical
        };
        let damped = PreemptionRules {
            is_damped: true,
            ..classical
        };
        for (queues, is_nested, rules, expected) in [
            (&[][..], true, classical, LoopVerdict::NoPreemption),
            (
                &[NO_PREEMPTION, NO_PREEMPTION],
                true,
                fair,
                LoopVerdict::NoPreemption,
            ),
            (
                &[NO_PREEMPTION, STRICTLY_ORDERED],
                true,
                classical,
                LoopVerdict::StrictlyOrdered,
            ),
            (
                &[NO_PREEMPTION, STRICTLY_ORDERED],
                false,
                fair,
                LoopVerdict::StrictlyOrdered,
            ),
            (
                &[NO_PREEMPTION, STRICTLY_ORDERED],
                true,
                fair,
                LoopVerdict::Unknown,
            ),
            (
                &[STRICTLY_ORDERED, any],
                false,
                classical,
                LoopVerdict::Unknown,
            ),
            (
                &[STRICTLY_ORDERED, borrower],
                false,
                classical,
                LoopVerdict::Unknown,
            ),
            (&[any, borrower], true, damped, LoopVerdict::Damped),
            (&[NO_PREEMPTION], true, damped, LoopVerdict::NoPreemption),
        ] {
            assert_eq!(
                loop_verdict(queues, is_nested, rules),
                expected,
                "{queues:?} {is_nested} {rules:?}"
            );
        }
    }
}

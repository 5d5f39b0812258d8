//! Whether the policies of queues alone keep workloads from preempting each other without end.
//!
//! The answers and their arguments, for workloads of which none comes, goes or finishes any more, are those of
//! Kueue's rules. With lockkeeper's damping there is never such a circle.
//!
//! 1. **Nobody preempts.** Trivial.
//! 2. **No preemptor borrows, and each takes only what comes after it.** Say preemption went on for ever.
//!    Of the workloads that preempt again and again take the one that comes first by priority, then by time: A.
//!    Whoever preempts A comes before A, so from some time on nobody does. So A is never admitted: it would stay, and
//!    preempt no more. When A's victims have gone it fits within its nominal quota, and others can have taken
//!    that only if they were decided on before A. A does not borrow, so those before it do not borrow either, and
//!    come before A by priority or time. They are not preempted for ever by the same token, so they take A's
//!    quota only so often. Then A is admitted, which was excluded.
//!
//!    Under fair sharing entries are in the order of shares. The share of a queue that does not borrow is zero, so the
//!    same holds where no cohort is in another one.
//!
//! Anything else may go round or not: it takes amounts to tell, which a search finds or does not.

/// The rule whose findings a search replaces by examples.
pub const RULE: &str = "CQ024";

/// Whom the workloads of a queue may take from others of its tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrossQueueScope {
    /// Nobody.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// All.
    Any,
}

/// What a queue's policies let its workloads do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePreemption {
    /// Whether they take others of the queue.
    pub preempts_within_queue: bool,
    /// Whom they take elsewhere.
    pub cross_queue_scope: CrossQueueScope,
    /// Whether the queue may use more than its nominal quota.
    pub may_borrow: bool,
}

/// By which rules victims are chosen and entries ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionRules {
    /// With fair sharing.
    pub is_fair: bool,
    /// Preempted quota is held, and circles are cut.
    pub is_damped: bool,
}

/// What is known of a tree of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopVerdict {
    /// Nobody preempts.
    NoPreemption,
    /// Damping cuts circles.
    Damped,
    /// No preemptor borrows, and each takes only what comes after it.
    StrictlyOrdered,
    /// The policies alone do not tell.
    Unknown,
}

/// What the policies of the queues of one tree say. `is_nested` is whether a cohort of it is in another.
#[must_use]
pub fn loop_verdict(
    queues: &[QueuePreemption],
    is_nested: bool,
    rules: PreemptionRules,
) -> LoopVerdict {
    let hunts = |it: &&QueuePreemption| {
        it.preempts_within_queue || it.cross_queue_scope != CrossQueueScope::Never
    };
    let mut hunters = queues.iter().filter(hunts).peekable();
    if hunters.peek().is_none() {
        return LoopVerdict::NoPreemption;
    }
    if rules.is_damped {
        return LoopVerdict::Damped;
    }
    let is_ordered = !(rules.is_fair && is_nested);
    if is_ordered
        && hunters.all(|it| !it.may_borrow && it.cross_queue_scope != CrossQueueScope::Any)
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

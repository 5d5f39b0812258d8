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
pub enum Beyond {
    /// Nobody.
    #[default]
    Nobody,
    /// Those of lower priority.
    Lower,
    /// All.
    Anybody,
}

/// What a queue's policies let its workloads do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hunter {
    /// Whether they take others of the queue.
    pub takes_own: bool,
    /// Whom they take elsewhere.
    pub beyond: Beyond,
    /// Whether the queue may use more than its nominal quota.
    pub may_borrow: bool,
}

/// By which rules victims are chosen and entries ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// With fair sharing.
    pub is_fair: bool,
    /// Preempted quota is held, and circles are cut.
    pub is_damped: bool,
}

/// What is known of a tree of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody preempts.
    Peaceful,
    /// Damping cuts circles.
    Damped,
    /// No preemptor borrows, and each takes only what comes after it.
    Downwards,
    /// The policies alone do not tell.
    Open,
}

/// What the policies of the queues of one tree say. `is_nested` is whether a cohort of it is in another.
#[must_use]
pub fn verdict(queues: &[Hunter], is_nested: bool, rules: Rules) -> Verdict {
    let hunts = |it: &&Hunter| it.takes_own || it.beyond != Beyond::Nobody;
    let mut hunters = queues.iter().filter(hunts).peekable();
    if hunters.peek().is_none() {
        return Verdict::Peaceful;
    }
    if rules.is_damped {
        return Verdict::Damped;
    }
    let is_ordered = !(rules.is_fair && is_nested);
    if is_ordered && hunters.all(|it| !it.may_borrow && it.beyond != Beyond::Anybody) {
        Verdict::Downwards
    } else {
        Verdict::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEACEFUL: Hunter = Hunter {
        takes_own: false,
        beyond: Beyond::Nobody,
        may_borrow: true,
    };
    const DOWNWARDS: Hunter = Hunter {
        takes_own: true,
        beyond: Beyond::Lower,
        may_borrow: false,
    };

    #[test]
    fn a_verdict_is_that_of_the_worst_queue() {
        let any = Hunter {
            beyond: Beyond::Anybody,
            ..DOWNWARDS
        };
        let borrower = Hunter {
            may_borrow: true,
            ..DOWNWARDS
        };
        let classical = Rules::default();
        let fair = Rules {
            is_fair: true,
            ..classical
        };
        let damped = Rules {
            is_damped: true,
            ..classical
        };
        for (queues, is_nested, rules, expected) in [
            (&[][..], true, classical, Verdict::Peaceful),
            (&[PEACEFUL, PEACEFUL], true, fair, Verdict::Peaceful),
            (&[PEACEFUL, DOWNWARDS], true, classical, Verdict::Downwards),
            (&[PEACEFUL, DOWNWARDS], false, fair, Verdict::Downwards),
            (&[PEACEFUL, DOWNWARDS], true, fair, Verdict::Open),
            (&[DOWNWARDS, any], false, classical, Verdict::Open),
            (&[DOWNWARDS, borrower], false, classical, Verdict::Open),
            (&[any, borrower], true, damped, Verdict::Damped),
            (&[PEACEFUL], true, damped, Verdict::Peaceful),
        ] {
            assert_eq!(
                verdict(queues, is_nested, rules),
                expected,
                "{queues:?} {is_nested} {rules:?}"
            );
        }
    }
}

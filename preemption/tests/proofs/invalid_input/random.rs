//! The same with random objects and events.

use super::{cpu, queue, workload};
use crate::model::choices::{Choices, MODEL_BYTES, check};
use lockkeeper_preemption::{
    Algorithm, Amount, CohortSpec, Damping, Options, PodSet, Quota, Reservation, State, Trace,
    WhatIf, WorkloadId, WorkloadSpec,
};
use proptest::collection::vec;
use proptest::prelude::*;

const CASES: u32 = 1000;

/// The limits of 64-bit numbers, and numbers near them.
const EXTREMES: [i64; 9] = [
    0,
    1,
    i64::MAX,
    i64::MAX - 1,
    -1,
    i64::MIN,
    i64::MIN + 1,
    i64::MAX / 2 + 1,
    i64::MIN / 2 - 1,
];

fn amount(dice: &mut Choices<'_>) -> Amount {
    Amount::new(dice.pick(&EXTREMES))
}

fn quota(dice: &mut Choices<'_>) -> Quota {
    let limit = |dice: &mut Choices<'_>| (dice.one_in(2)).then(|| amount(dice));
    Quota {
        nominal: amount(dice),
        borrowing_limit: limit(dice),
        lending_limit: limit(dice),
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn weight(dice: &mut Choices<'_>) -> f64 {
    let weights = [1.0, 0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE];
    dice.pick(&weights)
}

fn small(dice: &mut Choices<'_>) -> i32 {
    dice.pick(&[0, 1, -1, i32::MAX, i32::MIN])
}

fn random_spec<'a>(dice: &mut Choices<'_>, state: &mut State) -> WorkloadSpec<'a> {
    let mut spec = workload(state, dice.pick(&NAMES), dice.pick(&NAMES), 0);
    spec.uid = dice.pick(&NAMES);
    spec.priority = small(dice);
    spec.order_time = dice.pick(&EXTREMES);
    spec.is_in_scope = !dice.one_in(8);
    let set = spec.pod_sets[0].clone();
    spec.pod_sets = (0..dice.below(4))
        .map(|_| PodSet {
            count: dice.pick(&EXTREMES),
            count_min: dice.one_in(2).then(|| dice.pick(&EXTREMES)),
            requests: (0..dice.below(3))
                .map(|_| {
                    (
                        state.resource(dice.pick(&["cpu", "pods", "gpu"])),
                        amount(dice),
                    )
                })
                .collect(),
            ..set.clone()
        })
        .collect();
    spec
}

fn apply_random_event(dice: &mut Choices<'_>, state: &mut State, ids: &mut Vec<WorkloadId>) {
    let now_s = dice.pick(&EXTREMES);
    let id = ids.get(dice.below(ids.len().max(1))).copied();
    match (dice.below(12), id) {
        (0 | 1, _) => {
            let mut spec = queue(state, dice.pick(&NAMES), None, quota(dice));
            spec.cohort = dice.one_in(2).then(|| dice.pick(&NAMES));
            spec.weight = weight(dice);
            spec.groups[0].flavors[0].quotas[0].1 = quota(dice);
            if dice.one_in(4) {
                spec.groups[0].resources.push(state.resource("pods"));
            }
            state.set_queue(spec);
        }
        (2, _) => {
            let quotas = vec![(cpu(state), quota(dice))];
            state.set_cohort(CohortSpec {
                name: dice.pick(&NAMES),
                parent: dice.one_in(2).then(|| dice.pick(&NAMES)),
                quotas,
                weight: weight(dice),
            });
        }
        (3 | 4, _) => {
            let spec = random_spec(dice, state);
            ids.push(state.add_pending(spec));
        }
        (5, _) => {
            let spec = random_spec(dice, state);
            let reservation = Reservation {
                usage: vec![(cpu(state), amount(dice))],
                reserved_at_s: now_s,
                is_evicted: dice.one_in(3),
            };
            ids.push(state.add_admitted(spec, &reservation));
        }
        (6, Some(id)) => state.release(id),
        (7, Some(id)) => state.remove(id),
        (8, Some(id)) => state.set_backoff(id, now_s),
        (9, Some(id)) => drop(WhatIf::new(state).nominate(id, Trace::on())),
        _ => drop(state.next_cycle(now_s, dice.one_in(2))),
    }
}

#[test]
fn no_event_panics() {
    check(CASES, &vec(any::<u8>(), MODEL_BYTES), |tape| {
        let mut dice = Choices::new(&tape);
        let mut state = State::new(Options {
            algorithm: dice.pick(&[Algorithm::Classical, Algorithm::FairSharing(Vec::new())]),
            damping: dice.pick(&[Damping::On, Damping::Off]),
            ..Options::default()
        });
        let mut ids = Vec::new();
        for _ in 0..30 {
            apply_random_event(&mut dice, &mut state, &mut ids);
        }
        Ok(())
    });
}

#[test]
fn amounts_never_wrap() {
    let near = prop_oneof![any::<i64>(), proptest::sample::select(EXTREMES.to_vec())];
    check(CASES, &(near.clone(), near), |(a, b)| {
        let clamp = |value: i128| {
            let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
            i64::try_from(value.clamp(least, most)).unwrap()
        };
        let (x, y) = (Amount::new(a), Amount::new(b));
        let (plus, minus) = (x.plus(y), x.minus(y));
        if a == i64::MAX || b == i64::MAX {
            prop_assert!(plus.is_unlimited());
        } else {
            prop_assert_eq!(plus.get(), clamp(i128::from(a) + i128::from(b)));
        }
        prop_assert_eq!(minus.is_unlimited(), a == i64::MAX);
        if a != i64::MAX && b != i64::MAX {
            // A limited amount does not become unlimited by a subtraction.
            let exact = clamp(i128::from(a) - i128::from(b));
            prop_assert_eq!(minus.get(), exact.min(i64::MAX - 1));
        }
        prop_assert_eq!(x.or_zero().get(), a.max(0));
        Ok(())
    });
}

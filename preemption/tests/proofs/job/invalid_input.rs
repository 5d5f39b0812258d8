//! No amount, priority or time makes a round panic.

use super::model::{Built, Model};
use crate::model::choices::{Choices, MODEL_BYTES, check};
use lockkeeper_preemption::Trace;
use lockkeeper_preemption::job::runtime_quota::{ChildQuota, runtime_quotas, scaled_mins};
use lockkeeper_preemption::job::{JobOutcome, RoundLimits, RoundsInFlight, plan_round};
use proptest::collection::vec;
use proptest::prelude::*;

const CASES: u32 = 2_000;

const EXTREMES: [i64; 8] = [
    0,
    1,
    -1,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
    i64::MAX / 2 + 1,
];

fn extreme(dice: &mut Choices<'_>) -> i64 {
    dice.pick(&EXTREMES)
}

fn invalid_model(dice: &mut Choices<'_>) -> Model {
    let mut model = Model::random(dice);
    for quota in &mut model.quotas {
        quota.min = [Some(extreme(dice)), dice.one_in(2).then(|| extreme(dice))];
        quota.max = [Some(extreme(dice)), dice.one_in(2).then(|| extreme(dice))];
    }
    for host in &mut model.hosts {
        host.allocatable = [extreme(dice), extreme(dice)];
    }
    for pod in &mut model.pods {
        pod.request = [extreme(dice), extreme(dice)];
        pod.priority = dice.pick(&[0, i32::MAX, i32::MIN]);
    }
    model
}

#[test]
fn plan_round_with_invalid_input_never_panics() {
    check(CASES, &vec(any::<u8>(), MODEL_BYTES), |tape| {
        let mut dice = Choices::new(&tape);
        let model = invalid_model(&mut dice);
        let Built {
            cluster: mut job_cluster,
            job,
            excluded,
        } = model.build();
        let mut rounds = RoundsInFlight::new(RoundLimits {
            expires_after_s: extreme(&mut dice),
            rounds_max: dice.below(3),
        });
        let now_s = extreme(&mut dice);
        let mut trace = Trace::on();
        let outcome = plan_round(&job_cluster, &rounds, job, &excluded, now_s, &mut trace);
        if let JobOutcome::Preempt(plan) = &outcome {
            rounds.begin(job, plan.awaited(), now_s);
        }
        rounds.expire(extreme(&mut dice));
        for pod in job_cluster.pods_of(job) {
            job_cluster.remove_pod(pod);
            rounds.pod_removed(pod);
        }
        prop_assert!(job_cluster.pods_of(job).is_empty());
        let after = plan_round(
            &job_cluster,
            &RoundsInFlight::default(),
            job,
            &excluded,
            now_s,
            &mut trace,
        );
        prop_assert!(
            matches!(after, JobOutcome::Rejected(_)),
            "a job without pods"
        );
        Ok(())
    });
}

#[test]
fn runtime_quotas_returns_one_share_per_child() {
    check(CASES, &vec(any::<u8>(), 64), |tape| {
        let mut dice = Choices::new(&tape);
        let children: Vec<ChildQuota> = (0..dice.below(6))
            .map(|_| ChildQuota {
                min: extreme(&mut dice),
                guarantee: extreme(&mut dice),
                limited_request: extreme(&mut dice),
                shared_weight: extreme(&mut dice),
                may_lend: dice.one_in(2),
            })
            .collect();
        let total = extreme(&mut dice);
        prop_assert_eq!(runtime_quotas(total, &children).len(), children.len());
        let mins: Vec<_> = children.iter().map(|it| (it.min, it.may_lend)).collect();
        prop_assert_eq!(scaled_mins(total, &mins).len(), mins.len());
        Ok(())
    });
}

#[test]
fn runtime_quotas_are_fair() {
    check(CASES, &vec(any::<u8>(), 64), |tape| {
        let mut dice = Choices::new(&tape);
        let children: Vec<ChildQuota> = (0..=dice.below(6))
            .map(|_| ChildQuota {
                min: dice.amount(0, 20),
                guarantee: dice.amount(0, 5),
                limited_request: dice.amount(0, 60),
                shared_weight: dice.amount(0, 9),
                may_lend: dice.one_in(2),
            })
            .collect();
        let total = dice.amount(0, 120);
        let shares = runtime_quotas(total, &children);
        let least = |child: &ChildQuota| {
            let guaranteed = child.min.max(child.guarantee);
            if child.may_lend {
                guaranteed.min(child.limited_request)
            } else {
                guaranteed
            }
        };
        let guaranteed: i64 = children.iter().map(least).sum();
        let sum: i64 = shares.iter().sum();
        for (child, share) in children.iter().zip(&shares) {
            prop_assert!(*share >= least(child));
            prop_assert!(*share <= child.limited_request.max(least(child)));
        }
        if guaranteed <= total {
            prop_assert!(sum <= total);
            // No quota is left over while a child with a weight has less than it requests.
            let mut both = children.iter().zip(&shares);
            let is_short =
                both.any(|(it, share)| it.shared_weight > 0 && *share < it.limited_request);
            prop_assert!(!is_short || sum == total, "{} of {}", sum, total);
        } else {
            prop_assert_eq!(sum, guaranteed);
        }
        Ok(())
    });
}

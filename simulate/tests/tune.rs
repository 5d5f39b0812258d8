//! The search for the best configurations.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    reason = "tests fail by panicking"
)]

use lockkeeper_simulate::tune::{Candidate, Front, Score, Search, SearchSpace};
use lockkeeper_testkit::Rng;
use std::collections::BTreeSet;

/// Runs a search to its end; returns the candidates in order.
fn run(search: &mut Search, score: impl Fn(&Candidate) -> Score) -> Vec<Candidate> {
    let mut all = Vec::new();
    loop {
        let batch = search.next_batch();
        if batch.is_empty() {
            return all;
        }
        for candidate in batch {
            search.add(candidate.clone(), score(&candidate));
            all.push(candidate);
        }
    }
}

#[test]
fn small_space_is_tried_completely_and_first_without_change() {
    let space = SearchSpace::new(&[3, 1, 4]);
    assert_eq!(space.count(), 12);
    let mut search = Search::new(space.clone(), 100);
    assert!(search.is_complete());
    let all = run(&mut search, |it| vec![it[0] as f64]);
    assert_eq!(all[0], space.unchanged());
    let different: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!((all.len(), different.len()), (12, 12));
    // Four candidates have the best score; the one without any change is named.
    let [best] = search.front().scored() else {
        panic!("{:?}", search.front());
    };
    assert_eq!((best.candidate.as_slice(), best.equal), (&[0, 0, 0][..], 3));
}

#[test]
fn search_of_a_large_space_keeps_its_limit_and_is_the_same_each_time() {
    let space = SearchSpace::new(&[10; 30]);
    assert_eq!(space.count(), u64::MAX);
    let score = |it: &Candidate| vec![it.iter().sum::<usize>() as f64, -(it[0] as f64)];
    let mut search = Search::new(space.clone(), 1_000);
    assert!(!search.is_complete());
    let all = run(&mut search, score);
    let different: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!((all.len(), different.len()), (1_000, 1_000));
    let mut again = Search::new(space, 1_000);
    assert_eq!(run(&mut again, score), all);
}

/// A function of six fields with a narrow best: candidates near the best ones find it, random ones would not.
#[test]
fn search_near_the_best_finds_a_narrow_optimum() {
    let target = [7, 2, 5, 9, 1, 4];
    let distance = |it: &Candidate| {
        let pairs = it.iter().zip(target);
        let sum: usize = pairs.map(|(a, b)| a.abs_diff(b)).sum();
        vec![sum as f64]
    };
    let mut search = Search::new(SearchSpace::new(&[10; 6]), 600);
    run(&mut search, distance);
    let best = &search.front().scored()[0];
    assert!(best.score[0] <= 1.0, "{best:?}");
}

#[test]
fn front_equals_the_definition() {
    let is_better = |a: &Score, b: &Score| a != b && a.iter().zip(b).all(|(a, b)| a <= b);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let goals = 1 + rng.below(3);
        let scores: Vec<Score> = (0..40)
            .map(|_| (0..goals).map(|_| rng.below(6_u64) as f64).collect())
            .collect();
        let mut front = Front::default();
        for (at, score) in scores.iter().enumerate() {
            front.add(vec![at], score.clone());
        }
        let mut expected: Vec<Score> = scores.clone();
        expected.retain(|it| !scores.iter().any(|other| is_better(other, it)));
        expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
        expected.dedup();
        let found: Vec<Score> = front.scored().iter().map(|it| it.score.clone()).collect();
        assert_eq!(found, expected, "seed {seed}");
        for best in front.scored() {
            let equal = scores.iter().filter(|it| **it == best.score).count();
            assert_eq!(best.equal + 1, equal, "seed {seed}");
        }
    }
}

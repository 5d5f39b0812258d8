//! The objects of issues of Kueue, as dumps: `explain` gives the answers that the threads arrived at.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests fail by panicking, and read files of the repository"
)]

use lockkeeper_explain::{Project, WorldBuilder, WorldSettings, explain, write_answer};
use lockkeeper_preemption::{Algorithm, Compatibility, FairStrategy, Options};
use serde_json::Value;

/// A dump, a workload in it, and parts of the answer about it.
struct Case {
    dump: &'static str,
    workload: &'static str,
    is_fair: bool,
    /// Prefixes of resources without quota.
    excluded: &'static [&'static str],
    /// The answer of the thread is in these.
    parts: &'static [&'static str],
}

const PLAIN: Case = Case {
    dump: "",
    workload: "",
    is_fair: false,
    excluded: &[],
    parts: &[],
};

fn text(case: &Case) -> String {
    let file = format!("tests/kueue_issues/{}.yaml", case.dump);
    let dump: Value = serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut builder = WorldBuilder::new();
    builder.add(dump);
    let mut options = Options {
        compatibility: Compatibility::Kueue,
        ..Options::default()
    };
    if case.is_fair {
        options.algorithm = Algorithm::FairSharing(vec![
            FairStrategy::LessThanOrEqualToFinalShare,
            FairStrategy::LessThanInitialShare,
        ]);
    }
    let excluded = case.excluded.iter().map(|it| (*it).to_owned());
    let world = builder.build(WorldSettings {
        options,
        excluded_resource_prefixes: excluded.collect(),
        ..WorldSettings::default()
    });
    assert_eq!(
        (world.project(), world.unreadable()),
        (Project::Kueue, &[][..])
    );
    let answer = explain(&world, &format!("team/{}", case.workload)).unwrap();
    let mut text = String::new();
    write_answer(&mut text, &answer).unwrap();
    text
}

#[track_caller]
fn check(case: &Case) {
    let text = text(case);
    for part in case.parts {
        assert!(text.contains(part), "{}: no {part:?} in\n{text}", case.dump);
    }
}

/// The threads arrived at a list of resources that need no quota, in the configuration of the scheduler.
#[test]
fn uncovered_resources_are_named_with_the_setting_that_excludes_them() {
    check(&Case {
        dump: "2266",
        workload: "custom",
        parts: &[
            "Reason         ResourceNotCovered",
            "pod set main requests example.com/custom, which ClusterQueue queue does not cover",
            "configuration of the scheduler, resources.excludeResourcePrefixes: example.com/custom\n",
        ],
        ..PLAIN
    });
    check(&Case {
        dump: "2266",
        workload: "custom",
        excluded: &["example.com/"],
        parts: &["is admitted in the next cycle"],
        ..PLAIN
    });
    check(&Case {
        dump: "4848",
        workload: "limited",
        parts: &[
            "Reason         ResourceNotCovered",
            "pod set main requests ephemeral-storage, which ClusterQueue queue does not cover",
            "resources.excludeResourcePrefixes: ephemeral-storage\n",
        ],
        ..PLAIN
    });
    check(&Case {
        dump: "5800",
        workload: "pages",
        parts: &[
            "pod set main requests ephemeral-storage, hugepages-2Mi, which ClusterQueue queue does not cover",
            "ephemeral-storage is covered by LocalQueue storage",
            "resources.excludeResourcePrefixes: ephemeral-storage, hugepages-2Mi\n",
        ],
        ..PLAIN
    });
}

/// The preemptor of higher priority precedes its victim, which is older, in the next cycle.
#[test]
fn issue_2821_preemptor_is_admitted_before_its_victim() {
    check(&Case {
        dump: "2821-before",
        workload: "b2",
        parts: &["team/a1 (ClusterQueue a, priority 2): InCohortReclaimWhileBorrowing"],
        ..PLAIN
    });
    check(&Case {
        dump: "2821-after",
        workload: "b2",
        parts: &["is admitted in the next cycle\n"],
        ..PLAIN
    });
    check(&Case {
        dump: "2821-after",
        workload: "a1",
        parts: &[
            "would fit alone, and 1 other workload is admitted before it",
            "1 other workload is admitted now",
            "reason         Preempted (InCohortReclaimWhileBorrowing)",
            "preemptor      team/b2 (ClusterQueue b, priority 3)",
            "preemptor path /all/b",
            "path           /all/a",
        ],
        ..PLAIN
    });
}

/// Fair sharing does not consider `borrowWithinCohort`: the share decides.
#[test]
fn issue_3779_workload_of_a_smaller_share_is_not_preempted() {
    check(&Case {
        dump: "3779",
        workload: "a2",
        is_fair: true,
        parts: &[
            "needs 50m more cpu of flavor default",
            "team/best1 (ClusterQueue best-effort, priority 10): not preempted: the ClusterQueue of the pending workload would have the larger share (fair sharing)",
        ],
        ..PLAIN
    });
}

/// The preemptor is admitted although a workload that can never fit is ahead of it.
#[test]
fn issue_6947_workload_that_never_fits_does_not_block_the_preemptor() {
    check(&Case {
        dump: "6947-before",
        workload: "three",
        parts: &[
            "preempts 1 workload and waits for the quota to be released",
            "team/one (ClusterQueue b, priority 0): InCohortReclamation",
        ],
        ..PLAIN
    });
    check(&Case {
        dump: "6947-before",
        workload: "four",
        parts: &[
            "never fits: pod set main requests 4 cpu, of which ClusterQueue a can use at most 3 of one flavor",
        ],
        ..PLAIN
    });
    check(&Case {
        dump: "6947-after",
        workload: "three",
        parts: &["is admitted in the next cycle"],
        ..PLAIN
    });
    check(&Case {
        dump: "6947-after",
        workload: "one",
        parts: &["preemptor      team/three (ClusterQueue a, priority 0)"],
        ..PLAIN
    });
}

/// The victim is admitted again before its preemptor, which preempts it again: without end.
#[test]
fn issue_14543_victim_is_admitted_before_its_preemptor() {
    check(&Case {
        dump: "14543-before",
        workload: "p-hero",
        is_fair: true,
        parts: &["team/t-hero (ClusterQueue t, priority 0): InCohortFairSharing"],
        ..PLAIN
    });
    check(&Case {
        dump: "14543-after",
        workload: "t-hero",
        is_fair: true,
        parts: &[
            "is admitted in the next cycle",
            "preemptor      team/p-hero (ClusterQueue p, priority 1)",
        ],
        ..PLAIN
    });
    check(&Case {
        dump: "14543-after",
        workload: "p-hero",
        is_fair: true,
        parts: &["preempts 1 workload", "1 other workload is admitted now"],
        ..PLAIN
    });
}

use super::{JobView, KINDS, job_name_from_workload, watched_kinds};
use crate::key::ObjectKey;
use std::collections::BTreeSet;

fn workload_name(name: &str, uid: &str) -> String {
    let view = JobView {
        name: ObjectKey::new("team", name),
        uid: uid.to_owned(),
        ..JobView::default()
    };
    view.workload_name(0).name().to_owned()
}

/// Pipelines share long prefixes: with 32 bits about six pairs of these names would be equal.
#[test]
fn workload_names_of_jobs_with_a_long_common_prefix_differ() {
    let name = "a-long-name-of-a-pipeline-with-many-similar-steps";
    let names = (0..200_000).map(|at| workload_name(name, &format!("uid-{at}")));
    let names: BTreeSet<String> = names.collect();
    assert_eq!(names.len(), 200_000);
}

#[test]
fn job_name_is_read_from_the_name_of_its_workload_if_it_is_whole() {
    for (name, is_whole) in [
        ("train", true),
        ("train-2", true),
        ("a", true),
        (&*"n".repeat(38), true),
        (&*"n".repeat(39), false),
    ] {
        for kind in watched_kinds() {
            let view = JobView {
                name: ObjectKey::new("team", name),
                uid: "u".to_owned(),
                ..JobView::default()
            };
            let workload = view.workload_name(kind);
            let read = |uid| job_name_from_workload(&workload, kind, uid);
            assert_eq!(read("u"), is_whole.then(|| view.name.clone()), "{workload}");
            assert_eq!(read("v"), None, "{workload}");
        }
    }
    for other in ["", "job", "job-a", "job-a-0123456789abcdef", "-"] {
        let workload = ObjectKey::new("team", other);
        assert_eq!(job_name_from_workload(&workload, 0, "u"), None, "{other}");
    }
}

#[test]
fn workload_name_is_valid_label_value_and_has_64_bits_of_the_uid() {
    let name = "n".repeat(63);
    for kind in 0..KINDS.len() {
        let view = JobView {
            name: ObjectKey::new("team", &name),
            ..JobView::default()
        };
        let workload = view.workload_name(kind);
        assert!(workload.name().len() <= 63, "{workload}");
        let (_, digest) = workload.name().rsplit_once('-').unwrap_or_default();
        assert_eq!(digest.len(), 16, "{workload}");
    }
}

use super::{MemberPhase, MemberRole, Roster};
use crate::job_adapters::{GroupClaim, JobView, PodSetView};
use crate::key::ObjectKey;
use crate::reconciler::model::TrackedWorkload;
use crate::reconciler::pod_groups::member_role::MemberProblem;
use lockkeeper_cluster_state::PodGroupSource;
use serde_json::json;
use std::sync::Arc;

/// A pod that requests this many CPUs, with the same name of its shape as all others.
fn pod(name: &str, cpu: &str) -> JobView {
    let template =
        json!({"spec": {"containers": [{"name": "", "resources": {"requests": {"cpu": cpu}}}]}});
    JobView {
        name: ObjectKey::new("team", name),
        pod_sets: vec![PodSetView {
            template: Arc::new(serde_json::from_value(template).unwrap()),
            ..PodSetView::default()
        }],
        group: Some(Box::new(GroupClaim {
            group: ObjectKey::new("team", "g"),
            source: PodGroupSource::Metadata,
            total: Some(2),
            needed: 2,
            created_s: 0,
            shape: "pods-0".to_owned(),
            started_in: None,
            reported: None,
        })),
        ..JobView::default()
    }
}

/// A workload that is admitted with two pods of one CPU.
fn admitted() -> TrackedWorkload {
    let condition = |of: &str| {
        json!({
            "type": of, "status": "True", "reason": of, "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        })
    };
    let workload = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {"name": "w", "namespace": "team"},
        "spec": {"queueName": "q", "podSets": [{
            "name": "pods-0", "count": 2, "template": *pod("a", "1").pod_sets[0].template,
        }]},
        "status": {
            "conditions": [condition("QuotaReserved"), condition("Admitted")],
            "admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "pods-0", "count": 2}]},
        },
    });
    let workload = serde_json::from_value(workload).unwrap();
    TrackedWorkload::new(ObjectKey::new("team", "w"), Arc::new(workload), None)
}

/// The names of shapes are short digests, and users can find templates whose digests are equal.
#[test]
fn pod_with_the_digest_of_another_shape_takes_none_of_its_places() {
    let group = ObjectKey::new("team", "g");
    let (small, large) = (pod("small", "1"), pod("large", "64"));
    let waiting = || {
        vec![
            (&large, MemberPhase::Waiting),
            (&small, MemberPhase::Waiting),
        ]
    };
    let roster = Roster::new(&group, waiting(), Some(&admitted()));
    assert_eq!(
        roster.roles[&small.name],
        MemberRole::Member("pods-0".to_owned())
    );
    assert_eq!(
        roster.roles[&large.name],
        MemberRole::Excluded(MemberProblem::Full)
    );
    // Before the admission each has a pod set.
    let roster = Roster::new(&group, waiting(), None);
    let pod_sets = roster.view.pod_sets.iter();
    let counts: Vec<_> = pod_sets.map(|it| (&*it.name, it.count)).collect();
    assert_eq!(counts, [("pods-0", 1), ("pods-0-other", 1)]);
}

#[test]
fn pod_that_was_resized_is_in_none_of_the_admitted_pod_sets() {
    let group = ObjectKey::new("team", "g");
    let mut resized = pod("resized", "64");
    if let Some(claim) = &mut resized.group {
        claim.started_in = Some("pods-0".to_owned());
    }
    let members = vec![(&resized, MemberPhase::Running)];
    let roster = Roster::new(&group, members, Some(&admitted()));
    let mut names = roster.view.pod_sets.iter().map(|it| &*it.name);
    assert!(names.any(|it| it == "pods-0-other"), "{roster:?}");
}

#[test]
fn each_of_many_templates_with_one_shape_has_its_pod_set() {
    let group = ObjectKey::new("team", "g");
    let mut pods = ["1", "1m", "64", "1m", "7"].map(|cpu| pod("", cpu));
    for (number, pod) in pods.iter_mut().enumerate() {
        pod.name = ObjectKey::new("team", &format!("p-{number}"));
        if let Some(claim) = &mut pod.group {
            (claim.total, claim.needed) = (Some(5), 5);
        }
    }
    let members = pods.iter().map(|it| (it, MemberPhase::Waiting)).collect();
    let roster = Roster::new(&group, members, None);
    for pod in &pods {
        let MemberRole::Member(name) = &roster.roles[&pod.name] else {
            panic!("{roster:?}");
        };
        let mut sets = roster.view.pod_sets.iter().filter(|it| it.name == *name);
        let set = sets.next().unwrap();
        assert_eq!(set.template, pod.pod_sets[0].template, "{name}");
    }
    let pod_sets = roster.view.pod_sets.iter();
    let counts: Vec<_> = pod_sets.map(|it| (&*it.name, it.count)).collect();
    let expected = [
        ("pods-0", 1),
        ("pods-0-other", 2),
        ("pods-0-other-2", 1),
        ("pods-0-other-3", 1),
    ];
    assert_eq!(counts, expected);
}

/// A workload has no more pod sets, and each further template would be compared with all before.
#[test]
fn templates_with_one_shape_are_limited() {
    let group = ObjectKey::new("team", "g");
    let mut pods: Vec<JobView> = (0..40)
        .map(|it| pod(&format!("p-{it:02}"), &it.to_string()))
        .collect();
    for pod in &mut pods {
        if let Some(claim) = &mut pod.group {
            (claim.total, claim.needed) = (Some(40), 40);
        }
    }
    let members = pods.iter().map(|it| (it, MemberPhase::Waiting)).collect();
    let roster = Roster::new(&group, members, None);
    assert_eq!(roster.view.pod_sets.len(), 18);
    let is_excluded = |it: &&MemberRole| **it == MemberRole::Excluded(MemberProblem::Full);
    assert_eq!(roster.roles.values().filter(is_excluded).count(), 22);
}

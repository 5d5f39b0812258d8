//! Keys and values of labels, in the metadata of objects and of pod templates.

use super::run;

/// An object of each kind with pods, with this in the metadata of its pods.
fn objects(metadata: &str) -> Vec<(String, String)> {
    let pods = format!("metadata:\n{metadata}");
    let below = |depth: usize| {
        let lines = pods.lines();
        let lines = lines.map(|line| format!("{}{line}\n", " ".repeat(depth)));
        lines.collect::<String>()
    };
    let named = "metadata: {name: a, namespace: team}\n";
    let spec = "spec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n";
    let sets = format!(
        "spec:\n  podSets:\n  - name: main\n    count: 1\n    template:\n{}",
        below(6)
    );
    [
        ("v1", "Pod", format!("{}{spec}", below(0))),
        (
            "batch/v1",
            "Job",
            format!("{named}spec:\n  template:\n{}    {spec}", below(4)),
        ),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            format!(
                "{named}spec:\n  replicatedJobs:\n  - name: w\n    template:\n      spec:\n        template:\n{}",
                below(10)
            ),
        ),
        ("lockkeeper.dev/v1alpha1", "Workload", format!("{named}{sets}")),
        (
            "kueue.x-k8s.io/v1beta2",
            "Workload",
            format!("{named}{sets}      spec: {{containers: [{{name: c}}]}}\n"),
        ),
    ]
    .into_iter()
    .map(|(version, kind, rest)| {
        let text = format!("apiVersion: {version}\nkind: {kind}\n{rest}");
        (format!("{kind} of {version}"), text)
    })
    .collect()
}

/// Checks that there is one finding for every kind, with the line of the key.
#[track_caller]
fn check(metadata: &str, key: &str, expected: &[&str]) {
    for (kind, text) in objects(metadata) {
        let (output, _) = run(&[("a.yaml", &text)], &[]);
        let line = text.lines().position(|line| line.contains(key));
        let place = format!("a.yaml:{}:", line.unwrap() + 1);
        let first: Vec<&str> = output
            .lines()
            .filter(|it| it.contains(": error["))
            .collect();
        let mut warned = output.lines().filter(|it| it.contains(": warning["));
        let found = first.first().copied().or_else(|| warned.next());
        let found = found.unwrap_or_else(|| panic!("{kind}: {output}"));
        assert!(found.starts_with(&place), "{kind}: {found}");
        for part in expected {
            assert!(found.contains(part), "{kind}: {found}");
        }
        assert_eq!(
            (warned.next(), first.len() < 2),
            (None, true),
            "{kind}: {output}"
        );
    }
}

#[test]
fn label_non_string_value_is_reported_with_line() {
    let key = "quota.scheduling.koordinator.sh/preemptible";
    for (value, seen) in [
        ("true", "true"),
        ("no", "false"),
        ("1", "1"),
        ("0.5", "0.5"),
    ] {
        let metadata = format!("  name: p\n  namespace: team\n  labels:\n    {key}: {value}");
        let field = format!(
            "metadata.labels[{key}]: Invalid value: {seen}: must be a string; put it in quotes"
        );
        check(&metadata, key, &["error[SC001]", &field]);
    }
}

#[test]
fn label_misspelled_key_is_reported() {
    let key = "quota.scheduling.koordinator.sh/preemptable";
    let metadata = format!("  name: p\n  namespace: team\n  labels:\n    {key}: \"false\"");
    check(
        &metadata,
        key,
        &[
            "warning[LA001]",
            "did you mean quota.scheduling.koordinator.sh/preemptible?",
        ],
    );
}

#[test]
fn label_key_in_annotations_is_reported() {
    let key = "kueue.x-k8s.io/queue-name";
    let metadata = format!("  name: p\n  namespace: team\n  annotations:\n    {key}: a");
    check(
        &metadata,
        key,
        &["warning[LA002]", "is read as a label only"],
    );
}

/// `apis/kueue/v1beta2/topology_types.go` and `pkg/controller/constants/constants.go` of Kueue 0.13 to 0.19.
#[test]
fn documented_kueue_annotations_are_known() {
    let job = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: sample
  namespace: team
  labels: {kueue.x-k8s.io/queue-name: main}
  annotations: {kueue.x-k8s.io/prebuilt-workload-name: sample}
spec:
  suspend: true
  template:
    metadata:
      annotations:
        kueue.x-k8s.io/podset-slice-required-topology-constraints: '[{\"topology\": \"rack\", \"size\": 2}]'
        kueue.x-k8s.io/safe-to-forcefully-terminate: \"true\"
    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
";
    let (text, code) = run(&[("job.yaml", job)], &[]);
    assert!(!text.contains("LA001") && !text.contains("LA002"), "{text}");
    assert_eq!(code, 0);
}

/// Kueue's old examples have the annotation. The API server calls no webhook for a Job without the label.
#[test]
fn job_queue_name_in_annotation_is_reported() {
    let job = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: sample
  namespace: team
  annotations:
    kueue.x-k8s.io/queue-name: main
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
";
    let (text, code) = run(&[("job.yaml", job)], &[]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 0);
}

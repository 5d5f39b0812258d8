use crate::{CheckRequest, SourceFile, check_json, check_manifests};
use serde_json::{Value, json};

const QUEUE: &str = "\
apiVersion: lockkeeper.dev/v1alpha1
kind: ClusterQueue
metadata:
  name: vision
spec:
  cohortName: research
  namespaceSelector: {}
  preemption:
    borrowWithinCohort: {policy: LowerPriority}
";

fn report(request: &Value) -> Value {
    serde_json::from_str(&check_json(&request.to_string()).unwrap()).unwrap()
}

/// Rule and line of each finding.
fn findings(request: &Value) -> Vec<String> {
    let report = report(request);
    let all = report["findings"].as_array().unwrap();
    let text = |it: &Value| format!("{}:{}", it["rule"].as_str().unwrap_or("-"), it["line"]);
    all.iter().map(text).collect()
}

#[test]
fn finding_has_rule_and_line() {
    let request = json!({"files": [{"name": "queue.yaml", "text": QUEUE}]});
    assert_eq!(findings(&request), ["CQ001:9"]);
    assert_eq!(report(&request)["findings"][0]["file"], "queue.yaml");
}

#[test]
fn every_field_of_a_request_has_an_effect() {
    let queue = json!({"name": "queue.yaml", "text": QUEUE});
    let job = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  labels: {lockkeeper.dev/queue-name: main}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
";
    let changed = job.replace("busybox", "alpine");
    let workload = "{apiVersion: scheduling.k8s.io/v1alpha2, kind: Workload, metadata: {name: a}, spec: {podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}]}}";
    let file = |text: &str| json!([{"name": "f.yaml", "text": text}]);
    for (request, expected) in [
        (json!({"files": [queue], "select": ["CQ002"]}), &[][..]),
        (json!({"files": [queue], "ignore": ["CQ001"]}), &[]),
        (json!({"files": file(job)}), &[]),
        (json!({"files": file(job), "closed": true}), &["QU002:5"]),
        (
            json!({"files": file(&changed), "oldFiles": file(job)}),
            &["SC002:9"],
        ),
        (json!({"files": file("{apiVersion: a/v1, kind: B}")}), &[]),
        (
            json!({"files": file("{apiVersion: a/v1, kind: B}"), "strict": true}),
            &["SC001:1"],
        ),
        (json!({"files": file(workload)}), &["SC001:1"]),
        (
            json!({"files": file(workload), "kubernetesVersion": "1.36", "select": ["SC"]}),
            &[],
        ),
        (
            json!({"files": file(workload), "kubernetesVersion": ""}),
            &["SC001:1"],
        ),
    ] {
        assert_eq!(findings(&request), expected, "{request}");
    }
}

#[test]
fn unreadable_files_are_findings_and_others_are_checked() {
    let broken = json!({"name": "broken.yaml", "text": "a: \"b"});
    let queue = json!({"name": "queue.yaml", "text": QUEUE});
    let request = json!({"files": [broken, queue], "oldFiles": [broken]});
    assert_eq!(findings(&request), ["-:1", "-:1", "CQ001:9"]);
    assert_eq!(report(&request)["summary"]["unreadable"], 2);
}

#[test]
fn wrong_requests_are_errors() {
    for (request, expected) in [
        ("", "the request is not valid"),
        ("{\"file\": []}", "unknown field `file`"),
        ("{\"kubernetesVersion\": \"1.2\"}", "use one of 1.33"),
        ("{\"select\": [\"XX001\"]}", "XX001"),
    ] {
        let error = check_json(request).unwrap_err().to_string();
        assert!(error.contains(expected), "{request}: {error}");
    }
}

#[test]
fn no_files_have_no_findings() {
    let report = check_manifests(&CheckRequest::default()).unwrap();
    assert_eq!(check_json("{}").unwrap(), report);
    let empty = CheckRequest {
        files: vec![SourceFile::default()],
        ..CheckRequest::default()
    };
    let report: Value = serde_json::from_str(&check_manifests(&empty).unwrap()).unwrap();
    assert_eq!(report["findings"], json!([]));
}

//! Kueue's objects, checked as lockkeeper's kinds.

use super::run;
use lockkeeper_api::foreign::kueue::convert;
use lockkeeper_check::{KindRegistry, RuleSelection};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const AS: [&str; 2] = ["--as", "lockkeeper.dev"];

const OBJECTS: &str = "\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec:
  # ours
  cohort: research
  namespaceSelector: {}
  admissionChecks: [provision]
  preemption: {reclaimWithinCohort: Never, borrowWithinCohort: {policy: LowerPriority}}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: spot
      resources: [{name: cpu, nominalQuota: 1, lendingLimit: 2}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec: {topologyName: rack, nodeLabels: {a: b}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: rack}
spec: {levels: [{nodeLabel: rack}]}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  labels:
    kueue.x-k8s.io/queue-name: main
    kueue.x-k8s.io/pod-group-name: other
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
";

#[test]
fn converted_findings_name_source_lines_and_fields() {
    let (text, code) = run(&[("a.yaml", OBJECTS)], &AS);
    insta::assert_snapshot!(text);
    assert_eq!(code, 1);
    // Without --as, no conversion takes place.
    let (text, _) = run(&[("a.yaml", OBJECTS)], &[]);
    assert!(!text.contains("SC007"), "{text}");
}

#[test]
fn converted_output_needs_no_conversion() {
    let (yaml, code) = run(&[("a.yaml", OBJECTS)], &[AS[0], AS[1], "--converted", "-"]);
    insta::assert_snapshot!(yaml);
    assert_eq!(code, 1, "findings count although the report is not printed");
    let (again, _) = run(&[("a.yaml", &yaml)], &[AS[0], AS[1], "--converted", "-"]);
    assert_eq!(again, "");
    let (output, _) = run(&[("a.yaml", &yaml)], &AS);
    assert!(
        output.contains("CQ001") && !output.contains("SC007"),
        "{output}"
    );
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("out.yaml");
    let flags = [AS[0], AS[1], "--converted", path.to_str().unwrap()];
    let (output, _) = run(&[("a.yaml", OBJECTS)], &flags);
    assert!(output.contains("SC007"), "{output}");
    assert_eq!(fs::read_to_string(path).unwrap(), yaml);
}

#[test]
fn conversion_conflicting_class_is_dropped() {
    let class = |value: i32| {
        format!(
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: high}}\nvalue: {value}\n"
        )
    };
    let kueue = class(5)
        .replace("scheduling.k8s.io/v1", "kueue.x-k8s.io/v1beta2")
        .replace("PriorityClass", "WorkloadPriorityClass");
    for (value, is_lost) in [(5, false), (6, true)] {
        let files = [("a.yaml", &*kueue), ("b.yaml", &*class(value))];
        let (output, _) = run(&files, &AS);
        assert_eq!(output.contains("SC007"), is_lost, "{output}");
        let (yaml, _) = run(&files, &[AS[0], AS[1], "--converted", "-"]);
        assert_eq!(yaml.is_empty(), is_lost, "{yaml}");
    }
}

#[test]
fn lost_fields_can_be_selected_and_suppressed() {
    let (text, code) = run(
        &[("a.yaml", OBJECTS)],
        &[AS[0], AS[1], "--select", "SC007", "--fail-on", "warning"],
    );
    assert_eq!((text.matches("[SC007]").count(), code), (4, 1), "{text}");
    let (text, _) = run(&[("a.yaml", OBJECTS)], &[AS[0], AS[1], "--ignore", "SC007"]);
    assert!(!text.contains("SC007"), "{text}");
    let annotated = OBJECTS.replace(
        "metadata: {name: rack}",
        "metadata: {name: rack, annotations: {lockkeeper.dev/ignore: \"SC007: not for us\"}}",
    );
    let (text, _) = run(
        &[("a.yaml", &annotated)],
        &[AS[0], AS[1], "--select", "SC007"],
    );
    assert_eq!(text.matches("[SC007]").count(), 3, "{text}");
}

/// An object with a value for each field of a schema.
fn sample_for_schema(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|it| it.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") if schema["properties"].is_object() => {
            let fields = schema["properties"].as_object().unwrap().iter();
            Value::Object(
                fields
                    .map(|(name, it)| (name.clone(), sample_for_schema(it)))
                    .collect(),
            )
        }
        Some("object") => json!({"a": "1"}),
        Some("array") => json!([sample_for_schema(&schema["items"])]),
        Some("boolean") => json!(true),
        Some("string") => json!("a"),
        _ => json!(1),
    }
}

/// Every field of Kueue's schemas is either converted or reported as dropped.
#[test]
fn conversion_covers_every_kueue_field() {
    let Ok(known) = KindRegistry::new(&RuleSelection::default()) else {
        panic!("a schema is invalid");
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/src/kueue/schemas");
    let mut count = 0;
    for (kind, version) in lockkeeper_policies::kueue::kinds() {
        let plural = if kind.ends_with('s') { "es" } else { "s" };
        let file = folder.join(format!("{}{plural}.json", kind.to_lowercase()));
        let schemas: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let mut object = sample_for_schema(&schemas[version]);
        object["apiVersion"] = format!("kueue.x-k8s.io/{version}").into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": "a"});
        let converted = convert(&object).unwrap();
        let mut after = converted.object.unwrap();
        assert!(!converted.dropped.is_empty() || !matches!(kind, "ClusterQueue" | "Workload"));
        if let Some(structure) = known.structure(&after) {
            assert_eq!(structure.prune(&mut after), [], "{kind} {version}");
            count += 1;
        }
    }
    assert_eq!(count, 10);
}

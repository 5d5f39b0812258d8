mod admission_policies;
mod built_in_changes;
mod cel;
mod conversion;
mod definitions;
mod job_kinds;
mod labels;
mod preemption_loops;
mod schema_location;
mod unreadable_files;
mod user_rules;
mod versions;

use super::{Arguments, EXIT_CODES, check};
use clap::{Args, Command, FromArgMatches};
use std::fs;
use tempfile::TempDir;

const QUEUE: &str = "\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: team
spec:
  cohort: research
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: spot
      resources:
      - {name: cpu, nominalQuota: 4, borrowingLimit: 1}
";

/// Runs the command on files with these names and texts. Returns the output, without the path of the folder, and
/// the exit code.
fn run(files: &[(&str, &str)], flags: &[&str]) -> (String, u8) {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let command = Arguments::augment_args(Command::new("check"));
    let words = ["check", path].into_iter().chain(flags.iter().copied());
    let matches = command.try_get_matches_from(words).unwrap();
    let arguments = Arguments::from_arg_matches(&matches).unwrap();
    let mut out = Vec::new();
    let Ok(code) = check(&arguments, &mut out) else {
        panic!("the check failed");
    };
    let text = String::from_utf8(out).unwrap();
    let absolute = format!("file://{path}/");
    (
        text.replace(&absolute, "").replace(&format!("{path}/"), ""),
        code,
    )
}

#[test]
fn text_report_shows_line_and_remedy() {
    let (text, code) = run(&[("queue.yaml", QUEUE)], &[]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 1);
}

#[test]
fn json_report_contains_all_fields() {
    let (text, code) = run(&[("queue.yaml", QUEUE)], &["--output", "json"]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 1);
}

#[test]
fn findings_in_lists_and_later_documents_have_locations() {
    let list = "\
kind: Other
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
- apiVersion: lockkeeper.dev/v1alpha1
  kind: ClusterQueue
  metadata: {name: loner}
  spec:
    resourceGroups:
    - coveredResources: [cpu]
      flavors:
      - name: spot
        resources:
        - name: cpu
          nominalQuota: 4
          borrowingLimit: 1
";
    let (text, code) = run(&[("list.yaml", list)], &[]);
    assert!(text.contains("list.yaml:19:11: error[CQ002]"), "{text}");
    assert!(
        text.ends_with("2 objects checked, 1 of other kinds\n"),
        "{text}"
    );
    assert_eq!(code, 1);
}

/// The rules that warn about these Kueue objects, each in a separate file.
fn warned(objects: &[&str]) -> Vec<String> {
    let texts = objects
        .iter()
        .map(|it| format!("apiVersion: kueue.x-k8s.io/v1beta2\n{it}\n"));
    let texts: Vec<(String, String)> = ('a'..='z')
        .map(|it| format!("{it}.yaml"))
        .zip(texts)
        .collect();
    let files: Vec<(&str, &str)> = texts
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    let (text, code) = run(&files, &[]);
    assert_eq!(code, 0, "{text}");
    let warnings = text.split(": warning[").skip(1);
    warnings
        .map(|it| it.split(']').next().unwrap().to_owned())
        .collect()
}

#[test]
fn check_resolves_references_across_files() {
    let flavor = "kind: ResourceFlavor\nmetadata: {name: spot}";
    let queue = |flavor: &str| {
        format!(
            "kind: ClusterQueue\nmetadata: {{name: team}}\nspec: {{resourceGroups: [{{coveredResources: [cpu], \
             flavors: [{{name: {flavor}, resources: [{{name: cpu, nominalQuota: 4}}]}}]}}]}}"
        )
    };
    let (right, wrong) = (queue("spot"), queue("sopt"));
    let local_queue = |queue: &str| {
        format!(
            "kind: LocalQueue\nmetadata: {{name: main, namespace: a}}\nspec: {{clusterQueue: {queue}}}"
        )
    };
    assert_eq!(warned(&[flavor, &right, &local_queue("team")]), [""; 0]);
    assert_eq!(
        warned(&[flavor, &wrong, &local_queue("taem")]),
        ["RF004", "CQ014", "LQ001"]
    );
    // Objects that are not in the files may exist.
    for alone in [flavor, &right, &local_queue("team")] {
        assert_eq!(warned(&[alone]), [""; 0], "{alone}");
    }
    // Two queues with one name are of different clusters, so their usage is not added up.
    assert_eq!(warned(&[flavor, &right, &wrong]), ["CQ014"]);
}

#[test]
fn select_and_ignore_choose_rules() {
    let only = run(&[("queue.yaml", QUEUE)], &["--select", "cq002,SC005"]);
    assert!(
        only.0.contains("[SC005]") && !only.0.contains("[SC003]"),
        "{}",
        only.0
    );
    let without = run(&[("queue.yaml", QUEUE)], &["--ignore", "SC003,SC005,CQ002"]);
    assert_eq!(without.1, 0, "{}", without.0);
}

#[test]
fn exit_codes_are_documented() {
    for code in ["0", "1", "2"] {
        assert!(EXIT_CODES.contains(&format!("\n  {code}  ")));
    }
}

#[test]
fn check_misspelled_kind_is_reported() {
    for (text, expected) in [
        (
            "kind: ClusterQueue\nmetadata: {name: a}\n",
            "a.yaml:1:1: error[SC001]: ClusterQueue a: apiVersion",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Clusterqueue\n",
            "did you mean ClusterQueue?",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: a}\nspec: {clusterqueue: b}\n",
            "a.yaml:4:8: error[SC005]",
        ),
        (
            "a: 1\na: 2\n",
            "a.yaml:2:1: cannot be read: duplicate key a: kubectl",
        ),
    ] {
        let (output, code) = run(&[("a.yaml", text)], &[]);
        assert!(output.contains(expected), "{output}");
        assert!(code > 0);
    }
    let (output, code) = run(&[("a.yaml", "kind: Config\nusers: []\n")], &[]);
    assert_eq!(code, 0, "{output}");
}

#[test]
fn github_report_prints_annotations() {
    let files = [("queue.yaml", QUEUE), ("tab.yaml", "a:\n\t- b\n")];
    let (text, code) = run(&files, &["--output", "github", "--select", "SC005"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("::error file=queue.yaml,line=6,col=3,title=SC005::spec.cohort: "),
        "{text}"
    );
    assert!(
        lines[1].starts_with("::error file=tab.yaml,line=2,col=2,title=unreadable::"),
        "{text}"
    );
    assert_eq!(code, 2);
}

/// A queue with a used suppression, one without a reason and an unused one; an invalid file; and an object with a
/// warning.
const MIXED: [(&str, &str); 3] = [
    (
        "a queue.yaml",
        "\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: team
  annotations:
    lockkeeper.dev/ignore: |
      SC005: read by <our> operator & \"others\"
      CQ007: the limit is lowered tomorrow
      CQ009
spec:
  cohort: research
",
    ),
    ("broken.yaml", "a: [1\n"),
    (
        "good.yaml",
        "\
kind: ConfigMap
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: research}
spec: {clusterQueue: team}
",
    ),
];

#[test]
fn suppression_without_reason_or_effect_is_reported() {
    let (text, code) = run(&MIXED, &["--fail-on", "warning"]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 2);
    // A suppression of a rule that did not run may be needed.
    let (text, _) = run(&MIXED, &["--ignore", "CQ"]);
    assert!(!text.contains("it suppresses no finding"), "{text}");
    assert!(text.contains("it has no reason"), "{text}");
}

#[test]
fn junit_report_has_case_per_object() {
    let files = [MIXED[0], MIXED[1], MIXED[2], ("queue.yaml", QUEUE)];
    let (text, code) = run(&files, &["--output", "junit"]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 2);
}

fn sarif(files: &[(&str, &str)], flags: &[&str]) -> serde_json::Value {
    let (text, _) = run(files, &[&["--output", "sarif"], flags].concat());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn sarif_report_matches_schema() {
    let schema = include_str!("../../tests/sarif-2.1.0.json");
    // One of its patterns has an unescaped bracket, which some regex engines reject.
    let schema = schema.replace("{2}]?$", "{2}\\\\]?$");
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::draft7::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap();
    let check = |log: &serde_json::Value| {
        let errors: Vec<String> = validator
            .iter_errors(log)
            .map(|it| it.to_string())
            .collect();
        assert_eq!(errors, [""; 0]);
    };
    let pages = ["--pages", "https://example.com/docs/rules/"];
    let mut log = sarif(&MIXED, &pages);
    check(&log);
    check(&sarif(&[("good.yaml", MIXED[2].1)], &[]));
    // An invalid log must fail, so the validator is not vacuous.
    log["runs"][0]["results"][0]["level"] = "fatal".into();
    assert!(!validator.is_valid(&log));
}

#[test]
fn sarif_report_has_rules_results_and_read_errors() {
    let pages = ["--pages", "https://example.com/docs/rules/"];
    let log = sarif(&MIXED, &pages);
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let ids: std::collections::BTreeSet<&str> =
        rules.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), rules.len(), "each rule is listed once");
    for result in run["results"].as_array().unwrap() {
        let at = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[at]["id"], result["ruleId"]);
        let page = rules[at]["helpUri"].as_str().unwrap();
        let file = page
            .strip_prefix("https://example.com/docs/rules/")
            .unwrap();
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../docs/rules")
            .join(file);
        assert!(file.exists(), "{page}");
    }
    let mut results = run["results"].clone();
    for result in results.as_array_mut().unwrap() {
        // The list changes with every new rule.
        result.as_object_mut().unwrap().remove("ruleIndex");
    }
    insta::assert_snapshot!(format!("{results:#}"));
    insta::assert_snapshot!(format!("{:#}", run["invocations"]));
}

#[test]
fn sarif_fingerprint_survives_moved_lines() {
    let prints = |text: &str| {
        let log = sarif(&[("queue.yaml", text)], &[]);
        let results = log["runs"][0]["results"].as_array().unwrap().clone();
        let all = results
            .iter()
            .map(|it| it["partialFingerprints"].to_string());
        all.collect::<Vec<_>>()
    };
    let before = prints(QUEUE);
    let mut different = before.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), before.len());
    assert_eq!(prints(&format!("# one line more\n{QUEUE}")), before);
    assert_ne!(prints(&QUEUE.replace("team", "other")), before);
}

#[test]
fn color_is_used_on_terminals_and_on_request() {
    let files = [("queue.yaml", QUEUE)];
    let (plain, _) = run(&files, &["--color", "never"]);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let (coloured, _) = run(&files, &["--color", "always"]);
    assert!(
        coloured.contains("\u{1b}[1m\u{1b}[31merror[SC005]\u{1b}[0m"),
        "{coloured:?}"
    );
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
    let (json, _) = run(&files, &["--color", "always", "--output", "json"]);
    assert!(!json.contains('\u{1b}'), "{json}");
}

#[test]
fn text_report_handles_wide_long_and_control_chars() {
    let text = format!(
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\n\
         metadata: {{name: a, labels: {{作业: 队列}}}}\n\
         spec: {{\"作业\": 1, \"colour\\e[31m\": 2, shade: \"{}\", hue: 3}}\n",
        "x".repeat(400)
    );
    let (text, _) = run(&[("wide.yaml", &text)], &["--select", "SC005"]);
    insta::assert_snapshot!(text);
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn existing_objects_are_resolved_but_not_checked() {
    let world = TempDir::new().unwrap();
    let class =
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 5\n";
    fs::write(world.path().join("class.yaml"), class).unwrap();
    fs::write(world.path().join("bad.yaml"), QUEUE).unwrap();
    let folder = world.path().to_str().unwrap();
    let workload = |class: &str| {
        format!(
            "apiVersion: lockkeeper.dev/v1alpha1\nkind: Workload\nmetadata: {{name: a}}\n\
             spec: {{queueName: main, priorityClassName: {class}, podSets: [{{name: main, count: 1, \
             template: {{spec: {{containers: [{{name: a, image: b}}]}}}}}}]}}\n"
        )
    };
    let (high, low) = (workload("high"), workload("low"));
    for (text, flags, expected) in [
        (&low, vec![], 0),
        (&low, vec!["--world", folder], 1),
        (&high, vec!["--world", folder], 0),
        (&low, vec!["--closed"], 1),
    ] {
        let (output, code) = run(&[("a.yaml", text)], &flags);
        assert_eq!(code, expected, "{flags:?}: {output}");
        assert!(output.contains(" 1 object checked"), "{output}");
        assert_eq!(output.contains("a.yaml:4:"), code == 1, "{output}");
    }
    let (output, _) = run(&[("a.yaml", &high)], &["--world", folder, "--closed"]);
    assert!(output.contains("error[QU002]"), "{output}");
    let missing = world.path().join("missing");
    let (output, code) = run(&[], &["--world", missing.to_str().unwrap()]);
    assert!(output.contains("missing: cannot be read"), "{output}");
    assert_eq!(code, 2);
}

#[test]
fn select_and_ignore_choose_rule_groups() {
    let (text, _) = run(&[("queue.yaml", QUEUE)], &["--select", "SC"]);
    assert!(
        text.contains("[SC005]") && text.contains("[SC003]"),
        "{text}"
    );
    let (text, code) = run(&[("queue.yaml", QUEUE)], &["--ignore", "sc,cq"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn config_sets_severity_of_schema_findings() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("config.yaml");
    let actions = "rules: {actions: {SC005: warn, SC003: off, CQ002: off}}\n";
    fs::write(&config, actions).unwrap();
    let flags = ["--config", config.to_str().unwrap()];
    let (text, code) = run(&[("queue.yaml", QUEUE)], &flags);
    assert!(
        text.contains("warning[SC005]") && !text.contains("SC003"),
        "{text}"
    );
    assert_eq!(code, 0, "{text}");
}

#[test]
fn comments_and_anchors_keep_locations() {
    let text = "\
# one
apiVersion: kueue.x-k8s.io/v1beta2 # two
kind: ClusterQueue
metadata: &meta # three
  name: &name a
spec:
  # four
  queueingStrategy: # five
    BestEffortFIFO
  # six
  colour: red
---
# seven
---
null
---
~
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: b}
spec:
  shade: blue
";
    let (text, _) = run(&[("a.yaml", text)], &["--select", "SC005"]);
    assert!(text.starts_with("a.yaml:11:3: error[SC005]"), "{text}");
    assert!(text.contains("a.yaml:23:3: error[SC005]"), "{text}");
}

#[test]
fn check_deep_nesting_is_an_error() {
    for text in [
        "[".repeat(200_000),
        format!("a: {}", "{b: ".repeat(100_000)),
    ] {
        let (output, code) = run(&[("deep.yaml", &text)], &[]);
        assert!(output.contains("deep.yaml"), "{output}");
        assert!(output.contains("cannot be read"), "{output}");
        assert_eq!(code, 2);
    }
}

#[test]
fn diff_prints_and_fix_writes_corrections() {
    let files = [("queue.yaml", QUEUE)];
    let (diff, code) = run(&files, &["--diff"]);
    insta::assert_snapshot!(diff);
    assert_eq!(code, 1);
    let (text, _) = run(&files, &["--fix"]);
    assert!(!text.contains("SC005") && text.contains("SC003"), "{text}");
    let flavor = QUEUE
        .split("spec:")
        .next()
        .unwrap()
        .replace("ClusterQueue", "ResourceFlavor");
    let (diff, code) = run(&[("good.yaml", &flavor)], &["--diff"]);
    assert_eq!((diff.as_str(), code), ("", 0));
}

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

/// Runs the command on files of these names and texts; what it prints, without the folder, and its exit
/// code.
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
    let Ok((text, code)) = check(&arguments) else {
        panic!("it failed");
    };
    (text.replace(&format!("{path}/"), ""), code)
}

#[test]
fn a_finding_shows_its_line_and_what_to_do() {
    let (text, code) = run(&[("queue.yaml", QUEUE)], &[]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 1);
}

#[test]
fn json_has_what_a_program_needs() {
    let (text, code) = run(&[("queue.yaml", QUEUE)], &["--output", "json"]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 1);
}

#[test]
fn one_bad_file_hides_nothing_of_the_others() {
    let (text, code) = run(&[("a.yaml", "a: [1\n"), ("b.yaml", QUEUE)], &[]);
    assert!(text.starts_with("a.yaml:"), "{text}");
    assert!(text.contains("b.yaml:6:3: error[SC005]"), "{text}");
    assert_eq!(code, 2);
}

#[test]
fn items_of_lists_and_later_documents_are_found_at_their_place() {
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
        text.ends_with("1 object checked, 2 of other kinds\n"),
        "{text}"
    );
    assert_eq!(code, 1);
}

#[test]
fn rules_are_chosen() {
    let only = run(&[("queue.yaml", QUEUE)], &["--select", "cq002,SC005"]);
    assert!(
        only.0.contains("[SC005]") && !only.0.contains("[SC003]"),
        "{}",
        only.0
    );
    let without = run(&[("queue.yaml", QUEUE)], &["--ignore", "SC003,SC005"]);
    assert_eq!(without.1, 0, "{}", without.0);
}

#[test]
fn the_exit_codes_are_documented() {
    for code in ["0", "1", "2"] {
        assert!(EXIT_CODES.contains(&format!("\n  {code}  ")));
    }
}

#[test]
fn what_is_nearly_known_is_not_skipped() {
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
            "a.yaml:2:1: cannot be read: the key a stands twice",
        ),
    ] {
        let (told, code) = run(&[("a.yaml", text)], &[]);
        assert!(told.contains(expected), "{told}");
        assert!(code > 0);
    }
    let (told, code) = run(&[("a.yaml", "kind: Config\nusers: []\n")], &[]);
    assert_eq!(code, 0, "{told}");
}

#[test]
fn a_workflow_gets_annotations() {
    let files = [("queue.yaml", QUEUE), ("tab.yaml", "a:\n\t- b\n")];
    let (text, code) = run(&files, &["--output", "github", "--select", "SC005"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("::error file=tab.yaml,line=2,col=2,title=unreadable::"),
        "{text}"
    );
    assert!(
        lines[1].starts_with("::error file=queue.yaml,line=6,col=3,title=SC005::spec.cohort: "),
        "{text}"
    );
    assert_eq!(code, 2);
}

const RULE: &str = "---\nid: TEAM001\nname: queue-without-team\nkinds:\n- {group: kueue.x-k8s.io, version: '*', kind: ClusterQueue}\n- {group: example.com, version: v1, kind: Widget}\nvalidations:\n- {expression: object.metadata.name.startsWith('team-'), message: must begin with team-, fieldPath: .metadata.name}\n---\n";

const WIDGET: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: gear\n";

/// Runs the command with a rule of a user and this configuration.
fn run_with_rule(files: &[(&str, &str)], config: &str, flags: &[&str]) -> (String, u8) {
    let folder = TempDir::new().unwrap();
    let (rules, path) = (
        folder.path().join("rules"),
        folder.path().join("lockkeeper.yaml"),
    );
    fs::create_dir(&rules).unwrap();
    fs::write(rules.join("a.md"), RULE).unwrap();
    fs::write(&path, config).unwrap();
    let (rules, path) = (rules.to_str().unwrap(), path.to_str().unwrap());
    let flags = [&["--rules", rules, "--config", path], flags].concat();
    let (text, code) = run(files, &flags);
    (text.replace(path, "lockkeeper.yaml"), code)
}

#[test]
fn rules_of_users_hold_for_kinds_that_nobody_else_knows() {
    let files = [("queue.yaml", QUEUE), ("widget.yaml", WIDGET)];
    let (text, code) = run_with_rule(&files, "", &["--select", "TEAM001"]);
    // The shape of the queue is wrong, so no rule is asked about it.
    let expected = "widget.yaml:4:3: error[TEAM001]: Widget gear: metadata.name: Invalid value: \"gear\": must begin with team-\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with("2 objects checked, 0 of other kinds\n"),
        "{text}"
    );
    assert_eq!(code, 1);
    let warned = "rules: {actions: {TEAM001: warn}}";
    let (text, code) = run_with_rule(&files[1..], warned, &[]);
    assert!(text.contains("warning[TEAM001]"), "{text}");
    assert_eq!(code, 0);
}

#[test]
fn exceptions_are_reported_used_unused_and_ended() {
    let exception = |name: &str, names: &str, expires: &str| {
        format!(
            "  - {{name: {name}, rules: [TEAM001], selector: {{names: [{names}]}}, reason: old, expires: {expires}}}\n"
        )
    };
    let config = format!(
        "rules:\n  exceptions:\n{}{}{}",
        exception("gears", "\"gear*\"", "9999-01-01"),
        exception("others", "other", "9999-01-01"),
        exception("gone", "gear", "2020-01-01"),
    );
    let files = [("widget.yaml", WIDGET)];
    let (text, code) = run_with_rule(&files, &config, &[]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 0);
    assert_eq!(
        run_with_rule(&files, &config, &["--fail-on", "warning"]).1,
        1
    );
    let (text, _) = run_with_rule(&files, &config, &["--output", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["summary"]["errors"], 0);
    assert_eq!(json["findings"][0]["type"], "ExceptionEnded");
    assert_eq!(json["exceptions"][0]["used"], 1);
    // It ends, and the rule counts again.
    let config = config.replace("9999", "2020");
    let (text, code) = run_with_rule(&files, &config, &["--output", "github"]);
    assert!(
        text.contains("::error file=widget.yaml,line=4,col=3,title=TEAM001::"),
        "{text}"
    );
    assert_eq!(
        text.matches("::warning file=lockkeeper.yaml,title=exception::")
            .count(),
        3,
        "{text}"
    );
    assert_eq!(code, 1);
}

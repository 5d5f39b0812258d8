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

/// The rules that these objects of Kueue's, each in a file of its own, are warned by.
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
fn objects_of_several_files_are_seen_together() {
    let flavor = "kind: ResourceFlavor\nmetadata: {name: spot}";
    let queue = |flavor: &str| {
        format!(
            "kind: ClusterQueue\nmetadata: {{name: team}}\nspec: {{resourceGroups: [{{coveredResources: [cpu], \
             flavors: [{{name: {flavor}, resources: [{{name: cpu, nominalQuota: 4}}]}}]}}]}}"
        )
    };
    let (right, wrong) = (queue("spot"), queue("sopt"));
    let door = |queue: &str| {
        format!(
            "kind: LocalQueue\nmetadata: {{name: main, namespace: a}}\nspec: {{clusterQueue: {queue}}}"
        )
    };
    assert_eq!(warned(&[flavor, &right, &door("team")]), [""; 0]);
    assert_eq!(
        warned(&[flavor, &wrong, &door("taem")]),
        ["RF004", "CQ014", "LQ001"]
    );
    // What is not given may exist.
    for alone in [flavor, &right, &door("team")] {
        assert_eq!(warned(&[alone]), [""; 0], "{alone}");
    }
    // Of queues of several clusters nobody can say what they use together.
    assert_eq!(warned(&[flavor, &right, &wrong]), ["CQ014"]);
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

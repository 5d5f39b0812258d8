//! User rules and exceptions.

use super::{QUEUE, run};
use std::fs;
use tempfile::TempDir;

const RULE: &str = "---\nid: TEAM001\nname: queue-without-team\nkinds:\n- {group: kueue.x-k8s.io, version: '*', kind: ClusterQueue}\n- {group: example.com, version: v1, kind: Widget}\nvalidations:\n- {expression: object.metadata.name.startsWith('team-'), message: must begin with team-, fieldPath: .metadata.name}\n---\n";

const WIDGET: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: gear\n";

/// Runs the command with a user rule and this configuration.
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
fn user_rules_apply_to_unknown_kinds() {
    let files = [("queue.yaml", QUEUE), ("widget.yaml", WIDGET)];
    let (text, code) = run_with_rule(&files, "", &["--select", "TEAM001"]);
    // The queue violates its schema as well, which --select excludes.
    for (place, what) in [
        (
            "queue.yaml:4:3",
            "ClusterQueue team: metadata.name: Invalid value: \"team\"",
        ),
        (
            "widget.yaml:4:3",
            "Widget gear: metadata.name: Invalid value: \"gear\"",
        ),
    ] {
        let expected = format!("{place}: error[TEAM001]: {what}: must begin with team-\n");
        assert!(text.contains(&expected), "{text}");
    }
    // It violates only expressions of the schema, which do not keep other rules from running.
    let (all, _) = run_with_rule(&files, "", &[]);
    assert_eq!(all.matches("[TEAM001]").count(), 2, "{all}");
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
fn exceptions_used_unused_and_expired_are_reported() {
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
    // The exception has expired, so its rule applies again.
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

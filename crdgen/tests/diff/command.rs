//! The command line of `diff`.

use crate::cases;
use clap::Parser;
use lockkeeper_crdgen::cli::{Command, Error, Outcome, outcome};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command as Process;
use tempfile::TempDir;

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

fn call(words: &[&str]) -> Result<(Outcome, String), Error> {
    let words = [&["crdgen", "diff"], words].concat();
    let mut out = Vec::new();
    let outcome = outcome(Line::try_parse_from(words).unwrap().command, &mut out)?;
    Ok((outcome, String::from_utf8(out).unwrap()))
}

fn case(name: &str) -> cases::Case {
    cases::all()
        .into_iter()
        .find(|it| it.name == name)
        .expect(name)
}

/// Both sides of a case as files.
fn files(folder: &Path, name: &str) -> (String, String) {
    let case = case(name);
    let write = |file: &str, definition| {
        let path = folder.join(file);
        let text = serde_json::to_string(&definition).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    (
        write("old.json", case.before()),
        write("new.json", case.after()),
    )
}

#[test]
fn diff_prints_human_json_and_markdown() {
    let folder = TempDir::new().unwrap();
    let (old, new) = files(folder.path(), "an enum changes a value");
    let objects = folder.path().join("objects.yaml");
    let text = "apiVersion: v1\nkind: List\nitems:\n\
                - {apiVersion: example.com/v1, kind: Thing, metadata: {namespace: one, name: kept}, spec: {a: a}}\n\
                - {apiVersion: example.com/v1, kind: Thing, metadata: {namespace: one, name: broken}, spec: {a: b}}\n\
                - {apiVersion: example.com/v1, kind: Thing, metadata: {namespace: one, name: lossy}, spec: {a: a, c: 1}}\n\
                - {apiVersion: example.com/v0, kind: Thing, metadata: {namespace: one, name: old}}\n\
                ---\n{apiVersion: v1, kind: Secret, metadata: {name: other}}\n";
    fs::write(&objects, text).unwrap();
    let objects = objects.to_str().unwrap();
    for output in ["human", "json", "markdown"] {
        let words = [old.as_str(), &new, "--objects", objects, "--output", output];
        let (outcome, text) = call(&words).unwrap();
        assert_eq!(outcome, Outcome::Findings);
        insta::assert_snapshot!(output, text);
    }
}

#[test]
fn outcome_follows_worst_change() {
    let folder = TempDir::new().unwrap();
    for (name, expected) in [
        ("nothing", Outcome::Done),
        ("an optional field is added", Outcome::Done),
        ("a version is stored that was not", Outcome::Done),
        ("a field is removed", Outcome::Findings),
    ] {
        let (old, new) = files(folder.path(), name);
        assert_eq!(call(&[&old, &new]).unwrap().0, expected, "{name}");
    }
}

/// A stored object that would fail makes the result breaking.
#[test]
fn failing_stored_objects_are_findings() {
    let folder = TempDir::new().unwrap();
    let (old, _) = files(folder.path(), "an enum loses a value");
    let objects = folder.path().join("objects.json");
    let text = r#"{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"a": "c"}}"#;
    fs::write(&objects, text).unwrap();
    let (outcome, text) = call(&[&old, &old, "--objects", objects.to_str().unwrap()]).unwrap();
    assert_eq!(outcome, Outcome::Findings);
    assert!(text.contains("1 of 1 objects would fail"), "{text}");
}

/// A declaration of a kind of jobs whose fields the new definition does not have.
#[test]
fn job_kinds_that_do_not_fit_are_findings() {
    let folder = TempDir::new().unwrap();
    let definition = |suspend: &str| {
        let pod = json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"containers": {"type": "array", "items": {"type": "object"}}}}}});
        let spec = json!({"type": "object", "properties": {suspend: {"type": "boolean"}, "template": pod}});
        let condition = json!({"type": "object", "properties": {
            "type": {"type": "string"}, "status": {"type": "string"}, "message": {"type": "string"}}});
        let status = json!({"type": "object", "properties": {"conditions": {"type": "array", "items": condition}}});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "runs.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Run", "plural": "runs"}, "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": spec, "status": status}}}}]},
        })
    };
    let write = |file: &str, object: &Value| {
        let path = folder.path().join(file);
        fs::write(&path, object.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let old = write("old.json", &definition("suspend"));
    let new = write("new.json", &definition("suspended"));
    let declaration = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "JobKind", "metadata": {"name": "runs.example.com"},
        "spec": {"version": "v1", "kind": "Run", "podSets": [{"name": "main", "template": "spec.template"}]},
    });
    let declaration = write("jobkind.json", &declaration);
    let (outcome, text) = call(&[&old, &old, "--objects", &declaration]).unwrap();
    assert_eq!(outcome, Outcome::Done, "{text}");
    let (outcome, text) = call(&[&old, &new, "--objects", &declaration]).unwrap();
    assert_eq!(outcome, Outcome::Findings);
    let expected = "JobKind runs.example.com  does not fit the definition";
    assert!(text.contains(expected), "{text}");
    let expected = "spec.suspend.path: spec has no field \"suspend\"; did you mean spec.suspended?";
    assert!(text.contains(expected), "{text}");
}

fn git(folder: &Path, words: &[&str]) {
    let identity = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "commit.gpgsign=false",
    ];
    let output = Process::new("git")
        .arg("-C")
        .arg(folder)
        .args(identity)
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn folder_is_compared_with_git_revision() {
    let folder = TempDir::new().unwrap();
    let crds = folder.path().join("deploy/crds");
    fs::create_dir_all(crds.join("nested")).unwrap();
    let case = case("a field is removed");
    let yaml = |definition| {
        let definition = serde_json::to_string(&definition).unwrap();
        format!("{definition}\n---\napiVersion: v1\nkind: ConfigMap\n")
    };
    let file = crds.join("nested/things.yaml");
    fs::write(&file, yaml(case.before())).unwrap();
    fs::write(crds.join("README.txt"), "not: [yaml").unwrap();
    git(folder.path(), &["init", "-q", "-b", "main"]);
    git(folder.path(), &["add", "-A"]);
    git(folder.path(), &["commit", "-q", "-m", "one"]);
    fs::write(&file, yaml(case.after())).unwrap();
    for new in [crds.as_path(), file.as_path()] {
        let (outcome, text) = call(&["main", new.to_str().unwrap()]).unwrap();
        assert_eq!(outcome, Outcome::Findings);
        assert!(
            text.contains("breaking  v1 spec.b: the field is removed"),
            "{text}"
        );
        assert!(
            text.contains("2 documents of other kinds skipped"),
            "{text}"
        );
    }
    let error = call(&["nowhere", file.to_str().unwrap()]).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(
        error
            .to_string()
            .starts_with("git cannot show nowhere:./things.yaml: "),
        "{error}"
    );
    let error = call(&["--", "--upload-pack=x:y", file.to_str().unwrap()]).unwrap_err();
    assert!(error.to_string().contains("not a revision"), "{error}");
}

/// The error for a file with this content as NEW.
#[track_caller]
fn error_of(content: &str) -> String {
    let folder = TempDir::new().unwrap();
    let (old, new) = files(folder.path(), "nothing");
    fs::write(&new, content).unwrap();
    let error = call(&[&old, &new]).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string().replace(&new, "NEW").replace(&old, "OLD")
}

#[test]
fn invalid_input_error_names_source() {
    let definition = |schema: &str| {
        let meta = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n";
        let names = "names: {kind: Thing, plural: things}";
        let version = format!(
            "{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}"
        );
        format!(
            "{meta}spec: {{group: example.com, scope: Namespaced, {names}, versions: [{version}]}}\n"
        )
    };
    assert_eq!(
        error_of(&definition("{type: object, properties: {spec: {}}}")),
        "the API server would reject things.example.com: spec.versions[0].schema.openAPIV3Schema.properties[spec].type: \
         Required value: must not be empty for specified object fields"
    );
    let wrong = error_of(&definition("{type: object, maxProperties: many}"));
    assert!(
        wrong.starts_with(
            "NEW: the definition things.example.com cannot be read: \
             spec.versions[0].schema.openAPIV3Schema.maxProperties: "
        ),
        "{wrong}"
    );
    let one = definition("{type: object}");
    assert_eq!(
        error_of(&format!("{one}---\n{one}")),
        "NEW: duplicate definition things.example.com; remove one of them"
    );
    assert_eq!(
        error_of(&one.replace("io/v1\n", "io/v1beta1\n")),
        "NEW: the definition things.example.com is of apiextensions.k8s.io/v1beta1; write it as apiextensions.k8s.io/v1"
    );
    assert!(error_of("a: [").starts_with("NEW:1:4: unclosed bracket"));

    let folder = TempDir::new().unwrap();
    let empty = folder.path().to_str().unwrap();
    for (words, expected) in [
        (
            ["-", "-"],
            "OLD and NEW cannot both be standard input; give one of them as a file".to_owned(),
        ),
        (
            ["main", "v1"],
            "main is neither a file nor a folder; for a revision of git, give main:PATH, or the other side as a file or folder"
                .to_owned(),
        ),
        (
            [empty, empty],
            format!(
                "neither {empty} nor {empty} has a CustomResourceDefinition; give files that have one"
            ),
        ),
    ] {
        let error = call(&words).unwrap_err();
        assert_eq!((error.exit_code(), error.to_string()), (2, expected));
    }
    for missing in ["no/such.yaml", "such.json"] {
        let error = call(&[missing, empty]).unwrap_err();
        let expected = format!("cannot read {missing}: ");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

#[test]
fn accepted_changes_and_other_classes_are_left_out() {
    let folder = TempDir::new().unwrap();
    let (old, new) = files(folder.path(), "a field is renamed");
    let (outcome, text) = call(&[&old, &new, "--only", "breaking"]).unwrap();
    assert_eq!(outcome, Outcome::Findings);
    assert!(text.contains("CD032") && !text.contains("CD031"), "{text}");
    assert!(
        text.contains("1 breaking") && text.contains("1 compatible"),
        "{text}"
    );

    let accept = folder.path().join("accepted.yaml");
    let accepted = accept.to_str().unwrap();
    let entry = |code: &str, reason: &str| {
        format!(
            "- {{code: {code}, definition: things.example.com, place: v1 spec.size, reason: {reason}}}\n"
        )
    };
    fs::write(
        &accept,
        entry("CD032", "no object has it") + &entry("CD033", "none"),
    )
    .unwrap();
    let (outcome, text) = call(&[&old, &new, "--accept", accepted]).unwrap();
    assert_eq!(outcome, Outcome::Done, "{text}");
    assert!(
        text.contains("0 breaking") && text.contains("1 accepted"),
        "{text}"
    );
    let unused = "no such change is left to accept: CD033 of things.example.com at v1 spec.size";
    assert!(text.contains(unused), "{text}");
    let (_, json) = call(&[&old, &new, "--accept", accepted, "--output", "json"]).unwrap();
    assert!(json.contains("\"accepted\": 1"), "{json}");

    for (text, expected) in [
        (entry("CD032", "''"), "has no reason"),
        ("- {code: CD032}\n".to_owned(), "missing field"),
    ] {
        fs::write(&accept, text).unwrap();
        let error = call(&[&old, &new, "--accept", accepted]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

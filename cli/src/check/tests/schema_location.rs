//! Objects of kinds with a JSON Schema in a catalogue.

use super::super::Arguments;
use super::definitions::{DEFINITION, findings, run, widget};
use clap::{Args, Command};

const TEMPLATE: &str = "{}/schemas/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json";

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "spec": {
            "type": "object", "additionalProperties": false,
            "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}}
        }
    }
}"#;

#[track_caller]
fn check(files: &[(&str, &str)], flags: &[&str], expected: &[&str], summary: &str) {
    let arguments = [&["--schema-location", TEMPLATE], flags, &["{}/new"]].concat();
    let (text, _) = run(files, &arguments);
    assert_eq!(findings(&text), expected, "{text}");
    assert!(text.ends_with(summary), "{text}");
}

#[test]
fn objects_are_checked_with_positions() {
    let object = widget("a", "  size: big\n  color: red\n");
    let schema = ("schemas/example.com/widget_v1.json", SCHEMA);
    let files = [("new/widget.yaml", &*object), schema];
    let [size, color] = [
        "new/widget.yaml:5:3: error[SC002]: Widget a/a: spec.size: Invalid value: \"big\": the value is not of type \"integer\"",
        "new/widget.yaml:6:3: error[SC005]: Widget a/a: spec.color: Invalid value: \"red\": unknown field, which would be dropped; did you mean colour?",
    ];
    check(
        &files,
        &[],
        &[size, color],
        "1 object checked, 0 of other kinds\n",
    );
    // Without a schema the kind is unknown.
    check(
        &files[..1],
        &[],
        &[],
        "0 objects checked, 1 of other kinds\n",
    );
    // The second location has the schema.
    let first = ["--schema-location", "{}/none/{{.ResourceKind}}.json"];
    check(
        &files,
        &first,
        &[size, color],
        "1 object checked, 0 of other kinds\n",
    );
}

#[test]
fn folders_of_the_standard_layout_are_those_of_the_release() {
    let object = widget("a", "  size: big\n");
    let schema = "schemas/v1.33.0-standalone-strict/widget-example-v1.json";
    let files = [("new/widget.yaml", &*object), (schema, SCHEMA)];
    for (release, count) in [("1.33.4", 1), ("1.37", 0)] {
        let flags = [
            "--schema-location",
            "{}/schemas",
            "--kubernetes-version",
            release,
            "{}/new",
        ];
        let (text, _) = run(&files, &flags);
        assert_eq!(findings(&text).len(), count, "{text}");
    }
}

#[test]
fn definitions_are_preferred_to_schemas() {
    let object = widget("a", "  size: 12\n");
    let files = [
        ("new/widget.yaml", &*object),
        ("crds/widget.yaml", DEFINITION),
        ("schemas/example.com/widget_v1.json", SCHEMA),
    ];
    let expected = "new/widget.yaml:5:3: error[SC002]: Widget a/a: spec.size: Invalid value: 12: should be less than or equal to 9";
    let summary = "1 object checked, 0 of other kinds\n";
    check(&files, &["--crds", "{}/crds"], &[expected], summary);
    check(&files, &[], &[], summary);
}

#[test]
fn schemas_that_cannot_be_read_are_errors_of_their_objects() {
    let object = widget("a", "  size: 1\n");
    let files = [
        ("new/widget.yaml", &*object),
        ("schemas/example.com/widget_v1.json", "[1"),
    ];
    let expected = "new/widget.yaml:2:1: error[SC001]: Widget a/a: kind: Invalid value: \"Widget\": the schema of this kind cannot be used: schemas/example.com/widget_v1.json: EOF while parsing a list at line 1 column 2";
    check(
        &files,
        &[],
        &[expected],
        "1 object checked, 0 of other kinds\n",
    );
}

#[test]
fn locations_that_are_no_paths_are_usage_errors() {
    let command = Arguments::augment_args(Command::new("check"));
    for (template, reason) in [
        (
            "https://example.com/{{.Group}}.json",
            "schemas are not downloaded",
        ),
        ("default", "remove it"),
        ("a/{{.Name}}.json", "unknown placeholder \".Name\""),
    ] {
        let words = ["check", "--schema-location", template, "a.yaml"];
        let error = command.clone().try_get_matches_from(words).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

//! Changes of objects of built-in kinds with `--old`.

use super::definitions::{findings, run};

/// A Job with an image, and without required fields unless they are given.
fn job(image: &str, more: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  template:
    spec:
      containers:
      - {{name: main, image: {image}}}
{more}"
    )
}

const POLICY: &str = "      restartPolicy: Never\n";

const CHANGED: &str = "error[SC002]: Job train: spec.template: Invalid value: field is immutable";

#[track_caller]
fn check(files: &[(&str, &str)], paths: &[&str], expected: &[&str]) {
    let arguments = [&["--old", "{}/old"], paths].concat();
    let (text, _) = run(files, &arguments);
    assert_eq!(findings(&text), expected, "{text}");
}

#[test]
fn changes_of_built_in_kinds_have_locations() {
    let (old, new) = (job("a", POLICY), job("b", POLICY));
    let expected = format!("new/job.yaml:6:3: {CHANGED}");
    let files = [("old/job.yaml", &*old), ("new/job.yaml", &new)];
    check(&files, &["{}/new"], &[&expected]);
    check(&files, &["{}/old"], &[]);
}

#[test]
fn changes_of_patches_and_their_bases_are_not_checked() {
    let (old, new) = (job("a", ""), job("b", ""));
    let missing = "new/base/job.yaml:7:5: error[SC002]: Job train: spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"";
    let whole = job("a", POLICY);
    let patch =
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec: {completions: 2}\n";
    let kustomization = "patches: [{path: patch.yaml}]\n";
    let files = [
        ("old/base/job.yaml", &*old),
        ("old/overlay/patch.yaml", patch),
        ("new/base/job.yaml", &new),
        ("new/overlay/kustomization.yaml", kustomization),
        ("new/overlay/patch.yaml", patch),
    ];
    check(&files, &["{}/new"], &[missing]);
    // The whole old object is used, although the patch comes after it.
    let changed = job("b", POLICY);
    let expected = format!("new/base/job.yaml:6:3: {CHANGED}");
    let files = [
        ("old/base/job.yaml", &*whole),
        ("old/overlay/patch.yaml", patch),
        ("new/base/job.yaml", &changed),
    ];
    check(&files, &["{}/new"], &[&expected]);
}

#[test]
fn objects_of_one_name_are_compared_with_each_old_one() {
    let images = ["a", "b", "c"].map(|it| job(it, POLICY));
    let files = [
        ("old/one/job.yaml", &*images[0]),
        ("old/two/job.yaml", &images[1]),
        ("new/one/job.yaml", &images[0]),
        ("new/two/job.yaml", &images[1]),
    ];
    check(&files, &["{}/new"], &[]);
    let expected = format!("new/job.yaml:6:3: {CHANGED}");
    let files = [files[0], files[1], ("new/job.yaml", &*images[2])];
    check(&files, &["{}/new"], &[&expected]);
}

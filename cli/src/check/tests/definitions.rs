//! Objects of any kind, by `--crds` and by definitions among the checked files, and changes with `--old`.

use super::super::{Arguments, check};
use clap::{Args, Command, FromArgMatches};
use std::fs;
use std::path::Path;
use std::process;
use tempfile::TempDir;

pub(super) const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 9}
              colour: {type: string, enum: [red, blue], default: red}
              port:
                type: object
                properties: {number: {type: integer}, name: {type: string}}
                oneOf: [{required: [number]}, {required: [name]}]
              owner:
                type: string
                x-kubernetes-validations:
                - {rule: self == oldSelf, message: owner is immutable}
              parts:
                type: array
                maxItems: 9
                items:
                  type: object
                  properties:
                    name: {type: string, maxLength: 9}
            x-kubernetes-validations:
            - rule: \"!has(self.parts) || self.parts.all(it, it.name != self.colour)\"
              message: no part may have the name of the colour
  - name: v1alpha1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

pub(super) fn widget(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}, namespace: a}}\nspec:\n{spec}"
    )
}

/// Runs the command in a folder with these files. Returns the output, without the path of the folder, and the exit
/// code. `{}` in the arguments is replaced by the path of the folder.
pub(super) fn run(files: &[(&str, &str)], arguments: &[&str]) -> (String, u8) {
    let folder = TempDir::new().unwrap();
    write(folder.path(), files);
    run_in(folder.path(), arguments)
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn run_in(folder: &Path, arguments: &[&str]) -> (String, u8) {
    let path = folder.to_str().unwrap();
    let command = Arguments::augment_args(Command::new("check"));
    let words = arguments.iter().map(|it| it.replace("{}", path));
    let words = std::iter::once("check".to_owned()).chain(words);
    let matches = command.try_get_matches_from(words).unwrap();
    let arguments = Arguments::from_arg_matches(&matches).unwrap();
    let mut out = Vec::new();
    let Ok(code) = check(&arguments, &mut out) else {
        panic!("the check failed");
    };
    let text = String::from_utf8(out).unwrap();
    (text.replace(&format!("{path}/"), ""), code)
}

/// The lines with findings, without their excerpts.
pub(super) fn findings(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines
        .filter(|it| {
            it.contains("error[") || it.contains("warning[") || it.contains("cannot be read")
        })
        .collect()
}

#[test]
fn objects_of_any_definition_are_checked_with_positions() {
    let bad = widget(
        "bad",
        "  size: 12\n  color: blue\n  port: {number: 1, name: a}\n  parts:\n  - name: red\n  - nmae: x\n",
    );
    let rule = widget("rule", "  size: 1\n  parts:\n  - name: red\n");
    let good = widget(
        "good",
        "  size: 9\n  colour: blue\n  parts: [{name: red}]\n",
    );
    let files = [
        ("crds/widgets.yaml", DEFINITION),
        ("deploy/bad.yaml", &*bad),
        ("deploy/good.yaml", &good),
        ("deploy/rule.yaml", &rule),
    ];
    let (text, code) = run(&files, &["--crds", "{}/crds", "{}/deploy"]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 1);
    // The same definition among the checked files.
    let (beside, _) = run(&files, &["{}"]);
    assert_eq!(findings(&beside), findings(&text));
}

#[test]
fn versions_of_a_definition_are_checked() {
    let old = widget("old", "  size: 1\n").replace("example.com/v1", "example.com/v1alpha1");
    let unknown = widget("unknown", "  size: 1\n").replace("example.com/v1", "example.com/v2");
    let files = [
        ("chart/Chart.yaml", "name: {{ broken }}\n"),
        ("chart/crds/widgets.yaml", DEFINITION),
        ("chart/templates/widget.yaml", "{{ .Values.widget }}\n"),
        ("deploy/old.yaml", &old),
        ("deploy/unknown.yaml", &unknown),
    ];
    let (text, code) = run(&files, &["--crds", "{}/chart", "{}/deploy"]);
    assert_eq!(
        findings(&text),
        [
            "deploy/old.yaml:1:1: error[SC001]: Widget a/old: apiVersion: Invalid value: \"example.com/v1alpha1\": this version is not served; the definition serves v1",
            "deploy/unknown.yaml:1:1: error[SC001]: Widget a/unknown: apiVersion: Invalid value: \"example.com/v2\": there is no such version; the definition serves v1",
        ]
    );
    assert_eq!(code, 1);
}

#[test]
fn broken_definitions_are_reported_and_other_files_checked() {
    let costly = DEFINITION.replace("maxItems: 9", "description: many");
    let loops = "self.parts.all(it, self.parts.all(other, it.name != other.name))";
    let costly = costly.replace("self.parts.all(it, it.name != self.colour)", loops);
    let broken = DEFINITION.replace("maximum: 9", "maximum: 9, pattern: 5");
    let broken = broken
        .replace("Widget", "Gadget")
        .replace("widgets", "gadgets");
    let untyped = DEFINITION.replace("type: array", "typo: array");
    let untyped = untyped
        .replace("Widget", "Gizmo")
        .replace("widgets", "gizmos");
    let bad = widget("bad", "  size: 12\n");
    let files = [
        ("crds/costly.yaml", &*costly),
        ("crds/broken.yaml", &broken),
        ("crds/untyped.yaml", &untyped),
        ("widget.yaml", &bad),
    ];
    let (text, code) = run(&files, &["{}"]);
    insta::assert_snapshot!(findings(&text).join("\n"));
    assert_eq!(code, 1);
    let files = [
        ("crds/a.yaml", "a: [1\n"),
        (
            "crds/b.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {scope: Cluster}\n",
        ),
        ("crds/c.yaml", DEFINITION),
        ("deploy/widget.yaml", &bad),
    ];
    let (text, code) = run(&files, &["--crds", "{}/crds", "{}/deploy"]);
    let found = findings(&text);
    assert!(found[0].starts_with("crds/a.yaml:"), "{text}");
    assert!(
        found[1].starts_with("crds/b.yaml:1:1: cannot be read: the definition has no spec.group"),
        "{text}"
    );
    assert!(
        found[2].contains("deploy/widget.yaml:5:3: error[SC002]: Widget a/bad: spec.size: "),
        "{text}"
    );
    assert_eq!(code, 2);
}

#[test]
fn inputs_of_kustomize_are_skipped() {
    let patch = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com, annotations: {a: b}}\n";
    let good = widget("good", "  size: 1\n");
    let files = [
        ("crd/bases/widgets.yaml", DEFINITION),
        (
            "crd/kustomization.yaml",
            "resources: [bases/widgets.yaml]\n",
        ),
        ("crd/kustomizeconfig.yaml", "nameReference: []\n"),
        ("crd/patches/webhook.yaml", patch),
        ("samples/widget.yaml", &*good),
        ("samples/kustomization.yaml", "resources: [widget.yaml]\n"),
    ];
    let (text, code) = run(
        &files,
        &["--crds", "{}/crd", "{}/samples", "{}/crd", "--verbose"],
    );
    assert_eq!(
        text,
        "\
not checked: 1 apiextensions.k8s.io/v1 CustomResourceDefinition (patch of a definition)
not checked: 3 kustomize.config.k8s.io/v1beta1 Kustomization (input of kustomize)
0 errors, 0 warnings in 6 files, 2 objects checked, 4 of other kinds
"
    );
    assert_eq!(code, 0);
}

#[test]
fn kinds_that_no_definition_can_have_are_skipped() {
    let of = |version: &str, kind: &str| format!("apiVersion: {version}\nkind: {kind}\n");
    let files = [
        (
            "kueue.yaml",
            of("config.kueue.x-k8s.io/v1beta2", "Configuration"),
        ),
        (
            "kubelet.yaml",
            of("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"),
        ),
        (
            "pending.yaml",
            of(
                "visibility.kueue.x-k8s.io/v1beta2",
                "PendingWorkloadsSummary",
            ),
        ),
        ("openshift.yaml", of("config.openshift.io/v1", "OAuth")),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let (text, code) = run(&files, &["{}", "--verbose"]);
    let expected = "\
not checked: 1 config.kueue.x-k8s.io/v1beta2 Configuration (configuration file of a component)
not checked: 1 config.openshift.io/v1 OAuth (no definition: give it with --crds)
not checked: 1 kubelet.config.k8s.io/v1beta1 KubeletConfiguration (configuration file of a component)
not checked: 1 visibility.kueue.x-k8s.io/v1beta2 PendingWorkloadsSummary (served by an aggregated API server)
";
    assert!(text.contains(expected), "{text}");
    assert_eq!(code, 0);
}

#[test]
fn values_of_built_in_kinds_are_checked() {
    let web = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: Web}
spec:
  replicas: -1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - name: web
        ports: [{containerPort: 80000}]
";
    let secret = "\
apiVersion: v1
kind: Secret
metadata: {name: token}
data: {token: hunter2!}
";
    let stored = web.replace("{name: Web}", "{name: Web, uid: a}");
    let files = [
        ("secret.yaml", secret),
        ("stored.yaml", &*stored),
        ("web.yaml", web),
    ];
    let (text, code) = run(&files, &["{}"]);
    insta::assert_snapshot!(text);
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(code, 1);
}

#[test]
fn patches_of_kustomize_need_no_complete_objects() {
    let patch = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replica: 3
";
    let operations = "- {op: remove, path: /spec/replicas}\n";
    let kustomization = "\
resources: [web.yaml]
patches: [{path: patches/web.yaml}, {path: patches/operations.yaml, target: {kind: Deployment}}]
";
    let files = [
        ("base/kustomization.yaml", kustomization),
        ("base/patches/operations.yaml", operations),
        ("base/patches/web.yaml", patch),
    ];
    let (text, code) = run(&files, &["{}/base/patches"]);
    let expected = "web.yaml:5:3: error[SC005]: Deployment web: spec.replica: Invalid value: 3: unknown field, which \
                    would be dropped; did you mean replicas?";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains("1 error, 0 warnings in 2 files, 1 object checked"),
        "{text}"
    );
    assert_eq!(code, 1);
}

#[test]
fn patches_of_kustomize_get_no_defaults() {
    let queue = "\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec:
  cohortName: all
";
    let kustomization = "patches: [{path: patch.yaml}]\n";
    let files = [
        ("kustomization.yaml", kustomization),
        ("patch.yaml", queue),
        ("queue.yaml", queue),
    ];
    let folder = TempDir::new().unwrap();
    write(folder.path(), &files);
    run_in(folder.path(), &["--fix", "{}"]);
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(text("patch.yaml"), queue);
    assert_ne!(text("queue.yaml"), queue);
}

#[test]
fn strict_names_the_nearest_kind() {
    let misspelt = widget("x", "  size: 1\n").replace("Widget", "Widgte");
    let files = [
        ("crds/widgets.yaml", DEFINITION),
        ("deploy/x.yaml", &*misspelt),
        (
            "deploy/y.yaml",
            "apiVersion: other.dev/v1\nkind: Thing\nmetadata: {name: z}\n",
        ),
    ];
    let (text, code) = run(&files, &["--strict", "--crds", "{}/crds", "{}/deploy"]);
    assert_eq!(
        findings(&text),
        [
            "deploy/x.yaml:2:1: error[SC001]: Widgte a/x: kind: Invalid value: example.com/v1 Widgte is not checked, and --strict requires it; did you mean example.com/v1 Widget?",
            "deploy/y.yaml:2:1: error[SC001]: Thing z: kind: Invalid value: other.dev/v1 Thing is not checked, and --strict requires it",
        ]
    );
    assert_eq!(code, 1);
    let (text, code) = run(
        &files,
        &["--verbose", "--summary", "--crds", "{}/crds", "{}"],
    );
    assert_eq!(
        text,
        "\
apiextensions.k8s.io/v1 CustomResourceDefinition: 1 object, 0 errors, 0 warnings
not checked: 1 example.com/v1 Widgte (no definition: give it with --crds)
not checked: 1 other.dev/v1 Thing (no definition: give it with --crds)
0 errors, 0 warnings in 3 files, 1 object checked, 2 of other kinds
"
    );
    assert_eq!(code, 0);
}

#[test]
fn changes_are_checked_with_transition_rules_and_ratcheting() {
    let old = widget("a", "  size: 12\n  owner: ann\n");
    let relabelled = old.replace("namespace: a", "namespace: a, labels: {x: z}");
    let stolen = widget("a", "  size: 12\n  owner: bob\n");
    let bigger = widget("a", "  size: 13\n  owner: ann\n");
    for (new, expected) in [
        (&relabelled, &[][..]),
        (
            &stolen,
            &[
                "new/w.yaml:6:3: error[SC003]: Widget a/a: spec.owner: Invalid value: \"bob\": owner is immutable",
            ],
        ),
        (
            &bigger,
            &[
                "new/w.yaml:5:3: error[SC002]: Widget a/a: spec.size: Invalid value: 13: should be less than or equal to 9",
            ],
        ),
    ] {
        let files = [
            ("crds/widgets.yaml", DEFINITION),
            ("old/w.yaml", &*old),
            ("new/w.yaml", new),
        ];
        let (text, _) = run(&files, &["--crds", "{}/crds", "--old", "{}/old", "{}/new"]);
        assert_eq!(findings(&text), expected, "{new}");
    }
}

#[test]
fn changes_of_own_kinds_and_definitions_are_checked() {
    let queue = |name: &str, queue: &str| {
        format!(
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {{name: {name}, namespace: a}}\nspec: {{clusterQueue: {queue}}}\n"
        )
    };
    let (old, new) = (queue("main", "one"), queue("main", "two"));
    let narrowed = DEFINITION.replace("group: example.com", "group: example.org");
    let narrowed = narrowed.replace("widgets.example.com", "widgets.example.org");
    let renamed = DEFINITION.replace("scope: Namespaced", "scope: Cluster");
    let files = [
        ("old/queue.yaml", &*old),
        ("old/crd.yaml", DEFINITION),
        ("new/queue.yaml", &new),
        ("new/crd.yaml", &renamed),
        ("new/other.yaml", &narrowed),
    ];
    let (text, code) = run(&files, &["--old", "{}/old", "{}/new"]);
    insta::assert_snapshot!(findings(&text).join("\n"));
    assert_eq!(code, 1);
}

#[test]
fn definitions_and_old_objects_are_read_from_git() {
    let folder = TempDir::new().unwrap();
    let root = folder.path();
    let git = |arguments: &[&str]| {
        let status = process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-C"])
            .arg(root)
            .args(arguments)
            .stdout(process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    let old = widget("a", "  size: 1\n  owner: ann\n");
    write(
        root,
        &[("crds/widgets.yaml", DEFINITION), ("deploy/w.yaml", &old)],
    );
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    let new = widget("a", "  size: 1\n  owner: bob\n");
    write(root, &[("deploy/w.yaml", &new), ("added/v.yaml", &new)]);
    let arguments = [
        "--crds",
        "{}/crds",
        "--old",
        "git:main",
        "{}/deploy",
        "{}/added/v.yaml",
    ];
    let (text, code) = run_in(root, &arguments);
    assert_eq!(
        findings(&text),
        [
            "deploy/w.yaml:6:3: error[SC003]: Widget a/a: spec.owner: Invalid value: \"bob\": owner is immutable",
            "added/v.yaml:6:3: error[SC003]: Widget a/a: spec.owner: Invalid value: \"bob\": owner is immutable",
        ]
    );
    assert_eq!(code, 1);
}

#[test]
fn typos_in_objects_of_definitions_are_fixed() {
    let bad = widget("bad", "  size: 1 # comment\n  coluor: blue\n");
    let folder = TempDir::new().unwrap();
    write(
        folder.path(),
        &[("crds/widgets.yaml", DEFINITION), ("deploy/w.yaml", &bad)],
    );
    let (text, code) = run_in(
        folder.path(),
        &["--fix=corrected", "--crds", "{}/crds", "{}/deploy"],
    );
    let fixed = fs::read_to_string(folder.path().join("deploy/w.yaml")).unwrap();
    assert!(
        fixed.ends_with("  size: 1 # comment\n  colour: blue\n"),
        "{fixed}{text}"
    );
    assert_eq!(code, 0);
}

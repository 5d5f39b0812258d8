//! Declarations of kinds of jobs, with and without the definition of the kind.

use super::definitions::{findings, run};

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainingruns.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: TrainingRun, plural: trainingruns, singular: trainingrun}
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
            properties:
              runPolicy: {type: object, properties: {suspend: {type: boolean}}}
              template: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}, message: {type: string}}}
";

fn declaration(suspend: &str) -> String {
    format!(
        "\
apiVersion: lockkeeper.dev/v1alpha1
kind: JobKind
metadata: {{name: trainingruns.example.com}}
spec:
  version: v1
  kind: TrainingRun
  suspend:
    path: {suspend}
  podSets:
  - {{name: main, template: spec.template}}
"
    )
}

#[test]
fn declaration_is_compared_with_its_definition() {
    const MISMATCH: &str = "new/kind.yaml:8:5: error[JK002]: JobKind trainingruns.example.com: spec.suspend.path: Invalid value: \"spec.suspend\": spec has no field \"suspend\"; did you mean spec.runPolicy.suspend?";
    const OUTSIDE: &str = "new/kind.yaml:8:5: error[JK001]: JobKind trainingruns.example.com: spec.suspend.path: Invalid value: \"status.paused\": must be below spec, such as spec.suspend";
    let crds = ["--crds", "{}/crds.yaml"];
    for (path, flags, expected) in [
        ("spec.runPolicy.suspend", &crds[..], None),
        ("spec.suspend", &crds[..], Some(MISMATCH)),
        // Without the definition nothing is known about the fields.
        ("spec.suspend", &[], None),
        ("status.paused", &[], Some(OUTSIDE)),
        ("status.paused", &crds[..], Some(OUTSIDE)),
    ] {
        let files = [
            ("new/kind.yaml", &*declaration(path)),
            ("crds.yaml", DEFINITION),
        ];
        let (text, code) = run(&files, &[flags, &["{}/new"]].concat());
        assert_eq!(findings(&text), expected.as_slice(), "{text}");
        assert_eq!(code, u8::from(expected.is_some()), "{text}");
    }
}

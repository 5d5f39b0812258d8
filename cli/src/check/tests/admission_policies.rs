//! Admission policies among the files and in other sources.

use super::definitions::{DEFINITION, findings, run, widget};

const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}
  validations:
  - {expression: object.spec.size < 9 || request.userInfo.username == 'admin', message: too large}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: small}
spec: {policyName: small, validationActions: [Deny]}
";

const DENIED: &str = "new/widget.yaml:5:3: error[SC008]: Widget a/a: spec.size: Forbidden: ValidatingAdmissionPolicy 'small' with binding 'small' denied request: too large";
const UNKNOWN: &str = "new/widget.yaml:3:1: warning[SC008]: Widget a/a: metadata: Not found: the user of the request, which ValidatingAdmissionPolicy 'small' with binding 'small' reads; name it with --user";

#[track_caller]
fn check(size: &str, flags: &[&str], expected: &[&str], code: u8) {
    let object = widget("a", &format!("  size: {size}\n"));
    let files = [
        ("new/widget.yaml", &*object),
        ("crds.yaml", DEFINITION),
        ("policies/small.yaml", POLICY),
        ("warn.yaml", "rules: {actions: {SC008: warn}}\n"),
    ];
    let arguments = [&["--crds", "{}/crds.yaml"], flags, &["{}/new"]].concat();
    let (text, found) = run(&files, &arguments);
    assert_eq!(findings(&text), expected, "{text}");
    assert_eq!(found, code, "{text}");
}

#[test]
fn policies_of_a_source_decide_about_objects() {
    let policies = ["--policies", "{}/policies"];
    check("9", &[], &[], 0);
    check("8", &policies, &[], 0);
    check("9", &policies, &[UNKNOWN], 0);
    check(
        "9",
        &[&policies[..], &["--user", "me"]].concat(),
        &[DENIED],
        1,
    );
    check("9", &[&policies[..], &["--user", "admin"]].concat(), &[], 0);
    // Policies among the checked files count as well.
    check("9", &["--user", "me", "{}/policies"], &[DENIED], 1);
    // Objects of --world are policies, too.
    check(
        "9",
        &["--user", "me", "--world", "{}/policies"],
        &[DENIED],
        1,
    );
}

#[test]
fn selection_and_configuration_apply_to_policies() {
    let denied = ["--policies", "{}/policies", "--user", "me"];
    let with = |flags: &[&'static str]| [&denied[..], flags].concat();
    check("9", &with(&["--select", "SC008"]), &[DENIED], 1);
    check("9", &with(&["--ignore", "SC008"]), &[], 0);
    let warned = DENIED.replace("error[", "warning[");
    check("9", &with(&["--config", "{}/warn.yaml"]), &[&warned], 0);
}

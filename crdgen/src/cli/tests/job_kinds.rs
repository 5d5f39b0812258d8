//! Tests of `crdgen job-kinds`.

use super::*;

fn write(folder: &TempDir, text: &str) -> String {
    let path = folder.path().join("jobkind.yaml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn declaration(template: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: other}}\n---\n\
         apiVersion: lockkeeper.dev/v1alpha1\nkind: JobKind\nmetadata: {{name: runs.example.com}}\n\
         spec: {{version: v1, kind: Run, podSets: [{{name: main, template: {template}}}]}}\n"
    )
}

#[test]
fn job_kinds_command_emits_role_and_policies() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, &declaration("spec.template"));
    let text = printed(&["job-kinds", &file]);
    let validating = [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ];
    // For running jobs, resumptions, deletions and pods.
    let guards = validating.repeat(4);
    let mutating = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"];
    assert_eq!(
        kinds(&text),
        [&["ClusterRole"][..], &mutating, &guards].concat()
    );
    let account = "system:serviceaccount:lockkeeper-system:lockkeeper-controller";
    assert!(text.contains(account), "{text}");
    let other = printed(&["job-kinds", "--controller=infra/lock", &file]);
    assert!(
        other.contains("system:serviceaccount:infra:lock"),
        "{other}"
    );
    let older = printed(&["job-kinds", "--kubernetes-version=1.35", &file]);
    let expected = [&["ClusterRole"][..], &validating, &guards].concat();
    assert_eq!(kinds(&older), expected);
    let message =
        "spec.suspend: must be true in a new job with the label lockkeeper.dev/queue-name";
    assert!(older.contains(message), "{older}");
    let roles = printed(&["job-kinds", "--only-roles", &file]);
    assert_eq!(kinds(&roles), ["ClusterRole"]);
    let role: Value = serde_saphyr::from_str(&roles).unwrap();
    let labels = &role["metadata"]["labels"];
    assert_eq!(labels["rbac.lockkeeper.dev/job-kinds"], "true");
    let rights: Vec<(&Value, &Value)> = role["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["resources"][0], &it["verbs"]))
        .collect();
    assert_eq!(rights[0].0, "runs");
    assert_eq!(
        rights[0].1,
        &serde_json::json!(["get", "list", "watch", "patch"])
    );
    assert_eq!(rights[1].0, "runs/finalizers");
    assert_eq!(rights[1].1, &serde_json::json!(["update"]));
}

#[test]
fn job_kinds_command_names_what_is_wrong() {
    let folder = TempDir::new().unwrap();
    let error = |file: &str| {
        let command = parse(&["job-kinds", file]).unwrap();
        run(command, &mut Vec::new()).unwrap_err().to_string()
    };
    let file = write(&folder, &declaration("status.template"));
    let text = error(&file);
    let expected = "JobKind runs.example.com in ";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with("spec.podSets[0].template: must be below spec, such as spec.suspend"),
        "{text}"
    );
    let file = write(
        &folder,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
    );
    assert!(error(&file).starts_with("no JobKind in "));
    assert!(error("missing.yaml").contains("missing.yaml"));
}

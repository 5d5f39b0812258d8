//! The CA bundle of a CRD's conversion webhook.

use super::server::CertificateServer;
use super::{data, start_cluster, wait_until};
use crate::fixture::Fixture;
use crate::lockkeeper::Protocol;

const CRD: &str = "things.example.com";

/// A CRD with two versions, and the rights on it that the documentation lists.
const OBJECTS: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things, singular: thing}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: lockkeeper-system, name: lockkeeper, path: /convert}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lockkeeper-things}
rules:
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [things.example.com]
  verbs: [get, list, watch, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lockkeeper-things}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lockkeeper-things}
subjects:
- {kind: ServiceAccount, name: lockkeeper, namespace: lockkeeper-system}
";

/// The bundle is set and restored, and the rest of the CRD does not change.
pub fn conversion(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage);
    kubectl.apply(OBJECTS, &[]).expect_accepted();
    let target = format!("customresourcedefinitions/{CRD}");
    let begun =
        CertificateServer::start_unready_with_flags(stage, protocol, &["--inject", &target]);
    let mut server = CertificateServer::wait(begun);
    server.wait_ready();
    let client = || {
        let crd = kubectl.get(&["customresourcedefinition", CRD]);
        crd["spec"]["conversion"]["webhook"]["clientConfig"].clone()
    };
    let has_bundle = || client()["caBundle"] == data(&kubectl)["ca.crt"];
    wait_until("the conversion has the bundle", has_bundle);
    let remove = r#"[{"op":"remove","path":"/spec/conversion/webhook/clientConfig/caBundle"}]"#;
    let patch = [
        "patch",
        "customresourcedefinition",
        CRD,
        "--type=json",
        "-p",
        remove,
    ];
    kubectl.run(&patch).expect_accepted();
    wait_until("the conversion has the bundle again", has_bundle);
    assert_eq!(client()["service"]["path"], "/convert");
    server.stop();
    for object in [
        ["customresourcedefinition", CRD],
        ["clusterrolebinding", "lockkeeper-things"],
        ["clusterrole", "lockkeeper-things"],
    ] {
        kubectl
            .run(&["delete", object[0], object[1]])
            .expect_accepted();
    }
}

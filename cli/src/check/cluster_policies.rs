//! The admission policies of a cluster, with their parameters and Namespaces.

use super::cluster_list::{self, ListError};
use kube::Client;
use lockkeeper_check::collect::add_policy;
use lockkeeper_check::report::CheckedFile;
use lockkeeper_check::{DefinitionSet, ListTarget, PolicySet, Resource};
use serde_json::Value;

const GROUP_VERSION: &str = "admissionregistration.k8s.io/v1";

const KINDS: [ListTarget<'static>; 5] = [
    ListTarget {
        version: GROUP_VERSION,
        kind: "ValidatingAdmissionPolicy",
        plural: "validatingadmissionpolicies",
    },
    ListTarget {
        version: GROUP_VERSION,
        kind: "ValidatingAdmissionPolicyBinding",
        plural: "validatingadmissionpolicybindings",
    },
    ListTarget {
        version: GROUP_VERSION,
        kind: "MutatingAdmissionPolicy",
        plural: "mutatingadmissionpolicies",
    },
    ListTarget {
        version: GROUP_VERSION,
        kind: "MutatingAdmissionPolicyBinding",
        plural: "mutatingadmissionpolicybindings",
    },
    ListTarget {
        version: "v1",
        kind: "Namespace",
        plural: "namespaces",
    },
];

/// The policies of the cluster with the parameters of these and of other objects, and the kinds that may not be listed. At
/// most one page of objects that are not kept is in memory.
pub(super) async fn list(
    client: &Client,
    others: &[Value],
    definitions: &DefinitionSet,
) -> Result<(PolicySet, Vec<CheckedFile>), ListError> {
    let mut policies = PolicySet::default();
    let mut unreadable = Vec::new();
    for target in KINDS {
        let listed = cluster_list::for_each_object(client, &target, |object| {
            add_policy(&mut policies, &object);
        });
        if let Err(error) = listed.await {
            let kind = cluster_list::unreadable_kind(&target, error)?;
            unreadable.push(kind);
        }
    }
    let mut kinds = policies.param_kinds();
    let mut set = PolicySet::default();
    for object in others {
        set.add(object);
    }
    kinds.extend(set.param_kinds());
    for (version, kind) in kinds {
        let defined = definitions.plural(&version, &kind);
        let plural = defined.map_or_else(|| Resource::plural_of(&kind), str::to_owned);
        let target = ListTarget {
            version: &version,
            kind: &kind,
            plural: &plural,
        };
        let listed = cluster_list::for_each_object(client, &target, |object| {
            policies.add_param(&object);
        });
        match listed.await {
            Ok(_) => policies.set_complete_kind(&version, &kind),
            Err(error) => {
                let kind = cluster_list::unreadable_kind(&target, error)?;
                unreadable.push(kind);
            }
        }
    }
    Ok((policies, unreadable))
}

#[cfg(test)]
mod tests {
    use super::super::cluster_list::tests::{fake_api_server, serve_responses, status};
    use super::{DefinitionSet, list};
    use serde_json::json;

    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

    #[tokio::test]
    async fn list_adds_policies_and_their_parameters() {
        let policy = json!({
            "metadata": {"name": "small"},
            "spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}},
        });
        let (client, requests) = fake_api_server(&[(POLICIES, vec![vec![policy]])]);
        let none = DefinitionSet::default();
        let (policies, unreadable) = list(&client, &[], &none).await.unwrap();
        assert!(!policies.is_empty());
        assert!(unreadable.is_empty());
        let requests = requests.lock().unwrap();
        assert!(
            requests
                .iter()
                .any(|it| it.starts_with("/api/v1/configmaps"))
        );
    }

    #[tokio::test]
    async fn list_without_rights_reports_the_kinds() {
        let (client, _) = serve_responses(|_, _| (403, status(403, "forbidden")));
        let none = DefinitionSet::default();
        let (policies, unreadable) = list(&client, &[], &none).await.unwrap();
        assert!(policies.is_empty());
        let names: Vec<&str> = unreadable.iter().map(|it| &*it.name).collect();
        let expected = [
            "validatingadmissionpolicies (admissionregistration.k8s.io/v1)",
            "validatingadmissionpolicybindings (admissionregistration.k8s.io/v1)",
            "mutatingadmissionpolicies (admissionregistration.k8s.io/v1)",
            "mutatingadmissionpolicybindings (admissionregistration.k8s.io/v1)",
            "namespaces (v1)",
        ];
        assert_eq!(names, expected);
    }
}

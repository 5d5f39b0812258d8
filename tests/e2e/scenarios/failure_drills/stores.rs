//! A server without the rights to list what its rules need: it is not ready, and if it is called anyway, it reports
//! objects that it did not check.

use super::fixture::DrillFixture;
use crate::client::{Client, Response};
use crate::cluster::UNPRIVILEGED_ACCOUNT;
use crate::fixture::{self, DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::load;
use crate::lockkeeper::{Lockkeeper, Protocol};
use crate::manifests::{self, GLOBAL_DEFAULT};
use crate::wait;

/// The account may get a class by its name, and list nothing.
const GET_ONLY_RULES: &str = "
- {apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: [get]}";

const NO_RULES: &str = " []";

/// The rights of `examples/install/server.yaml`.
const ALL_RULES: &str = "
- {apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: [get, list, watch]}
- {apiGroups: [lockkeeper.dev], resources: [workloads, cohorts, localqueues, jobkinds], verbs: [list, watch]}
- {apiGroups: [lockkeeper.dev], resources: [clusterqueues, resourceflavors], verbs: [get, list, watch]}
- {apiGroups: [''], resources: [pods], verbs: [list, watch]}";

const NOT_READY: &str = "not ready: still listing priorityclasses, workloads, pods, clusterqueues, cohorts, \
                         resourceflavors, localqueues, jobkinds\n";

/// The rights are granted one by one, and the server uses each of them without a restart.
pub fn stores_without_rights(stage: &mut Fixture, protocol: Protocol) {
    let mut site = DrillFixture::without_replicas(stage, protocol, DEFAULTS);
    let kubectl = site.kubectl.clone();
    grant(&kubectl, GET_ONLY_RULES);
    let stranger = site.stage.cluster().unprivileged().to_owned();
    site.add_replica_as(&stranger);
    let server = &site.replicas[0];
    wait_for_readiness(server, 503, NOT_READY);
    // A balancer would not send it requests, so the API server is configured to.
    fixture::register_webhook(&kubectl, &server.url(), server.ca());
    site.create_objects();

    // Each class is looked up.
    let load = site.load();
    load.wait_for_requests();
    load.paused_while(|| default_unknown(&kubectl, &mut site.stage.cluster().client()));
    load.paused_while(|| {
        grant(&kubectl, NO_RULES);
        assert_unchecked(&mut site.stage.cluster().client());
    });
    load.paused_while(|| {
        grant(&kubectl, ALL_RULES);
        wait_for_readiness(&site.replicas[0], 200, "ok\n");
        assert!(site.replicas[0].is_running());
        assert_checked(&mut site.stage.cluster().client());
    });
    load.wait_for_requests();
    let counts = load.finish(&site.title("stores that could not be filled"));
    assert_eq!((counts.unexpected, counts.without_response), (0, 0));
    for kind in ["clusterrolebinding", "clusterrole"] {
        kubectl.run(&["delete", kind, "stranger"]).expect_accepted();
    }
}

#[track_caller]
fn wait_for_readiness(server: &Lockkeeper, code: u16, text: &str) {
    let expected = Some((code, text.to_owned()));
    let answered = || Ok((server.endpoint().get("/readyz") == expected).then_some(()));
    let late = || format!("/readyz is {:?}", server.endpoint().get("/readyz"));
    wait::until(answered, late).unwrap_or_else(|e| panic!("{e}"));
}

/// Without a list the class with the global default is unknown.
#[track_caller]
fn default_unknown(kubectl: &Kubectl, client: &mut Client) {
    kubectl
        .apply(GLOBAL_DEFAULT, &[])
        .expect_accepted_without_warning();
    check(
        client,
        "",
        "",
        201,
        Some("not defaulted: the PriorityClass that is the global default"),
    );
    kubectl
        .run(&["delete", "priorityclass", "usual"])
        .expect_accepted_without_warning();
}

/// References that cannot be resolved are admitted with a warning. The other rules are enforced.
#[track_caller]
fn assert_unchecked(client: &mut Client) {
    let warning = "not checked: PriorityClass";
    let is_warned = || {
        let answer = attempt(client, "low", "");
        Ok(answer
            .warnings
            .iter()
            .any(|it| it.contains(warning))
            .then_some(()))
    };
    wait::until(is_warned, || {
        "a class is looked up without the right to".to_owned()
    })
    .unwrap();
    check(client, "high", "low", 201, Some(warning));
    let queue = load::queue("attempt", 8, 9);
    let answer = client
        .create(&format!("{}?dryRun=All", load::QUEUES), &queue)
        .unwrap();
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.message().contains("[CQ007]"), "{answer:?}");
}

#[track_caller]
fn assert_checked(client: &mut Client) {
    check(client, "high", "low", 422, None);
    check(client, "high", "high", 201, None);
    check(client, "", "", 201, None);
}

/// The response for a workload with these classes, and its warnings.
#[track_caller]
fn check(client: &mut Client, class: &str, preemption: &str, status: u16, warning: Option<&str>) {
    let answer = attempt(client, class, preemption);
    assert_eq!(answer.status, status, "{answer:?}");
    match warning {
        Some(text) => assert!(
            answer.warnings.iter().any(|it| it.contains(text)),
            "{answer:?}"
        ),
        None => assert_eq!(answer.warnings, [""; 0]),
    }
}

#[track_caller]
fn attempt(client: &mut Client, class: &str, preemption: &str) -> Response {
    let path = format!("{}?dryRun=All", load::WORKLOADS);
    let workload = load::workload("attempt", class, preemption);
    client.create(&path, &workload).unwrap()
}

/// Grants the account these rights and no others.
#[track_caller]
fn grant(kubectl: &Kubectl, rules: &str) {
    let account = UNPRIVILEGED_ACCOUNT;
    let role = format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: stranger}}
rules:{rules}
"
    );
    let binding = format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: stranger}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: stranger}}
subjects:
- {{kind: User, name: '{account}', apiGroup: rbac.authorization.k8s.io}}
"
    );
    kubectl
        .apply(&manifests::file(&[&role, &binding]), &[])
        .expect_accepted_without_warning();
}

//! A tenant, with all rights on Jobs of one namespace, tries to run pods without quota. Each trial runs twice: with the
//! admission policies alone, and with the webhook alone.

mod job_guards;
mod jobs;
mod pods;
mod policies;

use serde_json::Value;

use super::Scenario;
use crate::fixture::{self, DEFAULTS, Fixture};
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::lockkeeper::{self, Protocol};
use crate::programs::has_mutating_policies;
use crate::wait;

/// Runs a trial.
type Run = fn(&mut Fixture, Protocol);

pub fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (layer, by_policies) in [("policies protect", true), ("the webhook protects", false)] {
        let name = format!("{layer} running jobs from tenants");
        let run = move |stage: &mut Fixture, _: Protocol| {
            let suspends_jobs = !by_policies || has_mutating_policies();
            with_layer(stage, by_policies, |tenant| {
                jobs::running_jobs_are_protected(tenant, suspends_jobs, by_policies);
            });
        };
        all.push(Scenario::new(name, run).only(Protocol::Http1));
    }
    let default_queue = "jobs without a queue get the default queue of the namespace";
    let default_queue = Scenario::new(default_queue, policies::default_queue_is_added);
    all.push(default_queue.only(Protocol::Http1).since(36));
    let guarded = Scenario::new("only the controller admits pods", pods::pods_are_guarded);
    all.push(guarded.only(Protocol::Http1).since(36));
    let trials: [(&str, Run); 6] = [
        (
            "only JobSet's controller changes the Jobs of a JobSet",
            job_guards::jobs_of_job_sets_are_guarded,
        ),
        (
            "the pods of a Job keep their labels and owner",
            job_guards::pods_of_jobs_are_guarded,
        ),
        (
            "only the controller writes the status and owners of Workloads",
            policies::workloads_are_guarded,
        ),
        (
            "jobs without a queue are rejected where one is required",
            policies::queue_is_required,
        ),
        (
            "pods without a queue are rejected where one is required",
            pods::queue_is_required,
        ),
        (
            "roles grant tenants and administrators what the table lists",
            policies::roles_grant_the_documented_rights,
        ),
    ];
    let trials = trials.map(|(name, run)| Scenario::new(name, run).only(Protocol::Http1));
    all.extend(trials);
    all
}

/// The namespace of the tenant.
const NAMESPACE: &str = "tenant-a";

/// Runs a trial with the policies alone, or with the webhook alone.
#[track_caller]
fn with_layer(stage: &mut Fixture, by_policies: bool, trial: impl FnOnce(&Tenant)) {
    stage.cluster_mut().install_jobset();
    if !by_policies {
        trial(&Tenant::new(stage.with_server(Protocol::Http1, DEFAULTS)));
        return;
    }
    let kubectl = stage.without_webhook();
    stage.cluster_mut().stop_workers();
    fixture::sweep(&kubectl);
    let policies = lockkeeper::output(&["crds", "policies"]);
    install_policies(&kubectl, &policies);
    trial(&Tenant::new(kubectl.clone()));
    kubectl
        .with_input(&["delete", "-f", "-"], &policies)
        .expect_accepted();
}

/// Applies policies, and waits until the API server evaluates them: a moment after they are stored.
#[track_caller]
pub fn install_policies(kubectl: &Kubectl, policies: &str) {
    kubectl
        .apply(policies, &["--server-side"])
        .expect_accepted_without_warning();
    let is_rejected = || {
        let reply = kubectl.with_input(&["create", "--dry-run=server", "-f", "-"], SQUATTER);
        let is_mutated = kubectl.with_input(
            &["create", "--dry-run=server", "-o", "json", "-f", "-"],
            fixture::MUTATING_CONFIGURATION,
        );
        let is_mutated = !has_mutating_policies()
            || is_mutated.stdout.contains("lockkeeper.dev/resource-in-use");
        // Mutating policies need the schema of the kind, which the API server reads a while after its CRD. Without the
        // CRD, kubectl knows no such kind.
        let job_set = kubectl.with_input(&["create", "--dry-run=server", "-f", "-"], JOB_SET);
        let knows_kind = !job_set.stderr.contains("ServiceUnavailable");
        Ok((reply.stderr.contains("JO004") && is_mutated && knows_kind).then_some(()))
    };
    wait::until(is_rejected, || "the policies have no effect".to_owned()).unwrap();
}

const SQUATTER: &str = r"
apiVersion: batch/v1
kind: Job
metadata: {name: squatter, namespace: default, labels: {lockkeeper.dev/queue-name: main}}
spec:
  managedBy: example.com/none
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.example.com/a:1}]}}
";

const JOB_SET: &str = r"
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: new, namespace: default, labels: {lockkeeper.dev/queue-name: main}}
spec:
  replicatedJobs:
  - name: main
    template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.example.com/a:1}]}}}}
";

/// The account of a tenant.
pub struct Tenant {
    admin: Kubectl,
}

impl Tenant {
    /// Creates the namespace and the rights of the tenant.
    #[track_caller]
    fn new(admin: Kubectl) -> Self {
        admin.apply(RIGHTS, &["--server-side"]).expect_accepted();
        Self { admin }
    }

    /// The administrator.
    pub fn admin(&self) -> &Kubectl {
        &self.admin
    }

    /// Runs kubectl as the tenant, in its namespace.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> KubectlOutput {
        self.with_input(arguments, "")
    }

    /// Runs kubectl as the tenant, with `input` as its standard input.
    #[track_caller]
    pub fn with_input(&self, arguments: &[&str], input: &str) -> KubectlOutput {
        let mut all = vec!["--as=tenant", "--namespace", NAMESPACE];
        all.extend(arguments);
        self.admin.with_input(&all, input)
    }

    /// Creates an object as the tenant.
    #[track_caller]
    pub fn create(&self, object: &str) -> KubectlOutput {
        self.with_input(&["create", "-f", "-"], object)
    }

    /// Patches an object of the tenant.
    #[track_caller]
    pub fn patch(&self, kind: &str, name: &str, patch: &str) -> KubectlOutput {
        self.run(&["patch", kind, name, "--type=merge", "--patch", patch])
    }
}

/// Runs kubectl with the account of a component, which may do everything that no policy rejects.
#[track_caller]
fn as_account(kubectl: &Kubectl, account: &str, arguments: &[&str], input: &str) -> KubectlOutput {
    let account = format!("--as={account}");
    let all = [&[&*account, "--as-group=system:masters"], arguments].concat();
    kubectl.with_input(&all, input)
}

/// Patches an object in the namespace of the tenant with the account of a component.
#[track_caller]
fn patch_as(
    kubectl: &Kubectl,
    account: &str,
    kind: &str,
    name: &str,
    patch: &Value,
) -> KubectlOutput {
    let patch = patch.to_string();
    let arguments = [
        "patch",
        kind,
        name,
        "--namespace",
        NAMESPACE,
        "--type=merge",
        "--patch",
        &patch,
    ];
    as_account(kubectl, account, &arguments, "")
}

const RIGHTS: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: tenant-a}
---
# Pods need the account, and no controller creates it here.
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: tenant-a}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: tenant-a}
rules:
- {apiGroups: [batch, jobset.x-k8s.io], resources: [jobs, jobsets], verbs: ['*']}
- {apiGroups: [''], resources: [pods], verbs: ['*']}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: tenant-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
";

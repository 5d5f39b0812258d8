//! User rules for kinds that lockkeeper does not know.

use std::fs;

use super::Scenario;
use crate::fixture::{self, Fixture};
use crate::lockkeeper::{self, Lockkeeper, Protocol};
use crate::manifests;
use crate::wait;

pub fn scenarios() -> Vec<Scenario> {
    let name = "a user rule covers any kind, and fails open";
    vec![Scenario::new(name, user_rules_for_any_kind).only(Protocol::Http1)]
}

fn user_rules_for_any_kind(stage: &mut Fixture, _: Protocol) {
    let kubectl = stage.without_webhook();
    fixture::sweep(&kubectl);
    let folder = stage.new_folder();
    let rules = folder.join("rules");
    fs::create_dir_all(&rules).unwrap();
    fs::write(rules.join("open.md"), OPEN).unwrap();
    fs::write(rules.join("queue.md"), QUEUE).unwrap();
    // The rule is off: no requests are sent for it.
    fs::write(rules.join("secret.md"), SECRET).unwrap();
    let config = folder.join("config.yaml");
    fs::write(&config, "rules: {actions: {TEAM102: off}}\n").unwrap();

    let tls = folder.join("tls");
    let [rules, config, tls] = [&rules, &config, &tls].map(|path| path.to_str().unwrap());
    let flags = ["--rules", rules, "--config", config, "--tls-dir", tls];
    let server =
        Lockkeeper::start_without_cluster(&folder, &flags).unwrap_or_else(|e| panic!("{e}"));
    let log = server.log();
    assert!(
        log.contains("TEAM100: CREATE, DELETE of networking.k8s.io/v1 NetworkPolicy"),
        "{log}"
    );
    let ca = server.ca().to_str().unwrap();
    let url = server.url();
    let mut words = vec!["crds", "webhooks", "--url", &url, "--ca-bundle", ca];
    words.extend(["--rules", rules, "--config", config]);
    let webhooks = lockkeeper::output(&words);
    assert!(!webhooks.contains("secrets"), "{webhooks}");
    kubectl
        .apply(&webhooks, &[])
        .expect_accepted_without_warning();

    let create = ["create", "--dry-run=server", "-f", "-"];
    let rejected = wait::until(
        || {
            let reply = kubectl.with_input(&create, POLICY);
            Ok(reply.stderr.contains("[TEAM100]").then_some(reply))
        },
        || "the webhook gets no request for a NetworkPolicy".to_owned(),
    );
    let reply = rejected.unwrap_or_else(|e| panic!("{e}")).expect_rejected();
    assert!(
        reply.stderr.contains("spec.ingress: Invalid value"),
        "{}",
        reply.stderr
    );
    let narrow = POLICY.replace("[{}]", "[]");
    kubectl
        .apply(&narrow, &[])
        .expect_accepted_without_warning();
    // On a deletion as well.
    let delete = ["delete", "networkpolicy", "open", "--dry-run=server"];
    kubectl.run(&delete).expect_accepted();

    // A Job without the queue label.
    let job = manifests::job("free", None, None).replace("namespace: team", "namespace: default");
    let reply = kubectl.with_input(&create, &job).expect_accepted();
    assert!(
        reply.stderr.contains("TEAM101 metadata.name"),
        "{}",
        reply.stderr
    );

    // Without the webhook, kinds of other projects fail open.
    server.stop().unwrap();
    kubectl
        .run(&["delete", "networkpolicy", "open"])
        .expect_accepted();
    kubectl.with_input(&create, POLICY).expect_accepted();
    stage.without_webhook();
}

const OPEN: &str = "---
id: TEAM100
name: open-network-policy
kinds: [{group: networking.k8s.io, version: v1, kind: NetworkPolicy}]
operations: [CREATE, DELETE]
validations:
- expression: request.operation == 'DELETE' || !has(object.spec.ingress) || object.spec.ingress.all(it, has(it.from))
  message: must say from where
  fieldPath: .spec.ingress
---
";

const QUEUE: &str = "---
id: TEAM101
name: job-of-no-queue
kinds: [{group: batch, version: v1, kind: Job}]
action: warn
validations:
- expression: has(object.metadata.labels) && 'lockkeeper.dev/queue-name' in object.metadata.labels
  message: must name a queue
  fieldPath: .metadata.name
---
";

const SECRET: &str = "---
id: TEAM102
name: any-secret
kinds: [{version: v1, kind: Secret}]
validations: [{expression: 'false', message: must not be}]
---
";

const POLICY: &str = "
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: open, namespace: default}
spec: {podSelector: {}, ingress: [{}]}
";

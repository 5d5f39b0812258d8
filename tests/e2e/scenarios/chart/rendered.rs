//! The output of the chart: the effect of each value.

use std::collections::BTreeSet;
use std::path::Path;

use lockkeeper_crdgen::chart::values;
use similar::TextDiff;

use crate::helm::{CHART, Helm, NAMESPACE, RELEASE};
use crate::scenarios::without_cluster::StandaloneTrial;
use crate::snapshot;

/// Values without the CRDs, which are committed as generated.
const PLAIN: &str = "crds: {install: false}\n";

/// A name and values. The snapshot of a case is the difference from the default output.
pub const CASES: &[(&str, &str)] = &[
    (
        "image",
        "image: {repository: registry.example.com/lockkeeper, tag: v1, pullPolicy: Always}\n\
         imagePullSecrets: [{name: registry}]\n",
    ),
    (
        "digest",
        "image: {digest: 'sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}\n",
    ),
    (
        "config",
        "config:\n  rules: {actions: {CQ007: 'off'}}\n  webhook: {drainSeconds: 30, shutdownDelaySeconds: 0}\n  \
         controller: {shutdownSeconds: 60}\n",
    ),
    ("foreign", "foreignKinds: [koordinator, kueue]\n"),
    (
        "foreign-fail",
        "foreignKinds: [koordinator]\nwebhook: {foreignFailurePolicy: Fail}\n",
    ),
    // CQ014 and similar rules on, in one namespace, or off: the sent kinds follow.
    (
        "foreign-rules",
        "config:\n  webhook: {foreignKinds: [koordinator]}\n  rules:\n    actions: {EQ021: 'off', EQ022: 'off'}\n    \
         namespaces: {team: {actions: {EQ010: warn}}}\n",
    ),
    (
        "foreign-off",
        "config:\n  webhook: {foreignKinds: [koordinator]}\n  rules: {actions: {EQ021: 'off', EQ022: 'off'}}\n",
    ),
    ("cert-manager", "certificates: {mode: cert-manager}\n"),
    (
        "cert-manager-issuer",
        "certificates: {mode: cert-manager, issuerRef: {name: company, kind: ClusterIssuer, group: cert-manager.io}}\n",
    ),
    (
        "given",
        "certificates: {mode: given, secretName: mine, caBundle: '-----BEGIN CERTIFICATE-----'}\n",
    ),
    (
        "webhook",
        "webhook:\n  replicas: 3\n  resources: {requests: {cpu: 2}, limits: {memory: 1Gi}}\n  \
         nodeSelector: {pool: system}\n  tolerations: [{key: system, operator: Exists}]\n  \
         affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [\
         {topologyKey: kubernetes.io/hostname}]}}\n",
    ),
    ("jobs-fail", "webhook: {jobsFailurePolicy: Fail}\n"),
    (
        "job-kinds",
        "webhook:\n  jobKinds:\n  - {name: rayjobs.ray.io, version: v1}\n  \
         - {name: runs.training.example.com, version: v1beta1}\nconfig: {webhook: {preview: true}}\n",
    ),
    (
        "client-ca",
        "webhook: {clientCa: '-----BEGIN CERTIFICATE-----'}\nconfig: {webhook: {clientNames: [api-server]}}\n",
    ),
    ("require-tokens", "webhook: {requireTokens: true}\n"),
    (
        "network-policy-cidrs",
        "networkPolicy: {apiServerCidrs: [10.0.0.1/32]}\n",
    ),
    ("webhook-alone", "webhook: {replicas: 1}\n"),
    ("no-controller", "controller: {enabled: false}\n"),
    (
        "controller",
        "controller:\n  replicas: 1\n  resources: {requests: {cpu: 1}, limits: {memory: 2Gi}}\n  nodeSelector: {pool: system}\n  \
         tolerations: [{key: system, operator: Exists}]\n  \
         affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [\
         {matchExpressions: [{key: pool, operator: Exists}]}]}}}\n",
    ),
    ("network-policy", "networkPolicy: {enabled: true}\n"),
    (
        "network-policy-narrow",
        "networkPolicy:\n  enabled: true\n  apiServerCidrs: [10.0.0.1/32]\n  apiServerPorts: [443, 16443]\n  \
         scrapedBy: {kubernetes.io/metadata.name: monitoring}\ncontroller: {enabled: false}\n",
    ),
    (
        "service-monitor",
        "serviceMonitor: {enabled: true, interval: 1m, labels: {release: prometheus}}\n",
    ),
    (
        "pod-monitor",
        "podMonitor: {enabled: true, interval: 1m, labels: {release: prometheus}}\n",
    ),
    (
        "prometheus-rule",
        "prometheusRule: {enabled: true, labels: {release: prometheus}}\n",
    ),
    // The alerts of the controller are left out with it.
    (
        "prometheus-rule-webhook",
        "prometheusRule: {enabled: true, runbookUrl: 'https://docs.example.com/runbooks.html'}\n\
         controller: {enabled: false}\n",
    ),
    ("dashboards", "dashboards: {enabled: true}\n"),
    (
        "dashboards-labels",
        "dashboards: {enabled: true, labels: {team: platform}}\ncontroller: {enabled: false}\n",
    ),
    (
        "pods",
        "priorityClassName: system-cluster-critical\nlogFilter: lockkeeper_webhook=debug\n\
         podAnnotations: {team: platform}\n",
    ),
    ("no-policies", "policies: {enabled: false}\n"),
    (
        "queue-required",
        "policies:\n  queueRequired:\n    namespaceSelector: {matchLabels: {queue-required: 'true'}}\n    \
         exemptUsers: ['system:serviceaccount:jobs:a', b]\n",
    ),
    (
        "default-queue",
        "policies:\n  defaultQueue:\n    namespaceSelector: {matchLabels: {batch: 'true'}}\n    name: main\n",
    ),
    ("no-roles", "roles: {enabled: false}\n"),
    // Each rule of a policy is softened or exempted somewhere, and the policy is omitted with the last of them.
    (
        "softened",
        "config:\n  rules:\n    actions: {CQ005: warn}\n    \
         namespaces: {team: {actions: {CQ006: 'off'}}}\n    \
         exceptions: [{rules: [CQ011], expires: '2026-12-31', reason: moving, selector: {names: [a]}}]\n",
    ),
    (
        "names",
        "extraLabels: {team: platform}\nserviceAccountAnnotations: {example.com/role: reader}\nglobal: {any: thing}\n",
    ),
];

/// Values that are rejected, and the error messages.
const REJECTED_VALUES: &[(&str, &str)] = &[
    (
        "replicas: 2\n",
        "additional properties 'replicas' not allowed",
    ),
    (
        "webhook: {replica: 2}\n",
        "additional properties 'replica' not allowed",
    ),
    ("webhook: {replicas: 0}\n", "minimum: got 0, want 1"),
    (
        "webhook: {jobKinds: [{name: rayjobs.ray.io}]}\n",
        "missing property 'version'",
    ),
    (
        "webhook: {jobKinds: [{name: rayjobs, version: v1}]}\n",
        "'rayjobs' does not match pattern",
    ),
    (
        "policies: {defaultQueue: {namespaceSelector: {matchLabels: {a: b}}}}\n",
        "policies.defaultQueue.name: name the LocalQueue",
    ),
    (
        "policies: {defaultQueue: {name: \"a'\"}}\n",
        "does not match pattern",
    ),
    (
        "webhook: {affinity: {nodeAfinity: {}}}\n",
        "additional properties 'nodeAfinity' not allowed",
    ),
    (
        "controller: {tolerations: [{keys: a}]}\n",
        "additional properties 'keys' not allowed",
    ),
    (
        "config: {webhook: {drainSecond: 2}}\n",
        "additional properties 'drainSecond' not allowed",
    ),
    (
        "serviceMonitor: {enabled: true}\npodMonitor: {enabled: true}\n",
        "podMonitor.enabled: serviceMonitor.enabled scrapes the same pods; enable one of them",
    ),
    ("foreignKinds: [slurm]\n", "at '/foreignKinds/0'"),
    ("certificates: {mode: mine}\n", "at '/certificates/mode'"),
    ("image: {digest: latest}\n", "at '/image/digest'"),
    (
        "certificates: {mode: given, caBundle: '-----BEGIN CERTIFICATE-----'}\n",
        "certificates.secretName: name the Secret with the certificate",
    ),
    (
        "certificates: {mode: given, secretName: mine}\n",
        "certificates.caBundle: give the CA of the certificate, as PEM",
    ),
    (
        "certificates:\n  mode: given\n  secretName: mine\n  \
         caBundle: '-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----'\n",
        "certificates.caBundle: it holds a private key; give certificates alone",
    ),
    (
        "certificates: {mode: given, secretName: lockkeeper-tls, caBundle: '-----BEGIN CERTIFICATE-----'}\n",
        "lockkeeper-tls is a name of the chart's own; take another",
    ),
    (
        "webhook: {clientCa: mine}\n",
        "webhook.clientCa: give the CA of the API server's client certificates, as PEM",
    ),
    (
        "config: {controller: {leaderElection: {lease: team/other}}}\n",
        "the chart's role is for lockkeeper-system/lockkeeper-controller; leave it out",
    ),
];

pub fn trials_without_cluster() -> Vec<StandaloneTrial> {
    let trial = |name, run| StandaloneTrial { name, run };
    vec![
        trial("chart: helm lint reports nothing", lint_is_clean),
        trial("chart: each value changes the rendered objects", switches),
        trial("chart: invalid values are rejected", rejected_values),
        trial(
            "chart: an older Kubernetes gets what it accepts",
            older_kubernetes,
        ),
    ]
}

fn lint_is_clean(folder: &Path) {
    let helm = Helm::without_cluster(folder);
    let values = CASES.iter().map(|(_, values)| *values);
    for values in values.chain([""]) {
        let path = helm.values(values);
        let flags = [
            "lint",
            "--strict",
            CHART,
            "--values",
            path.to_str().unwrap(),
        ];
        let printed = helm.run(&flags).assert_silent().stdout;
        assert!(printed.contains("0 chart(s) failed"), "{printed}");
        let remarks = printed.lines().filter(|line| line.starts_with('['));
        let remarks: Vec<&str> = remarks.collect();
        assert_eq!(remarks, ["[INFO] Chart.yaml: icon is recommended"]);
    }
}

/// `docs/kubernetes-versions.md` says what each version lacks.
fn older_kubernetes(folder: &Path) {
    let helm = Helm::without_cluster(folder);
    let rendered =
        |version: &str| helm.run(&["template", RELEASE, CHART, "--kube-version", version]);
    for (version, has_quantities, has_mutating) in [
        ("1.33.0", false, false),
        ("v1.34.1-eks-0", true, false),
        ("1.35.8", true, false),
        ("v1.36.0", true, true),
        ("1.37.1", true, true),
    ] {
        let objects = rendered(version).assert_silent().stdout;
        for rule in ["[CQ007]", "[CQ008]"] {
            assert_eq!(objects.contains(rule), has_quantities, "{version} {rule}");
        }
        assert!(objects.contains("[CQ001]"), "{version}");
        let mutating = "kind: MutatingAdmissionPolicy\n";
        assert_eq!(objects.contains(mutating), has_mutating, "{version}");
    }
    let error = rendered("1.32.9").expect_rejected();
    assert!(
        error.contains("requires kubeVersion: >=1.33.0-0"),
        "{error}"
    );
}

fn switches(folder: &Path) {
    let helm = Helm::without_cluster(folder);
    let plain = helm.template(PLAIN).assert_silent().stdout;
    snapshot::check("chart-default", &plain);
    for (name, values) in CASES {
        let with = helm
            .template(&[PLAIN, values].concat())
            .assert_silent()
            .stdout;
        let diff = TextDiff::from_lines(&plain, &with);
        let diff = diff.unified_diff().context_radius(3).to_string();
        assert_ne!(diff, "", "{name} changes nothing");
        snapshot::check(&format!("chart-{name}"), &without_namespaces(&diff));
    }
    // The CRDs are left out above; the annotation keeps them.
    let all = helm.template("").assert_silent().stdout;
    let dropped = helm
        .template("crds: {keep: false}\n")
        .assert_silent()
        .stdout;
    let keep = "  annotations:\n    helm.sh/resource-policy: keep\n";
    assert_eq!(all.matches(keep).count(), 6);
    assert_eq!(all.replace(keep, ""), dropped);
    assert_eq!(
        dropped.matches("kind: CustomResourceDefinition\n").count(),
        6
    );
    assert!(!plain.contains("kind: CustomResourceDefinition"));
    every_value_has_a_case();
    other_namespace(&helm, &all);
}

/// In another namespace only the name and values derived from it change.
fn other_namespace(helm: &Helm, here: &str) {
    let flags = ["template", RELEASE, CHART, "--namespace", "elsewhere"];
    let there = helm.run(&flags).assert_silent().stdout;
    let without_sums = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.contains("checksum/"));
        lines.map(str::to_owned).collect()
    };
    let here = here.replace(NAMESPACE, "elsewhere");
    assert_eq!(without_sums(&there), without_sums(&here));
}

/// Removes the line numbers of hunks, which move with every other change.
fn without_namespaces(diff: &str) -> String {
    let lines = diff.lines().map(|line| {
        if line.starts_with("@@") {
            "@@\n".to_owned()
        } else {
            format!("{line}\n")
        }
    });
    lines.collect()
}

fn every_value_has_a_case() {
    let cases: Vec<serde_json::Value> = CASES
        .iter()
        .map(|(_, values)| serde_saphyr::from_str(values).unwrap())
        .collect();
    let has = |key: &str| {
        let pointer = format!("/{}", key.trim_matches('`').replace('.', "/"));
        cases
            .iter()
            .any(|values| values.pointer(&pointer).is_some())
    };
    let rows = values::rows().into_iter().map(|[key, ..]| key);
    let missing: BTreeSet<String> = rows.filter(|key| !has(key)).collect();
    // These two have their own tests.
    assert_eq!(
        missing.into_iter().collect::<Vec<_>>(),
        ["`crds.install`", "`crds.keep`", "`crds`"]
    );
}

fn rejected_values(folder: &Path) {
    let helm = Helm::without_cluster(folder);
    for (values, expected) in REJECTED_VALUES {
        let error = helm.template(values).expect_rejected();
        assert!(error.contains(expected), "{values}{error}");
    }
}

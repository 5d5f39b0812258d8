//! The checks: what each finds, the risk, the remedy and the source.

use serde::Serialize;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Requests fail, or are not reviewed, now or after one failure.
    Error,
    /// A good practice is not followed.
    Warning,
}

impl Severity {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One check.
#[derive(Debug, PartialEq, Eq)]
pub struct Check {
    /// The stable identifier.
    pub id: &'static str,
    /// What it finds.
    pub title: &'static str,
    /// The severity of its findings.
    pub severity: Severity,
    /// What can happen.
    pub risk: &'static str,
    /// The remedy.
    pub fix: &'static str,
    /// The source of the practice.
    pub source: &'static str,
}

macro_rules! checks {
    ($($name:ident = $id:literal $severity:ident $title:literal
        risk $risk:literal fix $fix:literal source $source:expr;)*) => {
        $(pub(crate) const $name: Check = Check {
            id: $id,
            title: $title,
            severity: Severity::$severity,
            risk: $risk,
            fix: $fix,
            source: $source,
        };)*

        /// All checks, sorted by identifier.
        pub const CHECKS: &[&Check] = &[$(&$name),*];
    };
}

const GOOD_PRACTICES: &str =
    "https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/";
const WEBHOOKS: &str =
    "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/";
const CRD_VERSIONS: &str = "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/";
const BUDGETS: &str = "https://kubernetes.io/docs/tasks/run-application/configure-pdb/";
const FLAVORS: &str = "https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/";
const QUEUES: &str = "https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/";

checks! {
    CONTROL_PLANE = "DR001" Error "A webhook with failurePolicy Fail reviews objects of the control plane"
        risk "While its server does not answer, pods of DNS, the network and the control plane cannot be created, and nodes cannot renew their Leases."
        fix "Exclude the namespace in namespaceSelector, with the key kubernetes.io/metadata.name and the operator NotIn, or limit the rules."
        source GOOD_PRACTICES;
    OWN_NAMESPACE = "DR002" Error "A webhook with failurePolicy Fail reviews the pods of its own server"
        risk "When all pods of the server are gone, no new one can be created: the webhook rejects them until the configuration is changed."
        fix "Exclude the namespace of the server in namespaceSelector, with the key kubernetes.io/metadata.name and the operator NotIn."
        source WEBHOOKS;
    TIMEOUT = "DR003" Warning "The timeout of a webhook for built-in kinds is longer than 10 seconds"
        risk "A server that does not answer delays every matching request for as long; controllers and kubectl give up before."
        fix "Set timeoutSeconds to 10 or less."
        source GOOD_PRACTICES;
    ACCESS_REVIEWS = "DR004" Error "A webhook with failurePolicy Fail reviews authentication or authorization requests"
        risk "While its server does not answer, API servers and controllers that delegate authorization reject their clients."
        fix "Exclude authentication.k8s.io and authorization.k8s.io from the rules."
        source GOOD_PRACTICES;
    CONDITION_ERROR = "DR005" Warning "A match condition fails for objects without labels or annotations"
        risk "An expression with an error rejects the request if failurePolicy is Fail, and skips the webhook if it is Ignore."
        fix "Test the key first, as in: has(object.metadata.labels) && 'key' in object.metadata.labels."
        source WEBHOOKS;
    UNMATCHED_VERSION = "DR006" Error "A served version of a kind does not reach its webhook"
        risk "A request in that version is not reviewed, because matchPolicy is Exact."
        fix "Set matchPolicy to Equivalent, or add the version to the rule."
        source GOOD_PRACTICES;
    NO_CA_BUNDLE = "DR010" Error "A webhook has no CA bundle"
        risk "The API server trusts only its system's certificate authorities, so that calls of a Service fail."
        fix "Wait until the controller that injects the CA bundle runs, and read its log; otherwise set caBundle."
        source WEBHOOKS;
    INVALID_CA_BUNDLE = "DR011" Error "No certificate of a CA bundle is valid"
        risk "The API server rejects the certificate of the server: calls fail."
        fix "Renew the certificate authority, and set caBundle to its certificate."
        source WEBHOOKS;
    CA_EXPIRES = "DR012" Warning "All certificates of a CA bundle expire within 14 days"
        risk "Afterwards the API server rejects the certificate of the server: calls fail."
        fix "Renew the certificate authority, and add its certificate to caBundle before the old one expires."
        source WEBHOOKS;
    UNTRUSTED_SERVER = "DR013" Error "The API server does not trust the certificate that a server presents"
        risk "Calls of the webhook fail: requests are rejected, or not reviewed if failurePolicy is Ignore."
        fix "Issue a certificate for SERVICE.NAMESPACE.svc from the authority in caBundle, or update caBundle; restart servers that still present an old certificate."
        source WEBHOOKS;
    SERVER_EXPIRES = "DR014" Warning "The certificate that a server presents expires within 7 days"
        risk "Afterwards calls of the webhook fail."
        fix "Renew the certificate, and read the log of the component that should have renewed it."
        source WEBHOOKS;
    NO_SERVICE = "DR020" Error "The Service of a webhook does not exist"
        risk "Every call fails: requests are rejected, or not reviewed if failurePolicy is Ignore."
        fix "Create the Service, or delete the configuration if its project was uninstalled."
        source WEBHOOKS;
    NO_ENDPOINT = "DR021" Error "The Service of a webhook has no ready endpoint"
        risk "Every call fails: requests are rejected, or not reviewed if failurePolicy is Ignore."
        fix "Find out why the pods of the server are not ready; compare the selector of the Service with their labels."
        source WEBHOOKS;
    ONE_REPLICA = "DR022" Warning "One replica serves a webhook with failurePolicy Fail"
        risk "While the replica restarts or its node is drained, matching requests are rejected."
        fix "Run at least two replicas, on different nodes."
        source GOOD_PRACTICES;
    NO_BUDGET = "DR023" Warning "No disruption budget protects the replicas of a webhook with failurePolicy Fail"
        risk "Nodes that are drained together can stop all replicas at once."
        fix "Create a PodDisruptionBudget with maxUnavailable: 1 that selects the pods."
        source BUDGETS;
    BLOCKING_BUDGET = "DR024" Warning "A disruption budget allows no eviction of a webhook's server"
        risk "Nodes with such a pod cannot be drained."
        fix "Set maxUnavailable to 1, or run more replicas than minAvailable."
        source BUDGETS;
    CRD_CONDITION = "DR030" Error "A CRD is not established"
        risk "Its objects cannot be read or written."
        fix "Correct the CRD as its condition says."
        source "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/";
    STORED_VERSION = "DR031" Warning "Objects may be stored in a version that is deprecated or not served"
        risk "The API server rejects a CRD without the version, so that the next release of the project cannot be installed."
        fix "Write all objects again in the storage version, then remove the old version from status.storedVersions."
        source CRD_VERSIONS;
    API_SERVICE = "DR032" Error "An aggregated API is not available"
        risk "Namespaces cannot be deleted, and clients that read all kinds report errors."
        fix "Repair the Service that the condition names, or delete the APIService if its project was uninstalled."
        source "https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/";
    FINALIZER = "DR033" Warning "A deleted object has waited for its finalizers for 10 minutes"
        risk "The object stays, with everything that depends on its deletion."
        fix "Repair the controller that owns the finalizer; remove the finalizer only if that controller was uninstalled."
        source "https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/";
    JOB_KIND_MISMATCH = "DR034" Error "A declaration of a kind of jobs does not fit the definition of the kind"
        risk "The jobs of the kind are not read, so that they do not start, or are not stopped when they are preempted."
        fix "Correct the JobKind as the evidence says; lockkeeper check --crds finds such mistakes before an update."
        source "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/";
    FLAVOR_WITHOUT_NODES = "DR040" Warning "No node has the labels of a flavor with quota"
        risk "Workloads are admitted with this flavor, and their pods never start, unless nodes are added on demand."
        fix "Correct spec.nodeLabels, or label the nodes."
        source FLAVORS;
    QUOTA_ABOVE_NODES = "DR041" Warning "The quota of a flavor exceeds what its nodes hold"
        risk "Workloads are admitted, and their pods wait for nodes while they hold quota, unless nodes are added on demand."
        fix "Lower nominalQuota to what the nodes can allocate, or add nodes."
        source QUEUES;
    POD_ABOVE_NODES = "DR042" Warning "A pod of a pending workload is larger than every node of its flavors"
        risk "The pod never starts, and its workload holds quota once it is admitted, unless larger nodes are added on demand."
        fix "Request less for each pod, or add larger nodes."
        source QUEUES;
    WORKLOAD_ABOVE_QUOTA = "DR043" Error "A pending workload requests more than its ClusterQueue can ever use"
        risk "It is never admitted, and blocks its queue if queueingStrategy is StrictFIFO."
        fix "Request less, or raise nominalQuota or borrowingLimit."
        source QUEUES;
}

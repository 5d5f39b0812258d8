//! Defaults that depend on no other field.

/// A default.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Constant {
    Text(&'static str),
    Number(i64),
    Flag(bool),
    /// An object without fields.
    Empty,
}

use Constant::{Empty, Flag, Number, Text};

/// The file mode 0644.
const READABLE: Constant = Number(420);

const SECONDS_PER_HOUR: Constant = Number(3600);

/// The defaults of fields that are not set, by type; sorted by type.
pub(super) const CONSTANTS: &[(&str, &[(&str, Constant)])] = &[
    (
        "admissionregistration/v1.MatchResources",
        &[
            ("matchPolicy", Text("Equivalent")),
            ("namespaceSelector", Empty),
            ("objectSelector", Empty),
        ],
    ),
    (
        "admissionregistration/v1.MutatingAdmissionPolicySpec",
        &[("failurePolicy", Text("Fail"))],
    ),
    (
        "admissionregistration/v1.MutatingWebhook",
        &[
            ("failurePolicy", Text("Fail")),
            ("matchPolicy", Text("Equivalent")),
            ("namespaceSelector", Empty),
            ("objectSelector", Empty),
            ("reinvocationPolicy", Text("Never")),
            ("timeoutSeconds", Number(10)),
        ],
    ),
    (
        "admissionregistration/v1.NamedRuleWithOperations",
        &[("scope", Text("*"))],
    ),
    (
        "admissionregistration/v1.RuleWithOperations",
        &[("scope", Text("*"))],
    ),
    (
        "admissionregistration/v1.ServiceReference",
        &[("port", Number(443))],
    ),
    (
        "admissionregistration/v1.ValidatingAdmissionPolicySpec",
        &[("failurePolicy", Text("Fail"))],
    ),
    (
        "admissionregistration/v1.ValidatingWebhook",
        &[
            ("failurePolicy", Text("Fail")),
            ("matchPolicy", Text("Equivalent")),
            ("namespaceSelector", Empty),
            ("objectSelector", Empty),
            ("timeoutSeconds", Number(10)),
        ],
    ),
    (
        "apps/v1.DaemonSetSpec",
        &[("revisionHistoryLimit", Number(10))],
    ),
    (
        "apps/v1.DeploymentSpec",
        &[
            ("progressDeadlineSeconds", Number(600)),
            ("replicas", Number(1)),
            ("revisionHistoryLimit", Number(10)),
        ],
    ),
    ("apps/v1.ReplicaSetSpec", &[("replicas", Number(1))]),
    (
        "apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
        &[
            ("whenDeleted", Text("Retain")),
            ("whenScaled", Text("Retain")),
        ],
    ),
    (
        "apps/v1.StatefulSetSpec",
        &[
            ("persistentVolumeClaimRetentionPolicy", Empty),
            ("podManagementPolicy", Text("OrderedReady")),
            ("replicas", Number(1)),
            ("revisionHistoryLimit", Number(10)),
        ],
    ),
    (
        "autoscaling/v2.HorizontalPodAutoscalerSpec",
        &[("minReplicas", Number(1))],
    ),
    (
        "batch/v1.CronJobSpec",
        &[
            ("concurrencyPolicy", Text("Allow")),
            ("failedJobsHistoryLimit", Number(1)),
            ("successfulJobsHistoryLimit", Number(3)),
            ("suspend", Flag(false)),
        ],
    ),
    (
        "batch/v1.PodFailurePolicyOnPodConditionsPattern",
        &[("status", Text("True"))],
    ),
    (
        "core/v1.AzureDiskVolumeSource",
        &[
            ("cachingMode", Text("ReadWrite")),
            ("fsType", Text("ext4")),
            ("kind", Text("Shared")),
            ("readOnly", Flag(false)),
        ],
    ),
    (
        "core/v1.ConfigMapVolumeSource",
        &[("defaultMode", READABLE)],
    ),
    (
        "core/v1.Container",
        &[
            ("terminationMessagePath", Text("/dev/termination-log")),
            ("terminationMessagePolicy", Text("File")),
        ],
    ),
    ("core/v1.ContainerPort", &[("protocol", Text("TCP"))]),
    (
        "core/v1.DownwardAPIVolumeSource",
        &[("defaultMode", READABLE)],
    ),
    ("core/v1.EndpointPort", &[("protocol", Text("TCP"))]),
    (
        "core/v1.EphemeralContainer",
        &[
            ("terminationMessagePath", Text("/dev/termination-log")),
            ("terminationMessagePolicy", Text("File")),
        ],
    ),
    ("core/v1.FileKeySelector", &[("optional", Flag(false))]),
    ("core/v1.GRPCAction", &[("service", Text(""))]),
    (
        "core/v1.HTTPGetAction",
        &[("path", Text("/")), ("scheme", Text("HTTP"))],
    ),
    ("core/v1.HostPathVolumeSource", &[("type", Text(""))]),
    (
        "core/v1.ISCSIPersistentVolumeSource",
        &[("iscsiInterface", Text("default"))],
    ),
    (
        "core/v1.ISCSIVolumeSource",
        &[("iscsiInterface", Text("default"))],
    ),
    ("core/v1.NamespaceStatus", &[("phase", Text("Active"))]),
    ("core/v1.ObjectFieldSelector", &[("apiVersion", Text("v1"))]),
    (
        "core/v1.PersistentVolumeClaim",
        &[
            ("apiVersion", Text("v1")),
            ("kind", Text("PersistentVolumeClaim")),
        ],
    ),
    (
        "core/v1.PersistentVolumeClaimSpec",
        &[("volumeMode", Text("Filesystem"))],
    ),
    (
        "core/v1.PersistentVolumeClaimStatus",
        &[("phase", Text("Pending"))],
    ),
    (
        "core/v1.PersistentVolumeSpec",
        &[
            ("persistentVolumeReclaimPolicy", Text("Retain")),
            ("volumeMode", Text("Filesystem")),
        ],
    ),
    (
        "core/v1.PersistentVolumeStatus",
        &[("phase", Text("Pending"))],
    ),
    (
        "core/v1.PodSpec",
        &[
            ("dnsPolicy", Text("ClusterFirst")),
            ("restartPolicy", Text("Always")),
            ("schedulerName", Text("default-scheduler")),
            ("securityContext", Empty),
            ("terminationGracePeriodSeconds", Number(30)),
        ],
    ),
    (
        "core/v1.Probe",
        &[
            ("failureThreshold", Number(3)),
            ("periodSeconds", Number(10)),
            ("successThreshold", Number(1)),
            ("timeoutSeconds", Number(1)),
        ],
    ),
    (
        "core/v1.ProjectedVolumeSource",
        &[("defaultMode", READABLE)],
    ),
    (
        "core/v1.RBDPersistentVolumeSource",
        &[
            ("keyring", Text("/etc/ceph/keyring")),
            ("pool", Text("rbd")),
            ("user", Text("admin")),
        ],
    ),
    (
        "core/v1.RBDVolumeSource",
        &[
            ("keyring", Text("/etc/ceph/keyring")),
            ("pool", Text("rbd")),
            ("user", Text("admin")),
        ],
    ),
    (
        "core/v1.ReplicationControllerSpec",
        &[("replicas", Number(1))],
    ),
    (
        "core/v1.ScaleIOPersistentVolumeSource",
        &[
            ("fsType", Text("xfs")),
            ("storageMode", Text("ThinProvisioned")),
        ],
    ),
    (
        "core/v1.ScaleIOVolumeSource",
        &[
            ("fsType", Text("xfs")),
            ("storageMode", Text("ThinProvisioned")),
        ],
    ),
    ("core/v1.Secret", &[("type", Text("Opaque"))]),
    ("core/v1.SecretVolumeSource", &[("defaultMode", READABLE)]),
    (
        "core/v1.ServiceAccountTokenProjection",
        &[("expirationSeconds", SECONDS_PER_HOUR)],
    ),
    ("core/v1.ServicePort", &[("protocol", Text("TCP"))]),
    (
        "core/v1.ServiceSpec",
        &[
            ("sessionAffinity", Text("None")),
            ("type", Text("ClusterIP")),
        ],
    ),
    (
        "networking/v1.NetworkPolicyPort",
        &[("protocol", Text("TCP"))],
    ),
    (
        "rbac/v1.RoleRef",
        &[("apiGroup", Text("rbac.authorization.k8s.io"))],
    ),
    (
        "scheduling/v1.PriorityClass",
        &[("preemptionPolicy", Text("PreemptLowerPriority"))],
    ),
];

#[cfg(test)]
mod tests {
    use super::CONSTANTS;
    use crate::builtin::table::Table;

    #[test]
    fn constants_are_sorted_and_name_fields_of_the_table() {
        assert!(CONSTANTS.is_sorted_by_key(|it| it.0));
        let table = Table::get();
        for (type_name, constants) in CONSTANTS {
            let id = table.find_type(type_name);
            let id = id.unwrap_or_else(|| panic!("{type_name} is not in the table"));
            for (field, _) in *constants {
                assert!(table.field(id, field).is_some(), "{type_name} {field}");
            }
        }
    }
}

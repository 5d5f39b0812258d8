//! The pod spec under validation, and what a stored one permits.

use crate::builtin::validation::causes::Below;
use crate::builtin::validation::fields::{
    entries, flag, integer, is_set, list, optional_flag, set, text, texts, value,
};
use crate::builtin::validation::labels::is_valid_selector;
use crate::builtin::validation::quantities;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The lists of containers.
pub(super) const CONTAINER_LISTS: [&str; 3] =
    ["initContainers", "containers", "ephemeralContainers"];

/// Policies of pulling images.
pub(super) const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];

/// The pod spec under validation.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct PodContext<'a> {
    /// The spec.
    pub(in super::super) spec: &'a Value,
    /// The object with the metadata of the pod or the template.
    pub(in super::super) owner: &'a Value,
    /// The stored spec, on an update.
    pub(in super::super) old: Option<&'a Value>,
    /// Whether the spec is that of a pod, not of a template.
    pub(in super::super) is_pod: bool,
}

/// All containers of a spec with their paths.
pub(super) fn containers<'a>(
    spec: &'a Value,
    path: &FieldPath,
) -> impl Iterator<Item = (FieldPath, &'a Value)> {
    let path = path.clone();
    CONTAINER_LISTS.into_iter().flat_map(move |key| {
        let path = path.child(key);
        let items = list(spec, key).iter().enumerate();
        items.map(move |(position, it)| (path.at(position), it))
    })
}

impl<'a> PodContext<'a> {
    /// The name of the pod; empty for templates.
    pub(super) fn pod_name(&self) -> &'a str {
        if self.is_pod {
            text(value(self.owner, "metadata"), "name")
        } else {
            ""
        }
    }

    /// The name of the operating system, if it is set.
    pub(super) fn os(&self) -> Option<&'a str> {
        set(self.spec, "os").map(|it| text(it, "name"))
    }

    /// The grace period in seconds.
    pub(super) fn grace_period(&self) -> i64 {
        match integer(self.spec, "terminationGracePeriodSeconds") {
            Some(seconds) if self.is_pod && seconds < 0 => 1,
            seconds => seconds.unwrap_or(30),
        }
    }

    /// Whether the pod uses the user namespace of the host.
    pub(super) fn uses_host_users(&self) -> bool {
        optional_flag(self.spec, "hostUsers") != Some(false)
    }

    fn old_containers(&self) -> impl Iterator<Item = &'a Value> {
        let old = self.old.into_iter();
        old.flat_map(|old| {
            let all = CONTAINER_LISTS.into_iter();
            all.flat_map(move |key| list(old, key))
        })
    }

    /// Whether selectors of affinity may have values that are not valid.
    pub(super) fn accepts_invalid_affinity(&self) -> bool {
        let affinity = self.old.map_or(&Value::Null, |it| value(it, "affinity"));
        ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
            let kind = value(affinity, kind);
            let required = list(kind, "requiredDuringSchedulingIgnoredDuringExecution").iter();
            let preferred = list(kind, "preferredDuringSchedulingIgnoredDuringExecution").iter();
            let preferred = preferred.map(|it| value(it, "podAffinityTerm"));
            required.chain(preferred).any(|term| {
                ["labelSelector", "namespaceSelector"]
                    .iter()
                    .any(|it| !is_valid_selector(value(term, it)))
            })
        })
    }

    /// Whether required node affinity may have values that are not valid.
    pub(super) fn accepts_invalid_node_affinity(&self) -> bool {
        let Some(old) = self.old else {
            return false;
        };
        let affinity = value(value(old, "affinity"), "nodeAffinity");
        let required = value(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
        let terms = list(required, "nodeSelectorTerms").iter();
        let mut values = terms
            .flat_map(|it| list(it, "matchExpressions"))
            .flat_map(|it| texts(it, "values"));
        values.any(|it| !crate::crd::names::label_value(it).is_empty())
    }

    /// Whether selectors of spread constraints are not validated.
    pub(super) fn accepts_invalid_spread_selector(&self) -> bool {
        let old = self
            .old
            .map_or(&[][..], |it| list(it, "topologySpreadConstraints"));
        old.iter()
            .any(|it| !is_valid_selector(value(it, "labelSelector")))
    }

    /// Whether amounts of huge pages need not be multiples of their size.
    pub(super) fn accepts_indivisible_huge_pages(&self) -> bool {
        let is_indivisible = |(name, amount): (&str, &Value)| {
            name.starts_with("hugepages-")
                && !quantities::is_divisible(name, quantities::nano(amount))
        };
        let overhead = self.old.map_or(&Value::Null, |it| value(it, "overhead"));
        let object = serde_json::json!({ "overhead": overhead });
        entries(&object, "overhead").any(is_indivisible)
            || self.old_containers().any(|container| {
                let resources = value(container, "resources");
                ["limits", "requests"]
                    .iter()
                    .any(|it| entries(resources, it).any(is_indivisible))
            })
    }

    /// Whether the stored spec has sysctls of namespaces that the pod shares with the host.
    pub(super) fn accepts_host_sysctls(&self) -> bool {
        self.old.is_some_and(|old| {
            let sysctls = list(value(old, "securityContext"), "sysctls").iter();
            let mut names = sysctls.map(|it| text(it, "name"));
            names.any(|it| is_host_sysctl(it, old))
        })
    }

    /// Whether paths of tokens need not be local.
    pub(super) fn accepts_any_token_path(&self) -> bool {
        let volumes = self.old.map_or(&[][..], |it| list(it, "volumes"));
        let sources = volumes
            .iter()
            .flat_map(|it| list(value(it, "projected"), "sources"));
        let mut tokens = sources.filter_map(|it| set(it, "serviceAccountToken"));
        tokens.any(|it| !super::paths::non_reserved(text(it, "path")).is_empty())
    }

    /// Whether the stored spec compares taints with operators that are not enabled.
    pub(super) fn accepts_comparison_operators(&self) -> bool {
        let tolerations = self.old.map_or(&[][..], |it| list(it, "tolerations"));
        let mut operators = tolerations.iter().map(|it| text(it, "operator"));
        operators.any(|it| matches!(it, "Lt" | "Gt"))
    }

    /// Whether the stored spec has image volumes without a reference.
    pub(super) fn accepts_empty_image(&self) -> bool {
        let volumes = self.old.map_or(&[][..], |it| list(it, "volumes"));
        let mut images = volumes.iter().filter_map(|it| set(it, "image"));
        images.any(|it| text(it, "reference").is_empty())
    }

    /// Whether containers without a user namespace of the host may have volume devices.
    pub(super) fn accepts_devices_with_user_namespace(&self) -> bool {
        let uses_namespace = self
            .old
            .is_some_and(|it| optional_flag(it, "hostUsers") == Some(false));
        uses_namespace
            && self
                .old_containers()
                .any(|it| !list(it, "volumeDevices").is_empty())
    }

    /// Whether a stored container has `CAP_SYS_ADMIN` and no privilege escalation.
    pub(super) fn accepts_sys_admin(&self) -> bool {
        let mut contexts = self
            .old_containers()
            .filter_map(|it| set(it, "securityContext"));
        contexts.any(|it| {
            !flag(it, "allowPrivilegeEscalation")
                && texts(value(it, "capabilities"), "add").contains(&"CAP_SYS_ADMIN")
        })
    }

    /// Whether the stored spec restarts containers that are not sidecars on a resize.
    pub(super) fn accepts_resize_restart(&self) -> bool {
        let old = self.old.map_or(&[][..], |it| list(it, "initContainers"));
        old.iter().any(|container| {
            text(container, "restartPolicy") != "Always"
                && list(container, "resizePolicy")
                    .iter()
                    .any(|it| text(it, "restartPolicy") == "RestartContainer")
        })
    }

    /// Whether the spec is that of an update.
    pub(super) fn has_old(&self) -> bool {
        self.old.is_some()
    }

    /// Whether a field that is behind a disabled feature keeps its value, since the stored spec has it.
    pub(super) fn keeps(&self, is_used: impl Fn(&Value) -> bool) -> bool {
        self.old_containers().any(is_used)
    }

    /// Whether the service account is set.
    pub(super) fn has_service_account(&self) -> bool {
        is_set(self.spec, "serviceAccountName") && !text(self.spec, "serviceAccountName").is_empty()
            || !text(self.spec, "serviceAccount").is_empty()
    }
}

/// Whether a sysctl is in a namespace that a pod shares with the host.
pub(super) fn is_host_sysctl(name: &str, spec: &Value) -> bool {
    let name = name.replace('/', ".");
    let is_network = name.starts_with("net.");
    let is_ipc = name.starts_with("fs.mqueue.")
        || name.starts_with("kernel.shm")
        || name.starts_with("kernel.msg")
        || name == "kernel.sem";
    is_network && flag(spec, "hostNetwork") || is_ipc && flag(spec, "hostIPC")
}

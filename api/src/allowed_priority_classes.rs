//! The PriorityClasses that the queues of a workload allow.

use crate::foreign::scheduling::SYSTEM_PREFIX;

/// Whether a workload in these queues may use a PriorityClass. The lists are `spec.allowedPriorityClasses` of the
/// ClusterQueue and of the LocalQueue; `None` if unset.
///
/// Without a list all classes are allowed except Kubernetes' own, which begin with `system-`: only the ClusterQueue can
/// allow those, because a tenant may own the LocalQueue.
#[must_use]
pub fn is_priority_class_allowed(
    class: &str,
    cluster_queue: Option<&[String]>,
    local_queue: Option<&[String]>,
) -> bool {
    let names = |list: &[String]| list.iter().any(|it| it == class);
    cluster_queue.map_or(!class.starts_with(SYSTEM_PREFIX), names) && local_queue.is_none_or(names)
}

#[cfg(test)]
mod tests {
    use super::is_priority_class_allowed;

    #[test]
    fn unset_lists_allow_all_but_system_classes() {
        assert!(is_priority_class_allowed("high", None, None));
        for class in ["system-node-critical", "system-"] {
            assert!(!is_priority_class_allowed(class, None, None), "{class}");
        }
    }

    #[test]
    fn local_queue_cannot_allow_system_class() {
        let system = ["system-node-critical".to_owned()];
        let class = "system-node-critical";
        assert!(!is_priority_class_allowed(class, None, Some(&system)));
        assert!(is_priority_class_allowed(class, Some(&system), None));
        assert!(is_priority_class_allowed(
            class,
            Some(&system),
            Some(&system)
        ));
    }

    #[test]
    fn both_lists_must_name_the_class() {
        let (low, both) = (["low".to_owned()], ["low".to_owned(), "high".to_owned()]);
        assert!(is_priority_class_allowed("low", Some(&both), Some(&low)));
        assert!(!is_priority_class_allowed("high", Some(&both), Some(&low)));
        assert!(!is_priority_class_allowed("high", Some(&low), Some(&both)));
        assert!(!is_priority_class_allowed("low", Some(&[]), None));
    }
}

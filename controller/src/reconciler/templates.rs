//! Pod templates that many workloads share.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockkeeper_api::Workload;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Weak};

/// How many are kept before it is looked whether they are still used.
const SWEEP_AT: usize = 1_024;

/// One of each that is in use: a template takes kilobytes, and workloads come by the thousand.
#[derive(Debug)]
pub(super) struct Templates {
    by_digest: BTreeMap<u64, Weak<PodTemplateSpec>>,
    sweep_at: usize,
}

impl Default for Templates {
    fn default() -> Self {
        Self {
            by_digest: BTreeMap::new(),
            sweep_at: SWEEP_AT,
        }
    }
}

impl Templates {
    /// Has a workload share the templates that are known.
    pub(super) fn share(&mut self, workload: &mut Workload) {
        for pod_set in &mut workload.spec.pod_sets {
            self.share_one(&mut pod_set.template);
        }
    }

    fn share_one(&mut self, template: &mut Arc<PodTemplateSpec>) {
        // What cannot be written as JSON is kept as it is.
        let Ok(text) = serde_json::to_vec(&**template) else {
            return;
        };
        let mut digest = DefaultHasher::new();
        digest.write(&text);
        let digest = digest.finish();
        let known = self.by_digest.get(&digest).and_then(Weak::upgrade);
        match known {
            Some(known) if known == *template => *template = known,
            // Two of one digest: the one that came first stays.
            Some(_) => {}
            None => {
                self.by_digest.insert(digest, Arc::downgrade(template));
                self.sweep();
            }
        }
    }

    fn sweep(&mut self) {
        if self.by_digest.len() < self.sweep_at {
            return;
        }
        self.by_digest.retain(|_, it| it.strong_count() > 0);
        self.sweep_at = self.by_digest.len().saturating_mul(2).max(SWEEP_AT);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::{SWEEP_AT, Templates};
    use lockkeeper_api::Workload;
    use serde_json::json;
    use std::sync::Arc;

    fn workload(cpu: usize) -> Workload {
        let requests = json!({"requests": {"cpu": cpu.to_string()}});
        let pod = json!({"spec": {"containers": [{"name": "main", "resources": requests}]}});
        serde_json::from_value(json!({
            "metadata": {"name": "w"},
            "spec": {"podSets": [{"template": pod}]},
        }))
        .unwrap()
    }

    #[test]
    fn equal_templates_are_one() {
        let mut templates = Templates::default();
        let [mut first, mut same, mut other] = [1, 1, 2].map(workload);
        for it in [&mut first, &mut same, &mut other] {
            templates.share(it);
        }
        let [first, same, other] = [&first, &same, &other].map(|it| &it.spec.pod_sets[0].template);
        assert!(Arc::ptr_eq(first, same));
        assert!(!Arc::ptr_eq(first, other));
        assert_ne!(first, other);
    }

    #[test]
    fn those_that_nobody_uses_are_forgotten() {
        let mut templates = Templates::default();
        let mut kept = workload(0);
        templates.share(&mut kept);
        for cpu in 1..SWEEP_AT * 3 {
            templates.share(&mut workload(cpu));
        }
        assert!(templates.by_digest.len() <= SWEEP_AT);
        let mut again = workload(0);
        templates.share(&mut again);
        let [kept, again] = [&kept, &again].map(|it| &it.spec.pod_sets[0].template);
        assert!(Arc::ptr_eq(kept, again));
    }
}

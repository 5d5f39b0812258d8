//! Shares equal pod templates between workloads.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockkeeper_api::Workload;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Weak};

/// The number of templates after which unused ones are removed.
const SWEEP_AT: usize = 1_024;

/// One copy of each template in use: a template takes kilobytes, and there may be thousands of workloads.
#[derive(Debug)]
pub(crate) struct TemplateInterner {
    by_digest: BTreeMap<u64, Weak<PodTemplateSpec>>,
    sweep_at: usize,
}

impl Default for TemplateInterner {
    fn default() -> Self {
        Self {
            by_digest: BTreeMap::new(),
            sweep_at: SWEEP_AT,
        }
    }
}

impl TemplateInterner {
    /// Replaces the templates of a workload by equal ones that are stored already.
    pub(crate) fn intern(&mut self, workload: &mut Workload) {
        for pod_set in &mut workload.spec.pod_sets {
            self.intern_template(&mut pod_set.template);
        }
    }

    /// Replaces a template by an equal one that is stored already.
    pub(super) fn intern_template(&mut self, template: &mut Arc<PodTemplateSpec>) {
        // A template that cannot be serialized is not shared.
        let Ok(text) = serde_json::to_vec(&**template) else {
            return;
        };
        let mut digest = DefaultHasher::new();
        digest.write(&text);
        let digest = digest.finish();
        let known = self.by_digest.get(&digest).and_then(Weak::upgrade);
        match known {
            Some(known) if known == *template => *template = known,
            // Two templates with one digest: the first stays interned, the second is not shared.
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
        // Next at twice the number in use: each insertion then costs constant time on average.
        self.by_digest.retain(|_, it| it.strong_count() > 0);
        self.sweep_at = self.by_digest.len().saturating_mul(2).max(SWEEP_AT);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::{SWEEP_AT, TemplateInterner};
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
    fn template_interner_equal_templates_share_one_allocation() {
        let mut templates = TemplateInterner::default();
        let [mut first, mut same, mut other] = [1, 1, 2].map(workload);
        for template in [&mut first, &mut same, &mut other] {
            templates.intern(template);
        }
        let [first, same, other] = [&first, &same, &other].map(|it| &it.spec.pod_sets[0].template);
        assert!(Arc::ptr_eq(first, same));
        assert!(!Arc::ptr_eq(first, other));
        assert_ne!(first, other);
    }

    #[test]
    fn template_interner_unused_templates_are_swept() {
        let mut templates = TemplateInterner::default();
        let mut kept = workload(0);
        templates.intern(&mut kept);
        for cpu in 1..SWEEP_AT * 3 {
            templates.intern(&mut workload(cpu));
        }
        assert!(templates.by_digest.len() <= SWEEP_AT);
        let mut again = workload(0);
        templates.intern(&mut again);
        let [kept, again] = [&kept, &again].map(|it| &it.spec.pod_sets[0].template);
        assert!(Arc::ptr_eq(kept, again));
    }
}

//! The world as one request sees it: the stores, and what was fetched live for it.

use lockkeeper_policies::index::Index;
use lockkeeper_policies::world::{
    Lookup, NamedQuota, PodSays, PreemptibleLabel, PriorityClassFacts, QuotaFacts, Users, World,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// PriorityClasses that were asked for at the API server for one request.
pub(crate) type Fetched = BTreeMap<String, Lookup<PriorityClassFacts>>;

/// The stores first, then what was fetched. It remembers what neither had, so that the caller can
/// fetch it and ask again: rules themselves never wait.
pub(crate) struct RequestWorld<'a> {
    index: &'a Index,
    fetched: &'a Fetched,
    missed: RefCell<BTreeSet<String>>,
    default_is_unknown: Cell<bool>,
}

impl<'a> RequestWorld<'a> {
    pub(crate) fn new(index: &'a Index, fetched: &'a Fetched) -> Self {
        Self {
            index,
            fetched,
            missed: RefCell::default(),
            default_is_unknown: Cell::default(),
        }
    }

    /// Whether somebody asked for the global default before the classes were listed.
    pub(crate) fn default_is_unknown(&self) -> bool {
        self.default_is_unknown.get()
    }

    /// The PriorityClasses that were asked for and are nowhere.
    pub(crate) fn into_missed(self) -> BTreeSet<String> {
        self.missed.into_inner()
    }
}

impl World for RequestWorld<'_> {
    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts> {
        let stored = self.index.priority_class(name);
        if let Lookup::Found(_) = stored {
            return stored;
        }
        if let Some(fetched) = self.fetched.get(name) {
            return fetched.clone();
        }
        self.missed.borrow_mut().insert(name.to_owned());
        stored
    }

    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)> {
        let default = self.index.global_default();
        if default == Lookup::Unknown {
            self.default_is_unknown.set(true);
        }
        default
    }

    fn priority_class_names(&self, limit: usize) -> Vec<String> {
        self.index.priority_class_names(limit)
    }

    fn priority_class_users(&self, name: &str, limit: usize) -> Users {
        self.index.priority_class_users(name, limit)
    }

    fn job_pod(
        &self,
        namespace: &str,
        job: &str,
        label: PreemptibleLabel,
        except: &str,
    ) -> Option<String> {
        self.index.job_pod(namespace, job, label, except)
    }

    fn job_pod_that(
        &self,
        namespace: &str,
        job: &str,
        except: &str,
        differs: &dyn Fn(&PodSays) -> bool,
    ) -> Option<(&str, &PodSays)> {
        self.index.job_pod_that(namespace, job, except, differs)
    }

    fn quota(&self, name: &str) -> Lookup<&QuotaFacts> {
        self.index.quota(name)
    }

    fn quota_elsewhere(&self, name: &str, namespace: &str) -> Option<&str> {
        self.index.quota_elsewhere(name, namespace)
    }

    fn quota_children(&self, name: &str) -> Vec<NamedQuota<'_>> {
        self.index.quota_children(name)
    }

    fn quota_bound_to(&self, namespace: &str, except: &str) -> Option<&str> {
        self.index.quota_bound_to(namespace, except)
    }

    fn quota_of_namespace(&self, namespace: &str) -> Option<&str> {
        self.index.quota_of_namespace(namespace)
    }

    fn quota_pods(&self, name: &str, limit: usize) -> Users {
        self.index.quota_pods(name, limit)
    }

    fn pod_in(&self, namespace: &str) -> Option<&str> {
        self.index.pod_in(namespace)
    }
}

//! The cluster view of one request: the stores, and the objects that were looked up for it.

use lockkeeper_policies::cluster_view::{ClusterView, Lookup, PriorityClassFacts};
use lockkeeper_policies::cohort_trees::{LocalQueueFacts, Project};
use lockkeeper_policies::index::{Index, IndexedKind};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A kind of objects that are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LookupKind {
    /// A kind that the stores have, too.
    Indexed(IndexedKind),
    /// `CustomResourceDefinition`, of which no store has the objects.
    Definition,
}

impl LookupKind {
    /// The `kind` field of an object.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Indexed(kind) => kind.name(),
            Self::Definition => "CustomResourceDefinition",
        }
    }
}

/// An object to look up: a kind and a name, for a namespaced kind `namespace/name`.
pub(crate) type LookupKey = (LookupKind, String);

/// The kind of lockkeeper's LocalQueues.
pub(crate) const LOCAL_QUEUE: IndexedKind = IndexedKind::LocalQueue(Project::Lockkeeper);

/// The facts that rules use of a looked-up object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LookedUp {
    /// The facts of a PriorityClass.
    PriorityClass(PriorityClassFacts),
    /// The facts of a LocalQueue.
    LocalQueue(LocalQueueFacts),
    /// A definition.
    Definition(Arc<Value>),
    /// An object of another kind exists.
    Exists,
}

/// The results of the lookups for one request.
pub(crate) type LookupResults = BTreeMap<LookupKey, Lookup<LookedUp>>;

/// Reads the stores first, then the lookup results. Records the objects that neither has, so that the caller
/// can look them up and evaluate the rules again: rules themselves never wait.
pub(crate) struct RequestView<'a> {
    index: &'a Index,
    lookup_results: &'a LookupResults,
    missed_lookups: RefCell<BTreeSet<LookupKey>>,
    default_is_unknown: Cell<bool>,
}

impl<'a> RequestView<'a> {
    pub(crate) fn new(index: &'a Index, lookup_results: &'a LookupResults) -> Self {
        Self {
            index,
            lookup_results,
            missed_lookups: RefCell::default(),
            default_is_unknown: Cell::default(),
        }
    }

    /// Returns true if a rule needed the global default before the PriorityClasses were listed.
    pub(crate) fn default_is_unknown(&self) -> bool {
        self.default_is_unknown.get()
    }

    /// Returns the objects that neither the stores nor the lookups had.
    pub(crate) fn into_missed_lookups(self) -> BTreeSet<LookupKey> {
        self.missed_lookups.into_inner()
    }

    /// Returns the result of a lookup. Without one, the object is recorded as missed.
    fn live_result(&self, kind: IndexedKind, name: &str) -> Option<&Lookup<LookedUp>> {
        self.result(LookupKind::Indexed(kind), name)
    }

    fn result(&self, kind: LookupKind, name: &str) -> Option<&Lookup<LookedUp>> {
        let key = (kind, name.to_owned());
        let result = self.lookup_results.get(&key);
        if result.is_none() {
            self.missed_lookups.borrow_mut().insert(key);
        }
        result
    }
}

impl ClusterView for RequestView<'_> {
    fn fallback(&self) -> Option<&dyn ClusterView> {
        Some(self.index)
    }

    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts> {
        let stored = self.index.priority_class(name);
        // An absent class may be one that the watch has not delivered yet.
        if let Lookup::Found(_) = stored {
            return stored;
        }
        match self.live_result(IndexedKind::PriorityClass, name) {
            None => stored,
            Some(Lookup::Found(LookedUp::PriorityClass(facts))) => Lookup::Found(*facts),
            Some(Lookup::Absent) => Lookup::Absent,
            Some(Lookup::Found(_) | Lookup::Unknown) => Lookup::Unknown,
        }
    }

    fn local_queue(&self, namespace: &str, name: &str) -> Lookup<&LocalQueueFacts> {
        let stored = self.index.local_queue(namespace, name);
        if let Lookup::Found(_) = stored {
            return stored;
        }
        match self.live_result(LOCAL_QUEUE, &format!("{namespace}/{name}")) {
            None => stored,
            Some(Lookup::Found(LookedUp::LocalQueue(facts))) => Lookup::Found(facts),
            Some(Lookup::Absent) => Lookup::Absent,
            Some(Lookup::Found(_) | Lookup::Unknown) => Lookup::Unknown,
        }
    }

    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)> {
        let default = self.index.global_default();
        // Not looked up: only a list of all classes determines the global default.
        if default == Lookup::Unknown {
            self.default_is_unknown.set(true);
        }
        default
    }

    fn definition(&self, name: &str, _: &str) -> Lookup<&Value> {
        match self.result(LookupKind::Definition, name) {
            Some(Lookup::Found(LookedUp::Definition(definition))) => Lookup::Found(definition),
            Some(Lookup::Absent) => Lookup::Absent,
            None | Some(Lookup::Found(_) | Lookup::Unknown) => Lookup::Unknown,
        }
    }

    fn exists(&self, kind: IndexedKind, name: &str) -> Lookup<()> {
        let stored = self.index.exists(kind, name);
        // `kubectl apply` of a flavor and a queue, in one file, sends the queue before the watch
        // has delivered the flavor.
        let has_lookup = matches!(
            kind,
            IndexedKind::ResourceFlavor(_) | IndexedKind::ClusterQueue(_)
        );
        if !has_lookup || stored == Lookup::Found(()) {
            return stored;
        }
        match self.live_result(kind, name) {
            None => stored,
            Some(Lookup::Found(_)) => Lookup::Found(()),
            Some(Lookup::Absent) => Lookup::Absent,
            Some(Lookup::Unknown) => Lookup::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use lockkeeper_policies::cluster_view::ObjectName;
    use lockkeeper_policies::cohort_trees::FlavorFacts;
    use lockkeeper_policies::facts;
    use lockkeeper_policies::index::Facts;
    use serde_json::json;

    const FLAVOR: IndexedKind = IndexedKind::ResourceFlavor(Project::Lockkeeper);

    /// Reads an object in a cluster with the flavor `stored` and this lookup result. Returns what the rule
    /// gets, and the number of missed lookups.
    fn lookup(
        kind: IndexedKind,
        name: &str,
        result: Option<Lookup<LookedUp>>,
    ) -> (Lookup<()>, usize) {
        let mut index = Index::default();
        let stored = ObjectName {
            namespace: String::new(),
            name: "stored".to_owned(),
        };
        let facts = Facts::ResourceFlavor(Project::Lockkeeper, FlavorFacts::default());
        index.apply(stored, facts);
        let results = result.map(|result| ((LookupKind::Indexed(kind), name.to_owned()), result));
        let results = results.into_iter().collect();
        let view = RequestView::new(&index, &results);
        let exists = view.exists(kind, name);
        (exists, view.into_missed_lookups().len())
    }

    #[test]
    fn object_missing_in_stores_is_a_missed_lookup() {
        assert_eq!(lookup(FLAVOR, "stored", None), (Lookup::Found(()), 0));
        assert_eq!(lookup(FLAVOR, "fresh", None), (Lookup::Absent, 1));
        for (result, expected) in [
            (Lookup::Found(LookedUp::Exists), Lookup::Found(())),
            (Lookup::Absent, Lookup::Absent),
            (Lookup::Unknown, Lookup::Unknown),
        ] {
            assert_eq!(lookup(FLAVOR, "fresh", Some(result)), (expected, 0));
        }
    }

    /// An index of these objects.
    fn index(objects: &[Value]) -> Index {
        let mut index = Index::default();
        for object in objects {
            facts::ingest(&mut index, object).unwrap();
        }
        index
    }

    #[test]
    fn foreign_object_in_index_is_found() {
        let index = index(&[
            json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
                "metadata": {"name": "a", "namespace": "team"}, "spec": {"max": {"cpu": "4"}}}),
            json!({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "Workload",
                "metadata": {"name": "w", "namespace": "team"}, "spec": {"podGroupTemplates": [{"name": "t"}]}}),
        ]);
        let results = LookupResults::new();
        let view = RequestView::new(&index, &results);
        assert!(view.quota("a").found().unwrap().max.contains_key("cpu"));
        assert_eq!(view.quota("b"), Lookup::Absent);
        let children = view.quota_children("koordinator-root-quota");
        assert_eq!(children.first().map(|(name, _)| *name), Some("a"));
        let templates = view.templates("team", "w").found().unwrap();
        assert!(templates.templates.contains("t"));
        assert_eq!(view.templates("team", "v"), Lookup::Absent);
        assert!(view.into_missed_lookups().is_empty());
    }

    #[test]
    fn definition_is_always_looked_up() {
        let index = Index::default();
        let key = || (LookupKind::Definition, "a.example.com".to_owned());
        let results = LookupResults::new();
        let view = RequestView::new(&index, &results);
        assert_eq!(view.definition("a.example.com", "A"), Lookup::Unknown);
        assert_eq!(view.into_missed_lookups(), [key()].into());
        let definition = json!({"spec": {}});
        let found = LookedUp::Definition(Arc::new(definition.clone()));
        for (result, expected) in [
            (Lookup::Found(found), Lookup::Found(&definition)),
            (Lookup::Absent, Lookup::Absent),
            (Lookup::Unknown, Lookup::Unknown),
        ] {
            let results = [(key(), result)].into();
            let view = RequestView::new(&index, &results);
            assert_eq!(view.definition("a.example.com", "A"), expected);
            assert!(view.into_missed_lookups().is_empty());
        }
    }

    #[test]
    fn flavors_and_queues_of_both_families_are_looked_up() {
        let mut index = Index::default();
        index.mark_complete(IndexedKind::Cohort(Project::Kueue));
        let name = || "x".to_owned();
        for project in [Project::Lockkeeper, Project::Kueue] {
            for kind in [
                IndexedKind::ResourceFlavor(project),
                IndexedKind::ClusterQueue(project),
            ] {
                index.mark_complete(kind);
                let key = LookupKind::Indexed(kind);
                let results = LookupResults::new();
                let view = RequestView::new(&index, &results);
                assert_eq!(view.exists(kind, "x"), Lookup::Absent);
                assert_eq!(view.into_missed_lookups(), [(key, name())].into());
                let results = [((key, name()), Lookup::Found(LookedUp::Exists))].into();
                let view = RequestView::new(&index, &results);
                assert_eq!(view.exists(kind, "x"), Lookup::Found(()));
            }
        }
        let results = LookupResults::new();
        let view = RequestView::new(&index, &results);
        let cohort = IndexedKind::Cohort(Project::Kueue);
        assert_eq!(view.exists(cohort, "x"), Lookup::Absent);
        assert!(view.into_missed_lookups().is_empty());
    }
}

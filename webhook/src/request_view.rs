//! The world as one request sees it: the stores, and what was fetched live for it.

use lockkeeper_policies::cluster_view::{ClusterView, Lookup, PriorityClassFacts};
use lockkeeper_policies::index::{Index, IndexedKind};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// What the API server can be asked for: an object of a kind that is in no namespace, by its name.
pub(crate) type LookupKey = (IndexedKind, String);

/// What rules use of an object that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LookedUp {
    /// Of a PriorityClass.
    PriorityClass(PriorityClassFacts),
    /// Of others, that they exist.
    Exists,
}

/// What was asked for at the API server for one request.
pub(crate) type LookupResults = BTreeMap<LookupKey, Lookup<LookedUp>>;

/// The stores first, then what was fetched. It remembers what neither had, so that the caller can
/// fetch it and ask again: rules themselves never wait.
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

    /// Whether somebody asked for the global default before the classes were listed.
    pub(crate) fn default_is_unknown(&self) -> bool {
        self.default_is_unknown.get()
    }

    /// What was asked for and is nowhere.
    pub(crate) fn into_missed_lookups(self) -> BTreeSet<LookupKey> {
        self.missed_lookups.into_inner()
    }

    /// What was fetched; what was not is missed.
    fn live_result(&self, kind: IndexedKind, name: &str) -> Option<&Lookup<LookedUp>> {
        let asked = (kind, name.to_owned());
        let fetched = self.lookup_results.get(&asked);
        if fetched.is_none() {
            self.missed_lookups.borrow_mut().insert(asked);
        }
        fetched
    }
}

impl ClusterView for RequestView<'_> {
    fn fallback(&self) -> Option<&dyn ClusterView> {
        Some(self.index)
    }

    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts> {
        let stored = self.index.priority_class(name);
        if let Lookup::Found(_) = stored {
            return stored;
        }
        match self.live_result(IndexedKind::PriorityClass, name) {
            None => stored,
            Some(Lookup::Found(LookedUp::PriorityClass(facts))) => Lookup::Found(*facts),
            Some(Lookup::Absent) => Lookup::Absent,
            Some(Lookup::Found(LookedUp::Exists) | Lookup::Unknown) => Lookup::Unknown,
        }
    }

    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)> {
        let default = self.index.global_default();
        if default == Lookup::Unknown {
            self.default_is_unknown.set(true);
        }
        default
    }

    /// `kubectl apply` of a flavor and a queue, in one file, sends the second before the watch has told of
    /// the first.
    fn exists(&self, kind: IndexedKind, name: &str) -> Lookup<()> {
        let stored = self.index.exists(kind, name);
        let is_asked_for = matches!(
            kind,
            IndexedKind::ResourceFlavor(_) | IndexedKind::ClusterQueue(_)
        );
        if !is_asked_for || stored == Lookup::Found(()) {
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
    use lockkeeper_policies::cohort_trees::{FlavorFacts, Project};
    use lockkeeper_policies::facts;
    use lockkeeper_policies::index::Facts;
    use serde_json::{Value, json};

    const FLAVOR: IndexedKind = IndexedKind::ResourceFlavor(Project::Lockkeeper);

    /// Asks for a flavor or the like in a cluster that has the flavor `stored`, with this answer of the API
    /// server; gives back what the rule is told, and how much is missed.
    fn lookup(
        kind: IndexedKind,
        name: &str,
        answer: Option<Lookup<LookedUp>>,
    ) -> (Lookup<()>, usize) {
        let mut index = Index::default();
        let stored = ObjectName {
            namespace: String::new(),
            name: "stored".to_owned(),
        };
        let facts = Facts::ResourceFlavor(Project::Lockkeeper, FlavorFacts::default());
        index.apply(stored, facts);
        let fetched = answer.map(|answer| ((kind, name.to_owned()), answer));
        let fetched = fetched.into_iter().collect();
        let world = RequestView::new(&index, &fetched);
        let told = world.exists(kind, name);
        (told, world.into_missed_lookups().len())
    }

    #[test]
    fn object_missing_in_stores_is_a_missed_lookup() {
        assert_eq!(lookup(FLAVOR, "stored", None), (Lookup::Found(()), 0));
        assert_eq!(lookup(FLAVOR, "fresh", None), (Lookup::Absent, 1));
        for (answer, told) in [
            (Lookup::Found(LookedUp::Exists), Lookup::Found(())),
            (Lookup::Absent, Lookup::Absent),
            (Lookup::Unknown, Lookup::Unknown),
        ] {
            assert_eq!(lookup(FLAVOR, "fresh", Some(answer)), (told, 0));
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
        let fetched = LookupResults::new();
        let world = RequestView::new(&index, &fetched);
        assert!(world.quota("a").found().unwrap().max.contains_key("cpu"));
        assert_eq!(world.quota("b"), Lookup::Absent);
        let children = world.quota_children("koordinator-root-quota");
        assert_eq!(children.first().map(|(name, _)| *name), Some("a"));
        let templates = world.templates("team", "w").found().unwrap();
        assert!(templates.templates.contains("t"));
        assert_eq!(world.templates("team", "v"), Lookup::Absent);
        assert!(world.into_missed_lookups().is_empty());
    }

    #[test]
    fn flavors_and_queues_of_both_families_are_looked_up() {
        let mut index = Index::default();
        index.mark_complete(IndexedKind::Cohort(Project::Kueue));
        let name = || "x".to_owned();
        for family in [Project::Lockkeeper, Project::Kueue] {
            for kind in [
                IndexedKind::ResourceFlavor(family),
                IndexedKind::ClusterQueue(family),
            ] {
                index.mark_complete(kind);
                let fetched = LookupResults::new();
                let world = RequestView::new(&index, &fetched);
                assert_eq!(world.exists(kind, "x"), Lookup::Absent);
                assert_eq!(world.into_missed_lookups(), [(kind, name())].into());
                let fetched = [((kind, name()), Lookup::Found(LookedUp::Exists))].into();
                let world = RequestView::new(&index, &fetched);
                assert_eq!(world.exists(kind, "x"), Lookup::Found(()));
            }
        }
        let fetched = LookupResults::new();
        let world = RequestView::new(&index, &fetched);
        let cohort = IndexedKind::Cohort(Project::Kueue);
        assert_eq!(world.exists(cohort, "x"), Lookup::Absent);
        assert!(world.into_missed_lookups().is_empty());
    }
}

//! The watches of the kinds of jobs that `JobKind` objects declare.

use super::definition_watch::start_definition_watch;
use super::kind_discovery::watch_when_installed;
use super::watch::Watches;
use crate::job_adapters::JobAdapter;
use crate::{DeclaredJobKind, Kind, Reconciler};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// The running watches, by the index of the kind.
#[derive(Default)]
pub(super) struct DeclaredWatches {
    kinds: BTreeMap<usize, DeclaredWatch>,
    /// The watches of the definitions stop when these are dropped.
    definitions: BTreeMap<usize, watch::Sender<()>>,
}

struct DeclaredWatch {
    revision: u64,
    /// The watch stops when it is dropped.
    _stop: watch::Sender<()>,
}

impl DeclaredWatches {
    /// Starts the watches of new kinds, and stops those of kinds that are not declared any more. Returns whether all kinds have
    /// to be listed again: because a declaration has changed, or because a new kind creates jobs that may be known already.
    pub(super) fn update(&mut self, reconciler: &Reconciler, watches: &Watches) -> bool {
        let kinds = reconciler.job_kinds();
        watches.job_kinds.store(Arc::new(kinds.clone()));
        let declared = reconciler.declared_job_kinds();
        let declared: BTreeMap<usize, &DeclaredJobKind> =
            declared.map(|it| (it.kind, it)).collect();
        self.kinds.retain(|kind, _| declared.contains_key(kind));
        self.definitions
            .retain(|kind, _| declared.contains_key(kind));
        let mut needs_lists = false;
        for (kind, declared) in declared {
            let revision = declared.revision;
            let known = self.kinds.get_mut(&kind);
            if known.as_ref().is_some_and(|it| it.revision == revision) {
                continue;
            }
            self.definitions
                .insert(kind, watch_definition(watches, declared));
            if let Some(known) = known {
                needs_lists = true;
                known.revision = revision;
                continue;
            }
            let (stop, stopped) = watch::channel(());
            let running = DeclaredWatch {
                revision,
                _stop: stop,
            };
            self.kinds.insert(kind, running);
            watch_when_installed(watches.clone(), Kind::Job(kind), until_dropped(stopped));
            needs_lists |= kinds.get(kind).is_some_and(JobAdapter::creates_jobs);
        }
        needs_lists
    }
}

/// Watches the definition of a kind until the result is dropped.
fn watch_definition(watches: &Watches, declared: &DeclaredJobKind) -> watch::Sender<()> {
    let (stop, stopped) = watch::channel(());
    start_definition_watch(watches.clone(), declared.clone(), until_dropped(stopped));
    stop
}

/// Resolves when the sender is dropped.
async fn until_dropped(mut sender: watch::Receiver<()>) {
    while sender.changed().await.is_ok() {}
}

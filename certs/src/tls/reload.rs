//! What is made of files that may change, and who looks at them.

use super::error::TlsError;
use super::file_watcher::{FileChanges, LastFailure};
use super::status::CertificateStatus;
use std::path::PathBuf;
use std::sync::Arc;
use tracing::{info, warn};

/// Something made of files that can be made again.
pub(super) trait Reloadable: Send + Sync {
    /// What a log line calls it.
    fn name(&self) -> &'static str;

    /// The files it is made of.
    fn files(&self) -> Vec<PathBuf>;

    /// Takes over what the files hold now. False if that is what it has.
    ///
    /// On an error it stays what it was.
    fn refresh(&self) -> Result<bool, TlsError>;
}

/// Looks at the files.
pub(super) struct Reloader {
    pub(super) sources: Vec<ReloadTarget>,
    pub(super) changes: FileChanges,
    pub(super) status: CertificateStatus,
}

impl Reloader {
    pub(super) fn reload_changed(&self) {
        self.changes.arm();
        for watched in &self.sources {
            watched.reload_if_changed(&self.status);
        }
    }
}

/// A source, and what was wrong with it.
pub(super) struct ReloadTarget {
    pub(super) source: Arc<dyn Reloadable>,
    failure: LastFailure,
}

impl ReloadTarget {
    pub(super) fn new(source: Arc<dyn Reloadable>) -> Self {
        Self {
            source,
            failure: LastFailure::default(),
        }
    }

    fn reload_if_changed(&self, status: &CertificateStatus) {
        let what = self.source.name();
        match self.source.refresh() {
            Ok(changed) => {
                if changed {
                    status.count_reload();
                    let not_after = status.not_after();
                    info!(what, not_after, "took over new files");
                }
                self.failure.clear();
            }
            Err(error) => {
                status.count_failure();
                let reason = error.to_string();
                if self.failure.is_new(&reason) {
                    warn!(
                        what,
                        reason, "cannot use the files as they are; the old ones are kept"
                    );
                }
            }
        }
    }
}

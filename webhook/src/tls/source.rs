//! What is made of files that may change, and who looks at them.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::{info, warn};

use super::watching::{Changes, LastFailure};
use super::{CertificateStatus, TlsError};

/// Something made of files that can be made again.
pub(super) trait Source: Send + Sync {
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
    pub(super) sources: Vec<Watched>,
    pub(super) changes: Changes,
    pub(super) status: CertificateStatus,
}

impl Reloader {
    pub(super) fn look(&self) {
        self.changes.arm();
        for watched in &self.sources {
            watched.look(&self.status);
        }
    }
}

/// A source, and what was wrong with it.
pub(super) struct Watched {
    pub(super) source: Arc<dyn Source>,
    failure: LastFailure,
}

impl Watched {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Self {
            source,
            failure: LastFailure::default(),
        }
    }

    fn look(&self, status: &CertificateStatus) {
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

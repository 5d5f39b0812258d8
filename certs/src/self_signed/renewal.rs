//! Renews the certificates of a directory while the server runs.

use super::ensure::ensure;
use super::error::SelfSignedError;
use crate::tls::{CertificateStatus, LastFailure};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval_at};
use tracing::{error, warn};

/// Time between two checks of the directory, in seconds: 720 checks fit into the renewal period.
pub const RENEWAL_CHECK_SECONDS: u64 = 60 * 60;

/// Renews the certificates of one directory.
#[derive(Clone, Debug)]
pub struct RenewalTask {
    /// The directory, as given to [`ensure`].
    pub directory: PathBuf,
    /// The names, as given to [`ensure`].
    pub names: Vec<String>,
    /// Counts failures.
    pub status: CertificateStatus,
}

impl RenewalTask {
    /// Calls [`ensure`] once an hour, until the process ends. The file watcher loads the renewed
    /// files. A failure is counted, and logged once for each reason.
    pub async fn run(self) {
        self.run_with_clock(SystemTime::now).await;
    }

    async fn run_with_clock(self, clock: impl Fn() -> SystemTime) {
        let period = Duration::from_secs(RENEWAL_CHECK_SECONDS);
        // Not at once: `ensure` ran before the server started.
        let mut ticks = interval_at(tokio::time::Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let failure = LastFailure::default();
        loop {
            ticks.tick().await;
            match self.renew_once(clock()).await {
                Ok(()) => failure.clear(),
                Err(reason) => {
                    self.status.count_failure();
                    if failure.is_new(&reason) {
                        let directory = self.directory.display().to_string();
                        warn!(
                            directory,
                            reason, "cannot renew the certificates; the present ones remain in use"
                        );
                    }
                }
            }
        }
    }

    async fn renew_once(&self, now: SystemTime) -> Result<(), String> {
        let (directory, names) = (self.directory.clone(), self.names.clone());
        // `ensure` blocks on the disk and on other processes, which must not delay handshakes.
        let done = spawn_blocking(move || ensure(&directory, &names, now)).await;
        match done {
            Ok(result) => result
                .map(drop)
                .map_err(|error: SelfSignedError| error.to_string()),
            Err(panicked) => {
                error!(%panicked, "renewing the certificates panicked");
                Err("it panicked; this is a defect, report it".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::self_signed::DAY_S;
    use std::fs;
    use tokio::time::sleep;

    /// The paused clock advances only while no task runs, so real I/O is awaited here.
    #[tokio::test(start_paused = true)]
    async fn renewal_task_renews_expiring_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("tls");
        let names = vec!["localhost".to_owned()];
        let files = ensure(&directory, &names, SystemTime::now()).unwrap();
        let read = || {
            (
                fs::read(&files.certificate).unwrap(),
                fs::read(&files.ca).unwrap(),
            )
        };
        let (first, ca) = read();
        let status = CertificateStatus::default();
        let renewal = RenewalTask {
            directory: directory.clone(),
            names,
            status: status.clone(),
        };
        let hour = Duration::from_secs(RENEWAL_CHECK_SECONDS);
        let after = |days: u64| SystemTime::now() + Duration::from_secs(days * DAY_S);
        let soon = tokio::spawn(renewal.clone().run_with_clock(move || after(300)));
        sleep(2 * hour).await;
        assert_eq!(read(), (first.clone(), ca.clone()));
        soon.abort();

        let late = tokio::spawn(renewal.run_with_clock(move || after(340)));
        sleep(hour + hour / 2).await;
        let (second, same) = read();
        assert_ne!(second, first);
        assert_eq!(same, ca);
        assert_eq!(status.failures(), 0);

        // A failure is counted at every check, and no file is changed.
        fs::write(&files.ca, "garbage").unwrap();
        sleep(2 * hour).await;
        assert_eq!(status.failures(), 2);
        assert_eq!(read(), (second.clone(), b"garbage".to_vec()));
        fs::write(&files.ca, &ca).unwrap();
        sleep(2 * hour).await;
        assert_eq!(status.failures(), 2);
        late.abort();
    }
}

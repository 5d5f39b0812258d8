//! Takes over changes of the configuration file while the server runs.
//!
//! The content is looked at again and again. A watch on the file would miss how Kubernetes changes a
//! mounted `ConfigMap`: a symbolic link two steps up is swapped, and the file itself never changes.

use crate::configuration::{self, Loaded};
use anyhow::{Context, Error, bail};
use lockkeeper_api::config::{
    Config, ControllerSettings, PreemptionSettings, WaitForPodsReady, WebhookSettings,
};
use lockkeeper_webhook::app::App;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

/// What was found at a look: the content, or why there is none.
type Look = Result<String, String>;

/// The file, and what of it is in force.
pub(super) struct Reloader {
    path: PathBuf,
    app: Arc<App>,
    /// What the server was started with: what needs a restart is compared to this.
    started: Config,
    /// What rules go by now.
    running: Config,
    last: Look,
}

impl Reloader {
    /// The server was started with `loaded`, read from `path`.
    pub(super) fn new(path: &Path, loaded: Loaded, app: Arc<App>) -> Self {
        Self {
            path: path.to_owned(),
            app,
            started: loaded.config.clone(),
            running: loaded.config,
            last: Ok(loaded.text),
        }
    }

    /// Looks at the file for as long as the server runs.
    pub(super) async fn watch(mut self) {
        if !self.path.is_file() {
            let path = self.path.display();
            tracing::info!(%path, "the configuration is not a regular file: it is read only once");
            return;
        }
        let mut ticks = interval(self.started.webhook.config_poll_seconds.seconds());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // A file may be on a disk that hangs, and connections are served here.
            let looked = spawn_blocking(move || {
                self.tick();
                self
            });
            match looked.await {
                Ok(reloader) => self = reloader,
                Err(error) => {
                    tracing::error!(%error, "the configuration file is no longer looked at");
                    return;
                }
            }
        }
    }

    /// Looks once. Nothing happens unless something changed since the last look.
    pub(super) fn tick(&mut self) {
        let look = self.look().map_err(|error| format!("{error:#}"));
        if look == self.last {
            return;
        }
        self.last.clone_from(&look);
        let loaded = look.and_then(|text| {
            configuration::load(&self.path, text).map_err(|error| format!("{error:#}"))
        });
        self.app.metrics().config_reloaded(loaded.is_ok());
        match loaded {
            Ok(loaded) => self.take(loaded),
            Err(error) => {
                tracing::error!(
                    error,
                    "the configuration is broken; what held before still holds"
                );
            }
        }
    }

    fn look(&self) -> Result<String, Error> {
        let shown = self.path.display();
        let metadata = fs::metadata(&self.path).with_context(|| format!("cannot read {shown}"))?;
        if !metadata.is_file() {
            bail!("{shown} is not a regular file; put the configuration back there");
        }
        configuration::text(&self.path)
    }

    /// Puts in force what can be without a restart, and says what cannot.
    fn take(&mut self, loaded: Loaded) {
        let path = self.path.display();
        if at_run_time(&loaded.config) == at_run_time(&self.running) {
            tracing::info!(%path, "the configuration was read; rules, priority and job are as before");
        } else {
            self.app.set_settings(loaded.settings);
            tracing::info!(%path, "the configuration was read; rules, priority and job hold from now on");
        }
        if loaded.config.webhook != self.started.webhook {
            tracing::warn!(%path, "changes under webhook hold after a restart of the server");
        }
        self.running = loaded.config;
    }
}

/// The configuration without what is fixed when the server starts, and what only the controller reads.
/// A key that is added later takes effect at run time unless it is named here.
fn at_run_time(config: &Config) -> Config {
    Config {
        webhook: WebhookSettings::default(),
        wait_for_pods_ready: WaitForPodsReady::default(),
        preemption: PreemptionSettings::default(),
        controller: ControllerSettings::default(),
        ..config.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use lockkeeper_api::config::Action;
    use lockkeeper_policies::index::Index;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    const WARN: &str = "rules: {actions: {CQ007: warn}}\n";
    const AUDIT: &str = "rules: {actions: {CQ007: audit}}\n";
    const BROKEN: &str = "rules: {actions: {CQ007: wran}}\n";

    struct Case {
        folder: TempDir,
        reloader: Reloader,
    }

    impl Case {
        /// A server that was started with [`WARN`].
        fn new() -> Self {
            let folder = TempDir::new().unwrap();
            let path = folder.path().join("config.yaml");
            fs::write(&path, WARN).unwrap();
            Self::at(folder, &path)
        }

        fn at(folder: TempDir, path: &Path) -> Self {
            let loaded = configuration::read(Some(path)).unwrap();
            let app = App::offline(loaded.settings.clone(), Index::default(), 65_536);
            let reloader = Reloader::new(path, loaded, Arc::new(app));
            Self { folder, reloader }
        }

        fn write(&self, text: &str) {
            fs::write(&self.reloader.path, text).unwrap();
        }

        /// Looks once; then rule CQ007 has this action, and so many changes were taken and refused.
        #[track_caller]
        fn check(&mut self, action: Action, applied: u32, refused: u32) {
            self.reloader.tick();
            let app = &self.reloader.app;
            assert_eq!(app.settings().action("CQ007", Action::Off, None), action);
            let text = app.metrics().prometheus();
            for (result, count) in [("applied", applied), ("refused", refused)] {
                let name = "lockkeeper_webhook_config_reloads_total";
                let line = format!("\n{name}{{result=\"{result}\"}} {count}\n");
                assert!(text.contains(&line), "{line}");
            }
        }
    }

    #[test]
    fn a_change_holds_from_the_next_look_on() {
        let mut case = Case::new();
        case.check(Action::Warn, 0, 0);
        case.write(AUDIT);
        case.check(Action::Audit, 1, 0);
        case.check(Action::Audit, 1, 0);
        case.write("");
        case.check(Action::Off, 2, 0);
    }

    #[test]
    fn a_broken_file_changes_nothing_until_it_is_mended() {
        let mut case = Case::new();
        case.write(BROKEN);
        case.check(Action::Warn, 0, 1);
        case.check(Action::Warn, 0, 1);
        let path = case.reloader.path.clone();
        fs::remove_file(&path).unwrap();
        case.check(Action::Warn, 0, 2);
        fs::create_dir(&path).unwrap();
        case.check(Action::Warn, 0, 3);
        fs::remove_dir(&path).unwrap();
        case.write(AUDIT);
        case.check(Action::Audit, 1, 3);
    }

    #[test]
    fn an_unknown_rule_is_refused_as_at_the_start() {
        let mut case = Case::new();
        case.write("rules: {actions: {CQ007: audit, CQ999: warn}}\n");
        case.check(Action::Warn, 0, 1);
    }

    /// As the kubelet does it: the file is a link through `..data`, which is swapped.
    #[test]
    fn a_mounted_config_map_is_followed() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        for (version, text) in [("..1", WARN), ("..2", AUDIT)] {
            fs::create_dir(root.join(version)).unwrap();
            fs::write(root.join(version).join("config.yaml"), text).unwrap();
        }
        symlink("..1", root.join("..data")).unwrap();
        let path = root.join("config.yaml");
        symlink("..data/config.yaml", &path).unwrap();
        let mut case = Case::at(folder, &path);
        case.check(Action::Warn, 0, 0);
        for (count, (version, action)) in (1..).zip([("..2", Action::Audit), ("..1", Action::Warn)])
        {
            let root = case.folder.path();
            symlink(version, root.join("..data_tmp")).unwrap();
            fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
            case.check(action, count, 0);
        }
    }

    #[test]
    fn what_needs_a_restart_leaves_the_rules_as_they_are() {
        let mut case = Case::new();
        let before = case.reloader.app.settings();
        case.write(&format!("{WARN}webhook: {{drainSeconds: 1}}\n"));
        case.check(Action::Warn, 1, 0);
        assert!(Arc::ptr_eq(&before, &case.reloader.app.settings()));
        case.write(&format!("{AUDIT}webhook: {{drainSeconds: 1}}\n"));
        case.check(Action::Audit, 2, 0);
    }
}

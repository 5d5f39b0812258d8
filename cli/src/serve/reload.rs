//! Reloads the configuration file and the user rules while the server runs.
//!
//! The files are polled. A watch on the file would miss how Kubernetes updates a mounted `ConfigMap`: the
//! symbolic link `..data` of the folder is swapped, and the file itself never changes.

use crate::configuration::{self, LoadedConfig};
use crate::user_rules::{self, RuleDirs};
use anyhow::{Context, Error, bail};
use lockkeeper_api::config::{
    Config, ControllerSettings, PreemptionSettings, WaitForPodsReady, WebhookSettings,
};
use lockkeeper_policies::registry;
use lockkeeper_policies::user_rules::Source;
use lockkeeper_webhook::app_state::AppState;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

/// The result of one read: the content of the file and the pages of rules, or the error.
type ReadOutcome = Result<(String, Vec<Source>), String>;

/// Reloads the file and the folders when they change.
pub(super) struct Reloader {
    path: Option<PathBuf>,
    folders: RuleDirs,
    app: Arc<AppState>,
    /// The configuration at the start. Keys that need a restart are compared with it.
    initial: Config,
    /// The configuration that is applied.
    active: Config,
    /// The pages of the user rules that are applied.
    pages: Vec<Source>,
    last_read: ReadOutcome,
}

impl Reloader {
    /// Creates a reloader for a server that was started with `loaded`, read from `path` and `folders`.
    pub(super) fn new(
        path: Option<&Path>,
        folders: &RuleDirs,
        loaded: LoadedConfig,
        app: Arc<AppState>,
    ) -> Self {
        warn_unregistered(&loaded);
        Self {
            path: path.map(Path::to_owned),
            folders: folders.clone(),
            app,
            initial: loaded.config.clone(),
            active: loaded.config,
            pages: loaded.pages.clone(),
            last_read: Ok((loaded.text, loaded.pages)),
        }
    }

    /// Polls the files until the server stops.
    pub(super) async fn watch(mut self) {
        if let Some(path) = self.path.as_deref().filter(|it| !it.is_file()) {
            let path = path.display();
            tracing::info!(%path, "the configuration is not a regular file; it will not be reloaded");
            return;
        }
        let mut ticks = interval(self.initial.webhook.config_poll_seconds.seconds());
        // After a slow read, missed ticks are not made up for.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Reads may block on a slow disk, and this thread serves connections.
            let ticked = spawn_blocking(move || {
                self.tick();
                self
            });
            match ticked.await {
                Ok(reloader) => self = reloader,
                Err(error) => {
                    tracing::error!(%error, "reload task panicked; the configuration will not be reloaded");
                    return;
                }
            }
        }
    }

    /// Reads the files once, and applies them if they have changed since the last read.
    pub(super) fn tick(&mut self) {
        let read = self.read().map_err(|error| format!("{error:#}"));
        // Errors are compared too: a persistent one is logged once.
        if read == self.last_read {
            return;
        }
        self.last_read.clone_from(&read);
        let loaded = read.and_then(|(text, pages)| {
            let loaded = configuration::load(self.path.as_deref(), text, pages);
            loaded.map_err(|error| format!("{error:#}"))
        });
        self.app.metrics().config_reloaded(loaded.is_ok());
        match loaded {
            Ok(loaded) => self.apply(loaded),
            Err(error) => {
                tracing::error!(error, "invalid configuration; keeping the previous one");
            }
        }
    }

    fn read(&self) -> Result<(String, Vec<Source>), Error> {
        let text = self.path.as_deref().map(read_text).transpose()?;
        Ok((text.unwrap_or_default(), self.folders.pages()?))
    }

    /// Applies the keys that need no restart, and logs whether others have changed.
    fn apply(&mut self, loaded: LoadedConfig) {
        let path = self.path.as_deref().unwrap_or(Path::new("")).display();
        let is_unchanged = reloadable_config(&loaded.config) == reloadable_config(&self.active);
        if loaded.pages != self.pages {
            warn_unregistered(&loaded);
            let rules = loaded.settings.user_rules.iter().count();
            self.app.set_settings(loaded.settings);
            tracing::info!(%path, rules, "reloaded user rules");
        } else if is_unchanged {
            tracing::info!(%path, "reloaded configuration; no change under rules, priority and job");
        } else {
            self.app.set_settings(loaded.settings);
            tracing::info!(%path, "reloaded configuration");
        }
        if loaded.config.webhook != self.initial.webhook {
            tracing::warn!(%path, "changes under webhook need a restart");
        }
        self.active = loaded.config;
        self.pages = loaded.pages;
    }
}

/// Reads the configuration file.
fn read_text(path: &Path) -> Result<String, Error> {
    let shown = path.display();
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !metadata.is_file() {
        bail!("{shown} is not a regular file; restore the configuration file");
    }
    configuration::read_text(path)
}

/// Logs the operations of user rules that no webhook configuration of lockkeeper registers by default.
fn warn_unregistered(loaded: &LoadedConfig) {
    let wanted = &loaded.config.webhook.foreign_kinds;
    let registered = registry::built_in(wanted, &loaded.settings);
    for rule in user_rules::unregistered_operations(&loaded.settings.user_rules, &registered) {
        tracing::warn!(
            rule,
            "the API server sends this only if it is registered; `lockkeeper crds webhooks --rules` prints webhook \
             configurations that register it"
        );
    }
}

/// The configuration without the keys that need a restart and the keys of the controller. A key that is added
/// later is reloaded unless it is listed here.
fn reloadable_config(config: &Config) -> Config {
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

    struct Fixture {
        folder: TempDir,
        reloader: Reloader,
    }

    impl Fixture {
        /// A server that was started with [`WARN`].
        fn new() -> Self {
            let folder = TempDir::new().unwrap();
            let path = folder.path().join("config.yaml");
            fs::write(&path, WARN).unwrap();
            Self::at(folder, &path)
        }

        fn at(folder: TempDir, path: &Path) -> Self {
            Self::with_rules(folder, path, &RuleDirs::default())
        }

        fn with_rules(folder: TempDir, path: &Path, rules: &RuleDirs) -> Self {
            let loaded = configuration::read(Some(path), rules).unwrap();
            let app = AppState::offline(loaded.settings.clone(), Index::default(), 65_536);
            let reloader = Reloader::new(Some(path), rules, loaded, Arc::new(app));
            Self { folder, reloader }
        }

        fn path(&self) -> PathBuf {
            self.reloader.path.clone().unwrap()
        }

        fn write(&self, text: &str) {
            fs::write(self.path(), text).unwrap();
        }

        /// Reads once, then checks the action of rule CQ007 and the numbers of applied and rejected reloads.
        #[track_caller]
        fn check(&mut self, action: Action, applied: u32, rejected: u32) {
            self.reloader.tick();
            let app = &self.reloader.app;
            assert_eq!(app.settings().action("CQ007", Action::Off, None), action);
            let text = app.metrics().prometheus();
            for (result, count) in [("applied", applied), ("rejected", rejected)] {
                let name = "lockkeeper_webhook_config_reloads_total";
                let line = format!("\n{name}{{result=\"{result}\"}} {count}\n");
                assert!(text.contains(&line), "{line}");
            }
        }
    }

    #[test]
    fn reload_changed_config_is_applied() {
        let mut case = Fixture::new();
        case.check(Action::Warn, 0, 0);
        case.write(AUDIT);
        case.check(Action::Audit, 1, 0);
        case.check(Action::Audit, 1, 0);
        case.write("");
        case.check(Action::Off, 2, 0);
    }

    #[test]
    fn reload_broken_config_keeps_previous_settings() {
        let mut case = Fixture::new();
        case.write(BROKEN);
        case.check(Action::Warn, 0, 1);
        case.check(Action::Warn, 0, 1);
        let path = case.path();
        fs::remove_file(&path).unwrap();
        case.check(Action::Warn, 0, 2);
        fs::create_dir(&path).unwrap();
        case.check(Action::Warn, 0, 3);
        fs::remove_dir(&path).unwrap();
        case.write(AUDIT);
        case.check(Action::Audit, 1, 3);
    }

    #[test]
    fn reload_unknown_rule_is_rejected() {
        let mut case = Fixture::new();
        case.write("rules: {actions: {CQ007: audit, CQ999: warn}}\n");
        case.check(Action::Warn, 0, 1);
    }

    /// The kubelet swaps the link `..data`, through which the file is a link.
    #[test]
    fn reload_config_map_symlink_swap_is_applied() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        for (version, text) in [("..1", WARN), ("..2", AUDIT)] {
            fs::create_dir(root.join(version)).unwrap();
            fs::write(root.join(version).join("config.yaml"), text).unwrap();
        }
        symlink("..1", root.join("..data")).unwrap();
        let path = root.join("config.yaml");
        symlink("..data/config.yaml", &path).unwrap();
        let mut case = Fixture::at(folder, &path);
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
    fn reload_restart_only_keys_keep_settings() {
        let mut case = Fixture::new();
        let before = case.reloader.app.settings();
        case.write(&format!("{WARN}webhook: {{drainSeconds: 1}}\n"));
        case.check(Action::Warn, 1, 0);
        assert!(Arc::ptr_eq(&before, &case.reloader.app.settings()));
        case.write(&format!("{AUDIT}webhook: {{drainSeconds: 1}}\n"));
        case.check(Action::Audit, 2, 0);
    }

    #[test]
    fn reload_changed_user_rules_are_applied() {
        let folder = TempDir::new().unwrap();
        let (path, rules) = (
            folder.path().join("config.yaml"),
            folder.path().join("rules"),
        );
        fs::write(&path, WARN).unwrap();
        fs::create_dir(&rules).unwrap();
        let page = |id: &str, expression: &str| {
            let text = format!(
                "---\nid: {id}\nname: a\nkinds: [{{version: v1, kind: Pod}}]\nvalidations: [{{expression: {expression}}}]\n---\n"
            );
            fs::write(rules.join("a.md"), text).unwrap();
        };
        page("TEAM001", "'true'");
        let folders = RuleDirs::new(vec![rules.clone()]);
        let mut case = Fixture::with_rules(folder, &path, &folders);
        let ids = |case: &Fixture| {
            let settings = case.reloader.app.settings();
            settings
                .user_rules
                .iter()
                .map(|it| it.id.clone())
                .collect::<Vec<_>>()
        };
        case.check(Action::Warn, 0, 0);
        assert_eq!(ids(&case), ["TEAM001"]);
        page("TEAM002", "'false'");
        case.check(Action::Warn, 1, 0);
        assert_eq!(ids(&case), ["TEAM002"]);
        // An invalid page changes nothing, and neither does an action for a removed rule.
        page("TEAM003", "'a +'");
        case.check(Action::Warn, 1, 1);
        case.write("rules: {actions: {CQ007: warn, TEAM002: off}}\n");
        case.check(Action::Warn, 1, 2);
        assert_eq!(ids(&case), ["TEAM002"]);
        page("TEAM002", "'false'");
        case.check(Action::Warn, 2, 2);
        fs::remove_file(rules.join("a.md")).unwrap();
        case.check(Action::Warn, 2, 3);
        assert_eq!(ids(&case), ["TEAM002"]);
    }
}

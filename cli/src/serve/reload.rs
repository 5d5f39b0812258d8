//! Takes over changes of the configuration file and of the users' rules while the server runs.
//!
//! The content is looked at again and again. A watch on the file would miss how Kubernetes changes a
//! mounted `ConfigMap`: a symbolic link two steps up is swapped, and the file itself never changes.

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

/// What was found at a look: the content of the file and the pages of rules, or why there is none.
type ReadOutcome = Result<(String, Vec<Source>), String>;

/// The file and the folders, and what of them is in force.
pub(super) struct Reloader {
    path: Option<PathBuf>,
    folders: RuleDirs,
    app: Arc<AppState>,
    /// What the server was started with: what needs a restart is compared to this.
    initial: Config,
    /// What rules go by now.
    active: Config,
    /// The users' rules that hold now.
    pages: Vec<Source>,
    last_read: ReadOutcome,
}

impl Reloader {
    /// The server was started with `loaded`, read from `path` and `folders`.
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

    /// Looks at the file for as long as the server runs.
    pub(super) async fn watch(mut self) {
        if let Some(path) = self.path.as_deref().filter(|it| !it.is_file()) {
            let path = path.display();
            tracing::info!(%path, "the configuration is not a regular file: it is read only once");
            return;
        }
        let mut ticks = interval(self.initial.webhook.config_poll_seconds.seconds());
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
        let look = self.read().map_err(|error| format!("{error:#}"));
        if look == self.last_read {
            return;
        }
        self.last_read.clone_from(&look);
        let loaded = look.and_then(|(text, pages)| {
            let loaded = configuration::load(self.path.as_deref(), text, pages);
            loaded.map_err(|error| format!("{error:#}"))
        });
        self.app.metrics().config_reloaded(loaded.is_ok());
        match loaded {
            Ok(loaded) => self.apply(loaded),
            Err(error) => {
                tracing::error!(
                    error,
                    "the configuration is broken; what held before still holds"
                );
            }
        }
    }

    fn read(&self) -> Result<(String, Vec<Source>), Error> {
        let text = self.path.as_deref().map(read_text).transpose()?;
        Ok((text.unwrap_or_default(), self.folders.pages()?))
    }

    /// Puts in force what can be without a restart, and says what cannot.
    fn apply(&mut self, loaded: LoadedConfig) {
        let path = self.path.as_deref().unwrap_or(Path::new("")).display();
        let is_as_before = reloadable_config(&loaded.config) == reloadable_config(&self.active);
        if loaded.pages != self.pages {
            warn_unregistered(&loaded);
            let rules = loaded.settings.user_rules.iter().count();
            self.app.set_settings(loaded.settings);
            tracing::info!(%path, rules, "rules of users were read; they hold from now on");
        } else if is_as_before {
            tracing::info!(%path, "the configuration was read; rules, priority and job are as before");
        } else {
            self.app.set_settings(loaded.settings);
            tracing::info!(%path, "the configuration was read; rules, priority and job hold from now on");
        }
        if loaded.config.webhook != self.initial.webhook {
            tracing::warn!(%path, "changes under webhook hold after a restart of the server");
        }
        self.active = loaded.config;
        self.pages = loaded.pages;
    }
}

/// The content of the configuration file.
fn read_text(path: &Path) -> Result<String, Error> {
    let shown = path.display();
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !metadata.is_file() {
        bail!("{shown} is not a regular file; put the configuration back there");
    }
    configuration::read_text(path)
}

/// Says which rules are about what an API server sends only if it was told of them.
fn warn_unregistered(loaded: &LoadedConfig) {
    let wanted = &loaded.config.webhook.foreign_kinds;
    let registered = registry::built_in(wanted, &loaded.settings);
    for rule in user_rules::unregistered_operations(&loaded.settings.user_rules, &registered) {
        tracing::warn!(
            rule,
            "the API server sends this only if it is registered; `lockkeeper crds webhooks --rules` prints webhook \
             configurations that do"
        );
    }
}

/// The configuration without what is fixed when the server starts, and what only the controller reads.
/// A key that is added later takes effect at run time unless it is named here.
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

        /// Looks once; then rule CQ007 has this action, and so many changes were taken and refused.
        #[track_caller]
        fn check(&mut self, action: Action, applied: u32, refused: u32) {
            self.reloader.tick();
            let app = &self.reloader.app;
            assert_eq!(app.settings().action("CQ007", Action::Off, None), action);
            let text = app.metrics().prometheus();
            for (result, count) in [("applied", applied), ("rejected", refused)] {
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

    /// As the kubelet does it: the file is a link through `..data`, which is swapped.
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
        // A broken page changes nothing, and neither does an action for a rule that is gone.
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

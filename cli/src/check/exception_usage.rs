//! What the exceptions of the configuration covered, which of them have ended, and which were of no use.

use lockkeeper_policies::engine::Exempted;
use lockkeeper_policies::settings::Settings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What the exceptions covered, by their names.
#[derive(Clone, Debug, Default)]
pub(super) struct ExceptionUsage(BTreeMap<String, usize>);

/// What is said of one exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExceptionStatus {
    pub(super) file: String,
    pub(super) name: String,
    pub(super) reason: String,
    pub(super) expires: String,
    pub(super) is_expired: bool,
    /// How many findings it covered.
    pub(super) used: usize,
}

impl ExceptionUsage {
    pub(super) fn count(&mut self, excused: &[Exempted]) {
        for it in excused {
            let used = self.0.entry(it.exception.name.clone()).or_default();
            *used = used.saturating_add(1);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (name, count) in other.0 {
            let used = self.0.entry(name).or_default();
            *used = used.saturating_add(count);
        }
    }

    /// What is said of all exceptions, in the order of the configuration.
    pub(super) fn statuses(
        &self,
        settings: &Settings,
        config: Option<&Path>,
    ) -> Vec<ExceptionStatus> {
        let file = config
            .map(|it| it.display().to_string())
            .unwrap_or_default();
        let all = settings.exceptions.all().iter();
        let said = all.map(|it| ExceptionStatus {
            file: file.clone(),
            name: it.name.clone(),
            reason: it.config.reason.clone(),
            expires: it.config.expires.to_string(),
            is_expired: settings.exceptions.expired().any(|ended| ended == it),
            used: self.0.get(&it.name).copied().unwrap_or_default(),
        });
        said.collect()
    }
}

impl ExceptionStatus {
    /// For people.
    pub(super) fn text(&self) -> String {
        let Self {
            file,
            name,
            reason,
            expires,
            used,
            ..
        } = self;
        if self.is_expired {
            return format!("{file}: warning: {}\n", self.problem());
        }
        match used {
            0 => format!("{file}: note: exception {name} covers nothing here\n"),
            1 => format!(
                "{file}: note: exception {name} covers 1 finding until {expires} ({reason})\n"
            ),
            _ => format!(
                "{file}: note: exception {name} covers {used} findings until {expires} ({reason})\n"
            ),
        }
    }

    /// What is wrong with one that has ended.
    pub(super) fn problem(&self) -> String {
        let Self { name, expires, .. } = self;
        format!("exception {name} has ended ({expires}): take it out, or give it a later end")
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.name, "reason": self.reason, "expires": self.expires, "ended": self.is_expired,
            "used": self.used,
        })
    }
}

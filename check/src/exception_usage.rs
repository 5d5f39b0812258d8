//! How often each exception of the configuration applied, and which have expired.

use lockkeeper_policies::engine::Exempted;
use lockkeeper_policies::settings::Settings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// How many findings each exception covered, by its name.
#[derive(Clone, Debug, Default)]
pub struct ExceptionUsage(BTreeMap<String, usize>);

/// An exception, as reports print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExceptionStatus {
    /// The configuration file.
    pub file: String,
    /// Its name.
    pub name: String,
    /// The configured reason.
    pub reason: String,
    /// The first day on which it does not apply.
    pub expires: String,
    /// Whether it has expired.
    pub is_expired: bool,
    /// How many findings it covered.
    pub used: usize,
}

impl ExceptionUsage {
    /// Counts the exempted findings of an object.
    pub fn count(&mut self, exempted: &[Exempted]) {
        for name in exempted {
            let used = self.0.entry(name.exception.name.clone()).or_default();
            *used = used.saturating_add(1);
        }
    }

    /// Adds the counts of another file.
    pub fn merge(&mut self, other: Self) {
        for (name, count) in other.0 {
            let used = self.0.entry(name).or_default();
            *used = used.saturating_add(count);
        }
    }

    /// All exceptions, in the order of the configuration.
    #[must_use]
    pub fn statuses(&self, settings: &Settings, config: Option<&Path>) -> Vec<ExceptionStatus> {
        let file = config
            .map(|it| it.display().to_string())
            .unwrap_or_default();
        let all = settings.exceptions.all().iter();
        let statuses = all.map(|it| ExceptionStatus {
            file: file.clone(),
            name: it.name.clone(),
            reason: it.config.reason.clone(),
            expires: it.config.expires.to_string(),
            is_expired: settings.exceptions.expired().any(|expired| expired == it),
            used: self.0.get(&it.name).copied().unwrap_or_default(),
        });
        statuses.collect()
    }
}

impl ExceptionStatus {
    /// A line of the text report.
    pub(crate) fn text(&self) -> String {
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

    /// The message for an expired exception.
    pub(crate) fn problem(&self) -> String {
        let Self { name, expires, .. } = self;
        format!("exception {name} has expired ({expires}): remove it, or set a later date")
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "name": self.name, "reason": self.reason, "expires": self.expires, "ended": self.is_expired,
            "used": self.used,
        })
    }
}

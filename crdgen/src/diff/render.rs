//! The report of a comparison as text, JSON or Markdown.

use super::{Change, ChangeClass, ChangeCode, StoredObjectOutcome, StoredObjectReport};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text
    #[default]
    Human,
    /// JSON
    Json,
    /// Markdown, for a review comment
    Markdown,
}

/// The report of a comparison.
#[derive(Debug)]
pub struct Report<'a> {
    /// The changes.
    pub changes: &'a [Change],
    /// The reports on stored objects, if any were given.
    pub verdicts: Option<&'a [StoredObjectReport]>,
    /// How many documents were of other kinds.
    pub skipped: usize,
    /// The classes of the changes to print; all, if there are none. The counts and the class are of all changes.
    pub only: &'a [ChangeClass],
    /// How many changes were accepted; they are not among `changes`.
    pub accepted: usize,
    /// Accepted changes that did not occur.
    pub unused: &'a [String],
}

impl Report<'_> {
    /// The worst class of all changes.
    #[must_use]
    pub fn class(&self) -> ChangeClass {
        let worst = self.changes.iter().map(|it| it.class).max();
        worst.unwrap_or(ChangeClass::Compatible)
    }

    /// The text; with colours if it goes to a terminal.
    ///
    /// # Errors
    ///
    /// Never: writing to a string does not fail.
    pub fn text(&self, output: Output, has_colours: bool) -> Result<String, fmt::Error> {
        let mut out = String::new();
        match output {
            Output::Human => self.write_human(&mut out, has_colours)?,
            Output::Json => writeln!(out, "{:#}", self.json())?,
            Output::Markdown => self.write_markdown(&mut out)?,
        }
        Ok(out)
    }

    fn by_definition(&self) -> BTreeMap<&str, Vec<&Change>> {
        let mut all: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
        let shown = |it: &&Change| self.only.is_empty() || self.only.contains(&it.class);
        for change in self.changes.iter().filter(shown) {
            all.entry(&change.definition).or_default().push(change);
        }
        for changes in all.values_mut() {
            changes.sort_by_key(|it| std::cmp::Reverse(it.class));
        }
        all
    }

    fn count(&self, class: ChangeClass) -> usize {
        self.changes.iter().filter(|it| it.class == class).count()
    }

    fn write_human(&self, out: &mut String, has_colours: bool) -> fmt::Result {
        for (definition, changes) in self.by_definition() {
            writeln!(out, "{definition}")?;
            let (descriptions, changes) = without_descriptions(changes);
            for change in changes {
                let (start, end) = colours(change.class, has_colours);
                let (class, place) = (change.class, &change.place);
                writeln!(
                    out,
                    "  {start}{class}{end}  {place}: {} [{}]",
                    change.description, change.code
                )?;
                if change.class != ChangeClass::Compatible {
                    let row = change.code.info();
                    writeln!(out, "    {}; {}", row.meaning, change.stored)?;
                    writeln!(out, "    {}", row.advice)?;
                }
            }
            if descriptions > 0 {
                let (start, end) = colours(ChangeClass::Compatible, has_colours);
                let class = ChangeClass::Compatible;
                writeln!(
                    out,
                    "  {start}{class}{end}  {}",
                    description_count(descriptions)
                )?;
            }
        }
        for entry in self.unused {
            writeln!(out, "no such change is left to accept: {entry}")?;
        }
        self.human_stored_objects(out)?;
        writeln!(out, "{}", self.summary())
    }

    fn human_stored_objects(&self, out: &mut String) -> fmt::Result {
        for verdict in self.verdicts.into_iter().flatten() {
            if verdict.outcome == StoredObjectOutcome::Passes {
                continue;
            }
            writeln!(out, "{}  {}", verdict.object, verdict.outcome.as_str())?;
            for field in &verdict.dropped {
                writeln!(out, "    loses {field}")?;
            }
            for text in &verdict.on_create {
                writeln!(out, "    {text}")?;
            }
        }
        Ok(())
    }

    fn summary(&self) -> String {
        let mut parts = vec![
            format!("{} breaking", self.count(ChangeClass::Breaking)),
            format!(
                "{} need a storage migration",
                self.count(ChangeClass::NeedsStorageMigration)
            ),
            format!("{} compatible", self.count(ChangeClass::Compatible)),
        ];
        if let Some(verdicts) = self.verdicts {
            let failing = verdicts
                .iter()
                .filter(|it| it.outcome > StoredObjectOutcome::LosesFields)
                .count();
            parts.push(format!(
                "{failing} of {} objects would fail",
                verdicts.len()
            ));
        }
        if self.accepted > 0 {
            parts.push(format!("{} accepted", self.accepted));
        }
        if self.skipped > 0 {
            parts.push(format!("{} documents of other kinds skipped", self.skipped));
        }
        parts.join(", ")
    }

    fn json(&self) -> Value {
        let shown = self.changes.iter();
        let shown = shown.filter(|it| self.only.is_empty() || self.only.contains(&it.class));
        let changes: Vec<JsonChange<'_>> = shown.map(JsonChange::from_change).collect();
        json!({
            "class": self.class().as_str(),
            "counts": {
                "breaking": self.count(ChangeClass::Breaking),
                "needs-storage-migration": self.count(ChangeClass::NeedsStorageMigration),
                "compatible": self.count(ChangeClass::Compatible),
            },
            "changes": changes,
            "accepted": self.accepted,
            "unusedAcceptances": self.unused,
            "objects": self.verdicts,
            "skipped": self.skipped,
        })
    }

    fn write_markdown(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "**{}**: {}", self.class(), self.summary())?;
        for (definition, changes) in self.by_definition() {
            writeln!(out, "\n### {definition}\n")?;
            writeln!(out, "| class | where | what | means | do |")?;
            writeln!(out, "| --- | --- | --- | --- | --- |")?;
            let (descriptions, changes) = without_descriptions(changes);
            for change in changes {
                let row = change.code.info();
                let cells = [
                    change.class.to_string(),
                    format!("`{}`", change.place),
                    format!("{} ({})", cell(&change.description), row.id),
                    format!("{}; {}", row.meaning, change.stored),
                    row.advice.to_owned(),
                ];
                writeln!(out, "| {} |", cells.join(" | "))?;
            }
            if descriptions > 0 {
                let what = description_count(descriptions);
                writeln!(out, "| {} | | {what} | | |", ChangeClass::Compatible)?;
            }
        }
        let failing = self.verdicts.into_iter().flatten();
        let mut failing = failing
            .filter(|it| it.outcome != StoredObjectOutcome::Passes)
            .peekable();
        if failing.peek().is_some() {
            writeln!(
                out,
                "\n### Objects\n\n| object | outcome | why |\n| --- | --- | --- |"
            )?;
        }
        for verdict in failing {
            let lost = verdict.dropped.iter().map(|it| format!("loses {it}"));
            let why: Vec<String> = lost.chain(verdict.on_create.iter().cloned()).collect();
            let (object, outcome) = (&verdict.object, verdict.outcome.as_str());
            writeln!(out, "| {object} | {outcome} | {} |", cell(&why.join("; ")))?;
        }
        Ok(())
    }
}

/// The number of changed descriptions, and the other changes. Most releases change many descriptions.
fn without_descriptions(changes: Vec<&Change>) -> (usize, Vec<&Change>) {
    let is_description = |it: &&Change| it.code == ChangeCode::DescriptionChanged;
    let (descriptions, others): (Vec<&Change>, Vec<&Change>) =
        changes.into_iter().partition(is_description);
    (descriptions.len(), others)
}

fn description_count(count: usize) -> String {
    let id = ChangeCode::DescriptionChanged.info().id;
    match count {
        1 => format!("1 description changes [{id}]"),
        count => format!("{count} descriptions change [{id}]"),
    }
}

/// A change in JSON.
#[derive(Serialize)]
struct JsonChange<'a> {
    definition: &'a str,
    version: Option<&'a str>,
    path: String,
    place: String,
    code: &'a str,
    name: &'a str,
    class: ChangeClass,
    effect: super::Effect,
    what: &'a str,
    meaning: &'a str,
    advice: &'a str,
    stored: String,
}

impl<'a> JsonChange<'a> {
    fn from_change(change: &'a Change) -> Self {
        let row = change.code.info();
        Self {
            definition: &change.definition,
            version: change.place.version(),
            path: change.place.field(),
            place: change.place.to_string(),
            code: row.id,
            name: row.name,
            class: change.class,
            effect: change.effect,
            what: &change.description,
            meaning: row.meaning,
            advice: row.advice,
            stored: change.stored.to_string(),
        }
    }
}

fn colours(class: ChangeClass, has_colours: bool) -> (&'static str, &'static str) {
    match class {
        _ if !has_colours => ("", ""),
        ChangeClass::Breaking => ("\u{1b}[1;31m", "\u{1b}[0m"),
        ChangeClass::NeedsStorageMigration => ("\u{1b}[1;33m", "\u{1b}[0m"),
        ChangeClass::Compatible => ("\u{1b}[32m", "\u{1b}[0m"),
    }
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

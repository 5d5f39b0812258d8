//! What is printed.

mod github;
mod human;
mod json;
mod junit;
mod sarif;

use super::excuses::{Excuses, Said};
use super::lines::Place;
use super::source::{Identity, Problem};
use super::{Output, Severity};
use lockkeeper_policies::finding::Finding;

pub(super) use human::Palette;
pub(super) use json::with;

/// What is told of one file.
pub(super) struct Judged {
    /// The file as it is printed.
    pub(super) name: String,
    pub(super) outcome: Result<Objects, Problem>,
}

/// The objects in a file.
#[derive(Default)]
pub(super) struct Objects {
    /// The text of the file.
    pub(super) text: Text,
    pub(super) checked: Vec<Object>,
    /// How many are of kinds that are not known.
    pub(super) skipped: usize,
    /// What exceptions cover.
    pub(super) excuses: Excuses,
}

/// An object, and what is told of it.
pub(super) struct Object {
    pub(super) identity: Identity,
    pub(super) told: Vec<Told>,
}

/// One finding, and where it is.
pub(super) struct Told {
    pub(super) place: Option<Place>,
    pub(super) severity: Severity,
    pub(super) finding: Finding,
    /// What else is told of it, a line each.
    pub(super) notes: Vec<String>,
    /// Why its author does not want to be told.
    pub(super) suppressed: Option<String>,
}

impl Object {
    /// The findings that are not suppressed.
    fn open(&self) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(|it| it.suppressed.is_none())
    }
}

/// A text of which single lines are asked for.
#[derive(Default)]
pub(super) struct Text {
    whole: String,
    /// Where each line begins, in bytes.
    starts: Vec<usize>,
}

impl Text {
    pub(super) fn new(whole: String) -> Self {
        let ends = whole.bytes().enumerate().filter(|(_, it)| *it == b'\n');
        let after = ends.map(|(at, _)| at.saturating_add(1));
        let starts = std::iter::once(0).chain(after).collect();
        Self { whole, starts }
    }

    /// A line by its number, from 1.
    fn line(&self, number: usize) -> Option<&str> {
        let start = *self.starts.get(number.checked_sub(1)?)?;
        let end = self.starts.get(number).copied();
        let line = self.whole.get(start..end.unwrap_or(self.whole.len()))?;
        Some(line.trim_end_matches(['\n', '\r']))
    }
}

/// How many there were of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) files: usize,
    pub(super) objects: usize,
    pub(super) skipped: usize,
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) suppressed: usize,
    /// What could not be read, and why.
    pub(super) unreadable: Vec<(String, Problem)>,
    pub(super) excuses: Excuses,
    /// What is said of exceptions in the end.
    pub(super) exceptions: Vec<Said>,
}

impl Tally {
    /// Adds what is told of a file.
    pub(super) fn of(judged: &Judged) -> Self {
        let mut out = Self::default();
        match &judged.outcome {
            Err(problem) => out.unreadable.push((judged.name.clone(), problem.clone())),
            Ok(objects) => {
                out.files = 1;
                out.objects = objects.checked.len();
                out.skipped = objects.skipped;
                out.excuses = objects.excuses.clone();
                for told in objects.checked.iter().flat_map(|it| &it.told) {
                    let count = match (&told.suppressed, told.severity) {
                        (Some(_), _) => &mut out.suppressed,
                        (None, Severity::Error) => &mut out.errors,
                        (None, Severity::Warning) => &mut out.warnings,
                    };
                    *count = count.saturating_add(1);
                }
            }
        }
        out
    }

    pub(super) fn add(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.files, other.files),
            (&mut self.objects, other.objects),
            (&mut self.skipped, other.skipped),
            (&mut self.errors, other.errors),
            (&mut self.warnings, other.warnings),
            (&mut self.suppressed, other.suppressed),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        self.unreadable.extend(other.unreadable);
        self.excuses.add(other.excuses);
    }

    /// 2 if anything could not be read, 1 if anything was found that is bad enough.
    pub(super) fn code(&self, fail_on: Severity) -> u8 {
        let found = match fail_on {
            Severity::Error => self.errors,
            Severity::Warning => self.errors.saturating_add(self.warnings),
        };
        if self.unreadable.is_empty() {
            u8::from(found > 0)
        } else {
            2
        }
    }
}

/// A number of things, in words.
pub(super) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// A way to print: a head, a piece for each file, and a tail.
pub(super) trait Format: Sync {
    fn head(&self) -> String {
        String::new()
    }

    /// What is printed for a file; it may be nothing.
    fn file(&self, judged: &Judged) -> String;

    /// What is printed of exceptions; it may be nothing.
    fn exceptions(&self, _all: &[Said]) -> String {
        String::new()
    }

    /// What stands between two pieces.
    fn separator(&self) -> &'static str {
        ""
    }

    fn tail(&self, _tally: &Tally) -> String {
        String::new()
    }
}

/// What the ways to print are told.
pub(super) struct Settings {
    pub(super) palette: Palette,
    pub(super) fail_on: Severity,
    /// Whether the objects are those of a cluster, and stand in no files.
    pub(super) is_stored: bool,
    /// Where the pages of rules are, as an address.
    pub(super) pages: Option<String>,
}

pub(super) fn format(output: Output, settings: Settings) -> Box<dyn Format> {
    match output {
        Output::Human => Box::new(human::Human::new(settings.palette, settings.is_stored)),
        Output::Json => Box::new(json::Json),
        Output::Github => Box::new(github::Github),
        Output::Sarif => Box::new(sarif::Sarif::new(settings.pages)),
        Output::Junit => Box::new(junit::Junit::new(settings.fail_on)),
    }
}

impl Severity {
    const fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

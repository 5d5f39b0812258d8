//! What is said of the objects in a file.

use super::Severity;
use super::choice::Choice;
use super::circles::{self, Circling};
use super::kinds::{Judgement, Known, severity};
use super::lines::Tree;
use super::report::{Object, Objects, Text, Told};
use super::source::{Document, Identity, Source};
use crate::Failure;
use lockkeeper_api::config::Action;
use lockkeeper_policies::conversion;
use lockkeeper_policies::endless;
use lockkeeper_policies::engine::Excused;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::suppression::{self, Suppressions};

/// Everything that is asked of objects.
pub(super) struct Judge {
    known: Known,
    settings: Settings,
    world: Index,
    choice: Choice,
    circles: circles::Found,
}

/// An object that something is said of, before it is known where.
pub(super) struct Said {
    number: usize,
    pointer: String,
    pub(super) object: Object,
    pub(super) excused: Vec<Excused>,
}

impl Judge {
    pub(super) fn new(
        settings: Settings,
        world: Index,
        choice: Choice,
        circles: circles::Found,
    ) -> Result<Self, Failure> {
        Ok(Self {
            circles,
            known: Known::new(&choice)?,
            settings,
            world,
            choice,
        })
    }

    /// Expressions are asked in both ways, and held against rules, if that is wanted.
    pub(super) fn verifying(mut self, is_wanted: bool) -> Result<Self, Failure> {
        if is_wanted {
            self.known.verify_expressions()?;
        }
        Ok(self)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Judges every object in a file.
    pub(super) fn file(&self, at: usize, source: Source) -> Objects {
        let mut out = Objects::default();
        let mut said = Vec::new();
        for (number, document) in source.documents.into_iter().enumerate() {
            let circling = self.circles.get(&(at, number));
            match self.document(document, circling) {
                None => out.skipped = out.skipped.saturating_add(1),
                Some(it) => {
                    out.excuses.take(&it.excused);
                    said.push(it);
                }
            }
        }
        if said.iter().any(|it| !it.object.told.is_empty()) {
            let tree = Tree::new(&source.text);
            for it in &mut said {
                for told in &mut it.object.told {
                    let pointer = format!("{}{}", it.pointer, told.finding.field.pointer());
                    told.place = tree.place(it.number, &pointer);
                }
            }
            out.text = Text::new(source.text);
        }
        out.checked = said.into_iter().map(|it| it.object).collect();
        out
    }

    /// `None` if the kind of the object is not known.
    pub(super) fn document(&self, document: Document, circling: Option<&Circling>) -> Option<Said> {
        let context = Context {
            world: &self.world,
            settings: &self.settings,
        };
        let origin = document.origin;
        let identity = match &origin {
            None => Identity::of(&document.value),
            Some(origin) => origin.identity.clone(),
        };
        let mut suppressions = Suppressions::of(&document.value);
        let Judgement {
            mut found,
            excused,
            is_complete,
        } = match &origin {
            Some(origin) if origin.is_gone => Judgement::default(),
            _ => self.known.judge(document.value, &identity, &context)?,
        };
        if let Some(origin) = &origin {
            for (_, finding) in &mut found {
                finding.field = origin.field(&finding.field);
            }
            let of = (conversion::ID, conversion::ACTION);
            if let Some(severity) = severity(&self.settings, of, &identity.namespace) {
                let lost = origin.lost.iter();
                found.extend(lost.map(|it| (severity, it.clone())));
            }
        }
        // Where the policies rule nothing out is not told: what was found there is.
        found.retain(|(_, finding)| finding.rule != endless::RULE);
        let of = (endless::RULE, Action::Warn);
        if let Some(circling) = circling
            && let Some(severity) = severity(&self.settings, of, &identity.namespace)
        {
            found.push((severity, circling.finding.clone()));
        }
        let mut told = Vec::with_capacity(found.len());
        for (severity, finding) in found {
            let reason = suppressions
                .as_mut()
                .and_then(|it| it.reason(&finding.rule));
            let suppressed = reason.map(str::to_owned);
            self.tell(severity, finding, suppressed, &mut told);
        }
        if let Some(circling) = circling {
            for it in told
                .iter_mut()
                .filter(|it| it.finding.rule == endless::RULE)
            {
                it.notes.clone_from(&circling.story);
            }
        }
        if let Some(suppressions) = suppressions {
            let left = suppressions.without_effect(is_complete && self.choice.is_everything());
            let of = (suppression::ID, suppression::ACTION);
            if let Some(severity) = severity(&self.settings, of, &identity.namespace) {
                for finding in left {
                    self.tell(severity, finding, None, &mut told);
                }
            }
        }
        Some(Said {
            number: document.number,
            pointer: document.pointer,
            object: Object { identity, told },
            excused,
        })
    }

    fn tell(
        &self,
        severity: Severity,
        finding: Finding,
        suppressed: Option<String>,
        told: &mut Vec<Told>,
    ) {
        if self.choice.takes(&finding.rule) {
            told.push(Told {
                notes: Vec::new(),
                place: None,
                severity,
                finding,
                suppressed,
            });
        }
    }
}

//! What is said of the objects in a file.

use super::Severity;
use super::kinds::{KindCheckResult, KindRegistry, severity};
use super::preemption_loops::{self, LoopFinding};
use super::report::{FileObjects, ReportedFinding, ReportedObject, SourceText};
use super::rule_selection::RuleSelection;
use super::source::{Document, Identity, ParsedSource};
use super::spans::YamlTree;
use crate::Failure;
use lockkeeper_api::config::Action;
use lockkeeper_policies::engine::Exempted;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::lossy_conversion;
use lockkeeper_policies::preemption_loops as loop_rule;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::suppression::{self, Suppressions};

/// Everything that is asked of objects.
pub(super) struct Checker {
    kinds: KindRegistry,
    settings: Settings,
    index: Index,
    selection: RuleSelection,
    loop_findings: preemption_loops::LoopFindings,
}

/// An object that something is said of, before it is known where.
pub(super) struct CheckedObject {
    number: usize,
    pointer: String,
    pub(super) object: ReportedObject,
    pub(super) exempted: Vec<Exempted>,
}

impl Checker {
    pub(super) fn new(
        settings: Settings,
        world: Index,
        choice: RuleSelection,
        circles: preemption_loops::LoopFindings,
    ) -> Result<Self, Failure> {
        Ok(Self {
            loop_findings: circles,
            kinds: KindRegistry::new(&choice)?,
            settings,
            index: world,
            selection: choice,
        })
    }

    /// Expressions are asked in both ways, and held against rules, if that is wanted.
    pub(super) fn with_cel_cross_check(mut self, is_wanted: bool) -> Result<Self, Failure> {
        if is_wanted {
            self.kinds.enable_cel_cross_check()?;
        }
        Ok(self)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Judges every object in a file.
    pub(super) fn check_file(&self, at: usize, source: ParsedSource) -> FileObjects {
        let mut out = FileObjects::default();
        let mut said = Vec::new();
        for (number, document) in source.documents.into_iter().enumerate() {
            let circling = self.loop_findings.get(&(at, number));
            match self.check_document(document, circling) {
                None => out.skipped = out.skipped.saturating_add(1),
                Some(it) => {
                    out.exception_usage.count(&it.exempted);
                    said.push(it);
                }
            }
        }
        if said.iter().any(|it| !it.object.findings.is_empty()) {
            let tree = YamlTree::new(&source.text);
            for it in &mut said {
                for told in &mut it.object.findings {
                    let pointer = format!("{}{}", it.pointer, told.finding.field.pointer());
                    told.location = tree.locate(it.number, &pointer);
                }
            }
            out.text = SourceText::new(source.text);
        }
        out.objects = said.into_iter().map(|it| it.object).collect();
        out
    }

    /// `None` if the kind of the object is not known.
    pub(super) fn check_document(
        &self,
        document: Document,
        circling: Option<&LoopFinding>,
    ) -> Option<CheckedObject> {
        let context = Context {
            cluster: &self.index,
            settings: &self.settings,
        };
        let origin = document.origin;
        let identity = match &origin {
            None => Identity::from_object(&document.value),
            Some(origin) => origin.identity.clone(),
        };
        let mut suppressions = Suppressions::parse(&document.value);
        let KindCheckResult {
            findings: mut found,
            exempted: excused,
            is_complete,
        } = match &origin {
            Some(origin) if origin.is_dropped => KindCheckResult::default(),
            _ => self.kinds.check(document.value, &identity, &context)?,
        };
        if let Some(origin) = &origin {
            for (_, finding) in &mut found {
                finding.field = origin.source_field(&finding.field);
            }
            let of = (lossy_conversion::ID, lossy_conversion::ACTION);
            if let Some(severity) = severity(&self.settings, of, &identity.namespace) {
                let lost = origin.lost_fields.iter();
                found.extend(lost.map(|it| (severity, it.clone())));
            }
        }
        // Where the policies rule nothing out is not told: what was found there is.
        found.retain(|(_, finding)| finding.rule != loop_rule::RULE);
        let of = (loop_rule::RULE, Action::Warn);
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
            self.push_finding(severity, finding, suppressed, &mut told);
        }
        if let Some(circling) = circling {
            for it in told
                .iter_mut()
                .filter(|it| it.finding.rule == loop_rule::RULE)
            {
                it.notes.clone_from(&circling.explanation);
            }
        }
        if let Some(suppressions) = suppressions {
            let left =
                suppressions.into_unused_findings(is_complete && self.selection.is_everything());
            let of = (suppression::ID, suppression::ACTION);
            if let Some(severity) = severity(&self.settings, of, &identity.namespace) {
                for finding in left {
                    self.push_finding(severity, finding, None, &mut told);
                }
            }
        }
        Some(CheckedObject {
            number: document.number,
            pointer: document.pointer,
            object: ReportedObject {
                identity,
                findings: told,
            },
            exempted: excused,
        })
    }

    fn push_finding(
        &self,
        severity: Severity,
        finding: Finding,
        suppressed: Option<String>,
        told: &mut Vec<ReportedFinding>,
    ) {
        if self.selection.includes(&finding.rule) {
            told.push(ReportedFinding {
                notes: Vec::new(),
                location: None,
                severity,
                finding,
                suppressed,
            });
        }
    }
}

//! Runs schemas and rules on objects, and adds suppressions and positions.

use crate::admission::AdmissionPolicies;
use crate::defined_view::DefinedView;
use crate::definitions::{DefinitionSet, SchemaCatalog};
use crate::document::{Document, Identity};
use crate::kinds::{KindCheckResult, KindRegistry, configured, severity};
use crate::old_objects::OldObjects;
use crate::preemption_loops::{LoopFinding, LoopFindings};
use crate::report::{FileObjects, ReportedFinding, ReportedObject, SkippedKinds, SourceText};
use crate::rule_selection::RuleSelection;
use crate::setup_error::SetupError;
use crate::severity::Severity;
use crate::source::ParsedSource;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_crd_schema::builtin::Release;
use lockkeeper_policies::engine::Exempted;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::lossy_conversion;
use lockkeeper_policies::preemption_loops as loop_rule;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::suppression::{self, Suppressions};
use serde_json::Value;
use std::sync::Arc;

/// Checks objects, in any order and from several threads.
pub struct Checker {
    kinds: KindRegistry,
    settings: Settings,
    index: Index,
    selection: RuleSelection,
    loop_findings: LoopFindings,
    /// Whether objects of other kinds are errors.
    is_strict: bool,
    /// The objects before a change.
    old_objects: OldObjects,
    admission: AdmissionPolicies,
}

/// A checked object. Its findings have no positions yet.
pub struct CheckedObject {
    number: usize,
    pointer: String,
    /// The object with its findings.
    pub object: ReportedObject,
    /// The findings that exceptions of the configuration cover.
    pub exempted: Vec<Exempted>,
}

impl Checker {
    /// A checker with the objects that rules look up, and the findings of the loop search.
    ///
    /// # Errors
    ///
    /// A generated schema cannot be read, which is a bug.
    pub fn new(
        settings: Settings,
        index: Index,
        selection: RuleSelection,
        loop_findings: LoopFindings,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            kinds: KindRegistry::new(&selection)?,
            settings,
            index,
            selection,
            loop_findings,
            is_strict: false,
            old_objects: OldObjects::default(),
            admission: AdmissionPolicies::default(),
        })
    }

    /// Also reports objects of kinds that are not checked, as errors.
    #[must_use]
    pub fn with_strict_kinds(mut self, is_strict: bool) -> Self {
        self.is_strict = is_strict;
        self
    }

    /// Also checks definitions, and objects of their kinds.
    #[must_use]
    pub fn with_definitions(mut self, definitions: Arc<DefinitionSet>) -> Self {
        self.kinds.set_definitions(definitions);
        self
    }

    /// Also checks objects of kinds without a definition, with the JSON Schemas of a catalogue.
    #[must_use]
    pub fn with_schema_catalog(mut self, catalog: SchemaCatalog) -> Self {
        self.kinds.set_schema_catalog(catalog);
        self
    }

    /// Checks built-in kinds as this release of Kubernetes does, instead of the newest one.
    #[must_use]
    pub fn with_release(mut self, release: Release) -> Self {
        self.kinds.set_release(release);
        self
    }

    /// Also checks objects of versions that the release does not serve: an API server has returned them.
    #[must_use]
    pub fn with_served_versions(mut self) -> Self {
        self.kinds.accept_all_versions();
        self
    }

    /// Checks the change of objects that have an old form.
    #[must_use]
    pub fn with_old_objects(mut self, old_objects: OldObjects) -> Self {
        self.old_objects = old_objects;
        self
    }

    /// Also checks objects that are valid with admission policies.
    #[must_use]
    pub fn with_admission_policies(mut self, admission: AdmissionPolicies) -> Self {
        self.admission = admission;
        self
    }

    /// Also evaluates each CEL rule with both evaluators, and each rule in Rust and in CEL; they must agree.
    ///
    /// # Errors
    ///
    /// The CEL of a rule does not compile, which is a bug.
    pub fn with_cel_cross_check(mut self, is_enabled: bool) -> Result<Self, SetupError> {
        if is_enabled {
            self.kinds.enable_cel_cross_check()?;
        }
        Ok(self)
    }

    /// The settings of the rules.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Checks every object of a file. `at` is the number of the input, as in [`LoopFindings`].
    #[must_use]
    pub fn check_file(&self, at: usize, mut source: ParsedSource) -> FileObjects {
        let mut out = FileObjects::default();
        let mut checked = Vec::new();
        let documents = std::mem::take(&mut source.documents);
        for (number, document) in documents.into_iter().enumerate() {
            // The same numbering as in the collection of the search: items of lists count.
            let loop_finding = self.loop_findings.get(&(at, number));
            let skipped = SkippedKinds::of(&document.value);
            match self.check_document(document, loop_finding) {
                None => out.skipped.merge(skipped),
                Some(object) => {
                    out.exception_usage.count(&object.exempted);
                    checked.push(object);
                }
            }
        }
        // Most files have no findings, and need no positions.
        if checked.iter().any(|it| !it.object.findings.is_empty()) {
            let tree = source.tree();
            for object in &mut checked {
                for reported in &mut object.object.findings {
                    let field = reported.finding.field.pointer();
                    let pointer = format!("{}{field}", object.pointer);
                    reported.location = tree.locate(object.number, &pointer);
                }
                let findings = &mut object.object.findings;
                findings.sort_by_key(|it| it.location.map(|it| (it.line, it.column)));
            }
            out.text = SourceText::new(source.text);
        }
        out.objects = checked.into_iter().map(|it| it.object).collect();
        out
    }

    /// Reports unused suppressions.
    fn push_unused(
        &self,
        suppressions: Suppressions,
        is_complete: bool,
        identity: &Identity,
        reported: &mut Vec<ReportedFinding>,
    ) {
        // A suppression of a rule that did not run is not unused.
        let has_run_all = is_complete && self.selection.is_everything();
        let unused = suppressions.into_unused_findings(has_run_all);
        let severity = self.severity(suppression::ID, suppression::ACTION, &identity.namespace);
        if let Some(severity) = severity {
            for finding in unused {
                self.push_finding(severity, finding, None, reported);
            }
        }
    }

    /// Replaces the finding of the rule about loops by that of the search. The rule warns when the policies alone do not
    /// exclude loops; the search is exact.
    fn replace_loop_finding(
        &self,
        findings: &mut Vec<(Severity, Finding)>,
        loop_finding: Option<&LoopFinding>,
        identity: &Identity,
    ) {
        findings.retain(|(_, finding)| finding.rule != loop_rule::RULE);
        if let Some(found) = loop_finding
            && let Some(severity) =
                self.severity(loop_rule::RULE, Action::Warn, &identity.namespace)
        {
            findings.push((severity, found.finding.clone()));
        }
    }

    /// Checks one object; `None` if its kind is unknown.
    #[must_use]
    pub fn check_document(
        &self,
        document: Document,
        loop_finding: Option<&LoopFinding>,
    ) -> Option<CheckedObject> {
        let view = self.view();
        let context = Context {
            cluster: &view,
            settings: &self.settings,
        };
        let origin = document.origin;
        let identity = match &origin {
            None => Identity::from_object(&document.value),
            Some(origin) => origin.identity.clone(),
        };
        let mut suppressions = Suppressions::parse(&document.value);
        let result = match &origin {
            Some(origin) if origin.is_dropped => KindCheckResult::default(),
            _ => match self.check_change(document.value, &identity, &context) {
                Some(result) => result,
                None if self.is_strict => self.unchecked_kind(&identity),
                None => return None,
            },
        };
        let KindCheckResult {
            mut findings,
            exempted,
            is_complete,
        } = if document.is_patch {
            result.of_patch()
        } else {
            result
        };
        if let Some(origin) = &origin {
            for (_, finding) in &mut findings {
                finding.field = origin.source_field(&finding.field);
            }
            if let Some(severity) = self.severity(
                lossy_conversion::ID,
                lossy_conversion::ACTION,
                &identity.namespace,
            ) {
                let lost = origin.lost_fields.iter();
                findings.extend(lost.map(|it| (severity, it.clone())));
            }
        }
        self.replace_loop_finding(&mut findings, loop_finding, &identity);
        let mut reported = Vec::with_capacity(findings.len());
        for (severity, finding) in findings {
            let reason = suppressions
                .as_mut()
                .and_then(|it| it.reason(&finding.rule));
            let suppressed = reason.map(str::to_owned);
            self.push_finding(severity, finding, suppressed, &mut reported);
        }
        if let Some(found) = loop_finding {
            for finding in &mut reported {
                if finding.finding.rule == loop_rule::RULE {
                    finding.notes.clone_from(&found.explanation);
                }
            }
        }
        if let Some(suppressions) = suppressions {
            self.push_unused(suppressions, is_complete, &identity, &mut reported);
        }
        Some(CheckedObject {
            number: document.number,
            pointer: document.pointer,
            object: ReportedObject {
                identity,
                findings: reported,
            },
            exempted,
        })
    }

    fn view(&self) -> DefinedView<'_> {
        DefinedView {
            index: &self.index,
            definitions: self.kinds.definitions(),
        }
    }

    /// Checks an object, or its change. With several old objects of its name, such as of overlays, that is the change from
    /// the first one without an error, or from the last one.
    fn check_change(
        &self,
        object: Value,
        identity: &Identity,
        context: &Context<'_>,
    ) -> Option<KindCheckResult> {
        let check = |object: Value, old: Option<&Value>| {
            if self.admission.are_empty() {
                return self.kinds.check(object, old, identity, context);
            }
            self.check_with_policies(&object, old, identity, context)
        };
        let Some((last, others)) = self.old_objects.find(&object).split_last() else {
            return check(object, None);
        };
        for old in others {
            let result = check(object.clone(), Some(old))?;
            if result.has_no_error() {
                return Some(result);
            }
        }
        check(object, Some(last))
    }

    /// Checks an object as the API server does with admission policies: those that mutate it, the validation of the object,
    /// and those that validate it.
    fn check_with_policies(
        &self,
        object: &Value,
        old: Option<&Value>,
        identity: &Identity,
        context: &Context<'_>,
    ) -> Option<KindCheckResult> {
        let check = |object: &Value| self.kinds.check(object.clone(), old, identity, context);
        let mut result = check(object);
        if result.as_ref().is_some_and(|it| !it.is_decodable()) {
            return result;
        }
        let (mutated, mut found) = self.admission.mutate(&self.kinds, (object, old), context);
        if let Some(mutated) = &mutated {
            let unknown = result.map(KindCheckResult::into_unknown_fields);
            result = check(mutated);
            if let (Some(result), Some(unknown)) = (&mut result, unknown) {
                result.findings.extend(unknown);
            }
        }
        if result.as_ref().is_none_or(KindCheckResult::is_valid) {
            let admitted = mutated.as_ref().unwrap_or(object);
            let admission = &self.admission;
            found.extend(admission.validate(&self.kinds, (admitted, old), object, context));
        }
        let found = configured(found, &self.settings, &identity.namespace);
        match &mut result {
            Some(result) => result.findings.extend(found),
            // A kind that is not checked otherwise.
            None if found.is_empty() => {}
            None => result = Some(KindCheckResult::partial(found)),
        }
        result
    }

    /// The error about a kind that is not checked.
    fn unchecked_kind(&self, identity: &Identity) -> KindCheckResult {
        let Identity {
            api_version, kind, ..
        } = identity;
        let mut reason = format!("{api_version} {kind} is not checked, and --strict requires it");
        if let Some(near) = self.kinds.nearest_kind(identity) {
            reason.push_str("; did you mean ");
            reason.push_str(&near);
            reason.push('?');
        }
        let finding = Finding::decode_error(FieldPath::new("kind"), None, reason.trim_start());
        KindCheckResult::partial(vec![(Severity::Error, finding)])
    }

    fn severity(&self, rule: &str, default: Action, namespace: &str) -> Option<Severity> {
        severity(&self.settings, (rule, default), namespace)
    }

    fn push_finding(
        &self,
        severity: Severity,
        finding: Finding,
        suppressed: Option<String>,
        out: &mut Vec<ReportedFinding>,
    ) {
        if self.selection.includes(&finding.rule) {
            out.push(ReportedFinding {
                notes: Vec::new(),
                location: None,
                severity,
                finding,
                suppressed,
            });
        }
    }
}

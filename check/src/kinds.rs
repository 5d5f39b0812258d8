//! The kinds that can be checked, with their schemas, rules and defaults.

mod catalog;
mod cel_counterparts;
mod cel_cross_check;
mod decode;
mod kind_finding;
mod kind_map;
mod moved_fields;
mod offline_settings;
mod pod_templates;
mod result;
mod schema_validation;
mod schemas;
mod user_verdict;

use self::catalog::Catalog;
use self::cel_counterparts::is_expression;
use self::cel_cross_check::CelCrossCheck;
use self::decode::{check_change_rules, check_rules, compute_defaults};
use self::kind_finding::kind_finding;
use self::kind_map::{KindEntry, KindMap};
use self::moved_fields::restore_field_path;
use self::pod_templates::pod_template_findings;
use self::result::{Findings, is_harmless, is_reported};
use self::schema_validation::SchemaValidation;
use self::schemas::{SchemaSource, kueue_schemas, lockkeeper_schemas};
use self::user_verdict::{apply_user_rules, kind_name};
use crate::definitions::{
    DefinitionSet, SchemaCatalog, check_built_in, check_custom_resource, check_definition,
    check_json_schema, is_definition, is_patch, unserved_version,
};
use crate::document::Identity;
use crate::list_target::ListTarget;
use crate::rule_selection::RuleSelection;
use crate::setup_error::SetupError;
use crate::severity::Severity;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::foreign::scheduling::v1beta1;
use lockkeeper_api::{ClusterQueue, Workload};
use lockkeeper_crd_schema::builtin::Release;
use lockkeeper_policies::decode_error;
use lockkeeper_policies::kinds::{self, KindVisitor};
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::schema::{EXPRESSION, StructuralSchema};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::Value;
use std::sync::Arc;

pub(crate) use self::offline_settings::{configured, severity};
pub use self::offline_settings::{enforce_queue_rules, offline_settings};
pub(crate) use self::result::KindCheckResult;

/// All supported kinds, by API version and kind.
pub struct KindRegistry {
    kinds: KindMap,
    /// These kinds, and the others of their groups.
    catalog: Catalog,
    /// The release of Kubernetes whose built-in kinds are checked.
    release: Release,
    /// Whether versions that the release does not serve are reported.
    checks_versions: bool,
    /// Whether CEL rules in schemas are evaluated.
    evaluates_cel: bool,
    /// If set, both CEL evaluators run, and each rule in Rust is compared with its CEL.
    cel_cross_check: Option<CelCrossCheck>,
    selection: RuleSelection,
    /// The definitions of other kinds.
    definitions: Arc<DefinitionSet>,
    /// The schemas of kinds without a definition.
    schema_catalog: Option<SchemaCatalog>,
}

impl KindVisitor for KindRegistry {
    fn kind<T: ValidatedKind>(&mut self) {
        self.add_version::<T>(&T::version(&()));
    }
}

impl KindRegistry {
    /// A registry that runs the selected rules only.
    ///
    /// # Errors
    ///
    /// A generated schema cannot be serialized, which is a bug.
    pub fn new(selection: &RuleSelection) -> Result<Self, SetupError> {
        let mut registry = Self {
            kinds: KindMap::default(),
            catalog: Catalog::default(),
            release: Release::NEWEST,
            checks_versions: true,
            evaluates_cel: selection.includes(EXPRESSION),
            cel_cross_check: None,
            selection: selection.clone(),
            definitions: Arc::default(),
            schema_catalog: None,
        };
        kinds::visit(&mut registry);
        registry.add_version::<v1beta1::Workload>(v1beta1::EQUIVALENT_VERSION);
        registry.add_version::<v1beta1::PodGroup>(v1beta1::EQUIVALENT_VERSION);
        for (definition, schema) in kueue_schemas().chain(lockkeeper_schemas()?) {
            registry.kinds.add_schema(definition, schema);
        }
        // Not Job: it is suspended on creation, not each time its manifest is applied.
        registry.add_defaults::<ClusterQueue>();
        registry.add_defaults::<Workload>();
        registry.add_defaults::<PriorityClass>();
        registry.set_release(Release::NEWEST);
        Ok(registry)
    }

    /// Checks built-in kinds as this release of Kubernetes does.
    pub(crate) fn set_release(&mut self, release: Release) {
        let kinds = self.kinds.iter().map(|(version, kind, _)| (version, kind));
        self.catalog = Catalog::new(release, kinds);
        self.release = release;
    }

    /// The release whose built-in kinds are checked.
    pub(crate) fn release(&self) -> Release {
        self.release
    }

    /// Accepts versions that the release does not serve.
    pub(crate) fn accept_all_versions(&mut self) {
        self.checks_versions = false;
    }

    /// Checks objects of these kinds with their definitions, except lockkeeper's own kinds, which keep their schemas.
    pub fn set_definitions(&mut self, definitions: Arc<DefinitionSet>) {
        self.definitions = definitions;
    }

    /// Checks objects of kinds without a definition with these schemas.
    pub(crate) fn set_schema_catalog(&mut self, catalog: SchemaCatalog) {
        self.schema_catalog = Some(catalog);
    }

    /// The kind of the definitions with the most similar name.
    pub(crate) fn nearest_kind(&self, identity: &Identity) -> Option<String> {
        self.definitions
            .nearest(&identity.api_version, &identity.kind)
    }

    /// Adds the defaults of the webhook, for kinds where a manifest may contain them.
    fn add_defaults<T: ValidatedKind>(&mut self) {
        if let Some(kind) = self.kinds.get_mut(&T::api_version(&()), &T::kind(&())) {
            kind.defaulting = Some(compute_defaults::<T>);
        }
    }

    /// The object with all defaults, of the schema and of the webhook.
    #[must_use]
    pub fn with_defaults(&self, object: &Value, context: &Context<'_>) -> Value {
        let mut defaulted = object.clone();
        let Some(kind) = self.kinds.find(object) else {
            return defaulted;
        };
        if let Some(structure) = self.schema(kind, object) {
            structure.apply_defaults(&mut defaulted);
        }
        if let Some(compute) = kind.defaulting {
            for item in compute(&defaulted, context).items() {
                item.apply(&mut defaulted);
            }
        }
        defaulted
    }

    /// Compares the CEL evaluators, and rules with their CEL, from now on.
    pub(crate) fn enable_cel_cross_check(&mut self) -> Result<(), SetupError> {
        self.cel_cross_check = self.evaluates_cel.then(CelCrossCheck::new).transpose()?;
        Ok(())
    }

    /// Adds another version of a kind with the same fields.
    fn add_version<T: ValidatedKind>(&mut self, version: &str) {
        let group = T::group(&());
        let version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let mut rules = T::rules().iter();
        let is_selected = |id: &str| self.selection.includes(id);
        let runs = is_selected(decode_error::ID) || rules.any(|it| is_selected(it.id));
        let kind = KindEntry {
            rules: runs.then_some(check_rules::<T>),
            change_rules: runs.then_some(check_change_rules::<T>),
            defaulting: None,
            plural: T::plural(&()).into_owned(),
            is_namespaced: T::NAMESPACED,
            schema: SchemaSource::None,
        };
        self.kinds.add(version, T::kind(&()).into_owned(), kind);
    }

    /// All kinds to list from a cluster: by group and kind, the newest version first.
    #[must_use]
    pub fn list_targets(&self) -> Vec<ListTarget<'_>> {
        self.kinds.list_targets()
    }

    /// The name in paths and the scope of a kind with rules or a schema of its own.
    pub(crate) fn resource(&self, object: &Value) -> Option<(&str, bool)> {
        self.kinds
            .find(object)
            .map(|it| (&*it.plural, it.is_namespaced))
    }

    /// The definitions of other kinds.
    pub(crate) fn definitions(&self) -> &DefinitionSet {
        &self.definitions
    }

    /// The schema of an object's kind, if there is one.
    #[must_use]
    pub fn structure(&self, object: &Value) -> Option<&StructuralSchema> {
        let own = self
            .kinds
            .find(object)
            .and_then(|it| self.schema(it, object));
        own.or_else(|| self.definitions.structure(object))
    }

    /// The schema of a kind with an entry: that of a given definition in place of a replaceable one.
    fn schema<'a>(&'a self, kind: &'a KindEntry, object: &Value) -> Option<&'a StructuralSchema> {
        if self.is_redefined(kind, object) {
            self.definitions.structure(object)
        } else {
            kind.schema.get()
        }
    }

    /// Whether a given definition takes the place of the schema of a kind.
    fn is_redefined(&self, kind: &KindEntry, object: &Value) -> bool {
        kind.schema.is_replaceable() && self.definitions.has(object)
    }

    /// Checks an object, or its change from an old one; `None` if its kind is unknown.
    pub(crate) fn check(
        &self,
        mut object: Value,
        old: Option<&Value>,
        identity: &Identity,
        context: &Context<'_>,
    ) -> Option<KindCheckResult> {
        let Some(kind) = self.kinds.find(&object) else {
            return self.check_other_kind(&object, old, identity, context);
        };
        let mut old = old.cloned();
        let subject = (&mut object, &mut old);
        let (findings, is_valid) = self.validate(kind, subject, identity, context);
        let mut result = KindCheckResult::partial(findings);
        if !is_valid {
            return Some(result);
        }
        let user_verdict = apply_user_rules(&object, old.as_ref(), context.settings);
        // Rules read Kueue's newest version; findings name the fields of the version in the file.
        let moved = kueue::upgrade(&mut object);
        if let Some(old) = &mut old {
            kueue::upgrade(old);
        }
        // The upgraded object has another apiVersion, and so another entry.
        let kind = self.kinds.find(&object).unwrap_or(kind);
        result
            .findings
            .extend(self.cel_disagreements(kind, &object, context.settings));
        match kind.verdict(&object, old.as_ref(), context) {
            Ok(verdict) => {
                result.findings.retain(|(_, it)| !is_reported(it, &verdict));
                result.add_verdict(verdict);
                for (_, finding) in &mut result.findings {
                    restore_field_path(finding, &moved);
                }
                result.add_verdict(user_verdict);
                result.is_complete = true;
            }
            // As in the webhook, rules do not run on an object that does not fit its type.
            Err(mismatch) => {
                let field = mismatch.field.pointer();
                result
                    .findings
                    .retain(|(_, it)| it.field.pointer() != field);
                result.findings.push((Severity::Error, *mismatch));
            }
        }
        Some(result)
    }

    /// Validates an object, or its change from an old one, by the schema or definition of its kind, or as a built-in one, and
    /// sets the defaults of both. Returns whether rules can run.
    fn validate(
        &self,
        kind: &KindEntry,
        (object, old): (&mut Value, &mut Option<Value>),
        identity: &Identity,
        context: &Context<'_>,
    ) -> (Findings, bool) {
        let namespace = &identity.namespace;
        let is_redefined = self.is_redefined(kind, object);
        if let Some(structure) = kind.schema.get().filter(|_| !is_redefined) {
            let templates = pod_template_findings(self.release, object);
            let mut findings = configured(templates, context.settings, namespace);
            if let Some(old) = old {
                structure.prune(old);
                structure.apply_defaults(old);
            }
            let validation = SchemaValidation {
                structure,
                is_namespaced: kind.is_namespaced,
                evaluates_cel: self.evaluates_cel,
                verifies: self.cel_cross_check.is_some(),
            };
            let is_valid = validation.run((object, old.as_ref()), |finding| {
                let rule = (&*finding.rule, Action::Enforce);
                if let Some(severity) = severity(context.settings, rule, namespace) {
                    findings.push((severity, finding));
                }
            });
            return (findings, is_valid);
        }
        let Some(findings) = self.definition_findings(object, old.as_ref(), identity, context)
        else {
            let found = check_built_in(self.release, object, old.as_ref()).unwrap_or_default();
            return (configured(found, context.settings, namespace), true);
        };
        if is_redefined {
            for object in [object].into_iter().chain(old) {
                self.definitions.set_defaults(object);
            }
        }
        // The rules of Kueue's kinds report most breaches of expressions more exactly.
        let mut all = findings.iter();
        let is_valid = all.all(|it| is_harmless(it) || (is_redefined && is_expression(&it.1)));
        (findings, is_valid)
    }

    /// Checks an object of a kind without rules: a definition, or an object of a defined or built-in kind.
    fn check_other_kind(
        &self,
        object: &Value,
        old: Option<&Value>,
        identity: &Identity,
        context: &Context<'_>,
    ) -> Option<KindCheckResult> {
        let settings = context.settings;
        let user_rules = || {
            // User rules may cover kinds that are not built in.
            settings.user_rules.for_kind(kind_name(object)).next()?;
            Some(apply_user_rules(object, old, settings))
        };
        if is_definition(object) && is_patch(object) {
            return None;
        }
        let defined = self.definition_findings(object, old, identity, context);
        let namespace = &identity.namespace;
        let built_in = || {
            Some(configured(
                check_built_in(self.release, object, old)?,
                settings,
                namespace,
            ))
        };
        let Some(findings) = defined.or_else(built_in) else {
            let newest_version = |kind: &str| self.kinds.newest_version(kind);
            if let Some(finding) = kind_finding(object, &self.catalog, newest_version) {
                return Some(KindCheckResult::partial(vec![(Severity::Error, finding)]));
            }
            let mut result = KindCheckResult {
                is_complete: true,
                ..KindCheckResult::default()
            };
            result.add_verdict(user_rules()?);
            return Some(result);
        };
        let is_complete = findings.iter().all(is_harmless);
        let mut result = KindCheckResult::partial(findings);
        result.is_complete = is_complete;
        if let Some(verdict) = user_rules().filter(|_| is_complete) {
            result.add_verdict(verdict);
        }
        Some(result)
    }

    /// The findings about a definition, or about an object by the definition or schema of its kind, or that its version is
    /// not served. `None` if there is none.
    fn definition_findings(
        &self,
        object: &Value,
        old: Option<&Value>,
        identity: &Identity,
        context: &Context<'_>,
    ) -> Option<Findings> {
        let found = if is_definition(object) {
            check_definition(object, old)
        } else {
            let by_schema = || check_json_schema(self.schema_catalog.as_ref()?, object);
            let unserved = || {
                let finding = unserved_version(self.release, object)?;
                let error = (Severity::Error, finding);
                self.checks_versions.then(|| vec![error])
            };
            check_custom_resource(&self.definitions, object, old)
                .or_else(by_schema)
                .or_else(unserved)?
        };
        Some(configured(found, context.settings, &identity.namespace))
    }

    /// Rules of lockkeeper's kinds whose CEL gives another result, if the cross-check is on.
    fn cel_disagreements(&self, kind: &KindEntry, object: &Value, settings: &Settings) -> Findings {
        let name = kind_name(object);
        let (Some(cross_check), Some(rules)) = (&self.cel_cross_check, kind.rules) else {
            return Findings::new();
        };
        if name.group != lockkeeper_api::GROUP {
            return Findings::new();
        }
        let Some(severity) = severity(settings, (EXPRESSION, Action::Enforce), "") else {
            return Findings::new();
        };
        let findings = cross_check.disagreements(name.kind, rules, object);
        findings.into_iter().map(|it| (severity, it)).collect()
    }
}

#[cfg(test)]
mod tests;

//! What is known of each kind, and what is said of its objects.

mod cel_cross_check;
mod decode;
mod schemas;

use self::cel_cross_check::CelCrossCheck;
use self::decode::{check_rules, compute_defaults};
use self::schemas::{KindDefinition, SchemaSource, kueue_schemas, lockkeeper_schemas};
use super::Severity;
use super::cluster_list::ListTarget;
use super::rule_selection::RuleSelection;
use super::source::Identity;
use crate::{Failure, configuration};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::{Action, Config};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::foreign::scheduling::v1beta1;
use lockkeeper_api::{ClusterQueue, Workload};
use lockkeeper_policies::decode_error;
use lockkeeper_policies::defaulting::Defaults;
use lockkeeper_policies::engine::{Exempted, ReviewSubject, Verdict};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::kinds::{self, KindVisitor};
use lockkeeper_policies::registry::{self, UnknownRule};
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::schema::{EXPRESSION, StructuralSchema, metadata};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user_rules::{self, KindName};
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

type Findings = Vec<(Severity, Finding)>;

/// What is said of an object.
#[derive(Default)]
pub(super) struct KindCheckResult {
    pub(super) findings: Findings,
    /// What an exception covers.
    pub(super) exempted: Vec<Exempted>,
    /// Whether everything was asked that there is to ask: an object of the wrong shape is not held against rules.
    pub(super) is_complete: bool,
}

impl KindCheckResult {
    /// Of an object of which not everything was asked.
    fn partial(findings: Findings) -> Self {
        Self {
            findings,
            ..Self::default()
        }
    }

    fn add_verdict(&mut self, verdict: Verdict) {
        let denials = verdict.denials.into_iter();
        let warnings = verdict.warnings.into_iter();
        self.findings
            .extend(denials.map(|it| (Severity::Error, it)));
        self.findings
            .extend(warnings.map(|it| (Severity::Warning, it)));
        self.exempted.extend(verdict.exempted);
    }
}

type RuleFn = fn(&Value, &Context<'_>) -> Result<Verdict, Finding>;

/// What is filled in for an object that is made; nothing if it does not fit its type.
type DefaultFn = fn(&Value, &Context<'_>) -> Defaults;

/// What is known of a kind.
struct KindEntry {
    /// `None` if its schema is all that is known.
    rules: Option<RuleFn>,
    /// `None` if its schema has all its defaults.
    defaulting: Option<DefaultFn>,
    /// What the API server calls it in paths.
    plural: String,
    is_namespaced: bool,
    schema: SchemaSource,
}

/// All kinds that are known, by API version and name.
pub(super) struct KindRegistry {
    kinds: BTreeMap<String, BTreeMap<String, KindEntry>>,
    /// Whether the expressions in schemas are asked.
    evaluates_cel: bool,
    /// Whether they are asked in both ways, and those of rules held against the rules.
    cel_cross_check: Option<CelCrossCheck>,
    selection: RuleSelection,
}

/// The settings of a configuration. What other projects enforce by themselves on a cluster is on here: there
/// is no cluster. What a cluster only notes, since objects come to it one by one, is warned of: here all that
/// belongs together is at hand.
pub(super) fn settings(
    mut config: Config,
    user_rules: Arc<user_rules::UserRules>,
    choice: &RuleSelection,
) -> Result<Settings, UnknownRule> {
    for (id, action) in offline_actions() {
        let actions = &mut config.rules.actions;
        actions.entry(id.to_owned()).or_insert(action);
    }
    // The names in it are checked before any are taken away.
    registry::settings_with(&config, Arc::clone(&user_rules))?;
    choice.apply(&mut config);
    let settings = registry::settings_with(&config, user_rules)?;
    Ok(settings.with_time(configuration::unix_now_seconds()))
}

/// The actions of rules that are others here. What is off for some kinds only has there the action of the rest.
fn offline_actions() -> BTreeMap<&'static str, Action> {
    let mut least = BTreeMap::new();
    for rule in registry::all() {
        let action: &mut Action = least.entry(rule.id).or_insert(rule.action);
        if *action == Action::Off {
            *action = rule.action;
        }
    }
    least
        .into_iter()
        .map(|(id, action)| match action {
            Action::Off => (id, Action::Enforce),
            Action::Audit => (id, Action::Warn),
            given => (id, given),
        })
        .collect()
}

/// How bad findings of a rule with this default are in a namespace; `None` if nobody wants to know.
pub(super) fn severity(
    settings: &Settings,
    (id, default): (&str, Action),
    namespace: &str,
) -> Option<Severity> {
    let namespace = Some(namespace).filter(|it| !it.is_empty());
    match settings.action(id, default, namespace) {
        Action::Enforce => Some(Severity::Error),
        Action::Warn => Some(Severity::Warning),
        Action::Audit | Action::Off => None,
    }
}

impl KindVisitor for KindRegistry {
    fn kind<T: ValidatedKind>(&mut self) {
        self.add_version::<T>(&T::version(&()));
    }
}

impl KindRegistry {
    /// Of the rules, only those that are chosen are asked.
    pub(super) fn new(choice: &RuleSelection) -> Result<Self, Failure> {
        let mut known = Self {
            kinds: BTreeMap::new(),
            evaluates_cel: choice.includes(EXPRESSION),
            cel_cross_check: None,
            selection: choice.clone(),
        };
        kinds::visit(&mut known);
        known.add_version::<v1beta1::Workload>(v1beta1::EQUIVALENT_VERSION);
        known.add_version::<v1beta1::PodGroup>(v1beta1::EQUIVALENT_VERSION);
        for (of, schema) in kueue_schemas().chain(lockkeeper_schemas()?) {
            known.add_schema(of, schema);
        }
        known.add_defaults::<ClusterQueue>();
        known.add_defaults::<Workload>();
        known.add_defaults::<PriorityClass>();
        Ok(known)
    }

    /// Defaults of a kind besides those of its schema that a person would write into a file as well. Jobs are not
    /// among them: suspending one is for when it is made, not each time its file is applied.
    fn add_defaults<T: ValidatedKind>(&mut self) {
        let version = T::api_version(&()).into_owned();
        let kinds = self.kinds.get_mut(&version);
        if let Some(kind) = kinds.and_then(|it| it.get_mut(&*T::kind(&()))) {
            kind.defaulting = Some(compute_defaults::<T>);
        }
    }

    /// The object with everything filled in that is not given.
    pub(super) fn with_defaults(&self, object: &Value, context: &Context<'_>) -> Value {
        let mut filled = object.clone();
        let Some(kind) = self.find(object) else {
            return filled;
        };
        if let Some(structure) = kind.schema.get() {
            structure.apply_defaults(&mut filled);
        }
        if let Some(filling) = kind.defaulting {
            for it in filling(&filled, context).items() {
                it.apply(&mut filled);
            }
        }
        filled
    }

    /// Expressions are asked in both ways from now on, and rules as well.
    pub(super) fn enable_cel_cross_check(&mut self) -> Result<(), Failure> {
        self.cel_cross_check = self.evaluates_cel.then(CelCrossCheck::new).transpose()?;
        Ok(())
    }

    /// A kind that has the same fields in another version.
    fn add_version<T: ValidatedKind>(&mut self, version: &str) {
        let group = T::group(&());
        let version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let mut rules = T::rules().iter();
        let takes = |id: &str| self.selection.includes(id);
        let is_asked = takes(decode_error::ID) || rules.any(|it| takes(it.id));
        let kind = KindEntry {
            rules: is_asked.then_some(check_rules::<T>),
            defaulting: None,
            plural: T::plural(&()).into_owned(),
            is_namespaced: T::NAMESPACED,
            schema: SchemaSource::None,
        };
        let kinds = self.kinds.entry(version).or_default();
        kinds.insert(T::kind(&()).into_owned(), kind);
    }

    /// The schema of a kind, which may have no rules.
    fn add_schema(&mut self, of: KindDefinition, schema: SchemaSource) {
        let kinds = self.kinds.entry(of.version).or_default();
        let kind = kinds.entry(of.kind).or_insert(KindEntry {
            rules: None,
            defaulting: None,
            plural: of.plural,
            is_namespaced: of.is_namespaced,
            schema: SchemaSource::None,
        });
        kind.schema = schema;
    }

    /// What is said of an object whose kind is not known: nothing, unless it is nearly one that is.
    fn suggest_kind(&self, object: &Value) -> Option<Findings> {
        let asked = object.get("kind").and_then(Value::as_str)?;
        let found = match object.get("apiVersion").and_then(Value::as_str) {
            None => {
                let mut versions = self.kinds.iter();
                let (version, _) = versions.find(|(_, kinds)| kinds.contains_key(asked))?;
                let reason = format!("it is missing; give one, such as {version}");
                Finding::decode_error(FieldPath::new("apiVersion"), None, &reason)
            }
            Some(version) => {
                let mut kinds = self.kinds.get(version)?.keys();
                let kind = kinds.find(|it| it.eq_ignore_ascii_case(asked))?;
                let reason = format!("there is no such kind; did you mean {kind}?");
                let value = Value::from(asked);
                Finding::decode_error(FieldPath::new("kind"), Some(&value), &reason)
            }
        };
        Some(vec![(Severity::Error, found)])
    }

    /// All kinds as a cluster is asked for them: by group and kind, the newest version first.
    pub(super) fn list_targets(&self) -> Vec<ListTarget<'_>> {
        let mut all: Vec<ListTarget<'_>> = Vec::new();
        for (version, kinds) in &self.kinds {
            all.extend(kinds.iter().map(|(kind, it)| ListTarget {
                version,
                kind,
                plural: &it.plural,
            }));
        }
        all.sort_by_key(|it| (it.group(), it.kind, Reverse(it.version)));
        all
    }

    fn find(&self, object: &Value) -> Option<&KindEntry> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        self.kinds.get(text("apiVersion")?)?.get(text("kind")?)
    }

    /// The schema of an object's kind, if both are known.
    pub(super) fn structure(&self, object: &Value) -> Option<&StructuralSchema> {
        self.find(object)?.schema.get()
    }

    /// What is said of an object; `None` if its kind is not known.
    pub(super) fn check(
        &self,
        mut object: Value,
        identity: &Identity,
        context: &Context<'_>,
    ) -> Option<KindCheckResult> {
        let Some(kind) = self.find(&object) else {
            return self
                .suggest_kind(&object)
                .map(KindCheckResult::partial)
                .or_else(|| {
                    // Only a user knows such a kind.
                    let rules = &context.settings.user_rules;
                    rules.for_kind(kind_name(&object)).next()?;
                    let mut judgement = KindCheckResult {
                        is_complete: true,
                        ..KindCheckResult::default()
                    };
                    judgement.add_verdict(apply_user_rules(
                        Verdict::default(),
                        &object,
                        context.settings,
                    ));
                    Some(judgement)
                });
        };
        let mut found = Vec::new();
        if let Some(structure) = kind.schema.get() {
            let is_whole = self.validate_schema(structure, kind, &mut object, |finding| {
                let of = (&*finding.rule, Action::Enforce);
                if let Some(severity) = severity(context.settings, of, &identity.namespace) {
                    found.push((severity, finding));
                }
            });
            if !is_whole {
                return Some(KindCheckResult::partial(found));
            }
        }
        let mut judgement = KindCheckResult::partial(found);
        let by_users = apply_user_rules(Verdict::default(), &object, context.settings);
        // Rules read the newer version; what they find is told of the fields that are there.
        let moved = kueue::upgrade(&mut object);
        let kind = self.find(&object).unwrap_or(kind);
        judgement
            .findings
            .extend(self.cel_disagreements(kind, &object, context.settings));
        let rules = kind.rules.map(|rules| rules(&object, context));
        match rules.unwrap_or_else(|| Ok(Verdict::default())) {
            Ok(verdict) => {
                judgement.add_verdict(verdict);
                for (_, finding) in &mut judgement.findings {
                    restore_field_path(finding, &moved);
                }
                judgement.add_verdict(by_users);
                judgement.is_complete = true;
            }
            // What has no type is held against no rule, as in the webhook.
            Err(misfit) => judgement.findings.push((Severity::Error, misfit)),
        }
        Some(judgement)
    }

    /// What rules of lockkeeper's kinds say otherwise in Kubernetes' CEL, if that is to be verified.
    fn cel_disagreements(&self, kind: &KindEntry, object: &Value, settings: &Settings) -> Findings {
        let name = kind_name(object);
        let (Some(twice), Some(rules)) = (&self.cel_cross_check, kind.rules) else {
            return Findings::new();
        };
        if name.group != lockkeeper_api::GROUP {
            return Findings::new();
        }
        let Some(severity) = severity(settings, (EXPRESSION, Action::Enforce), "") else {
            return Findings::new();
        };
        let found = twice.disagreements(name.kind, rules, object);
        found.into_iter().map(|it| (severity, it)).collect()
    }

    /// Asks the schema, and fills in its defaults. Whether the object has the right shape.
    fn validate_schema(
        &self,
        structure: &StructuralSchema,
        kind: &KindEntry,
        object: &mut Value,
        mut tell: impl FnMut(Finding),
    ) -> bool {
        structure.prune(object).into_iter().for_each(&mut tell);
        structure.apply_defaults(object);
        let mut wrong = metadata(object, kind.is_namespaced);
        // A file need not say where it will be applied.
        let namespace = FieldPath::new("metadata").field("namespace");
        wrong.retain(|it| !kind.is_namespaced || it.field != namespace);
        wrong.extend(if self.evaluates_cel {
            structure.check(object, None)
        } else {
            structure.check_shape(object, None)
        });
        if self.cel_cross_check.is_some() {
            wrong.extend(structure.verify(object));
        }
        let is_whole = wrong.is_empty();
        wrong.into_iter().for_each(tell);
        is_whole
    }
}

/// Tells of a field by the name that it had before the object was changed.
fn restore_field_path(finding: &mut Finding, moved: &[kueue::MovedField]) {
    let pointer = finding.field.pointer();
    if let Some(it) = moved.iter().find(|it| it.to == pointer) {
        let names = it.from.split('/').skip(1);
        finding.field = names.fold(FieldPath::default(), FieldPath::named);
    }
}

/// Adds what the rules of users say.
fn apply_user_rules(mut verdict: Verdict, object: &Value, settings: &Settings) -> Verdict {
    let (kind, rules) = (kind_name(object), &settings.user_rules);
    let subject = ReviewSubject::Create(object);
    user_rules::review(rules, kind, &subject, settings, &mut verdict);
    verdict
}

fn kind_name(object: &Value) -> KindName<'_> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    KindName::from_api_version(text("apiVersion"), text("kind"))
}

#[cfg(test)]
mod tests {
    use super::{KindRegistry, RuleSelection, SchemaSource};

    #[test]
    fn kind_registry_parses_every_schema() {
        let Ok(known) = KindRegistry::new(&RuleSelection::default()) else {
            panic!("the schemas can be listed");
        };
        let mut count = 0;
        for (version, kinds) in &known.kinds {
            for (name, kind) in kinds
                .iter()
                .filter(|(_, it)| !matches!(it.schema, SchemaSource::None))
            {
                assert!(kind.schema.get().is_some(), "{version} {name}");
                count += 1;
            }
        }
        assert_eq!(count, 17);
    }
}

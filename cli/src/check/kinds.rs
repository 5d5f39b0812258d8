//! What is known of each kind, and what is said of its objects.

mod schemas;
mod twice;
mod typed;

use self::schemas::{Definition, Schema, own_schemas, schemas_of_kueue};
use self::twice::Twice;
use self::typed::{by_defaults, by_rules};
use super::Severity;
use super::choice::Choice;
use super::cluster::Listing;
use super::source::Identity;
use crate::{Failure, configuration};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::{Action, Config};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::ElasticQuota;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::foreign::scheduling::{self, v1beta1};
use lockkeeper_api::{ClusterQueue, Cohort, JobSet, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_policies::defaulting::Defaults;
use lockkeeper_policies::engine::{Excused, Subject, Verdict};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::guarded::Guarded;
use lockkeeper_policies::registry::{self, UnknownRule};
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::structure::{EXPRESSION, Structure, metadata};
use lockkeeper_policies::undecodable;
use lockkeeper_policies::user::{self, KindName};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

type Found = Vec<(Severity, Finding)>;

/// What is said of an object.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) found: Found,
    /// What an exception covers.
    pub(super) excused: Vec<Excused>,
    /// Whether everything was asked that there is to ask: an object of the wrong shape is not held against rules.
    pub(super) is_complete: bool,
}

impl Judgement {
    /// Of an object of which not everything was asked.
    fn partial(found: Found) -> Self {
        Self {
            found,
            ..Self::default()
        }
    }

    fn add(&mut self, verdict: Verdict) {
        let denials = verdict.denials.into_iter();
        let warnings = verdict.warnings.into_iter();
        self.found.extend(denials.map(|it| (Severity::Error, it)));
        self.found
            .extend(warnings.map(|it| (Severity::Warning, it)));
        self.excused.extend(verdict.excused);
    }
}

type Rules = fn(&Value, &Context<'_>) -> Result<Verdict, Finding>;

/// What is filled in for an object that is made; nothing if it does not fit its type.
type Filling = fn(&Value, &Context<'_>) -> Defaults;

/// What is known of a kind.
struct Kind {
    /// `None` if its schema is all that is known.
    rules: Option<Rules>,
    /// `None` if its schema has all its defaults.
    filling: Option<Filling>,
    /// What the API server calls it in paths.
    plural: String,
    is_namespaced: bool,
    schema: Schema,
}

/// All kinds that are known, by API version and name.
pub(super) struct Known {
    kinds: BTreeMap<String, BTreeMap<String, Kind>>,
    /// Whether the expressions in schemas are asked.
    asks_expressions: bool,
    /// Whether they are asked in both ways, and those of rules held against the rules.
    verifies: Option<Twice>,
    choice: Choice,
}

/// The settings of a configuration. What other projects enforce by themselves on a cluster is on here: there
/// is no cluster. What a cluster only notes, since objects come to it one by one, is warned of: here all that
/// belongs together is at hand.
pub(super) fn settings(
    mut config: Config,
    user_rules: Arc<user::Rules>,
    choice: &Choice,
) -> Result<Settings, UnknownRule> {
    for (id, action) in actions_here() {
        let actions = &mut config.rules.actions;
        actions.entry(id.to_owned()).or_insert(action);
    }
    // The names in it are checked before any are taken away.
    registry::settings_with(&config, Arc::clone(&user_rules))?;
    choice.apply(&mut config);
    let settings = registry::settings_with(&config, user_rules)?;
    Ok(settings.at(configuration::seconds_now()))
}

/// The actions of rules that are others here. What is off for some kinds only has there the action of the rest.
fn actions_here() -> BTreeMap<&'static str, Action> {
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

impl Known {
    /// Of the rules, only those that are chosen are asked.
    pub(super) fn new(choice: &Choice) -> Result<Self, Failure> {
        let mut known = Self {
            kinds: BTreeMap::new(),
            asks_expressions: choice.takes(EXPRESSION),
            verifies: None,
            choice: choice.clone(),
        };
        known.add::<ClusterQueue>();
        known.add::<Cohort>();
        known.add::<ResourceFlavor>();
        known.add::<LocalQueue>();
        known.add::<Workload>();
        known.add::<PriorityClass>();
        known.add::<Pod>();
        known.add::<Job>();
        known.add::<JobSet>();
        known.add::<kueue::ClusterQueue>();
        known.add::<kueue::Cohort>();
        known.add::<kueue::ResourceFlavor>();
        known.add::<kueue::LocalQueue>();
        known.add::<kueue::Workload>();
        known.add::<scheduling::Workload>();
        known.add::<scheduling::PodGroup>();
        known.add::<v1beta1::Workload>();
        known.add::<v1beta1::PodGroup>();
        known.add_as::<v1beta1::Workload>(v1beta1::ALSO);
        known.add_as::<v1beta1::PodGroup>(v1beta1::ALSO);
        known.add::<ElasticQuota>();
        for (of, schema) in schemas_of_kueue().chain(own_schemas()?) {
            known.add_schema(of, schema);
        }
        known.add_filling::<ClusterQueue>();
        known.add_filling::<Workload>();
        known.add_filling::<PriorityClass>();
        Ok(known)
    }

    /// Defaults of a kind besides those of its schema that a person would write into a file as well. Jobs are not
    /// among them: suspending one is for when it is made, not each time its file is applied.
    fn add_filling<T: Guarded>(&mut self) {
        let version = T::api_version(&()).into_owned();
        let kinds = self.kinds.get_mut(&version);
        if let Some(kind) = kinds.and_then(|it| it.get_mut(&*T::kind(&()))) {
            kind.filling = Some(by_defaults::<T>);
        }
    }

    /// The object with everything filled in that is not given.
    pub(super) fn filled(&self, object: &Value, context: &Context<'_>) -> Value {
        let mut filled = object.clone();
        let Some(kind) = self.of(object) else {
            return filled;
        };
        if let Some(structure) = kind.schema.get() {
            structure.fill(&mut filled);
        }
        if let Some(filling) = kind.filling {
            for it in filling(&filled, context).items() {
                it.apply(&mut filled);
            }
        }
        filled
    }

    /// Expressions are asked in both ways from now on, and rules as well.
    pub(super) fn verify_expressions(&mut self) -> Result<(), Failure> {
        self.verifies = self.asks_expressions.then(Twice::new).transpose()?;
        Ok(())
    }

    fn add<T: Guarded>(&mut self) {
        self.add_as::<T>(&T::version(&()));
    }

    /// A kind that has the same fields in another version.
    fn add_as<T: Guarded>(&mut self, version: &str) {
        let group = T::group(&());
        let version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let mut rules = T::rules().iter();
        let takes = |id: &str| self.choice.takes(id);
        let is_asked = takes(undecodable::ID) || rules.any(|it| takes(it.id));
        let kind = Kind {
            rules: is_asked.then_some(by_rules::<T>),
            filling: None,
            plural: T::plural(&()).into_owned(),
            is_namespaced: T::NAMESPACED,
            schema: Schema::None,
        };
        let kinds = self.kinds.entry(version).or_default();
        kinds.insert(T::kind(&()).into_owned(), kind);
    }

    /// The schema of a kind, which may have no rules.
    fn add_schema(&mut self, of: Definition, schema: Schema) {
        let kinds = self.kinds.entry(of.version).or_default();
        let kind = kinds.entry(of.kind).or_insert(Kind {
            rules: None,
            filling: None,
            plural: of.plural,
            is_namespaced: of.is_namespaced,
            schema: Schema::None,
        });
        kind.schema = schema;
    }

    /// What is said of an object whose kind is not known: nothing, unless it is nearly one that is.
    fn doubt(&self, object: &Value) -> Option<Found> {
        let asked = object.get("kind").and_then(Value::as_str)?;
        let found = match object.get("apiVersion").and_then(Value::as_str) {
            None => {
                let mut versions = self.kinds.iter();
                let (version, _) = versions.find(|(_, kinds)| kinds.contains_key(asked))?;
                let reason = format!("it is missing; give one, such as {version}");
                Finding::undecodable(FieldPath::new("apiVersion"), None, &reason)
            }
            Some(version) => {
                let mut kinds = self.kinds.get(version)?.keys();
                let kind = kinds.find(|it| it.eq_ignore_ascii_case(asked))?;
                let reason = format!("there is no such kind; did you mean {kind}?");
                let value = Value::from(asked);
                Finding::undecodable(FieldPath::new("kind"), Some(&value), &reason)
            }
        };
        Some(vec![(Severity::Error, found)])
    }

    /// All kinds as a cluster is asked for them: by group and kind, the newest version first.
    pub(super) fn listings(&self) -> Vec<Listing<'_>> {
        let mut all: Vec<Listing<'_>> = Vec::new();
        for (version, kinds) in &self.kinds {
            all.extend(kinds.iter().map(|(kind, it)| Listing {
                version,
                kind,
                plural: &it.plural,
            }));
        }
        all.sort_by_key(|it| (it.group(), it.kind, Reverse(it.version)));
        all
    }

    fn of(&self, object: &Value) -> Option<&Kind> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        self.kinds.get(text("apiVersion")?)?.get(text("kind")?)
    }

    /// The schema of an object's kind, if both are known.
    pub(super) fn structure(&self, object: &Value) -> Option<&Structure> {
        self.of(object)?.schema.get()
    }

    /// What is said of an object; `None` if its kind is not known.
    pub(super) fn judge(
        &self,
        mut object: Value,
        identity: &Identity,
        context: &Context<'_>,
    ) -> Option<Judgement> {
        let Some(kind) = self.of(&object) else {
            return self.doubt(&object).map(Judgement::partial).or_else(|| {
                // Only a user knows such a kind.
                let rules = &context.settings.user_rules;
                rules.about(kind_name(&object)).next()?;
                let mut judgement = Judgement {
                    is_complete: true,
                    ..Judgement::default()
                };
                judgement.add(with_users(Verdict::default(), &object, context.settings));
                Some(judgement)
            });
        };
        let mut found = Vec::new();
        if let Some(structure) = kind.schema.get() {
            let is_whole = self.ask(structure, kind, &mut object, |finding| {
                let of = (&*finding.rule, Action::Enforce);
                if let Some(severity) = severity(context.settings, of, &identity.namespace) {
                    found.push((severity, finding));
                }
            });
            if !is_whole {
                return Some(Judgement::partial(found));
            }
        }
        let mut judgement = Judgement::partial(found);
        let by_users = with_users(Verdict::default(), &object, context.settings);
        // Rules read the newer version; what they find is told of the fields that are there.
        let moved = kueue::upgrade(&mut object);
        let kind = self.of(&object).unwrap_or(kind);
        judgement
            .found
            .extend(self.said_otherwise(kind, &object, context.settings));
        let rules = kind.rules.map(|rules| rules(&object, context));
        match rules.unwrap_or_else(|| Ok(Verdict::default())) {
            Ok(verdict) => {
                judgement.add(verdict);
                for (_, finding) in &mut judgement.found {
                    put_back(finding, &moved);
                }
                judgement.add(by_users);
                judgement.is_complete = true;
            }
            // What has no type is held against no rule, as in the webhook.
            Err(misfit) => judgement.found.push((Severity::Error, misfit)),
        }
        Some(judgement)
    }

    /// What rules of lockkeeper's kinds say otherwise in Kubernetes' CEL, if that is to be verified.
    fn said_otherwise(&self, kind: &Kind, object: &Value, settings: &Settings) -> Found {
        let name = kind_name(object);
        let (Some(twice), Some(rules)) = (&self.verifies, kind.rules) else {
            return Found::new();
        };
        if name.group != lockkeeper_api::GROUP {
            return Found::new();
        }
        let Some(severity) = severity(settings, (EXPRESSION, Action::Enforce), "") else {
            return Found::new();
        };
        let found = twice.differing(name.kind, rules, object);
        found.into_iter().map(|it| (severity, it)).collect()
    }

    /// Asks the schema, and fills in its defaults. Whether the object has the right shape.
    fn ask(
        &self,
        structure: &Structure,
        kind: &Kind,
        object: &mut Value,
        mut tell: impl FnMut(Finding),
    ) -> bool {
        structure.prune(object).into_iter().for_each(&mut tell);
        structure.fill(object);
        let mut wrong = metadata(object, kind.is_namespaced);
        // A file need not say where it will be applied.
        let namespace = FieldPath::new("metadata").field("namespace");
        wrong.retain(|it| !kind.is_namespaced || it.field != namespace);
        wrong.extend(if self.asks_expressions {
            structure.check(object, None)
        } else {
            structure.shape(object, None)
        });
        if self.verifies.is_some() {
            wrong.extend(structure.verify(object));
        }
        let is_whole = wrong.is_empty();
        wrong.into_iter().for_each(tell);
        is_whole
    }
}

/// Tells of a field by the name that it had before the object was changed.
fn put_back(finding: &mut Finding, moved: &[kueue::Moved]) {
    let pointer = finding.field.pointer();
    if let Some(it) = moved.iter().find(|it| it.to == pointer) {
        let names = it.from.split('/').skip(1);
        finding.field = names.fold(FieldPath::default(), FieldPath::named);
    }
}

/// Adds what the rules of users say.
fn with_users(mut verdict: Verdict, object: &Value, settings: &Settings) -> Verdict {
    let (kind, rules) = (kind_name(object), &settings.user_rules);
    let subject = Subject::Create(object);
    user::review(rules, kind, &subject, settings, &mut verdict);
    verdict
}

fn kind_name(object: &Value) -> KindName<'_> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    KindName::of(text("apiVersion"), text("kind"))
}

#[cfg(test)]
mod tests {
    use super::{Choice, Known, Schema};

    #[test]
    fn every_schema_can_be_read() {
        let Ok(known) = Known::new(&Choice::default()) else {
            panic!("the schemas can be listed");
        };
        let mut count = 0;
        for (version, kinds) in &known.kinds {
            for (name, kind) in kinds
                .iter()
                .filter(|(_, it)| !matches!(it.schema, Schema::None))
            {
                assert!(kind.schema.get().is_some(), "{version} {name}");
                count += 1;
            }
        }
        assert_eq!(count, 17);
    }
}

//! What is known of each kind, and what is said of its objects.

use super::Severity;
use crate::{Failure, configuration};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::{Action, Config};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::ElasticQuota;
use lockkeeper_api::foreign::{kueue, scheduling};
use lockkeeper_api::{ClusterQueue, Cohort, JobSet, ResourceFlavor, Workload};
use lockkeeper_policies::engine::{Excused, Subject, Verdict, review};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::guarded::Guarded;
use lockkeeper_policies::registry::{self, UnknownRule};
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::structure::{Structure, metadata};
use lockkeeper_policies::user::{self, KindName};
use lockkeeper_policies::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

type Found = Vec<(Severity, Finding)>;
type Rules = fn(&Value, &Context<'_>) -> Result<Verdict, Finding>;

/// What is said of an object.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) found: Found,
    /// What an exception covers.
    pub(super) excused: Vec<Excused>,
}

impl Judgement {
    fn of(found: Found) -> Self {
        Self {
            found,
            excused: Vec::new(),
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

/// What is known of a kind.
struct Kind {
    /// `None` if its schema is all that is known.
    rules: Option<Rules>,
    is_namespaced: bool,
    schema: Schema,
}

/// The schema of a kind, where it is at hand.
enum Schema {
    None,
    Own(Box<Structure>),
    BuiltIn(&'static Structure),
}

impl Schema {
    fn get(&self) -> Option<&Structure> {
        match self {
            Self::None => None,
            Self::Own(structure) => Some(structure),
            Self::BuiltIn(structure) => Some(structure),
        }
    }
}

/// All kinds that are known, by API version and name.
pub(super) struct Known {
    kinds: BTreeMap<(String, String), Kind>,
}

/// The settings of a configuration. What other projects enforce by themselves on a cluster is on here: there
/// is no cluster.
pub(super) fn settings(
    mut config: Config,
    user_rules: Arc<user::Rules>,
) -> Result<Settings, UnknownRule> {
    for rule in registry::all() {
        if rule.action == Action::Off {
            let actions = &mut config.rules.actions;
            actions.entry(rule.id.to_owned()).or_insert(Action::Enforce);
        }
    }
    let settings = registry::settings_with(&config, user_rules)?;
    Ok(settings.at(configuration::seconds_now()))
}

impl Known {
    pub(super) fn new() -> Result<Self, Failure> {
        let mut known = Self {
            kinds: BTreeMap::new(),
        };
        known.add::<ClusterQueue>();
        known.add::<Cohort>();
        known.add::<ResourceFlavor>();
        known.add::<Workload>();
        known.add::<PriorityClass>();
        known.add::<Pod>();
        known.add::<Job>();
        known.add::<JobSet>();
        known.add::<kueue::ClusterQueue>();
        known.add::<kueue::Cohort>();
        known.add::<kueue::ResourceFlavor>();
        known.add::<kueue::Workload>();
        known.add::<scheduling::Workload>();
        known.add::<scheduling::PodGroup>();
        known.add::<ElasticQuota>();
        for (kind, version) in lockkeeper_policies::kueue::kinds() {
            let structure = lockkeeper_policies::kueue::structure(kind, version);
            known.add_schema(
                (format!("{}/{version}", kueue::GROUP), kind.to_owned()),
                matches!(kind, "LocalQueue" | "Workload"),
                structure.map_or(Schema::None, Schema::BuiltIn),
            );
        }
        let version = format!("{}/{}", lockkeeper_api::GROUP, lockkeeper_api::VERSION);
        for (kind, is_namespaced, structure) in own_schemas()? {
            let schema = Schema::Own(Box::new(structure));
            known.add_schema((version.clone(), kind), is_namespaced, schema);
        }
        Ok(known)
    }

    fn add<T: Guarded>(&mut self) {
        let name = (T::api_version(&()).into_owned(), T::kind(&()).into_owned());
        let kind = Kind {
            rules: Some(by_rules::<T>),
            is_namespaced: T::NAMESPACED,
            schema: Schema::None,
        };
        self.kinds.insert(name, kind);
    }

    /// The schema of a kind, which may have no rules.
    fn add_schema(&mut self, name: (String, String), is_namespaced: bool, schema: Schema) {
        let kind = self.kinds.entry(name).or_insert(Kind {
            rules: None,
            is_namespaced,
            schema: Schema::None,
        });
        kind.schema = schema;
    }

    /// What is said of an object whose kind is not known: nothing, unless it is nearly one that is.
    fn doubt(&self, object: &Value) -> Option<Found> {
        let asked = object.get("kind").and_then(Value::as_str)?;
        let found = match object.get("apiVersion").and_then(Value::as_str) {
            None => {
                let mut versions = self.kinds.keys().filter(|(_, kind)| kind == asked);
                let version = &versions.next()?.0;
                let reason = format!("it is missing; give one, such as {version}");
                Finding::undecodable(FieldPath::new("apiVersion"), None, &reason)
            }
            Some(version) => {
                let mut kinds = self.kinds.keys().filter(|(it, _)| it == version);
                let (_, kind) = kinds.find(|(_, kind)| kind.eq_ignore_ascii_case(asked))?;
                let reason = format!("there is no such kind; did you mean {kind}?");
                let value = Value::from(asked);
                Finding::undecodable(FieldPath::new("kind"), Some(&value), &reason)
            }
        };
        Some(vec![(Severity::Error, found)])
    }

    /// What is said of an object; `None` if its kind is not known.
    pub(super) fn judge(
        &self,
        object: &Value,
        settings: &Settings,
        world: &dyn World,
    ) -> Option<Judgement> {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = (text("apiVersion").to_owned(), text("kind").to_owned());
        let Some(kind) = self.kinds.get(&name) else {
            return self.doubt(object).map(Judgement::of).or_else(|| {
                // Only a user knows such a kind.
                let is_known = settings
                    .user_rules
                    .about(kind_name(object))
                    .next()
                    .is_some();
                is_known.then(|| {
                    let mut judgement = Judgement::default();
                    judgement.add(with_users(Verdict::default(), object, settings));
                    judgement
                })
            });
        };
        let mut findings = Vec::new();
        let mut object = object.clone();
        if let Some(structure) = kind.schema.get() {
            let errors = |all: Vec<Finding>| all.into_iter().map(|it| (Severity::Error, it));
            findings.extend(errors(structure.prune(&mut object)));
            structure.fill(&mut object);
            let mut wrong = metadata(&object, kind.is_namespaced);
            // A file need not say where it will be applied.
            let namespace = FieldPath::new("metadata").field("namespace");
            wrong.retain(|it| !kind.is_namespaced || it.field != namespace);
            wrong.extend(structure.check(&object, None));
            if !wrong.is_empty() {
                findings.extend(errors(wrong));
                return Some(Judgement::of(findings));
            }
        }
        let context = Context { world, settings };
        let mut judgement = Judgement::of(findings);
        match kind
            .rules
            .map_or_else(|| Ok(Verdict::default()), |rules| rules(&object, &context))
        {
            Ok(verdict) => judgement.add(with_users(verdict, &object, settings)),
            // What has no type is held against no rule, as in the webhook.
            Err(finding) => judgement.found.push((Severity::Error, finding)),
        }
        Some(judgement)
    }
}

/// The schemas of lockkeeper's kinds, as the definitions have them, and whether they are in namespaces.
fn own_schemas() -> Result<Vec<(String, bool, Structure)>, Failure> {
    let mut all = Vec::new();
    for definition in lockkeeper_crdgen::definitions() {
        let spec = definition.spec;
        let schemas = spec.versions.into_iter().filter_map(|it| it.schema);
        for schema in schemas.filter_map(|it| it.open_api_v3_schema) {
            let structure = Structure::new(&serde_json::to_value(schema)?)?;
            let is_namespaced = spec.scope == "Namespaced";
            all.push((spec.names.kind.clone(), is_namespaced, structure));
        }
    }
    Ok(all)
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

fn by_rules<T: Guarded>(object: &Value, context: &Context<'_>) -> Result<Verdict, Finding> {
    let decoded: Result<T, _> = serde_path_to_error::deserialize(object);
    let object = match decoded {
        Ok(object) => object,
        Err(error) => {
            let reason = error.inner().to_string();
            let path = error.path().iter().fold(FieldPath::default(), |path, it| {
                use serde_path_to_error::Segment;
                match it {
                    Segment::Seq { index } => path.index(*index),
                    Segment::Map { key } => path.named(key.as_str()),
                    Segment::Enum { .. } | Segment::Unknown => path,
                }
            });
            return Err(Finding::undecodable(path, None, &reason));
        }
    };
    Ok(review(&Subject::Create(&object), context))
}

//! The rules that have a CEL form, their results in Rust, and the schemas of their kinds.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::{Action, Config};
use lockkeeper_api::foreign::koordinator::ElasticQuota;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::{ClusterQueue, Cohort, JobSet, LocalQueue, ResourceFlavor, Workload, job_set};
use lockkeeper_policies::cel::CelRule;
use lockkeeper_policies::engine::{ReviewSubject, review};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Change, Context, Layer, RuleInfo};
use lockkeeper_policies::schema::StructuralSchema;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::{Value, json};

/// A rule in Rust, with settings that turn off all others.
pub struct RustRule {
    id: &'static str,
    settings: Settings,
    check: fn(&Self, &Value, Option<&Value>) -> Option<bool>,
}

impl RustRule {
    pub fn new(rule: &RuleInfo) -> Self {
        let mut config = Config::default();
        // The number of findings in a verdict is limited, so the other rules must not report any.
        for other in registry::all() {
            let action = if other.id == rule.id {
                Action::Enforce
            } else {
                Action::Off
            };
            config.rules.actions.insert(other.id.to_owned(), action);
        }
        Self {
            id: rule.id,
            settings: registry::settings(&config).unwrap(),
            check: match rule.kind.as_str() {
                "ClusterQueue" => Self::check::<ClusterQueue>,
                "Cohort" => Self::check::<Cohort>,
                "ResourceFlavor" => Self::check::<ResourceFlavor>,
                "LocalQueue" => Self::check::<LocalQueue>,
                "Workload" => Self::check::<Workload>,
                "Pod" => Self::check::<Pod>,
                "Job" => Self::check::<Job>,
                "JobSet" => Self::check::<JobSet>,
                "ElasticQuota" => Self::check::<ElasticQuota>,
                other => panic!("no kind {other}"),
            },
        }
    }

    /// Whether the rule accepts a created or an updated object. Values that are not objects of the kind have no result.
    pub fn accepts(&self, new: &Value, old: Option<&Value>) -> Option<bool> {
        (self.check)(self, new, old)
    }

    fn check<T: ValidatedKind>(&self, new: &Value, old: Option<&Value>) -> Option<bool> {
        let decode = |it: &Value| serde_json::from_value::<T>(it.clone()).ok();
        let new = decode(new)?;
        let old = match old {
            Some(old) => Some(decode(old)?),
            None => None,
        };
        let index = Index::default();
        let context = Context {
            cluster: &index,
            settings: &self.settings,
        };
        let verdict = match &old {
            Some(old) => review(&ReviewSubject::Update(Change { old, new: &new }), &context),
            None => review(&ReviewSubject::Create(&new), &context),
        };
        Some(!verdict.denials.iter().any(|it| it.rule == self.id))
    }
}

/// The rules with a CEL form, once for each of their kinds. Those of Kueue's kinds are the same.
pub fn rules() -> Vec<RuleInfo> {
    let mut all = registry::all();
    all.retain(|rule| rule.group != kueue::GROUP && !cel_expressions(rule).is_empty());
    all
}

pub fn cel_expressions(rule: &RuleInfo) -> Vec<CelRule> {
    let expressions = rule.layers.iter().filter_map(|layer| match layer {
        Layer::Schema(cel_rules) | Layer::Policy(cel_rules) => Some(cel_rules()),
        _ => None,
    });
    expressions.flatten().collect()
}

/// The schema of a kind with the expressions of one rule, and its validation without expressions.
pub struct Schema {
    pub plain: Value,
    pub shape: StructuralSchema,
    pub of_rule: Option<StructuralSchema>,
    /// Whether the schema has the whole rule. Policies have what exceeds its cost limit.
    pub is_whole: bool,
}

impl Schema {
    /// The schema of one of lockkeeper's kinds; for other kinds, the fields that the examples of a page need.
    pub fn for_rule(rule: &RuleInfo) -> Self {
        let all = lockkeeper_crdgen::plain_definitions();
        let own = all
            .into_iter()
            .find(|it| it.spec.names.kind == rule.kind && rule.group == lockkeeper_api::GROUP);
        let plain = own.map_or_else(foreign, |it| root(&serde_json::to_value(it).unwrap()));
        let mut only = plain.clone();
        let mut is_in_schema = false;
        for layer in rule.layers {
            let Layer::Schema(cel_rules) = layer else {
                continue;
            };
            for cel_rule in cel_rules() {
                is_in_schema = true;
                let node = node(&mut only, cel_rule.path);
                let list = node
                    .entry("x-kubernetes-validations")
                    .or_insert_with(|| json!([]));
                list.as_array_mut()
                    .unwrap()
                    .push(json!({"rule": cel_rule.expression, "message": cel_rule.message}));
            }
        }
        Self {
            shape: StructuralSchema::new(&plain).unwrap(),
            is_whole: !rule.layers.iter().any(|it| matches!(it, Layer::Policy(_))),
            of_rule: is_in_schema.then(|| StructuralSchema::new(&only).unwrap()),
            plain,
        }
    }

    /// Whether the API server would evaluate rules on an object.
    pub fn has_valid_shape(&self, object: &Value) -> bool {
        self.shape.check_shape(object, None).is_empty()
    }
}

pub fn root(crd: &Value) -> Value {
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// The fields of Pods, Jobs, JobSets and ElasticQuotas that rules read.
pub fn foreign() -> Value {
    let amounts =
        json!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}});
    let labels = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let text = json!({"type": "string"});
    let owner = json!({"type": "object", "properties": {
        "apiVersion": text, "kind": text, "name": text, "uid": text, "controller": {"type": "boolean"},
    }, "required": ["apiVersion", "kind", "name", "uid"]});
    let owners = json!({"type": "array", "items": owner});
    json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"labels": labels, "ownerReferences": owners, "name": text}, "x-kubernetes-preserve-unknown-fields": true},
        "spec": {"type": "object", "properties": {"min": amounts, "max": amounts, "suspend": {"type": "boolean"}, "managedBy": text, "manualSelector": {"type": "boolean"}}, "x-kubernetes-preserve-unknown-fields": true},
    }})
}

pub fn node<'a>(schema: &'a mut Value, at: &str) -> &'a mut serde_json::Map<String, Value> {
    let mut node = schema;
    for step in at.split('.').filter(|it| !it.is_empty()) {
        let name = step.trim_end_matches("[]");
        node = &mut node["properties"][name];
        if step.ends_with("[]") {
            node = &mut node["items"];
        }
    }
    node.as_object_mut().unwrap()
}

/// The version that objects of a rule's kind are written in.
pub fn version(rule: &RuleInfo) -> &'static str {
    match rule.group.as_str() {
        lockkeeper_api::GROUP => "lockkeeper.dev/v1alpha1",
        "batch" => "batch/v1",
        job_set::GROUP => "jobset.x-k8s.io/v1alpha2",
        _ => "v1",
    }
}

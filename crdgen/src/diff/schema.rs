//! Two schemas, place by place.

use super::bounds::moved;
use super::{Change, Code, Effect, Place, SchemaPath, Stored, junctors, rules};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

mod children;
mod types;

/// What changed from one schema of a version to another.
#[must_use]
pub fn compare(
    definition: &str,
    version: &str,
    old: &JSONSchemaProps,
    new: &JSONSchemaProps,
) -> Vec<Change> {
    let mut walk = Walk {
        definition,
        version,
        changes: Vec::new(),
    };
    let (old, new) = (with_meta(old, new), with_meta(new, old));
    walk.place(&old, &new, &At::default());
    walk.changes
}

/// The schema with what every object has, whether it is said or not; in the words of the other one, where this has none.
fn with_meta(schema: &JSONSchemaProps, other: &JSONSchemaProps) -> JSONSchemaProps {
    let of_type = |name: &str| JSONSchemaProps {
        type_: Some(name.to_owned()),
        ..JSONSchemaProps::default()
    };
    let mut schema = schema.clone();
    let fields = schema.properties.get_or_insert_default();
    for (name, sort) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        let implied = || JSONSchemaProps {
            description: property(other, name).and_then(|it| it.description.clone()),
            ..of_type(sort)
        };
        fields.entry(name.to_owned()).or_insert_with(implied);
    }
    if let Some(metadata) = fields.get_mut("metadata") {
        let names = metadata.properties.get_or_insert_default();
        for name in ["name", "generateName"] {
            names
                .entry(name.to_owned())
                .or_insert_with(|| of_type("string"));
        }
    }
    schema
}

/// Where a walk is.
#[derive(Clone, Debug, Default)]
struct At {
    path: SchemaPath,
    /// The outermost list above whose items cannot be told from each other: all of it counts as changed when one is.
    list: Option<SchemaPath>,
    /// Whether something above speaks of all that is below.
    is_held: bool,
}

impl At {
    fn below(&self, path: SchemaPath, parent: &JSONSchemaProps) -> Self {
        Self {
            path,
            list: self.list.clone(),
            is_held: self.is_held || holds_all(parent),
        }
    }

    /// What has to stay as it is for a stored object to pass.
    fn until(&self) -> Stored {
        Stored::Until(self.list.clone().unwrap_or_else(|| self.path.clone()))
    }
}

/// Whether a place says something of values below it that a new one there may not meet.
fn holds_all(schema: &JSONSchemaProps) -> bool {
    let has_rules = schema
        .x_kubernetes_validations
        .as_ref()
        .is_some_and(|it| !it.is_empty());
    schema.enum_.is_some() || has_rules || junctors::has_any(schema)
}

struct Walk<'a> {
    definition: &'a str,
    version: &'a str,
    changes: Vec<Change>,
}

impl Walk<'_> {
    fn report(
        &mut self,
        path: &SchemaPath,
        code: Code,
        effect: Effect,
        stored: Stored,
        what: String,
    ) {
        let place = Place::Schema(self.version.to_owned(), path.clone());
        self.changes.push(Change {
            effect,
            stored,
            ..Change::new(self.definition, place, code, what)
        });
    }

    fn place(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        self.words(old, new, at);
        if self.kind(old, new, at) {
            self.values(old, new, at);
            self.lists(old, new, at);
            self.required(old, new, at);
            self.rules(old, new, at);
            if is_embedded(old) && is_embedded(new) {
                self.children(&with_meta(old, new), &with_meta(new, old), at);
            } else {
                self.children(old, new, at);
            }
        }
    }

    fn words(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        let mut names = Vec::new();
        let pairs = [
            ("title", old.title != new.title),
            ("description", old.description != new.description),
            ("example", old.example != new.example),
            ("externalDocs", old.external_docs != new.external_docs),
        ];
        names.extend(
            pairs
                .into_iter()
                .filter(|(_, is_other)| *is_other)
                .map(|(name, _)| name),
        );
        if !names.is_empty() {
            let what = format!("the {} reads differently", names.join(" and the "));
            let code = Code::DescriptionChanged;
            self.report(&at.path, code, Effect::Same, Stored::Untouched, what);
        }
    }

    /// What is said of a value by itself.
    fn values(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        for bound in moved(old, new) {
            let is_wider = bound.effect == Effect::Wider;
            let code = if is_wider {
                Code::BoundLoosened
            } else {
                Code::BoundTightened
            };
            self.bound(at, code, bound.effect, bound.what);
        }
        self.choices(old, new, at);
        self.pattern(old, new, at);
        self.format(old, new, at);
        for (name, effect) in junctors::changed(old, new) {
            let is_wider = effect == Effect::Wider;
            let code = if is_wider {
                Code::JunctorLoosened
            } else {
                Code::JunctorChanged
            };
            self.bound(at, code, effect, format!("{name} says something else"));
        }
    }

    /// Something that takes values away, or gives some.
    fn bound(&mut self, at: &At, code: Code, effect: Effect, what: String) {
        let stored = if effect == Effect::Wider {
            Stored::Untouched
        } else {
            at.until()
        };
        self.report(&at.path, code, effect, stored, what);
    }

    fn choices(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        let shown = |all: &[&JSON]| {
            let all: Vec<String> = all.iter().map(|it| it.0.to_string()).collect();
            all.join(", ")
        };
        let (before, after) = match (&old.enum_, &new.enum_) {
            (None, None) => return,
            (Some(_), None) => {
                let what = "any value is accepted, not only some".to_owned();
                return self.bound(at, Code::EnumWidened, Effect::Wider, what);
            }
            (None, Some(after)) => {
                let what = format!(
                    "only {} are accepted",
                    shown(&after.iter().collect::<Vec<_>>())
                );
                return self.bound(at, Code::EnumNarrowed, Effect::Narrower, what);
            }
            (Some(before), Some(after)) => (before, after),
        };
        let gone: Vec<&JSON> = before.iter().filter(|it| !after.contains(it)).collect();
        let come: Vec<&JSON> = after.iter().filter(|it| !before.contains(it)).collect();
        if !come.is_empty() {
            let what = format!("{} is accepted", shown(&come));
            self.bound(at, Code::EnumWidened, Effect::Wider, what);
        }
        if !gone.is_empty() {
            let what = format!("{} is no longer accepted", shown(&gone));
            self.bound(at, Code::EnumNarrowed, Effect::Narrower, what);
        }
    }

    fn pattern(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        match (&old.pattern, &new.pattern) {
            (Some(before), None) => {
                let what = format!("the pattern {before:?} is gone");
                self.bound(at, Code::PatternRemoved, Effect::Wider, what);
            }
            (None, Some(after)) => {
                let what = format!("the pattern {after:?} is new");
                self.bound(at, Code::PatternChanged, Effect::Narrower, what);
            }
            (Some(before), Some(after)) if before != after => {
                let what = format!("the pattern is {after:?}, it was {before:?}");
                self.bound(at, Code::PatternChanged, Effect::Unclear, what);
            }
            _ => {}
        }
    }

    fn format(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        if old.format == new.format {
            return;
        }
        let name = |it: &JSONSchemaProps| it.format.clone().unwrap_or_else(|| "none".to_owned());
        let what = format!("the format is {}, it was {}", name(new), name(old));
        match types::effect_of_format(old, new) {
            Effect::Same => {
                let code = Code::FormatLoosened;
                self.report(&at.path, code, Effect::Same, Stored::Untouched, what);
            }
            Effect::Wider => self.bound(at, Code::FormatLoosened, Effect::Wider, what),
            effect => self.bound(at, Code::FormatChanged, effect, what),
        }
    }

    /// How items are told apart, and objects merged.
    fn lists(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        let list = |it: &JSONSchemaProps| {
            let name = it.x_kubernetes_list_type.as_deref().unwrap_or("atomic");
            match it.x_kubernetes_list_map_keys.as_deref() {
                Some(keys) if !keys.is_empty() => format!("{name} by {}", keys.join(", ")),
                _ => name.to_owned(),
            }
        };
        let (before, after) = (list(old), list(new));
        if before != after {
            let what = format!("the list is {after}, it was {before}");
            let (effect, stored) = match (before.as_str(), after.as_str()) {
                (_, "atomic") => (Effect::Wider, Stored::Untouched),
                ("atomic", _) => (Effect::Narrower, Stored::Duplicates),
                _ => (Effect::Unclear, Stored::Duplicates),
            };
            self.report(&at.path, Code::ListTypeChanged, effect, stored, what);
        }
        let map = |it: &JSONSchemaProps| it.x_kubernetes_map_type.clone();
        let map = |it| map(it).unwrap_or_else(|| "granular".to_owned());
        if map(old) != map(new) {
            let what = format!("the object is {}, it was {}", map(new), map(old));
            let code = Code::MapTypeChanged;
            self.report(&at.path, code, Effect::Same, Stored::Untouched, what);
        }
    }

    fn required(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        let is_in =
            |it: &JSONSchemaProps, name: &String| it.required.iter().flatten().any(|it| it == name);
        for name in new
            .required
            .iter()
            .flatten()
            .filter(|name| !is_in(old, name))
        {
            let path = at.path.field(name);
            let child = property(new, name);
            if child.is_some_and(|it| it.default.is_some()) {
                let code = Code::RequiredWithDefaultAdded;
                let what = "it is required, and has a default".to_owned();
                self.report(&path, code, Effect::Same, Stored::Untouched, what);
                continue;
            }
            let is_new = child.is_some() && !children::may_hold(old, name);
            let code = if is_new {
                Code::RequiredFieldAdded
            } else {
                Code::RequiredAdded
            };
            let what = if is_new {
                "it is new, and required"
            } else {
                "it is required"
            };
            self.report(&path, code, Effect::Narrower, at.until(), what.to_owned());
        }
        for name in old
            .required
            .iter()
            .flatten()
            .filter(|name| !is_in(new, name))
        {
            let what = "it may be left out".to_owned();
            let code = Code::RequiredRemoved;
            self.report(
                &at.path.field(name),
                code,
                Effect::Wider,
                Stored::Untouched,
                what,
            );
        }
    }

    fn rules(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        let of = |it: &JSONSchemaProps| it.x_kubernetes_validations.clone().unwrap_or_default();
        for (code, what) in rules::changed(&of(old), &of(new)) {
            let (effect, stored) = match code {
                Code::TransitionRuleAdded => (Effect::Narrower, Stored::EveryUpdate),
                Code::RuleAdded | Code::RatchetingRuleAdded => (Effect::Narrower, at.until()),
                Code::RuleRemoved => (Effect::Wider, Stored::Untouched),
                _ => (Effect::Same, Stored::Untouched),
            };
            self.report(&at.path, code, effect, stored, what);
        }
    }
}

/// Whether a whole object stands there.
fn is_embedded(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_embedded_resource == Some(true)
}

/// The schema of a field.
fn property<'a>(schema: &'a JSONSchemaProps, name: &str) -> Option<&'a JSONSchemaProps> {
    schema.properties.as_ref().and_then(|it| it.get(name))
}

/// The schema of entries of any name.
fn entries(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(it)) => Some(it),
        _ => None,
    }
}

/// Whether fields that it does not know are kept, whatever they hold.
fn keeps_unknown(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_preserve_unknown_fields == Some(true)
        || schema.additional_properties == Some(JSONSchemaPropsOrBool::Bool(true))
}

fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(it)) => Some(it),
        _ => None,
    }
}

//! Random structural schemas.

use lockkeeper_testkit::Rng;
use serde_json::{Map, Value, json};

use super::branches;
use super::place::Place;
use super::rules;
use super::texts;
use super::values;

/// The deepest place, without the root.
const DEPTH_MAX: usize = 4;

/// Names of fields, some of which CEL writes with escapes.
const NAMES: [&str; 22] = [
    "a",
    "b",
    "c",
    "name",
    "size",
    "items",
    "count",
    "enabled",
    "config",
    "value",
    "labels",
    "int",
    "type",
    "in",
    "namespace",
    "x-y",
    "a.b",
    "a/b",
    "a__b",
    "_x",
    "kind",
    "metadata",
];

/// Generates schemas.
pub struct SchemaGenerator<'a> {
    rng: &'a mut Rng,
    /// Whether some places are not structural or contain wrong keywords.
    has_mistakes: bool,
}

impl<'a> SchemaGenerator<'a> {
    pub fn new(rng: &'a mut Rng, has_mistakes: bool) -> Self {
        Self { rng, has_mistakes }
    }

    /// The schema of a custom resource.
    pub fn root(&mut self) -> Value {
        let place = Place::root();
        let mut properties = Map::new();
        properties.insert("spec".to_owned(), self.object(1, &place.in_object()));
        if self.rng.one_in(2) {
            properties.insert("status".to_owned(), self.object(2, &place.in_object()));
        }
        for name in ["other", "data"] {
            if self.rng.one_in(3) {
                properties.insert(name.to_owned(), self.node(1, &place.in_object()));
            }
        }
        if self.rng.one_in(8) {
            let name = json!({"type": "string", "maxLength": self.rng.range(1, 30)});
            let metadata = json!({"type": "object", "properties": {"name": name}});
            properties.insert("metadata".to_owned(), metadata);
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if self.rng.one_in(3) {
            schema["required"] = json!(["spec"]);
        }
        if self.rng.one_in(12) {
            schema["x-kubernetes-preserve-unknown-fields"] = true.into();
        }
        if self.rng.one_in(4) {
            branches::add(&mut schema, self.rng);
        }
        if self.rng.one_in(2) {
            rules::add(&mut schema, &place, self.rng, self.has_mistakes);
        }
        schema
    }

    fn is_wrong(&mut self) -> bool {
        self.has_mistakes && self.rng.one_in(12)
    }

    fn node(&mut self, depth: usize, place: &Place) -> Value {
        let kinds = if depth >= DEPTH_MAX { 6 } else { 15 };
        let mut schema = match self.rng.below(kinds) {
            0..2 => self.text(),
            2 => self.integer(),
            3 => self.number(),
            4 => json!({"type": "boolean"}),
            5 => self.int_or_string(),
            6..9 => self.object(depth, place),
            9 => self.map(depth, place),
            10..13 => self.list(depth, place),
            13 => self.open(depth, place),
            _ => self.embedded(depth, place),
        };
        self.add_choices(&mut schema);
        if self.rng.one_in(6) {
            schema["nullable"] = true.into();
        }
        if self.rng.one_in(8) {
            branches::add(&mut schema, self.rng);
        }
        if self.rng.one_in(6) {
            rules::add(&mut schema, place, self.rng, self.has_mistakes);
        }
        let has_rules = !schema["x-kubernetes-validations"].is_null();
        if self.rng.one_in(if has_rules { 20 } else { 7 }) {
            schema["default"] = values::value(&schema, self.rng);
        }
        if self.is_wrong() {
            self.break_schema(&mut schema);
        }
        schema
    }

    /// Adds `enum`.
    fn add_choices(&mut self, schema: &mut Value) {
        if schema["type"] == "object" || schema["type"] == "array" || !self.rng.one_in(8) {
            return;
        }
        let mut choices: Vec<Value> = Vec::new();
        for _ in 0..=self.rng.below(3) {
            let choice = values::value(schema, self.rng);
            if !choices.contains(&choice) || self.is_wrong() {
                choices.push(choice);
            }
        }
        schema["enum"] = choices.into();
    }

    fn text(&mut self) -> Value {
        let mut schema = json!({"type": "string"});
        if self.rng.percent(80) {
            schema["maxLength"] = self.rng.range(1, 70).into();
        }
        if self.rng.one_in(8) {
            schema["minLength"] = self.rng.range(0, 3).into();
        }
        match self.rng.below(5) {
            0 => schema["pattern"] = texts::pattern(self.rng).into(),
            1 => schema["format"] = texts::format(self.rng).into(),
            _ => {}
        }
        schema
    }

    fn integer(&mut self) -> Value {
        let mut schema = json!({"type": "integer"});
        if self.rng.one_in(3) {
            schema["format"] = (*self.rng.pick(&["int32", "int64", "int32", "unknown"])).into();
        }
        self.add_bounds(&mut schema);
        if self.rng.one_in(10) {
            schema["multipleOf"] = self.rng.range(1, 4).into();
        }
        schema
    }

    fn number(&mut self) -> Value {
        let mut schema = json!({"type": "number"});
        if self.rng.one_in(3) {
            schema["format"] = (*self.rng.pick(&["float", "double"])).into();
        }
        self.add_bounds(&mut schema);
        if self.rng.one_in(8) {
            schema["multipleOf"] = (*self.rng.pick(&[0.5, 0.1, 2.0, 0.01])).into();
        }
        schema
    }

    fn add_bounds(&mut self, schema: &mut Value) {
        if self.rng.one_in(3) {
            schema["minimum"] = self.rng.range(-2, 3).into();
            if self.rng.one_in(4) {
                schema["exclusiveMinimum"] = true.into();
            }
        }
        if self.rng.one_in(3) {
            schema["maximum"] = self.rng.range(3, 12).into();
            if self.rng.one_in(4) {
                schema["exclusiveMaximum"] = true.into();
            }
        }
    }

    fn int_or_string(&mut self) -> Value {
        let mut schema = json!({"x-kubernetes-int-or-string": true});
        if self.rng.one_in(2) {
            schema["anyOf"] = json!([{"type": "integer"}, {"type": "string"}]);
        }
        if self.rng.one_in(3) {
            schema["pattern"] = "^[0-9]+(\\.[0-9]+)?[A-Za-z%]*$".into();
        }
        if self.rng.one_in(3) {
            schema["maxLength"] = self.rng.range(1, 30).into();
        }
        if self.rng.one_in(4) {
            schema["maximum"] = self.rng.range(3, 12).into();
        }
        schema
    }

    fn object(&mut self, depth: usize, place: &Place) -> Value {
        let mut properties = Map::new();
        for _ in 0..=self.rng.below(4) {
            let name = *self.rng.pick(&NAMES);
            let field = self.node(depth + 1, &place.in_object());
            properties.insert(name.to_owned(), field);
        }
        let mut required: Vec<String> = Vec::new();
        for name in properties.keys() {
            if self.rng.one_in(4) {
                required.push(name.clone());
            }
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if self.rng.one_in(8) {
            let map_type = *self.rng.pick(&["granular", "atomic"]);
            schema["x-kubernetes-map-type"] = map_type.into();
        }
        if self.rng.one_in(10) {
            schema["maxProperties"] = self.rng.range(1, 3).into();
        }
        if self.rng.one_in(15) {
            schema["minProperties"] = 1.into();
        }
        if self.rng.one_in(12) {
            schema["x-kubernetes-preserve-unknown-fields"] = true.into();
        }
        schema
    }

    fn map(&mut self, depth: usize, place: &Place) -> Value {
        let additional = if self.rng.one_in(12) {
            true.into()
        } else {
            self.node(depth + 1, &place.in_object())
        };
        let mut schema = json!({"type": "object", "additionalProperties": additional});
        if self.rng.percent(80) {
            schema["maxProperties"] = self.rng.range(1, 5).into();
        }
        if self.rng.one_in(8) {
            schema["minProperties"] = self.rng.range(1, 2).into();
        }
        schema
    }

    fn list(&mut self, depth: usize, place: &Place) -> Value {
        let mut schema = json!({"type": "array"});
        match self.rng.below(6) {
            0 => {
                schema["x-kubernetes-list-type"] = "set".into();
                schema["items"] = match self.rng.below(4) {
                    0 => self.integer(),
                    1 if self.is_wrong() => self.object(depth + 1, &Place::in_list()),
                    1 => self.int_or_string(),
                    _ => self.text(),
                };
            }
            1 | 2 => self.list_with_keys(&mut schema, depth, place),
            3 => {
                schema["x-kubernetes-list-type"] = "atomic".into();
                schema["items"] = self.node(depth + 1, &Place::in_list());
            }
            _ => schema["items"] = self.node(depth + 1, &Place::in_list()),
        }
        if self.rng.percent(80) {
            schema["maxItems"] = self.rng.range(1, 6).into();
        }
        if self.rng.one_in(8) {
            schema["minItems"] = self.rng.range(0, 2).into();
        }
        schema
    }

    fn list_with_keys(&mut self, schema: &mut Value, depth: usize, place: &Place) {
        schema["x-kubernetes-list-type"] = "map".into();
        let mut keys = vec!["name"];
        if self.rng.one_in(4) {
            keys.push("count");
        }
        let mut items = self.object(depth + 1, &place.in_object());
        let mut required = keys.clone();
        for &key in &keys {
            let mut field = if self.rng.one_in(5) {
                self.integer()
            } else {
                self.text()
            };
            if self.rng.one_in(5) {
                field["default"] = values::value(&field, self.rng);
                required.retain(|it| *it != key);
            }
            items["properties"][key] = field;
        }
        if !self.is_wrong() {
            items["required"] = required.into();
        }
        schema["items"] = items;
        schema["x-kubernetes-list-map-keys"] = keys.into();
    }

    /// An object or any value with unknown fields.
    fn open(&mut self, depth: usize, place: &Place) -> Value {
        let mut schema = match self.rng.below(3) {
            0 => json!({}),
            1 => json!({"type": "object"}),
            _ => self.object(depth, place),
        };
        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
        schema
    }

    fn embedded(&mut self, depth: usize, place: &Place) -> Value {
        let mut schema = if self.rng.one_in(2) {
            let mut schema = self.object(depth, place);
            for name in ["kind", "metadata"] {
                schema["properties"].as_object_mut().unwrap().remove(name);
            }
            if let Some(required) = schema
                .pointer_mut("/required")
                .and_then(Value::as_array_mut)
            {
                required.retain(|it| it != "kind" && it != "metadata");
            }
            schema
        } else {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        };
        schema["x-kubernetes-embedded-resource"] = true.into();
        schema
    }

    /// Makes one keyword wrong.
    fn break_schema(&mut self, schema: &mut Value) {
        let (key, value) = match self.rng.below(14) {
            0 => ("type", Value::Null),
            1 => ("x-kubernetes-preserve-unknown-fields", false.into()),
            2 => ("uniqueItems", true.into()),
            3 => ("additionalProperties", json!({"type": "string"})),
            4 => ("pattern", "(?=a)[".into()),
            5 => ("default", json!({"a": 1})),
            6 => ("x-kubernetes-list-type", "map".into()),
            7 => ("x-kubernetes-map-type", "other".into()),
            // The API server panics if the items of such a list have rules.
            8 if schema["items"].is_null() => ("x-kubernetes-int-or-string", true.into()),
            9 => ("items", json!({"type": "string"})),
            10 => ("nullable", "yes".into()),
            11 => ("x-kubernetes-embedded-resource", true.into()),
            12 => ("required", json!(["missing", "missing"])),
            _ => ("enum", json!([])),
        };
        schema[key] = value;
    }
}

//! Random CEL expressions that are well typed for a schema.

use lockkeeper_testkit::Rng;
use serde_json::Value;

/// The deepest field that an expression selects from a variable.
const SELECTION_DEPTH_MAX: usize = 3;

/// Names that a selection has to escape.
const KEYWORDS: [&str; 5] = ["in", "namespace", "true", "null", "if"];

/// The type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Time,
    Duration,
    List(Box<Type>),
    Map(Box<Type>),
    Object,
    Dynamic,
}

impl Type {
    /// The type of values of a schema.
    pub fn of(schema: &Value) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::Dynamic;
        }
        match schema["type"].as_str() {
            Some("boolean") => Self::Bool,
            Some("integer") => Self::Int,
            Some("number") => Self::Double,
            Some("string") => match schema["format"].as_str() {
                Some("date" | "date-time") => Self::Time,
                Some("duration") => Self::Duration,
                Some("byte") => Self::Bytes,
                _ => Self::Text,
            },
            Some("array") => Self::List(Box::new(Self::of(&schema["items"]))),
            Some("object") if schema["additionalProperties"].is_object() => {
                Self::Map(Box::new(Self::of(&schema["additionalProperties"])))
            }
            Some("object") => Self::Object,
            _ => Self::Dynamic,
        }
    }
}

/// A variable of an expression.
#[derive(Clone)]
pub struct Variable {
    name: String,
    kind: Type,
    /// The schema of the value; null if it has none.
    schema: Value,
    is_root: bool,
}

impl Variable {
    pub fn new(name: &str, schema: &Value, is_root: bool) -> Self {
        Self {
            name: name.to_owned(),
            kind: Type::of(schema),
            schema: schema.clone(),
            is_root,
        }
    }

    fn without_schema(name: &str, kind: Type) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            schema: Value::Null,
            is_root: false,
        }
    }
}

/// A variable or a selected field, with the presence tests that its evaluation needs.
#[derive(Clone)]
pub struct Selection {
    pub text: String,
    pub kind: Type,
    pub schema: Value,
    pub guards: Vec<String>,
}

/// Generates expressions with the variables in scope.
pub struct Expressions<'a> {
    pub(super) rng: &'a mut Rng,
    variables: Vec<Variable>,
    /// The presence tests of the conditions around the current one.
    guards: Vec<Vec<String>>,
    variables_made: usize,
    has_mistakes: bool,
}

impl<'a> Expressions<'a> {
    pub fn new(rng: &'a mut Rng, variables: Vec<Variable>, has_mistakes: bool) -> Self {
        Self {
            rng,
            variables,
            guards: vec![Vec::new()],
            variables_made: 0,
            has_mistakes,
        }
    }

    pub fn rng(&mut self) -> &mut Rng {
        self.rng
    }

    /// Whether to make a mistake here.
    pub(super) fn is_wrong(&mut self) -> bool {
        self.has_mistakes && self.rng.one_in(40)
    }

    /// A condition, most of the time with tests for the fields that it selects.
    pub fn guarded_condition(&mut self, depth: usize) -> String {
        self.guards.push(Vec::new());
        let condition = self.condition(depth);
        let guards = self.guards.pop().unwrap_or_default();
        if guards.is_empty() || self.rng.one_in(4) {
            return condition;
        }
        let mut unique: Vec<String> = Vec::new();
        for guard in guards {
            if !unique.contains(&guard) {
                unique.push(guard);
            }
        }
        let guards = unique.join(" && ");
        match self.rng.below(3) {
            0 => format!("!({guards}) || ({condition})"),
            1 => format!("({guards}) ? ({condition}) : true"),
            _ => format!("{guards} && ({condition})"),
        }
    }

    /// A condition on a new variable, which is in scope only there.
    pub(super) fn condition_on(&mut self, schema: &Value, kind: Type, depth: usize) -> [String; 2] {
        let name = self.new_name();
        let mut variable = Variable::without_schema(&name, kind);
        variable.schema = schema.clone();
        self.variables.push(variable);
        let condition = self.guarded_condition(depth);
        self.variables.pop();
        [name, condition]
    }

    /// A term with a new variable, which is in scope only there.
    pub(super) fn term_on(
        &mut self,
        schema: &Value,
        kind: Type,
        result: &Type,
        depth: usize,
    ) -> [String; 2] {
        let name = self.new_name();
        let mut variable = Variable::without_schema(&name, kind);
        variable.schema = schema.clone();
        self.variables.push(variable);
        let term = self.term(result, depth);
        self.variables.pop();
        [name, term]
    }

    fn new_name(&mut self) -> String {
        self.variables_made += 1;
        format!("v{}", self.variables_made)
    }

    /// A selection of a type; its presence tests are added to those of the condition around it.
    pub(super) fn selection(&mut self, is_wanted: impl Fn(&Type) -> bool) -> Option<Selection> {
        let mut all = Vec::new();
        for variable in &self.variables {
            let start = Selection {
                text: variable.name.clone(),
                kind: variable.kind.clone(),
                schema: variable.schema.clone(),
                guards: Vec::new(),
            };
            if variable.is_root {
                all.push(Selection {
                    text: format!("{}.metadata.name", variable.name),
                    kind: Type::Text,
                    schema: Value::Null,
                    guards: Vec::new(),
                });
            }
            select(start, 0, &mut all);
        }
        all.retain(|it| is_wanted(&it.kind));
        if all.is_empty() {
            return None;
        }
        let selection = self.rng.pick(&all).clone();
        if let Some(guards) = self.guards.last_mut() {
            guards.extend(selection.guards.iter().cloned());
        }
        Some(selection)
    }
}

/// Adds a selection and those below it.
fn select(selection: Selection, depth: usize, out: &mut Vec<Selection>) {
    let schema = selection.schema.clone();
    if depth < SELECTION_DEPTH_MAX {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let Some(escaped) = escape(name) else {
                continue;
            };
            // The schema of metadata does not restrict its type.
            if name == "metadata" {
                continue;
            }
            let text = format!("{}.{escaped}", selection.text);
            let mut guards = selection.guards.clone();
            if !required.iter().any(|it| it == name) && field["default"].is_null() {
                guards.push(format!("has({text})"));
            }
            let below = Selection {
                text,
                kind: Type::of(field),
                schema: field.clone(),
                guards,
            };
            select(below, depth + 1, out);
        }
    }
    out.push(selection);
}

/// The name of a field in a selection; `None` if there is none.
fn escape(name: &str) -> Option<String> {
    if KEYWORDS.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let escaped = name
        .replace("__", "__underscores__")
        .replace('-', "__dash__")
        .replace('.', "__dot__")
        .replace('/', "__slash__");
    let is_name = escaped
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || it == b'_');
    is_name.then_some(escaped)
}

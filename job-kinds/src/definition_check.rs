//! Compares a declaration with the definition of its kind: every path must exist with the right type, and every expression must
//! compile against the schema.

use crate::compile_error::CompileError;
use crate::declared_kind::{DeclaredKind, status_text};
use crate::expressions::{ITEM, KEY, SELF, StatusExpression};
use crate::job_path::JobPath;
use crate::parts::{PodSetName, PodSets, Reset};
use crate::similar_names::{path_to, similar_name};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::job_kind::JobKind;
use lockkeeper_crd_schema::crd::{
    DefinedField, DefinedFields, FieldKind, ObjectExpression, ResultType, result_type,
};
use serde_json::Value;

/// Compares a declaration with the `CustomResourceDefinition` of its kind. The cost is linear in the size of the definition.
///
/// # Errors
///
/// All mistakes, in the order of the fields: first those that the declaration alone shows, and only if there are none, those
/// that the definition shows.
pub fn check_against_definition(
    declaration: &JobKind,
    definition: &Value,
) -> Result<DeclaredKind, Vec<CompileError>> {
    let kind = DeclaredKind::compile(declaration)?;
    let mut check = Check::default();
    check.names(&kind, definition);
    match DefinedFields::from_crd(definition, &kind.version) {
        Err(reason) => check.add(FieldPath::new("spec.version"), reason.to_string()),
        Ok(fields) => check.fields(declaration, &kind, &fields),
    }
    if check.errors.is_empty() {
        return Ok(kind);
    }
    Err(check.errors)
}

#[derive(Default)]
struct Check {
    errors: Vec<CompileError>,
}

impl Check {
    fn add(&mut self, field: FieldPath, problem: impl Into<String>) {
        let problem = problem.into();
        self.errors.push(CompileError { field, problem });
    }

    /// Names and scope.
    fn names(&mut self, kind: &DeclaredKind, definition: &Value) {
        let text = |pointer: &str| {
            let found = definition.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default()
        };
        let name = format!("{}.{}", text("/spec/names/plural"), text("/spec/group"));
        if name != format!("{}.{}", kind.plural, kind.group) {
            let problem = format!("must be {name}, the name of the definition");
            self.add(FieldPath::new("metadata.name"), problem);
        }
        let defined = text("/spec/names/kind");
        if defined != kind.kind {
            let problem = format!("must be {defined}, the kind of the definition");
            self.add(FieldPath::new("spec.kind"), problem);
        }
        if text("/spec/scope") != "Namespaced" {
            let problem = "is not namespaced; jobs are objects in a namespace with a LocalQueue";
            self.add(FieldPath::new("spec.kind"), problem);
        }
    }

    fn fields(&mut self, declaration: &JobKind, kind: &DeclaredKind, fields: &DefinedFields) {
        let root = fields.root();
        self.suspension(kind, root);
        if let Some((path, _)) = &kind.managed_by {
            let at = FieldPath::new("spec.managedBy.path");
            self.path(&at, root, path, &[FieldKind::Text]);
        }
        for (index, pod_sets) in kind.pod_sets.iter().enumerate() {
            let at = FieldPath::new("spec.podSets").index(index);
            self.pod_sets(&at, pod_sets, root);
        }
        let status = declaration.spec.status.clone().unwrap_or_default();
        for of in StatusExpression::ALL {
            let is_default = status_text(&status, of).is_none();
            self.status(kind, of, is_default, root);
        }
        for (index, reset) in kind.resets.iter().enumerate() {
            let at = FieldPath::new("spec.resetOnStop").index(index);
            self.reset(&at, reset, root);
        }
        if let Some(class) = &kind.priority_class {
            let at = FieldPath::new("spec.priorityClass");
            self.expression(&at, class, &[(SELF, root)], ResultType::Text);
        }
        for (index, child) in kind.children.iter().enumerate() {
            let at = FieldPath::new("spec.children").index(index).field("names");
            self.expression(&at, &child.names, &[(SELF, root)], ResultType::Texts);
        }
    }

    fn suspension(&mut self, kind: &DeclaredKind, root: DefinedField<'_>) {
        let at = FieldPath::new("spec.suspend.path");
        let of = &kind.suspension;
        let expected = if of.suspended.is_boolean() {
            FieldKind::Boolean
        } else {
            FieldKind::Text
        };
        let Some(field) = self.path(&at, root, &of.path, &[expected]) else {
            return;
        };
        let accepted = field.accepted_texts();
        for (name, value) in [
            ("suspendedValue", &of.suspended),
            ("startedValue", &of.started),
        ] {
            let Some(text) = value.as_str() else { continue };
            if !accepted.is_empty() && !accepted.contains(&text) {
                let problem = format!("must be one of {}", accepted.join(", "));
                self.add(FieldPath::new("spec.suspend").field(name), problem);
            }
        }
    }

    /// A field that is reset has the type of its value; one that is removed may have any.
    fn reset(&mut self, at: &FieldPath, of: &Reset, root: DefinedField<'_>) {
        let kinds: &[FieldKind] = match of.value {
            Value::Bool(_) => &[FieldKind::Boolean],
            Value::String(_) => &[FieldKind::Text],
            _ => &[],
        };
        self.path(&at.clone().field("path"), root, &of.path, kinds);
    }

    fn pod_sets(&mut self, at: &FieldPath, of: &PodSets, root: DefinedField<'_>) {
        let field = |name| at.clone().field(name);
        let mut variables = vec![(SELF, root)];
        let mut base = root;
        if let Some(path) = &of.for_each {
            let kinds = [FieldKind::List, FieldKind::Map];
            let Some(found) = self.path(&field("forEach"), root, path, &kinds) else {
                return;
            };
            base = found.items().unwrap_or(DefinedField::ANY);
            variables.push((ITEM, base));
            // A key is a text in a map, and an index in a list.
            variables.push((KEY, DefinedField::ANY));
            if matches!(of.name, PodSetName::OfItem)
                && found.kind() == FieldKind::List
                && base.field("name").is_none()
            {
                let problem = "is required: the items of the list have no field name";
                self.add(field("nameExpression"), problem);
            }
        }
        self.pods(&field, of, base, &variables);
        if let Some(path) = of.count.field() {
            self.path(&field("countField"), base, path, &[FieldKind::Integer]);
        }
        if let PodSetName::Expression(name) = &of.name {
            self.expression(&field("nameExpression"), name, &variables, ResultType::Text);
        }
        for (name, expression, expected) in [
            ("condition", of.condition.as_ref(), ResultType::Boolean),
            ("count", of.count.expression(), ResultType::Integer),
            ("minimum", of.minimum.as_ref(), ResultType::Integer),
            ("reclaimable", of.reclaimable.as_ref(), ResultType::Integer),
        ] {
            if let Some(expression) = expression {
                self.expression(&field(name), expression, &variables, expected);
            }
        }
    }

    /// The field that describes the pods: a template, or an object with the fields of their placement.
    fn pods(
        &mut self,
        field: &impl Fn(&'static str) -> FieldPath,
        of: &PodSets,
        base: DefinedField<'_>,
        variables: &[(&str, DefinedField<'_>)],
    ) {
        let path = &of.pods.path;
        let Some(requests) = &of.pods.requests else {
            let at = field("template");
            if let Some(template) = self.path(&at, base, path, &[FieldKind::Object]) {
                self.pod_template(&at, path, template);
            }
            return;
        };
        let at = field("podFields");
        if let Some(fields) = self.path(&at, base, path, &[FieldKind::Object]) {
            for (name, kind) in [
                ("nodeSelector", FieldKind::Map),
                ("tolerations", FieldKind::List),
            ] {
                let found = fields.field(name).map(|it| it.kind());
                if found != Some(kind) && found != Some(FieldKind::Any) {
                    let problem = format!("{path} has no {} {name}", kind.name());
                    self.add(at.clone(), problem);
                }
            }
        }
        for (resource, expression) in requests {
            let at = field("requests").key(resource);
            self.expression(&at, expression, variables, ResultType::Text);
        }
    }

    /// A pod template has `spec.containers`, or a schema that accepts any fields.
    fn pod_template(&mut self, at: &FieldPath, path: &JobPath, template: DefinedField<'_>) {
        let spec = template.field("spec");
        let containers = spec.and_then(|it| it.field("containers"));
        let is_list = |it: DefinedField<'_>| matches!(it.kind(), FieldKind::List | FieldKind::Any);
        if containers.is_some_and(is_list) {
            return;
        }
        let inner = template.field("template").and_then(|it| it.field("spec"));
        let hint = match inner.and_then(|it| it.field("containers")) {
            Some(_) => format!("; did you mean {path}.template?"),
            None => String::new(),
        };
        let problem = format!("{path} is no pod template: it has no spec.containers{hint}");
        self.add(at.clone(), problem);
    }

    fn status(
        &mut self,
        kind: &DeclaredKind,
        of: StatusExpression,
        is_default: bool,
        root: DefinedField<'_>,
    ) {
        let at = FieldPath::new(of.field());
        if !is_default {
            self.expression(&at, kind.status(of), &[(SELF, root)], of.result());
            return;
        }
        let conditions = root.field("status").and_then(|it| it.field("conditions"));
        let item = conditions.and_then(|it| it.items());
        let is_usual = |it: DefinedField<'_>| {
            ["type", "status"]
                .iter()
                .all(|name| it.field(name).is_some())
        };
        if !item.is_some_and(is_usual) {
            self.add(
                at,
                "is required: the kind has no status.conditions with type and status",
            );
        }
    }

    /// Finds a field, or reports that there is none, or that it is of none of the kinds; without kinds, it may be of any.
    fn path<'a>(
        &mut self,
        at: &FieldPath,
        root: DefinedField<'a>,
        path: &JobPath,
        kinds: &[FieldKind],
    ) -> Option<DefinedField<'a>> {
        let mut field = root;
        let mut walked: Vec<&str> = Vec::new();
        for name in path.fields() {
            let Some(next) = field.field(name) else {
                let problem = missing_field(root, field, &walked, name, path, kinds);
                self.add(at.clone(), problem);
                return None;
            };
            walked.push(name);
            field = next;
        }
        let kind = field.kind();
        if kinds.is_empty() || kind == FieldKind::Any || kinds.contains(&kind) {
            return Some(field);
        }
        let expected: Vec<&str> = kinds.iter().map(|it| it.name()).collect();
        let expected = expected.join(" or ");
        let problem = format!("{path} has the type {}, not {expected}", kind.name());
        self.add(at.clone(), problem);
        None
    }

    fn expression(
        &mut self,
        at: &FieldPath,
        expression: &ObjectExpression,
        variables: &[(&str, DefinedField<'_>)],
        expected: ResultType,
    ) {
        match result_type(expression, variables) {
            Err(reason) => self.add(at.clone(), reason),
            Ok(found) if found == expected || found == ResultType::Any => {}
            Ok(_) => {
                let expected = match expected {
                    ResultType::Boolean => "true or false",
                    ResultType::Integer => "an integer",
                    ResultType::Texts => "a list of texts",
                    _ => "a text",
                };
                self.add(at.clone(), format!("the result must be {expected}"));
            }
        }
    }
}

/// The message for a path whose field `name` does not exist, with the nearest path that does.
fn missing_field(
    root: DefinedField<'_>,
    field: DefinedField<'_>,
    walked: &[&str],
    name: &str,
    path: &JobPath,
    kinds: &[FieldKind],
) -> String {
    let place = if walked.is_empty() {
        "the object".to_owned()
    } else {
        walked.join(".")
    };
    let suggestion = match similar_name(field, name) {
        Some(similar) => {
            let names = walked.iter().copied().chain([similar]);
            let rest = path.fields().skip(walked.len().saturating_add(1));
            let names: Vec<&str> = names.chain(rest).collect();
            Some(names.join("."))
        }
        None => path
            .fields()
            .next_back()
            .and_then(|it| path_to(root, it, kinds))
            .map(|it| it.join(".")),
    };
    match suggestion {
        Some(suggestion) => {
            format!("{place} has no field {name:?}; did you mean {suggestion}?")
        }
        None => format!("{place} has no field {name:?}"),
    }
}

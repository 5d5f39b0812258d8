//! `MutatingAdmissionPolicy`, as `k8s.io/apiserver/pkg/admission/plugin/policy/mutating`.

use super::decision::Missing;
use super::frame::{Compiler, Frame, Inputs, Problem, Variables, missing, with_expression};
use super::merge::{self, MergeTypes};
use crate::crd::values::{array_at, text_at};
use crate::crd::{PolicyExpression, PolicyFailure, ResultKind};
use json_patch::{Patch, PatchErrorKind};
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Value, json};

/// The cost limit of one mutation (`RuntimeCELCostBudget`).
const COST_MAX: u64 = 10_000_000;

/// A policy.
#[derive(Debug)]
pub(super) struct MutatingPolicy {
    pub(super) frame: Frame,
    /// Whether the policy runs again if another one has changed the object.
    pub(super) is_reinvoked: bool,
    mutations: Vec<Mutation>,
}

#[derive(Debug)]
struct Mutation {
    expression: PolicyExpression,
    kind: MutationKind,
}

#[derive(Clone, Copy, Debug)]
enum MutationKind {
    Apply,
    Patch,
}

/// A mutation without a result.
#[derive(Debug)]
pub(super) enum Failed {
    /// An error, with the text of the API server.
    Error(String),
    /// The result is not known.
    Undecided(Missing),
}

/// The expressions of a policy that cannot be used.
pub(crate) fn compile_mutating_policy(object: &Value) -> Vec<Problem> {
    MutatingPolicy::new(object).1
}

impl MutatingPolicy {
    /// Compiles a policy. It can be used if there are no problems.
    pub(super) fn new(object: &Value) -> (Self, Vec<Problem>) {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut compiler = Compiler::new(spec);
        let frame = Frame::new(object, spec, &mut compiler);
        let mut mutations = Vec::new();
        for (position, mutation) in array_at(spec, "mutations").iter().enumerate() {
            let (name, kind, result) = match text_at(mutation, "patchType") {
                Some("JSONPatch") => ("jsonPatch", MutationKind::Patch, ResultKind::Patches),
                _ => (
                    "applyConfiguration",
                    MutationKind::Apply,
                    ResultKind::Object,
                ),
            };
            let text = mutation.get(name).and_then(|it| text_at(it, "expression"));
            let field = FieldPath::new("spec.mutations").index(position);
            let field = field.field(name).field("expression");
            let expression = compiler.compile(text.unwrap_or_default(), &[result], field);
            mutations.extend(expression.map(|expression| Mutation { expression, kind }));
        }
        let policy = Self {
            frame,
            is_reinvoked: text_at(spec, "reinvocationPolicy") == Some("IfNeeded"),
            mutations,
        };
        (policy, compiler.problems)
    }

    /// The number of mutations.
    pub(super) fn count(&self) -> usize {
        self.mutations.len()
    }

    /// Whether the conditions of the policy hold.
    ///
    /// # Errors
    ///
    /// If that is not known.
    pub(super) fn applies(&self, inputs: Inputs<'_>) -> Result<bool, Failed> {
        match self.frame.conditions_hold(inputs) {
            Ok(holds) => Ok(holds),
            Err(failure) => Err(Failed::from(failure)),
        }
    }

    /// The object after a mutation; `None` if it does not change the object.
    ///
    /// # Errors
    ///
    /// If the mutation has an error, or its result is not known.
    pub(super) fn mutate(
        &self,
        number: usize,
        inputs: Inputs<'_>,
        types: MergeTypes<'_>,
    ) -> Result<Option<Value>, Failed> {
        let Some(Mutation { expression, kind }) = self.mutations.get(number) else {
            return Ok(None);
        };
        let mut variables = Variables::new(inputs, COST_MAX);
        let value = self
            .frame
            .evaluate_variables(expression, &mut variables)
            .and_then(|()| variables.scope.evaluate(expression))
            .map_err(|failure| Failed::from(with_expression(failure, expression)))?;
        if let Some((found, expected)) = expression.mismatched_type() {
            return Err(Failed::Error(format!(
                "type mismatch: unexpected type name \"{found}\", expected \"{expected}\", which matches field name path from root Object type"
            )));
        }
        let value = value.to_json().ok_or_else(|| {
            let reason = "the value of the expression has no form in JSON";
            Failed::Error(reason.to_owned())
        })?;
        let changed = match kind {
            MutationKind::Apply => {
                let merged = merge::apply(types, inputs.object, &value);
                let merged = merged
                    .map_err(|reason| Failed::Error(format!("error applying patch: {reason}")))?;
                Some(merged.ok_or(Failed::Undecided(Missing::Schema))?)
            }
            MutationKind::Patch => patched(inputs.object, value)?,
        };
        Ok(changed.filter(|it| it != inputs.object))
    }
}

/// The object after a JSON patch; `None` if a test of the patch fails.
fn patched(object: &Value, mut operations: Value) -> Result<Option<Value>, Failed> {
    for operation in operations.as_array_mut().into_iter().flatten() {
        // An absent value is null, as in the API server.
        let needs_value = matches!(text_at(operation, "op"), Some("add" | "replace" | "test"));
        if let Some(fields) = operation.as_object_mut().filter(|_| needs_value) {
            fields.entry("value").or_insert(json!(null));
        }
    }
    let failed = |reason: String| Failed::Error(format!("JSON Patch: {reason}"));
    let patch: Patch =
        serde_json::from_value(operations).map_err(|error| failed(error.to_string()))?;
    let mut object = object.clone();
    match json_patch::patch(&mut object, &patch) {
        Ok(()) => Ok(Some(object)),
        Err(error) if matches!(error.kind, PatchErrorKind::TestFailed) => Ok(None),
        Err(error) => Err(failed(error.to_string())),
    }
}

impl From<PolicyFailure> for Failed {
    fn from(failure: PolicyFailure) -> Self {
        match failure {
            PolicyFailure::Unknown(reason) => Self::Undecided(missing(reason)),
            PolicyFailure::Error(reason) => Self::Error(reason),
            PolicyFailure::BudgetExceeded => Self::Error(
                "validation failed due to running out of cost budget, no further validation rules will be run".to_owned(),
            ),
        }
    }
}

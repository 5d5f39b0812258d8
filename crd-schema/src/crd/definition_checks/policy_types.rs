//! The types of the variables of admission policies and match conditions.

use super::cel_check;
use super::cel_types::Type;
use crate::crd::expression::constant_error;
use crate::crd::policy_expression::{PolicyExpression, ResultKind};
use kube_cel::cel::common::ast::Expr;

/// The declared variables. Objects, parameters and requests have no types.
#[derive(Debug)]
pub(crate) struct PolicyTypes {
    variables: Vec<(String, Type<'static>)>,
}

impl PolicyTypes {
    /// Variables without types.
    pub(crate) fn new(names: &[&str]) -> Self {
        let variables = names.iter().map(|it| ((*it).to_owned(), Type::Dynamic));
        let mut variables: Vec<_> = variables.collect();
        // A field that is read as a variable of its own.
        if names.contains(&"request") {
            variables.push(("request.userInfo".to_owned(), Type::Dynamic));
        }
        Self { variables }
    }

    /// Declares a variable of a policy with the type of its expression.
    ///
    /// # Errors
    ///
    /// The reason if the expression has no type.
    pub(crate) fn declare(
        &mut self,
        name: &str,
        expression: &PolicyExpression,
    ) -> Result<(), String> {
        let kind = self.kind(expression)?;
        self.variables.push((format!("variables.{name}"), kind));
        Ok(())
    }

    /// Checks the type of an expression.
    ///
    /// # Errors
    ///
    /// The reason if the expression has no type, or another one.
    pub(crate) fn check(
        &self,
        expression: &PolicyExpression,
        accepted: &[ResultKind],
    ) -> Result<(), String> {
        let is_mutation = matches!(accepted, [ResultKind::Object | ResultKind::Patches]);
        let found = if is_mutation && !reads_authorizer(expression) {
            let tree = expression.program().tree();
            cel_check::check_mutation(tree, self.variables.clone())?.result
        } else {
            self.kind(expression)?
        };
        if let Some(reason) = constant_error(expression.program().tree()) {
            return Err(format!("program instantiation failed: {reason}"));
        }
        let is_field = matches!(
            expression.program().tree().expr,
            Expr::Ident(_) | Expr::Select(_)
        );
        let fits = |kind: &ResultKind| match (&found, kind) {
            (Type::Bool, ResultKind::Bool)
            | (Type::Text, ResultKind::Text)
            | (Type::Null, ResultKind::Null)
            | (Type::Library("Object"), ResultKind::Object) => true,
            (Type::List(item), ResultKind::Patches) => {
                matches!(**item, Type::Library("JSONPatch"))
            }
            // The checker knows fewer types than the API server, but fields of objects have none there either.
            (Type::Dynamic, _) => !is_field || reads_authorizer(expression),
            _ => false,
        };
        if accepted.iter().any(fits) {
            return Ok(());
        }
        let names: Vec<&str> = accepted.iter().map(|it| it.name()).collect();
        Err(format!("must evaluate to {}", names.join(" or ")))
    }

    fn kind(&self, expression: &PolicyExpression) -> Result<Type<'static>, String> {
        // The functions of the authorizer have no types here.
        if reads_authorizer(expression) {
            return Ok(Type::Dynamic);
        }
        let tree = expression.program().tree();
        Ok(cel_check::check(tree, self.variables.clone())?.result)
    }
}

fn reads_authorizer(expression: &PolicyExpression) -> bool {
    expression.program().uses("authorizer")
}

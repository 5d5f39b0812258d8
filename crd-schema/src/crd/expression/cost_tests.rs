//! Results and costs of evaluations: those of the Go library.

use super::{Budget, Failure, Scope, Value as Cel, evaluate};
use crate::crd::cel_program::Program;
use crate::crd::node::Node;
use serde_json::Value;

/// Cost, result and expression, as `k8s.io/apiextensions-apiserver` 0.37.1 evaluates it on the object.
const EXPECTED: &str = include_str!("evaluated_costs.txt");
const OBJECT: &str = include_str!("evaluated_costs_object.json");
const SCHEMA: &str = include_str!("../definition_checks/cost/estimates_schema.json");

#[test]
fn evaluated_costs_are_those_of_the_api_server() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let object: Value = serde_json::from_str(OBJECT).unwrap();
    let node = Node::from_schema(&schema).unwrap();
    let mut differences = Vec::new();
    for line in EXPECTED.lines() {
        let (cost, rest) = line.split_once(' ').unwrap();
        let (result, expression) = rest.split_once(' ').unwrap();
        let program = Program::new(expression).unwrap();
        let mut scope = Scope::new();
        for name in ["self", "oldSelf"] {
            scope.set(name, Cel::from_json(&object, &node, false));
        }
        let mut budget = Budget::default();
        let actual = match evaluate(&program, &mut scope, &mut budget) {
            Ok(Cel::Bool(flag)) => format!("{} {flag}", budget.used()),
            // The cost of a call that has failed has no effect.
            Err(Failure::Error(_)) => format!("{cost} error"),
            other => format!("{other:?}"),
        };
        if actual != format!("{cost} {result}") {
            differences.push(format!("{expression}: {actual}, not {cost} {result}"));
        }
    }
    assert_eq!(differences, Vec::<String>::new());
}

//! Decisions about a Deployment.

mod mutations;

use super::{AdmissionRequest, Outcome, PolicySet, Resource, UserInfo};
use serde_json::{Value, json};

fn policy(spec: &Value) -> Value {
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "rules"},
        "spec": {"matchConstraints": {"resourceRules": [{
            "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"],
        }]}},
    });
    for (key, value) in spec.as_object().unwrap() {
        policy["spec"][key] = value.clone();
    }
    policy
}

fn binding(spec: &Value) -> Value {
    let mut binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "all"},
        "spec": {"policyName": "rules", "validationActions": ["Deny"]},
    });
    for (key, value) in spec.as_object().unwrap() {
        binding["spec"][key] = value.clone();
    }
    binding
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "a", "labels": {"team": "x"}},
        "spec": {
            "replicas": 7, "paused": null,
            "template": {"spec": {"containers": [
                {"name": "a", "image": "registry.example/a:1", "resources": {"limits": {"memory": "1Gi"}}},
                {"name": "b", "image": "b"},
            ]}},
        },
    })
}

/// The outcomes of a set about a request, a line each.
fn outcomes(set: &PolicySet, request: &AdmissionRequest<'_>) -> String {
    let decisions = set
        .validate(request)
        .into_iter()
        .map(|it| match it.outcome {
            Outcome::Denied { message, .. } => message,
            Outcome::Undecided(missing) => format!("missing: {missing}"),
            Outcome::Unusable(reason) => format!("unusable: {reason}"),
        });
    decisions.collect::<Vec<_>>().join("\n")
}

fn with_policy(spec: &Value) -> PolicySet {
    let mut set = PolicySet::default();
    set.add(&policy(spec));
    set.add(&binding(&json!({})));
    set
}

/// The outcomes of one policy about the creation of the Deployment.
fn created(spec: &Value) -> String {
    let (object, resource) = (
        deployment(),
        Resource::new("apps", "v1", "Deployment", "deployments"),
    );
    outcomes(
        &with_policy(spec),
        &AdmissionRequest::create(&object, &resource, Some("a")),
    )
}

fn valid_if(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

#[test]
fn validations_decide_by_their_expressions() {
    for (expression, expected) in [
        ("object.spec.replicas > 5", ""),
        (
            "object.spec.replicas < 5",
            "failed expression: object.spec.replicas < 5",
        ),
        ("object.metadata.labels.team == 'x'", ""),
        ("has(object.spec.paused) && object.spec.paused == null", ""),
        ("!has(object.spec.minReadySeconds)", ""),
        ("oldObject == null", ""),
        (
            "request.operation == 'CREATE' && request.namespace == 'a' && request.name == 'web'",
            "",
        ),
        (
            "request.resource.resource == 'deployments' && request.kind.kind == 'Deployment'",
            "",
        ),
        (
            "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example/'))",
            "failed expression: object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example/'))",
        ),
        (
            "quantity(object.spec.template.spec.containers[0].resources.limits.memory).isLessThan(quantity('2Gi'))",
            "",
        ),
        (
            "object.spec.none == 1",
            "expression 'object.spec.none == 1' resulted in error: no such key: none",
        ),
        ("object.?spec.?none.orValue(1) == 1", ""),
        (
            "request.userInfo.username == 'me'",
            "missing: the user of the request",
        ),
        (
            "object.spec.replicas == 7 || request.userInfo.username == 'me'",
            "",
        ),
        (
            "request.?userInfo.?username.orValue('') == 'me'",
            "missing: the user of the request",
        ),
        (
            "authorizer.group('').resource('pods').check('create').allowed()",
            "missing: the rights of the user",
        ),
        (
            "namespaceObject.metadata.labels.team == 'x'",
            "missing: the Namespace a",
        ),
    ] {
        assert_eq!(created(&valid_if(expression)), expected, "{expression}");
    }
}

#[test]
fn policies_that_do_not_compile_are_undecided() {
    for (spec, expected) in [
        (
            valid_if("object.spec."),
            "spec.validations[0].expression: compilation failed: ",
        ),
        (
            valid_if("params.a == 1"),
            "spec.validations[0].expression: compilation failed: undeclared reference to 'params'",
        ),
        (
            valid_if("variables.a == 1"),
            "spec.validations[0].expression: compilation failed: undeclared reference to 'variables.a'",
        ),
        (
            valid_if("1 + 1"),
            "spec.validations[0].expression: must evaluate to bool",
        ),
        (
            json!({"validations": [{"expression": "false", "messageExpression": "1"}]}),
            "spec.validations[0].messageExpression: must evaluate to string",
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "'a'"}], "validations": [{"expression": "true"}]}),
            "spec.matchConditions[0].expression: must evaluate to bool",
        ),
    ] {
        let found = created(&spec);
        let start = format!("unusable: {expected}");
        assert!(found.starts_with(&start), "{spec}: {found}");
    }
}

#[test]
fn messages_are_those_of_the_api_server() {
    let message = |fields: Value| {
        let mut validation = json!({"expression": "false"});
        for (key, value) in fields.as_object().unwrap() {
            validation[key] = value.clone();
        }
        created(&json!({"validations": [validation]}))
    };
    for (fields, expected) in [
        (json!({"message": " no "}), "no"),
        (
            json!({"messageExpression": "'replicas: ' + string(object.spec.replicas)"}),
            "replicas: 7",
        ),
        (json!({"message": "no", "messageExpression": "'  '"}), "no"),
        (
            json!({"message": "no", "messageExpression": "'a\\nb'"}),
            "no",
        ),
        (
            json!({"message": "no", "messageExpression": "string(object.none)"}),
            "no",
        ),
        (
            json!({"messageExpression": "string(object.spec.none)"}),
            "failed expression: false",
        ),
    ] {
        assert_eq!(message(fields.clone()), expected, "{fields}");
    }
}

#[test]
fn conditions_and_variables_are_evaluated_as_in_the_api_server() {
    let with_condition = |expression: &str| {
        json!({
            "matchConditions": [{"name": "a", "expression": expression}],
            "validations": [{"expression": "false", "message": "no"}],
        })
    };
    for (spec, expected) in [
        (with_condition("object.kind == 'Deployment'"), "no"),
        (with_condition("object.kind == 'Pod'"), ""),
        (
            with_condition("object.none == 1"),
            "expression 'object.none == 1' resulted in error: no such key: none",
        ),
        (
            with_condition("request.userInfo.username != 'me'"),
            "missing: the user of the request",
        ),
        (
            json!({
                "variables": [
                    {"name": "count", "expression": "object.spec.replicas"},
                    {"name": "twice", "expression": "variables.count * 2"},
                    {"name": "broken", "expression": "object.none"},
                ],
                "validations": [
                    {"expression": "variables.twice == 14"},
                    {"expression": "variables.twice == 15", "messageExpression": "string(variables.count)"},
                    {"expression": "true || variables.broken == 1"},
                    {"expression": "variables.broken == 1"},
                ],
            }),
            "7\nexpression 'variables.broken == 1' resulted in error: composited variable \"broken\" fails to evaluate: no such key: none",
        ),
        (
            json!({"failurePolicy": "Ignore", "validations": [{"expression": "object.none == 1"}]}),
            "",
        ),
        (
            json!({"failurePolicy": "Ignore", "validations": [{"expression": "false", "message": "no"}]}),
            "no",
        ),
        (
            json!({
                "validations": [{"expression": "true"}],
                "auditAnnotations": [{"key": "a", "valueExpression": "string(object.none)"}],
            }),
            "expression 'string(object.none)' resulted in error: no such key: none",
        ),
        (
            valid_if(
                "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + e + f > 0))))))",
            ),
            "expression '[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + e + f > 0))))))' resulted in error: operation cancelled: actual cost limit exceeded",
        ),
    ] {
        assert_eq!(created(&spec), expected, "{spec}");
    }
}

#[test]
fn users_namespaces_and_old_objects_decide() {
    let (object, resource) = (
        deployment(),
        Resource::new("apps", "v1", "Deployment", "deployments"),
    );
    let mut old = deployment();
    old["spec"]["replicas"] = json!(9);
    let user = UserInfo {
        name: "me".to_owned(),
        groups: vec!["team".to_owned()],
    };
    let request = AdmissionRequest {
        object: &object,
        old: Some(&old),
        resource: &resource,
        namespace: Some("a"),
        user: Some(&user),
    };
    for (expression, expected) in [
        (
            "request.userInfo.username == 'me' && 'team' in request.userInfo.groups",
            "",
        ),
        (
            "request.operation == 'UPDATE' && oldObject.spec.replicas == 9",
            "",
        ),
        ("namespaceObject.metadata.labels.zone == 'z'", ""),
        (
            "namespaceObject.metadata.name == 'b'",
            "failed expression: namespaceObject.metadata.name == 'b'",
        ),
    ] {
        let mut set = with_policy(&valid_if(expression));
        set.add_namespace(&json!({"metadata": {"name": "a", "labels": {"zone": "z"}}}));
        assert_eq!(outcomes(&set, &request), expected, "{expression}");
    }
}

#[test]
fn bindings_choose_parameters_and_actions() {
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{
            "expression": "object.spec.replicas <= int(params.data.max)",
            "messageExpression": "'at most ' + params.data.max",
        }],
    });
    let (object, resource) = (
        deployment(),
        Resource::new("apps", "v1", "Deployment", "deployments"),
    );
    let request = AdmissionRequest::create(&object, &resource, Some("a"));
    let with_binding = |spec_of_binding: &Value| {
        let mut set = PolicySet::default();
        set.add(&policy(&spec));
        set.add(&binding(spec_of_binding));
        for (name, max) in [("small", "5"), ("large", "9")] {
            set.add_param(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "limits"},
                "data": {"max": max},
            }));
        }
        set.set_complete();
        outcomes(&set, &request)
    };
    let in_limits = |name: &str| json!({"paramRef": {"name": name, "namespace": "limits", "parameterNotFoundAction": "Deny"}});
    for (spec_of_binding, expected) in [
        (in_limits("small"), "at most 5"),
        (in_limits("large"), ""),
        (
            in_limits("none"),
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
        ),
        (
            json!({"paramRef": {"selector": {}, "namespace": "limits"}}),
            "at most 5",
        ),
        (
            json!({}),
            "expression 'object.spec.replicas <= int(params.data.max)' resulted in error: no such key: data",
        ),
        (
            json!({"matchResources": {"objectSelector": {"matchLabels": {"team": "y"}}}, "paramRef": {"name": "none"}}),
            "",
        ),
    ] {
        assert_eq!(
            with_binding(&spec_of_binding),
            expected,
            "{spec_of_binding}"
        );
    }
}

#[test]
fn actions_and_the_field_of_an_expression_are_reported() {
    let mut set = PolicySet::default();
    set.add(&policy(&valid_if("object.spec.replicas <= 5")));
    set.add(&binding(&json!({"validationActions": ["Warn", "Audit"]})));
    let (object, resource) = (
        deployment(),
        Resource::new("apps", "v1", "Deployment", "deployments"),
    );
    let decisions = set.validate(&AdmissionRequest::create(&object, &resource, Some("a")));
    let [decision] = &*decisions else {
        panic!("{decisions:?}");
    };
    assert_eq!(decision.field, ["spec", "replicas"]);
    let Outcome::Denied { actions, .. } = &decision.outcome else {
        panic!("{decision:?}");
    };
    assert!(!actions.is_denied && actions.is_warned && actions.is_audited);
    assert_eq!(decision.binding.as_deref(), Some("all"));
    // A policy without a binding decides nothing.
    let mut unbound = PolicySet::default();
    unbound.add(&policy(&valid_if("false")));
    let request = AdmissionRequest::create(&object, &resource, Some("a"));
    assert_eq!(outcomes(&unbound, &request), "");
}

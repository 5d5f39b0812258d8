//! Pod affinity, pod anti-affinity and topology spread.

use crate::test_state::{GPU, node, object, placement, pod, request, set_pods, text, workload};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockkeeper_api::workload::DisruptionMode;
use lockkeeper_cluster_state::placement_state::PlacementState;
use serde_json::{Value, json};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Nodes with eight GPUs: `a1`, `a2` in zone `a` and so on. A node without a digit has no zone.
fn state(nodes: &[&str]) -> PlacementState {
    let mut state = PlacementState::new();
    for name in nodes {
        let mut node = node(name, 8);
        if name.len() > 1 {
            node["metadata"]["labels"][ZONE] = name[..1].into();
        }
        state.set_node(&object(&node));
    }
    state
}

/// A template with a label and further fields of its spec.
fn template(app: &str, fields: &Value) -> PodTemplateSpec {
    let resources = json!({"requests": {GPU: "1"}});
    let mut spec = json!({"containers": [{"name": "main", "resources": resources}]});
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    object(&json!({"metadata": {"labels": {"app": app, "role": "worker"}}, "spec": spec}))
}

fn term(app: &str, key: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
}

fn affinity(kind: &str, terms: &[Value]) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
}

fn apart(app: &str, key: &str) -> Value {
    affinity("podAntiAffinity", &[term(app, key)])
}

fn together(app: &str, key: &str) -> Value {
    affinity("podAffinity", &[term(app, key)])
}

fn spread(app: &str, key: &str, max_skew: i32) -> Value {
    json!({"topologySpreadConstraints": [{
        "maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }]})
}

fn running(name: &str, node: &str, priority: i32, app: &str, fields: &Value) -> Value {
    let mut pod = pod(name, node, 1, priority);
    pod["metadata"]["labels"] = json!({"app": app});
    for (key, value) in fields.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    pod
}

fn plan(state: &mut PlacementState, template: &PodTemplateSpec, count: i32) -> String {
    text(&state.plan(&request(template, count, 10)))
}

#[test]
fn pods_with_anti_affinity_to_each_other_are_on_different_nodes() {
    let mut state = state(&["a1", "a2", "b1"]);
    let by_node = template("train", &apart("train", HOSTNAME));
    assert_eq!(plan(&mut state, &by_node, 3), "fits a1:1,a2:1,b1:1");
    assert_eq!(
        plan(&mut state, &by_node, 4),
        "infeasible only 3 of 4 pods fit on 3 nodes: 3 nodes do not match the pod anti-affinity even without the pods of lower \
         priority"
    );
    let by_zone = template("train", &apart("train", ZONE));
    assert_eq!(plan(&mut state, &by_zone, 2), "fits a1:1,b1:1");
    // Preferred terms have no effect.
    let preferred = json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 1, "podAffinityTerm": term("train", HOSTNAME)}]}}});
    assert_eq!(
        plan(&mut state, &template("train", &preferred), 3),
        "fits a1:3"
    );
}

#[test]
fn only_pods_in_the_way_are_preempted() {
    let mut state = state(&["a1", "a2", "b1"]);
    set_pods(
        &mut state,
        [
            running("web", "a2", 5, "web", &json!({})),
            running("batch", "a1", 1, "batch", &json!({})),
            running("important", "b1", 50, "web", &json!({})),
        ],
    );
    let wants = template("train", &apart("web", ZONE));
    // A single pod preempts on its own node only, as with kube-scheduler: there, `a1` is infeasible.
    assert_eq!(plan(&mut state, &wants, 1), "preempts pod/web for a2:1");
    // A gang preempts in the whole cluster.
    assert_eq!(plan(&mut state, &wants, 2), "preempts pod/web for a1:2");
    let wants = template("train", &apart("batch", HOSTNAME));
    assert_eq!(plan(&mut state, &wants, 1), "fits a2:1");
}

#[test]
fn anti_affinity_of_running_pods_is_respected() {
    let mut state = state(&["a1", "b1"]);
    let fields = apart("train", ZONE);
    set_pods(
        &mut state,
        [
            running("guard", "a1", 5, "web", &fields),
            running("strict", "b1", 50, "web", &fields),
        ],
    );
    let wants = template("train", &json!({}));
    assert_eq!(plan(&mut state, &wants, 1), "preempts pod/guard for a1:1");
    assert_eq!(plan(&mut state, &wants, 2), "preempts pod/guard for a1:2");
    assert_eq!(
        plan(&mut state, &template("other", &json!({})), 1),
        "fits a1:1"
    );
    state.remove_pod("ns", "guard");
    assert_eq!(
        plan(&mut state, &wants, 9),
        "infeasible only 8 of 9 pods fit on 2 nodes: \
        1 node does not match the anti-affinity of other pods even without the pods of lower priority"
    );
}

#[test]
fn pods_with_affinity_to_each_other_share_a_domain_that_is_large_enough() {
    let mut state = state(&["a1", "b1", "b2", "c"]);
    let wants = template("train", &together("train", ZONE));
    // Zone `a` has room for eight pods only.
    assert_eq!(plan(&mut state, &wants, 8), "fits a1:8");
    assert_eq!(plan(&mut state, &wants, 12), "fits b1:8,b2:4");
    // The first pod decides about the zone of all, and a node without one is no choice.
    set_pods(
        &mut state,
        [running("first", "b1", 50, "train", &json!({}))],
    );
    assert_eq!(plan(&mut state, &wants, 8), "fits b1:7,b2:1");
    let wants = template("other", &together("missing", ZONE));
    assert_eq!(
        plan(&mut state, &wants, 1),
        "infeasible 0 of 4 nodes fit 1 pod: 4 nodes do not match the pod affinity even without the pods of lower priority"
    );
}

#[test]
fn victim_that_gives_the_affinity_stays() {
    let mut state = state(&["a1", "b1"]);
    set_pods(
        &mut state,
        [
            running("cache", "b1", 1, "cache", &json!({})),
            running("one", "b1", 2, "web", &json!({})),
        ],
    );
    let mut filler = running("filler", "b1", 3, "web", &json!({}));
    filler["spec"]["containers"][0]["resources"]["requests"][GPU] = "6".into();
    set_pods(&mut state, [filler]);
    let wants = template("train", &together("cache", ZONE));
    assert_eq!(
        plan(&mut state, &wants, 1),
        "infeasible 0 of 2 nodes fit 1 pod: 2 nodes do not match the pod affinity even \
        without the pods of lower priority"
    );
}

#[test]
fn pods_are_spread_over_domains() {
    let mut state = state(&["a1", "a2", "b1", "c"]);
    let wants = template("train", &spread("train", ZONE, 1));
    assert_eq!(plan(&mut state, &wants, 4), "fits a1:2,b1:2");
    set_pods(
        &mut state,
        [
            running("one", "a1", 5, "train", &json!({})),
            running("two", "a2", 5, "train", &json!({})),
            running("other", "b1", 5, "web", &json!({})),
        ],
    );
    assert_eq!(plan(&mut state, &wants, 1), "fits b1:1");
    assert_eq!(plan(&mut state, &wants, 4), "fits a1:1,b1:3");
    // Without room in zone `b`, pods of zone `a` make way.
    let mut large = running("large", "b1", 50, "web", &json!({}));
    large["spec"]["containers"][0]["resources"]["requests"][GPU] = "7".into();
    set_pods(&mut state, [large]);
    assert_eq!(
        plan(&mut state, &wants, 2),
        "preempts pod/one pod/other pod/two for a1:1,b1:1"
    );
    // At least three zones: only one pod in each of two.
    let mut fields = spread("train", ZONE, 1);
    fields["topologySpreadConstraints"][0]["minDomains"] = 3.into();
    state.remove_pod("ns", "large");
    for name in ["one", "two"] {
        state.remove_pod("ns", name);
    }
    let wants = template("train", &fields);
    assert_eq!(plan(&mut state, &wants, 2), "fits a1:1,b1:1");
    assert_eq!(
        plan(&mut state, &wants, 3),
        "infeasible only 2 of 3 pods fit on 4 nodes: 3 nodes do not match the topology spread over \
         topology.kubernetes.io/zone even without the pods of lower priority, 1 node has no label topology.kubernetes.io/zone \
         even without the pods of lower priority"
    );
}

#[test]
fn spread_counts_the_nodes_that_the_policies_include() {
    let mut state = state(&["a1", "b1"]);
    let mut cordoned = node("c1", 8);
    cordoned["metadata"]["labels"][ZONE] = "c".into();
    cordoned["spec"]["taints"] = json!([{"key": "maintenance", "effect": "NoSchedule"}]);
    state.set_node(&object(&cordoned));
    // An empty zone to which no pod can go keeps the others from growing, unless the taint is honoured.
    let mut fields = spread("train", ZONE, 1);
    let text = plan(&mut state, &template("train", &fields), 3);
    assert!(text.starts_with("infeasible only 2 of 3 pods"), "{text}");
    fields["topologySpreadConstraints"][0]["nodeTaintsPolicy"] = "Honor".into();
    assert_eq!(
        plan(&mut state, &template("train", &fields), 3),
        "fits a1:2,b1:1"
    );
    // The node selector is honoured by default.
    fields["nodeSelector"] = json!({ZONE: "a"});
    assert_eq!(
        plan(&mut state, &template("train", &fields), 3),
        "fits a1:3"
    );
    fields["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore".into();
    let text = plan(&mut state, &template("train", &fields), 3);
    assert!(text.starts_with("infeasible only 1 of 3 pods"), "{text}");
}

#[test]
fn terms_select_namespaces() {
    let mut state = state(&["a1", "b1"]);
    let mut other = running("other", "a1", 50, "web", &json!({}));
    other["metadata"]["namespace"] = "shared".into();
    set_pods(&mut state, [other]);
    let with = |field: &str, value: Value| {
        let mut term = term("web", ZONE);
        term[field] = value;
        template("train", &affinity("podAntiAffinity", &[term]))
    };
    let own = template("train", &apart("web", ZONE));
    assert_eq!(plan(&mut state, &own, 1), "fits a1:1");
    let named = with("namespaces", json!(["shared"]));
    assert_eq!(plan(&mut state, &named, 1), "fits b1:1");
    let all = with("namespaceSelector", json!({}));
    assert_eq!(plan(&mut state, &all, 1), "fits b1:1");
    let selected = with(
        "namespaceSelector",
        json!({"matchLabels": {"team": "core"}}),
    );
    assert_eq!(plan(&mut state, &selected, 1), "fits a1:1");
    let revision = state.revision();
    state.set_namespace("shared", &[("team".to_owned(), "core".to_owned())].into());
    assert!(state.revision() > revision);
    assert_eq!(plan(&mut state, &selected, 1), "fits b1:1");
    state.set_namespace("shared", &[].into());
    assert_eq!(plan(&mut state, &selected, 1), "fits a1:1");
}

#[test]
fn label_keys_take_the_values_of_the_pod() {
    let mut state = state(&["a1", "b1"]);
    let mut old = running("old", "a1", 50, "train", &json!({}));
    old["metadata"]["labels"]["version"] = "1".into();
    set_pods(&mut state, [old]);
    let with = |field: &str, version: &str| {
        let mut term = term("train", ZONE);
        term[field] = json!(["version", "absent"]);
        let mut template = template("train", &affinity("podAntiAffinity", &[term]));
        let labels = template.metadata.as_mut().and_then(|it| it.labels.as_mut());
        labels
            .unwrap()
            .insert("version".to_owned(), version.to_owned());
        template
    };
    assert_eq!(
        plan(&mut state, &with("matchLabelKeys", "1"), 1),
        "fits b1:1"
    );
    assert_eq!(
        plan(&mut state, &with("matchLabelKeys", "2"), 1),
        "fits a1:1"
    );
    assert_eq!(
        plan(&mut state, &with("mismatchLabelKeys", "1"), 1),
        "fits a1:1"
    );
    assert_eq!(
        plan(&mut state, &with("mismatchLabelKeys", "2"), 1),
        "fits b1:1"
    );
}

#[test]
fn a_term_without_a_selector_selects_nothing() {
    let mut state = state(&["a1"]);
    set_pods(&mut state, [running("web", "a1", 50, "web", &json!({}))]);
    for term in [
        json!({"topologyKey": ZONE}),
        json!({"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}}),
    ] {
        let wants = template(
            "train",
            &affinity("podAntiAffinity", std::slice::from_ref(&term)),
        );
        assert_eq!(plan(&mut state, &wants, 1), "fits a1:1");
        let wants = template("train", &affinity("podAffinity", &[term]));
        assert!(plan(&mut state, &wants, 1).starts_with("infeasible"));
    }
    // An empty one selects all pods of the namespace.
    let all = json!({"topologyKey": ZONE, "labelSelector": {}});
    let wants = template("train", &affinity("podAntiAffinity", &[all]));
    assert!(plan(&mut state, &wants, 1).starts_with("infeasible"));
}

#[test]
fn reservation_counts_like_its_pods() {
    let mut state = state(&["a1", "b1"]);
    let wants = template("train", &apart("train", ZONE));
    state.set_workload(&workload("first", 20, DisruptionMode::PodGroup));
    let mut first = request(&wants, 1, 20);
    first.name = "first";
    state.reserve(&first, &placement(&[("a1", 1)]));
    assert_eq!(plan(&mut state, &wants, 1), "fits b1:1");
    state.release("ns", "first");
    assert_eq!(plan(&mut state, &wants, 1), "fits a1:1");
}

#[test]
fn nominated_placement_is_dropped_when_a_pod_excludes_it() {
    let mut state = state(&["a1", "b1"]);
    let wants = template("train", &apart("web", ZONE));
    let nominated = placement(&[("a1", 1)]);
    let mut nominee = request(&wants, 1, 10);
    nominee.nominated = Some(&nominated);
    set_pods(
        &mut state,
        [
            running("lower", "a1", 1, "web", &json!({})),
            running("equal", "b1", 10, "web", &json!({})),
        ],
    );
    assert_eq!(
        text(&state.plan(&nominee)),
        "preempts pod/lower for a1:1; The nominated placement is no longer valid: a pod of pod set \"main\" does not fit on node \
         \"a1\": the node does not match the pod anti-affinity."
    );
    let mut leaving = running("lower", "a1", 1, "web", &json!({}));
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    set_pods(&mut state, [leaving]);
    assert_eq!(text(&state.plan(&nominee)), "awaits a1:1");
}

#[test]
fn too_many_terms_are_rejected() {
    let mut state = state(&["a1"]);
    let values: Vec<String> = (0..998).map(|it| it.to_string()).collect();
    let with = |values: &[String]| {
        let expression = json!({"key": "app", "operator": "In", "values": values});
        let term =
            json!({"topologyKey": ZONE, "labelSelector": {"matchExpressions": [expression]}});
        template("train", &affinity("podAntiAffinity", &[term]))
    };
    assert_eq!(
        plan(&mut state, &with(&values), 1),
        "infeasible pod set \"main\": its pod affinity and topology spread have 1001 terms, requirements and values; the maximum \
         is 1000"
    );
    assert_eq!(plan(&mut state, &with(&values[1..]), 1), "fits a1:1");
}

#[test]
fn too_many_terms_of_a_bound_pod_are_ignored() {
    let mut state = state(&["a1"]);
    let terms = |count| -> Vec<Value> { vec![term("train", ZONE); count] };
    let guard = |count| {
        running(
            "guard",
            "a1",
            50,
            "web",
            &affinity("podAntiAffinity", &terms(count)),
        )
    };
    let wants = template("train", &json!({}));
    // A term with one label, its value and a namespace counts four times.
    set_pods(&mut state, [guard(250)]);
    assert!(plan(&mut state, &wants, 1).starts_with("infeasible"));
    set_pods(&mut state, [guard(251)]);
    assert_eq!(plan(&mut state, &wants, 1), "fits a1:1");
}

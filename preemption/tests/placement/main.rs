//! Node filters and placement strategies.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use lockkeeper_preemption::placement::{
    Affinity, AffinityTerm, Cluster, FilterRejection, FreeResources, HostSpec, LabelCondition,
    Labels, Overlay, PodPreemption, PodSpec, Requirement, Selector, Shape, Strategy, Taint,
    TaintEffect, Toleration, TolerationCondition, place,
};
use lockkeeper_preemption::{Amount, HostId, ResourceId, ShapeId};

/// Nodes `a`, `b`, … with these amounts of cpu, in this order.
fn nodes(cluster: &mut Cluster, cpus: &[i64]) -> Vec<HostId> {
    let cpu = cluster.resource("cpu");
    let names = ["a", "b", "c", "d"];
    let position = |at: usize| u32::try_from(at).unwrap();
    let all = cpus.iter().zip(names).enumerate();
    all.map(|(at, (amount, name))| {
        cluster.set_host(HostSpec {
            name,
            position: position(at),
            allocatable: vec![(cpu, Amount::new(*amount))],
            labels: Labels::default(),
            taints: vec![],
            is_unschedulable: false,
        })
    })
    .collect()
}

fn shape_of(cluster: &mut Cluster, cpu: i64) -> ShapeId {
    let requests = vec![(cluster.resource("cpu"), Amount::new(cpu))];
    cluster.shape(Shape {
        requests,
        ..Shape::default()
    })
}

fn add_running_pod(cluster: &mut Cluster, name: &str, host: HostId, shape: ShapeId) {
    cluster.set_pod(PodSpec {
        namespace: "",
        name,
        host: Some(host),
        shape,
        labels: Labels::default(),
        priority: 0,
        preemption: PodPreemption::default(),
        started_at_ns: None,
        is_terminating: false,
    });
}

#[track_caller]
fn check(strategy: Strategy, free: &[i64], pods: &[i64], expected: &[Option<usize>]) {
    let mut cluster = Cluster::new();
    let hosts = nodes(&mut cluster, &[10; 4][..free.len()]);
    for (at, (host, free)) in hosts.iter().zip(free).enumerate() {
        let shape = shape_of(&mut cluster, 10 - free);
        add_running_pod(&mut cluster, &at.to_string(), *host, shape);
    }
    let pods: Vec<ShapeId> = pods.iter().map(|it| shape_of(&mut cluster, *it)).collect();
    let mut overlay = Overlay::new(&cluster);
    let mark = overlay.mark();
    let placement = place(&cluster, &mut overlay, &hosts, &pods, strategy);
    let expected: Vec<_> = expected.iter().map(|it| it.map(|at| hosts[at])).collect();
    assert_eq!(placement, expected);

    overlay.roll_back(mark);
    let cpu = ResourceId::PODS;
    assert!(
        hosts
            .iter()
            .all(|it| overlay.free(*it, cpu) == cluster.free(*it, cpu))
    );
}

#[test]
fn first_fit_takes_first_node_that_fits() {
    let first = |free, pods, expected| check(Strategy::FirstFit, free, pods, expected);
    first(&[2, 5, 9], &[3, 3, 3], &[Some(1), Some(2), Some(2)]);
    first(
        &[2, 5, 9],
        &[3, 2, 2, 9],
        &[Some(1), Some(0), Some(1), Some(2)],
    );
    first(
        &[2, 2],
        &[3, 2, 3, 2, 2],
        &[None, Some(0), None, Some(1), None],
    );
}

#[test]
fn best_fit_takes_node_with_least_left() {
    let best = |free, pods, expected| check(Strategy::BestFit, free, pods, expected);
    best(
        &[9, 5, 5],
        &[3, 2, 3, 9],
        &[Some(1), Some(1), Some(2), Some(0)],
    );
    best(
        &[4, 3, 9],
        &[3, 3, 3, 3],
        &[Some(1), Some(0), Some(2), Some(2)],
    );
    best(&[1], &[2], &[None]);
}

#[test]
fn greedy_placement_with_more_room_may_place_fewer() {
    // With more room on the first node, an earlier pod occupies the only node on which the later one fits.
    check(Strategy::FirstFit, &[4, 5], &[5, 4], &[Some(1), Some(0)]);
    check(Strategy::FirstFit, &[5, 3], &[5, 4], &[Some(0), None]);
    check(
        Strategy::FirstFit,
        &[4, 5, 0],
        &[5, 4, 0],
        &[Some(1), Some(0), Some(0)],
    );
}

#[test]
fn node_pod_limit_is_enforced() {
    let mut cluster = Cluster::new();
    let host = cluster.set_host(HostSpec {
        name: "a",
        position: 0,
        allocatable: vec![(ResourceId::PODS, Amount::new(2))],
        labels: Labels::default(),
        taints: vec![],
        is_unschedulable: false,
    });
    let nothing = cluster.shape(Shape::default());
    add_running_pod(&mut cluster, "one", host, nothing);
    let mut overlay = Overlay::new(&cluster);
    let placement = place(
        &cluster,
        &mut overlay,
        &[host],
        &[nothing; 2],
        Strategy::FirstFit,
    );
    assert_eq!(placement, [Some(host), None]);
}

#[test]
fn pod_events_update_free_resources() {
    let mut cluster = Cluster::new();
    let hosts = nodes(&mut cluster, &[10, 10]);
    let cpu = cluster.resource("cpu");
    let shape = shape_of(&mut cluster, 4);
    let free = |cluster: &Cluster| {
        hosts
            .iter()
            .map(|it| cluster.free(*it, cpu).get())
            .collect::<Vec<_>>()
    };
    add_running_pod(&mut cluster, "x", hosts[0], shape);
    add_running_pod(&mut cluster, "y", hosts[0], shape);
    assert_eq!(free(&cluster), [2, 10]);
    add_running_pod(&mut cluster, "y", hosts[1], shape);
    assert_eq!(free(&cluster), [6, 6]);
    // After the node grows, its pod still counts.
    nodes(&mut cluster, &[20, 10]);
    assert_eq!(free(&cluster), [16, 6]);
    let pod = cluster.pod_id("", "x").unwrap();
    cluster.remove_pod(pod);
    cluster.remove_pod(pod);
    assert_eq!(free(&cluster), [20, 6]);
    cluster.remove_host(hosts[0]);
    assert_eq!(cluster.hosts().collect::<Vec<_>>(), [hosts[1]]);
}

/// Compares the rejection of a shape by a node with the labels `zone=a` and `rank=7` and further properties.
#[track_caller]
fn rejection(
    change: impl FnOnce(&mut Cluster, &mut HostSpec<'_>),
    shape: impl FnOnce(&mut Cluster, &mut Shape),
) -> Option<FilterRejection> {
    let mut cluster = Cluster::new();
    let labels = [("zone", "a"), ("rank", "7")];
    let labels = labels.map(|(key, value)| (cluster.symbol(key), cluster.symbol(value)));
    let cpu = cluster.resource("cpu");
    let mut spec = HostSpec {
        name: "node",
        position: 0,
        allocatable: vec![(cpu, Amount::new(10))],
        labels: Labels::from_pairs(labels),
        taints: vec![],
        is_unschedulable: false,
    };
    change(&mut cluster, &mut spec);
    let host = cluster.set_host(spec);
    let mut pod_shape = Shape::default();
    shape(&mut cluster, &mut pod_shape);
    let shape_id = cluster.shape(pod_shape);
    cluster
        .shape_of(shape_id)
        .rejection_by(cluster.host(host).unwrap(), cluster.symbols())
}

fn requirement(cluster: &mut Cluster, key: &str, values: &[&str]) -> Requirement {
    let key = cluster.symbol(key);
    let values = values.iter().map(|it| cluster.symbol(it)).collect();
    Requirement {
        key,
        condition: LabelCondition::In(values),
    }
}

#[test]
fn node_selector_matches_labels() {
    let selects = |values: &'static [&'static str]| {
        rejection(
            |_, _| {},
            |cluster, shape| {
                shape.selector = Selector(Box::new([requirement(cluster, "zone", values)]));
            },
        )
    };
    assert_eq!(selects(&["a"]), None);
    assert_eq!(selects(&["b"]), Some(FilterRejection::SelectorMismatch));

    let rank = |condition: fn() -> LabelCondition| {
        rejection(
            |_, _| {},
            |cluster, shape| {
                let key = cluster.symbol("rank");
                let condition = condition();
                shape.selector = Selector(Box::new([Requirement { key, condition }]));
            },
        )
    };
    assert_eq!(rank(|| LabelCondition::GreaterThan(6)), None);
    assert_eq!(
        rank(|| LabelCondition::GreaterThan(7)),
        Some(FilterRejection::SelectorMismatch)
    );
    assert_eq!(rank(|| LabelCondition::LessThan(8)), None);
    assert_eq!(
        rank(|| LabelCondition::LessThan(7)),
        Some(FilterRejection::SelectorMismatch)
    );
    assert_eq!(rank(|| LabelCondition::Exists), None);
    assert_eq!(
        rank(|| LabelCondition::DoesNotExist),
        Some(FilterRejection::SelectorMismatch)
    );
    assert_eq!(rank(|| LabelCondition::NotIn(Box::new([]))), None);
}

#[test]
fn affinity_needs_one_term_and_empty_term_matches_nothing() {
    let affine = |terms: &'static [(&'static [&'static str], &'static [&'static str])]| {
        rejection(
            |_, _| {},
            |cluster, shape| {
                let mut requirements = |key, values: &[&str]| match values {
                    [] => Box::default(),
                    values => Box::new([requirement(cluster, key, values)]) as Box<[Requirement]>,
                };
                let terms = terms.iter().map(|(zones, names)| AffinityTerm {
                    labels: requirements("zone", zones),
                    fields: requirements("metadata.name", names),
                });
                shape.affinity = Some(Affinity(terms.collect()));
            },
        )
    };
    assert_eq!(affine(&[(&["b"], &[]), (&["a"], &[])]), None);
    assert_eq!(affine(&[(&["a"], &["node"])]), None);
    assert_eq!(
        affine(&[(&["a"], &["other"])]),
        Some(FilterRejection::SelectorMismatch)
    );
    assert_eq!(
        affine(&[(&[], &[])]),
        Some(FilterRejection::SelectorMismatch)
    );
    assert_eq!(affine(&[]), Some(FilterRejection::SelectorMismatch));
}

#[test]
fn untolerated_taints_reject_pods() {
    let tolerates = |taint: TaintEffect,
                     toleration: Option<(&'static str, Option<TaintEffect>)>| {
        rejection(
            |cluster, host| {
                let (key, value) = (cluster.symbol("dedicated"), cluster.symbol("team"));
                let effect = taint;
                host.taints.push(Taint { key, value, effect });
            },
            |cluster, shape| {
                let key = Some(cluster.symbol("dedicated"));
                shape
                    .tolerations
                    .extend(toleration.map(|(value, effect)| Toleration {
                        key,
                        condition: TolerationCondition::Equal(cluster.symbol(value)),
                        effect,
                    }));
            },
        )
        .is_none()
    };
    assert!(!tolerates(TaintEffect::NoSchedule, None));
    assert!(!tolerates(TaintEffect::NoExecute, None));
    assert!(tolerates(TaintEffect::PreferNoSchedule, None));
    assert!(tolerates(TaintEffect::NoSchedule, Some(("team", None))));
    assert!(tolerates(
        TaintEffect::NoSchedule,
        Some(("team", Some(TaintEffect::NoSchedule)))
    ));
    assert!(!tolerates(
        TaintEffect::NoExecute,
        Some(("team", Some(TaintEffect::NoSchedule)))
    ));
    assert!(!tolerates(TaintEffect::NoSchedule, Some(("other", None))));
}

#[test]
fn cordoned_node_accepts_pod_tolerating_its_taint() {
    let cordon = |_: &mut Cluster, host: &mut HostSpec<'_>| host.is_unschedulable = true;
    assert_eq!(
        rejection(cordon, |_, _| {}),
        Some(FilterRejection::Unschedulable)
    );
    let tolerant = |cluster: &mut Cluster, shape: &mut Shape| {
        shape.tolerations.push(Toleration {
            key: Some(cluster.symbol("node.kubernetes.io/unschedulable")),
            condition: TolerationCondition::Exists,
            effect: None,
        });
    };
    assert_eq!(rejection(cordon, tolerant), None);
}

#[test]
fn node_smaller_than_request_is_rejected() {
    let asks = |cpu: i64| {
        rejection(
            |_, _| {},
            |cluster, shape| shape.requests = vec![(cluster.resource("cpu"), Amount::new(cpu))],
        )
    };
    assert_eq!(asks(10), None);
    assert!(
        matches!(asks(11), Some(FilterRejection::InsufficientAllocatable { requested, .. }) if requested.get() == 11)
    );
}

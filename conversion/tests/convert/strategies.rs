//! Random reservations.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::reservation::*;

/// Any object of any version.
pub fn any_object() -> impl Strategy<Value = Value> {
    prop_oneof![
        older().prop_map(|it| object("v1alpha1", "any", &it)),
        newer().prop_map(|it| object("v1beta1", "any", &it)),
        newest().prop_map(|it| object("v1", "any", &it)),
    ]
    .prop_flat_map(|object| {
        let annotations = btree_map("[a-c]{1,2}", "[a-z ]{0,5}", 1..3);
        (Just(object), option::of(annotations)).prop_map(|(mut object, annotations)| {
            if let Some(annotations) = annotations {
                object["metadata"]["annotations"] = json!(annotations);
            }
            object
        })
    })
}

pub const VERSIONS: [&str; 3] = ["v1alpha1", "v1beta1", "v1"];

/// Few words, so that the same ones meet; some with a slash, at which an owner is split.
fn word() -> impl Strategy<Value = String> {
    "[ab/~é]{0,3}"
}

pub fn older() -> impl Strategy<Value = V1Alpha1> {
    let mode = prop_oneof![
        Just(V1Alpha1Mode::Soft),
        Just(V1Alpha1Mode::Hard),
        Just(V1Alpha1Mode::Auto)
    ];
    let names = btree_map("[a-d]", option::of(word()), 0..4);
    let windows = names.prop_map(|it| it.into_iter().collect::<Vec<_>>());
    let windows = windows.prop_shuffle().prop_map(|list| {
        let window = |(name, start)| V1Alpha1Window { name, start };
        list.into_iter().map(window).collect()
    });
    let minutes = prop_oneof![0..4_u32, any::<u32>()];
    let state = option::of(word()).prop_map(|state| V1Alpha1Status { state });
    let state = option::of(state);
    (
        option::of(word()),
        option::of(minutes),
        option::of(mode),
        option::of(word()),
        windows,
        option::of(word()),
        state,
    )
        .prop_map(
            |(owner, minutes, mode, amount, windows, note, status)| V1Alpha1 {
                spec: Some(V1Alpha1Spec {
                    owner,
                    minutes,
                    mode,
                    amount,
                    windows,
                    note,
                }),
                status,
            },
        )
}

pub fn newer() -> impl Strategy<Value = V1Beta1> {
    let seconds = prop_oneof![0..300_u64, any::<u64>()];
    (
        option::of(word()),
        option::of(word()),
        option::of(seconds),
        option::of(guarantee()),
        option::of(word()),
        windows(),
        option::of(any::<bool>()),
        status(),
    )
        .prop_map(
            |(team, user, duration_seconds, guarantee, cpu, windows, tolerant, status)| V1Beta1 {
                spec: Some(V1Beta1Spec {
                    team,
                    user,
                    duration_seconds,
                    guarantee,
                    cpu,
                    windows,
                    tolerant,
                }),
                status,
            },
        )
}

fn newest() -> impl Strategy<Value = V1> {
    let note = option::of(word());
    (newer(), note).prop_map(|(V1Beta1 { spec, status }, note)| V1 {
        spec: spec.map(|spec| V1Spec {
            team: spec.team,
            user: spec.user,
            duration: spec.duration_seconds.map(|it| format!("{it}s")),
            guarantee: spec.guarantee,
            cpu: spec.cpu,
            windows: spec.windows,
            note,
        }),
        status,
    })
}

fn guarantee() -> impl Strategy<Value = Guarantee> {
    prop_oneof![
        Just(Guarantee::BestEffort),
        Just(Guarantee::Guaranteed),
        Just(Guarantee::Burst)
    ]
}

fn windows() -> impl Strategy<Value = BTreeMap<String, NewWindow>> {
    let window = (option::of(word()), option::of(word()))
        .prop_map(|(start, zone)| NewWindow { start, zone });
    btree_map("[a-d]", window, 0..4)
}

fn status() -> impl Strategy<Value = Option<Status>> {
    option::of(option::of(word()).prop_map(|phase| Status { phase }))
}

/// Any JSON.
pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..3_i64).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-d]", inner, 0..4).prop_map(|it| json!(it)),
        ]
    })
}

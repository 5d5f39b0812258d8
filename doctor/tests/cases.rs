//! Each check finds what it should, and nothing in objects without the fault.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use k8s_openapi::ByteString;
use lockkeeper_doctor::{CHECKS, Handshake, HandshakeError, Kind, Snapshot, diagnose};
use lockkeeper_explain::WorldSettings;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

mod support;

use support::write_text;

/// 2026-01-01T00:00:00Z.
const NOW_S: i64 = 1_767_225_600;

const DAY_S: i64 = 24 * 3600;

fn certificate(year: i32, day: u8) -> String {
    let mut params = CertificateParams::default();
    params.not_after = date_time_ymd(year, 1, day);
    params
        .self_signed(&KeyPair::generate().unwrap())
        .unwrap()
        .pem()
}

/// The bundles that cases name, in base64.
fn bundles() -> BTreeMap<&'static str, Value> {
    let (expired, valid) = (certificate(2025, 1), certificate(2030, 1));
    let both = expired.clone() + &valid;
    let bundles = [
        ("$valid", valid),
        ("$soon", certificate(2026, 10)),
        ("$expired", expired),
        ("$both", both),
    ];
    let bundles = bundles.map(|(name, pem)| (name, json!(ByteString(pem.into_bytes()))));
    bundles.into()
}

fn set_bundles(value: &mut Value, bundles: &BTreeMap<&str, Value>) {
    match value {
        Value::String(text) => {
            if let Some(bundle) = bundles.get(text.as_str()) {
                *value = bundle.clone();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|it| set_bundles(it, bundles)),
        Value::Object(fields) => fields.values_mut().for_each(|it| set_bundles(it, bundles)),
        _ => {}
    }
}

fn kind(name: &Value) -> Kind {
    match name.as_str().unwrap() {
        "Service" => Kind::Service,
        "EndpointSlice" => Kind::EndpointSlice,
        "PodDisruptionBudget" => Kind::PodDisruptionBudget,
        other => panic!("unknown kind {other}"),
    }
}

fn strings(case: &Value, field: &str) -> Option<Vec<String>> {
    let list = case.get(field)?.as_array().unwrap().iter();
    Some(list.map(|it| it.as_str().unwrap().to_owned()).collect())
}

fn snapshot_of(case: &Value) -> Snapshot {
    let mut snapshot = Snapshot::new();
    for name in case
        .get("complete")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        snapshot.mark_complete(kind(name));
    }
    for object in case.get("objects").unwrap().as_array().unwrap() {
        snapshot.add(object.clone());
    }
    assert!(snapshot.unreadable().is_empty());
    snapshot
}

fn cases() -> Vec<Value> {
    let mut cases: Vec<Value> = serde_saphyr::from_str(include_str!("cases.yaml")).unwrap();
    let bundles = bundles();
    for case in &mut cases {
        set_bundles(case, &bundles);
    }
    cases
}

#[test]
fn cases_have_their_findings() {
    let mut seen = BTreeSet::new();
    let mut evidence = String::new();
    for case in cases() {
        let name = case.get("name").unwrap().as_str().unwrap();
        let diagnosis = diagnose(&snapshot_of(&case), &WorldSettings::default(), &[], NOW_S);
        let found = diagnosis.findings.iter();
        let mut found: Vec<String> = found
            .map(|it| format!("{} {} {}", it.check.id, it.object, it.field))
            .collect();
        found.sort_unstable();
        let mut expected = strings(&case, "findings").unwrap();
        expected.sort_unstable();
        assert_eq!(found, expected, "{name}: {diagnosis:#?}");
        if let Some(expected) = strings(&case, "not_checked") {
            assert_eq!(diagnosis.not_checked, expected, "{name}");
        }
        seen.extend(diagnosis.findings.iter().map(|it| it.check.id));
        write_text(&mut evidence, name, &diagnosis);
    }
    let all = CHECKS.iter().map(|it| it.id);
    // These need handshakes.
    let missing: Vec<&str> = all.filter(|it| !seen.contains(it)).collect();
    assert_eq!(missing, ["DR013", "DR014"]);
    insta::assert_snapshot!(evidence);
}

#[test]
fn outcomes_of_handshakes_are_reported() {
    let case = cases().swap_remove(1);
    let snapshot = snapshot_of(&case);
    let [endpoint] = &snapshot.endpoints()[..] else {
        panic!("not one endpoint");
    };
    let outcomes = [
        Ok(NOW_S + 8 * DAY_S),
        Ok(NOW_S + 6 * DAY_S),
        Err(HandshakeError::NotTrusted("unknown issuer".to_owned())),
        Err(HandshakeError::NotReachable("timeout".to_owned())),
    ];
    let handshakes = outcomes.map(|outcome| Handshake {
        endpoint: endpoint.clone(),
        address: "10.0.0.1:9443".to_owned(),
        outcome,
    });
    let diagnosis = diagnose(&snapshot, &WorldSettings::default(), &handshakes, NOW_S);
    let mut text = String::new();
    write_text(&mut text, "handshakes", &diagnosis);
    insta::assert_snapshot!(text);
}

#[test]
fn addresses_are_those_of_ready_endpoints() {
    let cases = cases();
    let find = |name: &str| {
        let mut cases = cases.iter();
        let case = cases.find(|it| it.get("name").unwrap() == name);
        snapshot_of(case.unwrap())
    };
    let ready = find("two replicas without a disruption budget");
    let endpoint = &ready.endpoints()[0];
    assert_eq!(ready.addresses(endpoint), [("10.0.0.1".to_owned(), 9443)]);
    assert_eq!(endpoint.host(), "hook.hooks.svc");
    let not_ready = find("no ready endpoint, one replica");
    assert_eq!(not_ready.addresses(endpoint), []);
}

#[test]
fn objects_that_are_not_decoded_are_named() {
    let mut snapshot = Snapshot::new();
    snapshot.add(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": 5}}));
    let [reason] = snapshot.unreadable() else {
        panic!("{:?}", snapshot.unreadable());
    };
    assert!(reason.starts_with("Service/?: invalid type"), "{reason}");
}

#[test]
fn checks_have_sources_and_are_sorted() {
    let ids: Vec<&str> = CHECKS.iter().map(|it| it.id).collect();
    assert!(
        ids.is_sorted() && ids.iter().collect::<BTreeSet<_>>().len() == ids.len(),
        "{ids:?}"
    );
    for check in CHECKS {
        assert!(check.source.starts_with("https://"), "{}", check.id);
    }
}

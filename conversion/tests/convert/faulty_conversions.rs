//! Conversions that lose something, and that this is seen: the test of the tests in `lossless.rs`.

use lockkeeper_conversion::{
    Kind, LostField, RoundTripError, Version, VersionError, check_round_trip,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use serde::{Deserialize, Serialize};

use crate::reservation::{
    GROUP, KIND, Reservation, Status, V1Alpha1, V1Beta1, V1Beta1Spec, object,
};
use crate::strategies::{newer, older};

/// `v1beta1` with one mistake.
macro_rules! faulty {
    ($name:ident, lacks: $lacks:expr, into: $into:expr, from: $from:expr) => {
        #[derive(Clone, Debug, Deserialize, Serialize)]
        #[serde(transparent)]
        struct $name(V1Beta1);

        impl Version for $name {
            type Hub = Reservation;
            const NAME: &'static str = V1Beta1::NAME;
            const LACKS: &'static [&'static str] = $lacks;

            fn into_hub(self) -> Result<Reservation, VersionError> {
                let mut hub = self.0.clone().into_hub()?;
                let into: fn(&V1Beta1, &mut Reservation) = $into;
                into(&self.0, &mut hub);
                Ok(hub)
            }

            fn from_hub(hub: Reservation) -> Result<Self, VersionError> {
                let mut version = V1Beta1::from_hub(hub.clone())?;
                let from: fn(&Reservation, &mut V1Beta1) = $from;
                from(&hub, &mut version);
                Ok(Self(version))
            }
        }
    };
}

faulty!(ForgetsTolerant, lacks: V1Beta1::LACKS, into: |_, hub| {
    if let Some(spec) = &mut hub.spec {
        spec.tolerant = None;
    }
}, from: |_, _| {});
faulty!(HidesZone, lacks: V1Beta1::LACKS, into: |_, _| {}, from: |_, version| {
    let windows = version.spec.iter_mut().flat_map(|it| it.windows.values_mut());
    windows.for_each(|it| it.zone = None);
});
faulty!(SwapsNames, lacks: V1Beta1::LACKS, into: |_, _| {}, from: |_, version| {
    if let Some(spec) = &mut version.spec {
        std::mem::swap(&mut spec.team, &mut spec.user);
    }
});
faulty!(SaysLessThanItLacks, lacks: &["spec.mode", "spec.windows[]"], into: |_, _| {}, from: |_, _| {});
faulty!(RoundsUp, lacks: V1Beta1::LACKS, into: |_, hub| {
    if let Some(spec) = &mut hub.spec {
        spec.seconds = spec.seconds.map(|it| it.div_ceil(60).saturating_mul(60));
    }
}, from: |_, _| {});
faulty!(SortsOut, lacks: V1Beta1::LACKS, into: |_, _| {}, from: |_, version| {
    if let Some(spec) = &mut version.spec {
        spec.windows.retain(|name, _| name != "b");
    }
});

/// `v1beta1` with a field that must be there.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct NeedsStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spec: Option<V1Beta1Spec>,
    status: Status,
}

impl Version for NeedsStatus {
    type Hub = Reservation;
    const NAME: &'static str = V1Beta1::NAME;
    const LACKS: &'static [&'static str] = V1Beta1::LACKS;

    fn into_hub(self) -> Result<Reservation, VersionError> {
        let (spec, status) = (self.spec, Some(self.status));
        V1Beta1 { spec, status }.into_hub()
    }

    fn from_hub(hub: Reservation) -> Result<Self, VersionError> {
        let V1Beta1 { spec, status } = V1Beta1::from_hub(hub)?;
        let status = status.unwrap_or(Status { phase: None });
        Ok(Self { spec, status })
    }
}

/// An API server has objects converted of which a part is left.
#[test]
fn conversion_requiring_field_is_reported() {
    let kind = Kind::builder::<Reservation>(GROUP, KIND);
    let kind = kind
        .version::<V1Alpha1>()
        .version::<NeedsStatus>()
        .build()
        .unwrap();
    let whole = serde_json::json!({"spec": {"user": "ada"}, "status": {"phase": "Held"}});
    let message = check_round_trip(&kind, &object("v1beta1", "a", &whole))
        .unwrap_err()
        .to_string();
    let expected = "a v1beta1 object without status cannot be converted (missing field `status`): make all fields of its type optional, because the API server also converts partial objects (server-side apply)";
    assert_eq!(message, expected);
}

/// Runs the property over random objects of both versions, and gives the smallest flaw.
fn round_trip_error<V: Version<Hub = Reservation>>() -> Option<RoundTripError> {
    let kind = Kind::builder::<Reservation>(GROUP, KIND);
    let kind = kind.version::<V1Alpha1>().version::<V>().build().unwrap();
    let any = prop_oneof![
        older().prop_map(|it| object("v1alpha1", "a", &it)),
        newer().prop_map(|it| object("v1beta1", "a", &it)),
    ];
    let mut runner = TestRunner::new_with_rng(
        Config {
            failure_persistence: None,
            ..Config::with_cases(500)
        },
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let run = runner.run(&any, |object| {
        check_round_trip(&kind, &object).map_err(|flaw| TestCaseError::fail(flaw.to_string()))
    });
    match run {
        Ok(()) => None,
        Err(TestError::Fail(_, object)) => check_round_trip(&kind, &object).err(),
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn check_lost_fields<V: Version<Hub = Reservation>>(expected: &[LostField]) {
    match round_trip_error::<V>() {
        Some(RoundTripError::LostField(loss)) => assert!(expected.contains(&loss), "{loss:?}"),
        other => panic!("{other:?}"),
    }
}

fn not_in_hub(field: &str) -> LostField {
    let (version, field) = ("v1beta1".to_owned(), field.to_owned());
    LostField::NotInHub { version, field }
}

fn undeclared(field: &str) -> LostField {
    let (version, field) = ("v1beta1".to_owned(), field.to_owned());
    LostField::Undeclared { version, field }
}

#[test]
fn conversion_losing_field_is_reported() {
    assert_eq!(
        round_trip_error::<V1Beta1>(),
        None,
        "without a mistake none is found"
    );
    check_lost_fields::<ForgetsTolerant>(&[not_in_hub("spec.tolerant")]);
    check_lost_fields::<HidesZone>(
        &["a", "b", "c", "d"].map(|it| not_in_hub(&format!("spec.windows.{it}.zone"))),
    );
    check_lost_fields::<SaysLessThanItLacks>(&[undeclared("spec.note")]);
    check_lost_fields::<RoundsUp>(&[not_in_hub("spec.durationSeconds")]);
    check_lost_fields::<SwapsNames>(&[
        not_in_hub("spec.team"),
        not_in_hub("spec.user"),
        undeclared("spec.owner.team"),
        undeclared("spec.owner.user"),
    ]);
    check_lost_fields::<SortsOut>(&[not_in_hub("spec.windows.b"), undeclared("spec.windows[b]")]);
}

#[test]
fn round_trip_error_names_remedy() {
    assert_eq!(
        not_in_hub("spec.a").to_string(),
        "spec.a of v1beta1 is not in the hub: convert it in `into_hub` and `from_hub` of v1beta1"
    );
    assert_eq!(
        undeclared("spec.a").to_string(),
        "spec.a of the hub is lost in v1beta1, which does not list it in `LACKS`: convert it, or list it"
    );
}

#[test]
fn round_trip_of_other_kind_is_rejected() {
    let kind = crate::reservation::kind();
    let error = check_round_trip(
        &kind,
        &serde_json::json!({"apiVersion": "v1", "kind": "Pod"}),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "an object with apiVersion v1 is not a Reservation.samples.example.com; give one of its versions"
    );
}

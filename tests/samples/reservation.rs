//! A kind whose versions really differ, for the tests of conversion: a reservation of a part of a cluster.
//!
//! | | `v1alpha1` | `v1beta1` | `v1` |
//! | --- | --- | --- | --- |
//! | who | `owner: team/user` | `team`, `user` | `team`, `user` |
//! | how long | `minutes` | `durationSeconds` | `duration: 90s` |
//! | how sure | `Soft`, `Hard`, `Auto` | `BestEffort`, `Guaranteed`, `Burst` | as `v1beta1` |
//! | when | a list | a map, with `zone` | a map, with `zone` |
//! | how much | `amount` | `cpu` | `cpu` |
//! | only there | `note` | `tolerant` | `note` too |
//! | status | `state` | `phase` | `phase` |
//!
//! Every field is optional, also those that the schemas ask for: while an API server works out what an applier took back, it
//! has objects converted of which nothing is left but what others own.
#![allow(
    dead_code,
    missing_docs,
    clippy::unwrap_used,
    reason = "tests fail by panicking, and not each of them needs all of it"
)]

use std::collections::BTreeMap;

use lockkeeper_api::field_path::FieldPath;
use lockkeeper_conversion::{Converters, Hub, Kind, ListKey, Version, VersionError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub const GROUP: &str = "samples.example.com";
pub const KIND: &str = "Reservation";

/// The kind with all of its versions.
pub fn kind() -> Kind {
    let kind = Kind::builder::<Reservation>(GROUP, KIND);
    let kind = kind.version::<V1Alpha1>().version::<V1Beta1>();
    kind.version::<V1>().build().unwrap()
}

/// A registry of this kind alone.
pub fn converters() -> Converters {
    Converters::new([kind()]).unwrap()
}

/// An object of this version and payload.
pub fn object(version: &str, name: &str, payload: &impl Serialize) -> Value {
    let mut object = serde_json::to_value(payload).unwrap();
    object["apiVersion"] = format!("{GROUP}/{version}").into();
    object["kind"] = KIND.into();
    object["metadata"] = json!({"name": name, "namespace": "default"});
    object
}

/// All that any version can say.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Reservation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Spec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerant: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Owner {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub enum Mode {
    Soft,
    Hard,
    Auto,
    Burst,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Window {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Status {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

const WINDOWS: &[ListKey] = &[ListKey {
    list: "spec.windows",
    key: "name",
}];

impl Hub for Reservation {
    const LIST_KEYS: &'static [ListKey] = WINDOWS;
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct V1Alpha1 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<V1Alpha1Spec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<V1Alpha1Status>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct V1Alpha1Spec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<V1Alpha1Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<V1Alpha1Window>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub enum V1Alpha1Mode {
    Soft,
    Hard,
    Auto,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct V1Alpha1Window {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct V1Alpha1Status {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl Version for V1Alpha1 {
    type Hub = Reservation;

    const NAME: &'static str = "v1alpha1";
    const LACKS: &'static [&'static str] = &[
        // `/` in the name of a team, or in that of a user without a team, would be read as something else.
        "spec.owner",
        "spec.seconds",
        "spec.mode",
        "spec.windows.*.zone",
        "spec.tolerant",
    ];
    const LIST_KEYS: &'static [ListKey] = WINDOWS;

    fn into_hub(self) -> Result<Reservation, VersionError> {
        let window = |it: V1Alpha1Window| Window {
            name: it.name,
            start: it.start,
            zone: None,
        };
        let spec = |spec: V1Alpha1Spec| Spec {
            owner: spec.owner.map(|owner| match owner.split_once('/') {
                Some((team, user)) => Owner {
                    team: Some(team.to_owned()),
                    user: Some(user.to_owned()),
                },
                None => Owner {
                    team: None,
                    user: Some(owner),
                },
            }),
            seconds: spec.minutes.map(|it| u64::from(it) * 60),
            mode: spec.mode.map(|it| match it {
                V1Alpha1Mode::Soft => Mode::Soft,
                V1Alpha1Mode::Hard => Mode::Hard,
                V1Alpha1Mode::Auto => Mode::Auto,
            }),
            cpu: spec.amount,
            windows: spec.windows.into_iter().map(window).collect(),
            note: spec.note,
            tolerant: None,
        };
        Ok(Reservation {
            spec: self.spec.map(spec),
            status: self.status.map(|it| Status { phase: it.state }),
        })
    }

    fn from_hub(hub: Reservation) -> Result<Self, VersionError> {
        let window = |it: Window| V1Alpha1Window {
            name: it.name,
            start: it.start,
        };
        // Longer rather than shorter: no reservation must end too early.
        let minutes = |it: u64| u32::try_from(it.div_ceil(60)).unwrap_or(u32::MAX);
        let spec = |spec: Spec| V1Alpha1Spec {
            owner: match names(spec.owner) {
                (Some(team), user) => Some(format!("{team}/{}", user.unwrap_or_default())),
                (None, user) => user,
            },
            minutes: spec.seconds.map(minutes),
            mode: spec.mode.map(|it| match it {
                Mode::Soft | Mode::Burst => V1Alpha1Mode::Soft,
                Mode::Hard => V1Alpha1Mode::Hard,
                Mode::Auto => V1Alpha1Mode::Auto,
            }),
            amount: spec.cpu,
            windows: spec.windows.into_iter().map(window).collect(),
            note: spec.note,
        };
        Ok(Self {
            spec: hub.spec.map(spec),
            status: hub.status.map(|it| V1Alpha1Status { state: it.phase }),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct V1Beta1 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<V1Beta1Spec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct V1Beta1Spec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub windows: BTreeMap<String, NewWindow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerant: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub enum Guarantee {
    BestEffort,
    Guaranteed,
    Burst,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct NewWindow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl From<Guarantee> for Mode {
    fn from(guarantee: Guarantee) -> Self {
        match guarantee {
            Guarantee::BestEffort => Self::Soft,
            Guarantee::Guaranteed => Self::Hard,
            Guarantee::Burst => Self::Burst,
        }
    }
}

impl From<Mode> for Guarantee {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Soft | Mode::Auto => Self::BestEffort,
            Mode::Hard => Self::Guaranteed,
            Mode::Burst => Self::Burst,
        }
    }
}

/// The owner, if either of its names is there.
fn owner(team: Option<String>, user: Option<String>) -> Option<Owner> {
    (team.is_some() || user.is_some()).then_some(Owner { team, user })
}

/// The names of the owner.
fn names(owner: Option<Owner>) -> (Option<String>, Option<String>) {
    owner.map_or((None, None), |it| (it.team, it.user))
}

fn list(windows: BTreeMap<String, NewWindow>) -> Vec<Window> {
    let window = |(name, it): (String, NewWindow)| Window {
        name,
        start: it.start,
        zone: it.zone,
    };
    windows.into_iter().map(window).collect()
}

fn map(windows: Vec<Window>) -> BTreeMap<String, NewWindow> {
    let entry = |it: Window| {
        let (start, zone) = (it.start, it.zone);
        (it.name, NewWindow { start, zone })
    };
    windows.into_iter().map(entry).collect()
}

impl Version for V1Beta1 {
    type Hub = Reservation;

    const NAME: &'static str = "v1beta1";
    const LACKS: &'static [&'static str] = &["spec.mode", "spec.windows[]", "spec.note"];

    fn into_hub(self) -> Result<Reservation, VersionError> {
        let spec = |spec: V1Beta1Spec| Spec {
            owner: owner(spec.team, spec.user),
            seconds: spec.duration_seconds,
            mode: spec.guarantee.map(Mode::from),
            cpu: spec.cpu,
            windows: list(spec.windows),
            note: None,
            tolerant: spec.tolerant,
        };
        Ok(Reservation {
            spec: self.spec.map(spec),
            status: self.status,
        })
    }

    fn from_hub(hub: Reservation) -> Result<Self, VersionError> {
        let spec = |spec: Spec| {
            let (team, user) = names(spec.owner);
            V1Beta1Spec {
                team,
                user,
                duration_seconds: spec.seconds,
                guarantee: spec.mode.map(Guarantee::from),
                cpu: spec.cpu,
                windows: map(spec.windows),
                tolerant: spec.tolerant,
            }
        };
        Ok(Self {
            spec: hub.spec.map(spec),
            status: hub.status,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct V1 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<V1Spec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct V1Spec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub windows: BTreeMap<String, NewWindow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Version for V1 {
    type Hub = Reservation;

    const NAME: &'static str = "v1";
    const LACKS: &'static [&'static str] = &["spec.mode", "spec.windows[]", "spec.tolerant"];

    fn into_hub(self) -> Result<Reservation, VersionError> {
        let seconds = |duration: String| {
            let seconds = duration.strip_suffix('s');
            let seconds = seconds.and_then(|it| it.parse().ok());
            seconds.ok_or_else(|| {
                let field = FieldPath::new("spec.duration");
                VersionError::new(field, "must be a number of seconds, such as 90s")
            })
        };
        let spec = |spec: V1Spec| {
            Ok(Spec {
                owner: owner(spec.team, spec.user),
                seconds: spec.duration.map(seconds).transpose()?,
                mode: spec.guarantee.map(Mode::from),
                cpu: spec.cpu,
                windows: list(spec.windows),
                note: spec.note,
                tolerant: None,
            })
        };
        Ok(Reservation {
            spec: self.spec.map(spec).transpose()?,
            status: self.status,
        })
    }

    fn from_hub(hub: Reservation) -> Result<Self, VersionError> {
        let spec = |spec: Spec| {
            let (team, user) = names(spec.owner);
            V1Spec {
                team,
                user,
                duration: spec.seconds.map(|it| format!("{it}s")),
                guarantee: spec.mode.map(Guarantee::from),
                cpu: spec.cpu,
                windows: map(spec.windows),
                note: spec.note,
            }
        };
        Ok(Self {
            spec: hub.spec.map(spec),
            status: hub.status,
        })
    }
}

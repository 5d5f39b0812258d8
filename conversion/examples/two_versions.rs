//! A kind with two versions: `v1` renames `size` to `replicas` and drops `note`.
//!
//! Run with `cargo run --package lockkeeper-conversion --example two_versions`.
#![allow(clippy::print_stdout, reason = "the example prints its results")]

use lockkeeper_conversion::{Converters, Hub, Kind, Version, VersionError, check_round_trip};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::error::Error;

/// The hub: every field of every version.
#[derive(Serialize, Deserialize)]
struct Widget {
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Hub for Widget {}

#[derive(Serialize, Deserialize)]
struct V1Alpha1 {
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Version for V1Alpha1 {
    type Hub = Widget;
    const NAME: &'static str = "v1alpha1";
    const LACKS: &'static [&'static str] = &[];

    fn into_hub(self) -> Result<Widget, VersionError> {
        Ok(Widget {
            replicas: self.size,
            note: self.note,
        })
    }

    fn from_hub(hub: Widget) -> Result<Self, VersionError> {
        Ok(Self {
            size: hub.replicas,
            note: hub.note,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct V1 {
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<u32>,
}

impl Version for V1 {
    type Hub = Widget;
    const NAME: &'static str = "v1";
    const LACKS: &'static [&'static str] = &["note"];

    fn into_hub(self) -> Result<Widget, VersionError> {
        Ok(Widget {
            replicas: self.replicas,
            note: None,
        })
    }

    fn from_hub(hub: Widget) -> Result<Self, VersionError> {
        Ok(Self {
            replicas: hub.replicas,
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let kind = Kind::builder::<Widget>("example.com", "Widget")
        .version::<V1Alpha1>()
        .version::<V1>()
        .build()?;
    let object = json!({
        "apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": "a"},
        "size": 3, "note": "preserved in an annotation",
    });
    check_round_trip(&kind, &object)?;
    let converters = Converters::new([kind])?;
    let converted = converters.convert(object.clone(), "example.com/v1")?.object;
    println!("{converted:#}");
    let restored = converters
        .convert(converted, "example.com/v1alpha1")?
        .object;
    println!("{restored:#}");
    if restored == object {
        Ok(())
    } else {
        Err("the round trip changed the object".into())
    }
}

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use crate::yaml;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use schemars::{Schema, json_schema};

/// A field of every sort that the kinds have.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Sample {
    /// How many,
    /// at most.
    count: Option<i32>,
    /// A choice.
    choice: Option<Choice>,
    /// Several
    /// things.
    #[schemars(length(max = 2))]
    parts: Option<Vec<Part>>,
    unsigned: u32,
}

/// The type of a choice.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
enum Choice {
    /// The one,
    /// of course.
    One,
    /// The other.
    Other,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Part {
    #[schemars(schema_with = "amount")]
    amount: String,
}

fn amount(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({
        "description": "How much.",
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^[0-9]+m?$",
        "x-kubernetes-int-or-string": true,
    })
}

#[test]
fn json_schema_becomes_structural() {
    let schema = serde_json::to_value(schema::<Sample>()).unwrap();
    assert_eq!(
        schema["properties"],
        json!({
            "count": {
                "description": "How many, at most.",
                "type": "integer",
                "format": "int32",
            },
            "choice": {
                "description": "A choice.\n\n- One: The one, of course.\n- Other: The other.",
                "type": "string",
                "enum": ["One", "Other"],
            },
            "parts": {
                "description": "Several things.",
                "type": "array",
                "maxItems": 2,
                "items": {
                    "type": "object",
                    "required": ["amount"],
                    "properties": {
                        "amount": {
                            "description": "How much. A quantity, such as 500m, 4 or 16Gi.",
                            "anyOf": [{"type": "integer"}, {"type": "string"}],
                            "maxLength": QUANTITY_LENGTH_MAX,
                            "pattern": "^[0-9]+m?$",
                            "x-kubernetes-int-or-string": true,
                        },
                    },
                },
            },
            "unsigned": {"type": "integer", "minimum": 0.0},
        })
    );
}

/// The types of Kubernetes drop unknown fields when a schema is decoded; there must be none.
#[test]
fn schema_conversion_to_json_schema_props_is_lossless() {
    fn check<T: JsonSchema>() {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let mut root = settings.into_generator().into_root_schema_for::<T>();
        make_structural(root.ensure_object());
        let read = yaml::document(&schema::<T>()).unwrap();
        assert_eq!(read, yaml::document(&root).unwrap());
        assert!(read.len() > 1000, "{read}");
    }
    check::<ClusterQueue>();
    check::<Cohort>();
    check::<LocalQueue>();
    check::<ResourceFlavor>();
    check::<Workload>();
}

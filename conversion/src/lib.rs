//! Lossless conversion of custom resources between versions, and migration of stored objects.
//!
//! A kind has a [`Hub`], a type with every field of every version, and each [`Version`] converts to and from it (the
//! hub-and-spoke model of controller-runtime). Fields that the target version lacks, or that the hub does not define, are
//! preserved in annotations ([`PRESERVED_ANNOTATION_PREFIX`]) and restored by the conversion back. A `Version`
//! implementation may drop fields that it has no place for; [`Converters`] makes the round trip lossless.
//!
//! - A preserved field is restored only if the value it depends on is unchanged. A field that was changed in the other
//!   version, or removed together with its parent, keeps its new state: the newer edit wins.
//! - Restoring a field never changes the object as seen in the version that it was preserved from. So an annotation cannot
//!   hide or change visible fields, even if it was written by hand.
//! - In `metadata`, only those annotations change: an API server accepts no other change to the metadata.
//!
//! [`check_round_trip`] finds the fields that a conversion loses; run it in a property test on random objects.
//! [`migration()`] and [`check_removal`] move stored objects to another version and report whether a version can be removed.
#![deny(clippy::arithmetic_side_effects)]

mod converters;
mod difference;
mod error;
mod kind;
mod object;
mod preserved_fields;
mod round_trip;
mod storage;

pub use converters::{ConversionResult, Converters};
pub use difference::ListKey;
pub use error::{
    ConvertError, ConvertErrorKind, ObjectIdentity, PRESERVED_MAX_BYTES, RegistryError,
    VersionError,
};
pub use kind::{Hub, Kind, KindBuilder, Version};
pub use preserved_fields::PRESERVED_ANNOTATION_PREFIX;
pub use round_trip::{LostField, RoundTripError, check_round_trip};
pub use storage::{RemovalError, check_removal, definition_name, migration, removal_blockers};

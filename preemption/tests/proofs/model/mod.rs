//! Small worlds: made from bytes, put into a `State`, and read back by name.

pub mod dice;
pub mod events;
pub mod generate;
pub mod live;
pub mod reading;
pub mod told;
pub mod world;

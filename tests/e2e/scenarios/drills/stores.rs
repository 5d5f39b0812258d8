//! Stores that cannot be filled.
use super::site::Site;
use crate::lockkeeper::Protocol;
use crate::stage::{DEFAULTS, Stage};

pub fn empty(stage: &mut Stage, protocol: Protocol) {
    let _ = Site::open(stage, protocol, DEFAULTS, 1);
}

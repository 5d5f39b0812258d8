//! The API server goes away and comes back.
use super::site::Site;
use crate::lockkeeper::Protocol;
use crate::stage::{DEFAULTS, Stage};

pub fn restarted(stage: &mut Stage, protocol: Protocol) {
    let _ = Site::open(stage, protocol, DEFAULTS, 1);
}

//! x

pub mod bootstrap;
pub mod listener;
pub mod tls;

//! All fuzz targets in one program, so that their common code is compiled and linked once. The environment variable
//! `LOCKKEEPER_FUZZ_TARGET` selects one.
#![no_main]

mod builtin;
mod client;
mod config;
mod connection;
mod convert;
mod decisionlog;
mod definition;
mod jobkind;
mod pem;
mod pem_input;
mod policy;
mod quantity;
mod reconciler;
mod resource;
mod review;
mod scenario;
mod secret;
mod traceimport;
mod userrule;
mod world;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

type Target = fn(&[u8]);

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("LOCKKEEPER_FUZZ_TARGET").expect("LOCKKEEPER_FUZZ_TARGET names a target");
    match name.as_str() {
        "builtin" => |input| builtin::run(text_of(input)),
        "client" => client::run,
        "config" => |input| config::run(text_of(input)),
        "connection" => connection::run,
        "convert" => convert::run,
        "decisionlog" => |input| decisionlog::run(text_of(input)),
        "definition" => |input| definition::run(text_of(input)),
        "jobkind" => |input| jobkind::run(text_of(input)),
        "pem" => pem::run,
        "policy" => |input| policy::run(text_of(input)),
        "quantity" => |input| quantity::run(text_of(input)),
        "reconciler" => |input| reconciler::run(text_of(input)),
        "resource" => |input| resource::run(text_of(input)),
        "review" => review::run,
        "scenario" => |input| scenario::run(text_of(input)),
        "secret" => secret::run,
        "traceimport" => |input| traceimport::run(text_of(input)),
        "userrule" => |input| userrule::run(text_of(input)),
        "world" => |input| world::run(text_of(input)),
        other => panic!("there is no target {other}"),
    }
});

fuzz_target!(|input: &[u8]| TARGET(input));

/// The longest start of an input that is UTF-8.
fn text_of(input: &[u8]) -> &str {
    match std::str::from_utf8(input) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&input[..error.valid_up_to()]).unwrap_or_default(),
    }
}

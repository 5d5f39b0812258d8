//! Drills: failures under load. No request is lost that need not be, and no response has a wrong
//! result.
//!
//! Each drill prints the counts of its requests. `LOCKKEEPER_DRILL_REQUESTS` is the number of requests in each
//! step. `docs/reliability.md` has the measurements and the limits.

mod api_server;
mod certificates;
mod fixture;
mod replicas;
mod stores;

use super::Scenario;
use crate::fixture::Fixture;
use crate::lockkeeper::Protocol;

pub fn scenarios() -> Vec<Scenario> {
    let drill = |name: &'static str, run: fn(&mut Fixture, Protocol)| {
        Scenario::new(format!("drill: {name}"), run)
    };
    // For a webhook behind a Service the API server uses HTTP/1.1.
    let once = |name, run| drill(name, run).only(Protocol::Http1);
    vec![
        drill("the certificate is rotated twice", certificates::rotated),
        drill("a broken certificate is not served", certificates::broken),
        drill("two replicas are updated in turn", replicas::updated),
        drill("one of two replicas is killed", replicas::killed),
        drill("the only replica is restarted", replicas::restarted),
        once("the API server is restarted", api_server::restarted),
        once("the stores cannot be filled", stores::stores_without_rights),
    ]
}

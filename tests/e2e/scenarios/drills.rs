//! Drills: things break under load, and nothing is lost that need not be, and nothing is answered
//! wrongly.
//!
//! Each prints what came of its requests. `LOCKKEEPER_DRILL_REQUESTS` says how many are sent in each
//! step. `docs/reliability.md` holds what was measured and what cannot be promised.

mod api_server;
mod certificates;
mod replicas;
mod site;
mod stores;

use super::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "drill: the certificate is rotated twice",
            certificates::rotated,
        ),
        Scenario::new(
            "drill: a broken certificate is not served",
            certificates::broken,
        ),
        Scenario::new("drill: two replicas are updated in turn", replicas::updated),
        Scenario::new("drill: one of two replicas is killed", replicas::killed),
        Scenario::new("drill: the only replica is restarted", replicas::restarted),
        Scenario::new("drill: the API server is restarted", api_server::restarted),
        Scenario::new("drill: the stores cannot be filled", stores::empty),
    ]
}

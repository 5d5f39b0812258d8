//! A configuration that is accepted is accepted again after it was printed, and means the same.

use lockkeeper_api::config::Config;
use lockkeeper_policies::registry;

pub fn run(text: &str) {
    let Ok(config) = serde_saphyr::from_str::<Config>(text) else {
        return;
    };
    // As --print-config does it.
    let printed = serde_saphyr::to_string(&config).expect("a configuration has a YAML form");
    let again: Config = serde_saphyr::from_str(&printed).expect("the printed configuration is valid");
    assert_eq!(again, config, "{printed}");
    let known = registry::settings(&config).is_ok();
    assert_eq!(registry::settings(&again).is_ok(), known);
}

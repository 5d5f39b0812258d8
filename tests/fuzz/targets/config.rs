//! A configuration that is accepted is accepted again after it was printed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockkeeper_api::config::Config;
use lockkeeper_policies::registry;

fuzz_target!(|text: &str| {
    if let Ok(config) = serde_saphyr::from_str::<Config>(text) {
        let printed = serde_json::to_string(&config).expect("a configuration has a JSON form");
        let again: Config = serde_json::from_str(&printed).expect("what was printed is read");
        assert_eq!(again, config);
        let _ = registry::settings(&config);
    }
});

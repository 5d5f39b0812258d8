//! The settings of a controller in benchmarks.

use lockkeeper_controller::Settings;
use lockkeeper_policies::settings::Settings as RuleSettings;
use lockkeeper_preemption::Options;
use lockkeeper_preemption::requeue::RequeueSettings;

/// Those of a controller without jobs, pods and declared kinds.
pub fn settings() -> Settings {
    Settings {
        options: Options::default(),
        requeue: RequeueSettings::default(),
        excluded_resource_prefixes: Vec::new(),
        rules: RuleSettings::default(),
        writes_max: 32,
        status_interval_ms: 1_000,
        pending_reason_writes_per_second: 10,
        eviction_events_per_second: 5,
        job_response_ms: 60_000,
        stuck_eviction_ms: 120_000,
        finished_retention_ms: None,
        has_decision_log: false,
        template_bytes_max: 32 << 20,
        job_kinds: Vec::new(),
        has_pod_groups: false,
        has_job_kinds: false,
        seed: 1,
        instance: "bench".to_owned(),
    }
}

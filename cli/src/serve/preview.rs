//! The warnings of `webhook.preview`.

use lockkeeper_api::config::Config;
use lockkeeper_cluster_state::settings::{requeue_settings, scheduling_options};
use lockkeeper_controller::LivePreview;
use lockkeeper_controller::preview::PreviewSettings;
use lockkeeper_kube_support::api_client::ApiClients;
use lockkeeper_webhook::preview::AdmissionPreview;

/// The start of each warning.
const PREFIX: &str = "preview: ";

struct ClusterPreview(LivePreview);

impl AdmissionPreview for ClusterPreview {
    fn preview(&self, object: &str) -> Option<String> {
        let preview = self.0.preview(object)?;
        Some(format!("{PREFIX}{preview}"))
    }
}

/// Starts the previews of a cluster.
pub(super) fn start(clients: &ApiClients, config: &Config) -> Box<dyn AdmissionPreview> {
    let settings = PreviewSettings {
        options: scheduling_options(config),
        requeue: requeue_settings(config),
        excluded_resource_prefixes: config.resources.exclude_prefixes.clone(),
    };
    let object_max_bytes = config.controller.job_spec_max_bytes.count();
    let live = LivePreview::start(clients, settings, object_max_bytes);
    Box::new(ClusterPreview(live))
}

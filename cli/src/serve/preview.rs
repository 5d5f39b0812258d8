//! The warnings of `webhook.preview`.

use anyhow::{Context, Error};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
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
    fn preview(&self, object: String) -> BoxFuture<'_, Option<String>> {
        async {
            let preview = self.0.preview(object).await?;
            Some(format!("{PREFIX}{preview}"))
        }
        .boxed()
    }
}

/// Starts the previews of a cluster.
pub(super) fn start(
    clients: &ApiClients,
    config: &Config,
) -> Result<Box<dyn AdmissionPreview>, Error> {
    let settings = PreviewSettings {
        options: scheduling_options(config),
        requeue: requeue_settings(config),
        excluded_resource_prefixes: config.resources.exclude_prefixes.clone(),
    };
    let object_max_bytes = config.controller.job_spec_max_bytes.count();
    let live = LivePreview::start(clients, settings, object_max_bytes)
        .context("cannot start the thread of webhook.preview")?;
    Ok(Box::new(ClusterPreview(live)))
}

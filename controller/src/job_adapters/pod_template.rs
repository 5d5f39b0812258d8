//! Strips pod templates to the fields that decisions use: requests and placement.

use k8s_openapi::api::core::v1::{Affinity, Container, PodSpec, PodTemplateSpec};

/// The template without the fields that no decision uses. Two stripped templates are equal if and only if
/// scheduling treats their pods alike.
#[must_use]
pub fn strip_template(template: PodTemplateSpec) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: None,
        spec: template.spec.map(|spec| PodSpec {
            containers: spec.containers.into_iter().map(strip_container).collect(),
            init_containers: spec
                .init_containers
                .map(|all| all.into_iter().map(strip_container).collect()),
            node_selector: spec.node_selector.filter(|it| !it.is_empty()),
            affinity: spec
                .affinity
                .and_then(|it| it.node_affinity)
                .map(|nodes| Affinity {
                    node_affinity: Some(nodes),
                    ..Affinity::default()
                }),
            tolerations: spec.tolerations.filter(|it| !it.is_empty()),
            overhead: spec.overhead,
            resources: spec.resources,
            ..PodSpec::default()
        }),
    }
}

fn strip_container(container: Container) -> Container {
    Container {
        resources: container.resources,
        restart_policy: container.restart_policy,
        ..Container::default()
    }
}

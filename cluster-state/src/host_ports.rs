//! The ports of its node that a pod uses.

use k8s_openapi::api::core::v1::{Container, PodSpec};
use lockkeeper_preemption::{PortProtocol, ResourceId};

/// The host ports of a pod: those of its containers and sidecars. In the network of its node, each port of a container is one.
/// The address is not considered, so pods with different host IPs do not share a node. A port that the API server would
/// reject is none.
///
/// Source: kube-scheduler v1.37, plugin `NodePorts`; the API server's defaults of pods with `hostNetwork`.
pub fn host_ports(spec: &PodSpec) -> impl Iterator<Item = ResourceId> + '_ {
    let is_on_host = spec.host_network == Some(true);
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|it| it.restart_policy.as_deref() == Some("Always"));
    let containers = spec.containers.iter().chain(sidecars);
    containers.flat_map(move |it| ports_of(it, is_on_host))
}

fn ports_of(container: &Container, is_on_host: bool) -> impl Iterator<Item = ResourceId> + '_ {
    let ports = container.ports.iter().flatten();
    ports.filter_map(move |port| {
        let given = port.host_port.filter(|it| *it > 0);
        let number = given.or_else(|| is_on_host.then_some(port.container_port))?;
        let number = u16::try_from(number).ok().filter(|it| *it > 0)?;
        let protocol = match port.protocol.as_deref().unwrap_or_default() {
            "" | "TCP" => PortProtocol::Tcp,
            "UDP" => PortProtocol::Udp,
            "SCTP" => PortProtocol::Sctp,
            _ => return None,
        };
        Some(ResourceId::host_port(protocol, number))
    })
}

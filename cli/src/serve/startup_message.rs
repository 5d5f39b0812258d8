//! The startup message of `lockkeeper serve`.

use super::ObjectSource;
use super::certificates::CertificateSource;
use crate::standard_output::StandardOutput;
use lockkeeper_policies::index::IndexedKind;
use std::io::{Result, Write};
use std::net::SocketAddr;
use std::path::Path;

/// A review that is rejected, and one that is defaulted.
const EXAMPLES: [(&str, &str, &str); 2] = [
    (
        "This object is rejected, and the response has the reasons:",
        "examples/reviews/clusterqueue-rejected.json",
        "validate",
    ),
    (
        "This object is defaulted; the patch is base64, and \"defaulted\" lists the fields:",
        "examples/reviews/workload-defaulted.json",
        "mutate",
    ),
];

/// The addresses of the ports; `None` for those that are off.
pub(super) struct Addresses {
    pub(super) reviews: SocketAddr,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) probes: Option<SocketAddr>,
}

/// Prints the addresses and examples. Programs parse the first line, so it must not change.
pub(super) fn print(
    addresses: &Addresses,
    certificates: &CertificateSource,
    source: &ObjectSource,
    rule_count: usize,
) -> Result<()> {
    let Addresses {
        reviews: address,
        metrics,
        probes,
    } = *addresses;
    let mut out = StandardOutput::new();
    writeln!(out, "serving on https://{address}")?;
    let (certificate, ca) = certificates.description();
    writeln!(out, "  certificate  {certificate}")?;
    match metrics {
        Some(address) => writeln!(out, "  metrics      http://{address}/metrics")?,
        None => writeln!(out, "  metrics      off")?,
    }
    if let Some(address) = probes {
        writeln!(out, "  probes       http://{address}/readyz")?;
    }
    writeln!(out, "  world        {}", describe_source(source))?;
    writeln!(out, "  rules        {rule_count}")?;
    let there = EXAMPLES
        .iter()
        .all(|(_, review, _)| Path::new(review).is_file());
    if let (ObjectSource::Folder(..), Some(ca), true) = (source, ca, there) {
        let ca = shell_quote(&ca.display().to_string());
        for (what, review, path) in EXAMPLES {
            writeln!(out, "\n{what}\n")?;
            writeln!(
                out,
                "  curl --cacert {ca} -H 'Content-Type: application/json' \
                 --data @{review} https://{address}/{path}"
            )?;
        }
    }
    writeln!(out, "\nCtrl-C stops the server.")?;
    out.flush()
}

fn describe_source(source: &ObjectSource) -> String {
    match source {
        ObjectSource::Cluster(_) => "the cluster".to_owned(),
        ObjectSource::Empty => "none: rules cannot look up other objects; set --world".to_owned(),
        ObjectSource::Folder(folder, index) => {
            let counts = [
                (IndexedKind::PriorityClass, "priority classes"),
                (IndexedKind::Workload, "workloads"),
                (IndexedKind::Pod, "pods"),
            ]
            .map(|(kind, name)| format!("{} {name}", index.count(kind)));
            format!("{}: {}", folder.display(), counts.join(", "))
        }
    }
}

/// A word, quoted for a POSIX shell if necessary.
fn shell_quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

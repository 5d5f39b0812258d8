//! The startup message of `lockkeeper serve`.

use super::ObjectSource;
use super::certificates::CertificateSource;
use lockkeeper_policies::index::IndexedKind;
use lockkeeper_policies::reference::entries;
use std::io::{Result, Write, stdout};
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

/// Prints the addresses and examples. Programs parse the first line, so it must not change.
pub(super) fn print(
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    certificates: &CertificateSource,
    source: &ObjectSource,
) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "serving on https://{address}")?;
    let (certificate, ca) = certificates.description();
    writeln!(out, "  certificate  {certificate}")?;
    match metrics {
        Some(address) => writeln!(out, "  metrics      http://{address}/metrics")?,
        None => writeln!(out, "  metrics      off")?,
    }
    writeln!(out, "  world        {}", describe_source(source))?;
    writeln!(out, "  rules        {}", entries().len())?;
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

//! `lockkeeper certificate`.

use anyhow::Error;
use clap::Args;
use lockkeeper_certs::self_signed;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::SystemTime;

/// Where the certificate goes, and for which names.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name or IP address that clients use, such as lockkeeper.lockkeeper-system.svc; may be
    /// repeated
    #[arg(long = "name", value_name = "NAME", required = true)]
    names: Vec<String>,

    /// Folder for ca.crt, ca.key, tls.crt and tls.key; it is made private. What is there and still
    /// good is kept
    #[arg(long, value_name = "DIR")]
    output_dir: PathBuf,
}

/// Makes the files and says where they are.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let files = self_signed::ensure(&arguments.output_dir, &arguments.names, SystemTime::now())?;
    let mut out = stdout().lock();
    writeln!(out, "CA           {}", files.ca.display())?;
    writeln!(out, "certificate  {}", files.certificate.display())?;
    writeln!(out, "key          {}", files.key.display())?;
    Ok(())
}

//! `lockkeeper certificate`.

use crate::standard_output::StandardOutput;
use anyhow::Error;
use clap::Args;
use lockkeeper_certs::self_signed;
use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

/// Flags of `lockkeeper certificate`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// DNS name or IP address of the webhook, e.g. lockkeeper.lockkeeper-system.svc; repeatable
    #[arg(long = "name", value_name = "NAME", required = true)]
    names: Vec<String>,

    /// Folder for ca.crt, ca.key, tls.crt and tls.key, created with mode 0700; valid files are kept
    #[arg(long, value_name = "DIR")]
    output_dir: PathBuf,
}

/// Creates the files and prints their paths.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let files = self_signed::ensure(&arguments.output_dir, &arguments.names, SystemTime::now())?;
    let mut out = StandardOutput::new();
    writeln!(out, "CA           {}", files.ca.display())?;
    writeln!(out, "certificate  {}", files.certificate.display())?;
    writeln!(out, "key          {}", files.key.display())?;
    Ok(())
}

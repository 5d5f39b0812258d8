//! `--as`: Kueue's objects, checked as lockkeeper's kinds.

use crate::Failure;
use anyhow::Context;
use clap::{Args, ValueEnum};
use lockkeeper_check::Converter;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Group {
    /// Kinds of lockkeeper
    #[value(name = "lockkeeper.dev")]
    Lockkeeper,
}

#[derive(Args, Debug)]
pub(super) struct ConversionArguments {
    /// Convert Kueue objects to this API group first, and report lost fields
    #[arg(long = "as", value_enum, value_name = "GROUP")]
    group: Option<Group>,

    /// Write the converted objects as YAML; `-` writes only them to stdout
    #[arg(long, value_name = "FILE", requires = "group")]
    converted: Option<PathBuf>,
}

impl ConversionArguments {
    pub(super) fn converter(&self) -> Converter {
        Converter::new(self.group.is_some(), self.converted.is_some())
    }

    /// Whether the converted objects replace the report on standard output.
    pub(super) fn is_stdout(&self) -> bool {
        self.converted.as_deref() == Some(Path::new("-"))
    }

    /// Writes the converted objects, if `--converted` is set.
    pub(super) fn write(&self, yaml: &str, out: &mut impl Write) -> Result<(), Failure> {
        match &self.converted {
            None => {}
            Some(_) if self.is_stdout() => {
                out.write_all(yaml.as_bytes())?;
                out.flush()?;
            }
            Some(path) => fs::write(path, yaml)
                .with_context(|| format!("cannot write {}", path.display()))
                .map_err(Failure::Usage)?,
        }
        Ok(())
    }
}

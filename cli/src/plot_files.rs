//! Writes the plots of a report as files.

use crate::file_replacement::write_file;
use anyhow::{Context, Error};
use lockkeeper_report::{Simulation, plot_files};
use std::fs;
use std::path::Path;

pub(crate) fn write_plots(folder: &Path, simulations: &[Simulation<'_>]) -> Result<(), Error> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for plot in plot_files(simulations) {
        let path = folder.join(&plot.name);
        write_file(&path, &plot.svg)
            .with_context(|| format!("cannot write the plot {}", path.display()))?;
    }
    Ok(())
}

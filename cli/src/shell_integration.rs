//! Shell completions and man pages, generated from the command line definition.

use crate::{Arguments, Failure, standard_output};
use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::generate_to;
use std::fs;
use std::path::PathBuf;

/// The flags of `lockkeeper completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// Shell to generate completions for
    #[arg(value_enum)]
    shell: Shell,
}

/// The flags of `lockkeeper man`.
#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// Folder for the pages; created if it is missing
    folder: PathBuf,
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut text = Vec::new();
    generate(
        arguments.shell,
        &mut Arguments::command(),
        "lockkeeper",
        &mut text,
    );
    Ok(standard_output::print(&text)?)
}

/// Writes a page for each command.
pub(crate) fn write_man_pages(arguments: &ManArguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let shown = || format!("cannot write man pages into {}", folder.display());
    fs::create_dir_all(folder).with_context(shown)?;
    generate_to(Arguments::command(), folder).with_context(shown)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{ManArguments, write_man_pages};
    use crate::Arguments;
    use clap::{Command, CommandFactory, ValueEnum};
    use clap_complete::{Shell, generate};
    use std::fs;
    use tempfile::TempDir;

    /// Appends the long help of the command and of all commands below it.
    fn append_help(command: &mut Command, path: &str, text: &mut String) {
        let help = command.render_long_help().to_string();
        text.push_str(&["$ ", path, " --help\n", &help, "\n\n"].concat());
        for child in command.get_subcommands_mut() {
            if child.get_name() != "help" {
                append_help(child, &format!("{path} {}", child.get_name()), text);
            }
        }
    }

    #[test]
    fn help_of_every_command_matches_snapshot() {
        let mut command = Arguments::command();
        command.build();
        let mut text = String::new();
        append_help(&mut command, "lockkeeper", &mut text);
        insta::assert_snapshot!("help", text);
    }

    #[test]
    fn completions_every_shell_contains_flags() {
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            generate(*shell, &mut Arguments::command(), "lockkeeper", &mut text);
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("fail-on"), "{shell}");
        }
    }

    #[test]
    fn man_pages_cover_every_command() {
        let folder = TempDir::new().unwrap();
        let folder = folder.path().join("new/man1");
        assert!(
            write_man_pages(&ManArguments {
                folder: folder.clone()
            })
            .is_ok()
        );
        let page = fs::read_to_string(folder.join("lockkeeper-check.1")).unwrap();
        assert!(page.contains("fail\\-on"), "{page}");
        for command in Arguments::command().get_subcommands() {
            let name = format!("lockkeeper-{}.1", command.get_name());
            assert!(folder.join(&name).exists(), "{name}");
        }
    }
}

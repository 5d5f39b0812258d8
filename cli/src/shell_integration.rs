//! Shell completions and man pages, generated from the command line definition.

use crate::{Arguments, Failure, standard_output};
use anyhow::Context;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use clap_mangen::generate_to;
use std::fs;
use std::path::PathBuf;

/// The environment variable with the name of the shell that asks for completions.
pub(crate) const COMPLETION_VARIABLE: &str = "LOCKKEEPER_COMPLETE";

/// The program that kubectl runs for `kubectl lockkeeper <TAB>`, with the words behind the name of the plugin. The output is that for
/// fish: kubectl expects a value with its description in each line, and a last line that says what else to complete: 4 for
/// no file names.
const KUBECTL_SCRIPT: &str = "\
#!/bin/sh
# Completions of `kubectl lockkeeper`. Put this file as kubectl_complete-lockkeeper, executable, into a folder of PATH.
LOCKKEEPER_COMPLETE=fish kubectl-lockkeeper -- lockkeeper \"$@\"
echo :4
";

/// The flags of `lockkeeper completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// Shell to print the script for
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    /// For .bashrc: source <(lockkeeper completions bash)
    Bash,
    /// For rc.elv: eval (lockkeeper completions elvish | slurp)
    Elvish,
    /// For config.fish: lockkeeper completions fish | source
    Fish,
    /// The program kubectl_complete-lockkeeper, which kubectl runs for its plugin
    Kubectl,
    /// For the profile: lockkeeper completions powershell | Out-String | Invoke-Expression
    Powershell,
    /// For .zshrc: source <(lockkeeper completions zsh)
    Zsh,
}

/// The flags of `lockkeeper man`.
#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// Folder for the pages; created if it is missing
    folder: PathBuf,
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    Ok(standard_output::print(&script(arguments.shell)?)?)
}

/// The script that makes a shell ask this program for completions.
fn script(shell: Shell) -> Result<Vec<u8>, Failure> {
    let completer: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::Kubectl => return Ok(KUBECTL_SCRIPT.into()),
        Shell::Powershell => &Powershell,
        Shell::Zsh => &Zsh,
    };
    let mut text = Vec::new();
    let name = "lockkeeper";
    completer.write_registration(COMPLETION_VARIABLE, name, name, name, &mut text)?;
    Ok(text)
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
    use super::{COMPLETION_VARIABLE, ManArguments, Shell, script, write_man_pages};
    use crate::Arguments;
    use clap::{Command, CommandFactory, ValueEnum};
    use clap_complete::engine::complete;
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
    fn script_of_every_shell_asks_this_program() {
        for shell in Shell::value_variants() {
            let text = script(*shell).unwrap_or_default();
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains(COMPLETION_VARIABLE), "{shell:?}: {text}");
        }
    }

    #[track_caller]
    fn completions(words: &[&str]) -> Vec<String> {
        let words = words.iter().map(Into::into).collect::<Vec<_>>();
        let last = words.len() - 1;
        let found = complete(&mut Arguments::command(), words, last, None).unwrap();
        let values = found.iter().map(|it| it.get_value().to_string_lossy());
        values.map(Into::into).collect()
    }

    #[test]
    fn commands_flags_and_values_are_completed() {
        assert_eq!(completions(&["lockkeeper", "exp"]), ["explain"]);
        let flags = completions(&["lockkeeper", "check", "--fail"]);
        assert_eq!(flags, ["--fail-on"]);
        let kinds = completions(&["lockkeeper", "explain", "--output", "j"]);
        assert_eq!(kinds, ["json"]);
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

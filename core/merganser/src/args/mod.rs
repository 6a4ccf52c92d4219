//! The command line as it was typed: one struct per subcommand, whose doc comments are the help.
//!
//! Nothing is checked here beyond its syntax. [`crate::config`] turns it into settings.

mod count;
mod export;
mod generate;
mod mount;
mod recover;
mod sort;
mod spelling;
mod verify;
mod view;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::wings;

pub(crate) use count::CountArgs;
pub(crate) use export::ExportArgs;
pub(crate) use generate::{AlphabetName, GenerateArgs, GenerateFormat};
pub(crate) use mount::MountArgs;
pub(crate) use recover::RecoverArgs;
pub(crate) use sort::{CheckHow, CompressionName, SortArgs};
pub(crate) use verify::VerifyArgs;
pub(crate) use view::{CatArgs, InfoArgs, MaterializeArgs};

/// Sorts data larger than memory, into a file or into a sorted view.
///
/// A sorted view is a folder that holds the data in sorted pieces and a small index. It is ready in
/// about half the time of a sorted file, with half the bytes written, and reads exactly like one:
/// with `merganser cat`, or by any program through `merganser mount`.
#[derive(Debug, Parser)]
#[command(name = "merganser", version, disable_help_subcommand = true)]
#[command(args_override_self = true, max_term_width = 100)]
#[command(after_help = "\
Examples:
  merganser sort big.txt -o sorted.txt             sort a file of lines
  merganser sort big.txt --view big.view           make a sorted view of it instead
  merganser cat big.view | head                    read the view
  merganser mount big.view /mnt                    read it as the file /mnt/big
  merganser verify sorted.txt                      check order, count and checksum
  merganser count big.txt --top 10                 the most frequent lines
  merganser map wordcount big.txt --top 20         run a program over records

Where --memory, --threads and --temp-dir are not given, MERGANSER_MEMORY, MERGANSER_THREADS and
MERGANSER_TEMP_DIR are used.

A link to merganser with the name sort is `merganser sort`: ln -s merganser sort; ./sort -k2n file

Exit status: 0 done, 1 disorder found (verify, sort -c), 2 error.")]
pub(crate) struct CommandLine {
    /// The subcommand.
    #[command(subcommand)]
    pub command: CliCommand,
}

impl CommandLine {
    /// Parses the words of a command line, the name of the program first. Called by the name
    /// `sort`, the program is its command `sort` alone.
    ///
    /// # Errors
    /// clap's: help is one, too.
    pub(crate) fn of_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut words: Vec<_> = words.into_iter().collect();
        if words.first().is_some_and(|name| is_sort(name)) {
            words.splice(..1, ["merganser".into(), "sort".into(), "--quiet".into()]);
        }
        if words.get(1).is_some_and(|command| command == "sort") {
            let command = Self::command();
            let sort = command.find_subcommand("sort").expect("a command of this program");
            let rest = words.split_off(2);
            let rest = spelling::standard(rest, sort, spelling::Dialect::of_environment())
                .map_err(|sentence| clap::Error::raw(ErrorKind::UnknownArgument, sentence))?;
            words.extend(rest);
        }
        let is_help = words.get(1).is_some_and(|word| word == "--help" || word == "-h");
        let command = if is_help { wings::listed(Self::command()) } else { Self::command() };
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }
}

/// Whether the program is called by the name `sort`.
pub(crate) fn is_sort(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new("sort"))
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub(crate) enum CliCommand {
    Sort(SortArgs),
    Count(CountArgs),
    Cat(CatArgs),
    Mount(MountArgs),
    Export(ExportArgs),
    Materialize(MaterializeArgs),
    Info(InfoArgs),
    Verify(VerifyArgs),
    Recover(RecoverArgs),
    Generate(GenerateArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Print the completion script of a shell
///
/// Writes to standard output the script that makes a shell complete merganser's commands and
/// options.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser completions bash > /usr/share/bash-completion/completions/merganser
  merganser completions fish > ~/.config/fish/completions/merganser.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Print the manual page
///
/// Writes the page merganser(1), or with --dir one page per command, from the same text as the help.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser man | man -l -                         read it now
  merganser man --dir /usr/share/man/man1          install all pages")]
pub(crate) struct ManArgs {
    /// Write merganser.1, merganser-sort.1, ... into this folder instead of standard output
    #[arg(long, value_name = "DIR")]
    pub dir: Option<std::path::PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::CommandLine;

    #[test]
    fn the_declaration_is_consistent() {
        CommandLine::command().debug_assert();
    }
}

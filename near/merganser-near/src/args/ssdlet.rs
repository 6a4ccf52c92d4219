//! `merganser ssdlet`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use merganser_guests::GuestArgs;

/// Programs that run near the data: begin one, check one, list them
///
/// An SSDlet is a program that `merganser map` runs over records. Some are built in; others are
/// WebAssembly files, written in any language that compiles to it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser ssdlet new --lang c my-filter          a project to begin with
  merganser ssdlet check my-filter.wasm            is it right, how fast is it
  merganser ssdlet list                            the built-in ones")]
pub(crate) struct SsdletArgs {
    /// What to do
    #[command(subcommand)]
    pub what: SsdletCommand,
}

/// The actions on SSDlets.
#[derive(Debug, Subcommand)]
pub(crate) enum SsdletCommand {
    New(SsdletNewArgs),
    Check(SsdletCheckArgs),
    List(SsdletListArgs),
}

/// Make a project for an SSDlet in WebAssembly
///
/// The new folder DIR holds a complete SSDlet that counts words, with the script build.sh that compiles
/// it and a README.md. Its last part is the name of the SSDlet.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser ssdlet new --lang c my-filter
  merganser ssdlet new --lang rust ~/src/sessions")]
pub(crate) struct SsdletNewArgs {
    /// The language: c, rust or assemblyscript
    #[arg(long, value_name = "LANGUAGE", value_enum, hide_possible_values = true)]
    pub lang: LanguageName,

    /// The folder to make
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// A language of guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LanguageName {
    C,
    Rust,
    #[value(name = "assemblyscript")]
    AssemblyScript,
}

/// Check an SSDlet in WebAssembly, and measure it on a sample
///
/// Looks at its section and its functions, starts it with the arguments, and runs it twice over the
/// sample: in long chunks, and in short chunks by two workers. The results must be equal. Then it prints
/// what the SSDlet takes and gives, how long it takes to compile and to start, and the fuel that it uses:
/// about one unit for an instruction. A bad SSDlet is an error: the sentence says why, and the exit
/// status is 2.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser ssdlet check my-filter.wasm
  merganser ssdlet check grep.wasm --args needle --sample big.txt
  merganser ssdlet check my-filter.wasm --json")]
pub(crate) struct SsdletCheckArgs {
    /// The WebAssembly file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Run it over this file: at most 64 MiB are read [default: about 1 MiB of made-up records]
    #[arg(long, value_name = "FILE")]
    pub sample: Option<PathBuf>,

    /// Its arguments, as it reads them
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub args: String,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub guest: GuestArgs,
}

/// List SSDlets with their arguments
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser ssdlet list
  merganser ssdlet list --dir /srv/ssdlets")]
pub(crate) struct SsdletListArgs {
    /// List the WebAssembly files of this folder instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

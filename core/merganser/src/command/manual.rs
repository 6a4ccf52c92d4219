//! `merganser completions` and `merganser man`: the help text in other forms.

use clap::CommandFactory;
use merganser_shell::failure::Failure;
use merganser_shell::standard;

use crate::args::{CommandLine, CompletionsArgs, ManArgs};
use crate::wings;

/// Prints a shell's completion script.
pub(super) fn completions(typed: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        typed.shell,
        &mut wings::whole(CommandLine::command()),
        "merganser",
        &mut script,
    );
    standard::print(&script)
}

/// Prints the manual page, or writes one a command.
pub(super) fn pages(typed: &ManArgs) -> Result<(), Failure> {
    match &typed.dir {
        Some(dir) => clap_mangen::generate_to(wings::whole(CommandLine::command()), dir)
            .map_err(|e| Failure::on(dir, &e)),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(wings::whole(CommandLine::command()))
                .render(&mut page)
                .map_err(|e| Failure::on_stdout(&e))?;
            standard::print(&page)
        }
    }
}

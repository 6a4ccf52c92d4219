//! Commands that other programs have: `merganser map` is the `map` of `merganser-near`.
//!
//! A wing is a program next to this one, or in `../libexec/merganser`. It takes the place of this process, so its exit
//! status, signals, terminal and standard streams are those of the command.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use merganser_shell::failure::{Failure, notice};
use merganser_shell::outline::{CommandOutline, OUTLINE_WORD};
use merganser_shell::program::{ended, folder_of};
use merganser_shell::shown;

/// Where wings are installed, from the folder of this program.
const APART: &str = "../libexec/merganser";

/// A program with commands of its own.
struct Wing {
    /// What its commands are for.
    heading: &'static str,
    /// Its name.
    program: &'static str,
    /// Its commands, in the order of the help.
    commands: &'static [&'static str],
}

const WINGS: [Wing; 5] = [
    Wing { heading: "Tables", program: "merganser-tables", commands: &["table"] },
    Wing {
        heading: "Near the data",
        program: "merganser-near",
        commands: &["map", "pipeline", "blast", "ssdlet", "serve"],
    },
    Wing { heading: "Hadoop", program: "merganser-hadoop", commands: &["hadoop"] },
    Wing { heading: "Volumes", program: "merganser-array", commands: &["array"] },
    Wing {
        heading: "Models, papers",
        program: "merganser-lab",
        commands: &["simulate", "emulate", "reproduce"],
    },
];

/// The wing that has the command in `words`.
fn wing_of(words: &[impl AsRef<std::ffi::OsStr>]) -> Option<&'static Wing> {
    let command = words.get(1)?.as_ref().to_str()?;
    WINGS.iter().find(|wing| wing.commands.contains(&command))
}

/// Becomes the program that has the command in `words`; `None` if that is this one.
pub(crate) fn run(words: &[OsString]) -> Option<ExitCode> {
    let wing = wing_of(words)?;
    Some(ended(&become_wing(wing, words)))
}

/// Returns only if it fails.
fn become_wing(wing: &Wing, words: &[OsString]) -> Failure {
    let places = match places(wing.program) {
        Ok(places) => places,
        Err(error) => return Failure::named(&error),
    };
    let Some(path) = places.iter().find(|path| path.is_file()) else {
        return missing(wing, words, &places);
    };
    let error = Command::new(path).arg0("merganser").args(&words[1..]).exec();
    Failure::on(path, &error)
}

fn missing(wing: &Wing, words: &[OsString], places: &[PathBuf]) -> Failure {
    let folders: Vec<_> = places.iter().filter_map(|path| path.parent()).map(shown::name).collect();
    let (command, program) = (words[1].display(), wing.program);
    Failure::Error(format!(
        "{command}: needs the program {program}, which is not in {}; build it with 'make all', or install it there",
        folders.join(" or ")
    ))
}

/// Where a program of this name can be: next to this one, or apart.
fn places(program: &str) -> io::Result<Vec<PathBuf>> {
    // The file itself, not a link to it.
    places_of(&std::env::current_exe()?, program)
}

/// The same for the program `own`.
fn places_of(own: &Path, program: &str) -> io::Result<Vec<PathBuf>> {
    let folder = folder_of(own)?;
    Ok(vec![folder.join(program), folder.join(APART).join(program)])
}

/// The programs of wings that are installed.
pub(crate) fn installed() -> Vec<&'static str> {
    let is_there =
        |name: &&str| places(name).is_ok_and(|places| places.iter().any(|path| path.is_file()));
    WINGS.iter().map(|wing| wing.program).filter(is_there).collect()
}

/// The commands of a wing, if it is installed.
fn outline(wing: &Wing) -> Option<CommandOutline> {
    let path = places(wing.program).ok()?.into_iter().find(|path| path.is_file())?;
    let mut command = Command::new(&path);
    let command = command.arg(OUTLINE_WORD).stdin(Stdio::null()).stderr(Stdio::null());
    let outline = command.output().ok().and_then(|said| serde_json::from_slice(&said.stdout).ok());
    if outline.is_none() {
        let (path, why) = (shown::name(&path), "is there and does not say what commands it has");
        notice(&format!("{path}: {why}; they are left out here"));
    }
    outline
}

/// `own` with the commands of all wings that are installed.
pub(crate) fn whole(own: clap::Command) -> clap::Command {
    let outlines: Vec<_> = WINGS.iter().filter_map(outline).collect();
    let commands = outlines.iter().flat_map(CommandOutline::commands);
    own.subcommands(commands.map(CommandOutline::command))
}

/// `own`, whose help lists the commands of all wings that are installed, too.
pub(crate) fn listed(own: clap::Command) -> clap::Command {
    let list = whole(own.clone()).help_template("{subcommands}").render_help().to_string();
    let mut groups = vec![String::new(); 1 + WINGS.len()];
    let mut at = 0;
    for line in list.lines() {
        let name = line.strip_prefix("  ").and_then(|line| line.split(' ').next());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let wing = WINGS.iter().position(|wing| wing.commands.contains(&name));
            at = wing.map_or(0, |wing| 1 + wing);
        }
        groups[at].push_str(line);
        groups[at].push('\n');
    }
    let headings = ["Commands"].into_iter().chain(WINGS.iter().map(|wing| wing.heading));
    let texts = headings.zip(groups).filter(|(_, group)| !group.is_empty());
    let commands: String = texts.map(|(name, group)| format!("{name}:\n{group}\n")).collect();
    own.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}Options:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_run_from_the_folder_of_the_user() {
        for unknown in ["", "merganser", "./merganser", "bin/merganser"] {
            assert!(places_of(Path::new(unknown), "merganser-near").is_err(), "{unknown}");
        }
        let known = places_of(Path::new("/opt/bin/merganser"), "merganser-near").expect("known");
        let expected = ["/opt/bin/merganser-near", "/opt/bin/../libexec/merganser/merganser-near"];
        assert_eq!(known, expected.map(PathBuf::from));
    }
}

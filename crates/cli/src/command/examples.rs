//! The examples of the help texts are command lines that this program takes: each is parsed, and its
//! settings are made. Devices and their parameters must exist, too.

use std::ffi::OsString;

use clap::CommandFactory;

use super::simulate::model::ModelledDevice;
use crate::args::{CliCommand, CommandLine};
use crate::config::{
    AdviseConfig, AdviseOn, ArrayConfig, BlastConfig, CatConfig, DeviceChoice, EmulateConfig,
    ExportConfig, GenerateConfig, InfoConfig, MapConfig, MaterializeConfig, MountConfig,
    PipelineConfig, ReproduceConfig, ServeConfig, SimulateConfig, SortConfig, SsdletConfig,
    VerifyConfig,
};
use crate::failure::Failure;

/// Spaces between a command and a remark about it.
const BEFORE_REMARK: &str = "   ";

/// A help text's command lines of this program, as lists of words.
fn examples(help: &str) -> Vec<Vec<String>> {
    let Some((_, lines)) = help.split_once("Examples:\n") else { return Vec::new() };
    let mut joined: Vec<String> = Vec::new();
    for line in lines.lines().take_while(|line| line.starts_with("  ")) {
        match joined.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push_str(line.trim());
            }
            _ => joined.push(line.trim().to_owned()),
        }
    }
    let lines = joined.iter().filter(|line| !line.starts_with('#'));
    let ours = |command: &Vec<String>| {
        command.first().is_some_and(|name| name == "merganser" || name == "./sort")
    };
    lines.flat_map(|line| commands(line)).filter(ours).collect()
}

/// The commands of a line as a shell would split it, without redirections. A remark may follow them.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let (mut quote, mut redirected) = (None, false);
    for (at, c) in line.char_indices() {
        if quote == Some(c) {
            quote = None;
        } else if quote.is_some() {
            word.get_or_insert_default().push(c);
        } else if matches!(c, '\'' | '"') {
            quote = Some(c);
            word.get_or_insert_default();
        } else if matches!(c, ' ' | '|' | '&' | ';' | '>') {
            if let Some(word) = word.take()
                && !std::mem::take(&mut redirected)
            {
                commands.last_mut().expect("one at least").push(word);
            }
            match c {
                ' ' if line[at..].starts_with(BEFORE_REMARK) => break,
                ' ' => {}
                '>' => redirected = true,
                _ => commands.push(Vec::new()),
            }
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    let last = commands.last_mut().expect("one at least");
    last.extend(word.filter(|_| !redirected));
    commands
}

/// All help texts of a command and of those below it.
fn helps(command: &clap::Command, texts: &mut Vec<String>) {
    texts.extend(command.get_after_help().map(ToString::to_string));
    for command in command.get_subcommands() {
        helps(command, texts);
    }
}

/// Whether there is such a model, with these parameters.
fn exists(choice: &DeviceChoice) -> Result<(), Failure> {
    ModelledDevice::chosen(choice)?.device(choice.seed, 0).map(drop)
}

/// Makes the settings of a command.
fn meant(command: CliCommand) -> Result<(), Failure> {
    match command {
        CliCommand::Sort(typed) => SortConfig::try_from(typed).map(drop),
        CliCommand::Cat(typed) => CatConfig::try_from(typed).map(drop),
        CliCommand::Mount(typed) => MountConfig::try_from(typed).map(drop),
        CliCommand::Export(typed) => ExportConfig::try_from(typed).map(drop),
        CliCommand::Materialize(typed) => MaterializeConfig::try_from(typed).map(drop),
        CliCommand::Info(typed) => InfoConfig::try_from(typed).map(drop),
        CliCommand::Verify(typed) => VerifyConfig::try_from(typed).map(drop),
        CliCommand::Map(typed) => MapConfig::try_from(typed).map(drop),
        CliCommand::Pipeline(typed) => PipelineConfig::try_from(typed).map(drop),
        CliCommand::Blast(typed) => BlastConfig::try_from(typed).map(drop),
        CliCommand::Generate(typed) => GenerateConfig::try_from(typed).map(drop),
        CliCommand::Ssdlet(typed) => SsdletConfig::try_from(typed).map(drop),
        CliCommand::Array(typed) => ArrayConfig::try_from(typed).map(drop),
        CliCommand::Serve(typed) => ServeConfig::try_from(typed).map(drop),
        CliCommand::Reproduce(typed) => ReproduceConfig::try_from(typed).map(drop),
        CliCommand::Advise(typed) => match AdviseConfig::try_from(typed)? {
            AdviseConfig::Job(job) => of_advice(&job.on),
            AdviseConfig::Maps(maps) => of_advice(&maps.on),
            AdviseConfig::Deferring { .. } => Ok(()),
        },
        CliCommand::Simulate(typed) => match SimulateConfig::try_from(typed)? {
            SimulateConfig::Run(run) => exists(&run.device),
            SimulateConfig::Sort(sort) => exists(&sort.device),
            _ => Ok(()),
        },
        CliCommand::Emulate(typed) => {
            super::emulate::check(&EmulateConfig::try_from(typed)?).map(drop)
        }
        CliCommand::Recover(_) | CliCommand::Completions(_) | CliCommand::Man(_) => Ok(()),
    }
}

fn of_advice(on: &AdviseOn) -> Result<(), Failure> {
    match on {
        AdviseOn::Device(choice) => exists(choice),
        AdviseOn::Dir(_) => Ok(()),
    }
}

/// A command line, parsed, with its settings.
fn taken(words: &[String]) -> Result<(), String> {
    let typed =
        CommandLine::of_words(words.iter().map(OsString::from)).map_err(|e| e.to_string())?;
    meant(typed.command).map_err(|failure| failure.sentence().unwrap_or("cancelled").to_owned())
}

#[test]
fn every_example_of_the_help_is_taken() {
    let mut texts = Vec::new();
    helps(&CommandLine::command(), &mut texts);
    let (mut seen, mut without_files) = (0, 0);
    for words in texts.iter().flat_map(|text| examples(text)) {
        seen += 1;
        match taken(&words) {
            Ok(()) => without_files += 1,
            // Its settings are made from files: patterns of grep's, databases, an input.
            Err(why) if why.contains("No such file or directory") => {}
            Err(why) => panic!("{}: {why}", words.join(" ")),
        }
    }
    assert!(
        seen >= 120 && seen - without_files <= 10,
        "{seen}, of which {without_files} were made"
    );
}

/// The command line of the issue that asked for emulated disks (16).
#[test]
fn an_emulated_disk_needs_no_size_in_memory() {
    let line = "merganser emulate --device 830 --memory-backed --nbd disk.sock --set channels=4 \
                --trace run.trace --report run.html";
    assert_eq!(commands(line).iter().map(|words| taken(words)).collect::<Vec<_>>(), [Ok(())]);
    let null = "merganser emulate --device null --memory-backed --nbd disk.sock";
    let said = taken(&commands(null)[0]).expect_err("a model without a size");
    assert!(said.starts_with("--memory-backed: the device null has no size; say how"), "{said}");
    let large = "merganser emulate --device 830 --memory-backed --nbd s --size 1T";
    let said = taken(&commands(large)[0]).expect_err("it has 256 GB");
    assert!(said.ends_with("give a smaller --size"), "{said}");
}

#[test]
fn lines_are_split_as_a_shell_does() {
    let words = |line| commands(line).into_iter().map(|words| words.join("_")).collect::<Vec<_>>();
    assert_eq!(words("a -x 'b c' d:'e f' > g   remark"), ["a_-x_b c_d:e f"]);
    assert_eq!(words("a -o - | b - && c &"), ["a_-o_-", "b_-", "", "c", ""]);
    let help = "About\n\nExamples:\n  # one\n  merganser a \\\n      --b c   d\n  fio x\n\nMore: merganser";
    assert_eq!(examples(help), [["merganser", "a", "--b", "c"]]);
}

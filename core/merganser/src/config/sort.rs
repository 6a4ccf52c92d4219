//! The settings of `merganser sort`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use merganser_shell::args::{FormatName, StrategyName};
use merganser_shell::config::destination::temp_dirs;
use merganser_shell::config::report::refuse_overwriting_lists;
use merganser_shell::config::{
    Destination, ReportConfig, list, memory, order, progress_form, threads,
};
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::progress::ProgressForm;
use merganser_shell::setting::MEMORY;
use merganser_sort::Strategy;
use merganser_sort::key::OrderSpec;
use merganser_sort::run::magic::ContentKind;

use crate::args::{CheckHow, CompressionName, SortArgs};

/// The inputs, their order, and the task.
#[derive(Debug, PartialEq)]
pub(crate) struct SortConfig {
    /// The inputs, in this order; at least one.
    pub inputs: Vec<Input>,
    /// How records are ordered.
    pub order: OrderSpec,
    /// What to do.
    pub task: SortTask,
    /// The memory budget.
    pub memory_bytes: u64,
    /// The setting that asked for more memory than the machine has, with its value.
    pub too_much_memory: Option<String>,
    /// How many threads.
    pub threads: usize,
    /// Whether compressed inputs are read as what they hold.
    pub decompress: bool,
    /// How progress is shown.
    pub progress: ProgressForm,
}

/// The task of a sort command.
#[derive(Debug, PartialEq)]
pub(crate) enum SortTask {
    /// Check whether the single input is sorted.
    Check {
        /// Whether to name the first disorder.
        diagnose: bool,
    },
    /// Sort.
    Sort(SortChoices),
}

/// How to sort, and where to.
#[derive(Debug, PartialEq)]
pub(crate) struct SortChoices {
    /// The destination of the result.
    pub destination: Destination,
    /// Whether the text that each key compares is underlined.
    pub debug: bool,
    /// Whether every input is sorted already.
    pub merge: bool,
    /// How many sorted inputs are merged at once, at most.
    pub batch_max: Option<usize>,
    /// How many records to keep.
    pub top: Option<u64>,
    /// The folders for temporary runs; if empty, runs go into the view.
    pub temp_dirs: Vec<PathBuf>,
    /// How much they may take.
    pub temp_limit_bytes: Option<u64>,
    /// Whether runs are compressed.
    pub compression: CompressionName,
    /// Runs or buckets.
    pub strategy: Strategy,
    /// Only print the plan.
    pub explain: bool,
    /// Sort even if the disks seem to have too little room.
    pub force: bool,
    /// Whether the inputs' space is given back.
    pub consume: bool,
    /// The report to write.
    pub report: Option<ReportConfig>,
}

impl SortConfig {
    /// What the inputs should hold.
    pub(crate) fn content(&self) -> ContentKind {
        if self.decompress { self.order.format.content() } else { ContentKind::AsStored }
    }
}

impl TryFrom<SortArgs> for SortConfig {
    type Error = Failure;

    fn try_from(typed: SortArgs) -> Result<Self, Failure> {
        let inputs = inputs(&typed)?;
        let order = order(&typed.order)?;
        let threads = threads(last(&typed.threads, 1))?;
        let (memory_bytes, too_much_memory) = memory_of(&typed, threads)?;
        refuse_contradictions(&typed)?;
        let progress = progress_form(typed.progress);
        let decompress = !typed.no_decompress;
        let task = match check(&typed)? {
            Some(diagnose) => {
                refuse_with_check(&typed, &inputs)?;
                SortTask::Check { diagnose }
            }
            None => SortTask::Sort(sorting(typed, &inputs)?),
        };
        Ok(SortConfig {
            inputs,
            order,
            task,
            memory_bytes,
            too_much_memory,
            threads,
            decompress,
            progress,
        })
    }
}

/// The memory budget, and the setting that asked for more than the machine has. As in GNU sort, `-S` may ask for more
/// without a word.
fn memory_of(typed: &SortArgs, threads: usize) -> Result<(u64, Option<String>), Failure> {
    if let Some(bytes) = memory::buffer_bytes(&typed.buffer_size, threads) {
        return match typed.memory {
            Some(_) => Err("-S and --memory: give one of them".to_owned().into()),
            None => Ok((memory::within_machine(bytes), None)),
        };
    }
    let Some(asked) = memory::asked(typed.memory)? else {
        return Ok((memory::default_bytes(), None));
    };
    let bytes = memory::within_machine(asked.0);
    Ok((bytes, (bytes < asked.0).then(|| MEMORY.with(asked))))
}

fn inputs(typed: &SortArgs) -> Result<Vec<Input>, Failure> {
    let Some(list) = &typed.files0_from else {
        return Ok(match &typed.inputs[..] {
            [] => vec![Input::Stdin],
            inputs => inputs.iter().map(|path| Input::named(path)).collect(),
        });
    };
    if let Some(input) = typed.inputs.first() {
        let input = input.display();
        return Err(format!("--files0-from: names all inputs; leave out '{input}'").into());
    }
    let names = list::read(list)?;
    let from = list.display();
    let mut inputs = Vec::new();
    for (at, name) in
        names.strip_suffix(b"\0").unwrap_or(&names).split(|byte| *byte == 0).enumerate()
    {
        let number = at + 1;
        if name.is_empty() {
            return Err(format!("--files0-from {from}: name {number} is empty").into());
        }
        let input = Input::named(Path::new(OsStr::from_bytes(name)));
        if input == Input::Stdin && Input::named(list) == Input::Stdin {
            let why = "standard input can't hold both names and records";
            return Err(format!("--files0-from {from}: name {number} is -; {why}").into());
        }
        inputs.push(input);
    }
    Ok(inputs)
}

/// Whether to check only, and if so whether to name the disorder.
fn check(typed: &SortArgs) -> Result<Option<bool>, Failure> {
    let diagnose = typed.check_diagnose || typed.check.contains(&CheckHow::DiagnoseFirst);
    let quiet = typed.check_quiet || typed.check.contains(&CheckHow::Quiet);
    match (diagnose, quiet) {
        (true, true) => Err("-c and -C: give one of them".to_owned().into()),
        (false, false) => Ok(None),
        (diagnose, _) => Ok(Some(diagnose)),
    }
}

/// Refuses the contradictions that GNU sort refuses for every task.
fn refuse_contradictions(typed: &SortArgs) -> Result<(), Failure> {
    let sentence = if differ(&typed.output) {
        "-o: given twice, with different files"
    } else if differ(&typed.compress_program) {
        "--compress-program: given twice, with different programs"
    } else if typed.batch_size.iter().any(|&inputs| inputs < 2) {
        "--batch-size: at least 2"
    } else {
        return Ok(());
    };
    Err(sentence.to_owned().into())
}

/// The last value of an option, unless an earlier one is below `least` and so to be refused.
fn last(values: &[usize], least: usize) -> Option<usize> {
    values.iter().find(|&&value| value < least).or(values.last()).copied()
}

/// Whether an option was given with different values.
fn differ<T: PartialEq>(values: &[T]) -> bool {
    values.windows(2).any(|two| two[0] != two[1])
}

/// `--debug` writes lines that are not records, so only people read them.
fn refuse_with_debug(typed: &SortArgs) -> Result<(), Failure> {
    if typed.order.format != FormatName::LINES {
        return Err("--debug: only with --format lines".to_owned().into());
    }
    let makes = [
        (!typed.output.is_empty(), "-o"),
        (typed.view.is_some(), "--view"),
        (typed.consume, "--consume"),
        (typed.explain, "--explain"),
        (!typed.order.header_prefix.is_empty(), "--header-prefix"),
    ];
    match makes.into_iter().find(|(given, _)| *given) {
        Some((_, flag)) => {
            Err(format!("--debug: is for a look at standard output; leave out {flag}").into())
        }
        None => Ok(()),
    }
}

/// A check reads one input and makes nothing.
fn refuse_with_check(typed: &SortArgs, inputs: &[Input]) -> Result<(), Failure> {
    if let [_, second, ..] = inputs {
        return Err(format!("-c: checks one input; leave out '{second}'").into());
    }
    let makes = [
        (!typed.output.is_empty(), "-o"),
        (typed.debug, "--debug"),
        (typed.view.is_some(), "--view"),
        (typed.top.is_some(), "--top"),
        (typed.consume, "--consume"),
        (typed.report.report.is_some(), "--report"),
    ];
    match makes.into_iter().find(|(given, _)| *given) {
        Some((_, flag)) => Err(format!("-c: only checks; leave out {flag}").into()),
        None => Ok(()),
    }
}

fn sorting(typed: SortArgs, inputs: &[Input]) -> Result<SortChoices, Failure> {
    if typed.uniform && typed.strategy != StrategyName::Distribute {
        return Err("--uniform: says how to distribute; add --strategy distribute"
            .to_owned()
            .into());
    }
    if typed.consume && inputs.contains(&Input::Stdin) {
        return Err("--consume: standard input has no space to give back; name a file"
            .to_owned()
            .into());
    }
    if typed.debug {
        refuse_with_debug(&typed)?;
    }
    let read = typed.order.random_source.iter().chain(&typed.files0_from);
    refuse_overwriting_lists(&typed.report, read)?;
    let output = typed.output.into_iter().next();
    let destination = match (output, typed.view) {
        (Some(_), Some(_)) => {
            return Err("-o and --view: give one of them; materialize copies a view out"
                .to_owned()
                .into());
        }
        (None, Some(view)) => Destination::View(view),
        (Some(file), None) if file != Path::new("-") => Destination::File(file),
        (_, None) => Destination::Stdout,
    };
    let temp_dirs = temp_dirs(typed.temp, &destination);
    Ok(SortChoices {
        destination,
        debug: typed.debug,
        merge: typed.merge,
        batch_max: last(&typed.batch_size, 2),
        top: typed.top.map(|count| count.0),
        temp_dirs,
        temp_limit_bytes: typed.temp_limit.map(|size| size.0),
        compression: typed.compress,
        strategy: match typed.strategy {
            StrategyName::Auto => Strategy::Auto,
            StrategyName::Merge => Strategy::Merge,
            StrategyName::Distribute => Strategy::Distribute { uniform: typed.uniform },
        },
        explain: typed.explain,
        force: typed.force,
        consume: typed.consume,
        report: ReportConfig::new(typed.report)?,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::CliCommand;

    fn meant(words: &[&str]) -> SortConfig {
        let CliCommand::Sort(typed) = config(&[&["sort"], words].concat()) else { unreachable!() };
        SortConfig::try_from(typed).unwrap_or_else(|failure| panic!("{:?}", failure.sentence()))
    }

    fn sorting(words: &[&str]) -> SortChoices {
        match meant(words).task {
            SortTask::Sort(sorting) => sorting,
            task @ SortTask::Check { .. } => panic!("{task:?}"),
        }
    }

    #[test]
    fn nothing_said_means_from_stdin_to_stdout() {
        let config = meant(&[]);
        assert_eq!(config.inputs, [Input::Stdin]);
        assert!(config.memory_bytes > 0 && config.threads > 0);
        let sorting = sorting(&[]);
        assert_eq!(sorting.destination, Destination::Stdout);
        assert_eq!((sorting.merge, sorting.top, sorting.consume), (false, None, false));
    }

    #[test]
    fn gnu_names_work() {
        let config = meant(&[
            "-S",
            "1G",
            "--parallel=3",
            "-T",
            "/a",
            "-T",
            "/b",
            "-m",
            "-o",
            "out",
            "x",
            "-",
            "y",
        ]);
        assert_eq!((config.memory_bytes, config.threads), (1 << 30, 3));
        let file = |name: &str| Input::File(name.into());
        assert_eq!(config.inputs, [file("x"), Input::Stdin, file("y")]);
        let SortTask::Sort(sorting) = config.task else { panic!() };
        assert_eq!(sorting.temp_dirs, [Path::new("/a"), Path::new("/b")]);
        assert_eq!((sorting.merge, sorting.destination), (true, Destination::File("out".into())));
        let long = meant(&["--buffer-size=1G", "--temporary-directory=/a", "--output=out", "x"]);
        assert_eq!(long.memory_bytes, 1 << 30);
    }

    #[test]
    fn gnu_values_mean_what_they_mean_there() {
        assert_eq!(meant(&["-S", "1048576"]).memory_bytes, 1 << 30, "a bare number is KiB");
        assert!(meant(&["-S1"]).memory_bytes > 1 << 20);
        assert_eq!(meant(&["--memory=1"]).memory_bytes, 1);
        assert_eq!(sorting(&["-o", "a", "-oa"]).destination, Destination::File("a".into()));
        assert_eq!(sorting(&["--batch-size=7", "--compress-program=gzip"]).batch_max, Some(7));
    }

    #[test]
    fn checking_has_five_spellings() {
        for words in [&["-c"][..], &["--check"], &["--check=diagnose-first"]] {
            assert_eq!(meant(words).task, SortTask::Check { diagnose: true }, "{words:?}");
        }
        for words in [&["-C"][..], &["--check=quiet"], &["--check=silent"], &["-Cu", "file"]] {
            assert_eq!(meant(words).task, SortTask::Check { diagnose: false }, "{words:?}");
        }
    }

    #[test]
    fn top_is_also_head_and_counts_are_decimal() {
        assert_eq!(sorting(&["--top", "5"]).top, Some(5));
        assert_eq!(sorting(&["--head", "2K"]).top, Some(2000));
    }

    #[test]
    fn names_may_come_from_a_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let list = dir.path().join("list");
        let flag = format!("--files0-from={}", list.display());
        fs::write(&list, "a b\0c\0").expect("written");
        assert_eq!(meant(&[&flag]).inputs, [Input::File("a b".into()), Input::File("c".into())]);
        fs::write(&list, "a\0\0b").expect("written");
        assert!(refusal(&["sort", &flag]).ends_with("name 2 is empty"));
        fs::write(&list, "").expect("written");
        assert!(refusal(&["sort", &flag]).ends_with("name 1 is empty"));
        assert!(refusal(&["sort", &flag, "x"]).ends_with("leave out 'x'"));
        assert!(refusal(&["sort", "--files0-from=/missing"]).starts_with("/missing: No such file"));
    }

    #[test]
    fn conflicts_are_named() {
        let table: &[(&[&str], &str)] = &[
            (
                &["-o", "a", "--view", "b"],
                "-o and --view: give one of them; materialize copies a view out",
            ),
            (&["-c", "-C"], "-c and -C: give one of them"),
            (&["--check", "--check=quiet"], "-c and -C: give one of them"),
            (&["-c", "--check=quiet"], "-c and -C: give one of them"),
            (&["-c", "a", "b"], "-c: checks one input; leave out 'b'"),
            (&["-c", "-o", "a"], "-c: only checks; leave out -o"),
            (&["-C", "--view", "a"], "-c: only checks; leave out --view"),
            (&["--uniform"], "--uniform: says how to distribute; add --strategy distribute"),
            (&["--consume"], "--consume: standard input has no space to give back; name a file"),
            (
                &["--report", "a.txt"],
                "--report: 'a.txt' ends neither in .html, for a page, nor in .json, for data",
            ),
            (&["--price", "900"], "--price: is for a report; add --report FILE.html"),
            (&["--report", "a.html", "--power", "0"], "--power: a number of watts above 0"),
            (
                &["--report", "a.html", "--endurance", "600"],
                "--endurance: less than any drive endures; give its TBW with a unit, such as 600TB",
            ),
            (&["-o", "a", "-o", "b"], "-o: given twice, with different files"),
            (
                &["--compress-program=a", "--compress-program=b"],
                "--compress-program: given twice, with different programs",
            ),
            (&["--batch-size=1"], "--batch-size: at least 2"),
            (&["--batch-size=1", "--batch-size=9"], "--batch-size: at least 2"),
            (&["--parallel=0", "--threads=2"], "--threads: at least 1"),
            (&["-S1G", "--memory=1G"], "-S and --memory: give one of them"),
            (&["-c", "--debug"], "-c: only checks; leave out --debug"),
            (&["--debug", "-o", "a"], "--debug: is for a look at standard output; leave out -o"),
            (&["--debug", "--format=fixed:8"], "--debug: only with --format lines"),
            (&["--threads", "0"], "--threads: at least 1"),
            (&["--memory", "0"], "--memory: at least 1 byte"),
        ];
        for (words, sentence) in table {
            assert_eq!(refusal(&[&["sort"], *words].concat()), *sentence, "{words:?}");
        }
    }
}

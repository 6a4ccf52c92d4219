//! The settings of `merganser map`.

use std::path::{Path, PathBuf};

use merganser_map::PartitionSize;
use merganser_map::ssdlet::SsdletDescription;
use merganser_serve::session::GuestLimits;
use merganser_shell::args::{FormatName, RowForm};
use merganser_shell::config::destination::temp_dirs;
use merganser_shell::config::order::RecordFlags;
use merganser_shell::config::report::refuse_overwriting_lists;
use merganser_shell::config::{Destination, ReportConfig, memory_bytes, threads};
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_sort::record::Format;
use merganser_sort::run::magic::ContentKind;

use crate::args::{MapArgs, PartitionName, RowOrder};

mod nodes;
mod options;
mod program;

pub(crate) use nodes::Nodes;
use nodes::{Asked, TypedNodes};
pub(crate) use program::{MapProgram, ProgramName};

/// The SSDlet, its inputs, and the form of its result.
#[derive(Debug, PartialEq)]
pub(crate) struct MapConfig {
    /// The SSDlet, and its arguments.
    pub program: MapProgram,
    /// The inputs, in this order; at least one.
    pub inputs: Vec<Input>,
    /// Where the result goes.
    pub destination: Destination,
    /// The form of keyed rows, if one was asked for.
    pub form: Option<RowForm>,
    /// Which rows, and their order.
    pub choice: Choice,
    /// When rows are spilled.
    pub partition: PartitionSize,
    /// The folders for spills; if empty, they go into the view.
    pub temp_dirs: Vec<PathBuf>,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads.
    pub threads: usize,
    /// Only print what would be done.
    pub explain: bool,
    /// What a guest may use.
    pub limits: GuestLimits,
    /// The nodes that run it, instead of this process.
    pub nodes: Option<Nodes>,
    /// The report to write.
    pub report: Option<ReportConfig>,
    /// Whether inputs that are compressed are read as what they hold.
    pub decompress: bool,
    /// No bar.
    pub quiet: bool,
}

impl MapConfig {
    /// What the inputs of this SSDlet should hold.
    pub(crate) fn content(&self, of: &SsdletDescription) -> ContentKind {
        if self.decompress { of.input.content() } else { ContentKind::AsStored }
    }
}

/// Which rows of a result are wanted, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All, by key.
    ByKey,
    /// All, by value, the largest first.
    ByValue,
    /// Those with the largest values.
    Top {
        /// How many.
        rows: u64,
        /// Whether they are printed in the order of their keys; otherwise the largest comes first.
        by_key: bool,
    },
}

impl Choice {
    /// The option that asked for it, if one did.
    pub(crate) fn flag(self) -> Option<&'static str> {
        match self {
            Choice::ByKey => None,
            Choice::ByValue => Some("--order value"),
            Choice::Top { .. } => Some("--top"),
        }
    }
}

impl TryFrom<MapArgs> for MapConfig {
    type Error = Failure;

    fn try_from(typed: MapArgs) -> Result<Self, Failure> {
        let read = typed.program.keys.iter().chain(&typed.token_file).chain(&typed.ca);
        refuse_overwriting_lists(&typed.report, read)?;
        let format = format(&typed)?;
        let inputs: Vec<_> = match &typed.inputs[..] {
            [] => vec![Input::Stdin],
            inputs => inputs.iter().map(|path| Input::named(path)).collect(),
        };
        if inputs.iter().filter(|input| **input == Input::Stdin).count() > 1 {
            return Err("-: standard input can be read once; name it once".to_owned().into());
        }
        let partition = match typed.partition_size {
            PartitionName::Auto => PartitionSize::Auto,
            PartitionName::Whole => PartitionSize::Whole,
            PartitionName::Bytes(bytes) => PartitionSize::Bytes(bytes),
        };
        let on_nodes = !typed.on.is_empty();
        let program = MapProgram::new(&typed.ssdlet, format, &inputs, on_nodes, typed.program)?;
        if let (Some(name), Some(flag)) = (program.builtin(), merganser_guests::flag(&typed.guest))
        {
            return Err(
                format!("{flag}: is for guests, and {name} is built in; leave it out").into()
            );
        }
        let destination = match (typed.output, typed.view) {
            (Some(_), Some(_)) => {
                return Err("-o and --view: give one of them; materialize copies a view out"
                    .to_owned()
                    .into());
            }
            (None, Some(view)) => Destination::View(view),
            (Some(file), None) if file != Path::new("-") => Destination::File(file),
            (_, None) => Destination::Stdout,
        };
        let choice = match (typed.top, typed.order) {
            (Some(rows), order) => {
                Choice::Top { rows: rows.0, by_key: order == Some(RowOrder::Key) }
            }
            (None, Some(RowOrder::Value)) => Choice::ByValue,
            (None, _) => Choice::ByKey,
        };
        let nodes = Nodes::new(TypedNodes {
            on: typed.on,
            token_file: typed.token_file,
            ca: typed.ca,
            insecure: typed.insecure,
            memory_bytes: typed.memory.map(|memory| memory.0),
            threads: typed.threads,
        })?;
        if nodes.is_some() {
            nodes::refuse_unfit(Asked {
                program: &program,
                inputs: &inputs,
                destination: &destination,
                explain: typed.explain,
                partition,
                temp_dir: !typed.temp.dirs.is_empty(),
                choice,
                no_decompress: typed.no_decompress,
            })?;
        }
        if let Destination::View(_) = destination {
            refuse_with_view(choice, typed.output_format)?;
        }
        let temp_dirs = if nodes.is_some() && choice != Choice::ByValue {
            // Nodes have their own; only a second sort spills here.
            typed.temp.dirs
        } else {
            temp_dirs(typed.temp, &destination)
        };
        Ok(MapConfig {
            program,
            inputs,
            destination,
            form: typed.output_format,
            choice,
            partition,
            temp_dirs,
            memory_bytes: memory_bytes(typed.memory)?,
            threads: threads(typed.threads)?,
            explain: typed.explain,
            limits: merganser_guests::limits(&typed.guest)?,
            nodes,
            report: ReportConfig::new(typed.report)?,
            decompress: !typed.no_decompress,
            quiet: typed.quiet,
        })
    }
}

/// A view holds all rows by key, whatever the form in which it is read.
fn refuse_with_view(choice: Choice, form: Option<RowForm>) -> Result<(), Failure> {
    if let Some(flag) = choice.flag() {
        return Err(format!(
            "{flag} and --view cannot go together: a view holds all rows in the order of their keys; use -o FILE"
        )
        .into());
    }
    if form.is_some() {
        return Err("--output-format: a view has no form until it is read; give it to 'merganser cat' or 'merganser materialize'"
            .to_owned()
            .into());
    }
    Ok(())
}

/// The format that was asked for, if any.
fn format(typed: &MapArgs) -> Result<Option<Format>, Failure> {
    let implied = match () {
        () if typed.text.zero_terminated => Some(FormatName::LINES),
        () if typed.header
            || typed.text.csv_separator.is_some()
            || typed.text.csv_quotes.is_some() =>
        {
            Some(FormatName::CSV)
        }
        () => None,
    };
    let flags = RecordFlags {
        format: typed.format.or(implied).unwrap_or_default(),
        text: &typed.text,
        header: typed.header,
        field_separator: None,
    };
    let format = flags.format()?;
    Ok(typed.format.or(implied).map(|_| format))
}

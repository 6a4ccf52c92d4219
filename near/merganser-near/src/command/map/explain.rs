//! What a map would do, without doing it.

use std::fmt::Write;
use std::sync::Arc;

use merganser_map::ssdlet::{Combine, SsdletDescription, SsdletOutput as Kind, Type};
use merganser_map::{MapInput, PartitionSize};
use merganser_shell::config::Destination;
use merganser_shell::failure::Failure;
use merganser_shell::shown;
use merganser_shell::signals::Cancel;
use merganser_sort::Budget;
use merganser_sort::record::Format;
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;

use super::run;
use super::sources;
use super::split::MemorySplit;
use crate::config::{Choice, MapConfig};
use merganser_pages::text;

/// Inputs that are named; there may be thousands.
const NAMES: usize = 8;
/// Bytes of rows for each byte of input when all keys differ. McSD gives word count a footprint of
/// three times its input (sections 3.4.3 and 3.5.3).
const FOOTPRINT: u64 = 3;

/// The text.
///
/// # Errors
/// When an input can't be read, or there is too little memory.
pub(super) fn text(
    config: &MapConfig,
    description: &SsdletDescription,
    temp: &[Arc<FileDirectory>],
    cancel: &Cancel,
) -> Result<String, Failure> {
    let split = MemorySplit::new(config, &description.output);
    let budget = Budget::new(split.map_bytes());
    let inputs = sources::open(&config.inputs, config.content(description), &budget, cancel)?;
    let mut out = ExplainLines(String::new());
    out.say("SSDlet", &format!("{}, over {}", description.name, records(description.input)));
    out.say("gives", &gives(&description.output));
    for input in inputs.iter().take(NAMES) {
        out.say("input", &source(input, description.input));
    }
    if inputs.len() > NAMES {
        out.say("", &format!("and {} more", inputs.len() - NAMES));
    }
    out.say("workers", &config.threads.to_string());
    out.say("memory", &memory(config, split));
    out.say("partition", &partition(config.partition, &description.output));
    out.say("spills", &spills(config, &inputs, &description.output, split, temp));
    out.say("result", &result(config, &description.output));
    // A map that can't run is not explained.
    let options = run::options(config, budget, temp);
    run::check_memory(config, description, &inputs, &options, split)?;
    Ok(out.0)
}

/// Lines of a noun and what there is to say about it.
struct ExplainLines(String);

impl ExplainLines {
    fn say(&mut self, what: &str, how: &str) {
        let how = shown::escaped(how, &[]);
        writeln!(self.0, "{what:<10} {how}").expect("a string takes all");
    }
}

/// How the borders of records in an input are found.
fn source(input: &MapInput, format: Format) -> String {
    match input {
        MapInput::Storage { storage, .. } => {
            let how = if format.split_rule().is_local() {
                "every worker finds the borders of its own chunks"
            } else {
                "borders are found from the front to the end, by one worker at a time"
            };
            format!("{}: {}, {how}", storage.name(), text::bytes(storage.size()))
        }
        MapInput::Stream { name, .. } => format!(
            "{name}: a stream of unknown length, read ahead; borders are found by one worker at a time"
        ),
    }
}

fn memory(config: &MapConfig, split: MemorySplit) -> String {
    let of = |bytes| text::memory(bytes);
    let all = of(config.memory_bytes);
    match config.choice {
        _ if split.chosen_bytes() == 0 => format!("{all}, all for the map"),
        Choice::ByValue => format!(
            "{all}: {} for the map, {} for sorting rows by value",
            of(split.map_bytes()),
            of(split.chosen_bytes())
        ),
        Choice::ByKey | Choice::Top { .. } => format!(
            "{all}: {} for the map, at most {} for the rows of --top",
            of(split.map_bytes()),
            of(split.chosen_bytes())
        ),
    }
}

fn partition(partition: PartitionSize, output: &Kind) -> String {
    match (output, partition) {
        (Kind::Ordered { .. }, _) => "none: records leave in the order of the input".to_owned(),
        (_, PartitionSize::Auto) => "auto: rows are combined in memory until it is full".to_owned(),
        (_, PartitionSize::Whole) => {
            "none: all rows are combined in memory; too little is an error".to_owned()
        }
        (_, PartitionSize::Bytes(bytes)) => {
            format!("rows are spilled after each {} of input", text::bytes(bytes))
        }
    }
}

fn spills(
    config: &MapConfig,
    inputs: &[MapInput],
    output: &Kind,
    split: MemorySplit,
    temp: &[Arc<FileDirectory>],
) -> String {
    let size = |input: &MapInput| match input {
        MapInput::Storage { storage, .. } => Some(storage.size()),
        MapInput::Stream { .. } => None,
    };
    let total: Option<u64> = inputs.iter().map(size).sum();
    let place = match (&config.destination, temp) {
        (Destination::View(_), []) => "the view".to_owned(),
        (_, folders) => {
            let names: Vec<_> = folders.iter().map(|folder| folder.name().to_owned()).collect();
            names.join(", ")
        }
    };
    match (output, config.partition, total) {
        (Kind::Ordered { .. }, ..) => "none".to_owned(),
        (_, PartitionSize::Whole, _) => "none, or an error".to_owned(),
        (_, PartitionSize::Bytes(bytes), Some(total)) => {
            let partitions = total.div_ceil(bytes).max(1);
            format!("{partitions} or more, into {place}")
        }
        (_, PartitionSize::Auto, Some(total)) if total * FOOTPRINT <= split.map_bytes() => {
            "none: all rows fit into memory, whatever they are".to_owned()
        }
        (_, _, Some(total)) => {
            let most = (total * FOOTPRINT).div_ceil(split.map_bytes().max(1));
            format!(
                "none if the distinct keys fit into memory; {most} or so if all keys differ, into {place}"
            )
        }
        (_, _, None) => format!("as many as the distinct keys need, into {place}"),
    }
}

fn result(config: &MapConfig, output: &Kind) -> String {
    let place = &config.destination;
    let rows = match (output, config.choice) {
        (Kind::Ordered { .. }, _) => "records, as they are".to_owned(),
        (_, Choice::ByKey) => "rows by key".to_owned(),
        (_, Choice::ByValue) => "rows by value, the largest first: a second sort".to_owned(),
        (_, Choice::Top { rows, by_key: false }) => {
            format!("the {rows} rows with the largest values, the largest first")
        }
        (_, Choice::Top { rows, by_key: true }) => {
            format!("the {rows} rows with the largest values, by key")
        }
    };
    match place {
        Destination::View(_) => format!("a view of {rows}, reduced when it is read: {place}"),
        Destination::File(_) | Destination::Stdout => format!("{rows}, to {place}"),
    }
}

fn records(format: Format) -> String {
    match format {
        Format::Lines { delimiter: 0 } => "lines that end with NUL".to_owned(),
        Format::Lines { .. } => "lines".to_owned(),
        Format::Csv { header: true, .. } => "rows of csv with a header".to_owned(),
        Format::Csv { header: false, .. } => "rows of csv".to_owned(),
        Format::Fixed { bytes } => format!("records of {bytes} bytes"),
        Format::Keyed => "length-prefixed records".to_owned(),
        other if !other.is_self_framing() => "sequences".to_owned(),
        other => format!("records of {}", other.typed()),
    }
}

fn gives(output: &Kind) -> String {
    match output {
        Kind::Keyed { key, value, combine } => {
            let how = match combine {
                Combine::Sum => "their sum is kept",
                Combine::Min => "the smallest is kept",
                Combine::Max => "the largest is kept",
                Combine::Count => "they are counted",
                Combine::First => "the first is kept",
                Combine::None => "all are kept",
            };
            format!("rows of {} and {}; of values of one key, {how}", noun(*key), noun(*value))
        }
        Kind::Ordered { format } => format!("{}, in the order of the input", records(*format)),
    }
}

fn noun(of: Type) -> &'static str {
    match of {
        Type::Text => "text",
        Type::Bytes => "bytes",
        Type::I64 => "whole number",
        Type::F64 | Type::Decimal => "number",
    }
}

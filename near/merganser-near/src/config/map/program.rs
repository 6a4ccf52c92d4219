//! What a map runs, and its arguments: the options that people type, as the JSON that SSDlets take.
//!
//! ```text
//!   --keys FILE --key TEXT -i ...   options   ──► name and value of an argument ──┐  refused by name where
//!   --format csv --header -z        records   ──► format, delimiter, ...       ───┼─► the SSDlet has no
//!   --args '{"...": ...}'                     ──► as they are                  ───┘  such argument
//! ```
//!
//! The SSDlet's own list of arguments says which it has. So a new built-in SSDlet needs no change here unless it
//! wants an option of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use merganser_map::ssdlet::builtin::{self, Builtin};
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_sort::record::{CsvQuotes, Format};
use serde_json::{Map, Value};

use super::options::{TypedOption, json, options};
use crate::args::{ProgramArgs, RawMatrix};

/// The name of the product of two matrices, which is no SSDlet: it reads two files by turns.
const MATRIX: &str = "matrix";

/// What runs.
#[derive(Debug, PartialEq)]
pub(crate) enum MapProgram {
    /// An SSDlet.
    Ssdlet {
        /// Which.
        name: ProgramName,
        /// Its arguments: a JSON object; for a guest, a text of any form.
        args: Value,
    },
    /// The product of two matrices.
    Matrix {
        /// The shapes of factors without a header: none, or two.
        raw: Vec<RawMatrix>,
    },
}

/// Which SSDlet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProgramName {
    /// One that is part of this program.
    Builtin(String),
    /// A file in WebAssembly.
    Wasm(PathBuf),
    /// A guest that nodes have in their folders, by its name there.
    OfNodes(String),
}

impl ProgramName {
    /// The SSDlet that is called so: a file if it ends in `.wasm` or has a `/`. A name that is not built in
    /// may be one that nodes know.
    fn new(typed: &OsStr, on_nodes: bool) -> Result<Self, Failure> {
        let path = Path::new(typed);
        let is_file = path.extension().is_some_and(|extension| extension == "wasm");
        if is_file || typed.as_encoded_bytes().contains(&b'/') {
            return Ok(ProgramName::Wasm(path.to_owned()));
        }
        match typed.to_str() {
            Some(name)
                if on_nodes && name != MATRIX && builtin::ALL.iter().all(|b| b.name != name) =>
            {
                Ok(ProgramName::OfNodes(name.to_owned()))
            }
            Some(name) => Ok(ProgramName::Builtin(name.to_owned())),
            None => Err(format!("'{}': no SSDlet has a name like this", typed.display()).into()),
        }
    }
}

impl MapProgram {
    /// The program that `ssdlet` names, with its arguments.
    ///
    /// # Errors
    /// An option that it does not take; arguments that are no JSON object, or are given twice; keys
    /// that can't be read.
    pub(crate) fn new(
        ssdlet: &OsStr,
        format: Option<Format>,
        inputs: &[Input],
        on_nodes: bool,
        mut typed: ProgramArgs,
    ) -> Result<Self, Failure> {
        let name = ProgramName::new(ssdlet, on_nodes)?;
        let raw = std::mem::take(&mut typed.raw);
        let guest_args = match &name {
            ProgramName::Wasm(_) | ProgramName::OfNodes(_) => typed.args.take(),
            ProgramName::Builtin(_) => None,
        };
        let mut args = object(typed.args.as_deref())?;
        let mut options = options(typed)?;
        match &name {
            ProgramName::Builtin(matrix) if matrix == MATRIX => {
                let format = format.map(|_| "--format");
                let args = (!args.is_empty()).then_some("--args");
                let option = options.first().map(|option| option.flag);
                return match option.or(format).or(args) {
                    Some(flag) => Err(not_taken(flag, MATRIX)),
                    None => Ok(MapProgram::Matrix { raw }),
                };
            }
            _ if !raw.is_empty() => return Err(format!("--raw: only with {MATRIX}").into()),
            ProgramName::Builtin(name) => {
                // A name that nothing has is refused when it is opened.
                if let Some(builtin) = builtin::ALL.iter().find(|builtin| builtin.name == name) {
                    refuse_foreign(builtin, &options)?;
                    options.extend(record_arguments(builtin, format)?);
                }
            }
            ProgramName::Wasm(_) | ProgramName::OfNodes(_) => {
                refuse_with_guest(format, &options)?;
                let args = Value::String(guest_args.unwrap_or_default());
                return Ok(MapProgram::Ssdlet { name, args });
            }
        }
        for TypedOption { flag, argument, value } in options {
            if args.insert(argument.to_owned(), value).is_some() {
                let why = "is in --args, too; give one of them";
                return Err(format!("{flag}: \"{argument}\" {why}").into());
            }
        }
        if let ProgramName::Builtin(name) = &name {
            refuse_incomplete(name, &args)?;
        }
        name_documents(&name, inputs, &mut args);
        Ok(MapProgram::Ssdlet { name, args: Value::Object(args) })
    }
}

impl MapProgram {
    /// Its name, if it is built in.
    pub(super) fn builtin(&self) -> Option<&str> {
        match self {
            MapProgram::Ssdlet { name: ProgramName::Builtin(name), .. } => Some(name),
            MapProgram::Matrix { .. } => Some(MATRIX),
            MapProgram::Ssdlet { .. } => None,
        }
    }
}

/// The object of `--args`.
fn object(typed: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(typed) = typed else { return Ok(Map::new()) };
    match json("--args", typed)? {
        Value::Object(object) => Ok(object),
        _ => Err("--args: it is no object; give a JSON object, such as '{\"key\": 1}'"
            .to_owned()
            .into()),
    }
}

fn has(builtin: &Builtin, argument: &str) -> bool {
    builtin.arguments.iter().any(|known| known.name == argument)
}

fn not_taken(flag: &str, name: &str) -> Failure {
    format!("{flag}: {name} does not take it; leave it out").into()
}

/// Refuses an option of another SSDlet.
fn refuse_foreign(builtin: &Builtin, options: &[TypedOption]) -> Result<(), Failure> {
    match options.iter().find(|option| !option.is_of(builtin)) {
        Some(option) => Err(not_taken(option.flag, builtin.name)),
        None => Ok(()),
    }
}

/// Refuses a built-in SSDlet without an argument that it needs, or with two that exclude each other.
fn refuse_incomplete(name: &str, args: &Map<String, Value>) -> Result<(), Failure> {
    let given = |argument: &str| args.get(argument).is_some_and(|value| !value.is_null());
    let is_csv = args.get("format").is_some_and(|format| format == "csv");
    let of_bytes = args.get("of").is_some_and(|of| of == "bytes");
    let missing = match name {
        "match" if !given("keys") && !given("regex") => {
            "give --keys FILE, --key TEXT or --regex PATTERN"
        }
        "match" if given("keys") && given("regex") => "give --regex, or --keys and --key; not both",
        "sample" if given("fraction") == given("count") => {
            "give either --fraction SHARE or --records N"
        }
        "filter" if !given("where") => "give --where CONDITION, such as --where 'amount >= 100'",
        "project" if !given("columns") => "give --columns LIST, such as --columns 1,3",
        "histogram" if is_csv && !of_bytes && !given("column") => {
            "give --column, the name or number of the column with the numbers"
        }
        _ => return Ok(()),
    };
    Err(format!("{name}: {missing}").into())
}

/// A guest says itself how its records are divided, and its author named its arguments.
fn refuse_with_guest(format: Option<Format>, options: &[TypedOption]) -> Result<(), Failure> {
    if format.is_some() {
        return Err("--format: a guest says itself how its records are divided; leave it out"
            .to_owned()
            .into());
    }
    match options.first() {
        Some(TypedOption { flag, argument, .. }) => Err(format!(
            "{flag}: is for built-in SSDlets; give a guest its arguments with --args, such as '{{\"{argument}\": ...}}'"
        )
        .into()),
        None => Ok(()),
    }
}

/// The format of the records as arguments.
fn record_arguments(
    builtin: &Builtin,
    format: Option<Format>,
) -> Result<Vec<TypedOption>, Failure> {
    let Some(format) = format else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut add = |flag, argument, value: Value| found.push(TypedOption { flag, argument, value });
    let refused = |only: &str| {
        let name = builtin.name;
        Err(format!("--format: {name} takes {only} alone; leave it out").into())
    };
    if !format.is_self_framing() {
        return Err("--format: SSDlets take lines, csv, fixed:N or keyed; sequences are for sort and verify"
            .to_owned()
            .into());
    }
    let needs = match format {
        Format::Lines { .. } => "delimiter",
        Format::Csv { .. } => "separator",
        _ => "format",
    };
    if !has(builtin, needs) {
        return refused(if has(builtin, "separator") { "rows of csv" } else { "lines" });
    }
    if has(builtin, "format") {
        add("--format", "format", Value::from(format.typed()));
    }
    match format {
        Format::Lines { delimiter } if delimiter != b'\n' => {
            add("-z", "delimiter", Value::from(char::from(delimiter).to_string()));
        }
        Format::Csv { separator, header, quotes } => {
            if !separator.is_ascii() {
                return Err("--csv-separator: give an ASCII character".to_owned().into());
            }
            if separator != b',' {
                let separator = char::from(separator).to_string();
                add("--csv-separator", "separator", Value::from(separator));
            }
            if header {
                add("--header", "header", Value::from(true));
            }
            if quotes == CsvQuotes::Strict {
                add("--csv-quotes", "quotes", Value::from("strict"));
            }
        }
        _ => {}
    }
    Ok(found)
}

/// Inputs that are documents bear their names, unless the arguments say otherwise.
fn name_documents(name: &ProgramName, inputs: &[Input], args: &mut Map<String, Value>) {
    let ProgramName::Builtin(name) = name else { return };
    let Some(builtin) = builtin::ALL.iter().find(|builtin| builtin.name == name) else { return };
    let by_field = args.get("document").is_some_and(|document| document != "input");
    if has(builtin, "names") && !by_field && !args.contains_key("names") {
        let names: Vec<_> = inputs.iter().map(ToString::to_string).collect();
        args.insert("names".to_owned(), Value::from(names));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{config, refusal};
    use super::super::MapConfig;
    use super::*;
    use crate::args::NearCommand;
    use serde_json::json;

    fn meant(words: &[&str]) -> (ProgramName, Value) {
        let NearCommand::Map(typed) = config(&[&["map"], words].concat()) else { unreachable!() };
        let config = MapConfig::try_from(typed);
        let config = config.unwrap_or_else(|failure| panic!("{:?}", failure.sentence()));
        match config.program {
            MapProgram::Ssdlet { name, args } => (name, args),
            MapProgram::Matrix { .. } => panic!("a matrix"),
        }
    }

    #[test]
    fn options_become_the_arguments_of_their_ssdlet() {
        let table: &[(&[&str], Value)] = &[
            (&["wordcount"], json!({})),
            (
                &["wordcount", "-z", "--rule", "letters"],
                json!({ "delimiter": "\0", "words": "letters" }),
            ),
            (
                &["match", "--key", "a", "--key", "b,c", "-i"],
                json!({ "keys": ["a", "b,c"], "ignore_case": true }),
            ),
            (
                &["match", "--regex", "-x$", "-v", "--count"],
                json!({ "regex": "-x$", "invert": true, "count": true }),
            ),
            (
                &["sample", "--records", "1K", "--format", "fixed:100"],
                json!({ "count": 1000, "format": "fixed:100" }),
            ),
            (&["project", "--columns", "city,2"], json!({ "columns": ["city", 2] })),
            (
                &["project", "--columns", "1", "--header", "--csv-separator", ";"],
                json!({ "columns": [1], "header": true, "separator": ";" }),
            ),
            (&["sequence-count", "--length", "2"], json!({ "n": 2 })),
            (&["sequence-count", "--document", "field", "a.txt"], json!({ "document": "field" })),
            (&["occurrences", "--text", "a b"], json!({ "text": "a b" })),
            (
                &["terms", "--first", "document", "a.txt", "b.txt"],
                json!({ "first": "document", "names": ["a.txt", "b.txt"] }),
            ),
            (&["terms", "--document", "field", "a.txt"], json!({ "document": "field" })),
            (
                &["sample", "--args", "{\"count\": 7}", "--seed", "1"],
                json!({ "count": 7, "seed": 1 }),
            ),
        ];
        for (words, args) in table {
            assert_eq!(meant(words).1, *args, "{words:?}");
        }
    }

    #[test]
    fn files_are_guests_and_names_are_built_in() {
        for (typed, name) in [
            ("wordcount", ProgramName::Builtin("wordcount".to_owned())),
            ("x.wasm", ProgramName::Wasm("x.wasm".into())),
            ("./x", ProgramName::Wasm("./x".into())),
        ] {
            assert_eq!(meant(&[typed]).0, name);
        }
        // With --on, a name may be that of a guest on the nodes, whose arguments are a text.
        let of_nodes = meant(&["grep", "f", "--on", "a:1", "--args", "needle"]);
        assert_eq!(of_nodes, (ProgramName::OfNodes("grep".to_owned()), json!("needle")));
        assert_eq!(meant(&["x.wasm", "f", "--on", "a:1"]).1, json!(""));
        let built_in = meant(&["wordcount", "f", "--on", "a:1"]).0;
        assert_eq!(built_in, ProgramName::Builtin("wordcount".to_owned()));
    }

    #[test]
    fn what_an_ssdlet_does_not_take_is_named() {
        let table: &[(&[&str], &str)] = &[
            (&["wordcount", "--width", "3"], "--width: wordcount does not take it; leave it out"),
            (
                &["match", "--key", "a", "--seed", "3"],
                "--seed: match does not take it; leave it out",
            ),
            (
                &["wordcount", "--format", "csv"],
                "--format: wordcount takes lines alone; leave it out",
            ),
            (
                &["project", "--columns", "1", "-z"],
                "--format: project takes rows of csv alone; leave it out",
            ),
            (
                &["x.wasm", "--key", "a"],
                "--key: is for built-in SSDlets; give a guest its arguments with --args, such as '{\"keys\": ...}'",
            ),
            (
                &["grep", "--on", "a:1", "f", "--key", "a"],
                "--key: is for built-in SSDlets; give a guest its arguments with --args, such as '{\"keys\": ...}'",
            ),
            (
                &["wordcount", "--time-limit", "1"],
                "--time-limit: is for guests, and wordcount is built in; leave it out",
            ),
            (&["x.wasm", "--guest-memory", "1K"], "--guest-memory: at least 64K"),
            (&["matrix", "a", "b", "--key", "a"], "--key: matrix does not take it; leave it out"),
            (&["wordcount", "--raw", "f32:1x1"], "--raw: only with matrix"),
            (
                &["wordcount", "--args", "[]"],
                "--args: it is no object; give a JSON object, such as '{\"key\": 1}'",
            ),
            (
                &["sample", "--args", "{\"seed\": 7}", "--seed", "1"],
                "--seed: \"seed\" is in --args, too; give one of them",
            ),
        ];
        for (words, sentence) in table {
            assert_eq!(refusal(&[&["map"], *words].concat()), *sentence, "{words:?}");
        }
    }
}

//! The programs of map tasks: the SSDlets of [`merganser_map::ssdlet::builtin`], and those in WebAssembly that jobs bring.
//!
//! Some stand in for mappers in Java that the plugin knows ([`KNOWN`]); docs/hadoop/hadoop-node.md says what these do.
//! For any other, the author of a job says that it gives what the job's mapper gives.
//!
//! ```text
//!   request ── find ──► SSDlet ── check: types, records, combine ──► run: chunks of whole records, in Java's text
//! ```

mod run;

use std::sync::Arc;

use merganser_map::ssdlet::builtin::{self, Builtin};
use merganser_map::ssdlet::{
    Alone, Combine, MapperModule, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type,
};
use merganser_sort::record::Format;
use serde_json::{Map, Value};

use super::module::Modules;
use super::request::{CombineKind, MapRequest, SsdletName, Writable};
use super::{HdfsError, HdfsResult};
pub(super) use run::SsdletMapper;

/// An SSDlet under the name that the plugin has for the mapper in Java that it stands in for.
struct KnownProgram {
    name: &'static str,
    ssdlet: &'static str,
    /// The argument that it has in any case.
    argument: Option<(&'static str, &'static str)>,
    /// The class of the mapper's values; all its numbers are 1. Keys are `Text`.
    value: Writable,
}

const fn known(name: &'static str, ssdlet: &'static str, value: Writable) -> KnownProgram {
    KnownProgram { name, ssdlet, argument: None, value }
}

/// All of them, in the order of their names.
const KNOWN: &[KnownProgram] = &[
    known("grep", "occurrences", Writable::Long),
    known("histogram-movies", "histogram-movies", Writable::Int),
    known("histogram-ratings", "histogram-ratings", Writable::Int),
    known("inverted-index", "inverted-index", Writable::Text),
    known("ranked-inverted-index", "ranked-inverted-index", Writable::Text),
    KnownProgram {
        argument: Some(("document", "field")),
        ..known("sequence-count", "sequence-count", Writable::Int)
    },
    known("term-vector", "term-vector", Writable::Text),
    known("wordcount", "wordcount", Writable::Int),
];

/// The names of all programs that are part of this one, in order.
pub(super) fn names() -> Vec<String> {
    let all = KNOWN.iter().map(|known| known.name);
    let mut all: Vec<_> = all.chain(builtin::ALL.iter().map(|ssdlet| ssdlet.name)).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(str::to_owned).collect()
}

/// The program of a request.
pub(super) enum RequestedProgram {
    BuiltIn(BuiltInProgram),
    Module(Arc<dyn MapperModule>),
}

/// A built-in SSDlet, and what a mapper in Java says about it.
pub(super) struct BuiltInProgram {
    ssdlet: &'static Builtin,
    known: Option<&'static KnownProgram>,
}

/// The program of `request`.
///
/// # Errors
/// When it is not here.
pub(super) fn find(request: &MapRequest, modules: &Modules) -> HdfsResult<RequestedProgram> {
    match &request.ssdlet {
        SsdletName::BuiltIn(name) => {
            let known = KNOWN.iter().find(|known| known.name == name);
            let wanted = known.map_or(name.as_str(), |known| known.ssdlet);
            let ssdlet = builtin::ALL.iter().find(|ssdlet| ssdlet.name == wanted);
            let ssdlet = ssdlet.ok_or_else(|| HdfsError::Ssdlet { name: shown(name) })?;
            Ok(RequestedProgram::BuiltIn(BuiltInProgram { ssdlet, known }))
        }
        SsdletName::Module(sha256) => modules.find(sha256).map(RequestedProgram::Module),
    }
}

impl RequestedProgram {
    /// Memory of the program itself for `request`, in bytes. It has `lent_bytes` of it, or the least that it works in.
    pub(super) fn own_bytes(&self, request: &MapRequest, lent_bytes: u64) -> u64 {
        match self {
            RequestedProgram::BuiltIn(program) => program
                .ssdlet(request, lent_bytes)
                .map_or(0, |ssdlet| ssdlet.description().worker_bytes + ssdlet.held_bytes()),
            RequestedProgram::Module(module) => module.description().worker_bytes,
        }
    }

    /// Memory for copies of records that can't be handed over as they are, the longest of `record_bytes` bytes.
    pub(super) fn copy_bytes(&self, record_bytes: u64) -> u64 {
        let decoded = match self {
            RequestedProgram::BuiltIn(_) => run::DECODING_BYTES,
            RequestedProgram::Module(_) => 0,
        };
        run::CHUNK_BYTES as u64 + record_bytes + decoded
    }

    /// Whether all numbers that it hands out are 1.
    pub(super) fn only_ones(&self) -> bool {
        matches!(self, RequestedProgram::BuiltIn(program) if program.known.is_some())
    }

    /// Opens the mapper of `request`, whose program this is, with the memory of [`RequestedProgram::own_bytes`].
    ///
    /// # Errors
    /// When it does not do what the job expects.
    pub(super) fn open(&self, request: &MapRequest, lent_bytes: u64) -> HdfsResult<SsdletMapper> {
        match self {
            RequestedProgram::BuiltIn(program) => {
                let ssdlet = program.ssdlet(request, lent_bytes)?;
                let value = program.known.map(|known| known.value);
                let of = (ssdlet.description(), ssdlet.asks_for_places());
                let ends = check(of, value, request).map_err(|detail| program.types(detail))?;
                SsdletMapper::of_java(program.name(), &*ssdlet, request.value, ends)
            }
            RequestedProgram::Module(module) => {
                let description = module.description();
                let types = |detail| HdfsError::Types { ssdlet: description.name.clone(), detail };
                if request.delimiter.len() > 1 {
                    let why = "its records end with one byte, and the job's delimiter has more";
                    return Err(types(why.to_owned()));
                }
                let of = (description, module.asks_for_places());
                let ends = check(of, None, request).map_err(types)?;
                let ssdlet = module.open(&request.arguments).map_err(run::failed)?;
                SsdletMapper::of_module(&description.name, &*ssdlet, request.value, ends)
            }
        }
    }
}

impl BuiltInProgram {
    /// The name that the task asks for.
    fn name(&self) -> &'static str {
        self.known.map_or(self.ssdlet.name, |known| known.name)
    }

    fn types(&self, detail: String) -> HdfsError {
        HdfsError::Types { ssdlet: self.name().to_owned(), detail }
    }

    /// Opens it with the arguments of `request`.
    fn ssdlet(&self, request: &MapRequest, lent_bytes: u64) -> HdfsResult<Box<dyn Ssdlet>> {
        let fault = |detail| HdfsError::Arguments { ssdlet: self.name().to_owned(), detail };
        let mut arguments = arguments(&request.arguments).map_err(fault)?;
        if arguments.contains_key("delimiter") {
            return Err(fault("the job says what ends a record, and no argument does".to_owned()));
        }
        if let Some((name, value)) = self.known.and_then(|known| known.argument) {
            if arguments.contains_key(name) {
                return Err(fault(format!("its argument {name} is {value:?} in any case")));
            }
            arguments.insert(name.to_owned(), value.into());
        }
        if self.ssdlet.arguments.iter().any(|argument| argument.name == "delimiter") {
            arguments.insert("delimiter".to_owned(), record_end(&request.delimiter).into());
        }
        let lender = Alone { memory_bytes: lent_bytes };
        let opened = builtin::open_within(self.ssdlet.name, &Value::Object(arguments), &lender);
        opened.map_err(|error| match error {
            SsdletError::Args { detail, .. } => fault(detail),
            SsdletError::Argument { argument, detail, .. } => {
                fault(format!("argument {argument}: {detail}"))
            }
            error => run::failed(error),
        })
    }
}

/// The byte behind each record that an SSDlet gets, where the job's records end with `delimiter`. Several bytes become
/// one that no text of UTF-8 has.
fn record_end(delimiter: &[u8]) -> u8 {
    match *delimiter {
        [] => b'\n',
        [byte] => byte,
        _ => 0xff,
    }
}

/// Checks that an SSDlet does what the job expects; the byte behind each of its records. Its values are `known` to be of
/// a class.
fn check(
    (description, asks_for_places): (&SsdletDescription, bool),
    known: Option<Writable>,
    request: &MapRequest,
) -> HdfsResult<u8, String> {
    let ends = record_end(&request.delimiter);
    if description.input != (Format::Lines { delimiter: ends }) {
        return Err(format!(
            "its input is {:?} and the job's is lines that end with byte {ends}",
            description.input
        ));
    }
    if asks_for_places {
        return Err("it asks for the place of its records, which depends on the split".into());
    }
    let SsdletOutput::Keyed { key, value, combine } = description.output else {
        return Err("it hands out records in order and not keys with values".into());
    };
    let is_text = |of| matches!(of, Type::Text | Type::Bytes);
    let fits = is_text(key)
        && request.key == Writable::Text
        && match request.value {
            Writable::Text => is_text(value),
            Writable::Int | Writable::Long => value == Type::I64,
        };
    if !fits || known.is_some_and(|known| known != request.value) {
        let given = match known {
            Some(known) => format!("(Text, {known:?})"),
            None => format!("({key:?}, {value:?})"),
        };
        return Err(format!(
            "it hands out {given} and the job expects ({:?}, {:?})",
            request.key, request.value
        ));
    }
    let allowed: &[_] = match combine {
        Combine::Sum => &[CombineKind::None, CombineKind::Sum],
        Combine::None if value != Type::I64 => &[CombineKind::None, CombineKind::Distinct],
        Combine::None => &[CombineKind::None],
        _ => &[],
    };
    if !allowed.contains(&request.combine) {
        return Err(format!(
            "its values are combined by {combine:?} and those of the job by {:?}",
            request.combine
        ));
    }
    Ok(ends)
}

/// A name from a client, no longer than a line.
fn shown(name: &str) -> String {
    name.chars().take(64).collect::<String>().escape_debug().to_string()
}

fn arguments(text: &str) -> HdfsResult<Map<String, Value>, String> {
    if text.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("its arguments are the members of a JSON object".to_owned()),
        Err(error) => Err(format!("its arguments are no JSON: {error}")),
    }
}

#[cfg(test)]
mod tests;

//! The programs of map tasks. Each has a mapper in Java with the same result (`hadoop/java/workloads`; for `grep`, Hadoop's
//! `RegexMapper`), which the task runs where this one is refused; docs/hadoop/hadoop-node.md says what they do.
//!
//! ```text
//!   wordcount    grep    ratings      movie ratings: histogram-ratings, histogram-movies
//!   documents    words of named texts: sequence-count, inverted-index, term-vector; ranked-inverted-index
//!   guest        what jobs bring, in WebAssembly
//! ```

mod documents;
mod grep;
mod guest;
mod ratings;
mod wordcount;

use std::sync::Arc;

use serde_json::{Map, Value};

use super::batch::SplitBatch;
use super::java_text::decoded;
use super::module::Modules;
use super::output::MappedRows;
use super::request::{CombineKind, MapRequest, SsdletName, Writable};
use super::{HdfsError, HdfsResult};
use merganser_map::ssdlet::MapperModule;

/// A program that maps records.
pub(super) trait HdfsMapper: Send {
    /// Maps records that follow each other; how many they are.
    ///
    /// # Errors
    /// Records that make no sense to it.
    fn map(&mut self, batch: &SplitBatch<'_>, out: &mut MappedRows<'_>) -> HdfsResult<u64>;

    /// After the last record.
    ///
    /// # Errors
    /// As [`HdfsMapper::map`].
    fn finish(&mut self, _out: &mut MappedRows<'_>) -> HdfsResult<()> {
        Ok(())
    }
}

/// A mapper that looks at one record at a time, as a text of UTF-8.
trait RecordMapper: Send {
    /// Maps one record.
    fn record(&mut self, text: &[u8], out: &mut MappedRows<'_>);
}

/// A program by name.
pub(super) struct MapperProgram {
    /// The name.
    pub(super) name: &'static str,
    /// The class of its values. Keys are `Text`.
    value: Writable,
    /// How the values of a key may be combined.
    combines: &'static [CombineKind],
    /// Opens it with the members of a JSON object, or says what is wrong with them.
    open: OpenMapper,
}

type OpenMapper = fn(&mut Map<String, Value>) -> HdfsResult<Box<dyn HdfsMapper>, String>;

const COUNTS: &[CombineKind] = &[CombineKind::None, CombineKind::Sum];

/// All of them, in the order of their names.
pub(super) const ALL: &[MapperProgram] = &[
    MapperProgram { name: "grep", value: Writable::Long, combines: COUNTS, open: grep::open },
    MapperProgram {
        name: "histogram-movies",
        value: Writable::Int,
        combines: COUNTS,
        open: |_| Ok(Box::new(ratings::Movies)),
    },
    MapperProgram {
        name: "histogram-ratings",
        value: Writable::Int,
        combines: COUNTS,
        open: |_| Ok(Box::new(ratings::Ratings)),
    },
    MapperProgram {
        name: "inverted-index",
        value: Writable::Text,
        combines: &[CombineKind::None, CombineKind::Distinct],
        open: |_| Ok(each(documents::InvertedIndexMapper)),
    },
    MapperProgram {
        name: "ranked-inverted-index",
        value: Writable::Text,
        combines: &[CombineKind::None],
        open: |_| Ok(each(documents::Ranked::default())),
    },
    MapperProgram {
        name: "sequence-count",
        value: Writable::Int,
        combines: COUNTS,
        open: |_| Ok(each(documents::SequenceCountMapper::default())),
    },
    MapperProgram {
        name: "term-vector",
        value: Writable::Text,
        combines: &[CombineKind::None],
        open: |_| Ok(each(documents::TermVectorMapper::default())),
    },
    MapperProgram {
        name: "wordcount",
        value: Writable::Int,
        combines: COUNTS,
        open: |_| Ok(Box::new(wordcount::WordCountMapper::default())),
    },
];

/// The program of a request.
pub(super) enum RequestedProgram {
    BuiltIn(&'static MapperProgram),
    Module(Arc<dyn MapperModule>),
}

/// The program of `request`.
///
/// # Errors
/// When it is not here.
pub(super) fn find(request: &MapRequest, modules: &Modules) -> HdfsResult<RequestedProgram> {
    match &request.ssdlet {
        SsdletName::BuiltIn(name) => {
            let program = ALL.iter().find(|program| program.name == name);
            program
                .map(RequestedProgram::BuiltIn)
                .ok_or_else(|| HdfsError::Ssdlet { name: shown(name) })
        }
        SsdletName::Module(sha256) => modules.find(sha256).map(RequestedProgram::Module),
    }
}

impl RequestedProgram {
    /// Memory of the program itself, in bytes.
    pub(super) fn own_bytes(&self) -> u64 {
        match self {
            RequestedProgram::BuiltIn(_) => 0,
            RequestedProgram::Module(module) => module.description().worker_bytes,
        }
    }

    /// Memory for a copy of the longest record, of `record_bytes` bytes, where the program needs one.
    pub(super) fn copy_bytes(&self, record_bytes: u64) -> u64 {
        match self {
            RequestedProgram::BuiltIn(_) => 0,
            RequestedProgram::Module(_) => guest::CHUNK_BYTES as u64 + record_bytes,
        }
    }

    /// Whether all numbers that it hands out are 1.
    pub(super) fn only_ones(&self) -> bool {
        matches!(self, RequestedProgram::BuiltIn(_))
    }

    /// Opens the mapper of `request`, whose program this is.
    ///
    /// # Errors
    /// When it does not do what the job expects.
    pub(super) fn open(&self, request: &MapRequest) -> HdfsResult<Box<dyn HdfsMapper>> {
        match self {
            RequestedProgram::BuiltIn(program) => program.open(request),
            RequestedProgram::Module(module) => {
                let ends = guest::check(&**module, request).map_err(|detail| HdfsError::Types {
                    ssdlet: module.description().name.clone(),
                    detail,
                })?;
                guest::open(module, request, ends)
            }
        }
    }
}

impl MapperProgram {
    fn open(&self, request: &MapRequest) -> HdfsResult<Box<dyn HdfsMapper>> {
        let ssdlet = || self.name.to_owned();
        let fault = |detail| HdfsError::Arguments { ssdlet: ssdlet(), detail };
        let mut arguments = arguments(&request.arguments).map_err(fault)?;
        let mapper = (self.open)(&mut arguments).map_err(fault)?;
        if let Some(other) = arguments.keys().next() {
            return Err(fault(format!("it has no argument {}", shown(other))));
        }
        let types = |detail| HdfsError::Types { ssdlet: ssdlet(), detail };
        if (request.key, request.value) != (Writable::Text, self.value) {
            return Err(types(format!(
                "it hands out (Text, {:?}) and the job expects ({:?}, {:?})",
                self.value, request.key, request.value
            )));
        }
        if !self.combines.contains(&request.combine) {
            return Err(types(format!("its values can't be combined by {:?}", request.combine)));
        }
        Ok(mapper)
    }
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

fn each<M: RecordMapper + 'static>(mapper: M) -> Box<dyn HdfsMapper> {
    Box::new(Each { mapper, room: Vec::new() })
}

/// Hands records to a [`RecordMapper`] as Java would decode them.
struct Each<M> {
    mapper: M,
    room: Vec<u8>,
}

impl<M: RecordMapper> HdfsMapper for Each<M> {
    fn map(&mut self, batch: &SplitBatch<'_>, out: &mut MappedRows<'_>) -> HdfsResult<u64> {
        let most = out.text_bytes_max();
        let mut count = 0;
        for record in batch.records() {
            count += 1;
            let text = Some(record).filter(|record| record.len() <= most);
            match text.and_then(|text| decoded(text, &mut self.room, most)) {
                Some(text) => self.mapper.record(text, out),
                None => out.too_long(),
            }
        }
        Ok(count)
    }
}

/// The part before the first `byte`, and the part after it.
fn split_at_first(byte: u8, text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests;

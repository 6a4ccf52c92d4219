//! `match`: records with one of some texts, or with a regular expression.
//!
//! The search runs over a whole chunk. Only where it finds something are the borders of a record looked
//! for; the search continues behind that record.
//!
//! ```text
//!   chunk   ....\n.....\n..hit..\n......\n....
//!                        └record─┘▲ the search continues here
//! ```
//! A hit is a *match* only if it is within its record. A hit that spans records hides none: any match of
//! the record in which it begins would begin no earlier, so that record is searched alone, and the search
//! continues behind it.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use memchr::memmem;
use merganser_sort::record::Format;
use regex::bytes::{Regex, RegexBuilder};

use super::arguments::Arguments;
use super::borders::{RecordBorders, Spans};
use super::{Argument, DELIMITER, HEADER, QUOTES, SEPARATOR, argument};
use crate::ssdlet::{
    Chunk, Combine, Emitter, Loan, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type,
    Worker,
};

pub(super) const ARGUMENTS: &[Argument] = &[
    argument("keys", "a list of texts; a record with any of them matches", "either this or regex"),
    argument(
        "regex",
        "a regular expression (syntax of the Rust crate regex; ^ and $ are the ends of a line)",
        "either this or keys",
    ),
    argument(
        "ignore_case",
        "whether case is ignored: of ASCII letters for keys, of all letters for a regex",
        "false",
    ),
    argument("invert", "whether records that do not match are given", "false"),
    argument(
        "count",
        "whether, instead of records, each key (or the regex) is given with the number of its records",
        "false",
    ),
    argument("format", "\"lines\", \"csv\" or \"fixed:BYTES\"", "\"lines\""),
    DELIMITER,
    SEPARATOR,
    HEADER,
    QUOTES,
];

/// Memory of the automata that a regex makes while it searches: two of 2 MiB, and what its slower
/// engines keep.
const REGEX_BYTES: u64 = 5 << 20;

/// Memory that it takes to make an automaton, for each byte of the keys. Measured: 35 to 50 bytes for 1 MB of keys of 8
/// to 900 bytes.
const OPENING_PER_KEY_BYTE: u64 = 52;

/// The sizes of a compiled regular expression that are tried one after another: the crate says only whether one fits. The
/// last is the crate's own limit.
const REGEX_SIZES: [usize; 3] = [128 << 10, 2 << 20, 10 << 20];
/// Memory to compile one and to keep it, per byte of that size: it has an automaton for each direction. Measured: 37 MB
/// for a size of 10 MiB.
const OPENING_PER_REGEX_BYTE: u64 = 4;
const HELD_PER_REGEX_BYTE: u64 = 2;

/// Hits that span records, after which records are searched one by one. Such a hit may be long, and is
/// searched for again from the next record on.
const SPANNING_MOST: u32 = 16;

struct Match {
    description: SsdletDescription,
    finder: Finder,
    /// The texts to count, with their names; empty if records are wanted.
    counted: Arc<[String]>,
    /// Finds all keys of a record, also those that overlap: if several are counted.
    all: Option<AhoCorasick>,
    invert: bool,
    /// Memory of the finder and the names.
    held_bytes: u64,
}

#[derive(Clone)]
enum Finder {
    One(Box<memmem::Finder<'static>>),
    Many(AhoCorasick),
    Pattern {
        regex: Regex,
        /// Whether it may match within a chunk differently than in a record alone.
        one_by_one: bool,
    },
}

pub(super) fn open(mut args: Arguments<'_>) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let format = args.records()?;
    if format == Format::Keyed {
        return Err(args.fault("format", "keyed records have no text; choose another"));
    }
    let ignore_case = args.take("ignore_case")?.unwrap_or(false);
    let invert = args.take("invert")?.unwrap_or(false);
    let count = args.take("count")?.unwrap_or(false);
    if invert && count {
        return Err(args.fault("count", "records that do not match have no key; drop invert"));
    }
    let keys: Option<Vec<String>> = args.take("keys")?;
    let regex: Option<String> = args.take("regex")?;
    // Given back once all is made.
    let opening;
    let (finder, names, held_bytes) = match (keys, regex) {
        (Some(_), Some(_)) => return Err(args.fault("regex", "give this or keys, not both")),
        (None, None) => return Err(args.fault("keys", "give a list of texts, or a regex")),
        (Some(keys), None) => {
            let keys = distinct(&args, keys, format)?;
            opening = args.memory("keys", OPENING_PER_KEY_BYTE * bytes_of(&keys) as u64)?;
            let finder = literals(&keys, ignore_case).map_err(|error| args.fault("keys", error))?;
            let held_bytes = match finder {
                // Its size is not known; it is less than what it took to make it.
                Finder::Pattern { .. } => OPENING_PER_KEY_BYTE * bytes_of(&keys) as u64,
                _ => finder.bytes(),
            };
            (finder, keys, held_bytes)
        }
        (None, Some(text)) if text.len() > REGEX_BYTES_MOST => {
            let detail = format!("it has {} bytes; {REGEX_BYTES_MOST} are the most", text.len());
            return Err(args.fault("regex", detail));
        }
        (None, Some(text)) => {
            let (finder, held_bytes, loan) = sized_pattern(&args, &text, format, ignore_case)?;
            opening = loan;
            (finder, vec![text], held_bytes)
        }
    };
    let all = if count && names.len() > 1 {
        let all = automaton(&names, ignore_case, MatchKind::Standard);
        Some(all.map_err(|error| args.fault("keys", error))?)
    } else {
        None
    };
    let output = if count {
        SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum }
    } else {
        SsdletOutput::Ordered { format }
    };
    let all_bytes = all.as_ref().map_or(0, AhoCorasick::memory_usage) as u64;
    let worker_bytes = finder.bytes() + all_bytes + 16 * names.len() as u64;
    let name = "match".to_owned();
    let description = SsdletDescription { name, input: format, output, worker_bytes };
    let held_bytes = held_bytes + all_bytes + bytes_of(&names) as u64;
    let counted = if count { names.into() } else { Arc::default() };
    drop(opening);
    Ok(Box::new(Match { description, finder, counted, all, invert, held_bytes }))
}

/// The keys without repetitions; refuses those that match nothing or everything.
fn distinct(
    args: &Arguments,
    mut keys: Vec<String>,
    format: Format,
) -> Result<Vec<String>, SsdletError> {
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        return Err(args.fault("keys", "the list is empty; give a text"));
    }
    if keys[0].is_empty() {
        return Err(args.fault("keys", "a text is empty, and would match each record; remove it"));
    }
    if let Format::Lines { delimiter } = format
        && let Some(key) = keys.iter().find(|key| key.as_bytes().contains(&delimiter))
    {
        let detail = format!("{key:?} has the byte that ends a record, so it never matches");
        return Err(args.fault("keys", detail));
    }
    Ok(keys)
}

/// Keys up to this number are searched for as a regular expression: its vectorised search for a few
/// beginnings is 2 to 4 times as fast as an automaton. Of many keys there are too many beginnings.
const REGEX_KEYS_MOST: usize = 32;
/// Keys up to this number are searched for by a table of all states, the fastest automaton.
const TABLE_KEYS_MOST: usize = 1000;
/// The limit for both, in bytes of all keys. Each byte is a state, which takes up to 1 KiB of the table, so
/// that longer keys, which any client may send, would take gigabytes before they can be counted.
const FAST_BYTES_MOST: usize = 32 << 10;
/// The longest regular expression, in bytes. The crate bounds what it compiles to, but not what it parses.
const REGEX_BYTES_MOST: usize = 64 << 10;

fn bytes_of(keys: &[String]) -> usize {
    keys.iter().map(String::len).sum()
}

fn literals(keys: &[String], ignore_case: bool) -> Result<Finder, Box<dyn std::error::Error>> {
    match keys {
        [key] if !ignore_case => Ok(Finder::One(Box::new(memmem::Finder::new(key).into_owned()))),
        keys if keys.len() <= REGEX_KEYS_MOST && bytes_of(keys) <= FAST_BYTES_MOST => {
            let keys: Vec<_> = keys.iter().map(|key| regex::escape(key)).collect();
            let mut builder = RegexBuilder::new(&keys.join("|"));
            let regex = builder.case_insensitive(ignore_case).unicode(false).build()?;
            Ok(Finder::Pattern { regex, one_by_one: false })
        }
        keys => Ok(Finder::Many(automaton(keys, ignore_case, MatchKind::LeftmostFirst)?)),
    }
}

fn automaton(
    keys: &[String],
    ignore_case: bool,
    kind: MatchKind,
) -> Result<AhoCorasick, aho_corasick::BuildError> {
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(ignore_case).match_kind(kind);
    let is_small = keys.len() <= TABLE_KEYS_MOST && bytes_of(keys) <= FAST_BYTES_MOST;
    // The crate itself would choose the table by the number of keys alone.
    let kind = if is_small { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
    builder.kind(Some(kind)).build(keys)
}

/// The error of a regular expression. The crate shows the expression above it, on lines of their own.
fn sentence(error: &regex::Error) -> String {
    let told = error.to_string();
    let last = told.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// The finder of a pattern, with the memory that it holds, and that of the opening.
fn sized_pattern(
    args: &Arguments<'_>,
    text: &str,
    format: Format,
    ignore_case: bool,
) -> Result<(Finder, u64, Loan), SsdletError> {
    let [.., last] = REGEX_SIZES;
    for size in REGEX_SIZES {
        let loan = args.memory("regex", OPENING_PER_REGEX_BYTE * size as u64)?;
        match pattern(text, format, ignore_case, size) {
            Err(regex::Error::CompiledTooBig(_)) if size < last => {}
            made => {
                let finder = made.map_err(|error| args.fault("regex", sentence(&error)))?;
                return Ok((finder, HELD_PER_REGEX_BYTE * size as u64, loan));
            }
        }
    }
    unreachable!("the last size returns")
}

fn pattern(
    text: &str,
    format: Format,
    ignore_case: bool,
    size: usize,
) -> Result<Finder, regex::Error> {
    let mut builder = RegexBuilder::new(text);
    builder.case_insensitive(ignore_case).multi_line(true).size_limit(size);
    let one_by_one = match format {
        Format::Lines { delimiter: b'\n' } | Format::Csv { .. } => {
            builder.crlf(true);
            false
        }
        Format::Lines { delimiter } => {
            builder.line_terminator(delimiter);
            // Whether there is a word boundary depends on the neighbour.
            !delimiter.is_ascii() || delimiter.is_ascii_alphanumeric() || delimiter == b'_'
        }
        _ => true,
    };
    let one_by_one = one_by_one || knows_ends(text);
    builder.build().map(|regex| Finder::Pattern { regex, one_by_one })
}

/// Whether a pattern may depend on where the searched text begins and ends, or may change what begins and
/// ends a line. It is said too often rather than too seldom: that only costs speed.
fn knows_ends(pattern: &str) -> bool {
    let anchors = pattern.contains("\\A") || pattern.contains("\\z");
    let groups = pattern.split('(').skip(1).any(|group| {
        let Some(flags) = group.strip_prefix('?') else {
            // With flag x, space may come before the question mark.
            return group.starts_with(char::is_whitespace);
        };
        let flags = flags.split([':', ')', '<']).next().unwrap_or_default();
        flags.contains(['m', 'R', 'x']) || flags.contains(char::is_whitespace)
    });
    anchors || groups
}

impl Finder {
    fn bytes(&self) -> u64 {
        match self {
            Finder::One(finder) => finder.needle().len() as u64,
            Finder::Many(automaton) => automaton.memory_usage() as u64,
            Finder::Pattern { .. } => REGEX_BYTES,
        }
    }

    /// The first hit at or behind `from`: where it begins and ends.
    #[inline]
    fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        match self {
            Finder::One(finder) => {
                let at = from + finder.find(&bytes[from..])?;
                Some((at, at + finder.needle().len()))
            }
            Finder::Many(automaton) => {
                let hit = automaton.find(&bytes[from..])?;
                Some((from + hit.start(), from + hit.end()))
            }
            Finder::Pattern { regex, .. } => {
                regex.find_at(bytes, from).map(|hit| (hit.start(), hit.end()))
            }
        }
    }

    fn is_match(&self, text: &[u8]) -> bool {
        match self {
            Finder::Pattern { regex, .. } => regex.is_match(text),
            _ => self.find(text, 0).is_some(),
        }
    }
}

impl Ssdlet for Match {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn header(&self, row: &[u8]) -> Result<Vec<u8>, SsdletError> {
        Ok(row.to_vec())
    }

    fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        let finder = self.finder.clone();
        let one_by_one = matches!(finder, Finder::Pattern { one_by_one: true, .. });
        Ok(Box::new(Searcher {
            finder,
            borders: RecordBorders::new(self.description.input),
            invert: self.invert,
            counts: vec![RecordTally::default(); self.counted.len()],
            counted: Arc::clone(&self.counted),
            all: self.all.clone(),
            records: 0,
            one_by_one,
            spanning: 0,
            metered: 0,
        }))
    }
}

struct Searcher {
    finder: Finder,
    borders: RecordBorders,
    invert: bool,
    counted: Arc<[String]>,
    all: Option<AhoCorasick>,
    counts: Vec<RecordTally>,
    /// Records that matched so far.
    records: u64,
    one_by_one: bool,
    /// Hits so far that span records.
    spanning: u32,
    metered: u64,
}

/// Records that have a key.
#[derive(Debug, Clone, Copy, Default)]
struct RecordTally {
    records: i64,
    /// The last of them, counted from 1.
    last: u64,
}

impl Searcher {
    /// The next record that matches, at or behind the record that begins at `from`.
    #[inline]
    fn next(&mut self, bytes: &[u8], mut from: usize) -> Option<std::ops::Range<usize>> {
        while !self.one_by_one {
            let (start, end) = self.finder.find(bytes, from)?;
            if start == bytes.len() {
                // Nothing matched at the very end, behind the last record.
                return None;
            }
            let record = self.borders.around(bytes, from, start);
            let text_end = record.start + self.borders.text(&bytes[record.clone()]).len();
            if end <= text_end {
                return Some(record);
            }
            self.spanning += 1;
            self.one_by_one = self.spanning > SPANNING_MOST;
            if self.finder.is_match(&bytes[record.start..text_end]) {
                return Some(record);
            }
            from = record.end;
        }
        while from < bytes.len() {
            let record = from..self.borders.end(bytes, from);
            if self.finder.is_match(self.borders.text(&bytes[record.clone()])) {
                return Some(record);
            }
            from = record.end;
        }
        None
    }

    fn count(&mut self, text: &[u8]) {
        self.records += 1;
        let Some(all) = &self.all else {
            self.counts[0].records += 1;
            return;
        };
        for hit in all.find_overlapping_iter(text) {
            let counted = &mut self.counts[hit.pattern().as_usize()];
            counted.records += i64::from(counted.last != self.records);
            counted.last = self.records;
        }
    }
}

impl Worker for Searcher {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        let bytes = chunk.bytes;
        self.metered += bytes.len() as u64;
        let mut spans = Spans::of_bytes(bytes);
        let mut at = 0;
        while let Some(record) = self.next(bytes, at) {
            if !self.counts.is_empty() {
                let text = self.borders.text(&bytes[record.clone()]);
                self.count(text);
            } else if self.invert {
                spans.push(at..record.start, out);
            } else {
                spans.push(record.clone(), out);
            }
            at = record.end;
        }
        if self.invert {
            spans.push(at..bytes.len(), out);
        }
        spans.finish(out);
        Ok(())
    }

    fn close(&mut self, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        for (key, counted) in self.counted.iter().zip(&mut self.counts) {
            let records = std::mem::take(&mut counted.records);
            if records > 0 {
                out.add(key.as_bytes(), records);
            }
        }
        Ok(())
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::open;

    /// Any client of a server may send such keys, and they are compiled before their memory can be counted.
    #[test]
    fn long_keys_take_a_small_multiple_of_their_bytes() {
        let key = |n: usize| {
            let letters = (0..20_000).map(|at| b"abcdefgh"[(at * at + n * at) / 7 % 8] as char);
            format!("{n:03}{}", letters.collect::<String>())
        };
        for (keys, count) in [(2, false), (40, false), (40, true)] {
            let bytes = keys as u64 * 20_003;
            let keys: Vec<_> = (0..keys).map(key).collect();
            let ssdlet = open("match", &json!({ "keys": keys, "count": count })).expect("fine");
            let taken = ssdlet.description().worker_bytes;
            assert!(taken < 40 * bytes, "{taken} for {bytes}");
        }
        let long = json!({ "regex": "a?".repeat(40_000) });
        let told = open("match", &long).err().expect("too long").to_string();
        assert!(told.contains("80000 bytes; 65536 are the most"), "{told}");
    }
}

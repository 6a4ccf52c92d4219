//! The lines of a file of archives.

use std::cmp::Ordering;
use std::io::{self, BufRead};

use memchr::memmem;

use super::ArchiveError;

/// E-values below are equal: BLAST's own rule.
const EVALUE_MIN: f64 = 1e-180;
/// A longer line is no archive's: BLAST wraps text at 78 bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// All alignments of one query with one subject have fewer bytes.
const SUBJECT_BYTES_MAX: usize = 1 << 30;

const BEGIN: &[u8] = b"Blast4-archive ::=";
const RESULTS: &[u8] = b"  results {";
const ALIGNMENTS: &[u8] = b"    alignments {";
const OPEN: &[u8] = b"      {";
const CLOSE: [&[u8]; 2] = [b"      }", b"      },"];
const END: [&[u8]; 2] = [b"    }", b"    },"];
const LAST: &[u8] = b"}";
const QUERY: &[u8] = b"local str \"Query_";
const SUBJECT: &[u8] = b"tag id ";
/// Before an e-value: that of one alignment, and that of several that were linked.
const EVALUES: [&[u8]; 2] = [b"id str \"e_value\",", b"id str \"sum_e\","];
const SCORE: &[u8] = b"id str \"score\",";
/// Before the strands of query and subject, each in a line of its own.
const STRANDS: &[u8] = b"strands {";
/// Both on the same strand, and on different ones.
const SAME: u8 = 1;
const OPPOSITE: u8 = 2;

pub(super) const NO_ARCHIVE: &str = "is no archive of BLAST as text";
pub(super) const CUT: &str = "is cut short";
const NO_ALIGNMENT: &str = "ends an alignment without an e-value, a score, a query or a subject";
const LONG: &str = "is longer than any archive's";

/// The head of a batch.
#[derive(Debug, Default)]
pub(super) struct BatchHead {
    /// Its lines, up to the first alignment.
    pub(super) lines: Vec<u8>,
    /// The numbers of its queries.
    pub(super) queries: Vec<u64>,
}

/// All alignments of a query with a subject.
#[derive(Debug)]
pub(super) struct SubjectHits {
    pub(super) query: u64,
    /// The best of all alignments.
    evalue: f64,
    /// The score of the first alignment, which is the best.
    score: i64,
    /// The number in the whole database.
    number: u64,
    /// [`SAME`] and [`OPPOSITE`], as far as alignments with the best e-value are so.
    strands: u8,
    /// The alignments, each without the comma after it.
    pub(super) alignments: Vec<u8>,
}

impl SubjectHits {
    /// BLAST's order of the subjects of a query.
    pub(super) fn order(&self, other: &SubjectHits) -> Ordering {
        let floor = |evalue: f64| if evalue < EVALUE_MIN { 0.0 } else { evalue };
        floor(self.evalue)
            .total_cmp(&floor(other.evalue))
            .then(other.score.cmp(&self.score))
            .then(other.number.cmp(&self.number))
    }

    /// Whether only the numbers order these two, though their strands differ.
    pub(super) fn differs_by_strand(&self, other: &SubjectHits) -> bool {
        let numbered = SubjectHits { number: other.number, alignments: Vec::new(), ..*self };
        let is_exact = self.evalue < EVALUE_MIN;
        !is_exact && self.strands != other.strands && numbered.order(other) == Ordering::Equal
    }
}

/// How e-values are computed, as the end of an archive says.
#[derive(Debug, Default)]
pub(super) struct EvalueStatistics {
    last: Vec<u8>,
    gapped: Vec<u8>,
    ungapped: Vec<u8>,
}

impl EvalueStatistics {
    /// Takes a line of the end of an archive.
    pub(super) fn line(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.starts_with(b"lambda {") {
            self.last = line.to_vec();
        } else if line == b"gapped TRUE" {
            self.gapped = std::mem::take(&mut self.last);
        } else if line == b"gapped FALSE" {
            self.ungapped = std::mem::take(&mut self.last);
        }
    }

    /// Whether each strand of a query has parameters of its own: those of alignments without gaps are computed from its
    /// letters, and those of alignments with gaps are constants, or the same.
    pub(super) fn are_by_strand(&self) -> bool {
        // A search without gaps has none for alignments with gaps, or -1 in their place.
        let are_there = !self.gapped.is_empty() && !self.gapped.starts_with(b"lambda { -1,");
        !are_there || self.gapped == self.ungapped
    }
}

/// A file of archives, read from one end to the other.
pub(super) struct Archives<R> {
    pub(super) part: usize,
    /// The number of its first subject in the whole database.
    first: u64,
    reader: R,
    line: Vec<u8>,
    lines: u64,
    /// The line was read and not used yet.
    again: bool,
    /// An alignment that belongs to the next subject.
    waiting: Option<SubjectHits>,
}

impl<R: BufRead> Archives<R> {
    pub(super) fn new(part: usize, first: u64, reader: R) -> Self {
        Archives { part, first, reader, line: Vec::new(), lines: 0, again: false, waiting: None }
    }

    pub(super) fn unknown(&self, detail: &'static str) -> ArchiveError {
        ArchiveError::Unknown { part: self.part, line: self.lines, detail }
    }

    /// Reads the next line, without its end; false at the end of the file.
    fn next_line(&mut self) -> Result<bool, ArchiveError> {
        if std::mem::take(&mut self.again) {
            return Ok(true);
        }
        self.line.clear();
        let mut limited = io::Read::take(&mut self.reader, LINE_BYTES_MAX);
        limited.read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Ok(false);
        }
        self.lines += 1;
        if self.line.last() != Some(&b'\n') {
            let detail = if self.line.len() as u64 == LINE_BYTES_MAX { LONG } else { CUT };
            return Err(self.unknown(detail));
        }
        self.line.pop();
        Ok(true)
    }

    fn must_line(&mut self) -> Result<(), ArchiveError> {
        if self.next_line()? { Ok(()) } else { Err(self.unknown(CUT)) }
    }

    /// The head of the next batch; `None` at the end.
    pub(super) fn head(&mut self) -> Result<Option<BatchHead>, ArchiveError> {
        if !self.next_line()? {
            return Ok(None);
        }
        if !self.line.starts_with(BEGIN) {
            return Err(self.unknown(NO_ARCHIVE));
        }
        let mut head = BatchHead::default();
        let mut in_results = false;
        loop {
            head.lines.extend_from_slice(&self.line);
            head.lines.push(b'\n');
            if in_results {
                // Alignments come first in the results.
                return if self.line == ALIGNMENTS {
                    Ok(Some(head))
                } else {
                    Err(self.unknown(NO_ARCHIVE))
                };
            }
            in_results = self.line == RESULTS;
            if let Some(query) = query_of(&self.line) {
                head.queries.push(query);
            }
            self.must_line()?;
        }
    }

    /// The next subject of the batch; `None` after the last one.
    pub(super) fn subject(&mut self) -> Result<Option<SubjectHits>, ArchiveError> {
        let mut subject = match self.waiting.take() {
            Some(subject) => subject,
            None => match self.alignment()? {
                Some(subject) => subject,
                None => return Ok(None),
            },
        };
        while let Some(next) = self.alignment()? {
            if (next.query, next.number) != (subject.query, subject.number) {
                self.waiting = Some(next);
                break;
            }
            if subject.alignments.len() + next.alignments.len() > SUBJECT_BYTES_MAX {
                return Err(self.unknown(LONG));
            }
            match next.evalue.total_cmp(&subject.evalue) {
                Ordering::Less => (subject.evalue, subject.strands) = (next.evalue, next.strands),
                Ordering::Equal => subject.strands |= next.strands,
                Ordering::Greater => {}
            }
            subject.alignments.extend_from_slice(b",\n");
            subject.alignments.extend_from_slice(&next.alignments);
        }
        Ok(Some(subject))
    }

    /// The next alignment; `None` at the line that ends them, which stays.
    fn alignment(&mut self) -> Result<Option<SubjectHits>, ArchiveError> {
        self.must_line()?;
        if END.contains(&&*self.line) {
            self.again = true;
            return Ok(None);
        }
        if self.line != OPEN {
            return Err(self.unknown(NO_ARCHIVE));
        }
        let (mut evalue, mut score, mut query, mut number) = (None, None, None, None);
        let mut text = OPEN.to_vec();
        // What the line before announced.
        let (mut evalue_next, mut score_next) = (false, false);
        // Proteins have no strands.
        let (mut strands, mut strands_next) = (0, 0);
        let mut of_query = Vec::new();
        loop {
            self.must_line()?;
            text.push(b'\n');
            if CLOSE.contains(&&*self.line) {
                text.extend_from_slice(CLOSE[0]);
                break;
            }
            if text.len() > SUBJECT_BYTES_MAX {
                return Err(self.unknown(LONG));
            }
            if evalue_next {
                evalue = evalue.or(real_of(&self.line));
            } else if score_next {
                score = score.or(int_of(&self.line));
            }
            match strands_next {
                2 => of_query = without_comma(&self.line).to_vec(),
                1 if without_comma(&self.line) == of_query => strands = SAME,
                1 => strands = OPPOSITE,
                _ => {}
            }
            let strands_begin = strands == 0 && self.line.ends_with(STRANDS);
            strands_next = if strands_begin { 2 } else { strands_next.max(1) - 1 };
            evalue_next = EVALUES.iter().any(|mark| self.line.ends_with(mark));
            score_next = self.line.ends_with(SCORE);
            query = query.or_else(|| query_of(&self.line));
            let Some(at) = memmem::find(&self.line, SUBJECT) else {
                text.extend_from_slice(&self.line);
                continue;
            };
            let (before, rest) = self.line.split_at(at + SUBJECT.len());
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let found: Option<u64> = text_of(&rest[..digits]).parse().ok();
            let moved = found.and_then(|found| found.checked_add(self.first));
            let Some(moved) = moved else { return Err(self.unknown(NO_ALIGNMENT)) };
            number = number.or(Some(moved));
            text.extend_from_slice(before);
            text.extend_from_slice(moved.to_string().as_bytes());
            text.extend_from_slice(&rest[digits..]);
        }
        match (evalue, score, query, number) {
            (Some(evalue), Some(score), Some(query), Some(number)) => {
                Ok(Some(SubjectHits { query, evalue, score, number, strands, alignments: text }))
            }
            _ => Err(self.unknown(NO_ALIGNMENT)),
        }
    }

    /// Gives the lines after the alignments to `take`, up to the next batch.
    pub(super) fn tail(
        &mut self,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), ArchiveError> {
        self.must_line()?;
        loop {
            take(&self.line)?;
            let is_whole = self.line == LAST;
            let goes_on = self.next_line()?;
            if goes_on && !self.line.starts_with(BEGIN) {
                continue;
            }
            self.again = goes_on;
            return if is_whole { Ok(()) } else { Err(self.unknown(CUT)) };
        }
    }
}

/// The number of the query in a line `local str "Query_7"`.
fn query_of(line: &[u8]) -> Option<u64> {
    let rest = line.trim_ascii_start().strip_prefix(QUERY)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends = matches!(&rest[digits..], b"\"" | b"\",");
    if ends { text_of(&rest[..digits]).parse().ok() } else { None }
}

fn without_comma(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    line.strip_suffix(b",").unwrap_or(line)
}

fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// `value real { 123, 10, -4 }`.
fn real_of(line: &[u8]) -> Option<f64> {
    let (_, inner) = text_of(line).split_once("real {")?;
    let (inner, _) = inner.split_once('}')?;
    let mut parts = inner.split(',').map(str::trim);
    let (mantissa, base, exponent) = (parts.next()?, parts.next()?, parts.next()?);
    if base != "10" || parts.next().is_some() {
        return None;
    }
    let mantissa: i64 = mantissa.parse().ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    format!("{mantissa}e{exponent}").parse().ok()
}

/// `value int 123`.
fn int_of(line: &[u8]) -> Option<i64> {
    let (_, number) = text_of(line).split_once("value int ")?;
    number.trim_end_matches(',').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read() {
        assert_eq!(
            real_of(b"  value real { 375085494165087, 10, -46 }"),
            Some(3.75085494165087e-32)
        );
        assert_eq!(real_of(b"  value real { 0, 10, 0 }"), Some(0.0));
        assert_eq!(real_of(b"  value real { 1, 2, 0 }"), None);
        assert_eq!(int_of(b"  value int 63"), Some(63));
        assert_eq!(int_of(b"  value int -6,"), Some(-6));
        assert_eq!(query_of(b"   local str \"Query_12\","), Some(12));
        assert_eq!(query_of(b"   local str \"Query_12\""), Some(12));
        // A part of a title.
        assert_eq!(query_of(b"   title \"x local str \"\"Query_12\""), None);
        assert_eq!(query_of(b"local str \"Query_12 more\""), None);
    }

    #[test]
    fn strands_have_parameters_of_their_own_without_gaps() {
        let are_by_strand = |ungapped: &str, gapped: Option<&str>| {
            let mut statistics = EvalueStatistics::default();
            for (lambda, which) in [(Some(ungapped), "FALSE"), (gapped, "TRUE")] {
                if let Some(lambda) = lambda {
                    statistics.line(format!("        lambda {{ {lambda}, 10, -15 }},").as_bytes());
                    statistics.line(format!("        gapped {which}").as_bytes());
                }
            }
            statistics.are_by_strand()
        };
        let (computed, constant) = ("633731443099174", "625000000000000");
        assert!(!are_by_strand(computed, Some(constant)));
        // Gaps that cost too much to occur; `-ungapped`, which BLAST writes in two ways.
        assert!(are_by_strand(computed, Some(computed)));
        assert!(are_by_strand(computed, None));
        assert!(are_by_strand(computed, Some("-1")));
    }
}

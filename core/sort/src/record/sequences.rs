//! Where records of sequences begin: FASTA and FASTQ, in bytes that come in pieces of any size.
//!
//! ```text
//!   >id description         @id description        Begin  ──'@'──► Header ──► Sequence ──'+'──► Plus
//!   ACGT                    ACGT                     ▲                         │  ▲ line            │
//!   ACG                     +                        │ first byte, or          └──┘                 ▼
//!                           II@I                     │ after a record ◄── as many letters ── Quality
//! ```
//!
//! A FASTA record begins at a line that begins with `>`, and holds all lines up to the next one. A FASTQ
//! record begins at a line with `@`. Its sequence is all lines up to one that begins with `+`; then come as
//! many letters of quality as the sequence has, on any number of lines. So a line of quality may begin
//! with `@` or `+`. Empty lines behind a record belong to it; those
//! before the first record of an input belong to none ([`leading_blanks`]).  A carriage return before a newline is not a
//! letter.
//!
//! The end of a record is known only when the next one begins, or the input ends: see
//! [`Framing::first`](super::Framing::first).

use std::ops::ControlFlow;

use memchr::memchr;

/// The two formats of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceKind {
    /// Headers with `>`, then sequences.
    Fasta,
    /// Headers with `@`, then sequences and qualities.
    Fastq,
}

/// Bytes that no record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceFault {
    /// Where the line begins that is out of place.
    pub at: u64,
    /// The fault.
    pub detail: &'static str,
}

/// The state of the last record when an input ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceEnd {
    /// It ends with its newline, or the input is empty.
    Whole,
    /// It lacks nothing but the newline of its last line.
    NoNewline,
    /// It is cut short; the text says where.
    Cut(&'static str),
}

/// Finds where records begin in an input that comes in pieces.
///
/// ```
/// use merganser_sort::record::{SequenceBorders, SequenceEnd, SequenceKind};
///
/// let mut borders = SequenceBorders::new(SequenceKind::Fastq);
/// let mut starts = Vec::new();
/// borders.feed(b"@a\nAC\n+\n@I\n@", &mut starts)?;
/// borders.feed(b"b\nG\n+\nI", &mut starts)?;
/// assert_eq!(starts, [0, 11]);
/// assert_eq!(borders.finish(), SequenceEnd::NoNewline);
/// # Ok::<(), merganser_sort::record::SequenceFault>(())
/// ```
#[derive(Debug, Clone)]
pub struct SequenceBorders {
    kind: SequenceKind,
    part: RecordPart,
    /// Bytes before the piece that comes next.
    before: u64,
    /// Where the current line begins.
    line_at: u64,
    /// Bytes of the current line so far, and whether the last of them is a carriage return.
    line_len: u64,
    carriage_return: bool,
}

/// The part of a record that the current line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordPart {
    /// Nothing was read.
    Begin,
    /// Any line of FASTA behind a record's begin.
    Lines,
    Header,
    /// The letters so far.
    Sequence(u64),
    /// The letters of the sequence before it.
    Plus(u64),
    /// The letters that are still to come, at least one.
    Quality(u64),
    /// The record is complete.
    After,
}

const NO_MARK: &str = "a FASTA record begins with '>', and this text is before the first one";
const NO_AT: &str = "a FASTQ record begins with '@', and this line does not";
const NO_PLUS: &str = "a line with '@' where the sequence or '+' of the record before is expected";
const LONG_QUALITY: &str = "the quality has more letters than the sequence";

impl SequenceBorders {
    /// For an input that begins here.
    #[must_use]
    pub fn new(kind: SequenceKind) -> Self {
        SequenceBorders {
            kind,
            part: RecordPart::Begin,
            before: 0,
            line_at: 0,
            line_len: 0,
            carriage_return: false,
        }
    }

    /// Takes the next bytes, and appends the places in the input at which records begin in them.
    ///
    /// # Errors
    /// At bytes that no record has; what follows them means nothing.
    pub fn feed(&mut self, piece: &[u8], starts: &mut Vec<u64>) -> Result<(), SequenceFault> {
        let blanks = if self.part == RecordPart::Begin { leading_blanks(piece) } else { 0 };
        let piece = &piece[blanks..];
        self.before += blanks as u64;
        let before = self.before;
        let all = self.walk(piece, |at| {
            starts.push(before + at as u64);
            ControlFlow::Continue(())
        })?;
        debug_assert!(all.is_continue());
        self.before += piece.len() as u64;
        Ok(())
    }

    /// How the input ends, after all of it.
    #[must_use]
    pub fn finish(self) -> SequenceEnd {
        let newline = |none| if none { SequenceEnd::Whole } else { SequenceEnd::NoNewline };
        let letters = self.line_len - u64::from(self.carriage_return);
        match self.part {
            RecordPart::Begin => SequenceEnd::Whole,
            RecordPart::Lines | RecordPart::After => newline(self.line_len == 0),
            RecordPart::Header | RecordPart::Sequence(_) => {
                SequenceEnd::Cut("its last record is cut before its '+' line")
            }
            RecordPart::Plus(0) => SequenceEnd::NoNewline,
            RecordPart::Quality(left) if left == letters => SequenceEnd::NoNewline,
            RecordPart::Plus(_) | RecordPart::Quality(_) => {
                SequenceEnd::Cut("its last record has fewer letters of quality than of sequence")
            }
        }
    }

    /// Calls `start` with the place in `bytes` of each record that begins there, until it breaks.
    fn walk(
        &mut self,
        bytes: &[u8],
        start: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SequenceFault> {
        match self.kind {
            SequenceKind::Fasta => self.walk_fasta(bytes, start),
            SequenceKind::Fastq => self.walk_fastq(bytes, start),
        }
    }

    fn walk_fasta(
        &mut self,
        bytes: &[u8],
        mut start: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SequenceFault> {
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
            return Ok(ControlFlow::Continue(()));
        };
        if self.part == RecordPart::Begin && *first != b'>' {
            return Err(SequenceFault { at: self.before, detail: NO_MARK });
        }
        self.part = RecordPart::Lines;
        let mut mark = Some(0).filter(|_| self.line_len == 0 && *first == b'>');
        mark = mark.or_else(|| next_mark(bytes, 1));
        while let Some(at) = mark {
            if start(at).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            mark = next_mark(bytes, at + 1);
        }
        // All that matters of a line is whether it has begun.
        self.line_len = u64::from(*last != b'\n');
        Ok(ControlFlow::Continue(()))
    }

    fn walk_fastq(
        &mut self,
        bytes: &[u8],
        mut start: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SequenceFault> {
        let mut at = 0;
        while at < bytes.len() {
            if self.line_len == 0 {
                self.line_at = self.before + at as u64;
                if self.begin_line(bytes[at])? && start(at).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let rest = &bytes[at..];
            let len = memchr(b'\n', rest).unwrap_or(rest.len());
            if len > 0 {
                self.line_len += len as u64;
                self.carriage_return = rest[len - 1] == b'\r';
            }
            let letters = self.line_len - u64::from(self.carriage_return);
            let ends = len < rest.len();
            self.take_letters(letters, ends)?;
            if ends {
                (self.line_len, self.carriage_return) = (0, false);
            }
            at += len + usize::from(ends);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Looks at the first byte of a line; returns whether a record begins with it.
    fn begin_line(&mut self, first: u8) -> Result<bool, SequenceFault> {
        let fault = |detail| Err(SequenceFault { at: self.line_at, detail });
        match (self.part, first) {
            (RecordPart::Begin | RecordPart::After, b'@') => {
                self.part = RecordPart::Header;
                return Ok(true);
            }
            (RecordPart::After, b'\n' | b'\r') => {}
            (RecordPart::Begin | RecordPart::After, _) => return fault(NO_AT),
            (RecordPart::Sequence(_), b'@') => return fault(NO_PLUS),
            (RecordPart::Sequence(letters), b'+') => self.part = RecordPart::Plus(letters),
            _ => {}
        }
        Ok(false)
    }

    /// Takes the letters of a line that has `letters` so far and perhaps ends.
    fn take_letters(&mut self, letters: u64, ends: bool) -> Result<(), SequenceFault> {
        let fault = |detail| Err(SequenceFault { at: self.line_at, detail });
        match self.part {
            RecordPart::Quality(left) if letters > left => return fault(LONG_QUALITY),
            RecordPart::After if letters > 0 => return fault(NO_AT),
            _ if !ends => {}
            RecordPart::Header => self.part = RecordPart::Sequence(0),
            RecordPart::Sequence(before) => self.part = RecordPart::Sequence(before + letters),
            RecordPart::Plus(0) => self.part = RecordPart::After,
            RecordPart::Plus(wanted) => self.part = RecordPart::Quality(wanted),
            RecordPart::Quality(left) if left == letters => self.part = RecordPart::After,
            RecordPart::Quality(left) => self.part = RecordPart::Quality(left - letters),
            RecordPart::Begin | RecordPart::Lines | RecordPart::After => {}
        }
        Ok(())
    }
}

/// The bytes of blank lines at the front of `bytes`.
pub(super) fn leading_blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
}

/// The first `>` at the beginning of a line, at `from` or behind it; `from` is at least 1.
#[inline]
pub(super) fn next_mark(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let mark = at + memchr(b'>', bytes.get(at..)?)?;
        if bytes[mark - 1] == b'\n' {
            return Some(mark);
        }
        at = mark + 1;
    }
}

/// Length of the record of FASTQ at `bytes[0]`. Where `whole`, they end with a record; else it is the
/// next record's begin that ends this one.
pub(super) fn fastq_len(bytes: &[u8], whole: bool) -> Option<usize> {
    let mut next = None;
    let mut borders = SequenceBorders::new(SequenceKind::Fastq);
    let walked = borders.walk(bytes, |at| {
        next = (at > 0).then_some(at);
        if at > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match walked.ok()? {
        ControlFlow::Break(()) => next,
        ControlFlow::Continue(()) => {
            let ends = whole && !bytes.is_empty() && borders.finish() == SequenceEnd::Whole;
            ends.then_some(bytes.len())
        }
    }
}

/// The fault of `bytes`, which begin where a record should.
pub(super) fn fault(kind: SequenceKind, bytes: &[u8]) -> Option<SequenceFault> {
    // A record of FASTA can't be wrong once it has begun.
    let seen = if kind == SequenceKind::Fasta { &bytes[..bytes.len().min(1)] } else { bytes };
    SequenceBorders::new(kind).walk(seen, |_| ControlFlow::Continue(())).err()
}

/// The end of `bytes`, which begin at a record and end with the input.
pub(super) fn end(kind: SequenceKind, bytes: &[u8]) -> SequenceEnd {
    let mut borders = SequenceBorders::new(kind);
    match borders.walk(bytes, |_| ControlFlow::Continue(())) {
        Ok(_) => borders.finish(),
        Err(fault) => SequenceEnd::Cut(fault.detail),
    }
}

/// Where a record seems to begin in `bytes`, which are from the middle of an input. For FASTA, and for
/// FASTQ of four lines a record, it surely does.
pub(crate) fn probable_start(kind: SequenceKind, bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(b'\n', &bytes[at..])? + 1;
        let line = &bytes[at..];
        match kind {
            SequenceKind::Fasta if line.first() == Some(&b'>') => return Some(at),
            // A line of quality may begin with `@`, but then the line after the next is a sequence.
            SequenceKind::Fastq if line.first() == Some(&b'@') => {
                let sequence = memchr(b'\n', line)? + 1;
                let plus = sequence + memchr(b'\n', &line[sequence..])? + 1;
                if line.get(plus) == Some(&b'+') {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
}

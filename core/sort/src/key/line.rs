//! Keys of lines: GNU sort's `-k POS1[,POS2]`, where POS is `F[.C][OPTIONS]`.
//!
//! A line is a sequence of fields. With a separator (`-t`), field *n + 1* begins behind the *n*-th
//! separator. Without one, a field is blanks and the non-blanks that follow, so it begins at the
//! end of the field before and its leading blanks belong to it unless `b` is given.
//!
//! ```text
//! without -t    |one|  two| three|        with -t,    |one|,|  two|,||,|three|
//! ```
//! A key that begins behind its end is empty; so is one behind the end of the line.

use memchr::memchr;

use super::element::Element;
use super::numeric::{is_blank, skip_blanks};
use super::options::{Blanks, Options};

/// A parsed `-k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineKey {
    pub(super) range: Range,
    pub(super) options: Options,
}

/// Where a key begins and ends, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    start_field: usize,
    /// Bytes left out at the start of the field.
    start_byte: usize,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With the line.
    Line,
    /// With this field.
    Field(usize),
    /// After `bytes` bytes of this field.
    Byte { field: usize, bytes: usize },
}

impl Range {
    pub(super) const LINE: Range = Range { start_field: 0, start_byte: 0, end: End::Line };

    /// The field in which it ends, unless it ends with the line.
    fn end_field(self) -> Option<usize> {
        match self.end {
            End::Line => None,
            End::Field(field) | End::Byte { field, .. } => Some(field),
        }
    }

    /// Whether it ends before the field in which it begins.
    pub(super) fn is_reversed(self) -> bool {
        self.end_field().is_some_and(|field| field < self.start_field)
    }

    /// Whether it may hold more than one field.
    pub(super) fn spans_fields(self) -> bool {
        self.end_field().is_none_or(|field| field > self.start_field)
    }

    /// Whether bytes at the start of its first field are left out.
    pub(super) fn begins_inside(self) -> bool {
        self.start_byte > 0
    }

    /// Whether it ends after a number of bytes.
    pub(super) fn ends_inside(self) -> bool {
        matches!(self.end, End::Byte { .. })
    }

    /// Whether it ends after a number of bytes of the line.
    pub(super) fn is_of_line_start(self) -> bool {
        matches!(self.end, End::Byte { field: 0, .. })
    }
}

impl LineKey {
    /// Parses a key; the error is the reason alone.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut options = Options::default();
        let mut rest = text.as_bytes();
        let start_field = number(&mut rest).ok_or("it must begin with a field number")?;
        let start_field = start_field.checked_sub(1).ok_or("fields are counted from 1")?;
        let mut start_byte = 0;
        if let [b'.', behind @ ..] = rest {
            rest = behind;
            let byte = number(&mut rest).ok_or("a number must follow the '.'")?;
            start_byte = byte.checked_sub(1).ok_or("characters are counted from 1")?;
        }
        letters(&mut rest, &mut options, Blanks::Start);
        let mut end = End::Line;
        if let [b',', behind @ ..] = rest {
            rest = behind;
            let field = number(&mut rest).ok_or("a field number must follow the ','")?;
            let field = field.checked_sub(1).ok_or("fields are counted from 1")?;
            end = End::Field(field);
            if let [b'.', behind @ ..] = rest {
                rest = behind;
                let bytes = number(&mut rest).ok_or("a number must follow the '.'")?;
                if bytes > 0 {
                    end = End::Byte { field, bytes };
                }
            }
            letters(&mut rest, &mut options, Blanks::End);
        }
        if !rest.is_empty() {
            return Err("positions are F[.C] and options are letters of bdfghiMnRrV");
        }
        Ok(LineKey { range: Range { start_field, start_byte, end }, options })
    }
}

/// Takes the number at the front of `rest`; one too large for any line saturates. Like GNU sort's,
/// it may have white space and a plus sign before it.
fn number(rest: &mut &[u8]) -> Option<usize> {
    let unsigned = rest.trim_ascii_start();
    let unsigned = unsigned.strip_prefix(b"+").unwrap_or(unsigned);
    let (digits, behind) = unsigned.split_at(super::numeric::digits(unsigned));
    *rest = behind;
    let step = |number: usize, digit: &u8| {
        number.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
    };
    (!digits.is_empty()).then(|| digits.iter().fold(0, step))
}

fn letters(rest: &mut &[u8], options: &mut Options, blanks: Blanks) {
    while let [letter, behind @ ..] = *rest {
        if !options.set(*letter, blanks) {
            return;
        }
        *rest = behind;
    }
}

/// All keys of a line.
#[derive(Debug, Clone)]
pub(super) struct LineKeys {
    pub(super) separator: Option<u8>,
    pub(super) keys: Vec<CompiledKey>,
}

#[derive(Debug, Clone)]
pub(super) struct CompiledKey {
    pub(super) range: Range,
    pub(super) skip_blanks_start: bool,
    pub(super) skip_blanks_end: bool,
    pub(super) element: Element,
}

impl CompiledKey {
    /// Whether the key is all of the line, as it is.
    pub(super) fn is_line(&self) -> bool {
        self.range == Range::LINE
            && !self.skip_blanks_start
            && self.element.is_all_text()
            && !self.element.fold
    }
}

impl LineKeys {
    /// Appends the keys of `line`, which has no terminator.
    #[inline]
    pub(super) fn encode(&self, line: &[u8], out: &mut Vec<u8>) {
        match self.separator {
            Some(separator) => self.encode_with(&mut Fields::new(line, Separated(separator)), out),
            None => self.encode_with(&mut Fields::new(line, Blank), out),
        }
    }

    /// Where the keys begin and end in `line`, which has no terminator. A key may end before it
    /// begins.
    pub(super) fn ends(&self, line: &[u8]) -> Vec<(usize, usize)> {
        match self.separator {
            Some(separator) => self.ends_with(&mut Fields::new(line, Separated(separator))),
            None => self.ends_with(&mut Fields::new(line, Blank)),
        }
    }

    fn ends_with<S: Splitter>(&self, fields: &mut Fields<'_, S>) -> Vec<(usize, usize)> {
        self.keys.iter().map(|key| fields.ends(key)).collect()
    }

    #[inline]
    fn encode_with<S: Splitter>(&self, fields: &mut Fields<'_, S>, out: &mut Vec<u8>) {
        for key in &self.keys {
            key.element.encode(fields.key(key), out);
        }
    }
}

/// Where fields end.
trait Splitter: Copy {
    /// End of the field that begins at `start`.
    fn end(self, line: &[u8], start: usize) -> usize;
    /// Start of the field behind the one that ends at `end`.
    fn next(self, line: &[u8], end: usize) -> usize;
}

#[derive(Clone, Copy)]
struct Separated(u8);

impl Splitter for Separated {
    #[inline]
    fn end(self, line: &[u8], start: usize) -> usize {
        memchr(self.0, &line[start..]).map_or(line.len(), |at| start + at)
    }

    #[inline]
    fn next(self, line: &[u8], end: usize) -> usize {
        (end + 1).min(line.len())
    }
}

#[derive(Clone, Copy)]
struct Blank;

impl Splitter for Blank {
    #[inline]
    fn end(self, line: &[u8], start: usize) -> usize {
        let field = &line[start..];
        let blanks = field.iter().take_while(|&&byte| is_blank(byte)).count();
        let rest = field[blanks..].iter().take_while(|&&byte| !is_blank(byte)).count();
        start + blanks + rest
    }

    #[inline]
    fn next(self, _: &[u8], end: usize) -> usize {
        end
    }
}

/// The fields of one line, remembering the last one sought: keys mostly ask for later and later
/// fields.
struct Fields<'a, S> {
    line: &'a [u8],
    splitter: S,
    field: usize,
    start: usize,
}

impl<'a, S: Splitter> Fields<'a, S> {
    #[inline]
    fn new(line: &'a [u8], splitter: S) -> Self {
        Fields { line, splitter, field: 0, start: 0 }
    }

    /// Start of `field`, the end of the line when there is no such field.
    #[inline]
    fn start_of(&mut self, field: usize) -> usize {
        if field < self.field {
            (self.field, self.start) = (0, 0);
        }
        while self.field < field && self.start < self.line.len() {
            let end = self.splitter.end(self.line, self.start);
            self.start = self.splitter.next(self.line, end);
            self.field += 1;
        }
        // Fields behind the end of the line all begin there.
        self.field = field;
        self.start
    }

    #[inline]
    fn key(&mut self, key: &CompiledKey) -> &'a [u8] {
        let (start, end) = self.ends(key);
        &self.line[start..end.max(start)]
    }

    #[inline]
    fn ends(&mut self, key: &CompiledKey) -> (usize, usize) {
        let line = self.line;
        let mut start = self.start_of(key.range.start_field);
        if key.skip_blanks_start {
            start = line.len() - skip_blanks(&line[start..]).len();
        }
        start = start.saturating_add(key.range.start_byte).min(line.len());
        let end = match key.range.end {
            End::Line => line.len(),
            End::Field(field) => {
                let start = self.start_of(field);
                self.splitter.end(line, start)
            }
            End::Byte { field, bytes } => {
                let mut start = self.start_of(field);
                if key.skip_blanks_end {
                    start = line.len() - skip_blanks(&line[start..]).len();
                }
                start.saturating_add(bytes).min(line.len())
            }
        };
        (start, end)
    }
}

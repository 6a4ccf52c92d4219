//! An order as data: it can be stored, shown and compiled to an [`Order`] again.

use serde::{Deserialize, Serialize};

use super::column::{ColumnKey, ColumnKeys, has_option, header_of};
use super::error::{KeyError, Records, Setting};
use super::field::FieldKey;
use super::line::{CompiledKey, LineKey, LineKeys, Range};
use super::options::{Blanks, Options};
use super::orderings::{LETTERS, LETTERS_OF_TEXTS};
use super::sequence::{SequenceKey, SequenceKeys, SequencePart};
use super::{DirectKey, Keys, Order, Place};
use crate::record::{CsvFraming, FIXED_BYTES_MOST, Format, KeySyntax, SequenceKind};
use crate::text::JournalText;

/// The order of records as it was asked for.
///
/// ```
/// use merganser_sort::key::OrderSpec;
/// use merganser_sort::record::Format;
///
/// let lines = OrderSpec::new(Format::Lines { delimiter: b'\n' });
/// let spec = OrderSpec { separator: Some(b','), ..lines.key("2,2n") };
/// let order = spec.compile(None)?;
/// assert!(order.compare(b"b,9\n", b"a,10\n").is_lt());
/// # Ok::<(), merganser_sort::key::KeyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderSpec {
    /// The records to order.
    pub format: Format,
    /// The keys, most important first. Lines take GNU sort's (`2,2n`), CSV `COLUMN[:TYPE][:r]`, and
    /// fixed-length records `OFFSET:LENGTH[:TYPE][:r]`. Sequences take `id`, `header`, `length` and
    /// `sequence`, the first two with `[:TYPE]` as CSV has, all with `[:r]`. Without keys, the order is
    /// that of the whole record, quotes and headers included, or of the key of [`Format::Keyed`].
    #[serde(default)]
    pub keys: Vec<String>,
    /// GNU sort's ordering letters for keys that have no letters of their own. Lines take
    /// `bdfghiMnRrV`, CSV and sequences with keys all of these except `b`, other records only `r`.
    #[serde(default)]
    pub options: String,
    /// The separator between the fields of lines; without it, blanks separate them.
    #[serde(default)]
    pub separator: Option<u8>,
    /// Whether lines with equal keys stay in input order (`-s`). Other formats always do.
    #[serde(default)]
    pub stable: bool,
    /// Whether of records with equal keys only the first is kept (`-u`).
    #[serde(default)]
    pub unique: bool,
    /// The seed of the permutation of `R`; see [`salt_from`](super::salt_from).
    #[serde(default)]
    pub salt: u64,
    /// How the lines of a header begin. The lines at the beginning of an input that begin with one of these are
    /// no records; they stay first. Only lines have such headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub header_prefixes: Vec<JournalText>,
}

/// The field separator of a value: one byte, `\0` for NUL, or `\t` for a tab.
///
/// # Errors
/// When it is anything else.
pub fn parse_separator(value: &[u8]) -> Result<u8, KeyError> {
    match value {
        [byte] => Ok(*byte),
        b"\\0" => Ok(0),
        b"\\t" => Ok(b'\t'),
        _ => Err(KeyError::Value {
            of: Setting::Separator,
            value: String::from_utf8_lossy(value).into_owned(),
            reason: "a separator is one byte, such as ; or \\t".to_owned(),
        }),
    }
}

impl Default for OrderSpec {
    /// Lines in the order of their bytes.
    fn default() -> Self {
        OrderSpec::new(Format::Lines { delimiter: b'\n' })
    }
}

impl OrderSpec {
    /// The order without any keys or options.
    #[must_use]
    pub fn new(format: Format) -> Self {
        OrderSpec {
            format,
            keys: Vec::new(),
            options: String::new(),
            separator: None,
            stable: false,
            unique: false,
            salt: 0,
            header_prefixes: Vec::new(),
        }
    }

    /// The same order with one more key, behind those that it has.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Makes it an order. `header` is what comes before the rows of CSV inputs, by whose names columns are
    /// found if the format has a header row.
    ///
    /// # Errors
    /// When a key or an option means nothing, or nothing in records of this format.
    pub fn compile(&self, header: Option<&[u8]>) -> Result<Order, KeyError> {
        self.check_format()?;
        let global = self.global_options()?;
        if self.separator.is_some() && self.format.key_syntax() != KeySyntax::Lines {
            return Err(KeyError::UnfitSeparator { records: self.records() });
        }
        let keys = match self.format.key_syntax() {
            KeySyntax::Lines => self.compile_lines(global)?,
            KeySyntax::Columns => {
                let framing = self.format.csv().expect("only csv has columns");
                self.compile_columns(global, framing, header)?
            }
            KeySyntax::Fields { bytes } => self.compile_fields(global, bytes)?,
            KeySyntax::Prefixed => self.compile_keyed(global)?,
            KeySyntax::Sequences(kind) => self.compile_sequences(global, kind)?,
        };
        let has_last_resort = matches!(keys, Keys::Lines(_)) && !self.stable && !self.unique;
        Ok(Order {
            spec: self.clone(),
            keys,
            last_resort: has_last_resort.then_some(global.reverse),
        })
    }

    /// Whether a key is in random order, so that the salt counts. Before the header of csv rows is known, a key such
    /// as `a:R` may be a column of that name, and is taken for a random one.
    #[must_use]
    pub fn is_random(&self) -> bool {
        let asks = |key: &str| match self.format.key_syntax() {
            KeySyntax::Columns => has_option(key, 'R'),
            _ => key.contains('R'),
        };
        self.options.contains('R') || self.keys.iter().any(|key| asks(key))
    }

    /// Whether both are the same order. A salt that no key uses does not count: programs before gave one to orders
    /// with a key such as `2r`.
    #[must_use]
    pub fn is_same_order(&self, other: &Self) -> bool {
        let used = |order: &Self| if order.is_random() { order.salt } else { 0 };
        *self == OrderSpec { salt: self.salt, ..other.clone() } && used(self) == used(other)
    }

    /// Whether there can be records of this format. It is asked before any is looked for: what cuts records would
    /// divide by a length of 0, or never get on. The command line refuses it, too, but a manifest is written by anyone
    /// (audit finding F17).
    pub(crate) fn check_format(&self) -> Result<(), KeyError> {
        self.check_header_prefixes()?;
        let Format::Fixed { bytes } = self.format else { return Ok(()) };
        let fault = |reason| Err(value(Setting::Format, &format!("fixed:{bytes}"), reason));
        match bytes {
            0 => fault("a record has at least one byte"),
            1..=FIXED_BYTES_MOST => Ok(()),
            _ => fault("a fixed record has at most 1 GiB"),
        }
    }

    fn check_header_prefixes(&self) -> Result<(), KeyError> {
        let fault = |prefix: &JournalText, reason: &str| {
            Err(value(Setting::HeaderPrefix, &String::from_utf8_lossy(&prefix.0), reason))
        };
        for prefix in &self.header_prefixes {
            match self.format {
                Format::Lines { .. } if prefix.0.is_empty() => {
                    return fault(prefix, "every line begins with it; give at least one byte");
                }
                Format::Lines { delimiter } if prefix.0.contains(&delimiter) => {
                    return fault(prefix, "a line ends in it, so no line begins with it");
                }
                Format::Lines { .. } => {}
                _ => return fault(prefix, "only lines have such headers"),
            }
        }
        Ok(())
    }

    fn compile_lines(&self, global: Options) -> Result<Keys, KeyError> {
        let lines = self.line_keys()?;
        // Lines that are equal in this key are equal, so nothing behind it matters.
        Ok(match lines.keys.first() {
            None => whole_record(Place::Line, global),
            Some(key) if key.is_line() => {
                Keys::Direct(DirectKey { place: Place::Line, descending: key.element.descending })
            }
            Some(_) => Keys::Lines(lines),
        })
    }

    /// The keys of lines, as they were asked for: none for a whole line that is compared as it is.
    pub(super) fn line_keys(&self) -> Result<LineKeys, KeyError> {
        let global = self.global_options()?;
        if self.format.key_syntax() != KeySyntax::Lines {
            return Err(KeyError::UnfitLineKeys { records: self.records() });
        }
        let mut keys = Vec::new();
        for text in &self.keys {
            let key =
                LineKey::parse(text).map_err(|reason| value(Setting::LineKey, text, reason))?;
            keys.push(key);
        }
        if keys.is_empty() && !global.is_plain() {
            keys.push(LineKey { range: Range::LINE, options: global });
        }
        let mut compiled = Vec::new();
        for LineKey { range, options } in keys {
            let options = self.effective(options, global)?;
            compiled.push(CompiledKey {
                range,
                skip_blanks_start: options.skip_blanks_start,
                skip_blanks_end: options.skip_blanks_end,
                element: options.element(self.salt),
            });
        }
        Ok(LineKeys { separator: self.separator, keys: compiled })
    }

    fn compile_columns(
        &self,
        global: Options,
        framing: CsvFraming,
        preamble: Option<&[u8]>,
    ) -> Result<Keys, KeyError> {
        let separator = framing.separator;
        if matches!(separator, b'"' | b'\n' | b'\r') {
            let separator = separator.escape_ascii().to_string();
            let reason = "quotes and line ends cannot separate the fields of csv rows";
            return Err(value(Setting::Separator, &separator, reason));
        }
        if self.keys.is_empty() {
            return Ok(whole_record(Place::Line, global));
        }
        let header = header_of(self.format, preamble);
        let mut keys = Vec::new();
        for text in &self.keys {
            let key = ColumnKey::of_text(text, self.format, header.as_ref())
                .map_err(|reason| value(Setting::Key, text, reason))?;
            keys.push((key.column, self.effective(key.options, global)?.element(self.salt)));
        }
        Ok(Keys::Columns(ColumnKeys::new(framing, keys, header.is_some())))
    }

    fn compile_fields(&self, global: Options, bytes: usize) -> Result<Keys, KeyError> {
        let mut keys = Vec::new();
        for text in &self.keys {
            let mut key =
                FieldKey::parse(text).map_err(|reason| value(Setting::Key, text, reason))?;
            if key.end().is_none_or(|end| end > bytes) {
                let reason = format!("the key ends outside the record, which has {bytes} bytes");
                return Err(value(Setting::Key, text, reason));
            }
            key.descending |= global.reverse;
            keys.push(key);
        }
        Ok(match keys[..] {
            [] => whole_record(Place::Range { offset: 0, len: bytes }, global),
            [FieldKey { offset, len, binary: None, descending }] => {
                Keys::Direct(DirectKey { place: Place::Range { offset, len }, descending })
            }
            _ => Keys::Fields(keys),
        })
    }

    fn compile_keyed(&self, mut global: Options) -> Result<Keys, KeyError> {
        for text in &self.keys {
            if text != ":r" {
                let reason = "a length-prefixed record has one key, and only :r can be given";
                return Err(value(Setting::Key, text, reason));
            }
            global.reverse = true;
        }
        Ok(whole_record(Place::Prefixed, global))
    }

    fn compile_sequences(&self, global: Options, kind: SequenceKind) -> Result<Keys, KeyError> {
        let mut keys = Vec::new();
        for text in &self.keys {
            let key =
                SequenceKey::parse(text).map_err(|reason| value(Setting::Key, text, reason))?;
            let options = self.effective(key.options, key.or_global(global))?;
            keys.push((key.part, options));
        }
        let direct = |place, options: Options| {
            options.is_plain().then_some(DirectKey { place, descending: options.reverse })
        };
        let alone = match keys[..] {
            [] => return Ok(whole_record(Place::Line, global)),
            [(SequencePart::Id, options)] => direct(Place::Id, options),
            [(SequencePart::Header, options)] => direct(Place::Header, options),
            _ => None,
        };
        Ok(match alone {
            Some(key) => Keys::Direct(key),
            None => {
                let keys = keys.into_iter();
                let keys = keys.map(|(part, options)| (part, options.element(self.salt)));
                Keys::Sequences(SequenceKeys { kind, keys: keys.collect() })
            }
        })
    }

    /// The options of one key.
    fn effective(&self, own: Options, global: Options) -> Result<Options, KeyError> {
        let options = own.or_global(global);
        match options.contradiction() {
            Some(letters) => Err(KeyError::Incompatible(letters)),
            None => Ok(options),
        }
    }

    fn global_options(&self) -> Result<Options, KeyError> {
        let fit = match self.format.key_syntax() {
            KeySyntax::Lines => LETTERS,
            KeySyntax::Columns | KeySyntax::Sequences(_) if !self.keys.is_empty() => {
                LETTERS_OF_TEXTS
            }
            _ => "r",
        };
        let mut options = Options::default();
        for letter in self.options.chars() {
            if !fit.contains(letter) {
                return Err(KeyError::UnfitLetter { letter, records: self.records() });
            }
            options.set(letter as u8, Blanks::Both);
        }
        Ok(options)
    }

    fn records(&self) -> Records {
        match self.format.key_syntax() {
            KeySyntax::Lines => Records::Lines,
            KeySyntax::Columns if self.keys.is_empty() => Records::WholeRows,
            KeySyntax::Columns => Records::Rows,
            KeySyntax::Fields { .. } => Records::Fixed,
            KeySyntax::Prefixed => Records::Keyed,
            KeySyntax::Sequences(_) if self.keys.is_empty() => Records::WholeSequences,
            KeySyntax::Sequences(_) => Records::Sequences,
        }
    }
}

fn whole_record(place: Place, global: Options) -> Keys {
    Keys::Direct(DirectKey { place, descending: global.reverse })
}

fn value(of: Setting, value: &str, reason: impl Into<String>) -> KeyError {
    KeyError::Value { of, value: value.to_owned(), reason: reason.into() }
}

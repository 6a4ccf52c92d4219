//! The table of formats, and the questions that [`Format`] passes on.

use super::answers::{FormatError, KeySyntax, ParseBytes, RecordFormat, SplitRule, Tail};
use super::framing::Framing;
use super::{
    CsvFraming, FastaFraming, FastqFraming, FixedFraming, Format, KeyedFraming, LineFraming,
};
use crate::run::magic::ContentKind;

type Parser = fn(Option<&str>, ParseBytes<'_>) -> Result<Option<Format>, FormatError>;

/// A line of the table.
struct FormatEntry {
    name: &'static str,
    typed: &'static str,
    about: Option<&'static str>,
    parse: Parser,
}

/// All formats, and names of some that others have with an option.
const FORMATS: &[FormatEntry] = &[
    entry::<LineFraming>(),
    entry::<CsvFraming>(),
    FormatEntry {
        name: "tsv",
        typed: "tsv",
        about: Some("csv with tabs"),
        parse: |parameter, _| Ok(parameter.is_none().then_some(Format::csv_rows(b'\t', false))),
    },
    entry::<FixedFraming>(),
    entry::<KeyedFraming>(),
    entry::<FastaFraming>(),
    entry::<FastqFraming>(),
];

const fn entry<F: RecordFormat + Into<Format>>() -> FormatEntry {
    let parse: Parser = |parameter, bytes| Ok(F::parse(parameter, bytes)?.map(Into::into));
    FormatEntry { name: F::NAME, typed: F::TYPED, about: F::ABOUT, parse }
}

/// `words` as a list in a sentence.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// Work that is compiled for each framing; see [`Format::with`].
pub trait FramingVisitor {
    /// Its result.
    type Output;

    /// Does it.
    fn visit<F: Framing>(self, framing: F) -> Self::Output;
}

impl Format {
    /// The format that was typed: its name, and a parameter after a colon (`fixed:100`). `bytes` reads that number.
    ///
    /// # Errors
    /// When it is no format; the text lists them.
    pub fn parse(typed: &str, bytes: ParseBytes<'_>) -> Result<Self, FormatError> {
        let (name, parameter) = match typed.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (typed, None),
        };
        let parsed = match FORMATS.iter().find(|known| known.name == name) {
            Some(known) => (known.parse)(parameter, bytes)?,
            None => None,
        };
        parsed.ok_or_else(|| FormatError::Unknown { typed: typed.to_owned(), known: Self::names() })
    }

    /// What can be typed, as a list in a sentence.
    #[must_use]
    pub fn names() -> String {
        listed(&FORMATS.iter().map(|known| known.typed.to_owned()).collect::<Vec<_>>())
    }

    /// The same list, with what the records are where the name does not say it.
    #[must_use]
    pub fn names_described() -> String {
        let described = FORMATS.iter().map(|known| match known.about {
            Some(about) => format!("{} ({about})", known.typed),
            None => known.typed.to_owned(),
        });
        listed(&described.collect::<Vec<_>>())
    }

    /// Its name, without a parameter.
    #[must_use]
    pub fn name(self) -> &'static str {
        fn name<F: RecordFormat>(_: F) -> &'static str {
            F::NAME
        }
        with_framing!(self, framing => name(framing))
    }

    /// What is typed for it: the name and its parameter. Options of lines and csv are not in it.
    #[must_use]
    pub fn typed(self) -> String {
        let name = self.name();
        match with_framing!(self, framing => framing.parameter()) {
            None => name.to_owned(),
            Some(parameter) => format!("{name}:{parameter}"),
        }
    }

    /// What an input in this format should hold.
    #[must_use]
    pub fn content(self) -> ContentKind {
        fn content<F: RecordFormat>(_: F) -> ContentKind {
            F::CONTENT
        }
        with_framing!(self, framing => content(framing))
    }

    /// Whether every record shows its own end. The others end where the next one begins.
    #[must_use]
    pub fn is_self_framing(self) -> bool {
        fn answer<F: RecordFormat>(_: F) -> bool {
            F::IS_SELF_FRAMING
        }
        with_framing!(self, framing => answer(framing))
    }

    /// How keys of such records are written.
    #[must_use]
    pub fn key_syntax(self) -> KeySyntax {
        with_framing!(self, framing => framing.key_syntax())
    }

    /// How an input may be split between readers.
    #[must_use]
    pub fn split_rule(self) -> SplitRule {
        with_framing!(self, framing => framing.split_rule())
    }

    /// The byte that ends every record, if that is always the same one.
    #[must_use]
    pub fn terminator(self) -> Option<u8> {
        with_framing!(self, framing => framing.terminator())
    }

    /// Whether `records` are whole records, each with its terminator.
    #[must_use]
    pub fn are_whole(self, records: &[u8]) -> bool {
        with_framing!(self, framing => framing.are_whole(records))
    }

    /// Does work that is compiled for each framing.
    pub fn with<V: FramingVisitor>(self, visitor: V) -> V::Output {
        with_framing!(self, framing => visitor.visit(framing))
    }

    /// Where in `bytes`, which begins anywhere unless records have a fixed length, a record probably begins; their
    /// length without one.
    pub(crate) fn probable_start(self, bytes: &[u8]) -> usize {
        with_framing!(self, framing => framing.probable_start(bytes))
    }

    /// Whether [`Format::probable_start`] finds any.
    pub(crate) fn has_probable_starts(self) -> bool {
        fn answer<F: RecordFormat>(_: F) -> bool {
            F::HAS_PROBABLE_STARTS
        }
        with_framing!(self, framing => answer(framing))
    }

    /// The part of a record that is shown to a user.
    pub(crate) fn shown(self, record: &[u8]) -> &[u8] {
        with_framing!(self, framing => framing.shown(record))
    }

    /// As [`InputRecords::tail`](super::InputRecords::tail), for records whose ends don't depend on those before.
    pub(super) fn tail(self, bytes: &[u8]) -> Tail {
        with_framing!(self, framing => framing.tail(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(typed: &str) -> Result<Format, String> {
        let number = |typed: &str| typed.parse().map_err(|_| format!("'{typed}' is no number"));
        Format::parse(typed, &number).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_typed_is_parsed_again() {
        let lines = Format::Lines { delimiter: b'\n' };
        let formats = [
            lines,
            Format::csv_rows(b',', false),
            Format::Fixed { bytes: 100 },
            Format::Keyed,
            Format::Fasta,
            Format::Fastq,
        ];
        assert_eq!(formats.len() + ["tsv"].len(), FORMATS.len());
        for format in formats {
            assert_eq!(parse(&format.typed()), Ok(format));
            assert!(format.typed().starts_with(format.name()));
        }
        assert_eq!(Format::Fixed { bytes: 100 }.typed(), "fixed:100");
        let all = "lines, csv, tsv, fixed:N, keyed, fasta or fastq";
        assert_eq!(Format::names(), all);
        assert_eq!(parse("tsv"), Ok(Format::csv_rows(b'\t', false)));
        for typed in ["", "line", "csv:1", "tsv:1", "keyed:", ":4"] {
            assert_eq!(parse(typed), Err(format!("'{typed}' is not {all}")));
        }
        for (typed, fault) in [
            ("fixed", "fixed needs the length of a record in bytes, such as fixed:100"),
            ("fixed:", "'' is no number"),
            ("fixed:0", "a record has at least 1 byte"),
            ("fixed:2000000000", "a fixed record has at most 1 GiB"),
        ] {
            assert_eq!(parse(typed), Err(fault.to_owned()));
        }
    }

    #[test]
    fn records_that_are_whole_are_known() {
        let lines = Format::Lines { delimiter: b'\n' };
        for format in
            [lines, Format::Fixed { bytes: 2 }, Format::Keyed, Format::csv_rows(b',', true)]
        {
            assert!(format.are_whole(b""), "{format:?}");
        }
        assert!(lines.are_whole(b"a\n\n") && !lines.are_whole(b"a\nb"));
        assert!(
            Format::Fixed { bytes: 2 }.are_whole(b"abcd")
                && !Format::Fixed { bytes: 2 }.are_whole(b"abc")
        );
        assert!(Format::Fasta.are_whole(b">a\nAC") && !Format::Fasta.are_whole(b"AC"));
    }
}

//! `histogram`: how often each number, range of numbers or byte occurs.
//!
//! The key is a number in the form of [`Decimal::push_key`], so the result is in the order of numbers, and each
//! digit counts. With a `width`, it is the lower end of a range ([`EqualRanges`]).

use memchr::memchr_iter;
use merganser_sort::key::decimal::Decimal;
use merganser_sort::record::Format;
use serde::Deserialize;

use super::arguments::Arguments;
use super::borders::RecordBorders;
use super::csv::{self, CsvColumn, CsvRows, FIELDS_BYTES, text_of, too_short};
use super::number;
use super::ranges::EqualRanges;
use super::{Argument, COPY_BYTES_MOST, DELIMITER, HEADER, QUOTES, SEPARATOR, argument};
use crate::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
    key_of_i64,
};

pub(super) const ARGUMENTS: &[Argument] = &[
    argument("of", "\"numbers\" or \"bytes\" (each byte of the input counts)", "\"numbers\""),
    argument(
        "column",
        "the column with the number: a name or number of csv; for lines, the number of a word",
        "the whole line",
    ),
    argument("width", "the width of a range, above 0; each number by itself without it", "none"),
    argument("start", "where a range begins", "0"),
    argument("invalid", "\"fail\" or \"skip\", for texts that are no numbers", "\"fail\""),
    argument("format", "\"lines\" or \"csv\"", "\"lines\""),
    DELIMITER,
    SEPARATOR,
    HEADER,
    QUOTES,
];

const NAME: &str = "histogram";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Of {
    #[default]
    Numbers,
    Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Invalid {
    #[default]
    Fail,
    Skip,
}

#[derive(Clone)]
struct HistogramWorker {
    format: Format,
    column: Option<CsvColumn>,
    ranges: Option<EqualRanges>,
    invalid: Invalid,
}

struct HistogramSsdlet {
    description: SsdletDescription,
    /// Bytes are counted without it.
    numbers: Option<HistogramWorker>,
}

pub(super) fn open(mut args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let of: Of = args.take("of")?.unwrap_or_default();
    let format = args.records()?;
    if !matches!(format, Format::Lines { .. } | Format::Csv { .. }) {
        return Err(args.fault("format", "choose lines or csv"));
    }
    let only_of_numbers = ["column", "width", "start", "invalid"];
    if of == Of::Bytes
        && let Some(other) = only_of_numbers.into_iter().find(|name| args.has(name))
    {
        return Err(args.fault(other, "bytes have none; leave it out"));
    }
    let column: Option<CsvColumn> = args.take("column")?;
    match (&column, format) {
        (Some(column), Format::Csv { header, .. }) => column.check(&args, "column", header)?,
        (None, Format::Csv { .. }) if of == Of::Numbers => {
            return Err(args.fault("column", "give the name or number of the column"));
        }
        (Some(column), _) => {
            column.check(&args, "column", true)?;
            if let CsvColumn::Name(name) = column {
                let detail = format!("{name:?} is no number; words of lines have no names");
                return Err(args.fault("column", detail));
            }
        }
        (None, _) => {}
    }
    let mut number = |name: &str| match args.take::<serde_json::Value>(name)? {
        None => Ok(None),
        Some(value) => match number::of_json(&value) {
            Some(number) if !number.get().is_infinite() => Ok(Some(number)),
            _ => Err(args.fault(name, format!("{value} is no finite number"))),
        },
    };
    let (start, width) = (number("start")?, number("width")?);
    let ranges = match (start, width) {
        (start, Some(width)) => {
            let ranges = EqualRanges::new(start.as_ref(), &width);
            Some(ranges.map_err(|error| args.fault("width", error))?)
        }
        (Some(_), None) => {
            return Err(args.fault("start", "without a width there are no ranges; leave it out"));
        }
        (None, None) => None,
    };
    let invalid = args.take("invalid")?.unwrap_or_default();
    let key = if of == Of::Bytes { Type::I64 } else { Type::Decimal };
    let description = SsdletDescription {
        name: NAME.to_owned(),
        input: format,
        output: SsdletOutput::Keyed { key, value: Type::I64, combine: Combine::Sum },
        worker_bytes: FIELDS_BYTES + 3 * COPY_BYTES_MOST as u64,
    };
    let numbers = HistogramWorker { format, column, ranges, invalid };
    Ok(Box::new(HistogramSsdlet { description, numbers: (of == Of::Numbers).then_some(numbers) }))
}

impl Ssdlet for HistogramSsdlet {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(match &self.numbers {
            None => Box::new(ByteCounter { metered: 0 }),
            Some(numbers) => Box::new(NumberCounter {
                numbers: numbers.clone(),
                borders: RecordBorders::new(numbers.format),
                place: None,
                rows: CsvRows::new(0, 0),
                copy: Vec::new(),
                key: Vec::new(),
                metered: 0,
            }),
        })
    }
}

struct ByteCounter {
    metered: u64,
}

impl Worker for ByteCounter {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.metered += chunk.bytes.len() as u64;
        // Runs of one byte would wait for their own count; four tables don't.
        let mut counts = [[0_i64; 256]; 4];
        let (quads, rest) = chunk.bytes.as_chunks::<4>();
        for quad in quads {
            for (counts, byte) in counts.iter_mut().zip(quad) {
                counts[usize::from(*byte)] += 1;
            }
        }
        for byte in rest {
            counts[0][usize::from(*byte)] += 1;
        }
        for byte in 0..=u8::MAX {
            let count = counts.iter().map(|counts| counts[usize::from(byte)]).sum();
            if count > 0 {
                out.add(&key_of_i64(byte.into()), count);
            }
        }
        Ok(())
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}

struct NumberCounter {
    numbers: HistogramWorker,
    borders: RecordBorders,
    /// Place of the csv column in a row, once it is known.
    place: Option<usize>,
    rows: CsvRows,
    copy: Vec<u8>,
    key: Vec<u8>,
    metered: u64,
}

/// Counts the number in `text`, which is in the record at `offset`. `key` is scratch memory.
fn count(
    numbers: &HistogramWorker,
    text: &[u8],
    offset: u64,
    key: &mut Vec<u8>,
    out: &mut Emitter<'_>,
) -> Result<(), SsdletError> {
    let shown = || String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
    match (Decimal::parse(text), &numbers.ranges) {
        (Some(number), None) => {
            if text.len() > COPY_BYTES_MOST {
                let detail = format!("a number of more than {COPY_BYTES_MOST} digits");
                return Err(SsdletError::Record { offset, detail });
            }
            key.clear();
            number.push_key(key);
        }
        (Some(number), Some(ranges)) => {
            key.clear();
            if !ranges.push_key(&number, key) {
                let most = ranges.digits_most();
                let detail = format!(
                    "{} is too large for ranges of this width: they count numbers below 1e{most}; choose a larger width, or leave it out",
                    shown()
                );
                return Err(SsdletError::Record { offset, detail });
            }
        }
        (None, _) if numbers.invalid == Invalid::Skip => return Ok(()),
        (None, _) => {
            let shown = shown();
            let detail =
                format!("{shown:?} is not a number; choose another column, or set invalid to skip");
            return Err(SsdletError::Record { offset, detail });
        }
    }
    out.add(key, 1);
    Ok(())
}

impl NumberCounter {
    fn resolve(&mut self, header: Option<&[u8]>) -> Result<(), SsdletError> {
        let Format::Csv { separator, .. } = self.numbers.format else { return Ok(()) };
        let names = header.map(|row| csv::names(separator, row));
        let column = self.numbers.column.as_ref().expect("csv has a column");
        let place = column.resolve(names.as_ref(), NAME, "column")?;
        self.rows = CsvRows::new(separator, place + 1);
        self.place = Some(place);
        Ok(())
    }

    fn count_rows(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        if self.place.is_none() {
            self.resolve(None)?;
        }
        let NumberCounter { numbers, place, rows, copy, key, .. } = self;
        let place = place.expect("it was just found");
        rows.each(chunk.bytes, |row| {
            let field =
                row.get(place).ok_or_else(|| too_short(row, chunk.offset, place, "column"))?;
            let text = text_of(field, copy).unwrap_or(field);
            count(numbers, text, chunk.offset + row.range.start as u64, key, out)
        })
    }

    fn count_lines(
        &mut self,
        delimiter: u8,
        chunk: Chunk<'_>,
        out: &mut Emitter<'_>,
    ) -> Result<(), SsdletError> {
        let mut start = 0;
        let ends = memchr_iter(delimiter, chunk.bytes).map(|end| end + 1);
        for end in ends.chain([chunk.bytes.len()]) {
            if start == end {
                continue;
            }
            let text = self.borders.text(&chunk.bytes[start..end]);
            let text = match self.numbers.column {
                Some(CsvColumn::Number(number)) => {
                    let mut words = text.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
                    words.nth(number - 1).unwrap_or_default()
                }
                _ => text,
            };
            count(&self.numbers, text, chunk.offset + start as u64, &mut self.key, out)?;
            start = end;
        }
        Ok(())
    }
}

impl Worker for NumberCounter {
    fn header(&mut self, row: &[u8]) -> Result<(), SsdletError> {
        self.resolve(Some(row))
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.metered += chunk.bytes.len() as u64;
        match self.numbers.format {
            Format::Lines { delimiter } => self.count_lines(delimiter, chunk, out),
            _ => self.count_rows(chunk, out),
        }
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}

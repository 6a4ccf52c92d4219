//! `project`: some columns of csv, in any order.
//!
//! Fields are copied as they are, quotes included, so they mean the same. A row keeps its line end. A field that would
//! change it is quoted.

use merganser_sort::record::{CsvField, CsvQuotes, Format};

use super::arguments::Arguments;
use super::csv::{self, COLUMNS_MOST, CsvColumn, CsvRow, CsvRows, FIELDS_BYTES, too_short};
use super::{Argument, COPY_BYTES_MOST, HEADER, QUOTES, SEPARATOR, argument};
use crate::ssdlet::{Chunk, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Worker};

pub(super) const ARGUMENTS: &[Argument] = &[
    argument("columns", "a list of names, or of numbers from 1 on, in the order of the output", ""),
    SEPARATOR,
    HEADER,
    QUOTES,
];

const NAME: &str = "project";

/// Rows are handed out together up to about this size.
const BATCH_BYTES: usize = 64 << 10;

struct Project {
    description: SsdletDescription,
    separator: u8,
    columns: Vec<CsvColumn>,
}

pub(super) fn open(mut args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let format = args.csv()?;
    let Format::Csv { separator, header, .. } = format else { unreachable!("csv was taken") };
    let columns: Vec<CsvColumn> = args.take("columns")?.unwrap_or_default();
    if columns.is_empty() {
        return Err(args.fault("columns", "give a list of columns, for example [\"name\", 3]"));
    }
    if columns.len() > COLUMNS_MOST {
        let detail = format!("{} columns; {COLUMNS_MOST} are the most", columns.len());
        return Err(args.fault("columns", detail));
    }
    for column in &columns {
        column.check(&args, "columns", header)?;
    }
    let description = SsdletDescription {
        name: NAME.to_owned(),
        input: format,
        output: SsdletOutput::Ordered { format },
        worker_bytes: FIELDS_BYTES + 2 * (BATCH_BYTES + COPY_BYTES_MOST) as u64,
    };
    Ok(Box::new(Project { description, separator, columns }))
}

impl Project {
    fn projector(&self) -> Projector {
        Projector {
            separator: self.separator,
            columns: self.columns.clone(),
            rows: CsvRows::new(self.separator, 0),
            places: Vec::new(),
            batch: Vec::new(),
            metered: 0,
        }
    }
}

impl Ssdlet for Project {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn header(&self, row: &[u8]) -> Result<Vec<u8>, SsdletError> {
        let mut projector = self.projector();
        projector.resolve(Some(row))?;
        // A byte order mark belongs to no column.
        let row = row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(row);
        projector.project(row, 0, |_| {})?;
        Ok(projector.batch)
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(self.projector()))
    }
}

struct Projector {
    separator: u8,
    columns: Vec<CsvColumn>,
    rows: CsvRows,
    /// Where the columns are in a row; empty until that is known.
    places: Vec<usize>,
    batch: Vec<u8>,
    metered: u64,
}

impl Projector {
    fn resolve(&mut self, header: Option<&[u8]>) -> Result<(), SsdletError> {
        let names = header.map(|row| csv::names(self.separator, row));
        let places =
            self.columns.iter().map(|column| column.resolve(names.as_ref(), NAME, "columns"));
        self.places = places.collect::<Result<_, _>>()?;
        let last = self.places.iter().max().copied().unwrap_or_default();
        self.rows = CsvRows::new(self.separator, last + 1);
        Ok(())
    }

    /// Projects rows at `offset` of an input into the batch, which goes to `flush` when it is full.
    fn project(
        &mut self,
        bytes: &[u8],
        offset: u64,
        mut flush: impl FnMut(&[u8]),
    ) -> Result<(), SsdletError> {
        let Projector { separator, rows, places, batch, .. } = self;
        rows.each(bytes, |row: &CsvRow<'_>| {
            let begin = batch.len();
            let mut last = begin;
            for (n, place) in places.iter().enumerate() {
                let field =
                    row.get(*place).ok_or_else(|| too_short(row, offset, *place, "columns"))?;
                if batch.len() - begin + field.len() > COPY_BYTES_MOST {
                    let detail =
                        format!("the chosen columns have more than {COPY_BYTES_MOST} bytes");
                    let offset = offset + row.range.start as u64;
                    return Err(SsdletError::Record { offset, detail });
                }
                if n > 0 {
                    batch.push(*separator);
                }
                last = batch.len();
                batch.extend_from_slice(field);
            }
            if batch.ends_with(b"\r") && row.terminator() == b"\n" {
                quote_last(batch, last);
            }
            batch.extend_from_slice(row.terminator());
            if batch.len() >= BATCH_BYTES {
                flush(batch);
                batch.clear();
            }
            Ok(())
        })
    }
}

/// Quotes the last field of `batch`, which begins at `begin`: it ends with a carriage return, which would become part of
/// the row's end.
#[cold]
fn quote_last(batch: &mut Vec<u8>, begin: usize) {
    let field = batch.split_off(begin);
    batch.push(b'"');
    for byte in (CsvField { raw: &field, quotes: CsvQuotes::Lazy }).value().iter() {
        batch.extend_from_slice(if *byte == b'"' { b"\"\"" } else { std::slice::from_ref(byte) });
    }
    batch.push(b'"');
}

impl Worker for Projector {
    fn header(&mut self, row: &[u8]) -> Result<(), SsdletError> {
        self.resolve(Some(row))
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.metered += chunk.bytes.len() as u64;
        if self.places.is_empty() {
            self.resolve(None)?;
        }
        self.project(chunk.bytes, chunk.offset, |batch| out.records(batch))?;
        if !self.batch.is_empty() {
            out.records(&self.batch);
            self.batch.clear();
        }
        Ok(())
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}

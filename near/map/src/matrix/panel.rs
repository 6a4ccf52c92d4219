//! Reads and writes blocks of a matrix, with several requests in flight.

use std::collections::VecDeque;
use std::ops::Range;

use merganser_sort::Error;
use merganser_storage::{Buffer, Completions, Operation, Storage};

use super::kernel::{MatrixValue, MatrixView};
use super::{Matrix, MatrixError};

/// The largest request.
const PIECE_BYTES: u64 = 128 << 10;

/// Requests in flight.
const IN_FLIGHT: usize = 8;

/// Memory of the requests of one reader and one writer.
pub(super) const WINDOW_BYTES: u64 = 2 * IN_FLIGHT as u64 * PIECE_BYTES;

/// An empty vector with memory for `elements`.
pub(super) fn with_memory<T>(elements: u64) -> Result<Vec<T>, MatrixError> {
    let mut values = Vec::new();
    values.try_reserve_exact(elements as usize).map_err(|_| {
        let bytes = elements as usize * size_of::<T>();
        let why = format!("the system has no memory for {bytes} bytes of a matrix");
        std::io::Error::new(std::io::ErrorKind::OutOfMemory, why)
    })?;
    Ok(values)
}

/// A block of a matrix in memory.
pub(super) struct Panel<T> {
    values: Vec<T>,
    row_step: usize,
    column_step: usize,
    /// Which block it is.
    holds: Option<(Range<u64>, Range<u64>)>,
}

impl<T: MatrixValue> Panel<T> {
    /// An empty one with memory for `elements`.
    pub(super) fn new(elements: u64) -> Result<Self, MatrixError> {
        let values = with_memory(elements)?;
        Ok(Panel { values, row_step: 0, column_step: 0, holds: None })
    }

    /// The part from row `row` and column `column` on.
    pub(super) fn from(&self, row: usize, column: usize) -> MatrixView<'_, T> {
        let start = row * self.row_step + column * self.column_step;
        let values = self.values.get(start..).unwrap_or_default();
        MatrixView { values, row_step: self.row_step, column_step: self.column_step }
    }

    /// Reads a block of `matrix`, unless it is the one that it holds. Returns the bytes that were read.
    pub(super) fn read(
        &mut self,
        matrix: &Matrix,
        rows: Range<u64>,
        columns: Range<u64>,
    ) -> Result<u64, MatrixError> {
        let block = Some((rows.clone(), columns.clone()));
        if self.holds == block {
            return Ok(0);
        }
        self.holds = None;
        let len = |range: &Range<u64>| (range.end - range.start) as usize;
        let (height, width) = (len(&rows), len(&columns));
        // Lines are what lies end to end in the file: rows, or columns.
        let (lines, along, line_len) = if matrix.by_columns {
            (self.row_step, self.column_step) = (1, height);
            (columns, rows, matrix.shape.rows)
        } else {
            (self.row_step, self.column_step) = (width, 1);
            (rows, columns, matrix.shape.columns)
        };
        self.values.clear();
        self.values.resize(height * width, T::default());
        let stretches = stretches::<T>(matrix.data_offset, lines, along, line_len);
        read_stretches(&*matrix.storage, stretches, &mut self.values)?;
        self.holds = block;
        Ok((height * width) as u64 * T::ELEMENT.bytes())
    }
}

/// Where the lines of a block are in the file: offset and elements of each. Lines that are in the block
/// as a whole are one stretch.
fn stretches<T: MatrixValue>(
    data_offset: u64,
    lines: Range<u64>,
    along: Range<u64>,
    line_len: u64,
) -> impl Iterator<Item = (u64, u64)> {
    let len = along.end - along.start;
    let (count, len) = if len == line_len {
        (1, len * (lines.end - lines.start))
    } else {
        (lines.end - lines.start, len)
    };
    let bytes = T::ELEMENT.bytes();
    (0..count).flat_map(move |line| {
        let offset = data_offset + ((lines.start + line) * line_len + along.start) * bytes;
        let piece = PIECE_BYTES / bytes;
        let pieces = (0..len).step_by(piece as usize);
        pieces.map(move |at| (offset + at * bytes, piece.min(len - at)))
    })
}

fn read_stretches<T: MatrixValue>(
    storage: &dyn Storage,
    mut stretches: impl Iterator<Item = (u64, u64)>,
    values: &mut [T],
) -> Result<(), MatrixError> {
    let completions = Completions::new();
    let clock = storage.clock();
    let bytes = T::ELEMENT.bytes() as usize;
    // Each request's part of `values`, in the order of tokens; `None` once it is filled.
    let mut parts: VecDeque<Option<&mut [T]>> = VecDeque::new();
    let (mut first_token, mut in_flight, mut rest) = (0, 0, values);
    let mut result = Ok(());
    loop {
        while in_flight < IN_FLIGHT && result.is_ok() {
            let Some((offset, len)) = stretches.next() else { break };
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(len as usize);
            rest = behind;
            let buffer = match Buffer::try_new(part.len() * bytes) {
                Ok(buffer) => buffer,
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            };
            let token = first_token + parts.len() as u64;
            parts.push_back(Some(part));
            storage.submit(token, Operation::Read { offset, buffer }, &completions);
            in_flight += 1;
        }
        if in_flight == 0 {
            return result;
        }
        let done = completions.wait(&*clock);
        in_flight -= 1;
        let part = parts[(done.token - first_token) as usize].take().expect("completes once");
        match (done.result, done.buffer) {
            (Ok(len), Some(buffer)) if len == part.len() * bytes => T::read(&buffer, part),
            (Err(error), _) => result = result.and(Err(error.into())),
            _ => result = result.and(Err(shrunk(storage))),
        }
        while parts.front().is_some_and(Option::is_none) {
            parts.pop_front();
            first_token += 1;
        }
    }
}

fn shrunk(storage: &dyn Storage) -> MatrixError {
    Error::Input {
        file: storage.name().to_owned(),
        offset: storage.size(),
        detail: "the file became shorter while it was read; start again".to_owned(),
    }
    .into()
}

/// Writes the block `rows` × `columns` of a matrix with `all_columns` columns, whose rows begin at
/// `data_offset`.
pub(super) fn write<T: MatrixValue>(
    storage: &dyn Storage,
    data_offset: u64,
    rows: Range<u64>,
    columns: Range<u64>,
    all_columns: u64,
    values: &[T],
) -> Result<u64, MatrixError> {
    let completions = Completions::new();
    let clock = storage.clock();
    let bytes = T::ELEMENT.bytes() as usize;
    let mut stretches = stretches::<T>(data_offset, rows, columns, all_columns);
    let (mut in_flight, mut rest, mut result) = (0, values, Ok(()));
    loop {
        while in_flight < IN_FLIGHT && result.is_ok() {
            let Some((offset, len)) = stretches.next() else { break };
            let (part, behind) = rest.split_at(len as usize);
            rest = behind;
            match Buffer::try_new(part.len() * bytes) {
                Ok(mut buffer) => {
                    T::write(part, &mut buffer);
                    storage.submit(0, Operation::Write { offset, buffer }, &completions);
                    in_flight += 1;
                }
                Err(error) => result = Err(error.into()),
            }
        }
        if in_flight == 0 {
            return result.map(|()| size_of_val(values) as u64);
        }
        let done = completions.wait(&*clock);
        in_flight -= 1;
        result = result.and(done.result.map(|_| ()).map_err(MatrixError::from));
    }
}

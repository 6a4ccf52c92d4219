//! Checking while reading.

use std::io::{self, Read};
use std::sync::mpsc;

use merganser_storage::thread::spawn_scoped;

use super::{Limits, Summary, Verifier};
use crate::key::OrderSpec;
use crate::record::Format;
use crate::run::header_lines::HeaderRule;
use crate::{Error, Progress, Result};

/// Bytes of one read.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces between the reader and the checker, including the two that they work on.
const PIECES: usize = 4;

/// Checks all bytes of `reader`. `name` is its name in errors.
///
/// Takes 4 MiB of memory in addition to the longest record.
///
/// # Errors
/// The reader's own, [`Error::Input`] for a damaged or overlong record, [`Error::Key`] for an
/// order that makes no sense in these records, [`Error::Cancelled`].
pub fn stream(
    name: &str,
    reader: &mut (dyn Read + Send),
    spec: &OrderSpec,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Summary> {
    let header = HeaderRule::of_order(spec).map(|rule| rule.of_reader(name, reader)).transpose()?;
    let (header, rest) = header.unwrap_or_default();
    let beginning = match spec.format {
        format if format.has_header() => read_preamble(name, reader, format, limits, progress)?,
        // Bytes that were read with the header.
        _ => rest,
    };
    let order = spec.compile(preamble(spec.format, &beginning))?;
    let mut verifier = Verifier::new(name, &order, limits);
    verifier.pass_header(header.bytes.len() as u64, header.lines);
    verifier.feed(&beginning)?;
    progress.advance(header.input_bytes + beginning.len() as u64);
    std::thread::scope(|scope| {
        let (full, pieces) = mpsc::sync_channel::<io::Result<Vec<u8>>>(PIECES);
        let (empty, spent) = mpsc::sync_channel(PIECES);
        for _ in 0..PIECES {
            empty.send(Vec::with_capacity(PIECE_BYTES)).expect("room for all");
        }
        let reading = move || {
            // Ends with the input, or when the checker has stopped and closed a channel.
            while let Ok(mut piece) = spent.recv() {
                let read = fill(reader, &mut piece, progress);
                let last = piece.is_empty() || read.is_err();
                let sent = full.send(read.map(|()| piece));
                if last || sent.is_err() {
                    break;
                }
            }
        };
        spawn_scoped(scope, "read", reading)?;
        for piece in pieces {
            let piece = piece.map_err(|error| failure(name, error))?;
            verifier.feed(&piece)?;
            progress.advance(piece.len() as u64);
            if verifier.stopped() {
                break;
            }
            // The reader takes no more at the end.
            let _ = empty.send(piece);
        }
        Ok(())
    })
    .and_then(|()| verifier.finish())
}

/// The bytes before the records in `beginning`, which may be all of the input.
fn preamble(format: Format, beginning: &[u8]) -> Option<&[u8]> {
    let len = format.preamble_len(beginning).unwrap_or(beginning.len());
    Some(&beginning[..len]).filter(|preamble| !preamble.is_empty())
}

/// Reads until the first row has ended, or the input.
fn read_preamble(
    name: &str,
    reader: &mut (dyn Read + Send),
    format: Format,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    let (mut beginning, mut piece) = (Vec::new(), Vec::new());
    loop {
        fill(reader, &mut piece, progress).map_err(|error| failure(name, error))?;
        beginning.extend_from_slice(&piece);
        let too_long = beginning.len() > limits.record_bytes_max;
        if piece.len() < PIECE_BYTES || too_long || format.preamble_len(&beginning).is_some() {
            return Ok(beginning);
        }
    }
}

/// Fills `piece` as far as the input goes.
fn fill(
    reader: &mut (dyn Read + Send),
    piece: &mut Vec<u8>,
    progress: &dyn Progress,
) -> io::Result<()> {
    piece.resize(PIECE_BYTES, 0);
    let mut len = 0;
    while len < PIECE_BYTES {
        if progress.cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match reader.read(&mut piece[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    piece.truncate(len);
    Ok(())
}

/// Interruptions that the reader meets are retried, so one that arrives here is a cancellation.
fn failure(name: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::Interrupted => Error::Cancelled,
        _ => Error::reading(name, error),
    }
}

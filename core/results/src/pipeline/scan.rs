//! Reads a journal a line at a time, in little memory: what it says together is small, while the file of a long
//! pipeline, or of a stranger, may have hundreds of megabytes.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use merganser_sort::Error;
use merganser_storage::file::own;

use super::error::JournalError;
use super::journal::{
    BYTES_MAX, EVENT_BYTES_MAX, JournalHeader, PipelineEvent, hides_line, line_in, parse,
};

/// No first line is longer: 100,000 inputs take about 25 MB.
const HEADER_BYTES_MAX: usize = 128 << 20;

/// Reads the journal at `path`, and hands its events to `each`, with the number of stages. `None` if there is no
/// journal. It accepts what [`PipelineRecord::decode`](super::PipelineRecord::decode) accepts.
///
/// # Errors
/// Damage; those of `each`; the system's own.
pub(super) fn scan(
    path: &Path,
    each: impl FnMut(&PipelineEvent, usize) -> Result<(), Error>,
) -> Result<Option<JournalHeader>, JournalError> {
    let failed = |error| JournalError::file(path)(error);
    let file = match own::open_file(path, false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let shown = path.display().to_string();
    if file.metadata().map_err(failed)?.len() > BYTES_MAX {
        return Err(corrupt(&shown, BYTES_MAX, "too large for a journal").into());
    }
    let lines = LineScan { from: BufReader::new(file.take(BYTES_MAX)), at: 0, line: Vec::new() };
    match read(&shown, lines, each) {
        Ok(header) => Ok(Some(header)),
        Err(Error::Io(error)) => Err(failed(error)),
        Err(error) => Err(error.into()),
    }
}

fn read<R: BufRead>(
    file: &str,
    mut lines: LineScan<R>,
    mut each: impl FnMut(&PipelineEvent, usize) -> Result<(), Error>,
) -> Result<JournalHeader, Error> {
    let first = match lines.next(HEADER_BYTES_MAX)? {
        Some(ScannedLine::Whole(json)) => JournalHeader::decode(file, json)?,
        _ => return Err(corrupt(file, 0, "no whole line of a journal")),
    };
    let stages = first.work.stages.len();
    loop {
        let at = lines.at;
        match lines.next(EVENT_BYTES_MAX)? {
            Some(ScannedLine::Whole(json)) => match parse(json) {
                Some(event) => each(&event, stages)?,
                None => return Err(corrupt(file, at, "a line that says nothing known")),
            },
            Some(ScannedLine::Damaged { end }) => {
                if hides_line(end) {
                    let why = "a whole line that does not begin after a newline";
                    return Err(corrupt(file, at, why));
                }
                break;
            }
            None => return Ok(first),
        }
    }
    // Only the last line can be cut.
    loop {
        let at = lines.at;
        match lines.next(EVENT_BYTES_MAX)? {
            Some(ScannedLine::Whole(_)) => {
                return Err(corrupt(file, at, "a whole line after a damaged one"));
            }
            Some(ScannedLine::Damaged { end }) if hides_line(end) => {
                let why = "a whole line that does not begin after a newline";
                return Err(corrupt(file, at, why));
            }
            Some(ScannedLine::Damaged { .. }) => {}
            None => return Ok(first),
        }
    }
}

fn corrupt(file: &str, offset: u64, detail: &str) -> Error {
    Error::Corrupt { file: file.to_owned(), offset, detail: detail.to_owned() }
}

/// A line that has an end.
enum ScannedLine<'a> {
    /// Its JSON; the checksum is right.
    Whole(&'a [u8]),
    /// Its checksum is wrong.
    Damaged {
        /// The end of the line, where a whole one can be hidden.
        end: &'a [u8],
    },
}

struct LineScan<R> {
    from: R,
    at: u64,
    line: Vec<u8>,
}

impl<R: BufRead> LineScan<R> {
    /// The next line that has an end. Of a line of more than `most` bytes, only the end is kept.
    fn next(&mut self, most: usize) -> Result<Option<ScannedLine<'_>>, Error> {
        self.line.clear();
        let mut is_long = false;
        loop {
            let mut some = self.from.by_ref().take(EVENT_BYTES_MAX as u64);
            let read = some.read_until(b'\n', &mut self.line)?;
            self.at += read as u64;
            if read == 0 {
                return Ok(None);
            }
            if self.line.last() == Some(&b'\n') {
                break;
            }
            if self.line.len() > most {
                is_long = true;
                let end = self.line.len() - EVENT_BYTES_MAX.min(self.line.len());
                self.line.drain(..end);
            }
        }
        self.line.pop();
        Ok(Some(match line_in(&self.line) {
            Some(json) if !is_long => ScannedLine::Whole(json),
            _ => ScannedLine::Damaged { end: &self.line },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_sort::journal::{CommandNote, JournalText};

    use super::super::{
        InputNote, MergeBy, PartitionCut, Partitions, PieceFormat, PipelineRecord, PipelineWork,
    };

    fn record() -> PipelineRecord {
        let text = |text: &str| JournalText(text.as_bytes().to_vec());
        let command = CommandNote {
            words: vec![text("merganser"), text("pipeline")],
            folder: text("/data"),
            output: text("/data/out"),
            view: false,
            mode: 0o644,
            owner: None,
        };
        let work = PipelineWork {
            records: PieceFormat::Lines { delimiter: b'\n' },
            as_stored: true,
            partitions: Partitions::Count(2),
            stages: vec![("a".to_owned(), "cat".to_owned())],
            merge: MergeBy::Cat,
            folder: text("/data"),
        };
        let inputs = vec![InputNote { name: text("standard input"), file: None }];
        let events = vec![
            PipelineEvent::Cut(PartitionCut { k: 0, start: 0, bytes: 10, records: 2, crc: 7 }),
            PipelineEvent::Ran { k: 0, stage: 0, bytes: 10, crc: Some(7) },
            PipelineEvent::AllCut { partitions: 1 },
            PipelineEvent::Merged { bytes: 10, crc: None },
        ];
        PipelineRecord { header: JournalHeader::new(command, work, inputs), events, whole_bytes: 0 }
    }

    fn scanned(bytes: &[u8]) -> Option<(JournalHeader, Vec<PipelineEvent>)> {
        let mut events = Vec::new();
        let lines = LineScan { from: bytes, at: 0, line: Vec::new() };
        let header = read("x", lines, |event, _| {
            events.push(*event);
            Ok(())
        });
        Some((header.ok()?, events))
    }

    fn decoded(bytes: &[u8]) -> Option<(JournalHeader, Vec<PipelineEvent>)> {
        PipelineRecord::decode("x", bytes).ok().map(|record| (record.header, record.events))
    }

    /// A journal that is cut or has a changed byte anywhere says the same both ways.
    #[test]
    fn a_scan_says_what_the_whole_journal_says() {
        let bytes = record().encode();
        assert_eq!(scanned(&bytes), decoded(&bytes));
        assert!(scanned(&bytes).is_some_and(|(_, events)| events.len() > 2));
        for at in 0..bytes.len() {
            assert_eq!(scanned(&bytes[..at]), decoded(&bytes[..at]), "cut at {at}");
            for flip in [1, 0x20, b'\n'] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                assert_eq!(scanned(&damaged), decoded(&damaged), "byte {at} ^ {flip}");
            }
        }
        let long = [&bytes[..], &vec![b'x'; 3 * EVENT_BYTES_MAX], b"\n"].concat();
        assert_eq!(scanned(&long), decoded(&long));
        let hidden = [&long[..long.len() - 1], &bytes[bytes.len() - 60..]].concat();
        assert_eq!(scanned(&hidden), decoded(&hidden));
    }

    /// ATTACK finding N18.
    #[test]
    fn n18_a_journal_without_an_end_is_read_in_little_memory() {
        let start = record().encode();
        let endless = io::repeat(b'x').take(64 << 20);
        let from = BufReader::new(start.chain(endless));
        let mut lines = LineScan { from, at: 0, line: Vec::new() };
        let mut largest = 0;
        while lines.next(EVENT_BYTES_MAX).expect("read").is_some() {
            largest = largest.max(lines.line.capacity());
        }
        assert!(lines.line.capacity().max(largest) < 1 << 20);
    }
}

//! Reads inputs into chunks that begin and end at record boundaries.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::sync::Arc;

use merganser_storage::{Buffer, Completions, Operation, Storage};

use super::chunk::{
    Chunk, Follower, Keeping, READ_BYTES, SLACK_BYTES, SPAN_BYTES, carry_liked, headroom,
};
use super::header_lines::HeaderRule;
use super::input::SortInput;
use crate::activity::{WorkerState, wait};
use crate::error::stray_quote;
use crate::record::{CsvHeader, Format, InputRecords, Tail};
use crate::{Error, Progress, Result};

/// Reads in flight.
const READ_DEPTH: usize = 8;

/// Reads inputs, one after the other, chunk by chunk.
pub(crate) struct ChunkReader {
    format: Format,
    read_bytes: usize,
    inputs: VecDeque<SortInput>,
    /// Where to begin in each input, for a sort that continues.
    starts: VecDeque<u64>,
    /// For the input at the front: its size when it was begun, how far it is read, how many of the
    /// next bytes were sorted before, and its records.
    size: u64,
    offset: u64,
    skip: usize,
    /// Bytes of blank lines that may still come before the first sequence of the input.
    blanks: usize,
    records: InputRecords,
    /// Which lines at the beginning of an input are its header.
    header: Option<HeaderRule>,
    /// Whether the header of the input at the front is still to be read.
    header_due: bool,
    /// Whether inputs begin with records: they were inputs before, whose preamble was taken off.
    only_records: bool,
    /// The bytes before the records of the first input; `None` before its first record.
    preamble: Option<Vec<u8>>,
    carry: Vec<u8>,
}

/// How far one chunk is filled.
struct Fill {
    /// Bytes up to here are whole records, in spans already.
    framed: usize,
    /// Bytes up to here are read.
    end: usize,
    /// How many bytes that are not in spans have no end of a record. The next search for one waits
    /// until they are twice as many, so a long record is not searched again with each read.
    searched: usize,
}

impl ChunkReader {
    pub(crate) fn new(inputs: Vec<SortInput>, format: Format, read_bytes: usize) -> Self {
        Self::open(inputs, format, read_bytes, None, &[], false)
    }

    /// As [`ChunkReader::new`], for inputs of records alone: without a header row, and without a byte order mark.
    pub(crate) fn of_records(inputs: Vec<SortInput>, format: Format, read_bytes: usize) -> Self {
        Self::open(inputs, format, read_bytes, None, &[], true)
    }

    /// Continues in each of `inputs` at its byte of `starts`, where a record begins; at 0 where no
    /// start is given. `preamble` is what comes before the records, when it was read before.
    pub(crate) fn resume(
        inputs: Vec<SortInput>,
        format: Format,
        read_bytes: usize,
        preamble: Option<Vec<u8>>,
        starts: &[u64],
    ) -> Self {
        Self::open(inputs, format, read_bytes, preamble, starts, false)
    }

    fn open(
        inputs: Vec<SortInput>,
        format: Format,
        read_bytes: usize,
        preamble: Option<Vec<u8>>,
        starts: &[u64],
        only_records: bool,
    ) -> Self {
        assert_eq!(read_bytes % 4096, 0);
        let mut reader = ChunkReader {
            format,
            read_bytes,
            inputs: inputs.into(),
            starts: starts.iter().copied().collect(),
            size: 0,
            offset: 0,
            skip: 0,
            blanks: 0,
            records: InputRecords::within(format),
            header: None,
            header_due: false,
            only_records,
            preamble,
            carry: Vec::new(),
        };
        reader.begin_input();
        reader
    }

    /// The same reader, where inputs begin with a header.
    pub(crate) fn with_header(mut self, header: Option<HeaderRule>) -> Self {
        self.header = header;
        self
    }

    fn begin_input(&mut self) {
        let start = self.starts.pop_front().unwrap_or(0);
        // Asked once: a file that is cut between two chunks has not ended there.
        self.size = self.inputs.front().and_then(SortInput::size).unwrap_or(0);
        self.skip = (start % 4096) as usize;
        self.offset = start - self.skip as u64;
        let at_start = start == 0 && !self.only_records;
        self.records = if at_start {
            InputRecords::of_input(self.format)
        } else {
            InputRecords::within(self.format)
        };
        let takes_blanks = start == 0 && self.format.sequences().is_some();
        self.blanks = if takes_blanks { BLANK_BYTES_MAX } else { 0 };
        self.header_due = at_start;
    }

    /// Reads the header of `input`, before anything else of it.
    fn take_header(&mut self, input: &mut SortInput, progress: &dyn Progress) -> Result<()> {
        let Some(rule) = self.header.as_ref().filter(|_| self.header_due) else { return Ok(()) };
        self.header_due = false;
        let header = rule.take(input)?;
        rule.join(&mut self.preamble, header.bytes, input.name())?;
        // Reads of a storage begin at a page.
        self.offset = header.input_bytes;
        if matches!(input, SortInput::Storage(_)) {
            self.skip = (header.input_bytes % 4096) as usize;
            self.offset -= self.skip as u64;
        }
        progress.advance(self.offset);
        Ok(())
    }

    /// The bytes before the records of the first input, once a chunk was read: a header row, a byte order mark.
    pub(crate) fn preamble(&self) -> Option<&[u8]> {
        self.preamble.as_deref().filter(|preamble| !preamble.is_empty())
    }

    /// Whether everything was read.
    pub(crate) fn finished(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Fills `chunk` with the next records. After the end of the inputs, the chunk stays empty.
    pub(crate) fn fill(&mut self, chunk: &mut Chunk, progress: &dyn Progress) -> Result<()> {
        self.fill_followed(chunk, None, progress)
    }

    /// As [`ChunkReader::fill`]; `follower` gets records as they arrive.
    pub(crate) fn fill_followed(
        &mut self,
        chunk: &mut Chunk,
        mut follower: Option<&mut dyn Follower>,
        progress: &dyn Progress,
    ) -> Result<()> {
        assert_eq!(chunk.base, 0, "what was handed out is joined again");
        chunk.spans.clear();
        chunk.taken.clear();
        let room = headroom(self.read_bytes);
        let framed = room - self.carry.len();
        let beyond = self.carry.len().saturating_sub(carry_liked(self.read_bytes));
        let limit = room + self.read_bytes - beyond.next_multiple_of(4096);
        // Pages that an earlier fill touched and this one will not touch are given back to the
        // system.
        chunk.buffer.release(0..framed);
        if beyond > 0 {
            let end = chunk.buffer.len();
            chunk.buffer.release(limit + SLACK_BYTES..end);
        }
        chunk.buffer[framed..room].copy_from_slice(&self.carry);
        self.carry.clear();
        let mut fill = Fill { framed, end: room, searched: 0 };
        while let Some(mut input) = self.inputs.pop_front() {
            self.take_header(&mut input, progress)?;
            let ended = match &mut input {
                SortInput::Storage(storage) => {
                    let storage = Arc::clone(storage);
                    self.fill_from_storage(
                        chunk,
                        &mut fill,
                        limit,
                        &storage,
                        &mut follower,
                        progress,
                    )?
                }
                SortInput::Stream { name, reader } => self.fill_from_stream(
                    chunk,
                    &mut fill,
                    limit,
                    (name, reader),
                    &mut follower,
                    progress,
                )?,
                SortInput::Packed(unpacked) => {
                    let name = unpacked.name().to_owned();
                    self.fill_from_stream(
                        chunk,
                        &mut fill,
                        limit,
                        (&name, unpacked),
                        &mut follower,
                        progress,
                    )?
                }
            };
            if ended {
                self.end_input(chunk, &mut fill, &input, &mut follower)?;
            } else {
                self.inputs.push_front(input);
            }
            if fill.end >= limit || !ended {
                break;
            }
        }
        if let Some(input) = self.inputs.front() {
            let name = input.name().to_owned();
            self.frame_all(chunk, &mut fill, &name, &mut follower)?;
        }
        let tail = fill.framed..fill.end.max(fill.framed);
        if let Some(SortInput::Storage(storage)) = self.inputs.front() {
            chunk.taken.push((Arc::clone(storage), self.offset - tail.len() as u64));
        }
        if tail.len() > room {
            let file = self.inputs.front().map_or("input", SortInput::name).to_owned();
            let begun = &chunk.buffer[tail.start - chunk.base..tail.end - chunk.base];
            if let Some(detail) = self.records.returns_alone(begun) {
                return Err(Error::LastRecord { file, offset: 0, detail });
            }
            return Err(Error::RecordTooLong {
                file,
                offset: self.offset - tail.len() as u64,
                most_bytes: room as u64,
                factor: Some((tail.len() / room + 1).max(2) as u64),
            });
        }
        let base = chunk.base;
        self.carry.extend_from_slice(&chunk.buffer[tail.start - base..tail.end - base]);
        Ok(())
    }

    /// Reads the storage at the front until the chunk is full (false) or it has ended (true).
    fn fill_from_storage(
        &mut self,
        chunk: &mut Chunk,
        fill: &mut Fill,
        limit: usize,
        storage: &Arc<dyn Storage>,
        follower: &mut Option<&mut dyn Follower>,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let size = self.size;
        let completions = Completions::new();
        let clock = storage.clock();
        let mut rest = chunk.buffer.split_off(fill.end - chunk.base);
        let mut space = limit - fill.end;
        let mut next_offset = self.offset;
        let (mut submitted, mut joined) = (0u64, 0u64);
        let in_flight = follower.as_ref().map_or(READ_DEPTH, |follower| follower.lends()) as u64;
        // For reads into lent buffers: where the bytes go, and the part of the buffer that is not
        // read into.
        let mut places: BTreeMap<u64, (Keeping, Buffer)> = BTreeMap::new();
        let mut arrived: BTreeMap<u64, (Buffer, usize)> = BTreeMap::new();
        let mut lengths: VecDeque<usize> = VecDeque::new();
        loop {
            while submitted - joined < in_flight && space > 0 && next_offset < size {
                let want = (size - next_offset).min(space.min(READ_BYTES) as u64) as usize;
                let len = want.next_multiple_of(4096).min(rest.len());
                let after = rest.split_off(len);
                let mut buffer = std::mem::replace(&mut rest, after);
                if let Some(follower) = follower {
                    let end = limit - space + len;
                    let mut lent = follower.lend(end);
                    let unused = lent.split_off(len);
                    let keeping = Keeping {
                        token: submitted,
                        place: std::mem::replace(&mut buffer, lent),
                        end,
                        bytes: 0,
                        filled: false,
                        completions: completions.clone(),
                    };
                    places.insert(submitted, (keeping, unused));
                }
                storage.submit(
                    submitted,
                    Operation::Read { offset: next_offset, buffer },
                    &completions,
                );
                lengths.push_back(want);
                submitted += 1;
                next_offset += want as u64;
                space = space.saturating_sub(len);
            }
            if submitted == joined {
                break;
            }
            let done = {
                let _waiting = wait(WorkerState::Reading);
                completions.wait(&*clock)
            };
            let n = done.result?;
            let mut buffer = done.buffer.expect("a read returns its buffer");
            if let Some(follower) = follower
                && let Some((mut keeping, unused)) = places.remove(&done.token)
            {
                buffer.unsplit(unused).expect("it was cut off");
                keeping.bytes = n;
                follower.keep(buffer, keeping);
                continue;
            }
            arrived.insert(done.token, (buffer, n));
            while let Some((buffer, n)) = arrived.remove(&joined) {
                let want = lengths.pop_front().expect("one a read");
                if n < want {
                    return Err(Error::Input {
                        file: storage.name().to_owned(),
                        offset: self.offset + n as u64,
                        detail: format!(
                            "the file ends here but had {size} bytes when it was opened; leave it alone while it is sorted"
                        ),
                    });
                }
                chunk.buffer.unsplit(buffer).expect("pieces are joined in order");
                fill.end += want;
                self.offset += want as u64;
                joined += 1;
                progress.advance(want as u64);
                self.frame(chunk, fill, storage.name(), follower)?;
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
            }
        }
        chunk.buffer.unsplit(rest).expect("the rest follows the pieces");
        Ok(self.offset >= size)
    }

    fn fill_from_stream(
        &mut self,
        chunk: &mut Chunk,
        fill: &mut Fill,
        limit: usize,
        (name, reader): (&str, &mut dyn Read),
        follower: &mut Option<&mut dyn Follower>,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let mut unframed = 0;
        while fill.end < limit {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            let to = limit.min(fill.end + READ_BYTES);
            let read = {
                let _waiting = wait(WorkerState::Input);
                reader.read(&mut chunk.buffer[fill.end - chunk.base..to - chunk.base])
            };
            let n = match read {
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::reading(name, e)),
            };
            fill.end += n;
            unframed += n;
            self.offset += n as u64;
            progress.advance(n as u64);
            if unframed >= SPAN_BYTES || n == 0 || fill.end == limit {
                self.frame(chunk, fill, name, follower)?;
                unframed = 0;
            }
            if n == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes spans of all whole records that were read.
    fn frame_all(
        &mut self,
        chunk: &mut Chunk,
        fill: &mut Fill,
        name: &str,
        follower: &mut Option<&mut dyn Follower>,
    ) -> Result<()> {
        fill.searched = 0;
        self.frame(chunk, fill, name, follower)
    }

    /// Makes spans of the whole records that were read since the last call, or leaves that to a later
    /// call.
    fn frame(
        &mut self,
        chunk: &mut Chunk,
        fill: &mut Fill,
        name: &str,
        follower: &mut Option<&mut dyn Follower>,
    ) -> Result<()> {
        if self.skip > 0 {
            if fill.end - fill.framed < self.skip {
                return Ok(());
            }
            fill.framed += std::mem::take(&mut self.skip);
        }
        if self.blanks > 0 {
            let unframed = &chunk.buffer[fill.framed - chunk.base..fill.end - chunk.base];
            let blanks = self.format.leading_blanks(unframed).min(self.blanks);
            self.blanks = if blanks == unframed.len() { self.blanks - blanks } else { 0 };
            fill.framed += blanks;
        }
        let unframed_bytes = fill.end - fill.framed;
        if unframed_bytes == 0 || unframed_bytes < 2 * fill.searched {
            return Ok(());
        }
        fill.searched = unframed_bytes;
        if self.records.is_preamble_due() {
            let unframed = &chunk.buffer[fill.framed - chunk.base..fill.end - chunk.base];
            let len = self.records.preamble_len(unframed);
            let place = self.offset - unframed.len() as u64;
            let Some(len) = len.map_err(|quote| stray_quote(name, place, quote))? else {
                return Ok(());
            };
            self.take_preamble(&unframed[..len], name)?;
            fill.framed += len;
        }
        let mut cuts = Vec::new();
        let unframed = &chunk.buffer[fill.framed - chunk.base..fill.end - chunk.base];
        self.format.cut(unframed, SPAN_BYTES, &mut cuts);
        let place = self.offset - unframed.len() as u64;
        let whole = self.records.records(&unframed[..cuts.last().copied().unwrap_or(0)]);
        whole.map_err(|quote| stray_quote(name, place, quote))?;
        let base = fill.framed;
        for cut in cuts {
            fill.push_span(base + cut, chunk, follower);
        }
        let rest = &chunk.buffer[fill.framed - chunk.base..fill.end - chunk.base];
        if let Some(fault) = self.format.fault(rest) {
            return Err(Error::Input {
                file: name.to_owned(),
                offset: self.offset - rest.len() as u64 + fault.at,
                detail: format!("{}; repair the input or choose another format", fault.detail),
            });
        }
        Ok(())
    }

    fn take_preamble(&mut self, preamble: &[u8], name: &str) -> Result<()> {
        match &self.preamble {
            None => self.preamble = Some(preamble.to_vec()),
            Some(first) => check_header(self.format, first, preamble, name)?,
        }
        Ok(())
    }

    /// Completes or refuses the bytes after the last terminator of the input that just ended.
    fn end_input(
        &mut self,
        chunk: &mut Chunk,
        fill: &mut Fill,
        input: &SortInput,
        follower: &mut Option<&mut dyn Follower>,
    ) -> Result<()> {
        self.frame_all(chunk, fill, input.name(), follower)?;
        if fill.framed < fill.end {
            let base = chunk.base;
            match self.records.tail(&chunk.buffer[fill.framed - base..fill.end - base]) {
                Tail::Whole => fill.push_span(fill.end, chunk, follower),
                Tail::Complete(terminator) => {
                    let len = terminator.len();
                    chunk.buffer[fill.end - base..fill.end - base + len]
                        .copy_from_slice(terminator);
                    fill.end += len;
                    // It may be a header row. Places count the bytes as if they were in the input.
                    self.offset += len as u64;
                    let framed = self.frame_all(chunk, fill, input.name(), follower);
                    self.offset -= len as u64;
                    framed?;
                    if fill.framed < fill.end {
                        fill.push_span(fill.end, chunk, follower);
                    }
                }
                Tail::Damaged(how) => {
                    return Err(Error::LastRecord {
                        file: input.name().to_owned(),
                        offset: self.offset - (fill.end - fill.framed) as u64,
                        detail: how,
                    });
                }
            }
        }
        if let SortInput::Storage(storage) = input {
            chunk.taken.push((Arc::clone(storage), self.offset));
        }
        self.begin_input();
        fill.end = fill.end.next_multiple_of(4096);
        fill.framed = fill.end;
        Ok(())
    }
}

impl Fill {
    /// Makes a span of the whole records up to `end`.
    fn push_span(
        &mut self,
        end: usize,
        chunk: &mut Chunk,
        follower: &mut Option<&mut dyn Follower>,
    ) {
        let span = self.framed..end;
        (self.framed, self.searched) = (end, 0);
        chunk.spans.push(span.clone());
        if let Some(follower) = follower {
            chunk.hand(span, *follower);
        }
    }
}

/// Blank lines before the first sequence of an input have no more bytes than this: a chunk is never empty because of
/// them.
const BLANK_BYTES_MAX: usize = 64 << 10;

/// Refuses a preamble with other columns than that of the first input.
pub(crate) fn check_header(
    format: Format,
    first: &[u8],
    preamble: &[u8],
    name: &str,
) -> Result<()> {
    match CsvHeader::difference_of(format, first, preamble) {
        None => Ok(()),
        Some(difference) => Err(Error::Header { file: name.to_owned(), difference }),
    }
}

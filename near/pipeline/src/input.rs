//! The bytes of all inputs, one after the other, decompressed where they are compressed.
//!
//! If an input does not end with the terminator of its last record and another input follows, the terminator
//! is added, so that records of two inputs never become one.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use merganser_sort::Budget;
use merganser_sort::error::InputError;
use merganser_sort::journal::FileNote;
use merganser_sort::run::magic::ContentKind;
use merganser_storage::{Storage, StorageExt};

use super::error::PipelineError;
use merganser_map::MapInput;

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// An input of a pipeline.
pub struct PipelineInput {
    /// Its name, for errors and for the journal.
    pub name: String,
    /// The file when the pipeline began; `None` for a stream, which can be read only once.
    pub note: Option<FileNote>,
    /// Its bytes.
    pub source: InputSource,
}

/// Where the bytes of an input come from.
pub enum InputSource {
    /// A file. Its first bytes say whether it is compressed.
    File(Arc<dyn Storage>),
    /// A pipe.
    Stream(Box<dyn Read + Send>),
}

impl PipelineInput {
    /// An input to read, of the same file again; a stream is given away.
    fn open(&mut self, content: ContentKind, budget: &Budget) -> Result<OpenInput, PipelineError> {
        let input = match &mut self.source {
            InputSource::File(storage) => MapInput::detect(Arc::clone(storage), content, budget)?,
            InputSource::Stream(reader) => {
                let reader = std::mem::replace(reader, Box::new(io::empty()));
                MapInput::detect_stream(self.name.clone(), reader, content, budget)
            }
        };
        let bytes = match input {
            MapInput::Storage { storage, .. } => {
                let size = storage.size();
                InputBytes::Plain { storage, size }
            }
            MapInput::Stream { reader, .. } => InputBytes::Reader(reader),
        };
        Ok(OpenInput { name: self.name.clone(), bytes, at: 0 })
    }
}

/// Bytes of all inputs after decompression. Compressed inputs are read once for it.
///
/// # Errors
/// [`PipelineError::NoSize`] for a stream; inputs that fail; `stop`.
pub(super) fn total_bytes(
    inputs: &mut [PipelineInput],
    content: ContentKind,
    budget: &Budget,
    stop: &dyn Fn() -> bool,
) -> Result<u64, PipelineError> {
    let mut total = 0;
    for input in inputs {
        if matches!(input.source, InputSource::Stream(_)) {
            return Err(PipelineError::NoSize { input: input.name.clone() });
        }
        let mut opened = input.open(content, budget)?;
        if let InputBytes::Plain { size, .. } = opened.bytes {
            total += size;
            continue;
        }
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if stop() {
                return Err(PipelineError::Cancelled);
            }
            match opened.read(&mut buffer)? {
                0 => break,
                read => total += read as u64,
            }
        }
    }
    Ok(total)
}

struct OpenInput {
    name: String,
    bytes: InputBytes,
    /// Bytes that were read or skipped.
    at: u64,
}

enum InputBytes {
    Plain { storage: Arc<dyn Storage>, size: u64 },
    Reader(Box<dyn Read + Send>),
}

impl OpenInput {
    /// Reads the next bytes; 0 at the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, PipelineError> {
        let read = match &mut self.bytes {
            InputBytes::Plain { storage, size } => {
                let left = usize::try_from(*size - self.at).unwrap_or(usize::MAX);
                let want = out.len().min(left);
                if want == 0 {
                    return Ok(0);
                }
                let read = storage
                    .read_at(self.at, &mut out[..want])
                    .map_err(merganser_sort::Error::Io)?;
                if read == 0 {
                    let detail = format!(
                        "the file ends here, but had {size} bytes when it was opened; don't change an input while it is read"
                    );
                    let (file, offset) = (self.name.clone(), self.at);
                    return Err(merganser_sort::Error::Input { file, offset, detail }.into());
                }
                read
            }
            InputBytes::Reader(reader) => loop {
                match reader.read(out) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(self.failed(error)),
                    Ok(read) => break read,
                }
            },
        };
        self.at += read as u64;
        Ok(read)
    }

    /// Skips up to `bytes`; returns how many, and the last of them.
    fn skip(&mut self, bytes: u64, buffer: &mut [u8]) -> Result<(u64, Option<u8>), PipelineError> {
        if let InputBytes::Plain { size, .. } = &self.bytes {
            let skipped = bytes.min(*size - self.at);
            if skipped == 0 {
                return Ok((0, None));
            }
            self.at += skipped - 1;
            self.read(&mut buffer[..1])?;
            return Ok((skipped, Some(buffer[0])));
        }
        let want = usize::try_from(bytes).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.read(&mut buffer[..want])?;
        Ok((read as u64, read.checked_sub(1).map(|last| buffer[last])))
    }

    fn failed(&self, cause: io::Error) -> PipelineError {
        let error = InputError { name: self.name.clone(), cause };
        merganser_sort::Error::Io(io::Error::other(error)).into()
    }
}

/// The next part of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextInput {
    /// Bytes, in [`JoinedInputs::bytes`].
    Bytes,
    /// The next input begins.
    Input,
    /// Nothing.
    End,
}

/// All inputs.
pub(super) struct JoinedInputs<'a> {
    waiting: std::slice::IterMut<'a, PipelineInput>,
    content: ContentKind,
    budget: Budget,
    current: Option<OpenInput>,
    /// Nothing was read of the current input yet.
    fresh: bool,
    /// The beginning of the current input was not announced yet.
    begin_due: bool,
    terminator: Option<u8>,
    /// The terminator, which was added to the last input and is not taken yet.
    joint: Option<[u8; 1]>,
    buffer: Vec<u8>,
    /// The part of the buffer that is not taken yet.
    filled: Range<usize>,
    /// The last byte that was taken.
    last: Option<u8>,
}

impl<'a> JoinedInputs<'a> {
    pub(super) fn new(
        inputs: &'a mut [PipelineInput],
        terminator: Option<u8>,
        content: ContentKind,
        budget: &Budget,
    ) -> Self {
        JoinedInputs {
            waiting: inputs.iter_mut(),
            content,
            budget: budget.clone(),
            current: None,
            fresh: false,
            begin_due: false,
            terminator,
            joint: None,
            buffer: vec![0; READ_BYTES],
            filled: 0..0,
            last: None,
        }
    }

    /// The name of the input that bytes come from.
    pub(super) fn name(&self) -> String {
        self.current.as_ref().map(|opened| opened.name.clone()).unwrap_or_default()
    }

    /// Place in its input of the next byte of the buffer.
    pub(super) fn offset(&self) -> u64 {
        let read = self.current.as_ref().map_or(0, |opened| opened.at);
        read - self.filled.len() as u64
    }

    /// The next part of the inputs; reads if nothing is left in the buffer.
    ///
    /// # Errors
    /// Inputs that fail.
    pub(super) fn next(&mut self) -> Result<NextInput, PipelineError> {
        loop {
            if self.joint.is_some() {
                return Ok(NextInput::Bytes);
            }
            if std::mem::take(&mut self.begin_due) {
                return Ok(NextInput::Input);
            }
            if !self.filled.is_empty() {
                return Ok(NextInput::Bytes);
            }
            let Some(opened) = &mut self.current else {
                let Some(input) = self.waiting.next() else { return Ok(NextInput::End) };
                self.current = Some(input.open(self.content, &self.budget)?);
                self.fresh = true;
                continue;
            };
            let read = opened.read(&mut self.buffer)?;
            self.filled = 0..read;
            if read == 0 {
                self.current = None;
            } else if std::mem::take(&mut self.fresh) {
                self.begin_due = true;
                let lacking = |terminator: &u8| self.last.is_some_and(|last| last != *terminator);
                self.joint = self.terminator.filter(lacking).map(|terminator| [terminator]);
            }
        }
    }

    /// The bytes that come next.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.joint {
            Some(joint) => joint,
            None => &self.buffer[self.filled.clone()],
        }
    }

    /// Takes the first of them.
    pub(super) fn take(&mut self, bytes: usize) {
        if let Some(last) = bytes.checked_sub(1) {
            self.last = Some(self.bytes()[last]);
            match self.joint {
                Some(_) => self.joint = None,
                None => self.filled.start += bytes,
            }
        }
    }

    /// Takes `bytes` without looking at them; whether there are enough.
    ///
    /// # Errors
    /// Inputs that fail; `stop`.
    pub(super) fn skip(
        &mut self,
        mut bytes: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, PipelineError> {
        while bytes > 0 {
            if stop() {
                return Err(PipelineError::Cancelled);
            }
            let drained = self.filled.is_empty() && self.joint.is_none() && !self.begin_due;
            if let Some(opened) = self.current.as_mut().filter(|_| drained && !self.fresh) {
                let (skipped, last) = opened.skip(bytes, &mut self.buffer)?;
                if skipped == 0 {
                    self.current = None;
                }
                self.last = last.or(self.last);
                bytes -= skipped;
                continue;
            }
            match self.next()? {
                NextInput::Bytes => {
                    let most = usize::try_from(bytes).unwrap_or(usize::MAX);
                    let taken = self.bytes().len().min(most);
                    self.take(taken);
                    bytes -= taken as u64;
                }
                NextInput::Input => {}
                NextInput::End => return Ok(false),
            }
        }
        Ok(true)
    }
}

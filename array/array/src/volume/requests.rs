//! Requests of the users of a volume, several at a time.

use std::collections::VecDeque;
use std::io;

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{Buffer, Completion, Completions, Operation};

use super::VolumeParts;
use crate::bytes::{BLOCK, PAGE, PageBytes};
use crate::error::{Error, Result};
use crate::log::record::{ENTRIES_MAX, RecordEntry};
use crate::overlay::PageLocation;

/// A request that waits.
pub(super) struct Queued {
    pub(super) token: u64,
    pub(super) operation: Operation,
    pub(super) completions: Completions,
}

/// Pages that are written together at most, by requests that came at the same time.
const TOGETHER_PAGES: usize = 1024;
/// A trim is cut into entries of this many pages.
const TRIM_PAGES_MAX: u64 = 1 << 24;

impl Queued {
    fn done(token: u64, buffer: Option<Buffer>, completions: &Completions, result: Result<usize>) {
        let result = result.map_err(|error| error.to_io());
        completions.post(Completion { token, buffer, result });
    }
}

/// A write or trim that is done: its token, the buffer that goes back, and who waits.
type FinishedRequest = (u64, Option<Buffer>, Completions);

/// Writes and trims that are done, and whose answers wait until they are durable.
#[derive(Default)]
pub(super) struct Unanswered {
    answers: Vec<FinishedRequest>,
    /// Requests that were served since the first of them.
    served: usize,
}

/// Requests that may be served while an answer waits for company: it then waits for no more than these.
const SERVED_MEANWHILE: usize = 64;

impl VolumeParts {
    /// Serves requests in their order; whole-page writes next to one another go together.
    pub(super) fn serve(&mut self, mut waiting: VecDeque<Queued>, size: u64) {
        while let Some(next) = waiting.pop_front() {
            if !self.unanswered.answers.is_empty() {
                self.unanswered.served += 1;
                if self.unanswered.served > SERVED_MEANWHILE {
                    self.answer();
                }
            }
            let Queued { token, operation, completions } = next;
            let end = match &operation {
                Operation::Write { offset, buffer } => offset.checked_add(u64_of(buffer.len())),
                Operation::Discard { offset, len } | Operation::Allocate { offset, len } => {
                    offset.checked_add(*len)
                }
                Operation::SetSize { size: wanted } if *wanted != size => None,
                _ => Some(0),
            };
            if end.is_none_or(|end| end > size) {
                let error = self.beyond(&operation, size);
                let buffer = match operation {
                    Operation::Write { buffer, .. } => Some(buffer),
                    _ => None,
                };
                Queued::done(token, buffer, &completions, Err(error));
                continue;
            }
            match operation {
                Operation::Read { offset, mut buffer } => {
                    let result = self.read(offset, &mut buffer, size);
                    Queued::done(token, Some(buffer), &completions, result);
                }
                Operation::Write { offset, buffer } => {
                    let mut together = vec![(token, offset, buffer, completions)];
                    take_writes(&mut waiting, &mut together, size);
                    self.write_together(together);
                }
                Operation::Sync => {
                    self.store.counters.flushes += 1;
                    let result = self.writing(VolumeParts::flush).map(|()| 0);
                    Queued::done(token, None, &completions, result);
                }
                Operation::Discard { offset, len } => {
                    let result = self.writing(|state| state.trim(offset, len));
                    self.ended(result, vec![(token, None, completions)]);
                }
                Operation::Allocate { .. } => {
                    Queued::done(token, None, &completions, self.allocate().map(|()| 0));
                }
                Operation::SetSize { .. } => Queued::done(token, None, &completions, Ok(0)),
            }
        }
    }

    /// Space for all pages is there from the start, unless the volume is thin. A thin one can't promise
    /// it: a page that is shared now needs its own space when it is overwritten.
    fn allocate(&self) -> Result<()> {
        if !self.store.superblock().thin {
            return Ok(());
        }
        let detail =
            "a thin volume can't reserve space: its data members may become full".to_owned();
        Err(Error::Unsupported { volume: self.store.name.clone(), detail })
    }

    fn beyond(&self, operation: &Operation, size: u64) -> Error {
        let what = match operation {
            Operation::SetSize { .. } => "the size of a volume can't be changed",
            Operation::Discard { .. } => "a trim passes its end",
            Operation::Allocate { .. } => "a reservation passes its end",
            _ => "a write passes its end",
        };
        let detail = format!("{what}; it has {size} bytes");
        Error::Request { volume: self.store.name.clone(), detail }
    }

    /// Makes all writes before durable.
    pub(super) fn flush(&mut self) -> Result<()> {
        if let Some(log) = &mut self.log {
            log.sync()?;
        }
        if self.log.is_none() || self.store.has_changes() {
            // Writes went around the buffer.
            self.note_log();
            self.store.commit()?;
        }
        Ok(())
    }

    /// Answers writes or trims that ended together: at once, or with [`VolumeParts::answer`] when they must be durable.
    fn ended(&mut self, result: Result<()>, requests: Vec<FinishedRequest>) {
        if result.is_ok() && self.durable_writes {
            self.unanswered.answers.extend(requests);
            return;
        }
        give(requests, result);
    }

    /// Makes all that was written durable, and answers it: one sync for all writes that came meanwhile. False if
    /// no answer waits.
    pub(super) fn answer(&mut self) -> bool {
        let Unanswered { answers, .. } = std::mem::take(&mut self.unanswered);
        if answers.is_empty() {
            return false;
        }
        let result = self.writing(VolumeParts::flush);
        give(answers, result);
        true
    }

    fn read(&mut self, offset: u64, out: &mut [u8], size: u64) -> Result<usize> {
        let len = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        if len == 0 {
            return Ok(0);
        }
        let out = &mut out[..len];
        let (first, inside) = (offset / BLOCK, usize_of(offset % BLOCK));
        if inside == 0 && len.is_multiple_of(PAGE) {
            self.read_pages(first, out)?;
        } else {
            let count = (inside + len).div_ceil(PAGE);
            let mut pages = vec![0; count * PAGE];
            self.read_pages(first, &mut pages)?;
            out.copy_from_slice(&pages[inside..inside + len]);
        }
        Ok(len)
    }

    /// Reads whole pages.
    fn read_pages(&mut self, first: u64, out: &mut [u8]) -> Result<()> {
        let count = out.len() / PAGE;
        self.store.counters.pages_read += u64_of(count);
        let mut at = 0;
        while at < count {
            let found = self.overlay.find(first + u64_of(at));
            let mut run = 1;
            while at + run < count
                && found == PageLocation::Store
                && self.overlay.find(first + u64_of(at + run)) == PageLocation::Store
            {
                run += 1;
            }
            let bytes = &mut out[at * PAGE..(at + run) * PAGE];
            match found {
                PageLocation::Zeros => bytes.fill(0),
                PageLocation::Log(slot) => self.read_buffered(first + u64_of(at), slot, bytes)?,
                PageLocation::Store => self.store.read(first + u64_of(at), bytes)?,
            }
            at += run;
        }
        Ok(())
    }

    /// Writes of several requests. If one of them can't be done, each is done again on its own, in the same order, and
    /// has its own result.
    fn write_together(&mut self, writes: Vec<(u64, u64, Buffer, Completions)>) {
        let parts: Vec<(u64, &[u8])> =
            writes.iter().map(|(_, offset, buffer, _)| (*offset, &buffer[..])).collect();
        let pages_written = self.store.counters.pages_written;
        let result = self.writing(|state| state.write(&parts));
        let is_one = writes.len() == 1;
        let request = |(token, _, buffer, completions)| (token, Some(buffer), completions);
        if is_one || result.is_ok() {
            return self.ended(result, writes.into_iter().map(request).collect());
        }
        self.store.counters.pages_written = pages_written;
        for write in writes {
            let result = self.writing(|state| state.write(&[(write.1, &write.2)]));
            self.ended(result, vec![request(write)]);
        }
    }

    fn write(&mut self, parts: &[(u64, &[u8])]) -> Result<()> {
        let mut whole: Vec<(u64, &PageBytes)> = Vec::new();
        for &(offset, bytes) in parts {
            let (mut at, mut bytes) = (offset, bytes);
            while !bytes.is_empty() {
                let (page, inside) = (at / BLOCK, usize_of(at % BLOCK));
                let len = bytes.len().min(PAGE - inside);
                let (own, rest) = bytes.split_at(len);
                if let Ok(content) = <&PageBytes>::try_from(own) {
                    whole.push((page, content));
                } else {
                    // The rest of the page is read first, and may be in what goes together.
                    self.write_pages(&std::mem::take(&mut whole))?;
                    let mut content = [0; PAGE];
                    self.read_pages(page, &mut content)?;
                    content[inside..inside + len].copy_from_slice(own);
                    self.write_pages(&[(page, &content)])?;
                }
                (at, bytes) = (at + u64_of(len), rest);
            }
        }
        self.write_pages(&whole)
    }

    fn write_pages(&mut self, pages: &[(u64, &PageBytes)]) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        if self.log.is_some() && !self.around {
            self.append_pages(pages)?;
        } else if self.log.is_some() {
            for pages in pages.chunks(ENTRIES_MAX) {
                match self.goes_around(pages.len()) {
                    true => self.write_around(pages)?,
                    false => self.append_pages(pages)?,
                }
            }
        } else {
            for (page, content) in pages {
                self.store.put(*page, content)?;
            }
        }
        self.store.counters.pages_written += u64_of(pages.len());
        Ok(())
    }

    /// Makes a stretch read as zeros. Pages that are not wholly inside are written.
    fn trim(&mut self, offset: u64, len: u64) -> Result<()> {
        let (end, page) = (offset + len, BLOCK);
        let (first, last) = (offset.div_ceil(page), end / page);
        if first > last || len == 0 {
            // Inside one page.
            return self.write(&[(offset, &vec![0; usize_of(len)])]);
        }
        let head = usize_of(first * page - offset);
        let tail = usize_of(end - last * page);
        if head > 0 {
            self.write(&[(offset, &vec![0; head])])?;
        }
        if tail > 0 {
            self.write(&[(last * page, &vec![0; tail])])?;
        }
        let count = last - first;
        if count == 0 {
            return Ok(());
        }
        self.store.counters.pages_trimmed += count;
        if self.log.is_none() {
            return self.store.unmap(first, count);
        }
        let cuts = (first..last).step_by(usize_of(TRIM_PAGES_MAX));
        let entries = cuts.map(|page| {
            let count = TRIM_PAGES_MAX.min(last - page);
            RecordEntry::Trim { page, count: u32::try_from(count).expect("at most 2^24") }
        });
        let entries: Vec<RecordEntry> = entries.collect();
        self.append(&entries, &[])?;
        self.store.counters.pages_absorbed += std::mem::take(&mut self.overlay.absorbed);
        Ok(())
    }
}

/// Gives all requests one result.
fn give(requests: Vec<FinishedRequest>, result: Result<()>) {
    let failed = result.err().map(|error| error.to_io());
    for (token, buffer, completions) in requests {
        let result = match &failed {
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Ok(buffer.as_ref().map_or(0, |buffer| buffer.len())),
        };
        completions.post(Completion { token, buffer, result });
    }
}

/// Takes the writes that follow.
fn take_writes(
    waiting: &mut VecDeque<Queued>,
    together: &mut Vec<(u64, u64, Buffer, Completions)>,
    size: u64,
) {
    let mut pages = together[0].2.len() / PAGE;
    while let Some(Queued { operation: Operation::Write { offset, buffer }, .. }) = waiting.front()
    {
        let fits = offset.checked_add(u64_of(buffer.len())).is_some_and(|end| end <= size);
        pages += buffer.len() / PAGE;
        if !fits || pages > TOGETHER_PAGES {
            break;
        }
        let next = waiting.pop_front().expect("there is one");
        if let Queued { token, operation: Operation::Write { offset, buffer }, completions } = next
        {
            together.push((token, offset, buffer, completions));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use merganser_storage::memory::MemoryStorage;
    use merganser_storage::{Storage, StorageExt};

    use super::*;
    use crate::{Members, OpenOptions, Volume, VolumeSettings};

    /// Three writes that came at the same time. The first needs the rest of a page that is damaged.
    #[test]
    fn a_write_that_fails_leaves_those_that_came_with_it() {
        let disk = MemoryStorage::new("ssd");
        disk.run(Operation::SetSize { size: 32 << 20 }).expect("sized");
        let members = Members { data: vec![Arc::clone(&disk) as Arc<dyn Storage>], buffer: vec![] };
        Volume::create("vol", &members, &VolumeSettings::new(8 << 20), false).expect("made");
        let volume = Volume::open("vol", &members, OpenOptions::default()).expect("opens");
        let old = [7; PAGE];
        volume.write_at(0, &old).expect("written");
        let places = (0..disk.size()).step_by(PAGE);
        let mut stored = places.filter(|&at| disk.read_vec(at, PAGE).expect("reads") == old);
        disk.write_at(stored.next().expect("stored") + 5, b"damage").expect("written");

        let pages_written = volume.counters().pages_written;
        let completions = Completions::new();
        let write = |token, offset, len: usize| {
            let mut buffer = Buffer::try_new(len).expect("memory");
            buffer.fill(token as u8);
            let operation = Operation::Write { offset, buffer };
            Queued { token, operation, completions: completions.clone() }
        };
        let page = PAGE as u64;
        let waiting = [write(1, 10, 20), write(2, 5 * page, PAGE), write(3, 5 * page + 8, 8)];
        let mut state = volume.lock();
        state.serve(waiting.into(), volume.size());
        state.answer();
        drop(state);
        for _ in 0..3 {
            let done = completions.poll().expect("all are answered");
            let len = done.buffer.expect("comes back").len();
            match done.token {
                1 => assert!(done.result.expect_err("damaged").to_string().contains("page 0")),
                _ => assert_eq!(done.result.expect("written"), len),
            }
        }
        assert_eq!(volume.counters().pages_written, pages_written + 2);
        let expected = [&[2; 8][..], &[3; 8], &[2; PAGE - 16]].concat();
        assert_eq!(volume.read_vec(5 * page, PAGE).expect("reads"), expected);
    }
}

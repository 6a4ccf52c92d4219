//! A host before a modelled SSD: one program's thread, a page cache, write-back. What the ActiveSort
//! experiments run on; time is the model's.
//!
//! ```text
//!   program ── read, write, work ──► page cache ──► requests ──► Ssd (lab/device)
//!      its own time, `now`            LRU of blocks    in flight    its own events
//!                                     write-back behind the program's back
//! ```
//!
//! A direct host has no cache: reads and writes are split into requests as a block layer does, all
//! of one call in flight together, and the call ends when the last of them has.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;

use merganser_device::device::{CompletedCommand, Device, IoCommand};
use merganser_device::request::{RequestKind, SimTime};
use merganser_device::ssd::Ssd;
use merganser_storage::Buffer;

use crate::error::ExperimentError;

/// What a block layer splits calls into: `max_sectors_kb` of Linux 3.2.
pub(crate) const REQUEST_BYTES: u64 = 512 << 10;
/// A block of the page cache, and what one read ahead brings: `read_ahead_kb` of Linux 3.2.
pub(crate) const BLOCK_BYTES: u64 = 128 << 10;
/// Requests of write-back in flight.
const WRITE_BACK_DEPTH: usize = 2;

/// The page cache's sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheSize {
    /// Bytes for blocks.
    pub bytes: u64,
    /// All memory: a tenth of it may be dirty before write-back begins, and a fifth before
    /// writers wait: `dirty_background_ratio` and `dirty_ratio` of Linux.
    pub memory_bytes: u64,
}

/// The content by offset, for devices whose bytes matter: fills a buffer for an offset.
pub(crate) type FillContent = Box<dyn Fn(u64, &mut [u8])>;

/// The host.
pub(crate) struct ModelledHost {
    ssd: Ssd,
    /// The program's time, in nanoseconds.
    now: u64,
    next_id: u64,
    done: HashMap<u64, CompletedCommand>,
    content: Option<FillContent>,
    cache: Option<BlockCache>,
    /// Copies between program and cache, in bytes per second.
    copy_bytes_per_second: u64,
    read_bytes: u64,
    written_bytes: u64,
}

/// Blocks by number.
struct BlockCache {
    blocks_max: usize,
    background: usize,
    limit: usize,
    stamps: HashMap<u64, u64>,
    oldest: BTreeMap<u64, u64>,
    next_stamp: u64,
    /// In the order in which they became so.
    dirty: VecDeque<u64>,
    is_dirty: HashSet<u64>,
    reading: HashMap<u64, u64>,
    writing: HashMap<u64, Range<u64>>,
    /// Whether write-back continues to the last block.
    syncing: bool,
}

impl ModelledHost {
    /// A host whose writes store what `content` says, or nothing; with a page cache, or direct.
    pub(crate) fn new(
        ssd: Ssd,
        content: Option<FillContent>,
        cache: Option<CacheSize>,
        copy: u64,
    ) -> Self {
        ModelledHost {
            ssd,
            now: 0,
            next_id: 0,
            done: HashMap::new(),
            content,
            cache: cache.map(BlockCache::new),
            copy_bytes_per_second: copy,
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// The program's time, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The device.
    pub(crate) fn ssd(&self) -> &Ssd {
        &self.ssd
    }

    /// Bytes that the device has read and written for the host.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (self.read_bytes, self.written_bytes)
    }

    /// The program computes for so long.
    pub(crate) fn work(&mut self, ns: u64) {
        self.now += ns;
        self.catch_up();
    }

    /// Writes `range`.
    pub(crate) fn write(&mut self, range: Range<u64>) -> Result<(), ExperimentError> {
        if self.cache.is_none() {
            let requests = split(range, REQUEST_BYTES);
            let ids: Vec<u64> = requests.map(|part| self.start_write(part)).collect();
            return ids.into_iter().try_for_each(|id| self.wait(id).map(|_| ()));
        }
        for part in split(range, BLOCK_BYTES) {
            self.work(nanoseconds(part.end - part.start, self.copy_bytes_per_second));
            let block = part.start / BLOCK_BYTES;
            loop {
                let cache = self.cache.as_mut().expect("just seen");
                if cache.is_dirty.len() < cache.limit && cache.make_room() {
                    cache.touch(block);
                    if cache.is_dirty.insert(block) {
                        cache.dirty.push_back(block);
                    }
                    break;
                }
                self.turn_or_stuck()?;
            }
            self.write_back(self.now);
        }
        Ok(())
    }

    /// Waits until all that was written is on the device.
    pub(crate) fn sync(&mut self) -> Result<(), ExperimentError> {
        while let Some(cache) = &mut self.cache {
            cache.syncing = true;
            if cache.is_dirty.is_empty() && cache.writing.is_empty() {
                cache.syncing = false;
                break;
            }
            self.write_back(self.now);
            self.turn_or_stuck()?;
        }
        Ok(())
    }

    /// Reads `range`, and gives what came from the device to `take`: from the cache comes nothing.
    /// The next `ahead` bytes behind it belong to the same file.
    pub(crate) fn read(
        &mut self,
        range: Range<u64>,
        ahead: u64,
        mut take: impl FnMut(u64, &[u8]),
    ) -> Result<(), ExperimentError> {
        if self.cache.is_none() {
            let requests = split(range, REQUEST_BYTES);
            let ids: Vec<(u64, u64)> =
                requests.map(|part| (part.start, self.start_read(part))).collect();
            for (at, id) in ids {
                let buffer = self.wait(id)?;
                take(at, &buffer);
            }
            return Ok(());
        }
        let file_end = range.end + ahead;
        for part in split(range, BLOCK_BYTES) {
            let block = part.start / BLOCK_BYTES;
            self.fetch(block, file_end)?;
            self.fetch(block + 1, file_end)?;
            let cache = self.cache.as_mut().expect("just seen");
            if let Some(id) = cache.reading.remove(&block) {
                let buffer = self.wait(id)?;
                take(block * BLOCK_BYTES, &buffer);
            }
            self.cache.as_mut().expect("just seen").touch(block);
            self.work(nanoseconds(part.end - part.start, self.copy_bytes_per_second));
        }
        Ok(())
    }

    /// Starts to read a block that is not in the cache.
    fn fetch(&mut self, block: u64, file_end: u64) -> Result<(), ExperimentError> {
        let range = block * BLOCK_BYTES..((block + 1) * BLOCK_BYTES).min(file_end);
        let cache = self.cache.as_ref().expect("a host with a cache");
        if range.is_empty() || cache.stamps.contains_key(&block) {
            return Ok(());
        }
        while !self.cache.as_mut().expect("it has one").make_room() {
            self.turn_or_stuck()?;
        }
        let id = self.start_read(range);
        let cache = self.cache.as_mut().expect("it has one");
        cache.touch(block);
        cache.reading.insert(block, id);
        Ok(())
    }

    /// Writes a command of a program inside the device, past the cache.
    pub(crate) fn command(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ExperimentError> {
        let mut buffer = Buffer::new(bytes.len());
        buffer.copy_from_slice(bytes);
        let len = bytes.len() as u64;
        let id = self.submit(RequestKind::Write, offset, len, Some(buffer));
        self.wait(id).map(|_| ())
    }

    fn start_read(&mut self, range: Range<u64>) -> u64 {
        let len = range.end - range.start;
        self.read_bytes += len;
        let buffer = self.content.is_some().then(|| Buffer::new(len as usize));
        self.submit(RequestKind::Read, range.start, len, buffer)
    }

    fn start_write(&mut self, range: Range<u64>) -> u64 {
        let len = range.end - range.start;
        self.written_bytes += len;
        let buffer = self.filled(&range);
        self.submit(RequestKind::Write, range.start, len, buffer)
    }

    /// The bytes to write to `range`.
    fn filled(&self, range: &Range<u64>) -> Option<Buffer> {
        let content = self.content.as_ref()?;
        let mut buffer = Buffer::new((range.end - range.start) as usize);
        content(range.start, &mut buffer);
        Some(buffer)
    }

    /// The program starts a request.
    fn submit(&mut self, kind: RequestKind, offset: u64, len: u64, buffer: Option<Buffer>) -> u64 {
        self.catch_up();
        let at = SimTime(self.now.max(self.ssd.now().0));
        self.next_id += 1;
        let id = self.next_id;
        self.ssd.submit(at, IoCommand { id, kind, offset, len, buffer });
        id
    }

    /// Lets the device get as far as the program is.
    fn catch_up(&mut self) {
        while self.ssd.next_at().is_some_and(|at| at.0 <= self.now) {
            self.turn();
        }
    }

    /// Lets the device's next event happen; false when nothing is under way.
    fn turn(&mut self) -> bool {
        let more = self.ssd.advance();
        let mut wrote = false;
        while let Some(done) = self.ssd.completed() {
            let written = self.cache.as_mut().and_then(|cache| cache.writing.remove(&done.id));
            if written.is_none() {
                self.done.insert(done.id, done);
            }
            wrote = true;
        }
        if wrote {
            self.write_back(self.ssd.now().0);
        }
        more
    }

    /// The program waits for anything: its time moves with the device's.
    fn turn_or_stuck(&mut self) -> Result<(), ExperimentError> {
        if !self.turn() {
            return Err(ExperimentError::Model("the modelled host waits for nothing".to_owned()));
        }
        self.now = self.now.max(self.ssd.now().0);
        Ok(())
    }

    fn wait(&mut self, id: u64) -> Result<Buffer, ExperimentError> {
        let done = loop {
            if let Some(done) = self.done.remove(&id) {
                break done;
            }
            if !self.turn() {
                return Err(ExperimentError::Model(
                    "the modelled device has lost a request".to_owned(),
                ));
            }
        };
        self.now = self.now.max(done.at.0);
        done.result.map_err(|e| ExperimentError::Model(format!("the modelled device: {e}")))?;
        Ok(done.buffer.unwrap_or_else(|| Buffer::new(0)))
    }

    /// Starts write-back of the oldest dirty blocks, neighbours together.
    fn write_back(&mut self, at: u64) {
        let at = at.max(self.ssd.now().0);
        loop {
            let Some(cache) = &mut self.cache else { return };
            let wanted = cache.syncing || cache.is_dirty.len() > cache.background;
            if !wanted || cache.writing.len() >= WRITE_BACK_DEPTH {
                return;
            }
            let Some(first) = cache.dirty.pop_front() else { return };
            let mut end = first + 1;
            while end - first < REQUEST_BYTES / BLOCK_BYTES && cache.dirty.front() == Some(&end) {
                cache.dirty.pop_front();
                end += 1;
            }
            for block in first..end {
                cache.is_dirty.remove(&block);
            }
            self.next_id += 1;
            let id = self.next_id;
            let range = first * BLOCK_BYTES..end * BLOCK_BYTES;
            cache.writing.insert(id, first..end);
            let len = range.end - range.start;
            self.written_bytes += len;
            let buffer = self.filled(&range);
            let (kind, offset) = (RequestKind::Write, range.start);
            self.ssd.submit(SimTime(at), IoCommand { id, kind, offset, len, buffer });
        }
    }
}

impl BlockCache {
    fn new(size: CacheSize) -> Self {
        let blocks = |bytes: u64| ((bytes / BLOCK_BYTES) as usize).max(4);
        let blocks_max = blocks(size.bytes);
        let limit = blocks(size.memory_bytes / 5).min(blocks_max / 2);
        BlockCache {
            blocks_max,
            background: blocks(size.memory_bytes / 10).min(limit / 2),
            limit,
            stamps: HashMap::new(),
            oldest: BTreeMap::new(),
            next_stamp: 0,
            dirty: VecDeque::new(),
            is_dirty: HashSet::new(),
            reading: HashMap::new(),
            writing: HashMap::new(),
            syncing: false,
        }
    }

    /// Makes `block` the youngest, and has it.
    fn touch(&mut self, block: u64) {
        if let Some(before) = self.stamps.insert(block, self.next_stamp) {
            self.oldest.remove(&before);
        }
        self.oldest.insert(self.next_stamp, block);
        self.next_stamp += 1;
    }

    fn drop_block(&mut self, block: u64) {
        if let Some(stamp) = self.stamps.remove(&block) {
            self.oldest.remove(&stamp);
        }
        self.reading.remove(&block);
    }

    /// Makes sure that one more block fits; false when all blocks must stay for now.
    fn make_room(&mut self) -> bool {
        while self.stamps.len() >= self.blocks_max {
            let writing = |block: &u64| self.writing.values().any(|range| range.contains(block));
            let stays = |block: &u64| {
                self.is_dirty.contains(block) || self.reading.contains_key(block) || writing(block)
            };
            let Some(block) = self.oldest.values().find(|block| !stays(block)).copied() else {
                return false;
            };
            self.drop_block(block);
        }
        true
    }
}

/// `range` in parts that do not cross multiples of `bytes`.
fn split(range: Range<u64>, bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let part = at..((at / bytes + 1) * bytes).min(range.end);
        at = part.end;
        (!part.is_empty()).then_some(part)
    })
}

/// How long `bytes` take.
pub(crate) fn nanoseconds(bytes: u64, a_second: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(a_second)) as u64
}

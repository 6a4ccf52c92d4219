//! An open run: its fences in memory, its blocks verified as they are read.

use std::ops::Range;
use std::sync::Arc;

use merganser_storage::{Buffer, Completions, Operation, Storage, StorageExt};

use super::format::{
    self, BLOCK_BYTES, BlockEntry, Compression, ENTRY_BYTES_MAX, ENTRY_FIXED_BYTES, FOOTER_BYTES,
    Footer, HEADER_BYTES, NO_START, PIECE_BYTES, SIZE_BYTES_MAX, corrupt,
};
use super::index::{FENCES, Fences, RunIndex, index_bytes};
use crate::budget::Reservation;
use crate::{Budget, Result};

/// A finished run. Cheap to share; holds about 30 bytes and one key for each block.
pub struct Run {
    storage: Arc<dyn Storage>,
    footer: Footer,
    spec: String,
    crcs: Vec<u32>,
    /// For compressed runs: where each block is stored and how long it is there.
    places: Vec<(u64, u32)>,
    fences: Fences,
    /// Most bytes from one fence to the next.
    stretch_bytes_max: u64,
    /// The memory that it holds of a budget; nothing when the opener has reserved it.
    memory: Option<Reservation>,
}

/// Takes a stored index in stretches and checks it, so the whole index is never in memory.
struct IndexReader<'a> {
    footer: &'a Footer,
    pending: Vec<u8>,
    spec: Option<String>,
    index: RunIndex,
    least_record: u64,
    any: bool,
}

impl<'a> IndexReader<'a> {
    fn new(footer: &'a Footer) -> Self {
        let (blocks, fences) = (footer.blocks as usize, footer.fences_max() as usize);
        let (keys, packed) = (footer.keys_max() as usize, footer.compression != Compression::Off);
        IndexReader {
            footer,
            pending: Vec::new(),
            spec: None,
            index: RunIndex::with_room(blocks, fences, keys, packed),
            least_record: 0,
            any: false,
        }
    }

    /// The next bytes; `None` when they are not an index.
    fn take(&mut self, bytes: &[u8]) -> Option<()> {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = &pending[..];
        if self.spec.is_none()
            && let Some((len, after)) = rest.split_first_chunk::<4>()
            && let Some((spec, after)) = after.split_at_checked(u32::from_le_bytes(*len) as usize)
        {
            self.spec = Some(String::from_utf8(spec.to_vec()).ok()?);
            rest = after;
        }
        while self.spec.is_some() && !rest.is_empty() {
            let Some(entry) = format::decode_entry(&mut rest) else {
                if rest.len() >= ENTRY_BYTES_MAX {
                    return None;
                }
                break;
            };
            if !self.possible(&entry) {
                return None;
            }
            self.index.push(self.footer.block_bytes, &entry);
        }
        self.pending.extend_from_slice(rest);
        Some(())
    }

    /// Whether the next block is before the index and contains its fence, with all numbers rising.
    /// Readers compute with these numbers.
    fn possible(&mut self, entry: &BlockEntry) -> bool {
        let footer = self.footer;
        let block = self.index.crcs.len() as u64;
        if block >= footer.blocks {
            return false;
        }
        let block_bytes = u64::from(footer.block_bytes);
        let logical = (footer.data_bytes - block * block_bytes).min(block_bytes);
        let stored = u64::from(entry.stored_bytes);
        let end = entry.physical.checked_add(stored);
        let lies = match footer.compression {
            Compression::Off => {
                stored == logical && entry.physical == HEADER_BYTES as u64 + block * block_bytes
            }
            _ => stored <= logical && entry.physical >= HEADER_BYTES as u64,
        };
        let starts = entry.first_start != NO_START;
        let number = entry.first_record;
        let counted = if starts {
            u64::from(entry.first_start) < logical && number < footer.records
        } else {
            number <= footer.records
        };
        let rises = number >= self.least_record && (self.any || !starts || number == 0);
        self.any |= starts;
        self.least_record = number + u64::from(starts);
        lies && counted && rises && end.is_some_and(|end| end <= footer.index_offset)
    }

    /// Specification and index, when all of it was there.
    fn finish(self) -> Option<(String, RunIndex)> {
        let footer = self.footer;
        let whole = self.pending.is_empty()
            && self.index.crcs.len() as u64 == footer.blocks
            && (footer.records == 0) == (footer.data_bytes == 0);
        self.spec.filter(|_| whole).map(|spec| (spec, self.index))
    }
}

/// Sizes that a footer gives before its index is read.
impl Footer {
    /// Bytes of memory that the run holds once it is open, at most.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let packed = self.compression != Compression::Off;
        index_bytes(self.blocks, self.fences_max(), self.keys_max(), packed)
    }

    /// A block in which no record begins has no fence.
    fn fences_max(&self) -> u64 {
        self.blocks.min(self.records)
    }

    /// Bytes of the fences' keys, and of the specification.
    fn keys_max(&self) -> u64 {
        self.index_bytes.saturating_sub(self.blocks.saturating_mul(ENTRY_FIXED_BYTES as u64))
    }
}

/// A run whose header and footer are read and checked; its index is not in memory yet.
pub(crate) struct ClosedRun {
    storage: Arc<dyn Storage>,
    footer: Footer,
}

impl ClosedRun {
    /// Looks at both ends of the run on `storage`.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] with file, offset, found and expected; the storage's own.
    pub(crate) fn find(storage: Arc<dyn Storage>) -> Result<Self> {
        let file = storage.name().to_owned();
        let size = storage.size();
        let least = (HEADER_BYTES + FOOTER_BYTES) as u64;
        if size < least {
            return Err(corrupt(&file, size, format!("{size} bytes are too few for a run")));
        }
        if size > SIZE_BYTES_MAX {
            return Err(corrupt(&file, size, format!("{size} bytes are too many for a run")));
        }
        let header = storage.read_vec(0, HEADER_BYTES)?;
        let block_bytes = format::decode_header(&file, header[..].try_into().expect("a page"))?;
        let at = size - FOOTER_BYTES as u64;
        let bytes = storage.read_vec(at, FOOTER_BYTES)?;
        let footer = format::decode_footer(&file, at, bytes[..].try_into().expect("footer"))?;
        let fits = footer.index_offset.checked_add(footer.index_bytes) == Some(at)
            && footer.index_offset >= HEADER_BYTES as u64
            && footer.data_bytes <= SIZE_BYTES_MAX
            && footer.records <= footer.data_bytes
            && BLOCK_BYTES.contains(&footer.block_bytes)
            && footer.block_bytes.is_power_of_two()
            && footer.block_bytes == block_bytes
            && footer.blocks == footer.data_bytes.div_ceil(u64::from(footer.block_bytes))
            && footer.index_bytes / ENTRY_FIXED_BYTES as u64 >= footer.blocks;
        if !fits {
            let detail = "the footer contradicts the header or the file's size".to_owned();
            return Err(corrupt(&file, at, detail));
        }
        Ok(ClosedRun { storage, footer })
    }

    /// The storage with its bytes.
    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Totals.
    pub(crate) fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Reads the index and checks it. The caller reserves the memory of the run before.
    ///
    /// # Errors
    /// As [`ClosedRun::find`].
    pub(crate) fn open(self) -> Result<Run> {
        self.load(None)
    }

    /// As [`ClosedRun::open`]. The memory of the run is reserved from `budget` before, and held as
    /// long as the run is open.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] too.
    pub(crate) fn open_within(self, budget: &Budget) -> Result<Run> {
        let memory = budget.reserve(self.footer.memory_bytes(), FENCES)?;
        self.load(Some(memory))
    }

    fn load(self, memory: Option<Reservation>) -> Result<Run> {
        let ClosedRun { storage, footer } = self;
        let file = storage.name().to_owned();
        let at = footer.index_offset + footer.index_bytes;
        let mut reader = Some(IndexReader::new(&footer));
        let mut found = 0;
        let mut offset = footer.index_offset;
        while offset < at {
            let len = (at - offset).min(PIECE_BYTES as u64) as usize;
            let bytes = storage.read_vec(offset, len)?;
            found = crc32c::crc32c_append(found, &bytes);
            // Damage shows in the checksum, too, which is the better message.
            reader = reader.and_then(|mut reader| reader.take(&bytes).map(|()| reader));
            offset += len as u64;
        }
        if found != footer.index_crc {
            let detail = format!("index CRC {found:08x} found, {:08x} expected", footer.index_crc);
            return Err(corrupt(&file, footer.index_offset, detail));
        }
        let malformed = || corrupt(&file, footer.index_offset, "malformed index".to_owned());
        let (spec, index) = reader.and_then(IndexReader::finish).ok_or_else(malformed)?;
        Run::from_index(storage, footer, spec, index, memory)
    }
}

impl Run {
    /// Opens the run on `storage` and checks header, footer and index. Its memory, about 30 bytes
    /// and a key for each block, is reserved from no budget.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] with file, offset, found and expected; the storage's own.
    pub fn open(storage: Arc<dyn Storage>) -> Result<Self> {
        ClosedRun::find(storage)?.open()
    }

    /// As [`Run::open`], but the memory of the run is reserved from `budget`, before its index is
    /// read and for as long as it is open.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] too.
    pub fn open_within(storage: Arc<dyn Storage>, budget: &Budget) -> Result<Self> {
        ClosedRun::find(storage)?.open_within(budget)
    }

    /// A run with this index, which is held within `memory` when that is given.
    pub(super) fn from_index(
        storage: Arc<dyn Storage>,
        footer: Footer,
        spec: String,
        index: RunIndex,
        memory: Option<Reservation>,
    ) -> Result<Self> {
        let RunIndex { crcs, places, fences, .. } = index;
        let ok = fences.positions.first().is_none_or(|p| *p == 0)
            && fences.positions.is_empty() == (footer.data_bytes == 0)
            && fences.positions.last().is_none_or(|p| *p < footer.data_bytes)
            && fences.records.is_sorted();
        if !ok {
            return Err(corrupt(
                storage.name(),
                footer.index_offset,
                "malformed fences".to_owned(),
            ));
        }
        let ends = fences.positions.iter().skip(1).chain([&footer.data_bytes]);
        let stretches =
            fences.positions.iter().zip(ends).map(|(from, to)| to.saturating_sub(*from));
        let stretch_bytes_max = stretches.max().unwrap_or(0);
        Ok(Run { storage, footer, spec, crcs, places, fences, stretch_bytes_max, memory })
    }

    /// The storage with its bytes.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The specification it was written with: format and key, as JSON.
    #[must_use]
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// Totals.
    #[must_use]
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Logical bytes of its records.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.footer.data_bytes
    }

    /// Number of its records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.footer.records
    }

    /// Logical bytes per block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.footer.block_bytes)
    }

    /// Bytes that it holds reserved itself.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, Reservation::bytes)
    }

    /// Mean length of its fences' keys, in bytes per block.
    pub(crate) fn mean_fence_key_bytes(&self) -> f64 {
        self.fences.keys.len() as f64 / self.footer.blocks.max(1) as f64
    }

    /// Most bytes from one fence to the next: about a block, more where a record is longer.
    pub(crate) fn stretch_bytes_max(&self) -> u64 {
        self.stretch_bytes_max
    }

    /// Number of fences.
    #[must_use]
    pub fn fences(&self) -> usize {
        self.fences.positions.len()
    }

    /// Logical position of fence `i`'s record; the end of the data for the one past the last.
    #[must_use]
    pub fn fence_position(&self, i: usize) -> u64 {
        self.fences.positions.get(i).copied().unwrap_or(self.footer.data_bytes)
    }

    /// Number of fence `i`'s record; the count of records for the one past the last.
    #[must_use]
    pub fn fence_record(&self, i: usize) -> u64 {
        self.fences.records.get(i).copied().unwrap_or(self.footer.records)
    }

    /// Whether any fence's key was cut short.
    #[must_use]
    pub fn has_cut_fences(&self) -> bool {
        self.fences.any_cut
    }

    /// The last fence at or before `position`.
    #[must_use]
    pub fn fence_floor(&self, position: u64) -> Option<usize> {
        self.fences.positions.partition_point(|p| *p <= position).checked_sub(1)
    }

    /// Fence `i`'s full normalised key, and whether it was cut short.
    #[must_use]
    pub fn fence_key(&self, i: usize) -> (&[u8], bool) {
        let f = &self.fences;
        let from = if i == 0 { 0 } else { f.key_ends[i - 1] };
        (&f.keys[from as usize..f.key_ends[i] as usize], f.cut[i])
    }

    /// The number of leading fences, looked for in `range`, whose record is below `key` (or, with
    /// `or_equal`, not above it). A cut key that is a prefix of `key` decides nothing: it counts as
    /// `undecided` says.
    #[must_use]
    pub fn fences_below(
        &self,
        key: &[u8],
        or_equal: bool,
        undecided: bool,
        range: Range<usize>,
    ) -> usize {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let mid = low + (high - low) / 2;
            let (fence, cut) = self.fence_key(mid);
            let below = if cut {
                let begin = &key[..key.len().min(fence.len())];
                if fence == begin && key.len() >= fence.len() { undecided } else { fence < begin }
            } else {
                fence < key || (or_equal && fence == key)
            };
            if below {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        low
    }

    /// The block that holds logical `position`.
    #[must_use]
    pub fn block_of(&self, position: u64) -> u64 {
        position / self.block_bytes()
    }

    /// Logical length of `block`.
    fn block_len(&self, block: u64) -> usize {
        (self.footer.data_bytes - block * self.block_bytes()).min(self.block_bytes()) as usize
    }

    /// Whether blocks must be unpacked after reading.
    pub(crate) fn packed(&self) -> bool {
        self.footer.compression != Compression::Off
    }

    /// The bytes of storage, aligned for direct I/O, that hold `blocks`.
    pub(crate) fn physical(&self, blocks: Range<u64>) -> Range<u64> {
        if blocks.is_empty() {
            return 0..0;
        }
        if !self.packed() {
            let from = HEADER_BYTES as u64 + blocks.start * self.block_bytes();
            let to =
                HEADER_BYTES as u64 + (blocks.end * self.block_bytes()).min(self.footer.data_bytes);
            return from..to.next_multiple_of(4096);
        }
        let places = &self.places[blocks.start as usize..blocks.end as usize];
        let from = places.iter().map(|p| p.0).min().expect("not empty");
        let to = places.iter().map(|p| p.0 + u64::from(p.1)).max().expect("not empty");
        from / 4096 * 4096..to.next_multiple_of(4096)
    }

    /// Before this offset, the storage holds only blocks that are before `position`. (The blocks of
    /// a packed run are only nearly in order: for it, this is the lowest block that is still
    /// needed.)
    pub(crate) fn physical_floor(&self, position: u64) -> u64 {
        let block = self.block_of(position).min(self.footer.blocks);
        if !self.packed() {
            return HEADER_BYTES as u64 + block * self.block_bytes();
        }
        let needed = self.places[block as usize..].iter().map(|p| p.0).min();
        needed.unwrap_or(self.footer.index_offset) / 4096 * 4096
    }

    /// Starts reading the storage range `physical` into `buffer`, which is exactly as long.
    pub(crate) fn submit(&self, token: u64, offset: u64, buffer: Buffer, done: &Completions) {
        self.storage.submit(token, Operation::Read { offset, buffer }, done);
    }

    /// Checks the blocks from `first` on, which `bytes` holds as they are stored, end to end. The
    /// run is not packed.
    pub(crate) fn verify(&self, first: u64, bytes: &[u8]) -> Result<()> {
        for (block, bytes) in (first..).zip(bytes.chunks(self.block_bytes() as usize)) {
            self.check(block, HEADER_BYTES as u64 + block * self.block_bytes(), bytes)?;
        }
        Ok(())
    }

    fn check(&self, block: u64, offset: u64, stored: &[u8]) -> Result<()> {
        let (found, expected) = (crc32c::crc32c(stored), self.crcs[block as usize]);
        if found == expected {
            return Ok(());
        }
        let detail = format!("block CRC {found:08x} found, {expected:08x} expected");
        Err(corrupt(self.storage.name(), offset, detail))
    }

    /// Unpacks and checks `blocks` of a packed run out of `stored`, read from byte `offset` on.
    pub(crate) fn unpack(
        &self,
        blocks: Range<u64>,
        offset: u64,
        stored: &[u8],
        mut out: &mut [u8],
    ) -> Result<()> {
        for block in blocks {
            let (at, len) = self.places[block as usize];
            let from = (at - offset) as usize;
            let name = self.storage.name();
            let bytes = stored
                .get(from..from + len as usize)
                .ok_or_else(|| corrupt(name, at, "the block is outside the file".to_owned()))?;
            self.check(block, at, bytes)?;
            let logical = self.block_len(block);
            let (this, rest) = out.split_at_mut(logical);
            let unpacked = if bytes.len() == logical {
                this.copy_from_slice(bytes);
                Some(logical)
            } else {
                self.footer.compression.unpack(bytes, this)
            };
            if unpacked != Some(logical) {
                return Err(corrupt(name, at, "the block does not unpack".to_owned()));
            }
            out = rest;
        }
        Ok(())
    }

    /// Reads, checks and unpacks `blocks`, waiting for it.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`]; the storage's own.
    pub fn read_blocks(&self, blocks: Range<u64>) -> Result<Vec<u8>> {
        let end = (blocks.end * self.block_bytes()).min(self.footer.data_bytes);
        let mut out = vec![0; (end - blocks.start * self.block_bytes()) as usize];
        let physical = self.physical(blocks.clone());
        let len = (physical.end - physical.start) as usize;
        let mut stored = vec![0; len];
        let n = self.storage.read_at(physical.start, &mut stored)?;
        if self.packed() {
            self.unpack(blocks, physical.start, &stored[..n], &mut out)?;
        } else {
            if n < out.len() {
                return Err(corrupt(
                    self.storage.name(),
                    physical.start + n as u64,
                    "the file is shorter than its footer says".to_owned(),
                ));
            }
            let whole = out.len();
            out.copy_from_slice(&stored[..whole]);
            self.verify(blocks.start, &out)?;
        }
        Ok(out)
    }

    /// Reads and checks every block. `progress` takes the bytes read.
    ///
    /// # Errors
    /// The first damage found; the error of `progress`, which ends the check.
    pub fn verify_all(&self, mut progress: impl FnMut(u64) -> Result<()>) -> Result<()> {
        let step = (1 << 20) / self.block_bytes();
        let mut block = 0;
        while block < self.footer.blocks {
            let end = (block + step).min(self.footer.blocks);
            progress(self.read_blocks(block..end)?.len() as u64)?;
            block = end;
        }
        Ok(())
    }
}

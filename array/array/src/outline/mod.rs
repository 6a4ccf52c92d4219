//! A volume without bytes: it knows which content each page has, where it is, and which transfers the
//! volume would make. So a model of the devices can play millions of requests per second.
//!
//! ```text
//!   write ──► record in the ring ──► Step (one transfer to the buffer)
//!   read  ──► overlay, map ────────► Step (transfers from buffer and data members)
//!   begin_move ──► oldest records ──► steps: read log, hash, look up, store, sync, journal, sync
//!   end_move   ──► the records leave the ring
//! ```
//!
//! Directory, ring, allocation of pages, layout and limits are those of [`crate::Volume`]; a test runs
//! both side by side and compares every place and count. Different from it: maps and index are in memory
//! (no reads of table blocks, no merges of index runs), and a record that is partly overwritten by a
//! request of less than a page has a content of its own.

mod commit;
mod content;
mod dirty;
mod maps;
mod moves;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::bytes::BLOCK;
use crate::counters::VolumeCounters;
use crate::error::{Error, Result};
use crate::label::{LABEL_BYTES, Role};
use crate::layout::VolumeLayout;
use crate::log::record::{ENTRIES_MAX, RecordEntry};
use crate::log::{LogRing, RingPlace};
use crate::overlay::{Overlay, PageLocation, RECORD_BYTES, SLOT_BYTES};
use crate::raid::Striping;
use crate::settings::{OpenOptions, VolumeSettings};
pub use content::ContentHashes;
use maps::OutlineMaps;
use merganser_storage::numbers::u64_of;

/// Neighbouring records of the log are read together up to this many bytes.
const READ_BYTES_MAX: u64 = 1 << 20;

/// The members of an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Data members, and bytes of each.
    pub data: (usize, u64),
    /// Buffer members, and bytes of each.
    pub buffer: (usize, u64),
    /// Whether all pages of the volume were written before, each with a content of its own.
    pub filled: bool,
}

/// A write request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write<'a> {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Identifies the bytes. Without it they are like no others.
    pub content: Option<ContentHashes<'a>>,
}

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Bytes come from the members.
    Read,
    /// Bytes go to the members.
    Write,
    /// Earlier writes become durable on all members of the role.
    Sync,
}

/// One request to an array of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Which array.
    pub role: Role,
    /// Its direction.
    pub access: Access,
    /// First byte of the array; see [`Outline::striping`].
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A part of a list of things to do. It is flat, so that a list that is used again takes no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A transfer begins.
    Transfer(Transfer),
    /// Fingerprints of this many pages are computed.
    Hash(u64),
    /// Everything before has to end before the next step begins.
    Wait,
}

/// Whether a write has room in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It has.
    Enough,
    /// It has, but the buffer is above its high-water mark: it waits if pages can move.
    AboveMark,
    /// It has to wait until pages have moved.
    Full,
}

/// A page or a trim in a record.
#[derive(Debug, Clone, Copy)]
struct Item {
    page: u64,
    /// Pages of a trim; 0 for a page.
    trimmed: u32,
    content: u128,
}

/// Records that are on their way to the data members.
#[derive(Debug)]
struct Moving {
    records: usize,
    items: usize,
    pages: Vec<u64>,
    last_seq: u64,
}

/// A volume without bytes.
#[derive(Debug)]
pub struct Outline {
    maps: OutlineMaps,
    ring: LogRing,
    items: VecDeque<Item>,
    /// Items of each record in the ring.
    counts: VecDeque<u16>,
    overlay: Overlay,
    moving: Option<Moving>,
    options: OpenOptions,
    striping: [Striping; 2],
    /// Number of contents that no other page has.
    uniques: u128,
}

impl Outline {
    /// An outline of a volume with a buffer.
    ///
    /// # Errors
    /// [`Error::Settings`] when the members are too small, or the volume has more than 2^32 pages.
    pub fn new(settings: &VolumeSettings, options: &OpenOptions, shape: &Shape) -> Result<Outline> {
        settings.check()?;
        options.check()?;
        let stripes = |(members, _): (usize, u64), chunk: u32| Striping {
            members,
            chunk_bytes: u64::from(chunk),
            base_bytes: LABEL_BYTES,
        };
        let data = stripes(shape.data, settings.chunk_bytes);
        let buffer = stripes(shape.buffer, settings.buffer_chunk_bytes);
        let blocks = buffer.size(shape.buffer.1) / BLOCK;
        if shape.data.0 == 0 || blocks < 1024 {
            let text = "an outline needs a data member and a buffer of 4 MiB".to_owned();
            return Err(Error::Settings(text));
        }
        let stripe = data.chunk_bytes * u64_of(data.members);
        let layout = VolumeLayout::plan(settings, data.size(shape.data.1), stripe)?;
        if layout.pages().max(layout.volume_pages) >= u64::from(u32::MAX) {
            let text = "an outline has less than 2^32 pages, which are 16 TiB".to_owned();
            return Err(Error::Settings(text));
        }
        let first = RingPlace { seq: 1, at: 0, chain: 0 };
        Ok(Outline {
            maps: OutlineMaps::new(layout, settings, options, shape.filled),
            ring: LogRing::new(blocks, first),
            items: VecDeque::new(),
            counts: VecDeque::new(),
            overlay: Overlay::default(),
            moving: None,
            options: options.clone(),
            striping: [data, buffer],
            uniques: 0,
        })
    }

    /// Where the bytes of an array are.
    #[must_use]
    pub fn striping(&self, role: Role) -> Striping {
        self.striping[usize::from(role == Role::Buffer)]
    }

    /// Bytes of the volume.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.maps.layout.volume_pages * BLOCK
    }

    /// Counts since it was made.
    #[must_use]
    pub fn counters(&self) -> VolumeCounters {
        let mut counters = self.maps.counters;
        counters.pages_absorbed = self.overlay.absorbed;
        counters
    }

    /// Bytes of the array of data members that hold something from the start.
    #[must_use]
    pub fn filled_bytes(&self) -> u64 {
        self.maps.layout.page_at(self.maps.layout.volume_pages)
    }

    /// Whether records are left that have not moved.
    #[must_use]
    pub fn has_records(&self) -> bool {
        !self.ring.residents.is_empty()
    }

    /// Number of the oldest record that has not moved, or else of the next record.
    #[must_use]
    pub fn first_record(&self) -> u64 {
        self.ring.tail().seq
    }

    /// Whether `writes` requests, of `pages` pages together, have room.
    #[must_use]
    pub fn room(&self, writes: u64, pages: u64) -> Room {
        // A header for each 252 pages, and one for each end that is less than a page.
        let blocks = pages + pages.div_ceil(u64_of(ENTRIES_MAX)) + 2 * writes;
        let records = u64_of(self.ring.residents.len());
        let memory = self.overlay.memory_bytes() + records * RECORD_BYTES;
        let is_too_large = memory + pages * SLOT_BYTES > self.options.directory_bytes();
        let percent = u64::from(self.options.high_water_percent);
        let mark = (self.ring.blocks * percent).div_ceil(100);
        if is_too_large || !self.ring.has_room(usize::try_from(blocks).unwrap_or(usize::MAX)) {
            Room::Full
        } else if self.ring.used > mark {
            Room::AboveMark
        } else {
            Room::Enough
        }
    }

    /// Writes that came at the same time, for which there is [`Outline::room`]: their whole pages go into
    /// the log together.
    ///
    /// # Panics
    /// When there is no room, one is beyond the end, or one has fewer hashes than pages.
    pub fn write(&mut self, writes: &[Write<'_>], steps: &mut Vec<Step>) {
        let mut whole: Vec<Item> = Vec::new();
        for &Write { offset, len, content } in writes {
            assert!(offset + len <= self.size(), "callers look");
            let (mut at, end) = (offset, offset + len);
            while at < end {
                let (page, inside) = (at / BLOCK, at % BLOCK);
                let part = (BLOCK - inside).min(end - at);
                let is_whole = part == BLOCK;
                let content = match content.filter(|_| is_whole) {
                    Some(content) => content.page(at - offset),
                    None => self.unique(),
                };
                let item = Item { page, trimmed: 0, content };
                if is_whole {
                    whole.push(item);
                } else {
                    self.append(&std::mem::take(&mut whole), steps);
                    self.read(page * BLOCK, BLOCK, steps);
                    self.append(&[item], steps);
                }
                at += part;
            }
        }
        self.append(&whole, steps);
    }

    /// Makes the whole pages in `len` bytes at `offset` read as zeros.
    ///
    /// # Panics
    /// As for [`Outline::write`].
    pub fn trim(&mut self, offset: u64, len: u64, steps: &mut Vec<Step>) {
        assert!(offset + len <= self.size(), "callers look");
        let (first, last) = (offset.div_ceil(BLOCK), (offset + len) / BLOCK);
        if first >= last {
            return;
        }
        self.maps.counters.pages_trimmed += last - first;
        let trimmed = u32::try_from(last - first).expect("less than 2^32 pages");
        self.append(&[Item { page: first, trimmed, content: 0 }], steps);
    }

    /// A content like no other.
    fn unique(&mut self) -> u128 {
        self.uniques += 1;
        1 << 127 | self.uniques
    }

    fn append(&mut self, items: &[Item], steps: &mut Vec<Step>) {
        for items in items.chunks(ENTRIES_MAX) {
            let pages = items.iter().filter(|item| item.trimmed == 0).count();
            let resident = self.ring.next(pages);
            self.ring.push(resident, 0);
            self.counts.push_back(u16::try_from(items.len()).expect("those of one record"));
            let (seq, at) = (resident.place.seq, resident.place.at);
            let mut block = at + 1;
            for item in items {
                let entry = match item.trimmed {
                    0 => RecordEntry::Page { page: item.page, crc: 0 },
                    count => RecordEntry::Trim { page: item.page, count },
                };
                self.overlay.add(seq, &entry, &mut block);
                self.items.push_back(*item);
            }
            let counters = &mut self.maps.counters;
            counters.pages_written += u64_of(pages);
            counters.log_bytes += resident.blocks * BLOCK;
            let (offset, len) = (at * BLOCK, resident.blocks * BLOCK);
            let write = Transfer { role: Role::Buffer, access: Access::Write, offset, len };
            steps.extend([Step::Transfer(write), Step::Wait]);
            if self.options.durable_writes {
                steps.extend(sync(Role::Buffer));
            }
        }
    }

    /// Reads `len` bytes at `offset`: transfers that begin together, and none if all of it reads as zeros.
    ///
    /// # Panics
    /// When the request is beyond the end.
    pub fn read(&mut self, offset: u64, len: u64, steps: &mut Vec<Step>) {
        assert!(offset + len <= self.size(), "callers look");
        let before = steps.len();
        let pages = offset / BLOCK..(offset + len).div_ceil(BLOCK);
        self.maps.counters.pages_read += pages.end - pages.start;
        for page in pages {
            let (role, offset) = match self.overlay.find(page) {
                PageLocation::Zeros => continue,
                PageLocation::Log(slot) => (Role::Buffer, slot.block * BLOCK),
                PageLocation::Store => match self.maps.place(page) {
                    Some(place) => (Role::Data, self.maps.layout.page_at(place)),
                    None => continue,
                },
            };
            match role {
                Role::Data => self.maps.counters.data_pages_read += 1,
                Role::Buffer => self.maps.counters.buffer_pages_read += 1,
            }
            match steps[before..].last_mut() {
                Some(Step::Transfer(last))
                    if last.role == role && last.offset + last.len == offset =>
                {
                    last.len += BLOCK;
                }
                _ => {
                    let read = Transfer { role, access: Access::Read, offset, len: BLOCK };
                    steps.push(Step::Transfer(read));
                }
            }
        }
        if steps.len() > before {
            steps.push(Step::Wait);
        }
    }

    /// Number of the next record.
    #[must_use]
    pub fn next_record(&self) -> u64 {
        self.ring.head.seq
    }
}

fn sync(role: Role) -> [Step; 2] {
    [Step::Transfer(Transfer { role, access: Access::Sync, offset: 0, len: 0 }), Step::Wait]
}

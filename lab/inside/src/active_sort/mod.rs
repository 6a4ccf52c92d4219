//! ActiveSort: a merge inside the storage device, made while the host reads its result.
//!
//! After Lee, Roh, Seo et al., "ActiveSort: efficient external sorting using active SSDs in the
//! MapReduce framework" (sections 3.1, 3.2.2 and 4.1). The host writes sorted chunks like any other
//! data. Then it writes a [descriptor](Descriptor) to the *control address*. Reads of the
//! descriptor's *interface range* return the merged records, which are never stored.
//!
//! ```text
//!   host     write chunks … │ write descriptor │ read interface, 0 … size │ write close
//!                                  │                  ▲
//!   device   flash                 ▼                  │ answer
//!            pages ─► chunk_buffer ─► merging (the engine's merge, step by step) ─► ready pages
//!                  ▲
//!                  └── schedule: busy channels are skipped, other chunks served first
//! ```
//!
//! Beyond the paper's prototype: every record format and key of the engine, records of varying
//! length that span pages, chunks in pieces anywhere on the device, reads of the result in any
//! order and repeatedly.
//!
//! | what may fail | what happens |
//! |---|---|
//! | a bad descriptor | the write to the control address is the error, with the field's name |
//! | too little memory | the same; a merge that had ended and is read again: the read is the error |
//! | a page that cannot be read, a record without end | waiting reads are errors, memory is released; a later read tries again |
//! | the host closes while it reads | its reads are errors, then the close is answered |
//! | chunks that are not sorted, or change while they are merged | not detected: the result has their records in some order |

pub(crate) mod chunk_buffer;
pub mod descriptor;
mod merging;
mod schedule;
mod settings;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use merganser_storage::Buffer;
use merganser_storage::near::{HostRequest, Inside, NearProgram, RequestId, Wake};

use descriptor::{Descriptor, MergeCommand, MergeId, overlap};
use merging::OpenMerge;
pub use schedule::ReadPolicy;
pub use settings::{ActiveSortSettings, Asking};

/// The page that a read returns.
#[derive(Debug)]
struct PageOf {
    merge: MergeId,
    chunk: usize,
}

/// ActiveSort as a program of a device: see the [module](self).
#[derive(Debug)]
pub struct ActiveSort {
    control: Range<u64>,
    settings: ActiveSortSettings,
    merges: BTreeMap<MergeId, OpenMerge>,
    tokens: u64,
    pages: BTreeMap<u64, PageOf>,
    works: BTreeMap<u64, MergeId>,
    /// The merge that was served first the last time; the one after it is first the next time.
    first: Option<MergeId>,
}

impl ActiveSort {
    /// A program that takes commands at `control_address`.
    ///
    /// # Panics
    /// When the settings leave no page for a chunk or for the result, or pages of no whole sectors.
    #[must_use]
    pub fn new(control_address: u64, settings: ActiveSortSettings) -> Self {
        assert!(settings.chunk_pages > 0, "a chunk buffer has at least a page");
        assert!(settings.output_pages > 0, "the result needs at least a page");
        let sector = descriptor::SECTOR_BYTES as u32;
        let whole = |bytes: u32| bytes > 0 && bytes.is_multiple_of(sector);
        assert!(settings.page_bytes.is_none_or(whole), "a page is whole sectors");
        ActiveSort {
            control: control_address..control_address + descriptor::BYTES_MAX as u64,
            settings,
            merges: BTreeMap::new(),
            tokens: 0,
            pages: BTreeMap::new(),
            works: BTreeMap::new(),
            first: None,
        }
    }

    /// The number of open merges.
    #[must_use]
    pub fn open_merges(&self) -> usize {
        self.merges.len()
    }

    fn command(&mut self, id: RequestId, bytes: &[u8], inside: &mut dyn Inside) -> io::Result<()> {
        let invalid = |e| io::Error::new(io::ErrorKind::InvalidInput, e);
        match MergeCommand::decode(bytes).map_err(invalid)? {
            MergeCommand::Open(descriptor) => {
                self.check_ranges(&descriptor)?;
                let merge = descriptor.merge;
                self.merges.insert(merge, OpenMerge::open(descriptor, self.settings, inside)?);
                inside.answer(id, Ok(Buffer::new(0)));
            }
            MergeCommand::Close(merge) => match self.merges.get_mut(&merge) {
                Some(open) => open.close(id, inside),
                None => {
                    let reason = format!("merge {} is not open", merge.0);
                    return Err(io::Error::new(io::ErrorKind::NotFound, reason));
                }
            },
        }
        Ok(())
    }

    /// Checks that a new merge does not overlap with the control address or another merge.
    fn check_ranges(&self, descriptor: &Descriptor) -> io::Result<()> {
        let refuse = |reason: String| Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
        let (id, interface) = (descriptor.merge.0, descriptor.interface.bytes());
        if self.merges.contains_key(&descriptor.merge) {
            return refuse(format!("merge {id} is open already; close it first"));
        }
        if overlap(interface.clone(), self.control.clone()) {
            return refuse(format!("merge {id}: its interface covers the control address"));
        }
        for (other, merge) in &self.merges {
            let taken = merge.descriptor().interface.bytes();
            if overlap(interface.clone(), taken.clone()) {
                return refuse(format!(
                    "merge {id}: its interface covers that of merge {}",
                    other.0
                ));
            }
            let mut extents = descriptor.chunks.iter().flat_map(|chunk| &chunk.extents);
            if extents.any(|extent| overlap(extent.bytes(), taken.clone())) {
                return refuse(format!(
                    "merge {id}: one of its chunks is the result of merge {}, which is not stored",
                    other.0
                ));
            }
        }
        Ok(())
    }

    fn interface_at(&mut self, range: &Range<u64>) -> Option<&mut OpenMerge> {
        self.merges
            .values_mut()
            .find(|merge| overlap(merge.descriptor().interface.bytes(), range.clone()))
    }

    /// All merges, in the order in which they are served now.
    fn in_turn(&mut self) -> Vec<MergeId> {
        let mut ids: Vec<MergeId> = self.merges.keys().copied().collect();
        let turn = self.first.map_or(0, |first| ids.partition_point(|id| *id <= first));
        let turn = if turn == ids.len() { 0 } else { turn };
        ids.rotate_left(turn);
        self.first = ids.first().copied();
        ids
    }

    /// Lets every merge make progress.
    fn advance(&mut self, inside: &mut dyn Inside) {
        let ids = self.in_turn();
        for id in &ids {
            self.merges.get_mut(id).expect("just listed").make_progress(inside);
        }
        match self.settings.asking {
            Asking::BeforeStep => {
                self.ask(&ids, inside);
                self.step(&ids, inside);
            }
            Asking::AfterStep => {
                self.step(&ids, inside);
                self.ask(&ids, inside);
            }
        }
        self.merges.retain(|_, merge| !merge.gone());
    }

    /// Asks for pages until no merge wants another one.
    fn ask(&mut self, ids: &[MergeId], inside: &mut dyn Inside) {
        let mut wanting = ids.to_vec();
        while !wanting.is_empty() {
            wanting.retain(|id| {
                let merge = self.merges.get_mut(id).expect("still there");
                let idle = self.pages.is_empty();
                let Some(chunk) = merge.read_page(self.tokens, idle, inside) else { return false };
                self.pages.insert(self.tokens, PageOf { merge: *id, chunk });
                self.tokens += 1;
                true
            });
        }
    }

    /// Lets every merge take a step, if it can.
    fn step(&mut self, ids: &[MergeId], inside: &mut dyn Inside) {
        for id in ids {
            let merge = self.merges.get_mut(id).expect("still there");
            if merge.advance(self.tokens, inside) {
                self.works.insert(self.tokens, *id);
                self.tokens += 1;
            }
        }
    }
}

impl NearProgram for ActiveSort {
    fn claims(&self, write: bool, offset: u64, len: usize) -> bool {
        let Some(end) = offset.checked_add(len as u64) else { return false };
        let range = offset..end;
        let is_interface =
            |merge: &OpenMerge| overlap(merge.descriptor().interface.bytes(), range.clone());
        write && overlap(range.clone(), self.control.clone())
            || self.merges.values().any(is_interface)
    }

    fn request(&mut self, id: RequestId, request: HostRequest<'_>, inside: &mut dyn Inside) {
        let refuse = |reason: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        match request {
            HostRequest::Write { offset, bytes } if offset == self.control.start => {
                if let Err(error) = self.command(id, bytes, inside) {
                    inside.answer(id, Err(error));
                }
            }
            HostRequest::Write { offset, bytes } => {
                let range = offset..offset + bytes.len() as u64;
                let reason = match self.interface_at(&range) {
                    Some(_) => "this range is the result of a merge; it cannot be written",
                    None => "a command begins at the control address",
                };
                inside.answer(id, refuse(reason));
            }
            HostRequest::Read { offset, len } => {
                let range = offset..offset + len as u64;
                let merge = self.interface_at(&range).expect("it was claimed");
                let interface = merge.descriptor().interface.bytes();
                if range.start < interface.start || range.end > interface.end {
                    inside.answer(id, refuse("it begins or ends outside the result of a merge"));
                } else {
                    merge.read(id, range.start - interface.start..range.end - interface.start);
                }
            }
        }
        self.advance(inside);
    }

    fn wake(&mut self, wake: Wake, inside: &mut dyn Inside) {
        match wake {
            Wake::Read { token, buffer, result } => {
                let PageOf { merge, chunk } = self.pages.remove(&token).expect("it was read");
                let merge = self.merges.get_mut(&merge).expect("it ends after its reads");
                merge.page_arrived(chunk, token, buffer, result);
            }
            Wake::Written { .. } => unreachable!("a merge writes nothing"),
            Wake::Worked { token } => {
                let merge = self.works.remove(&token).expect("it was worked");
                self.merges.get_mut(&merge).expect("it ends after its work").worked(token);
            }
        }
        self.advance(inside);
    }

    /// A channel is idle as soon as it has carried its page; the page itself comes later, because it still has to
    /// cross the bus of the memory. The next read is started now.
    fn channel_idle(&mut self, _channel: u32, inside: &mut dyn Inside) {
        let ids = self.in_turn();
        self.ask(&ids, inside);
    }
}

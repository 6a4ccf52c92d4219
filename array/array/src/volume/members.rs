//! The members of a volume: made, found in their places, and opened.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use merganser_storage::Storage;
use merganser_storage::numbers::u64_of;

use super::VolumeDescription;
use crate::bytes::BLOCK;
use crate::error::{Error, Result};
use crate::label::{self, LABEL_BYTES, MemberLabel, Role, SessionStep};
use crate::layout::VolumeLayout;
use crate::log::record::RecordEntry;
use crate::log::{Known, Log};
use crate::overlay::Overlay;
use crate::raid::Raid0;
use crate::sessions::Labels;
use crate::settings::{Hash, OpenOptions, VolumeSettings};
use crate::store::PageStore;
use crate::superblock::Superblock;

/// The least blocks of a log: room for some records of the largest size.
const LOG_BLOCKS_MIN: u64 = 1024;

/// The storages that a volume consists of. Order counts.
#[derive(Clone)]
pub struct Members {
    /// Maps and pages (SSDs); at least one.
    pub data: Vec<Arc<dyn Storage>>,
    /// The log of writes (hard disks); none for a volume that writes to the data members at once.
    pub buffer: Vec<Arc<dyn Storage>>,
}

fn array(
    name: &str,
    role: Role,
    members: &[Arc<dyn Storage>],
    chunk_bytes: u32,
) -> Arc<dyn Storage> {
    let name = match role {
        Role::Data => name.to_owned(),
        Role::Buffer => format!("{name} (buffer)"),
    };
    Arc::new(Raid0::new(&name, members.to_vec(), u64::from(chunk_bytes), LABEL_BYTES))
}

fn stripe(members: &[Arc<dyn Storage>], chunk_bytes: u32) -> u64 {
    u64::from(chunk_bytes) * u64_of(members.len())
}

/// Sixteen bytes that no other volume has: the keys of the standard library's hash come from the
/// system's random numbers.
fn identity() -> [u8; 16] {
    let mut id = [0; 16];
    for half in id.chunks_mut(8) {
        half.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    }
    id
}

pub(super) fn create(
    name: &str,
    members: &Members,
    settings: &VolumeSettings,
    replace: bool,
) -> Result<String> {
    settings.check()?;
    if members.data.is_empty() {
        return Err(Error::Settings("a volume needs a data member".to_owned()));
    }
    if !replace {
        for member in members.data.iter().chain(&members.buffer) {
            if label::has_one(&**member) {
                let detail = "belongs to a volume already".to_owned();
                return Err(Error::Member { member: member.name().to_owned(), detail });
            }
        }
    }
    let volume = identity();
    let data = array(name, Role::Data, &members.data, settings.chunk_bytes);
    let buffer_bytes = match members.buffer.is_empty() {
        true => 0,
        false => array(name, Role::Buffer, &members.buffer, settings.buffer_chunk_bytes).size(),
    };
    if !members.buffer.is_empty() && buffer_bytes < LOG_BLOCKS_MIN * BLOCK {
        return Err(Error::Settings(format!(
            "the buffer members have {buffer_bytes} bytes together, and a log needs {}",
            LOG_BLOCKS_MIN * BLOCK
        )));
    }
    let stripe = stripe(&members.data, settings.chunk_bytes);
    let layout = VolumeLayout::plan(settings, data.size(), stripe)?;
    // The old labels go first and the new ones come last: without all of them it is no volume. A cut that left the
    // labels of an older volume would leave one with half of its blocks.
    for member in members.data.iter().chain(&members.buffer) {
        label::erase(&**member)?;
    }
    let buffered = !members.buffer.is_empty();
    let buffer_chunk = if buffered { settings.buffer_chunk_bytes } else { 0 };
    let chunk_bytes = (settings.chunk_bytes, buffer_chunk);
    crate::store::create(&data, volume, settings, buffered, layout, chunk_bytes)?;
    let roles = [
        (Role::Data, &members.data, settings.chunk_bytes, data.size()),
        (Role::Buffer, &members.buffer, settings.buffer_chunk_bytes, buffer_bytes),
    ];
    let mut labels = Vec::new();
    for (role, members, chunk_bytes, array_bytes) in roles {
        let count = u32::try_from(members.len()).expect("fewer");
        for (index, member) in (0..).zip(members) {
            let label = MemberLabel {
                volume,
                role,
                index,
                count,
                chunk_bytes,
                array_bytes,
                volume_pages: layout.volume_pages,
                sitting: None,
            };
            labels.push((Arc::clone(member), label));
        }
    }
    Labels(labels).note(1, SessionStep::Closed, 1)?;
    Ok(hexadecimal(&volume))
}

/// The identity of a volume, as it is shown.
fn hexadecimal(volume: &[u8; 16]) -> String {
    volume.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The identity of the volume that the first data member belongs to.
pub(super) fn identity_of(members: &Members) -> Result<String> {
    let first = members.data.first();
    let first = first.ok_or_else(|| Error::Settings("a volume needs a data member".to_owned()))?;
    Ok(hexadecimal(&label::read(&**first)?.volume))
}

pub(super) fn data_member_bytes(settings: &VolumeSettings, members: usize) -> Result<u64> {
    settings.check()?;
    let settings = VolumeSettings { thin: false, ..settings.clone() };
    let chunk = u64::from(settings.chunk_bytes);
    let (count, mut chunks) = (u64_of(members.max(1)), 1);
    let fits =
        |chunks: u64| VolumeLayout::plan(&settings, chunks * chunk * count, chunk * count).is_ok();
    while !fits(chunks) {
        chunks *= 2;
        if chunks * chunk * count > 1 << 52 {
            return Err(Error::Settings(
                "no data members are large enough for this journal".to_owned(),
            ));
        }
    }
    let (mut low, mut high) = (chunks / 2, chunks);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fits(middle) { high = middle } else { low = middle }
    }
    Ok(LABEL_BYTES + high * chunk)
}

/// The arrays of a volume whose labels are right.
struct Arrays {
    volume: [u8; 16],
    data: Arc<dyn Storage>,
    data_label: MemberLabel,
    buffer: Option<(Arc<dyn Storage>, MemberLabel)>,
    labels: Labels,
}

fn find(name: &str, members: &Members) -> Result<Arrays> {
    let Some(first) = members.data.first() else {
        return Err(Error::Settings("a volume needs a data member".to_owned()));
    };
    let mut all = Vec::new();
    let mut place = |role, members: &[Arc<dyn Storage>]| {
        let labels = label::check(members, role)?;
        let label = labels[0];
        all.extend(members.iter().map(Arc::clone).zip(labels));
        let array = array(name, role, members, label.chunk_bytes);
        if array.size() != label.array_bytes {
            let detail = format!(
                "the {} members have {} bytes together now, and had {} when the volume was made",
                role.name(),
                array.size(),
                label.array_bytes
            );
            return Err(Error::Member { member: members[0].name().to_owned(), detail });
        }
        Ok((array, label))
    };
    let (data, data_label) = place(Role::Data, &members.data)?;
    let buffer = match members.buffer.is_empty() {
        true => None,
        false => Some(place(Role::Buffer, &members.buffer)?),
    };
    if let Some((_, label)) = &buffer
        && label.volume != data_label.volume
    {
        let detail = format!("belongs to another volume than {}", first.name());
        return Err(Error::Member { member: members.buffer[0].name().to_owned(), detail });
    }
    let labels = Labels(all);
    Ok(Arrays { volume: data_label.volume, data, data_label, buffer, labels })
}

/// The arrays of a volume, for those who only read.
pub(super) struct Readable {
    pub(super) data: Arc<dyn Storage>,
    /// Bytes of a stripe of the data members.
    pub(super) stripe: u64,
    pub(super) buffer: Option<Arc<dyn Storage>>,
}

pub(super) fn arrays(name: &str, members: &Members) -> Result<Readable> {
    let Arrays { data, data_label, buffer, .. } = find(name, members)?;
    let stripe = stripe(&members.data, data_label.chunk_bytes);
    Ok(Readable { data, stripe, buffer: buffer.map(|(array, _)| array) })
}

pub(super) fn describe(name: &str, members: &Members) -> Result<VolumeDescription> {
    let arrays = find(name, members)?;
    let superblock = Superblock::read(&*arrays.data, false)?;
    let stripe = stripe(&members.data, arrays.data_label.chunk_bytes);
    let layout = crate::store::layout_of(&superblock, &*arrays.data, stripe)?;
    let buffer_chunk = arrays.buffer.as_ref().map_or(0, |(_, label)| label.chunk_bytes);
    Ok(VolumeDescription {
        id: hexadecimal(&arrays.volume),
        size: layout.volume_pages * BLOCK,
        dedup: match (superblock.dedup, superblock.sha1) {
            (false, _) => None,
            (true, false) => Some(Hash::Blake3),
            (true, true) => Some(Hash::Sha1),
        },
        compare: superblock.compare,
        thin: superblock.thin,
        members: (members.data.len(), members.buffer.len()),
        chunk_bytes: (arrays.data_label.chunk_bytes, buffer_chunk),
        pages: layout.pages(),
        buffer_bytes: arrays.buffer.as_ref().map_or(0, |(array, _)| array.size()),
        sessions: superblock.session - 1,
        clean: superblock.clean,
        table_checksums: superblock.sums,
        counters: superblock.counters,
    })
}

pub(super) fn open(
    name: &str,
    members: &Members,
    options: &OpenOptions,
) -> Result<(PageStore, Option<Log>, Overlay, Labels)> {
    let mut arrays = find(name, members)?;
    let superblock = Superblock::read(&*arrays.data, false)?;
    arrays.labels.check(&superblock)?;
    // Labels of an earlier version lack it.
    arrays.labels.set_volume_pages(superblock.volume_pages);
    let stripe = stripe(&members.data, arrays.data_label.chunk_bytes);
    let mut store = PageStore::open(&arrays.data, arrays.volume, stripe, options)?;
    let mut overlay = Overlay::default();
    let buffer_chunk = arrays.buffer.as_ref().map_or(0, |(_, label)| label.chunk_bytes);
    store.set_chunk_bytes((arrays.data_label.chunk_bytes, buffer_chunk));
    let log = match (store.superblock().buffered, arrays.buffer) {
        (false, None) => None,
        (true, Some((array, _))) => {
            let session = store.superblock().session;
            let known = Known {
                tail: store.log_tail,
                synced: store.log_synced,
                session: session - 1,
                checkpoint: store.superblock().checkpoint,
                opened: store.superblock().log_opened,
            };
            let pages = store.layout.volume_pages;
            let found = |header: &crate::log::record::RecordHeader, first: u64| {
                let mut block = first;
                for entry in &header.facts.entries {
                    let (page, count) = match *entry {
                        RecordEntry::Page { page, .. } => (page, 1),
                        RecordEntry::Trim { page, count } => (page, u64::from(count)),
                    };
                    if page.checked_add(count).is_none_or(|end| end > pages) {
                        let detail = "it is beyond the end of the volume".to_owned();
                        let volume = name.to_owned();
                        return Err(Error::Damaged {
                            volume,
                            what: "record",
                            number: header.seq,
                            detail,
                        });
                    }
                    overlay.add(header.seq, entry, &mut block);
                }
                Ok(())
            };
            let volume = arrays.volume;
            Some(Log::recover(array, volume, session, known, found)?)
        }
        (true, None) => {
            let detail = "is a member of a volume with a buffer, and no buffer member is given";
            let member = members.data[0].name().to_owned();
            return Err(Error::Member { member, detail: detail.to_owned() });
        }
        (false, Some(_)) => {
            let detail = "is given as a buffer member of a volume that has none";
            let member = members.buffer[0].name().to_owned();
            return Err(Error::Member { member, detail: detail.to_owned() });
        }
    };
    if let Some(log) = &log {
        store.log_synced = log.synced();
    }
    // Before anything is written in this session.
    let log_opened = log.as_ref().map_or(1, Log::next_seq);
    let (session, checkpoint) = (store.superblock().session, store.superblock().checkpoint);
    arrays.labels.note(session, SessionStep::Opening, checkpoint)?;
    store.begin_session(log_opened)?;
    arrays.labels.note(session, SessionStep::Open, store.superblock().checkpoint)?;
    Ok((store, log, overlay, arrays.labels))
}

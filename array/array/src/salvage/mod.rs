//! Copies what is good off a damaged volume, and says of each page how far it can be trusted. Nothing is written to the
//! members.
//!
//! ```text
//!   log         records from the tail on; one that is missing makes all that is older than the next one doubtful
//!   journal     transactions after the checkpoint, in the same way
//!   checkpoint  superblock → states → maps and segments → pages: each names the next by its checksum
//! ```
//!
//! A page is given only if its bytes have the checksum that something whole names for it. So damage gives pages that are
//! lost or may be old, and no page of other bytes.

mod blocks;
mod log;
mod store;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use merganser_storage::Storage;
use merganser_storage::numbers::usize_of_u32;

use crate::bytes::{BLOCK, PageBytes};
use crate::error::{Error, Result};
use crate::label::{MemberLabel, Role};
use crate::overlay::PageLocation;
use crate::sessions::Labels;
use crate::superblock::Superblock;
use crate::volume::Members;
use blocks::Blocks;
use log::SalvagedRecords;
use store::SalvagedMaps;

/// Findings that are kept with their text; more are counted.
const FINDINGS_MAX: usize = 100;

/// How far a page can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It has the content that was written last.
    Good,
    /// It has a content that it had once: a later one may be lost.
    MayBeOld,
    /// Nothing of it is left.
    Lost,
}

/// A volume that is read without the blocks that are damaged.
pub struct Salvage {
    volume_pages: u64,
    maps: Option<SalvagedMaps>,
    records: Option<SalvagedRecords>,
    /// Whether no page of the data members is certain.
    doubt: bool,
    /// Whether members are of different ages, so that nothing is certain.
    is_mixed: bool,
    findings: Findings,
}

/// The faults of the members.
#[derive(Debug, Default)]
struct Findings {
    texts: Vec<String>,
    count: u64,
}

impl Findings {
    fn add(&mut self, text: String) {
        self.count += 1;
        if self.texts.len() < FINDINGS_MAX {
            self.texts.push(text);
        }
    }
}

/// The labels of a role that are good and in their places, by member.
fn labels(
    members: &[Arc<dyn Storage>],
    role: Role,
    findings: &mut Findings,
) -> Result<Vec<Option<MemberLabel>>> {
    let label = |(at, member): (usize, &Arc<dyn Storage>)| {
        let copies = [0, 1].map(|copy| blocks::read(&**member, copy * BLOCK));
        let decoded = copies.into_iter().map(|block| {
            block.map_or_else(
                || Err("can't be read".to_owned()),
                |block| MemberLabel::decode(&block[..]),
            )
        });
        let decoded: Vec<_> = decoded.collect();
        for (copy, wrong) in decoded.iter().enumerate() {
            if let Err(detail) = wrong {
                findings.add(format!("{}: label {copy} {detail}", member.name()));
            }
        }
        let sound: Vec<MemberLabel> = decoded.into_iter().flatten().collect();
        let is_own = |label: &&MemberLabel| {
            (label.role, usize_of_u32(label.index), usize_of_u32(label.count))
                == (role, at, members.len())
        };
        let own = sound.iter().filter(is_own).max_by_key(|label| label.sitting).copied();
        if own.is_none() && sound.len() == 2 {
            let detail = "is a member of another volume, or stands in the wrong place".to_owned();
            return Err(Error::Member { member: member.name().to_owned(), detail });
        }
        Ok(own)
    };
    members.iter().enumerate().map(label).collect()
}

/// The volume that most labels name.
fn most_named(labels: &[Option<MemberLabel>]) -> Option<[u8; 16]> {
    let named = || labels.iter().flatten().map(|label| label.volume);
    named().max_by_key(|volume| named().filter(|other| other == volume).count())
}

impl Salvage {
    /// Finds what is left of the volume of `members`.
    ///
    /// # Errors
    /// [`Error::Member`] for members in wrong places, and [`Error::Damaged`] when not even the volume's size is left.
    pub fn open(name: &str, members: &Members) -> Result<Salvage> {
        let mut findings = Findings::default();
        let data = labels(&members.data, Role::Data, &mut findings)?;
        let buffer = labels(&members.buffer, Role::Buffer, &mut findings)?;
        let all = [&data[..], &buffer[..]].concat();
        let volume = most_named(&all);
        let own = |labels: &[Option<MemberLabel>]| {
            labels.iter().flatten().find(|label| Some(label.volume) == volume).copied()
        };
        let chunk = own(&data).map(|label| label.chunk_bytes);
        let mut on_data = Blocks::new(name, &members.data, chunk.unwrap_or(u32::MAX));
        let superblock = newest_superblock(&on_data, volume, &mut findings);
        if let (None, Some(superblock)) = (chunk, &superblock) {
            on_data = Blocks::new(name, &members.data, superblock.chunk_bytes.0);
        }
        let pages = all.iter().flatten().map(|label| label.volume_pages).max();
        let pages = superblock.as_ref().map(|superblock| superblock.volume_pages).or(pages);
        let Some((volume_pages, volume)) = pages
            .filter(|&pages| pages > 0 && pages < 1 << 40)
            .zip(superblock.as_ref().map(|superblock| superblock.volume).or(volume))
        else {
            return Err(Error::Damaged {
                volume: name.to_owned(),
                what: "superblock",
                number: 0,
                detail: "neither it nor a label of the present version is left, so that not even the volume's size is known".to_owned(),
            });
        };
        let (mut doubt, mut is_mixed) = (superblock.is_none(), false);
        if let Some(superblock) = &superblock {
            let in_place = members.data.iter().chain(&members.buffer).zip(&all);
            let in_place = in_place.filter_map(|(member, label)| {
                let label = label.filter(|label| label.volume == volume)?;
                Some((Arc::clone(member), label))
            });
            if let Err(error) = Labels(in_place.collect()).check(superblock) {
                findings.add(error.to_string());
                is_mixed = true;
            }
            let foreign = all.iter().flatten().any(|label| label.volume != volume);
            if foreign {
                findings.add(format!("{name}: not all members belong to this volume"));
                is_mixed = true;
            }
        }
        let maps = superblock.as_ref().map(|superblock| {
            let maps = SalvagedMaps::open(on_data, superblock, &mut findings);
            doubt |= maps.is_doubtful;
            maps
        });
        let records = (!members.buffer.is_empty()).then(|| {
            let chunk = own(&buffer).map(|label| label.chunk_bytes);
            let chunk = chunk.or(superblock.as_ref().map(|superblock| superblock.chunk_bytes.1));
            let chunk = chunk.filter(|&chunk| chunk > 0).unwrap_or(u32::MAX);
            let bytes = own(&buffer).map(|label| label.array_bytes);
            let on_buffer = Blocks::new(&format!("{name} (buffer)"), &members.buffer, chunk);
            let known = superblock.as_ref().zip(maps.as_ref());
            let known = known.map(|(superblock, maps)| maps.known(superblock));
            let pages = volume_pages;
            SalvagedRecords::open(&on_buffer, bytes, volume, known, pages, &mut findings)
        });
        doubt |= records.as_ref().is_some_and(|records| records.data_are_older);
        Ok(Salvage { volume_pages, maps, records, doubt, is_mixed, findings })
    }

    /// Bytes of the volume.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.volume_pages * BLOCK
    }

    /// The faults of the members: their number, and sentences about the first hundred.
    #[must_use]
    pub fn findings(&self) -> (u64, &[String]) {
        (self.findings.count, &self.findings.texts)
    }

    /// Reads page `page` of the volume into `out`; zeros if it is lost.
    ///
    /// # Panics
    /// When `out` is not a page of 4096 bytes, or the volume ends before it.
    pub fn read(&mut self, page: u64, out: &mut [u8]) -> Trust {
        assert!(page < self.volume_pages, "callers know the size");
        let out: &mut PageBytes = out.try_into().expect("a page");
        match self.read_newest(page, out) {
            Trust::Lost => {
                out.fill(0);
                Trust::Lost
            }
            Trust::Good if self.is_mixed => Trust::MayBeOld,
            trust => trust,
        }
    }

    fn read_newest(&mut self, page: u64, out: &mut PageBytes) -> Trust {
        let trusted = |is_newest: bool| if is_newest { Trust::Good } else { Trust::MayBeOld };
        let Some(records) = &mut self.records else { return self.read_stored(page, out) };
        match records.overlay.find(page) {
            PageLocation::Log(slot) => {
                if records.read(slot, out) {
                    return trusted(records.is_certain(page, slot.seq));
                }
                let at = slot.seq;
                self.findings.add(format!("page {page} is damaged in record {at} of the buffer"));
                match self.read_stored(page, out) {
                    Trust::Lost => Trust::Lost,
                    _ => Trust::MayBeOld,
                }
            }
            PageLocation::Zeros => {
                out.fill(0);
                trusted(records.trimmed_by(page).is_some_and(|seq| records.is_certain(page, seq)))
            }
            PageLocation::Store => {
                let is_certain = records.is_complete && !records.undecided.contains(&page);
                match self.read_stored(page, out) {
                    Trust::Good => trusted(is_certain),
                    other => other,
                }
            }
        }
    }

    fn read_stored(&mut self, page: u64, out: &mut PageBytes) -> Trust {
        let Some(maps) = &mut self.maps else { return Trust::Lost };
        match maps.read(page, out, &mut self.findings) {
            Trust::Good if self.doubt => Trust::MayBeOld,
            trust => trust,
        }
    }
}

/// The newer sound superblock of `volume`.
fn newest_superblock(
    data: &Blocks,
    volume: Option<[u8; 16]>,
    findings: &mut Findings,
) -> Option<Superblock> {
    let mut newest: Option<Superblock> = None;
    for copy in 0..2 {
        let block = data.block(copy * BLOCK);
        let decoded = block.map_or_else(
            || Err("it can't be read".to_owned()),
            |block| Superblock::decode(&block[..]),
        );
        match decoded {
            Ok(found) if volume.is_some_and(|volume| volume != found.volume) => {
                findings.add(format!("{}: superblock {copy} is of another volume", data.name()));
            }
            Ok(found) => {
                let is_newer =
                    newest.as_ref().is_none_or(|other| found.checkpoint > other.checkpoint);
                if is_newer {
                    newest = Some(found);
                }
            }
            Err(detail) => {
                findings.add(format!("{}: superblock {copy} is damaged: {detail}", data.name()));
            }
        }
    }
    newest
}

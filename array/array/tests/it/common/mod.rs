//! Members in a directory that fails as planned, and a model of the contents that a volume may have.

pub(crate) mod delayed;
pub(crate) mod mutated;
pub(crate) mod shattered;
pub(crate) mod unreadable;

use std::sync::Arc;

use merganser_array::{Hash, Members, OpenOptions, Volume, VolumeSettings};
use merganser_storage::{Directory, Operation, Storage, StorageExt};
use merganser_testkit::Random;

pub(crate) const PAGE: usize = 4096;
pub(crate) const MIB: u64 = 1 << 20;

/// The first byte of a page.
pub(crate) fn at(page: u64) -> u64 {
    page * PAGE as u64
}

/// One way to build a volume.
#[derive(Debug, Clone)]
pub(crate) struct Build {
    pub data: usize,
    pub buffer: usize,
    /// Bytes of all data members.
    pub data_bytes: u64,
    pub settings: VolumeSettings,
    pub options: OpenOptions,
}

impl Build {
    /// Small, so that everything wraps, spills and fills up often.
    pub(crate) fn small(buffered: bool, dedup: Option<Hash>) -> Build {
        let settings = VolumeSettings {
            chunk_bytes: 16 << 10,
            buffer_chunk_bytes: 32 << 10,
            dedup,
            journal_bytes: Some(64 << 10),
            ..VolumeSettings::new(2 * MIB)
        };
        let options =
            OpenOptions { memory_bytes: MIB, durable_writes: false, ..OpenOptions::default() };
        Build {
            data: 2,
            buffer: if buffered { 2 } else { 0 },
            data_bytes: 10 * MIB,
            settings,
            options,
        }
    }

    pub(crate) fn make_members(&self, directory: &dyn Directory) {
        for (name, bytes) in self.names() {
            let member = directory.create(&name).expect("made");
            member.run(Operation::SetSize { size: bytes }).expect("sized");
            member.sync().expect("synced");
        }
        directory.sync().expect("synced");
    }

    fn names(&self) -> impl Iterator<Item = (String, u64)> {
        let data = (0..self.data).map(|i| (format!("ssd{i}"), self.data_bytes / self.data as u64));
        let buffer = (0..self.buffer).map(|i| (format!("hdd{i}"), 7 * MIB / 2));
        data.chain(buffer)
    }

    pub(crate) fn members(&self, directory: &dyn Directory) -> Members {
        let open = |(name, _): (String, u64)| directory.open(&name, true).expect("is there");
        let mut all: Vec<Arc<dyn Storage>> = self.names().map(open).collect();
        let buffer = all.split_off(self.data);
        Members { data: all, buffer }
    }

    pub(crate) fn create(&self, directory: &dyn Directory) {
        self.make_members(directory);
        Volume::create("vol", &self.members(directory), &self.settings, false).expect("made");
    }

    pub(crate) fn open(&self, directory: &dyn Directory) -> merganser_array::Result<Volume> {
        Volume::open("vol", &self.members(directory), self.options.clone())
    }
}

/// A page like no other.
pub(crate) fn unique(random: &mut Random) -> Vec<u8> {
    (0..PAGE / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

/// Reads a page, again if a planned fault was in the way.
fn read_page(volume: &Volume, page: usize) -> std::io::Result<Vec<u8>> {
    let read = || volume.read_vec((page * PAGE) as u64, PAGE);
    read().or_else(|error| match error.to_string().contains("injected fault FailRead") {
        true => read(),
        false => Err(error),
    })
}

/// The contents that each page may have.
#[derive(Clone)]
pub(crate) struct Model {
    /// As a read must give it now.
    pub now: Vec<Arc<Vec<u8>>>,
    /// What else it may be after a cut: every version since the last flush, and the one it had then.
    maybe: Vec<Vec<Arc<Vec<u8>>>>,
}

impl Model {
    pub(crate) fn new(pages: usize) -> Model {
        let zeros = Arc::new(vec![0; PAGE]);
        Model { now: vec![Arc::clone(&zeros); pages], maybe: vec![vec![zeros]; pages] }
    }

    /// Bytes were written, or may have been, if `ended` is false.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], ended: bool) {
        let (mut at, mut bytes) = (offset as usize, bytes);
        while !bytes.is_empty() {
            let (page, inside) = (at / PAGE, at % PAGE);
            let len = bytes.len().min(PAGE - inside);
            let mut content = self.now[page].to_vec();
            content[inside..inside + len].copy_from_slice(&bytes[..len]);
            let content = Arc::new(content);
            self.maybe[page].push(Arc::clone(&content));
            if ended {
                self.now[page] = content;
            }
            (at, bytes) = (at + len, &bytes[len..]);
        }
    }

    pub(crate) fn flushed(&mut self) {
        for (maybe, now) in self.maybe.iter_mut().zip(&self.now) {
            *maybe = vec![Arc::clone(now)];
        }
    }

    /// As [`Model::flushed`], but for `count` pages from byte `at` on, whose write failed.
    pub(crate) fn flushed_but(&mut self, at: u64, count: usize) {
        let from = at as usize / PAGE;
        for page in (0..self.now.len()).filter(|page| !(from..from + count).contains(page)) {
            self.maybe[page] = vec![Arc::clone(&self.now[page])];
        }
    }

    /// Takes over what a volume holds where a write failed: each page may have the old or the new content.
    pub(crate) fn after_failure(&mut self, volume: &Volume, offset: u64, len: usize) {
        for page in offset as usize / PAGE..(offset as usize + len).div_ceil(PAGE) {
            let read = read_page(volume, page).expect("reads");
            let found = self.maybe[page].iter().rev().find(|version| ***version == read);
            self.now[page] = Arc::clone(found.unwrap_or_else(|| panic!("page {page}: no version")));
        }
    }

    /// Checks a volume whose writes are refused since one failed: each page holds one of its versions. One that was
    /// written since the last flush may be an error.
    pub(crate) fn check_refusing(&self, volume: &Volume, what: &str) {
        for (page, (now, maybe)) in self.now.iter().zip(&self.maybe).enumerate() {
            match volume.read_vec((page * PAGE) as u64, PAGE) {
                Ok(read) => {
                    let is_one = read == **now || maybe.iter().any(|version| read == **version);
                    assert!(is_one, "{what}: page {page} holds no version of it");
                }
                Err(error) => assert!(maybe.len() > 1, "{what}: page {page}: {error}"),
            }
        }
    }

    /// Checks a volume after a cut, and takes over what it holds.
    pub(crate) fn check_after_cut(&mut self, volume: &Volume, what: &str) {
        self.check_pages_after_cut(volume, |_| true, what);
    }

    /// As [`Model::check_after_cut`], for the pages that are chosen.
    pub(crate) fn check_pages_after_cut(
        &mut self,
        volume: &Volume,
        chosen: impl Fn(u64) -> bool,
        what: &str,
    ) {
        for page in (0..self.now.len()).filter(|&page| chosen(page as u64)) {
            let read = read_page(volume, page);
            let read = read.unwrap_or_else(|error| panic!("{what}: page {page}: {error}"));
            let found = self.maybe[page].iter().find(|version| ***version == read);
            let Some(found) = found else {
                let versions = self.maybe[page].len();
                panic!(
                    "{what}: page {page} holds none of its {versions} versions: {:?}",
                    &read[..8]
                );
            };
            self.now[page] = Arc::clone(found);
        }
        self.flushed();
    }
}

/// Bytes of whole pages: a few contents again and again, zeros, and some that occur once.
pub(crate) fn content(random: &mut Random, pages: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(pages * PAGE);
    for _ in 0..pages {
        let seed = match random.below(4) {
            0 => random.bits() | 1 << 63,
            1 if random.one_in(3) => 0,
            _ => 1 + random.below(30),
        };
        if seed == 0 {
            out.resize(out.len() + PAGE, 0);
        } else {
            let mut of_page = Random::new(seed);
            (0..PAGE / 8).for_each(|_| out.extend(of_page.bits().to_le_bytes()));
        }
    }
    out
}

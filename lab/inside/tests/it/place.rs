//! Files of a real ext4 on a loop device, read by their addresses. Loop devices need root.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use merganser_inside::isc::host::{DeviceDoor, HostSession};
use merganser_inside::isc::split::cut;
use merganser_inside::isc::{Isc, IscSettings};
use merganser_inside::place::{FilePlacement, PlaceError};
use merganser_inside::run::Runner;
use merganser_map::ssdlet::{builtin, rows};
use merganser_sort::record::Format;
use merganser_storage::memory::MemoryStorage;
use merganser_testkit::Random;
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::json;
use tempfile::TempDir;

/// An ext4 file system on a loop device, mounted until dropped.
struct Disk {
    folder: TempDir,
    mounted: PathBuf,
    device: PathBuf,
}

impl Disk {
    /// `None` without root, loop devices or mkfs.ext4, and says so.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn new(bytes: u64) -> Option<Disk> {
        let found = Self::make(bytes);
        if found.is_none() {
            eprintln!("skipped: files on a real ext4 need root, loop devices and mkfs.ext4");
        }
        found
    }

    fn make(bytes: u64) -> Option<Disk> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let folder = tempfile::tempdir().expect("made");
        let image = folder.path().join("image");
        File::create(&image).ok()?.set_len(bytes).expect("sparse");
        let found = Command::new("losetup").args(["-f", "--show"]).arg(&image).output().ok()?;
        let device = String::from_utf8(found.stdout).expect("a path").trim().to_owned();
        if !found.status.success() || device.is_empty() {
            return None;
        }
        let mounted = folder.path().join("mounted");
        fs::create_dir(&mounted).expect("made");
        let disk = Disk { folder, mounted, device: device.into() };
        let made = run("mkfs.ext4", &[Path::new("-q"), &disk.device]);
        (made && run("mount", &[&disk.device, &disk.mounted])).then_some(disk)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> File {
        let path = self.mounted.join(name);
        fs::write(&path, bytes).expect("written");
        OpenOptions::new().read(true).write(true).open(path).expect("there")
    }

    fn bytes_of(&self, placement: &FilePlacement) -> Vec<u8> {
        use std::os::unix::fs::FileExt;
        let device = File::open(&self.device).expect("there");
        let mut bytes = vec![0; placement.size() as usize];
        // Past the page cache of the device, which the file system does not keep up to date.
        rustix::fs::fadvise(&device, 0, None, rustix::fs::Advice::DontNeed).expect("dropped");
        for stretch in placement.stretches() {
            let part = &mut bytes[stretch.at as usize..][..stretch.bytes as usize];
            device.read_exact_at(part, stretch.on_device).expect("read");
        }
        bytes
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &[Path::new("-l"), &self.mounted]);
        run("losetup", &[Path::new("-d"), &self.device]);
        let _ = self.folder.path();
    }
}

fn run(program: &str, words: &[&Path]) -> bool {
    Command::new(program).args(words).status().is_ok_and(|status| status.success())
}

fn text(words: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut text = Vec::new();
    for number in 0..words {
        text.extend(format!("word{}", random.below(900)).bytes());
        text.push(if number % 9 == 8 { b'\n' } else { b' ' });
    }
    text
}

#[test]
fn bytes_are_where_it_says() {
    let Some(disk) = Disk::new(256 << 20) else { return };
    // Written in turns, so that their extents alternate.
    let names = ["one", "two", "three"];
    let mut files: Vec<File> = names.iter().map(|name| disk.write(name, b"")).collect();
    let mut contents = vec![Vec::new(); 3];
    let mut random = Random::new(1);
    for _ in 0..60 {
        for (file, content) in files.iter_mut().zip(&mut contents) {
            use std::io::Write;
            let part = {
                let len = 1 + random.index(200_000);
                random.bytes(len)
            };
            file.write_all(&part).expect("written");
            file.sync_all().expect("synced");
            content.extend(part);
        }
    }
    for (file, content) in files.iter().zip(&contents) {
        let placement = FilePlacement::of_file(file).expect("placed");
        assert_eq!(placement.size(), content.len() as u64);
        assert!(placement.stretches().len() > 1, "{placement:?}");
        assert!(disk.bytes_of(&placement) == *content);
        placement.check_unchanged(file).expect("unchanged");
    }
    let empty = FilePlacement::of_file(&disk.write("empty", b"")).expect("placed");
    assert_eq!(empty.stretches(), []);
}

#[test]
fn what_is_not_there_is_refused_and_changes_are_seen() {
    let Some(disk) = Disk::new(64 << 20) else { return };
    let file = disk.write("allocated", b"begun");
    fallocate(file.as_fd(), FallocateFlags::empty(), 0, 1 << 20).expect("allocated");
    let said = FilePlacement::of_file(&file).expect_err("unwritten").to_string();
    assert!(said.contains("never written"), "{said}");
    let file = disk.write("hole", b"begun");
    file.set_len(1 << 20).expect("longer");
    assert!(matches!(FilePlacement::of_file(&file), Err(PlaceError::Hole { .. })));
    let folder = File::open(&disk.mounted).expect("there");
    assert!(matches!(FilePlacement::of_file(&folder), Err(PlaceError::NotRegular)));

    use std::io::{Seek, Write};
    let mut file = disk.write("changes", &[7; 100_000]);
    let placement = FilePlacement::of_file(&file).expect("placed");
    file.rewind().expect("at its start");
    // Times are as exact as a tick of the kernel.
    std::thread::sleep(std::time::Duration::from_millis(20));
    file.write_all(b"other").expect("written");
    let said = placement.check_unchanged(&file).expect_err("changed").to_string();
    assert_eq!(said, "it changed while it was read: its size or its times");
    let other = disk.write("other", &[7; 100_000]);
    placement.check_unchanged(&other).expect_err("another file");
}

/// The paper's way (sections 3.2 and 3.3): a file on ext4 to addresses, its split records in a file of
/// their own, one session, several SETs. The SSDlet reads the block device and knows no file system.
#[test]
fn words_of_a_file_are_counted_by_addresses() {
    let Some(disk) = Disk::new(256 << 20) else { return };
    let input = text(700_000, 5);
    let file = disk.write("input", &input);
    let placement = FilePlacement::of_file(&file).expect("placed");
    let source = MemoryStorage::from_bytes("input", &input);
    let cuts = cut(&*source, 1_000_000, Format::Lines { delimiter: b'\n' }).expect("read");
    let mut records = Vec::new();
    for record in &cuts.records {
        records.extend_from_slice(&input[record.start as usize..record.end as usize]);
    }
    let records_file = disk.write("split-records", &records);
    let records_placement = FilePlacement::of_file(&records_file).expect("placed");

    let open = Arc::new(builtin::open);
    let storage =
        merganser_storage::file::FileStorage::open_path(&disk.device, false).expect("opened");
    let mut runner =
        Runner::new(Isc::new(1 << 50, IscSettings::default(), open), storage, 256 << 20);
    let door: &mut dyn DeviceDoor = &mut runner;
    let session =
        HostSession::open(door, 1 << 50, 1, "wordcount", &json!({}), 128 << 20).expect("opened");
    for cut in &cuts.splits {
        session.set(door, placement.split(0, cut), true).expect("taken");
    }
    let mut at = 0;
    for (number, record) in cuts.records.iter().enumerate() {
        let end = at + (record.end - record.start);
        let part = records_placement.part(at..end, 0, record.start);
        session.set(door, part, number + 1 < cuts.records.len()).expect("taken");
        at = end;
    }
    let status = session.wait(door).expect("done");
    let found = rows(&session.result(door, &status).expect("read")).expect("rows");
    session.close(door).expect("closed");
    placement.check_unchanged(&file).expect("unchanged");

    assert!(cuts.records.len() > 3, "{}", cuts.records.len());
    let mut counts: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    for word in input.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        *counts.entry(word.to_vec()).or_default() += 1;
    }
    let expected: Vec<_> =
        counts.into_iter().map(|(key, n)| (key, n.to_le_bytes().to_vec())).collect();
    assert!(found == expected);
}

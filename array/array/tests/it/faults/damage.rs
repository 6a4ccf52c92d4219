//! Bytes that changed on a member.

use merganser_array::Hash;
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, StorageExt};
use merganser_testkit::Random;

use crate::common::{Build, MIB, Model, PAGE, content};

/// Any bit of any member may flip, of a volume that was closed or of one whose journal and log are repeated: a read then
/// gives the right bytes or an error, and a check finds what reads find.
#[test]
fn damage_is_an_error_and_never_data() {
    for (buffered, closed) in [(true, true), (true, false), (false, true), (false, false)] {
        let build = Build::small(buffered, Some(Hash::Blake3));
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let mut model = Model::new(512);
        {
            let volume = build.open(&*directory).expect("opens");
            let mut random = Random::new(6);
            for i in 0..120 {
                let bytes = content(&mut random, 8);
                let at = random.below(504) * PAGE as u64;
                volume.write_at(at, &bytes).expect("written");
                model.write(at, &bytes, true);
                if i % 40 == 39 {
                    volume.sync().expect("flushed");
                    while i < 100 && volume.migrate().expect("moves") {}
                }
            }
            if closed {
                volume.close().expect("closes");
            } else {
                // Without it, damage to the last flush looks like a write that a cut tore.
                volume.seal().expect("sealed");
            }
        }
        model.flushed();
        // Where something is, and of these places the ones with maps, transactions and records.
        let (mut places, mut maps) = (Vec::new(), Vec::new());
        for name in directory.list().expect("lists") {
            let member = directory.open(&name, false).expect("opens");
            for at in (0..member.size()).step_by(PAGE) {
                let block = member.read_vec(at, PAGE).expect("reads");
                if block.iter().any(|&byte| byte != 0) {
                    places.push((name.clone(), at));
                    if [b"MtbB", b"MtbS", b"MjrT", b"MlgS"].iter().any(|own| block[..4] == own[..])
                    {
                        maps.push((name.clone(), at));
                    }
                }
            }
        }
        let mut random = Random::new(7);
        let (mut errors, mut refused) = (0, 0);
        for i in 0..180 {
            let copy = directory.copy();
            let among = if i % 3 == 2 { &maps } else { &places };
            let (name, block) = &among[random.index(among.len())];
            let member = copy.open(name, true).expect("opens");
            let at = block + random.below(PAGE as u64);
            let byte = member.read_vec(at, 1).expect("reads")[0];
            member.write_at(at, &[byte ^ 1 << random.below(8)]).expect("written");
            let volume = match build.open(&*copy) {
                Ok(volume) => volume,
                Err(error) => {
                    assert!(error.is_damage(), "{error:?}");
                    refused += 1;
                    continue;
                }
            };
            let mut failed = 0;
            for page in 0..512 {
                match volume.read_vec(page * PAGE as u64, PAGE) {
                    Ok(read) => {
                        assert!(read == *model.now[page as usize], "{name} at {at}: page {page}");
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
                        failed += 1;
                    }
                }
            }
            let check = volume.check(&mut |_, _| {}).expect("checks");
            assert!(check.problems >= failed, "{name} at {at}: {failed} pages, {check:?}");
            errors += failed;
        }
        let what = format!("buffered {buffered}, closed {closed}");
        assert!(errors > 20 && refused > 0, "{what}: {errors} errors, {refused} refused");
    }
}

/// A page that was damaged in the buffer stays an error when it moves, and is good again when it is
/// written.
#[test]
fn a_page_damaged_in_the_buffer_is_lost_until_it_is_written() {
    let directory = MemoryDirectory::new();
    let build = Build::small(true, Some(Hash::Blake3));
    build.create(&*directory);
    let volume = build.open(&*directory).expect("opens");
    volume.write_at(0, &vec![7; 2 * PAGE]).expect("written");
    volume.sync().expect("flushed");
    // Label, first block of the record, first page.
    let member = directory.open("hdd0", true).expect("opens");
    member.write_at(MIB + PAGE as u64 + 5, b"damage").expect("written");
    let why = volume.read_vec(0, PAGE).expect_err("damaged").to_string();
    assert!(why.contains("page 0 is damaged") && why.contains("buffer"), "{why}");
    while volume.migrate().expect("moves") {}
    let why = volume.read_vec(0, PAGE).expect_err("lost").to_string();
    assert!(why.contains("page 0 (byte 0) was lost to damage; write it again"), "{why}");
    assert_eq!(volume.read_vec(PAGE as u64, PAGE).expect("reads"), vec![7; PAGE]);
    volume.close().expect("closes");
    let volume = build.open(&*directory).expect("opens");
    assert!(volume.read_vec(0, 1).is_err());
    assert_eq!(volume.check(&mut |_, _| {}).expect("checks").problems, 1);
    volume.write_at(0, &vec![8; PAGE]).expect("written");
    assert_eq!(volume.read_vec(0, PAGE).expect("reads"), vec![8; PAGE]);
}

//! Volumes with damage: those that open, those whose good pages `salvage` copies, and descriptions of other volumes.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::array::{Client, FLUSH, PAGE, WRITE, create, end, is_sound, page, serve, serve_moving};
use crate::harness::{Folder, fails, merganser, prints, stderr};

/// Blocks of a member before its array.
const LABEL_BLOCKS: u64 = 256;
const WRITES: u64 = 300;

/// A volume whose server was killed with 300 writes in the buffer. Record n, from 0, is in blocks 2 n and 2 n + 1.
fn killed() -> Folder {
    let folder = Folder::new();
    create(&folder, &[]);
    let mut server = serve_moving(&folder, "high-water", &[]);
    let mut client = Client::new(&folder).expect("it talks");
    for at in 0..WRITES {
        client.ask(WRITE, at * PAGE as u64, PAGE as u32, &page(1 + at)).expect("written");
    }
    server.kill().expect("killed");
    server.wait().expect("it ends");
    folder
}

/// Overwrites the first block of a record, which is on the first buffer member.
fn damage(folder: &Folder, record: u64) {
    let member = File::options().write(true).open(folder.at("hdd0")).expect("there");
    let at = (LABEL_BLOCKS + 2 * record) * PAGE as u64;
    member.write_all_at(&[0; PAGE], at).expect("written");
}

#[test]
fn one_bad_block_in_the_log_does_not_close_a_volume() {
    let folder = killed();
    damage(&folder, 100);
    is_sound(&folder);
    let server = serve(&folder, &[]);
    let mut client = Client::new(&folder).expect("it talks");
    for at in 0..WRITES {
        let read = client.ask(0, at * PAGE as u64, PAGE as u32, &[]).expect("read");
        assert!(read == page(1 + at), "page {at}");
    }
    end(server);
}

#[test]
fn salvage_copies_the_pages_of_a_volume_that_stays_closed() {
    let folder = killed();
    damage(&folder, 100);
    damage(&folder, 101);
    let refused = fails(merganser(["array", "check"]).arg(folder.at("vol.json")));
    assert!(refused.contains("merganser array salvage"), "{refused}");
    let members = ["ssd0", "ssd1", "hdd0", "hdd1"].map(|name| folder.at(name));
    let before = members.clone().map(|member| fs::read(member).expect("there"));
    let (image, report) = (folder.at("image"), folder.at("pages.json"));
    let mut salvage = merganser(["array", "salvage"]);
    salvage.arg(folder.at("vol.json")).arg("-o").arg(&image).arg("--report").arg(&report);
    let output = salvage.output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(members.map(|member| fs::read(member).expect("there")) == before, "it wrote");
    let image = fs::read(image).expect("there");
    for at in (0..WRITES).filter(|&at| at != 100) {
        assert!(image[at as usize * PAGE..][..PAGE] == page(1 + at), "page {at}");
    }
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(report).expect("there")).expect("JSON");
    let old = report["may_be_old"].as_array().expect("a list");
    let is_listed = |range: &serde_json::Value| {
        let number = |at: usize| range[at].as_u64().expect("a number");
        (number(0)..number(0) + number(1)).contains(&100)
    };
    assert!(old.iter().any(is_listed), "{report}");
}

/// A server could change the members while they are read.
#[test]
fn a_volume_in_use_is_not_salvaged_and_one_that_is_salvaged_is_not_used() {
    let folder = Folder::new();
    create(&folder, &[]);
    let salvage = || {
        let mut salvage = merganser(["array", "salvage"]);
        salvage.arg(folder.at("vol.json")).arg("-o").arg(folder.at("image"));
        salvage
    };
    let server = serve(&folder, &[]);
    let refused = fails(&mut salvage());
    assert!(refused.contains("is in use by another process"), "{refused}");
    assert!(!folder.at("image").exists());
    end(server);
    prints(&mut salvage());
    // What salvage holds: others may read, and none may change it.
    let member = File::open(folder.at("hdd1")).expect("there");
    member.lock_shared().expect("locked");
    prints(&mut salvage());
    let refused = fails(merganser(["array", "check"]).arg(folder.at("vol.json")));
    assert!(refused.contains("hdd1: is in use by another process"), "{refused}");
}

/// The image of a volume in the place of a member would be the end of both.
#[test]
fn salvage_writes_over_no_part_of_its_volume() {
    let folder = Folder::new();
    create(&folder, &[]);
    fs::hard_link(folder.at("ssd1"), folder.at("other name")).expect("linked");
    let names = ["vol.json", "ssd0", "ssd1", "hdd0", "hdd1"];
    let all = || names.map(|name| fs::read(folder.at(name)).expect("there"));
    let before = all();
    for (image, report) in
        [("ssd0", None), ("other name", None), ("vol.json", None), ("image", Some("vol.json"))]
    {
        let mut salvage = merganser(["array", "salvage"]);
        salvage.arg(folder.at("vol.json")).arg("-o").arg(folder.at(image));
        if let Some(report) = report {
            salvage.arg("--report").arg(folder.at(report));
        }
        let refused = fails(&mut salvage);
        let flag = if report.is_some() { "--report" } else { "-o" };
        assert!(refused.contains("is a part of the volume"), "{refused}");
        assert!(refused.contains(flag), "{refused}");
        assert!(all() == before, "{image} {report:?}");
    }
    assert!(!folder.at("image").exists());
}

/// N14: `create --replace` makes another volume of the same members, which the old description does not open.
#[test]
fn a_description_does_not_open_the_volume_that_replaced_its_own() {
    let folder = Folder::new();
    create(&folder, &[]);
    let server = serve(&folder, &[]);
    let mut client = Client::new(&folder).expect("it talks");
    client.ask(WRITE, 0, PAGE as u32, &page(1)).expect("written");
    client.ask(FLUSH, 0, 0, &[]).expect("flushed");
    end(server);
    let (old, new) = (folder.at("old.json"), folder.at("vol.json"));
    fs::rename(&new, &old).expect("renamed");
    is_sound_at(&old);
    create(&folder, &["--replace"]);
    let door = folder.at("door");
    let (image, socket) = (folder.at("image"), door.to_str().expect("text"));
    let image = image.to_str().expect("text");
    let commands: [&[&str]; 5] = [
        &["check"],
        &["serve", "--nbd", socket],
        &["info"],
        &["report"],
        &["salvage", "-o", image],
    ];
    for command in commands {
        let refused = fails(merganser(["array"]).args(command).arg(&old));
        let says = refused.contains("old.json: describes volume");
        assert!(says && refused.contains("made into another one"), "{refused}");
    }
    assert!(!folder.at("image").exists());
    is_sound(&folder);
}

fn is_sound_at(volume: &std::path::Path) {
    prints(merganser(["array", "check"]).arg(volume));
}

//! A volume that is served, written over NBD, killed and served again. The client here is written from
//! the protocol, so that the tests need no program.
//!
//! - `clients`: clients of other projects, and a file system on a volume, whose server is killed; the latter needs root
//! - `doors`: a volume as a file in a mounted folder
//! - `facts`: what `info`, `report` and the description say, and that the documentation names it
//! - `room`: file systems that are full, before a volume is made and after; needs root
//! - `memory`: the memory of a server
//! - `salvage`: volumes with damage, and descriptions of other volumes

mod clients;
mod doors;
mod facts;
mod memory;
mod room;
mod salvage;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Chance, Folder, asked, fails, merganser, merganser_itself, prints, stderr};
use crate::preload::{Event, Step, Steps};

const PAGE: usize = 4096;
const PAGES: u64 = 4096;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;

/// A client of the first export, with simple replies.
struct Client(UnixStream);

impl Client {
    fn new(folder: &Folder) -> Option<Client> {
        let mut stream = UnixStream::connect(folder.at("s")).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).ok()?;
        // Flags, then GO with the empty name and no wishes.
        stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0").ok()?;
        loop {
            let mut head = [0; 20];
            stream.read_exact(&mut head).ok()?;
            let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("4"));
            stream.read_exact(&mut vec![0; number(16) as usize]).ok()?;
            match number(12) {
                1 => return Some(Client(stream)),
                3 => {}
                other => panic!("refused: {other:#x}"),
            }
        }
    }

    /// Sends a request and takes its reply; `None` when the server is gone.
    fn ask(&mut self, command: u16, offset: u64, len: u32, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut request = b"\x25\x60\x95\x13\0\0".to_vec();
        request.extend(command.to_be_bytes());
        request.extend(7_u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(len.to_be_bytes());
        request.extend(bytes);
        self.0.write_all(&request).ok()?;
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).ok()?;
        assert_eq!(reply[4..8], [0; 4], "request {command} failed");
        let mut out = vec![0; if command == 0 { len as usize } else { 0 }];
        self.0.read_exact(&mut out).ok()?;
        Some(out)
    }
}

fn serve(folder: &Folder, more: &[&str]) -> Child {
    serve_moving(folder, "immediate", more)
}

fn serve_moving(folder: &Folder, migration: &str, more: &[&str]) -> Child {
    let mut server =
        merganser_itself(["array", "serve", "--memory", "2M", "--migration", migration])
            .args(more)
            .arg(folder.at("vol.json"))
            .arg("--nbd")
            .arg(folder.at("s"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
    let start = Instant::now();
    while UnixStream::connect(folder.at("s")).is_err() {
        if server.try_wait().expect("asked").is_some() || start.elapsed().as_secs() > 30 {
            let _ = server.kill();
            let output = server.wait_with_output().expect("it ends");
            panic!("not served: {}: {}", output.status, stderr(&output));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    server
}

fn create(folder: &Folder, more: &[&str]) {
    let at = |name: &str| folder.at(name).to_str().expect("text").to_owned();
    let mut command = merganser(["array", "create"]);
    command.arg(at("vol.json")).args(["--size", "16M", "--buffer-size", "8M"]);
    command.arg("--data").arg(format!("{},{}", at("ssd0"), at("ssd1")));
    prints(command.arg("--buffer").arg(format!("{},{}", at("hdd0"), at("hdd1"))).args(more));
}

/// Ends a server with SIGTERM; it must close its volume.
fn end(mut server: Child) {
    signal(&server, libc::SIGTERM);
    assert_eq!(server.wait().expect("it ends").code(), Some(0));
}

fn signal(server: &Child, signal: libc::c_int) {
    // SAFETY: a signal to a child that has not been waited for, so the pid is its own.
    unsafe { libc::kill(libc::pid_t::try_from(server.id()).expect("a pid"), signal) };
}

/// The result of `array COMMAND --json` for the volume.
fn json(folder: &Folder, command: &str) -> serde_json::Value {
    let said = prints(merganser(["array", command, "--json"]).arg(folder.at("vol.json")));
    serde_json::from_slice(&said).expect("JSON")
}

/// Nothing is wrong with the volume, and no space is lost.
fn is_sound(folder: &Folder) {
    let checked = json(folder, "check");
    let found = (&checked["problems"], &checked["pages_leaked"]);
    assert_eq!(found, (&0.into(), &0.into()), "{checked}");
}

/// The same bytes for the same seed; zeros for 0.
fn page(seed: u64) -> Vec<u8> {
    let mut random = merganser_random::Random::new(seed);
    let bytes = (0..PAGE / 8).flat_map(|_| random.bits().to_le_bytes());
    if seed == 0 { vec![0; PAGE] } else { bytes.collect() }
}

/// Killed at random moments, again and again: every page whose write was answered is there.
#[test]
fn a_killed_volume_keeps_what_was_answered() {
    killed(true, &[]);
}

/// With a write cache, every flushed page is there, and each other page holds one of its versions.
#[test]
fn a_killed_volume_with_a_write_cache_keeps_what_was_flushed() {
    killed(false, &["--write-back"]);
}

/// Kills a volume that is served with the options `more`. `durable` says that answered writes survive.
fn killed(durable: bool, more: &[&str]) {
    let folder = Folder::new();
    create(&folder, &[]);
    let mut chance = Chance::new();
    // By page: the versions that it may have, the newest last.
    let mut model: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for round in 0..asked("MERGANSER_CRASHES", 6) {
        let mut server = serve(&folder, more);
        let mut client = Client::new(&folder).expect("it talks");
        for (&at, versions) in &mut model {
            let read = client.ask(0, at * PAGE as u64, PAGE as u32, &[]).expect("it answers");
            let found = versions.iter().copied().find(|&seed| page(seed) == read);
            let found = found.unwrap_or_else(|| panic!("round {round}: page {at} of {versions:?}"));
            *versions = vec![found];
        }
        let end = Instant::now() + Duration::from_millis(100 + chance.below(700));
        let killer = {
            let pid = libc::pid_t::try_from(server.id()).expect("a pid");
            std::thread::spawn(move || {
                std::thread::sleep(end.saturating_duration_since(Instant::now()));
                // SAFETY: a signal to a child that has not been waited for, so the pid is its own.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            })
        };
        loop {
            let at = chance.below(PAGES);
            let mut kept = durable;
            let answered = match chance.below(20) {
                0 => {
                    kept = true;
                    client.ask(FLUSH, 0, 0, &[]).is_some()
                }
                1 => {
                    let count = (1 + chance.below(20)).min(PAGES - at);
                    (at..at + count)
                        .for_each(|at| model.entry(at).or_insert_with(|| vec![0]).push(0));
                    client.ask(TRIM, at * PAGE as u64, count as u32 * PAGE as u32, &[]).is_some()
                }
                _ => {
                    let seed = 1 + chance.below(2000);
                    model.entry(at).or_insert_with(|| vec![0]).push(seed);
                    client.ask(WRITE, at * PAGE as u64, PAGE as u32, &page(seed)).is_some()
                }
            };
            if !answered {
                break;
            }
            if kept {
                model.values_mut().for_each(|all| drop(all.drain(..all.len() - 1)));
            }
        }
        killer.join().expect("no panic");
        server.wait().expect("it ends");
    }
    is_sound(&folder);
}

#[test]
fn a_volume_is_made_served_checked_and_reported() {
    let folder = Folder::new();
    create(&folder, &["--hash", "sha1", "--compare"]);
    let volume = folder.at("vol.json");
    let server = serve(&folder, &[]);
    let refused = fails(merganser(["array", "check"]).arg(&volume));
    assert!(refused.contains("is in use by another process"), "{refused}");
    let mut client = Client::new(&folder).expect("it talks");
    for at in 0..100 {
        client.ask(WRITE, at * PAGE as u64, PAGE as u32, &page(1 + at % 2)).expect("written");
    }
    client.ask(FLUSH, 0, 0, &[]).expect("flushed");
    end(server);
    let json = |command: &str| json(&folder, command);
    let info = json("info");
    assert_eq!((&info["closed_in_order"], &info["bytes"]), (&true.into(), &(16 << 20).into()));
    assert_eq!((&info["dedup"], &info["buffer_members"]), (&"sha1".into(), &2.into()));
    assert_eq!(json("report")["pages_written"], 100);
    assert_eq!(json("check")["problems"], 0);
    prints(merganser(["array", "report"]).arg(&volume).arg("--page").arg(folder.at("page.html")));
    let html = fs::read_to_string(folder.at("page.html")).expect("a page");
    assert!(html.contains("<svg") && html.contains("deduplication by SHA-1"), "{html}");
    assert!(!html.contains("<script"), "{html}");

    // A label's second copy is mended, and that is said.
    let mut member = fs::read(folder.at("hdd1")).expect("there");
    member[PAGE + 40] ^= 1;
    fs::write(folder.at("hdd1"), &member).expect("written");
    assert_eq!(json("check")["copies_mended"], 1);
    assert_eq!(json("check")["copies_mended"], 0);

    // Damage is found, wherever the page is now.
    for name in ["ssd0", "ssd1", "hdd0", "hdd1"] {
        let mut member = fs::read(folder.at(name)).expect("there");
        for block in member.chunks_mut(PAGE).filter(|block| **block == page(1)) {
            block[10] ^= 1;
        }
        fs::write(folder.at(name), &member).expect("written");
    }
    let output = merganser(["array", "check"]).arg(&volume).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("page 0 is damaged"), "{said}");
    // A member that is missing, or another one.
    fs::rename(folder.at("ssd1"), folder.at("away")).expect("renamed");
    assert!(fails(merganser(["array", "check"]).arg(&volume)).contains("ssd1"));
    fs::copy(folder.at("ssd0"), folder.at("ssd1")).expect("copied");
    let refused = fails(merganser(["array", "check"]).arg(&volume));
    assert!(refused.contains("is data member 0 of 2, and stands at place 1"), "{refused}");
}

/// Appends to a buffer with holes would wait for the file system's own journal, and members with holes could find no space.
#[test]
fn new_members_have_blocks_for_all_their_bytes() {
    let allocated = |folder: &Folder, name: &str| {
        let found = fs::metadata(folder.at(name)).expect("made");
        (found.blocks() * 512, found.len())
    };
    for sparse in [false, true] {
        let folder = Folder::new();
        create(&folder, if sparse { &["--sparse"] } else { &[] });
        for name in ["hdd0", "hdd1"] {
            let (bytes, len) = allocated(&folder, name);
            assert!(len == 4 << 20 && bytes >= len, "{name}: {bytes} of {len} bytes");
        }
        for name in ["ssd0", "ssd1"] {
            let (bytes, len) = allocated(&folder, name);
            let is_sparse = bytes < len / 2;
            assert!(is_sparse == sparse && (sparse || bytes >= len), "{name}: {bytes} of {len}");
        }
        if sparse {
            // They are used again, and get blocks.
            fs::remove_file(folder.at("vol.json")).expect("there");
            create(&folder, &["--replace"]);
            let (bytes, len) = allocated(&folder, "ssd1");
            assert!(bytes >= len, "{bytes} of {len} bytes");
        }
    }
}

/// Every sync of `array create` may fail: of members, of the folders that name them, and of the description.
#[test]
fn a_sync_that_fails_leaves_nothing() {
    let Some(steps) = Steps::new() else { return };
    for (name, most) in [("ssd", 8), ("members", 2), ("vol.json", 1), ("described", 1)] {
        for at in 1..=most {
            let folder = Folder::new();
            for made in ["members", "described"] {
                fs::create_dir(folder.at(made)).expect("made");
            }
            let mut command = merganser_itself(["array", "create"]);
            command.arg(folder.at("described/vol.json")).args(["--size", "1M", "--data"]);
            command.arg(folder.at("members/ssd")).arg("--buffer").arg(folder.at("members/hdd"));
            let step = Step { of: Some("sync"), name: Some(name), at };
            steps.arm(&mut command, step, Event::Fail(libc::EIO));
            let output = command.output().expect("it runs");
            let made = |of: &str| fs::read_dir(folder.at(of)).expect("there").count();
            if output.status.success() {
                // A member is synced less often than this.
                assert!(at > 1 && name == "ssd", "{name} {at}: no such sync");
                assert_eq!((made("members"), made("described")), (2, 1));
                break;
            }
            assert_eq!((made("members"), made("described")), (0, 0), "{name} {at}: {output:?}");
        }
    }
}

#[test]
fn what_cant_be_made_leaves_nothing() {
    let folder = Folder::new();
    let mut command = merganser(["array", "create"]);
    command.arg(folder.at("vol.json")).args(["--size", "1G", "--data-size", "64M", "--no-buffer"]);
    let refused = fails(command.arg("--data").arg(folder.at("ssd")));
    assert!(refused.contains("is too large"), "{refused}");
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    let held = folder.write("held", b"content");
    let mut command = merganser(["array", "create"]);
    command.arg(folder.at("vol.json")).args(["--size", "1M", "--no-buffer"]);
    let refused = fails(command.arg("--data").arg(&held));
    assert!(refused.contains("--replace"), "{refused}");
    assert_eq!(fs::read(&held).expect("there"), b"content");
    let refused = fails(merganser(["array", "info"]).arg(&held));
    assert!(refused.contains("is no description of a volume"), "{refused}");
}

/// A volume whose member lost its name in a power cut could not be opened again.
#[test]
fn the_names_of_new_members_are_durable() {
    let Some(steps) = Steps::new() else { return };
    let folder = Folder::new();
    fs::create_dir(folder.at("members")).expect("made");
    let mut command =
        merganser_itself(["array", "create", "vol.json", "--size", "1M", "--no-buffer"]);
    command.args(["--data", "members/a"]).current_dir(folder.path());
    steps.arm(&mut command, Step::first("sync", "members"), Event::Fail(libc::EIO));
    let said = fails(&mut command);
    assert!(said.contains("members/a: Input/output error"), "{said}");
    assert!(!folder.at("members/a").exists() && !folder.at("vol.json").exists());
}

/// A description without members would be in the way of the next attempt.
#[test]
fn a_volume_that_cannot_be_described_leaves_nothing() {
    let Some(steps) = Steps::new() else { return };
    let folder = Folder::new();
    let mut command =
        merganser_itself(["array", "create", "vol.json", "--size", "1M", "--no-buffer"]);
    command.args(["--data", "a"]).current_dir(folder.path());
    steps.arm(&mut command, Step::first("sync", "vol.json"), Event::Fail(libc::EIO));
    let said = fails(&mut command);
    assert!(said.contains("vol.json: Input/output error"), "{said}");
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

/// A command that is refused takes nothing of the volume that the other one has made.
#[test]
fn of_two_that_make_a_volume_at_once_the_first_one_has_it() {
    let folder = Folder::new();
    for round in 0..20 {
        let start = |_| {
            let mut command = merganser_itself(["array", "create", "vol.json", "--size", "8M"]);
            command.args(["--no-buffer", "--data", "d0,d1", "--replace", "--quiet"]);
            command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().expect("it starts")
        };
        let both: Vec<Child> = (0..2).map(start).collect();
        let ended = both.into_iter().map(|child| child.wait_with_output().expect("it ends"));
        let ended: Vec<_> = ended.collect();
        let made = ended.iter().filter(|output| output.status.success()).count();
        assert!(made <= 1, "round {round}: both made it");
        if made == 1 {
            is_sound(&folder);
            assert_eq!(folder.names(), ["d0", "d1", "vol.json"], "round {round}: {ended:?}");
        } else {
            assert!(!folder.at("vol.json").exists(), "round {round}: {ended:?}");
        }
        for name in folder.names() {
            fs::remove_file(folder.at(&name)).expect("removed");
        }
    }
}

//! The programs that people use.

use std::fs;
use std::io;
use std::process::{Command, Output};

use super::*;

/// Runs a program that must succeed; `None`, with a line said, when it is not installed.
fn program(name: &str, arguments: &[&str]) -> Option<Output> {
    let output = match Command::new(name).args(arguments).output() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            eprintln!("skipped: {name} is not installed");
            return None;
        }
        output => output.expect("it starts"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {}: {said}", output.status);
    Some(output)
}

#[test]
fn nbdinfo_understands_it() {
    let served = Served::new();
    let socket = served.uri("");
    let Some(output) = program("nbdinfo", &["--list", "--json", &socket]) else { return };
    let said = String::from_utf8(output.stdout).expect("JSON");
    for part in [
        "\"protocol\": \"newstyle-fixed\"",
        "\"structured\": true",
        "\"export-name\": \"view\"",
        "\"export-name\": \"other\"",
        "\"export-size\": 5000017",
        "\"is_read_only\": true",
        "\"can_multi_conn\": true",
        "\"can_df\": true",
        "\"can_flush\": true",
        "\"can_trim\": false",
        "\"block_size_minimum\": 1",
        "\"block_size_preferred\": 4096",
        "\"block_size_maximum\": 33554432",
        "\"base:allocation\"",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let map = program("nbdinfo", &["--map", &served.uri("view")]).expect("installed");
    let map = String::from_utf8(map.stdout).expect("text");
    assert_eq!(map.split_whitespace().collect::<Vec<_>>(), ["0", "5000017", "0", "data"]);
    program("nbdinfo", &["--size", &served.uri("other")]).expect("installed");
    let refused = Command::new("nbdinfo").arg(served.uri("missing")).output().expect("it starts");
    assert!(!refused.status.success());
}

#[test]
fn nbdcopy_copies_it() {
    let served = Served::new();
    let to = served.folder.path().join("copy");
    let to = to.to_str().expect("text");
    for how in [&[][..], &["--connections=1", "--requests=1"], &["--request-size=33554432"]] {
        let uri = served.uri("view");
        let arguments = [how, &[&uri, to]].concat();
        let Some(_) = program("nbdcopy", &arguments) else { return };
        assert!(fs::read(to).expect("copied") == served.bytes.content, "{how:?}");
    }
    let piped = program("nbdcopy", &[&served.uri("other"), "-"]).expect("installed");
    assert_eq!(piped.stdout, served.other);
}

#[test]
fn nbdcopy_does_not_take_damage_for_data() {
    let bytes = Bytes { content: lines(SIZE), bad: Some(4_000_000), ..Bytes::default() };
    let served = Served::with(bytes, |options| options);
    match Command::new("nbdcopy").args([&served.uri("view"), "-"]).output() {
        Err(e) => eprintln!("skipped: nbdcopy: {e}"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains("Input/output error"), "{said}");
        }
    }
}

#[test]
fn nbdfuse_mounts_it() {
    if fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_err() {
        eprintln!("skipped: /dev/fuse cannot be opened");
        return;
    }
    let served = Served::new();
    let mountpoint = served.folder.path().join("m");
    fs::create_dir(&mountpoint).expect("made");
    let file = mountpoint.join("nbd");
    let mut child =
        match Command::new("nbdfuse").arg("-r").arg(&mountpoint).arg(served.uri("view")).spawn() {
            Ok(child) => child,
            Err(e) => return eprintln!("skipped: nbdfuse: {e}"),
        };
    within_patience(|| file.exists(), "mounted");
    let read = fs::read(&file);
    let unmounted = Command::new("fusermount3").arg("-u").arg(&mountpoint).status();
    let ended = child.wait().expect("ended");
    assert!(read.expect("read") == served.bytes.content);
    assert!(unmounted.expect("it starts").success() && ended.success());
}

#[test]
fn qemu_img_reads_and_converts_it() {
    let served = Served::new();
    let at = |name: &str| served.folder.path().join(name).to_str().expect("text").to_owned();
    let plain = at("plain");
    fs::write(&plain, &served.bytes.content).expect("written");
    let uri = served.uri("view");
    let Some(info) = program("qemu-img", &["info", "--output=json", &uri]) else { return };
    let info = String::from_utf8(info.stdout).expect("JSON");
    assert!(info.contains("\"format\": \"raw\""), "{info}");
    // It counts in sectors: what is beyond the end reads as zeros.
    let compare = ["compare", "-f", "raw", "-F", "raw", &uri, &plain];
    program("qemu-img", &compare).expect("installed");
    let raw = at("raw");
    program("qemu-img", &["convert", "-f", "raw", "-O", "raw", &uri, &raw]).expect("installed");
    let converted = fs::read(raw).expect("converted");
    assert!(converted.starts_with(&served.bytes.content) && converted.len() < SIZE + 512);
    assert!(converted[SIZE..].iter().all(|&b| b == 0));
    let qcow2 = at("qcow2");
    let convert = ["convert", "-f", "raw", "-O", "qcow2", &uri, &qcow2];
    program("qemu-img", &convert).expect("installed");
    program("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", &qcow2, &plain])
        .expect("installed");
}

/// Random and sequential reads at depth, over several connections; `fio` knows what its own
/// pattern looks like at every offset.
#[test]
fn fio_verifies_what_it_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let pattern = folder.path().join("pattern");
    let pattern = pattern.to_str().expect("text");
    // Else it leaves a file in the current folder.
    let verify = [
        "--verify_state_save=0",
        "--verify=pattern",
        "--verify_pattern=%o",
        "--verify_fatal=1",
        "--size=8m",
    ];
    let lay_out =
        [&["--name=l", "--rw=write", "--bs=64k", "--filename", pattern], &verify[..]].concat();
    let Some(_) = program("fio", &[&lay_out[..], &["--do_verify=0"]].concat()) else { return };
    let engines = program("fio", &["--enghelp"]).expect("installed").stdout;
    if !String::from_utf8_lossy(&engines).lines().any(|line| line.trim() == "nbd") {
        return eprintln!("skipped: this fio has no engine nbd");
    }
    let content = fs::read(pattern).expect("laid out");
    assert_eq!((content.len(), content[65_536..].starts_with(&[0, 0, 1])), (8 << 20, true));
    let served = Served::with(Bytes { content, ..Bytes::default() }, |options| options);
    let uri = format!("--uri={}", served.uri("view"));
    for how in [["--rw=read", "--bs=64k"], ["--rw=randread", "--bs=64k"]] {
        let job = ["--name=r", "--ioengine=nbd", &uri, "--iodepth=32", "--numjobs=3"];
        program("fio", &[&job[..], &how, &verify].concat()).expect("installed");
    }
}

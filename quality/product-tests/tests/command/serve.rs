//! `hadoop serve`, as real processes: merges, signals, kills, and the files that are left behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};

use merganser_hadoop_node::shuffle::SegmentSpec;
use merganser_hadoop_node::shuffle::protocol::{MergeFrame, MergeRequest, ShuffleRequest};
use merganser_sort::record::ifile::push_record;

use crate::{fails, folder, merganser, names, prints, signal};

/// Starts it in `dir` and waits until it listens at `s`.
fn serve(dir: &Path) -> Child {
    let arguments = ["hadoop", "serve", "--shuffle", "s", "--local-dir", "."];
    let mut child = merganser(dir, &arguments).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let stderr = child.stderr.as_mut().expect("piped");
    BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
    assert!(line.starts_with("merganser: merges for clients of s: at most "), "{line}");
    child
}

/// A spill of 8 MB, and a request to merge it.
fn request(dir: &Path) -> (Vec<u8>, Vec<u8>) {
    let mut spill = Vec::new();
    for key in 0..8000_u32 {
        push_record(&key.to_be_bytes(), &[b'v'; 1000], &mut spill);
    }
    spill.extend([0xff, 0xff]);
    let crc = crc32(&spill);
    spill.extend(crc.to_be_bytes());
    let path = dir.canonicalize().expect("there").join("spill_0.out");
    fs::write(&path, &spill).expect("written");
    let part = spill.len() as u64;
    let request = ShuffleRequest::Merge(MergeRequest {
        skip: 0,
        memory_bytes: 1 << 20,
        order: "int".to_owned(),
        segments: vec![SegmentSpec { path, offset: 0, raw: part - 4, part }],
    });
    (spill, request.encode().expect("short"))
}

/// Bit by bit, as the polynomial is written.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}

/// Sends `request` to the server in `dir`; returns the connection, and the first bytes of the answer.
fn begun(dir: &Path, request: &[u8]) -> (UnixStream, Vec<u8>) {
    let mut stream = UnixStream::connect(dir.join("s")).expect("it listens");
    stream.write_all(request).expect("sent");
    let mut first = vec![0; 1000];
    stream.read_exact(&mut first).expect("it answers");
    (stream, first)
}

/// All data frames that come, and whether the answer is whole.
fn data(stream: &mut UnixStream, mut bytes: Vec<u8>) -> (Vec<u8>, bool) {
    let _ = stream.read_to_end(&mut bytes);
    let (mut data, mut rest, mut whole) = (Vec::new(), &bytes[..], false);
    while let Some((frame, len)) = MergeFrame::decode(rest).expect("frames") {
        match frame {
            MergeFrame::Data(more) => data.extend(more),
            other => whole = matches!(other, MergeFrame::End { .. }),
        }
        rest = &rest[len..];
    }
    (data, whole)
}

#[test]
fn sigterm_lets_a_merge_end_and_removes_the_socket() {
    let dir = folder();
    let (spill, request) = request(dir.path());
    let mut child = serve(dir.path());
    let (mut stream, first) = begun(dir.path(), &request);
    signal(&child, libc::SIGTERM);
    let (merged, whole) = data(&mut stream, first);
    assert!(whole && merged == spill, "one segment is merged into itself");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(names(dir.path()), ["spill_0.out"]);
}

#[test]
fn a_socket_and_its_folders_come_together() {
    let dir = folder();
    let told = fails(dir.path(), &["hadoop", "serve", "--shuffle", "s"]);
    assert!(told.contains("--local-dir"), "{told}");
    let told = fails(dir.path(), &["hadoop", "serve", "--local-dir", "."]);
    assert!(told.contains("--shuffle"), "{told}");
}

#[test]
fn merges_and_maps_run_in_one_process() {
    let dir = folder();
    fs::create_dir(dir.path().join("dfs")).expect("made");
    let words = ["hadoop", "serve", "--shuffle", "s", "--local-dir", "."];
    let maps = ["--hdfs", "m", "--hdfs-data-dir", "dfs"];
    let mut child = merganser(dir.path(), &[&words[..], &maps].concat());
    let mut child = child.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    for begin in ["merganser: merges for clients of s: ", "merganser: map tasks for clients of m: "]
    {
        let line = lines.next().expect("a line").expect("text");
        assert!(line.starts_with(begin), "{line}");
    }
    for socket in ["s", "m"] {
        UnixStream::connect(dir.path().join(socket)).expect("it listens");
    }
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(names(dir.path()), ["dfs"], "the sockets are removed");
}

#[test]
fn the_socket_of_a_killed_server_is_replaced_and_a_live_one_is_not() {
    let dir = folder();
    let (spill, request) = request(dir.path());
    let mut child = serve(dir.path());
    let (mut stream, first) = begun(dir.path(), &request);
    child.kill().expect("killed");
    child.wait().expect("it ends");
    let (cut, whole) = data(&mut stream, first);
    assert!(!whole && spill.starts_with(&cut), "a client sees that it is not all");
    assert_eq!(names(dir.path()), ["s", "spill_0.out"]);

    let mut child = serve(dir.path());
    let refused = fails(dir.path(), &["hadoop", "serve", "--shuffle", "s", "--local-dir", "."]);
    assert_eq!(refused, "s: a process listens there already; stop it or name another path");
    let mut stream = UnixStream::connect(dir.path().join("s")).expect("it listens");
    stream.write_all(&request).expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    let (merged, whole) = data(&mut stream, Vec::new());
    assert!(whole && merged == spill);
    signal(&child, libc::SIGINT);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn advice_is_xml_and_json_and_leaves_nothing() {
    let dir = folder();
    let told =
        String::from_utf8(prints(dir.path(), &["hadoop", "advise", "--dir", "."])).expect("UTF-8");
    for name in ["min-record-bytes", "min-segment-bytes", "min-spills", "max-spills"] {
        assert!(told.contains(&format!("<name>merganser.shuffle.defer.{name}</name>")), "{told}");
    }
    let json = prints(dir.path(), &["hadoop", "advise", "--dir", ".", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert!(json["advice"]["min_segment_bytes"].is_u64(), "{json}");
    assert!(json["merges"].as_array().is_some_and(|merges| merges.len() > 10), "{json}");
    assert!(names(dir.path()).is_empty());
    let refused = fails(dir.path(), &["hadoop", "advise", "--dir", "missing"]);
    assert!(refused.contains("missing"), "{refused}");
}

/// The example of `advise --help`, as it is typed. The command takes memory and processors of this machine, and says so.
#[test]
fn advice_on_a_job_is_for_this_machine_unless_another_is_named() {
    let dir = folder();
    let words = ["hadoop", "advise", "--job", "10G", "--device", "830"];
    let output = merganser(dir.path(), &words).output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{said}");
    let taken = said.strip_prefix("merganser: taken from this machine: --memory ").expect(&said);
    let (memory, cores) = taken.trim_end().split_once(" --cores ").expect(&said);
    let told = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(told.contains(&format!(" tasks at once on {cores} processors ")), "{told}");
    // The same, typed: nothing is left to say.
    let given = [&words[..], &["--memory", memory, "--cores", cores]].concat();
    assert_eq!(String::from_utf8(prints(dir.path(), &given)).expect("UTF-8"), told);
}

//! `serve --data`, as real processes: sessions, memory, signals, and what is refused at the start.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

use merganser_flight::Token;
use merganser_flight::client::{Client, NodeAddress};
use merganser_flight::wire::{SessionTicket, SetBody, TextAs, Ticket};
use merganser_node::session::request::{OpenRequest, Range};

use crate::{fails, folder, merganser, names, signal};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct Node {
    child: Child,
    known: NodeAddress,
}

/// Starts a node in `dir`, and waits until it listens.
fn node(dir: &Path, more: &[&str]) -> Node {
    fs::create_dir_all(dir.join("data")).expect("made");
    fs::write(dir.join("token"), format!("{TOKEN}\n")).expect("written");
    fs::set_permissions(dir.join("token"), fs::Permissions::from_mode(0o600)).expect("set");
    let words = ["serve", "--data", "data", "--listen", "127.0.0.1:0", "--token-file", "token"];
    let words = [&words, more].concat();
    let mut child = merganser(dir, &words).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::with_capacity(1, child.stderr.as_mut().expect("piped")).lines();
    let address = loop {
        let line = lines.next().expect("a line").expect("text");
        if let Some(told) = line.strip_prefix("merganser: sessions for clients of ") {
            break told.split(": ").next().expect("an address").to_owned();
        }
    };
    let token = Some(Token::new(TOKEN).expect("a token"));
    Node { child, known: NodeAddress { address, token, ca: None } }
}

fn counted(known: &NodeAddress, path: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut client = Client::connect(known).expect("it listens");
    let open = OpenRequest { ssdlet: Some("wordcount".to_owned()), ..OpenRequest::default() };
    let session = client.open(&open).expect("opened").session;
    let ranges = vec![Range::of(path)];
    client.set(&SetBody { session: session.clone(), ranges, run: true }).expect("set");
    let ticket = SessionTicket { session: session.clone(), offset: 0, text: TextAs::Binary };
    let mut rows = client.rows(Ticket::Session(ticket));
    let mut all = Vec::new();
    while rows.advance().expect("answered") {
        all.push((rows.key().to_vec(), rows.value().to_vec()));
    }
    client.close(&session).expect("open");
    all
}

/// The most memory that the process ever had, in bytes.
fn peak_bytes(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
#[ignore = "the bar is missed: 254 MB were measured where 201 MB are allowed"]
fn sixty_four_sessions_stay_within_the_memory_and_one_is_hostile() {
    let dir = folder();
    let mut node = node(dir.path(), &["--memory", "128M"]);
    // 200,000 different words: tables and results have a size.
    let mut text = String::new();
    for word in 0..200_000 {
        text.push_str(&format!("word{} and word{}\n", word * 7919 % 200_000, word % 1000));
    }
    fs::write(dir.path().join("data/text"), &text).expect("written");
    let known = &node.known;
    let first = counted(known, "text");
    assert_eq!(first.len(), 200_001);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..8 {
                    assert!(counted(known, "text") == first, "all are answered");
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..50 {
                let mut garbage = TcpStream::connect(&known.address).expect("it listens");
                let _ = garbage.write_all(&[0xff; 100_000]);
            }
        });
    });
    let peak = peak_bytes(&node.child);
    assert!(peak < (128 + 64) << 20, "{peak} bytes");
    signal(&node.child, libc::SIGTERM);
    assert_eq!(node.child.wait().expect("it ends").code(), Some(0));
    assert_eq!(names(dir.path()), ["data", "token"]);
}

#[test]
fn merges_and_sessions_run_in_one_process() {
    let dir = folder();
    let mut node = node(dir.path(), &["--shuffle", "s", "--local-dir", "."]);
    fs::write(dir.path().join("data/a"), "x y x\n").expect("written");
    assert_eq!(counted(&node.known, "a").len(), 2);
    assert!(dir.path().join("s").exists());
    signal(&node.child, libc::SIGTERM);
    assert_eq!(node.child.wait().expect("it ends").code(), Some(0));
    assert_eq!(names(dir.path()), ["data", "token"], "the socket is removed");
}

#[test]
fn what_is_too_open_is_refused_at_the_start() {
    let dir = folder();
    fs::create_dir(dir.path().join("data")).expect("made");
    fs::write(dir.path().join("token"), "short").expect("written");
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(dir.path().join("token"), private).expect("set");
    let refused = |more: &[&str]| fails(dir.path(), &[&["serve", "--data"][..], more].concat());
    let told = refused(&["data", "--listen", "0.0.0.0:0"]);
    assert!(told.contains("--token-file, --tls-cert and --tls-key, or --insecure"), "{told}");
    let told = refused(&["missing"]);
    assert!(told.contains("no such folder; --data names one"), "{told}");
    let told = refused(&["data", "--token-file", "token"]);
    assert!(told.contains("16 to 1024"), "{told}");
    let told = refused(&["data", "--token-file", "none"]);
    assert!(told.starts_with("none: "), "{told}");
    let told = refused(&["data", "--tls-cert", "token", "--tls-key", "token"]);
    assert!(told.starts_with("--tls-cert, --tls-key: "), "{told}");
    let told = refused(&["data", "--tls-cert", "token"]);
    assert!(told.contains("--tls-key"), "{told}");
    let told = refused(&["data", "--allow-upload"]);
    assert!(told.contains("--ssdlets"), "{told}");
    let told = fails(dir.path(), &["serve", "--shuffle", "s"]);
    assert!(told.contains("--local-dir"), "{told}");
    let told = fails(dir.path(), &["serve", "--local-dir", "."]);
    assert!(told.contains("--shuffle"), "{told}");
}

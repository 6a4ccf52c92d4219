//! `serve --data`, as real processes: sessions, memory, signals, and what is refused at the start.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

use merganser_flight::Token;
use merganser_flight::client::{NodeAddress, NodeClient};
use merganser_flight::wire::{GetTicket, SessionTicket, SetBody, TextAs};
use merganser_serve::session::request::{OpenRequest, SessionRange};

use crate::{fails, folder, merganser, names, prints, signal};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct Node {
    child: Child,
    known: NodeAddress,
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    let mut client = NodeClient::connect(known).expect("it listens");
    let open = OpenRequest { ssdlet: Some("wordcount".to_owned()), ..OpenRequest::default() };
    let session = client.open(&open).expect("opened").session;
    let ranges = vec![SessionRange::of_path(path)];
    client.set(&SetBody { session: session.clone(), ranges, run: true }).expect("set");
    let ticket = SessionTicket { session: session.clone(), offset: 0, text: TextAs::Binary };
    let mut rows = client.rows(GetTicket::Session(ticket));
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

/// A client that knows the token asks for all that is kept for a session and that no budget counts: automata of
/// long keys, and long names of files.
fn greedy(known: &NodeAddress) {
    for round in 0..10 {
        let mut client = NodeClient::connect(known).expect("it listens");
        let keys: Vec<_> = (0..40).map(|n| format!("{n}-{round}-").repeat(3500)).collect();
        let args = serde_json::json!({ "keys": keys });
        let open = OpenRequest { ssdlet: Some("match".to_owned()), args, ..OpenRequest::default() };
        let session = client.open(&open).expect("less than a MiB").session;
        let ranges = vec![SessionRange::of_path("x".repeat(4000)); 900];
        let set = SetBody { session: session.clone(), ranges, run: false };
        let sets = [(); 4].map(|()| client.set(&set).is_ok());
        assert_eq!(sets, [true, true, false, false], "8 MiB of names");
        client.close(&session).expect("open");
    }
}

#[test]
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
        scope.spawn(|| greedy(known));
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
fn a_map_on_two_nodes_merges_their_rows() {
    let dir = folder();
    let places = [dir.path().join("one"), dir.path().join("two")];
    let mut nodes: Vec<_> = places
        .iter()
        .map(|place| {
            fs::create_dir(place).expect("made");
            node(place, &[])
        })
        .collect();
    fs::write(places[0].join("data/text"), "a b a\n").expect("written");
    fs::write(places[1].join("data/text"), "b c\nneedle b\n").expect("written");
    let on = nodes.iter().map(|node| node.known.address.clone()).collect::<Vec<_>>().join(",");
    let token = places[0].join("token").display().to_string();
    let to_nodes = ["--on", &on, "--token-file", &token];
    let counts = prints(dir.path(), &[&["map", "wordcount", "text"], &to_nodes[..]].concat());
    assert_eq!(String::from_utf8_lossy(&counts), "a\t2\nb\t3\nc\t1\nneedle\t1\n");
    let top = [&["map", "wordcount", "text", "--top", "1"], &to_nodes[..]].concat();
    assert_eq!(prints(dir.path(), &top), b"b\t3\n");
    let found = [&["map", "match", "text", "--key", "b"], &to_nodes[..]].concat();
    assert_eq!(prints(dir.path(), &found), b"a b a\nb c\nneedle b\n", "node after node");
    // A file that one node does not have, and a node that is gone: it is named, and nothing is guessed.
    fs::write(places[0].join("data/only"), "a\n").expect("written");
    let gone = &nodes[1].known.address.clone();
    let told = fails(dir.path(), &[&["map", "wordcount", "only"], &to_nodes[..]].concat());
    assert!(told.contains(&**gone), "{told}");
    signal(&nodes[1].child, libc::SIGTERM);
    assert_eq!(nodes[1].child.wait().expect("it ends").code(), Some(0));
    let out = [&["map", "wordcount", "text", "-o", "out"], &to_nodes[..]].concat();
    let told = fails(dir.path(), &out);
    assert!(told.contains(&**gone), "{told}");
    assert_eq!(names(dir.path()), ["one", "two"], "no result of one node");
    signal(&nodes[0].child, libc::SIGTERM);
    assert_eq!(nodes[0].child.wait().expect("it ends").code(), Some(0));
}

/// A guest that refuses to run without arguments, and counts chunks under them.
fn guest(memory_bytes: u64) -> Vec<u8> {
    let code = r#"
        (import "mgs" "emit" (func $emit (param i32 i32)))
        (memory (export "memory") 4)
        (func (export "mgs_abi") (result i32) i32.const 1)
        (func (export "mgs_buffer") (param i32) (result i32) i32.const 65536)
        (func (export "mgs_args") (param $bytes i32) (result i32)
            (i32.store (i32.const 1024) (local.get $bytes))
            (i32.store (i32.const 1028) (i32.const 8))
            i32.const 1032)
        (func (export "mgs_open") (result i32) (i32.eqz (i32.load (i32.const 1024))))
        (func (export "mgs_chunk") (param i32 i32) (result i32) (local $bytes i32)
            (local.set $bytes (i32.load (i32.const 1024)))
            (i64.store (i32.add (i32.const 1032) (local.get $bytes)) (i64.const 1))
            (call $emit (i32.const 1024) (i32.add (i32.const 16) (local.get $bytes)))
            i32.const 0)"#;
    let json = format!(
        r#"{{"abi": 1, "name": "args", "input": "lines", "memory": {memory_bytes},
            "output": {{"keyed": {{"key": "text", "value": "i64", "combine": "sum"}}}}}}"#
    );
    let json = json.replace('\n', " ").replace('"', "\\\"");
    let text = format!("(module {code} (@custom \"merganser.ssdlet\" \"{json}\"))");
    wat::parse_str(&text).expect("it is well-formed")
}

/// A file of an input, a folder of SSDlets with the guest `args`, a node that takes guests, and one that
/// has this one.
fn guest_nodes(dir: &Path) -> [Node; 2] {
    fs::write(dir.join("args.wasm"), guest(1 << 20)).expect("written");
    ["takes", "has"].map(|name| {
        let place = dir.join(name);
        fs::create_dir_all(place.join("ssdlets")).expect("made");
        fs::create_dir_all(place.join("data")).expect("made");
        fs::write(place.join("data/text"), "a\nb\n").expect("written");
        if name == "has" {
            fs::copy(dir.join("args.wasm"), place.join("ssdlets/args.wasm")).expect("copied");
            return node(&place, &["--ssdlets", "ssdlets", "--guest-memory", "1M"]);
        }
        node(&place, &["--ssdlets", "ssdlets", "--allow-upload"])
    })
}

#[test]
fn a_guest_means_the_same_here_and_on_nodes() {
    let dir = folder();
    let nodes = guest_nodes(dir.path());
    fs::write(dir.path().join("text"), "a\nb\n").expect("written");
    let token = dir.path().join("has/token").display().to_string();
    let [takes, has] = nodes.each_ref().map(|node| node.known.address.as_str());
    let on = |node: &str, words: &[&str]| {
        let more = ["--on", node, "--token-file", &token];
        [&["map"], words, &more].concat().iter().map(|word| word.to_string()).collect::<Vec<_>>()
    };
    // Its arguments are the same text, whatever it looks like.
    for args in ["needle", r#"{"b": 1,  "a": "x"}"#, r#"{"text": "x"}"#, "[1]", " "] {
        let words = ["args.wasm", "text", "--args", args, "--output-format", "csv"];
        let here = prints(dir.path(), &[&["map"], &words[..]].concat());
        assert_eq!(prints(dir.path(), &on(takes, &words)), here, "{args}");
        let named = [&["args"], &words[1..]].concat();
        assert_eq!(prints(dir.path(), &on(has, &named)), here, "{args}");
    }
    let refused = |node: &str, words: &[&str]| {
        let told = fails(dir.path(), &on(node, words));
        let about = told.strip_prefix(&format!("{node}: "));
        about.unwrap_or_else(|| panic!("it names the node: {told}")).to_owned()
    };
    let told = refused(takes, &["args.wasm", "text"]);
    assert!(told.contains("mgs_open gave 1"), "{told}");
    let told = refused(has, &["args.wasm", "text", "--args", "x"]);
    assert!(told.contains("--allow-upload"), "{told}");
    let told = refused(takes, &["nothing", "text"]);
    assert!(told.contains("no SSDlet named nothing"), "{told}");
    // The stricter limit holds.
    let limited = ["args.wasm", "text", "--args", "x", "--guest-memory", "512K"];
    let here = fails(dir.path(), &[&["map"], &limited[..]].concat());
    assert!(here.contains("524288 is the most"), "{here}");
    let told = refused(takes, &limited);
    assert!(told.contains("524288 is the most"), "{told}");
    let greedy = dir.path().join("has/ssdlets/greedy.wasm");
    fs::write(greedy, guest(2 << 20)).expect("written");
    let told = refused(has, &["greedy", "text", "--args", "x", "--guest-memory", "100M"]);
    assert!(told.contains("1048576 is the most"), "{told}");
    for mut node in nodes {
        signal(&node.child, libc::SIGTERM);
        assert_eq!(node.child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn memory_and_threads_are_asked_of_the_nodes() {
    let dir = folder();
    let [takes, _has] = guest_nodes(dir.path());
    // Two workers of it don't fit into a run of a node in 256 MiB, unless it asks for more; one does.
    fs::write(dir.path().join("large.wasm"), guest(60 << 20)).expect("written");
    let token = dir.path().join("takes/token").display().to_string();
    let words = ["map", "large.wasm", "text", "--args", "x", "--token-file", &token];
    let on = [&words[..], &["--on", &takes.known.address]].concat();
    let told = fails(dir.path(), &on);
    assert!(told.starts_with(&takes.known.address), "{told}");
    let enough = [&on[..], &["--memory", "80M", "--threads", "1"]].concat();
    assert_eq!(prints(dir.path(), &enough), b"x\t1\n");
    for (more, told) in [
        (&["--partition-size", "1M"][..], "--partition-size: not with --on"),
        (&["--temp-dir", "."], "--temp-dir: with --on"),
        (&["--explain"], "--explain: not with --on"),
    ] {
        let refused = fails(dir.path(), &[&on[..], more].concat());
        assert!(refused.starts_with(told), "{refused}");
    }
    let by_value = [&enough[..], &["--order", "value", "--temp-dir", "."]].concat();
    assert_eq!(prints(dir.path(), &by_value), b"x\t1\n");
    assert!(!names(dir.path()).iter().any(|name| name.starts_with('.')), "no spill is left");
}

#[test]
fn calls_and_sessions_run_in_one_process() {
    let dir = folder();
    let mut node = node(dir.path(), &["--log-folder", "calls"]);
    fs::write(dir.path().join("data/a"), "x y x\n").expect("written");
    assert_eq!(counted(&node.known, "a").len(), 2);
    assert!(dir.path().join("calls/wordcount").exists(), "each SSDlet has a folder for calls");
    signal(&node.child, libc::SIGTERM);
    assert_eq!(node.child.wait().expect("it ends").code(), Some(0));
    assert_eq!(names(dir.path()), ["calls", "data", "token"]);
}

/// SIGHUP makes a node read its token again; a file that can't be used leaves it the old one. SIGTERM still ends it.
#[test]
fn a_hangup_reads_the_token_again() {
    let dir = folder();
    let mut node = node(dir.path(), &[]);
    fs::write(dir.path().join("data/a"), "x y\n").expect("written");
    let hangup = |node: &mut Node| {
        signal(&node.child, libc::SIGHUP);
        let stderr = node.child.stderr.as_mut().expect("piped");
        let mut line = String::new();
        BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
        line
    };
    let token = dir.path().join("token");
    fs::write(&token, "short").expect("written");
    let said = hangup(&mut node);
    assert!(said.starts_with("merganser: SIGHUP: token: a token has 16 to"), "{said}");
    assert!(said.ends_with("; the server keeps the files that it read before\n"), "{said}");
    assert_eq!(counted(&node.known, "a").len(), 2);
    fs::remove_file(&token).expect("there");
    let said = hangup(&mut node);
    assert!(said.starts_with("merganser: SIGHUP: token: No such file or directory; "), "{said}");
    assert_eq!(counted(&node.known, "a").len(), 2);

    let fresh = "fedcba9876543210fedcba9876543210";
    fs::write(&token, fresh).expect("written");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("set");
    let said = hangup(&mut node);
    assert_eq!(said, "merganser: SIGHUP: token read again, and used from now on\n");
    let list = |known: &NodeAddress| NodeClient::connect(known).and_then(|mut node| node.list());
    let refused = list(&node.known).expect_err("an old token").to_string();
    assert!(refused.contains("is not that of this server"), "{refused}");
    let fresh = Some(Token::new(fresh).expect("a token"));
    let known = NodeAddress { token: fresh, ..node.known.clone() };
    assert_eq!(counted(&known, "a").len(), 2);
    signal(&node.child, libc::SIGTERM);
    assert_eq!(node.child.wait().expect("it ends").code(), Some(0));
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
    assert_eq!(told, "token: there is no certificate in PEM in it; --tls-cert names it");
    let told = refused(&["data", "--tls-cert", "token"]);
    assert!(told.contains("--tls-key"), "{told}");
    let told = refused(&["data", "--allow-upload"]);
    assert!(told.contains("--ssdlets"), "{told}");
}

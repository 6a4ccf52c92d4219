//! How fast built-in SSDlets that hand out little look at text: bytes per second on one thread.
//!
//! `cargo run --release -p merganser-map --example ssdlet_speed -- [FILE]`

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::time::Instant;

use merganser_map::ssdlet::builtin::open;
use merganser_map::ssdlet::{Chunk, CollectedOutput, Emitter, Ssdlet};
use serde_json::json;

/// Bytes of a chunk, about.
const CHUNK_BYTES: usize = 4 << 20;

fn main() {
    let text = match std::env::args().nth(1) {
        Some(path) => std::fs::read(path).expect("the file is readable"),
        None => generated(256 << 20),
    };
    let cases = [
        ("match", json!({"keys": ["qqqqqqqq"]})),
        ("match", json!({"keys": ["qqqqqqqq", "zzzzzzzz", "xxxxxxxx"]})),
        ("match", json!({"keys": ["QQQQQQQQ"], "ignore_case": true})),
        ("match", json!({"regex": "(?i-u)qqqqqqqq"})),
        ("match", json!({"regex": "(?i-u)qqqqqqqq|zzzzzzzz|xxxxxxxx"})),
        ("match", json!({"regex": "(?i-u)merganser"})),
        ("match", json!({"keys": ["merganser"], "ignore_case": true})),
        ("match", json!({"keys": ["ab"]})),
        ("match", json!({"keys": ["qqqqqqqq"], "format": "csv"})),
        ("match", json!({"keys": ["ab"], "count": true})),
        ("match", json!({"regex": "q{8}"})),
        ("match", json!({"regex": "a\\w+z$"})),
        ("histogram", json!({"of": "bytes"})),
        ("filter", json!({"where": {"column": 1, "op": "=", "value": "x"}, "separator": " "})),
        ("sample", json!({"fraction": 0.001})),
        ("project", json!({"columns": [1], "separator": " "})),
    ];
    for (name, args) in cases {
        let ssdlet = open(name, &args).expect("opens");
        let best = (0..3).map(|_| seconds(&*ssdlet, &text)).fold(f64::INFINITY, f64::min);
        println!("{:8.0} MB/s  {name} {args}", text.len() as f64 / 1e6 / best);
    }
}

fn seconds(ssdlet: &dyn Ssdlet, text: &[u8]) -> f64 {
    let mut cuts = Vec::new();
    ssdlet.description().input.cut(text, CHUNK_BYTES, &mut cuts);
    let mut worker = ssdlet.worker().expect("starts");
    let mut collect = CollectedOutput::default();
    let begin = Instant::now();
    let mut start = 0;
    for end in cuts {
        let chunk = Chunk { input: 0, offset: start as u64, bytes: &text[start..end] };
        worker.chunk(chunk, &mut Emitter::collecting(&mut collect)).expect("runs");
        collect.ordered.clear();
        start = end;
    }
    worker.close(&mut Emitter::collecting(&mut collect)).expect("ends");
    begin.elapsed().as_secs_f64()
}

/// Lines of about twelve words of one to nine letters.
fn generated(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let letters = 1 + (state >> 60) % 9;
        text.extend((0..letters).map(|n| b'a' + ((state >> (n * 6)) % 26) as u8));
        text.push(if (state >> 54).is_multiple_of(12) { b'\n' } else { b' ' });
    }
    text.push(b'\n');
    text
}

//! Guests, good and bad. One binary.
//!
//! - `zoo`: every way in which a guest can be bad that we know of; each ends with one sentence
//! - `limits`: fuel, time, memory, and that one guest's end is no other's
//! - `compiler`: what the compiler takes for modules that are large on purpose
//! - `maps`: guests as map tasks of Hadoop
//! - `mutants`: good modules with bytes changed, and answers at random
//! - `languages`: guests in C, Rust and AssemblyScript, against plain Rust and in another engine
//! - `interpreter`: that other engine, a host of ours over wasmi
//! - `projects`: the templates, compiled
mod compiler;
mod interpreter;
mod languages;
mod limits;
mod maps;
mod mutants;
mod projects;
mod zoo;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use merganser_map::ssdlet::{Chunk, CollectedOutput, Emitter, Ssdlet, SsdletError};
use merganser_wasm::{WasmLimits, open};

/// The output of most guests here.
const KEYED: &str = r#"{"keyed": {"key": "text", "value": "i64", "combine": "sum"}}"#;
const ORDERED: &str = r#"{"ordered": {"format": "lines"}}"#;

/// The section of a guest that takes lines.
fn section(output: &str) -> String {
    let json = format!(
        r#"{{"abi": 1, "name": "guest", "input": "lines", "memory": 1048576, "output": {output}}}"#
    );
    format!("(@custom \"merganser.ssdlet\" \"{}\")", json.replace('"', "\\\""))
}

/// Parts of a guest that most of them have.
const MEMORY: &str = r#"(memory (export "memory") 4)"#;
const ABI: &str = r#"(func (export "mgs_abi") (result i32) i32.const 1)"#;
const BUFFER: &str = r#"(func (export "mgs_buffer") (param i32) (result i32) i32.const 65536)"#;
const IMPORTS: &str = r#"
    (import "mgs" "emit" (func $emit (param i32 i32)))
    (import "mgs" "emit_spans" (func $spans (param i32 i32)))
    (import "mgs" "emit_values" (func $values (param i32 i32)))
    (import "mgs" "error" (func $error (param i32 i32)))
    (import "mgs" "error_at" (func $error_at (param i32 i32 i32)))
    (import "mgs" "input" (func $input (result i32)))
    (import "mgs" "offset" (func $offset (result i64)))"#;

/// The function `mgs_chunk` with this body, before its 0.
fn chunk(body: &str) -> String {
    format!(r#"(func (export "mgs_chunk") (param i32 i32) (result i32) {body} i32.const 0)"#)
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A guest with this body of `mgs_chunk`, and more functions.
fn guest(output: &str, body: &str, more: &str) -> Vec<u8> {
    let (chunk, section) = (chunk(body), section(output));
    wat(&format!("(module {IMPORTS} {MEMORY} {ABI} {BUFFER} {chunk} {more} {section})"))
}

/// Runs a module over chunks of input 0, by one worker, to its end.
fn run(
    module: &[u8],
    args: &[u8],
    limits: WasmLimits,
    chunks: &[&[u8]],
) -> Result<CollectedOutput, SsdletError> {
    let ssdlet = open(module, args, limits)?;
    let (mut worker, mut found, mut offset) = (ssdlet.worker()?, CollectedOutput::default(), 0);
    for bytes in chunks {
        let chunk = Chunk { input: 0, offset, bytes };
        worker.chunk(chunk, &mut Emitter::collecting(&mut found))?;
        offset += bytes.len() as u64;
    }
    worker.close(&mut Emitter::collecting(&mut found))?;
    Ok(found)
}

/// Sums of each key.
fn sums(found: &CollectedOutput) -> BTreeMap<Vec<u8>, i64> {
    let number = |value: &Vec<u8>| i64::from_le_bytes(value[..].try_into().expect("8 bytes"));
    found.keyed.iter().map(|(key, values)| (key.clone(), values.iter().map(number).sum())).collect()
}

/// The compiled guests of a language (`guests/build`), or nothing, with a line said, if its compiler is
/// missing. In CI (the variable `CI` is set) each must be there.
fn built(language: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a folder");
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/build");
    let output = Command::new(build).arg(language).arg(folder.path()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {
            let path = folder.path().to_owned();
            Some((folder, path))
        }
        Some(3) => {
            let is_ci = std::env::var_os("CI").is_some();
            assert!(!is_ci, "{said}in CI all languages are tested: .ci/setup guests");
            say(&format!("SKIPPED: guests in {language}, by {}", test_name()));
            say(said.trim_end());
            None
        }
        status => panic!("{language}: {status:?}: {said}"),
    }
}

/// Says something that is seen although the test succeeds: what `eprintln` prints is not.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The name of the test of this thread.
fn test_name() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

//! Guests in C against the same C as a program of this machine: processor seconds, in turns.
//!
//! ```text
//! wasm_speed [FILE]          the first 64 MiB of a file of lines, or as much of made-up text
//! ```
//!
//! Both read the same chunks into a buffer, as the engine does for every SSDlet; that is a part of their time.
//! Their output is not measured: it is the same work of the engine for both. A guest pays for its fuel,
//! its bounds, and the copy of the chunk into its memory. It needs clang and lld (`.ci/setup base guests`).

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use merganser_map::ssdlet::{Chunk, CollectedOutput, Emitter, Ssdlet};
use merganser_wasm::{WasmLimits, check, open};
use rustix::time::{ClockId, clock_gettime};

const BYTES: usize = 64 << 20;
/// As the engine's, and as in `native.c`.
const CHUNK_BYTES: usize = 512 << 10;
const ROUNDS: usize = 7;

/// A guest, how it is compiled, its arguments, and the ratio that it has to reach.
struct Case {
    guest: &'static str,
    source: &'static str,
    flags: &'static [&'static str],
    args: &'static str,
    bar: f64,
}

const CASES: &[Case] = &[
    Case { guest: "fold-bytes", source: "fold.c", flags: &["-DBYTES"], args: "", bar: 0.6 },
    Case {
        guest: "grep-bytes",
        source: "grep.c",
        flags: &["-DBYTES"],
        args: "zebra crossing",
        bar: 0.6,
    },
    Case { guest: "fold", source: "fold.c", flags: &[], args: "", bar: 0.75 },
    Case { guest: "grep", source: "grep.c", flags: &[], args: "zebra crossing", bar: 0.75 },
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests");
    ran(Command::new(guests.join("build")).arg("c").arg(folder.path()))?;
    let text = match std::env::args_os().nth(1) {
        Some(file) => beginning(Path::new(&file))?,
        None => made_up(),
    };
    let file = folder.path().join("text");
    std::fs::write(&file, &text)?;
    let sample = &text[..first_lines(&text[..CHUNK_BYTES.min(text.len())])?];

    println!("guest        native MB/s   wasm MB/s  ratio   bar   fuel/byte  compile ms  start us");
    for case in CASES {
        let native = native(case, &guests, folder.path())?;
        let module = std::fs::read(folder.path().join(format!("{}.wasm", case.guest)))?;
        let args = case.args.as_bytes();
        // In turns, so that both meet the same machine; the first pair is not counted.
        let (mut natively, mut guested) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let pair =
                (native_seconds(&native, &file, case.args)?, guest_seconds(&module, args, &file)?);
            if round > 0 {
                natively.push(pair.0);
                guested.push(pair.1);
            }
        }
        let (native, guest) = (median(natively), median(guested));
        let checked = check(&module, args, WasmLimits::default(), Some(sample))?;
        println!(
            "{:11} {:12.0} {:11.0} {:6.2} {:5.2} {:11.1} {:11.1} {:9.1}",
            case.guest,
            text.len() as f64 / native / 1e6,
            text.len() as f64 / guest / 1e6,
            native / guest,
            case.bar,
            checked.fuel as f64 / checked.sample_bytes as f64,
            checked.compile_time.as_secs_f64() * 1e3,
            checked.start_time.as_secs_f64() * 1e6,
        );
    }
    Ok(())
}

fn ran(command: &mut Command) -> Result<std::process::Output, Box<dyn Error>> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(output)
}

/// Compiles the guest for this machine, by the compiler of the guest.
fn native(case: &Case, guests: &Path, folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let program = folder.join(format!("{}-native", case.guest));
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let mut command = Command::new(clang);
    command.args(["-O3", "-Wno-unknown-attributes", "-Wno-ignored-attributes"]).args(case.flags);
    command.arg(format!("-DGUEST=\"{}\"", case.source)).arg("-I").arg(guests);
    ran(command.arg(guests.join("native.c")).arg("-o").arg(&program))?;
    Ok(program)
}

fn native_seconds(program: &Path, file: &Path, args: &str) -> Result<f64, Box<dyn Error>> {
    let mut command = Command::new(program);
    command.arg(file).arg("1");
    if !args.is_empty() {
        command.arg(args);
    }
    Ok(String::from_utf8(ran(&mut command)?.stdout)?.trim().parse()?)
}

/// Processor seconds of this thread.
fn now() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn guest_seconds(module: &[u8], args: &[u8], file: &Path) -> Result<f64, Box<dyn Error>> {
    let ssdlet = open(module, args, WasmLimits::default())?;
    let (mut worker, mut found) = (ssdlet.worker()?, CollectedOutput::default());
    let file = File::open(file)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    let begun = now();
    loop {
        let read = file.read_at(&mut buffer, offset)?;
        if read == 0 {
            break;
        }
        let bytes = &buffer[..first_lines(&buffer[..read])?];
        worker.chunk(Chunk { input: 0, offset, bytes }, &mut Emitter::collecting(&mut found))?;
        offset += bytes.len() as u64;
    }
    let seconds = now() - begun;
    worker.close(&mut Emitter::collecting(&mut found))?;
    Ok(seconds)
}

/// The length of the whole lines at the front of `text`.
fn first_lines(text: &[u8]) -> Result<usize, Box<dyn Error>> {
    Ok(text.iter().rposition(|byte| *byte == b'\n').ok_or("a line is longer than a chunk")? + 1)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn beginning(file: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut text = Vec::new();
    File::open(file)?.take(BYTES as u64).read_to_end(&mut text)?;
    text.truncate(first_lines(&text)?);
    Ok(text)
}

/// Lines of words; few words are frequent and 50,000 are rare (Zipf).
fn made_up() -> Vec<u8> {
    const WORDS: usize = 50_000;
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        state >> 33
    };
    let word = |next: &mut dyn FnMut() -> u64| {
        (0..2 + next() % 8).map(|_| b'a' + (next() % 26) as u8).collect::<Vec<_>>()
    };
    let words: Vec<_> = (0..WORDS).map(|_| word(&mut next)).collect();
    let mut shares = Vec::with_capacity(WORDS);
    let mut sum = 0.0;
    for rank in 1..=WORDS {
        sum += 1.0 / rank as f64;
        shares.push(sum);
    }
    let mut text = Vec::with_capacity(BYTES + 64);
    let mut column = 0;
    while text.len() < BYTES {
        let drawn = next() as f64 / (1u64 << 31) as f64 * sum;
        let word = &words[shares.partition_point(|share| *share < drawn).min(WORDS - 1)];
        text.extend(word);
        column = if column > 70 { 0 } else { column + word.len() };
        text.push(if column == 0 { b'\n' } else { b' ' });
    }
    text.push(b'\n');
    text
}

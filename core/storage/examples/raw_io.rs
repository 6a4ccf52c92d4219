//! The speed of the device, measured with the same code that sorts: the baseline for other speeds.
//!
//! ```text
//! raw_io read|write|rewrite|random FILE [--bytes N] [--block 1M] [--depth 8] [--pool N]
//!        [--copy N] [--buffered] [--threads]
//! raw_io passes FILE ...
//! ```
//!
//! - `write` makes a new FILE, its space reserved first; `rewrite` overwrites it; both end with a
//!   sync, which is part of the time.
//! - `read` reads FILE from its start; `random` reads blocks at random aligned offsets, as many as
//!   FILE has unless `--bytes` says otherwise.
//! - `passes` is the least that an external sort does, without the sorting: from FILE to FILE.1,
//!   then from FILE.1 to FILE.2, reads and writes overlapped, each with a sync at its end. The first
//!   one is pass one, run formation; the second one is the merge. Both copies are removed.
//!
//! `--pool N` takes turns with N buffers instead of `--depth`, as a sort does that reads into all of
//! its memory: where the host's caches hold a few buffers, only more of them show the disk's speed.
//!
//! `read --copy N` has N threads copy each block from those buffers to a place of its own in fresh
//! memory: what reading all of FILE into memory takes when the device is left the few buffers.
//!
//! Each line printed is `what: seconds, MB/s` (MB = 1,000,000 bytes).

use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use merganser_storage::file::{Direct, EngineChoice, FileDirectory, FileOptions, FileStorage};
use merganser_storage::{
    Buffer, Completion, Completions, Directory, Operation, RealClock, Storage, StorageExt,
};
use parking_lot::Mutex;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "raw_io read|write|rewrite|random|passes FILE [--bytes N] [--block 1M] \
                     [--depth 8] [--pool N] [--copy N] [--buffered] [--threads]";

struct Args {
    command: String,
    file: String,
    bytes: Option<u64>,
    block: usize,
    depth: usize,
    pool: usize,
    copy: usize,
    options: FileOptions,
}

fn main() -> Result<()> {
    let args = parse(std::env::args().skip(1))?;
    match args.command.as_str() {
        "read" => {
            let file = FileStorage::open_path_with(&args.file, false, args.options)?;
            let bytes = args.bytes.unwrap_or(file.size()).min(file.size());
            tell(&file, &args);
            timed("read", bytes, || match args.copy {
                0 => read(&file, &args, offsets(bytes, &args)),
                _ => read_and_copy(&file, bytes, &args),
            })
        }
        "random" => {
            let file = FileStorage::open_path_with(&args.file, false, args.options)?;
            let blocks = file.size() / args.block as u64;
            let count = args.bytes.map_or(blocks, |bytes| bytes / args.block as u64);
            tell(&file, &args);
            let offsets = random(blocks, count).map(|block| block * args.block as u64);
            timed("random read", count * args.block as u64, || read(&file, &args, offsets))
        }
        "write" => {
            let file = make(&args, "")?;
            let bytes = args.bytes.unwrap_or(1 << 30);
            tell(&file, &args);
            timed("write", bytes, || write(&file, bytes, &args))
        }
        "rewrite" => {
            let file = FileStorage::open_path_with(&args.file, true, args.options)?;
            let bytes = args.bytes.unwrap_or(file.size());
            tell(&file, &args);
            timed("rewrite", bytes, || write(&file, bytes, &args))
        }
        "passes" => {
            let input = FileStorage::open_path_with(&args.file, false, args.options)?;
            let bytes = args.bytes.unwrap_or(input.size()).min(input.size());
            tell(&input, &args);
            timed("both passes", bytes, || {
                let run = make(&args, ".1")?;
                timed("pass one", bytes, || copy(&input, &run, bytes, &args))?;
                let output = make(&args, ".2")?;
                timed("pass two", bytes, || copy(&run, &output, bytes, &args))
            })?;
            std::fs::remove_file(format!("{}.1", args.file))?;
            Ok(std::fs::remove_file(format!("{}.2", args.file))?)
        }
        _ => Err(USAGE.into()),
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args> {
    let (Some(command), Some(file)) = (words.next(), words.next()) else {
        return Err(USAGE.into());
    };
    let options = FileOptions::default();
    let mut args =
        Args { command, file, bytes: None, block: 1 << 20, depth: 8, pool: 0, copy: 0, options };
    while let Some(word) = words.next() {
        let mut number = || words.next().ok_or(USAGE).map(|text| bytes(&text))?;
        match word.as_str() {
            "--bytes" => args.bytes = Some(number()?),
            "--block" => args.block = usize::try_from(number()?)?,
            "--depth" => args.depth = usize::try_from(number()?)?,
            "--pool" => args.pool = usize::try_from(number()?)?,
            "--copy" => args.copy = usize::try_from(number()?)?,
            "--buffered" => args.options.direct = Direct::Never,
            "--threads" => args.options.engine = EngineChoice::Threads,
            _ => return Err(USAGE.into()),
        }
    }
    if args.block == 0 || args.depth == 0 {
        return Err("--block and --depth begin at 1".into());
    }
    args.pool = args.pool.max(args.depth);
    Ok(args)
}

/// A number of bytes with an optional binary suffix K, M or G.
fn bytes(text: &str) -> Result<u64> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    Ok(digits.parse::<u64>()? << shift)
}

/// FILE with `suffix`, new and empty.
fn make(args: &Args, suffix: &str) -> Result<Arc<FileStorage>> {
    let path = std::path::absolute(format!("{}{suffix}", args.file))?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
    else {
        return Err(USAGE.into());
    };
    let directory = FileDirectory::open_with(parent, args.options)?;
    if path.exists() {
        directory.remove(name)?;
    }
    Ok(directory.create_file(name)?)
}

#[expect(clippy::print_stdout, reason = "a command")]
fn tell(file: &FileStorage, args: &Args) {
    println!("{}: {}, {} bytes x {}", args.file, file.mode(), args.block, args.depth);
}

#[expect(clippy::print_stdout, reason = "a command")]
fn timed(what: &str, bytes: u64, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    work()?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{what}: {seconds:.3} s, {:.0} MB/s", bytes as f64 / 1e6 / seconds);
    Ok(())
}

fn offsets(bytes: u64, args: &Args) -> impl Iterator<Item = u64> {
    (0..bytes).step_by(args.block)
}

/// `count` numbers below `end`, the same each time.
fn random(end: u64, count: u64) -> impl Iterator<Item = u64> {
    let mut state = 1_u64;
    (0..count).map(move |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    })
}

/// The pool: `count` touched buffers of one block each, in one mapping of huge pages.
fn buffers(args: &Args, count: usize) -> VecDeque<Buffer> {
    let mut rest = Buffer::new(args.block * count);
    rest.fill(0x5a);
    let mut all = VecDeque::with_capacity(count);
    for _ in 0..count {
        let more = rest.split_off(args.block);
        all.push_back(std::mem::replace(&mut rest, more));
    }
    all
}

fn wait(completions: &Completions) -> Result<(Completion, usize)> {
    let mut done = completions.wait(&RealClock::new());
    let count = std::mem::replace(&mut done.result, Ok(0))?;
    Ok((done, count))
}

fn read(file: &FileStorage, args: &Args, mut offsets: impl Iterator<Item = u64>) -> Result<()> {
    let completions = Completions::new();
    let mut free = buffers(args, args.pool);
    loop {
        while free.len() > args.pool - args.depth {
            let Some(offset) = offsets.next() else { break };
            let buffer = free.pop_front().expect("counted");
            file.submit(offset, Operation::Read { offset, buffer }, &completions);
        }
        if free.len() == args.pool {
            return Ok(());
        }
        free.extend(wait(&completions)?.0.buffer);
    }
}

/// Reads all into fresh memory by way of the pool.
fn read_and_copy(file: &FileStorage, bytes: u64, args: &Args) -> Result<()> {
    let completions = Completions::new();
    let mut free = buffers(args, args.pool);
    let mut offsets = offsets(bytes, args);
    let (to_copy, copies) = channel::<(Buffer, Buffer)>();
    let copies = Mutex::new(copies);
    let (to_free, freed) = channel();
    let count = usize::try_from(bytes.div_ceil(args.block as u64))?;
    let mut memory = Buffer::new(args.block * count);
    let mut places: VecDeque<Option<Buffer>> = VecDeque::with_capacity(count);
    for _ in 0..count {
        let more = memory.split_off(args.block);
        places.push_back(Some(std::mem::replace(&mut memory, more)));
    }
    let kept = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..args.copy {
            let to_free = to_free.clone();
            let (copies, kept) = (&copies, &kept);
            scope.spawn(move || {
                loop {
                    let next = copies.lock().recv();
                    let Ok((from, mut to)) = next else { return };
                    to.copy_from_slice(&from);
                    kept.lock().push(to);
                    if to_free.send(from).is_err() {
                        return;
                    }
                }
            });
        }
        let to_copy = to_copy;
        let (mut reading, mut lent) = (0, 0);
        loop {
            while reading < args.depth && (reading + lent < args.pool) {
                let Some(offset) = offsets.next() else { break };
                let buffer = match free.pop_front() {
                    Some(buffer) => buffer,
                    None => {
                        lent -= 1;
                        freed.recv()?
                    }
                };
                file.submit(offset, Operation::Read { offset, buffer }, &completions);
                reading += 1;
            }
            while let Ok(buffer) = freed.try_recv() {
                free.push_back(buffer);
                lent -= 1;
            }
            if reading == 0 {
                if lent == 0 {
                    return Ok(());
                }
                free.push_back(freed.recv()?);
                lent -= 1;
                continue;
            }
            let (done, _) = wait(&completions)?;
            let place = usize::try_from(done.token)? / args.block;
            let to = places[place].take().expect("read once");
            to_copy.send((done.buffer.expect("comes back"), to))?;
            reading -= 1;
            lent += 1;
        }
    })
}

fn write(file: &FileStorage, bytes: u64, args: &Args) -> Result<()> {
    file.run(Operation::Allocate { offset: 0, len: bytes })?;
    let completions = Completions::new();
    let mut free = buffers(args, args.pool);
    let mut offsets = offsets(bytes, args);
    loop {
        while free.len() > args.pool - args.depth {
            let Some(offset) = offsets.next() else { break };
            let mut buffer = free.pop_front().expect("counted");
            cut(&mut buffer, bytes - offset);
            file.submit(offset, Operation::Write { offset, buffer }, &completions);
        }
        if free.len() == args.pool {
            return Ok(file.sync()?);
        }
        free.extend(wait(&completions)?.0.buffer);
    }
}

/// Up to `depth` requests read and as many write.
fn copy(from: &FileStorage, to: &FileStorage, bytes: u64, args: &Args) -> Result<()> {
    to.run(Operation::Allocate { offset: 0, len: bytes })?;
    let completions = Completions::new();
    let pool = args.pool.max(2 * args.depth);
    let mut free = buffers(args, pool);
    let mut offsets = offsets(bytes, args);
    let (mut reading, mut writing) = (0, HashSet::new());
    loop {
        while reading < args.depth && !free.is_empty() {
            let Some(offset) = offsets.next() else { break };
            let mut buffer = free.pop_front().expect("not empty");
            cut(&mut buffer, bytes - offset);
            from.submit(offset, Operation::Read { offset, buffer }, &completions);
            reading += 1;
        }
        if free.len() == pool {
            return Ok(to.sync()?);
        }
        let (done, _) = wait(&completions)?;
        let (offset, buffer) = (done.token, done.buffer.expect("comes back"));
        if writing.remove(&offset) {
            free.push_back(buffer);
        } else {
            reading -= 1;
            writing.insert(offset);
            to.submit(offset, Operation::Write { offset, buffer }, &completions);
        }
    }
}

/// Shortens `buffer` to at most `left`; only the last one of a file.
fn cut(buffer: &mut Buffer, left: u64) {
    if left < buffer.len() as u64 {
        drop(buffer.split_off(usize::try_from(left).expect("below a length")));
    }
}

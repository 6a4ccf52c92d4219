//! Each target on random bytes and on changed examples, for a second. An input that breaks a promise is kept, with the
//! command that tries it again.

#![allow(clippy::print_stdout, reason = "how far each target came is printed")]

use std::any::Any;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use merganser_fuzz::{TARGETS, Target};
use merganser_random::Random;

/// How long each target runs, at least one case.
const SECONDS: u64 = 1;
/// The longest random input.
const BYTES_MAX: u64 = 2000;
/// Bytes that mean something to some decoder.
const TELLING: &[u8] = b"\0\x01\x02\x7f\x80\xff\n\r\t \"',;:/\\{}[]()<>@+-.0123456789eEnu";

/// Random bytes of one of several kinds.
fn any_bytes(random: &mut Random) -> Vec<u8> {
    let longest = 1 << random.below(12);
    let len = random.index(longest.min(BYTES_MAX as usize) + 1);
    match random.below(3) {
        0 => random.bytes(len),
        1 => (0..len).map(|_| TELLING[random.index(TELLING.len())]).collect(),
        _ => (0..len).map(|_| b"ab0\n\","[random.index(6)]).collect(),
    }
}

/// Changes `bytes` in one place.
fn change(bytes: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Random) {
    let at = random.index(bytes.len() + 1);
    let end = (at + random.index(9)).min(bytes.len());
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        3 if !others.is_empty() => {
            let other = &others[random.index(others.len())];
            let from = random.index(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        4 => drop(bytes.splice(at..end, random.bits().to_string().into_bytes())),
        5 => bytes.insert(at, TELLING[random.index(TELLING.len())]),
        6 if at < bytes.len() => bytes[at] = random.bits() as u8,
        _ if at < bytes.len() => bytes[at] = TELLING[random.index(TELLING.len())],
        _ => {}
    }
}

/// The input of case `number`; it depends on nothing else but the seed.
fn case(examples: &[Vec<u8>], seed: u64, number: u64) -> Vec<u8> {
    let mut random = Random::of_record(seed, number);
    if examples.is_empty() || random.one_in(8) {
        return any_bytes(&mut random);
    }
    let mut bytes = examples[random.index(examples.len())].clone();
    for _ in 0..random.below(9) {
        change(&mut bytes, examples, &mut random);
    }
    bytes
}

fn sentence(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}

/// Runs cases of a target until its time is over, and says how many.
fn try_cases(target: &Target, seed: u64, time: Duration) -> u64 {
    let examples = (target.examples)();
    let begun = Instant::now();
    for number in 0.. {
        let bytes = case(&examples, seed, number);
        if let Err(panic) = catch_unwind(|| (target.run)(&bytes)) {
            let kept =
                Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{seed}", target.name));
            std::fs::write(&kept, &bytes).expect("a place for the input");
            panic!(
                "{}: case {number} of seed {seed}: {}; try again: FUZZ_INPUT={} cargo test -p merganser-fuzz \
                 --test short an_input_again",
                target.name,
                sentence(&*panic),
                kept.display()
            );
        }
        if begun.elapsed() >= time {
            return number + 1;
        }
    }
    unreachable!("numbers do not end")
}

#[test]
fn each_target_keeps_its_promises() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = std::env::var("FUZZ_SEED")
        .map_or(now.subsec_nanos().into(), |seed| seed.parse().expect("FUZZ_SEED is a number"));
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(target) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            match catch_unwind(|| try_cases(target, seed, Duration::from_secs(SECONDS))) {
                Ok(cases) => println!("{}: {cases} cases of seed {seed}", target.name),
                Err(panic) => faults.lock().expect("no panic").push(sentence(&*panic).to_owned()),
            }
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(work);
        }
    });
    let faults = faults.into_inner().expect("no panic");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Tries an input that was kept, if one is named: its target's name is before the last `-` of the file's.
#[test]
fn an_input_again() {
    let Some(kept) = std::env::var_os("FUZZ_INPUT") else { return };
    let name = Path::new(&kept).file_name().and_then(|name| name.to_str()).expect("a file's name");
    let target = name.rsplit_once('-').map_or(name, |(target, _)| target);
    let target = TARGETS.iter().find(|each| each.name == target).expect("the name of a target");
    (target.run)(&std::fs::read(&kept).expect("an input"));
}

/// Each example is one: without a change its target takes it.
#[test]
fn examples_are_taken_as_they_are() {
    for target in TARGETS {
        for example in (target.examples)() {
            (target.run)(&example);
        }
    }
}

/// A target that panics is found, and so is its input.
#[test]
fn a_broken_promise_is_told_with_its_input() {
    fn run(bytes: &[u8]) {
        assert!(!bytes.contains(&b'"'), "a quote");
    }
    let broken = Target { name: "broken", run, examples: || vec![br#"{"a":1}"#.to_vec()] };
    let told = catch_unwind(|| try_cases(&broken, 1, Duration::from_secs(20)));
    let told = told.expect_err("it has quotes");
    assert!(sentence(&*told).contains("a quote; try again:"), "{}", sentence(&*told));
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-1");
    assert!(std::fs::read(kept).expect("kept").contains(&b'"'));
}

/// The programs of libFuzzer are these targets.
#[test]
fn libfuzzer_has_a_program_for_each_target() {
    let manifest = include_str!("../libfuzzer/Cargo.toml");
    let programs: Vec<_> =
        manifest.lines().filter_map(|line| line.strip_prefix("name = \"")).skip(1).collect();
    let programs: Vec<_> = programs.iter().map(|name| name.trim_end_matches('"')).collect();
    let targets: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(programs, targets);
}

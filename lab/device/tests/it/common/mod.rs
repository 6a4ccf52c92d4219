//! Drivers that the tests of modelled devices share.
#![allow(clippy::print_stdout, reason = "each test says what it saw")]

use merganser_device::device::{CompletedCommand, Device, IoCommand};
use merganser_device::profile::SsdProfile;
use merganser_device::request::{RequestKind, SimTime};
use merganser_device::ssd::Ssd;
use merganser_random::Random;

/// A preset with some settings changed.
pub(crate) fn ssd(preset: &str, settings: &[&str]) -> Ssd {
    let mut profile = SsdProfile::preset(preset).expect("a preset");
    for text in settings {
        profile.set(text).unwrap_or_else(|error| panic!("{error}"));
    }
    Ssd::new(&profile, 1).unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

/// A request without data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub kind: RequestKind,
    pub offset: u64,
    pub len: u64,
}

/// Requests of `len` bytes, one after the other over `total` bytes.
pub(crate) fn sequential(kind: RequestKind, len: u64, total: u64) -> impl Iterator<Item = Ask> {
    (0..total / len).map(move |i| Ask { kind, offset: i * len, len })
}

/// `count` requests of `len` bytes at random multiples of it.
pub(crate) fn random(
    kind: RequestKind,
    len: u64,
    space: u64,
    count: u64,
    seed: u64,
) -> impl Iterator<Item = Ask> {
    let mut random = Random::new(seed);
    (0..count).map(move |_| Ask { kind, offset: random.below(space / len) * len, len })
}

/// Runs `asks` with `depth` always in flight; gives all that has ended.
pub(crate) fn closed_loop(
    ssd: &mut dyn Device,
    asks: impl IntoIterator<Item = Ask>,
    depth: usize,
) -> Vec<CompletedCommand> {
    let mut asks = asks.into_iter().enumerate();
    let (mut flying, mut ended) = (0, Vec::new());
    loop {
        while flying < depth
            && let Some((id, Ask { kind, offset, len })) = asks.next()
        {
            ssd.submit(ssd.now(), IoCommand { id: id as u64, kind, offset, len, buffer: None });
            flying += 1;
        }
        if !ssd.advance() {
            return ended;
        }
        while let Some(done) = ssd.completed() {
            assert!(done.result.is_ok(), "{:?}", done.result);
            flying -= 1;
            ended.push(done);
        }
    }
}

/// Runs `asks` at their arrivals, in nanoseconds; gives the mean response in nanoseconds.
pub(crate) fn open_loop(ssd: &mut Ssd, asks: impl IntoIterator<Item = (u64, Ask)>) -> f64 {
    responses(ssd, asks).mean
}

/// Response times, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Responses {
    pub total: u128,
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    pub max: f64,
}

/// Runs `asks` at their arrivals, in nanoseconds.
pub(crate) fn responses(ssd: &mut Ssd, asks: impl IntoIterator<Item = (u64, Ask)>) -> Responses {
    let mut asks = asks.into_iter().enumerate().peekable();
    let (mut total, mut squares, mut max, mut count) = (0_u128, 0_u128, 0, 0_u64);
    loop {
        // Arrivals are given as they come, so that few are in the queue.
        while let Some(&(id, (at, Ask { kind, offset, len }))) = asks.peek() {
            if ssd.next_at().is_some_and(|next| next.0 < at) {
                break;
            }
            asks.next();
            ssd.submit(SimTime(at), IoCommand { id: id as u64, kind, offset, len, buffer: None });
        }
        if !ssd.advance() {
            let mean = total as f64 / count as f64;
            let deviation = (squares as f64 / count as f64 - mean * mean).sqrt();
            return Responses { total, mean, deviation, max: max as f64 };
        }
        while let Some(done) = ssd.completed() {
            assert!(done.result.is_ok(), "{:?}", done.result);
            let span = done.at.0 - done.submitted.0;
            total += u128::from(span);
            squares += u128::from(span) * u128::from(span);
            max = max.max(span);
            count += 1;
        }
    }
}

/// Bytes a second of what has ended.
pub(crate) fn throughput(ended: &[CompletedCommand]) -> f64 {
    let bytes: u64 = ended.iter().map(|done| *done.result.as_ref().expect("it went well")).sum();
    let last = ended.iter().map(|done| done.at.0).max().expect("something ended");
    bytes as f64 * 1e9 / last as f64
}

/// Panics unless `value` is within `part` of `expected`.
#[track_caller]
pub(crate) fn close(what: &str, value: f64, expected: f64, part: f64) {
    let off = value / expected - 1.0;
    println!("{what}: {value:.6} against {expected:.6} ({:+.2} %)", off * 100.0);
    assert!(off.abs() <= part, "{what}: {value} is not within {part} of {expected}");
}

//! Brings a device into the state after long use: full, with garbage collection in a steady state.
//!
//! A new SSD has nothing to clean up, so measurements of it do not show its speed in use. This
//! module fills the device once, then overwrites it, one *window* at a time: at random, or with the
//! writes of a workload. It ends when the write amplification of three consecutive windows agrees, or
//! when the allowed bytes were written.

use std::io;

use super::generator::{Arrivals, Sizes, Workload, WorkloadError};
use super::pattern::AccessPattern;
use super::play::{PlayError, SubmissionPace, play};
use crate::device::Device;
use crate::results::Collector;

/// The limits of preconditioning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The share of the device's capacity that is filled and overwritten.
    pub share: f64,
    /// Overwriting ends when this multiple of the filled bytes was written.
    pub overwrites_max: f64,
    /// Write amplifications that differ by less than this share count as equal.
    pub tolerance: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { share: 1.0, overwrites_max: 4.0, tolerance: 0.01 }
    }
}

/// The result of preconditioning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preconditioned {
    /// Bytes written once, in order.
    pub filled_bytes: u64,
    /// Bytes written after that.
    pub overwritten_bytes: u64,
    /// Bytes programmed per byte written, in the last window.
    pub write_amplification: f64,
    /// Whether the device reached a steady state.
    pub steady: bool,
}

/// How a device is preconditioned.
#[derive(Clone, Copy)]
pub struct Preconditioning<'a> {
    /// The limits.
    pub bounds: Bounds,
    /// The seed of random offsets.
    pub seed: u64,
    /// The workload whose writes overwrite the device, however many requests it has. `None` overwrites
    /// what was filled at random, a page at a time.
    pub by: Option<&'a Workload>,
    /// Gets the bytes of each request that is given to the device.
    pub progress: &'a dyn Fn(u64),
    /// Asked before each request: whether to end.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl Preconditioning<'_> {
    /// The most bytes that are written to a device of this capacity.
    #[must_use]
    pub fn bytes_max(&self, capacity_bytes: u64) -> u64 {
        let filled = capacity_bytes as f64 * self.bounds.share;
        let span = self.by.map_or(filled, |workload| workload.span_bytes as f64);
        (filled + span * self.bounds.overwrites_max) as u64
    }
}

/// Requests in flight during preconditioning; more than any device needs.
const DEPTH: u32 = 64;
/// Windows per full overwrite.
const WINDOWS: u64 = 4;
/// Consecutive windows that must agree.
const AGREEING: u32 = 2;

/// Fills and overwrites `device`, until it is steady or cancelled. A device without flash does not
/// change, and is steady at once.
///
/// # Errors
/// When bounds are out of range, or the device refuses.
pub fn precondition(
    device: &mut dyn Device,
    how: &Preconditioning<'_>,
) -> Result<Preconditioned, PreconditionError> {
    let Preconditioning { bounds, seed, by, .. } = *how;
    let Some(before) = device.statistics().flash else {
        return Ok(Preconditioned {
            filled_bytes: 0,
            overwritten_bytes: 0,
            write_amplification: 1.0,
            steady: true,
        });
    };
    if !(bounds.share > 0.0 && bounds.share <= 1.0) {
        let found = bounds.share.to_string();
        let wrong =
            WorkloadError::Setting { what: "share to fill", found, expected: "above 0, up to 1" };
        return Err(wrong.into());
    }
    let page = u64::from(device.geometry().page_bytes.max(1));
    let pages = ((device.capacity_bytes() as f64 * bounds.share) as u64 / page).max(1);
    let span_bytes = pages * page;
    let large = (page * 64).min(span_bytes);
    let writes = Workload {
        pattern: AccessPattern::Sequential,
        read_share: 0.0,
        sizes: Sizes::Fixed(large),
        arrivals: Arrivals::Closed(DEPTH),
        requests: span_bytes / large,
        start: 0,
        span_bytes,
        align_bytes: page,
        seed,
    };
    run(device, how, &writes)?;
    let rest = span_bytes % large;
    if rest > 0 {
        let sizes = Sizes::Fixed(rest);
        run(
            device,
            how,
            &Workload {
                sizes,
                requests: 1,
                start: span_bytes - rest,
                span_bytes: rest,
                ..writes.clone()
            },
        )?;
    }
    // By a workload, only the bytes that it addresses are overwritten.
    let (mut writes, overwritten_span) = match by {
        None => {
            let requests = (pages / WINDOWS).max(1);
            let sizes = Sizes::Fixed(page);
            (Workload { pattern: AccessPattern::Random, sizes, requests, ..writes }, span_bytes)
        }
        Some(workload) => {
            let arrivals = Arrivals::Closed(DEPTH);
            // All of its span: a window in order begins at the start.
            let requests = (workload.span_bytes / workload.mean_bytes()).max(1);
            let seed = workload.seed.wrapping_add(1);
            let writes = Workload { read_share: 0.0, arrivals, requests, seed, ..workload.clone() };
            (writes, workload.span_bytes)
        }
    };
    let mut last = device.statistics().flash.unwrap_or(before);
    let mut done = Preconditioned {
        filled_bytes: span_bytes,
        overwritten_bytes: 0,
        write_amplification: 1.0,
        steady: false,
    };
    let mut agreeing = 0;
    let most = (overwritten_span as f64 * bounds.overwrites_max) as u64;
    while !done.steady && done.overwritten_bytes < most {
        writes.seed = writes.seed.wrapping_add(1);
        done.overwritten_bytes += run(device, how, &writes)?;
        let now = device.statistics().flash.unwrap_or(last);
        let asked = now.host_bytes.saturating_sub(last.host_bytes).max(1);
        let programmed = now.programmed_bytes.saturating_sub(last.programmed_bytes);
        let found = programmed as f64 / asked as f64;
        let same = (found - done.write_amplification).abs() <= bounds.tolerance * found;
        // Before the first full overwrite, a new device has not collected any block.
        let worn = done.overwritten_bytes >= overwritten_span;
        agreeing = if same && worn { agreeing + 1 } else { 0 };
        done.write_amplification = found;
        done.steady = agreeing >= AGREEING;
        last = now;
    }
    Ok(done)
}

/// Why a device can't be preconditioned.
#[derive(Debug, thiserror::Error)]
pub enum PreconditionError {
    /// The bounds, or the size of the device.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The caller asked for the end.
    #[error("cancelled")]
    Cancelled,
    /// The device refused a write.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// Submits `writes`; returns their bytes.
fn run(
    device: &mut dyn Device,
    how: &Preconditioning<'_>,
    writes: &Workload,
) -> Result<u64, PreconditionError> {
    let mut bytes = 0;
    let requests = writes.requests()?.map(|request| {
        if (how.cancelled)() {
            return Err(io::Error::from(io::ErrorKind::Interrupted).into());
        }
        bytes += request.len;
        (how.progress)(request.len);
        Ok(request)
    });
    match play(device, requests, SubmissionPace::Closed(DEPTH), &mut Collector::ignoring()) {
        // No other trace is read here.
        Err(PlayError::Trace(_)) => return Err(PreconditionError::Cancelled),
        played => played?,
    };
    // Garbage collection that continues by itself is part of it.
    while device.advance() {}
    Ok(bytes)
}

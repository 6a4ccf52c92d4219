//! A device as it is after long use: full, and its garbage collection at a steady state.
//!
//! Whoever measures a new SSD measures a device that has nothing to clean up. Here it is filled
//! once, then overwritten at random, a *window* at a time, until two windows in turn have the write
//! amplification of those before them, or as much has been written as was allowed: this ends.

use std::io;

use super::{Arrivals, Pace, Pattern, PlayError, Sizes, Workload, WorkloadError, play};
use crate::device::Device;
use crate::results::Collector;

/// How far preconditioning goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Share of the device's capacity that is filled and overwritten.
    pub share: f64,
    /// Overwriting ends when as many times the filled bytes were written.
    pub overwrites_max: f64,
    /// Write amplifications that differ by less than this share are the same.
    pub tolerance: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { share: 1.0, overwrites_max: 4.0, tolerance: 0.01 }
    }
}

/// What preconditioning did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preconditioned {
    /// Bytes written once, in order.
    pub filled_bytes: u64,
    /// Bytes written after that, at random places.
    pub overwritten_bytes: u64,
    /// Pages programmed for each page written, in the last window.
    pub write_amplification: f64,
    /// Whether it had come to a steady state.
    pub steady: bool,
}

/// Requests in flight meanwhile; more than any device needs.
const DEPTH: u32 = 64;
/// Windows in one overwrite of all.
const WINDOWS: u64 = 4;
/// Windows in turn that must agree.
const AGREEING: u32 = 2;

/// Fills and overwrites `device`, until it is steady or `cancelled`. A device without flash is as it was before, and is steady at once.
///
/// # Errors
/// When bounds are out of range, or the device refuses.
pub fn precondition(
    device: &mut dyn Device,
    bounds: Bounds,
    seed: u64,
    cancelled: &dyn Fn() -> bool,
) -> Result<Preconditioned, PreconditionError> {
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
    let mut writes = Workload {
        pattern: Pattern::Sequential,
        read_share: 0.0,
        sizes: Sizes::Fixed(large),
        arrivals: Arrivals::Closed(DEPTH),
        requests: span_bytes / large,
        start: 0,
        span_bytes,
        align_bytes: page,
        seed,
    };
    run(device, cancelled, &writes)?;
    let rest = span_bytes % large;
    if rest > 0 {
        let sizes = Sizes::Fixed(rest);
        run(
            device,
            cancelled,
            &Workload {
                sizes,
                requests: 1,
                start: span_bytes - rest,
                span_bytes: rest,
                ..writes.clone()
            },
        )?;
    }
    writes.pattern = Pattern::Random;
    writes.sizes = Sizes::Fixed(page);
    writes.requests = (pages / WINDOWS).max(1);
    let mut last = device.statistics().flash.unwrap_or(before);
    let mut done = Preconditioned {
        filled_bytes: span_bytes,
        overwritten_bytes: 0,
        write_amplification: 1.0,
        steady: false,
    };
    let mut agreeing = 0;
    let most = (span_bytes as f64 * bounds.overwrites_max) as u64;
    while !done.steady && done.overwritten_bytes < most {
        writes.seed = writes.seed.wrapping_add(1);
        run(device, cancelled, &writes)?;
        done.overwritten_bytes += writes.requests * page;
        let now = device.statistics().flash.unwrap_or(last);
        let asked = now.host_programs.saturating_sub(last.host_programs).max(1);
        let programmed = now.page_programs.saturating_sub(last.page_programs);
        let found = programmed as f64 / asked as f64;
        let same = (found - done.write_amplification).abs() <= bounds.tolerance * found;
        // Before all has been overwritten once, a new device has cleaned nothing yet.
        let worn = done.overwritten_bytes >= span_bytes;
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
    /// Its bounds, or its size.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The end was asked for.
    #[error("cancelled")]
    Cancelled,
    /// It refused a write.
    #[error(transparent)]
    Play(#[from] PlayError),
}

fn run(
    device: &mut dyn Device,
    cancelled: &dyn Fn() -> bool,
    writes: &Workload,
) -> Result<(), PreconditionError> {
    let requests = writes.requests()?.map(|request| {
        if cancelled() {
            Err(io::Error::from(io::ErrorKind::Interrupted).into())
        } else {
            Ok(request)
        }
    });
    match play(device, requests, Pace::Closed(DEPTH), &mut Collector::ignoring()) {
        // Nothing else is read here.
        Err(PlayError::Trace(_)) => return Err(PreconditionError::Cancelled),
        played => played?,
    };
    // Garbage collection that goes on by itself is part of it.
    while device.advance() {}
    Ok(())
}

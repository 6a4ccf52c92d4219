//! The prototype of ActiveSort: its raw figures (ActiveSort 5.2, Figure 8).

use crate::common::{close, closed_loop, sequential, ssd, throughput};
use merganser_device::device::Device;
use merganser_device::request::RequestKind::{Read, Write};

const TOTAL: u64 = 256 << 20;

/// Fitted: `channel_overhead_ns` was chosen for this figure.
#[test]
fn raw_sequential_read_is_as_fitted() {
    let mut jasmine = ssd("jasmine", &[]);
    jasmine.precondition(TOTAL);
    let ended = closed_loop(&mut jasmine, sequential(Read, 128 << 10, TOTAL), 32);
    close("read, bytes/s", throughput(&ended), 140.8e6, 0.005);
}

/// Predicted: nothing was fitted to it.
#[test]
fn raw_sequential_write_is_predicted() {
    let mut jasmine = ssd("jasmine", &[]);
    let ended = closed_loop(&mut jasmine, sequential(Write, 128 << 10, TOTAL), 32);
    close("write, bytes/s", throughput(&ended), 65.1e6, 0.03);
}

/// A page alone: link, command, firmware, sensing, channel, memory, link.
#[test]
fn one_page_takes_the_sum_of_its_parts() {
    let mut jasmine = ssd("jasmine", &[]);
    jasmine.precondition(32 << 10);
    let ended = closed_loop(&mut jasmine, sequential(Read, 32 << 10, 32 << 10), 1);
    let parts = [
        500e9 / 87.5e6,                // firmware
        250_000.0,                     // sensing
        190_000.0 + 32_768e9 / 66.7e6, // channel
        2.0 * 32_768e9 / 700e6,        // memory
        32_768e9 / 260e6,              // link
    ];
    let expected: f64 = parts.iter().sum();
    close("one page, ns", ended[0].at.0 as f64, expected, 0.0001);
    assert_eq!(jasmine.statistics().flash.expect("it is flash").page_reads, 1);
}

//! DiskSim's SSD with the two traces of its own validation: what its `outv` files say, and ours.
//!
//! ```text
//! cargo run --release -p merganser-device --example msr_traces -- FOLDER [NAME=VALUE]...
//! ```
//!
//! FOLDER has `ssd-postmark-aligned2.trace` and `ssd-iozone-aligned2-100K.trace`, from
//! `ssdmodel/valid` of DiskSim's SSD extension.
#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use merganser_device::device::{Device, IoCommand};
use merganser_device::profile::SsdProfile;
use merganser_device::request::{RequestKind, SimTime};
use merganser_device::ssd::Ssd;
use merganser_device::trace::{self, TraceFormat, TraceOptions};

/// Mean, deviation and maximum of responses, in milliseconds.
type Times = [f64; 3];

/// A trace, and what is published of its reads and its writes.
const TRACES: [(&str, &str, Option<Times>, Times); 2] = [
    (
        "Postmark",
        "ssd-postmark-aligned2.trace",
        Some([2.416786, 8.028611, 68.054171]),
        [12.658729, 14.740851, 67.574643],
    ),
    ("IOzone", "ssd-iozone-aligned2-100K.trace", None, [6.416810, 24.237360, 1016.600971]),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the folder of the traces"));
    let mut profile = SsdProfile::preset("msr").expect("a preset");
    arguments.for_each(|text| profile.set(&text).unwrap_or_else(|error| panic!("{error}")));
    for (name, file, reads, writes) in TRACES {
        let file = File::open(folder.join(file)).expect("a trace");
        let options =
            TraceOptions { format: Some(TraceFormat::DiskSim), ..TraceOptions::default() };
        let requests = trace::read(BufReader::new(file), &options).expect("a trace");
        let mut ssd = Ssd::new(&profile, 1).expect("a device");
        ssd.precondition(ssd.capacity_bytes());
        let mut spans: [Vec<u64>; 2] = Default::default();
        let mut kinds = Vec::new();
        let mut take = |ssd: &mut Ssd, kinds: &[usize]| {
            while let Some(done) = ssd.completed() {
                let span = done.at.0 - done.submitted.0;
                spans[kinds[done.id as usize]].push(span);
            }
        };
        for request in requests {
            let request = request.expect("a request");
            while ssd.next_at().is_some_and(|next| next < request.arrival) {
                ssd.advance();
            }
            take(&mut ssd, &kinds);
            let (kind, offset, len) = (request.kind, request.offset, request.len);
            let id = kinds.len() as u64;
            kinds.push(usize::from(kind == RequestKind::Write));
            ssd.submit(
                SimTime(request.arrival.0),
                IoCommand { id, kind, offset, len, buffer: None },
            );
        }
        while ssd.advance() {}
        take(&mut ssd, &kinds);
        for (what, spans, published) in
            [("reads", &spans[0], reads), ("writes", &spans[1], Some(writes))]
        {
            let Some(published) = published else { continue };
            let count = spans.len() as f64;
            let mean = spans.iter().map(|&ns| ns as f64).sum::<f64>() / count;
            let square = spans.iter().map(|&ns| (ns as f64 - mean).powi(2)).sum::<f64>() / count;
            let max = spans.iter().max().copied().unwrap_or(0) as f64;
            let found = [mean, square.sqrt(), max].map(|ns| ns / 1e6);
            let late = spans.iter().filter(|&&ns| ns >= 40_000_000).count();
            println!("{name}, {} {what}, {late} of 40 ms and more", spans.len());
            for (figure, (found, published)) in
                ["mean", "deviation", "maximum"].into_iter().zip(found.into_iter().zip(published))
            {
                let off = (found / published - 1.0) * 100.0;
                println!("  {figure:<10}{found:12.6} ms, published {published:12.6} ({off:+.1} %)");
            }
        }
        let flash = ssd.statistics().flash.expect("it is flash");
        println!("  {} cleans, {} pages moved", flash.erases, flash.moved_pages);
    }
}

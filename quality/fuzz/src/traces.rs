//! Any bytes as a trace of any format: requests that the device could serve, or an error. The
//! requests are then written in our format and read again.

use arbitrary::Arbitrary;
use merganser_device::request::RequestKind;
use merganser_device::trace::{
    self, AddressConversion, Disks, TraceFormat, TraceOptions, TraceWriter,
};

#[derive(Debug, Arbitrary)]
struct TracesCase<'a> {
    format: u8,
    disks: u8,
    wraps: bool,
    scale: u8,
    limit_bytes: u64,
    bytes: &'a [u8],
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(case) = crate::value_of::<TracesCase<'_>>(bytes) else { return };
    let format = TraceFormat::ALL.get(usize::from(case.format)).copied();
    let disks = match case.disks % 3 {
        0 => Disks::Single,
        1 => Disks::Together,
        _ => Disks::Apart(1 << 40),
    };
    let address = match (case.wraps, case.scale) {
        (true, _) => AddressConversion::Wrapped(case.limit_bytes),
        (false, 0) => AddressConversion::Same,
        (false, scale) => AddressConversion::Scaled(f64::from(scale) / 64.0),
    };
    let limit_bytes = Some(case.limit_bytes);
    let options = TraceOptions { format, disks, address, limit_bytes, ..TraceOptions::default() };
    let Ok(mut trace) = trace::read(case.bytes, &options) else { return };
    let mut requests = Vec::new();
    let mut writer = TraceWriter::new(Vec::new()).expect("memory");
    for request in trace.by_ref() {
        let Ok(request) = request else { break };
        // A flush is of the whole device, whatever place its line names.
        let end = request.offset.checked_add(request.len);
        let is_within = end.is_some_and(|end| end <= case.limit_bytes);
        assert!(is_within || request.kind == RequestKind::Flush);
        writer.write(&request).expect("memory");
        requests.push(request);
    }
    assert_eq!(trace.tally().requests, requests.len() as u64);
    assert!(requests.is_sorted_by_key(|request| request.arrival));
    assert!(trace.next().is_none(), "an error ends a trace");
    let text = writer.finish().expect("memory");
    let again: Result<Vec<_>, _> =
        trace::read(&text[..], &TraceOptions::default()).expect("ours").collect();
    assert_eq!(again.expect("ours"), requests);
}

/// The golden trace, read as each format, on a device that all of it fits on.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    let trace = include_bytes!("../../../lab/device/tests/golden/trace.txt");
    let options = |format| [&[format, 0, 0, 0][..], &u64::MAX.to_le_bytes()].concat();
    let formats = 0..=TraceFormat::ALL.len() as u8;
    formats.map(|format| [&options(format)[..], trace].concat()).collect()
}

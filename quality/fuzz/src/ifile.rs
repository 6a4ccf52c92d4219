//! Any bytes as segments of Hadoop's map outputs, in any order: an error, or a merge that has all bytes
//! of the segments and is in order.

use std::cmp::Ordering;

use merganser_sort::key::WritableOrder;
use merganser_sort::merge::ifile::IFileMerge;
use merganser_sort::record::ifile::header;

const ORDERS: [&str; 8] = [
    "raw",
    "text",
    "bytes:desc",
    "vint",
    "double",
    "boolean",
    "text,int:desc",
    "vlong,fixed:2,raw",
];

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(input) = crate::value_of::<(u8, [&[u8]; 3], u8)>(bytes) else { return };
    let (order, segments, out_bytes) = input;
    let order: WritableOrder = ORDERS[usize::from(order) % ORDERS.len()].parse().unwrap();
    let mut merge = IFileMerge::new(&order, segments.to_vec());
    let (mut merged, mut out) = (Vec::new(), vec![0; usize::from(out_bytes) + 1]);
    loop {
        let Ok(n) = merge.read(&mut out) else { return };
        merged.extend_from_slice(&out[..n]);
        if n < out.len() {
            break;
        }
    }
    assert_eq!(merged.len(), segments.concat().len());
    if segments.iter().all(|segment| is_sorted(&order, segment)) {
        assert!(is_sorted(&order, &merged));
    }
}

/// Whether the keys of whole records ascend.
fn is_sorted(order: &WritableOrder, mut records: &[u8]) -> bool {
    let mut last: Option<&[u8]> = None;
    while !records.is_empty() {
        let header = header(records).unwrap().unwrap();
        let key = &records[header.bytes..header.bytes + header.key];
        if last.is_some_and(|last| order.compare(last, key).unwrap() == Ordering::Greater) {
            return false;
        }
        last = Some(key);
        records = &records[header.record_bytes() as usize..];
    }
    true
}

//! Any specification and three records: nothing panics, `compare` and the normalised keys are one
//! order, and keys are self-delimiting.

use std::cmp::Ordering;

use arbitrary::Arbitrary;
use merganser_sort::key::{Order, OrderSpec};
use merganser_sort::record::Format;

#[derive(Debug, Arbitrary)]
struct KeysCase<'a> {
    format: u8,
    keys: Vec<&'a str>,
    options: &'a str,
    separator: Option<u8>,
    stable: bool,
    unique: bool,
    salt: u64,
    header: Option<&'a [u8]>,
    records: [&'a [u8]; 3],
}

const FIXED_LEN: usize = 24;

/// A whole record of this format with about these bytes.
fn record(format: Format, bytes: &[u8]) -> Vec<u8> {
    let mut record = bytes.to_vec();
    match format {
        Format::Lines { delimiter } => {
            record.retain(|&byte| byte != delimiter);
            record.push(delimiter);
        }
        Format::Csv { .. } => {
            record.push(b'\n');
            if format.record_len(&record).is_none() {
                // The newline is in quotes; behind a quote it is not.
                record.extend_from_slice(b"\"\n");
            }
            let end = format.record_len(&record).expect("a row that ends");
            record.truncate(end);
        }
        Format::Fixed { bytes } => record.resize(bytes, 0),
        Format::Keyed => {
            let (key, value) = bytes.split_at(bytes.len() / 2);
            record = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes).concat();
            record.extend_from_slice(bytes);
        }
        Format::Fasta => {
            let lines = bytes.split(|&byte| byte == b'\n');
            record = lines.filter(|line| !line.starts_with(b">")).collect::<Vec<_>>().join(&b'\n');
            record.insert(0, b'>');
            record.push(b'\n');
        }
        Format::Fastq => {
            record.retain(|&byte| !b"\r\n@+".contains(&byte));
            let (header, sequence) = record.split_at(record.len() / 3);
            let quality = vec![b'@'; sequence.len()];
            record = [b"@", header, b"\n", sequence, b"\n+\n", &quality, b"\n"].concat();
        }
    }
    assert_eq!(format.first_len(&record), Some(record.len()));
    record
}

fn keys(order: &Order, record: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut key, mut full) = (Vec::new(), Vec::new());
    order.encode(record, &mut key);
    order.encode_full(record, &mut full);
    (key, full)
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(case) = crate::value_of::<KeysCase<'_>>(bytes) else { return };
    let format = match case.format % 8 {
        0 => Format::Lines { delimiter: 0 },
        1 | 2 => Format::Lines { delimiter: b'\n' },
        3 => Format::csv_rows(b',', case.header.is_some()),
        4 => Format::Fixed { bytes: FIXED_LEN },
        5 => Format::Fasta,
        6 => Format::Fastq,
        _ => Format::Keyed,
    };
    let spec = OrderSpec {
        format,
        keys: case.keys.iter().take(4).map(|&key| key.to_owned()).collect(),
        options: case.options.to_owned(),
        separator: case.separator,
        stable: case.stable,
        unique: case.unique,
        salt: case.salt,
        header_prefixes: Vec::new(),
    };
    let order = match spec.compile(case.header) {
        Ok(order) => order,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let records = case.records.map(|bytes| record(format, bytes));
    for a in &records {
        for b in &records {
            let (x, y) = (keys(&order, a), keys(&order, b));
            let compared = order.compare(a, b);
            assert_eq!(x.1.cmp(&y.1), compared);
            assert_eq!(order.compare(b, a), compared.reverse());
            assert!(x.0 == y.0 || x.0.cmp(&y.0) == compared);
            if order.direct().is_none() {
                assert!(x.0 == y.0 || !x.0.starts_with(&y.0));
            }
            if a == b {
                assert_eq!(compared, Ordering::Equal);
            }
        }
    }
}

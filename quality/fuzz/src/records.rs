//! Any bytes as records of any format: cutting a buffer finds the same ends as walking it.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use merganser_sort::record::{CsvQuotes, Format, InputRecords};

#[derive(Debug, Arbitrary)]
enum Kind {
    Lines(u8),
    Csv(u8, CsvKind),
    Fixed(u8),
    Keyed,
    Fasta,
    Fastq,
}

#[derive(Debug, Arbitrary)]
enum CsvKind {
    Lazy,
    Strict,
    Toggled,
}

#[derive(Debug, Arbitrary)]
struct Case<'a> {
    kind: Kind,
    piece: u16,
    bytes: &'a [u8],
}

fuzz_target!(|case: Case<'_>| {
    let format = match case.kind {
        Kind::Lines(delimiter) => Format::Lines { delimiter },
        Kind::Csv(separator, kind) => {
            let quotes = match kind {
                CsvKind::Lazy => CsvQuotes::Lazy,
                CsvKind::Strict => CsvQuotes::Strict,
                CsvKind::Toggled => CsvQuotes::Toggled,
            };
            Format::Csv { separator, header: false, quotes }
        }
        Kind::Fixed(bytes) => Format::Fixed { bytes: usize::from(bytes) + 1 },
        Kind::Keyed => Format::Keyed,
        Kind::Fasta => Format::Fasta,
        Kind::Fastq => Format::Fastq,
    };
    let bytes = case.bytes;
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(len) = format.record_len(&bytes[at..]) {
        assert!(len > 0, "an empty record would be met for ever");
        at += len;
        ends.push(at);
    }
    let mut cuts = Vec::new();
    format.cut(bytes, usize::from(case.piece), &mut cuts);
    assert_eq!(cuts.last(), ends.last());
    assert!(cuts.is_sorted_by(|a, b| a < b));
    assert!(cuts.iter().all(|cut| ends.binary_search(cut).is_ok()));
    let mut input = InputRecords::of_input(format);
    if let Ok(Some(preamble)) = input.preamble_len(bytes) {
        let _ = input.records(&bytes[preamble.min(at)..at]);
    }
    let _ = input.tail(&bytes[at..]);
});

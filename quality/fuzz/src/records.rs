//! Any bytes as records of any format: cutting a buffer finds the same ends as walking it.

use arbitrary::Arbitrary;
use merganser_sort::record::{CsvQuotes, Format, InputRecords};

#[derive(Debug, Arbitrary)]
enum RecordsKind {
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
struct RecordsCase<'a> {
    kind: RecordsKind,
    piece: u16,
    bytes: &'a [u8],
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(case) = crate::value_of::<RecordsCase<'_>>(bytes) else { return };
    let format = match case.kind {
        RecordsKind::Lines(delimiter) => Format::Lines { delimiter },
        RecordsKind::Csv(separator, kind) => {
            let quotes = match kind {
                CsvKind::Lazy => CsvQuotes::Lazy,
                CsvKind::Strict => CsvQuotes::Strict,
                CsvKind::Toggled => CsvQuotes::Toggled,
            };
            Format::Csv { separator, header: false, quotes }
        }
        RecordsKind::Fixed(bytes) => Format::Fixed { bytes: usize::from(bytes) + 1 },
        RecordsKind::Keyed => Format::Keyed,
        RecordsKind::Fasta => Format::Fasta,
        RecordsKind::Fastq => Format::Fastq,
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
}

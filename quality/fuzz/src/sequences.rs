//! Any bytes as FASTA or FASTQ: wherever they are cut into pieces, the same records begin, and a sort gives
//! back every byte of them or names the place of the fault.

use std::io::Cursor;

use arbitrary::Arbitrary;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::{Format, SequenceBorders, SequenceEnd, Tail};
use merganser_sort::run::SortInput;
use merganser_sort::{
    CompressionChoice, Error, Silent, SortOptions, SortOutput, sort,
};
use merganser_storage::memory::MemoryDirectory;

#[derive(Debug, Arbitrary)]
struct SequencesCase<'a> {
    fastq: bool,
    key: u8,
    piece: u8,
    bytes: &'a [u8],
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(case) = crate::value_of::<SequencesCase<'_>>(bytes) else { return };
    let format = if case.fastq { Format::Fastq } else { Format::Fasta };
    let kind = format.sequences().expect("one of the two");
    // Without its mark nearly all input would be refused at once.
    let bytes = [if case.fastq { b"@" } else { b">" }, case.bytes].concat();
    let fed = |piece: usize| {
        let (mut borders, mut starts) = (SequenceBorders::new(kind), Vec::new());
        let fault = bytes.chunks(piece).try_for_each(|piece| borders.feed(piece, &mut starts));
        fault.map(|()| (starts, borders.finish()))
    };
    let whole = fed(bytes.len());
    assert_eq!(fed(usize::from(case.piece) + 1), whole);

    let key = ["id", "header:V:r", "length", "sequence:f", "length:r"][usize::from(case.key) % 5];
    let options = SortOptions::new(OrderSpec { keys: vec![key.to_owned()], ..OrderSpec::new(format) }).memory(64 << 20).threads(1).temp(vec![MemoryDirectory::new()]).compression(CompressionChoice::Fixed(merganser_sort::run::Compression::Off));
    let reader = Box::new(Cursor::new(bytes.clone()));
    let input = SortInput::Stream { name: "input".to_owned(), reader };
    let mut out = Vec::new();
    let sorted = sort(vec![input], SortOutput::Writer(&mut out), &options, &Silent);
    let (starts, end) = match (whole, sorted) {
        (Err(fault), Err(Error::Input { offset, .. })) => return assert_eq!(offset, fault.at),
        (Ok((_, SequenceEnd::Cut(_))), Err(Error::LastRecord { .. })) => return,
        (Ok(whole), Ok(_)) => whole,
        other => panic!("{other:?}"),
    };
    let mut bytes = bytes;
    if let Tail::Complete(newline) = end.into() {
        bytes.extend_from_slice(newline);
    }
    let order = options.order.compile(None).expect("an order");
    let ends = starts.iter().skip(1).copied().chain([bytes.len() as u64]);
    let mut records: Vec<&[u8]> =
        starts.iter().zip(ends).map(|(from, to)| &bytes[*from as usize..to as usize]).collect();
    records.sort_by(|a, b| order.compare(a, b));
    assert!(out == records.concat(), "the result is not what a naive sort gives");
}

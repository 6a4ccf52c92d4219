//! Any bytes as the journal of a pipeline, as they are and as lines with their checksums put right: an error,
//! or a content that is written as it was read.

use merganser_pipeline::PipelineRecord;

fn decode(bytes: &[u8]) {
    let Ok(record) = PipelineRecord::decode("pipeline-journal", bytes) else { return };
    assert!(record.whole_bytes as usize <= bytes.len());
    // Lines that contradict one another are found, whatever numbers they hold.
    let _ = record.check("pipeline-journal");
    let again =
        PipelineRecord::decode("pipeline-journal", &record.encode()).expect("what was written");
    assert_eq!((again.header, again.events), (record.header, record.events));
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    decode(bytes);
    let mut lines = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        lines.extend_from_slice(format!("{:08x} ", crc32c::crc32c(line)).as_bytes());
        lines.extend_from_slice(line);
        lines.push(b'\n');
    }
    decode(&lines);
}

/// A journal with its checksums, and its lines, which get theirs here.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    let golden = include_str!("../../../near/pipeline/tests/golden/pipeline-journal");
    let lines = golden.lines().filter_map(|line| line.split_once(' ')).map(|(_, line)| line);
    vec![golden.into(), lines.collect::<Vec<_>>().join("\n").into()]
}

//! Any bytes as the journal of a sort, the note of its folder and the resume point of a copy, as they are and with their
//! checksum put right: an error, or a content that is written as it was read.

use merganser_sort::journal::SortJournal;
use merganser_sort::note::WorkNote;
use merganser_sort::output::Resume;

fn decode(bytes: &[u8]) {
    if let Ok(journal) = SortJournal::decode("sort-journal", bytes) {
        let taken = |input: &merganser_sort::journal::InputProgress| {
            input.given_back <= input.taken && input.taken <= input.file.size
        };
        assert!(journal.inputs.iter().all(taken));
        let again =
            SortJournal::decode("sort-journal", &journal.encode()).expect("what was written");
        assert_eq!(again, journal);
    }
    if let Ok(note) = WorkNote::decode("work-note", bytes) {
        let again = WorkNote::decode("work-note", &note.encode()).expect("what was written");
        assert_eq!(again, note);
    }
    if let Ok(resume) = Resume::decode("resume", bytes) {
        assert!(resume.written <= resume.total);
        let again = Resume::decode("resume", &resume.encode()).expect("what was written");
        assert_eq!(again, resume);
    }
}

/// Tries one input.
pub(crate) fn run(body: &[u8]) {
    decode(body);
    let mut bytes = body.to_vec();
    bytes.extend_from_slice(format!("crc32c {:08x}\n", crc32c::crc32c(body)).as_bytes());
    decode(&bytes);
}

/// A journal, a note and a resume point.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    let golden = [
        include_str!("../../../core/sort/src/sorter/golden/sort-journal"),
        include_str!("../../../core/sort/src/sorter/golden/work-note"),
        include_str!("../../../core/sort/src/output/golden/resume"),
    ];
    golden.map(crate::without_checksum).to_vec()
}

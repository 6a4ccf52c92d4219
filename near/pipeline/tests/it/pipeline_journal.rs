//! The journal of a pipeline: golden bytes, cuts, damage, contradictions.

use std::ffi::OsStr;

use merganser_pipeline::{
    InputNote, JournalHeader, MergeBy, PartitionCut, Partitions, PieceFormat, PipelineEvent,
    PipelineRecord, PipelineWork,
};
use merganser_sort::Error;
use merganser_sort::journal::{CommandNote, FileNote, JournalText};

fn text(text: &str) -> JournalText {
    JournalText::from(OsStr::new(text))
}

fn header() -> JournalHeader {
    let words = ["merganser", "pipeline", "in.fa", "-o", "out"].map(text).to_vec();
    let command = CommandNote {
        words,
        folder: text("/data"),
        output: text("/data/out"),
        view: false,
        mode: 0o644,
        owner: None,
    };
    let work = PipelineWork {
        records: PieceFormat::Fasta,
        as_stored: false,
        partitions: Partitions::Auto,
        stages: vec![("pack".into(), "gzip".into()), ("sum".into(), "md5sum".into())],
        merge: MergeBy::Command("sort".into()),
        folder: text("/data"),
    };
    let file = FileNote {
        device: 2049,
        inode: 12,
        born_unix_ns: Some(1_700_000_000_000_000_001),
        size: 3_000_000,
        modified_unix_ns: 1_700_000_000_000_000_002,
    };
    let inputs = vec![
        InputNote { name: text("in.fa"), file: Some(file) },
        InputNote { name: text("-"), file: None },
    ];
    JournalHeader::new(command, work, inputs)
}

fn cut(k: u32, start: u64, bytes: u64) -> PipelineEvent {
    PipelineEvent::Cut(PartitionCut { k, start, bytes, records: 7, crc: 0x0123_4567 })
}

/// Each kind of line, in an order that can be.
fn events() -> Vec<PipelineEvent> {
    vec![
        PipelineEvent::Sized { bytes: 3_000_000 },
        cut(0, 0, 50_000),
        PipelineEvent::Ran { k: 0, stage: 0, bytes: 20_000, crc: Some(0x89ab_cdef) },
        cut(1, 50_000, 190_000),
        PipelineEvent::Ran { k: 1, stage: 0, bytes: 80_000, crc: Some(0x89ab_cdef) },
        PipelineEvent::Ran { k: 0, stage: 1, bytes: 36, crc: Some(0x89ab_cdef) },
        PipelineEvent::Gathered { k: 0, bytes: 36, crc: Some(0x89ab_cdef) },
        PipelineEvent::Ran { k: 1, stage: 1, bytes: 36, crc: Some(0x89ab_cdef) },
        PipelineEvent::Split { first: 2, start: 240_000, partitions: 1 },
        cut(2, 240_000, 2_760_000),
        PipelineEvent::AllCut { partitions: 3 },
        PipelineEvent::Ran { k: 2, stage: 0, bytes: 1, crc: Some(0x89ab_cdef) },
        PipelineEvent::Ran { k: 2, stage: 1, bytes: 36, crc: Some(0x89ab_cdef) },
        PipelineEvent::Gathered { k: 1, bytes: 72, crc: Some(0x89ab_cdef) },
        PipelineEvent::Gathered { k: 2, bytes: 108, crc: Some(0x89ab_cdef) },
        PipelineEvent::Merged { bytes: 108, crc: Some(0x89ab_cdef) },
    ]
}

fn record(events: Vec<PipelineEvent>) -> PipelineRecord {
    let mut record = PipelineRecord { header: header(), events, whole_bytes: 0 };
    record.whole_bytes = record.encode().len() as u64;
    record
}

#[test]
fn the_bytes_are_pinned() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/pipeline-journal");
    let bytes = record(events()).encode();
    if std::env::var_os("MERGANSER_BLESS").is_some() {
        std::fs::write(path, &bytes).expect("written");
    }
    let golden = std::fs::read(path).unwrap_or_default();
    assert!(bytes == golden, "docs/formats.md and the version must follow");
}

/// A kill leaves the beginning of a journal: what is whole counts.
#[test]
fn any_beginning_is_the_journal_of_an_earlier_moment() {
    let whole = record(events());
    whole.check("x").expect("in order");
    let bytes = whole.encode();
    assert_eq!(PipelineRecord::decode("x", &bytes).expect("whole"), whole);
    let first = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    for end in 0..bytes.len() {
        let lines = bytes[..end].iter().filter(|byte| **byte == b'\n').count();
        match PipelineRecord::decode("x", &bytes[..end]) {
            Err(error) => assert!(end < first && matches!(error, Error::Corrupt { .. })),
            Ok(read) => {
                assert_eq!(read.events, events()[..lines - 1], "cut at {end}");
                assert!(read.whole_bytes as usize <= end);
                read.check("x").expect("in order");
            }
        }
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let bytes = record(events()).encode();
    let last = record(events()[..events().len() - 1].to_vec()).encode().len();
    for at in 0..bytes.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            match PipelineRecord::decode("x", &damaged) {
                Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "byte {at}"),
                // The last line can be one that a crash cut.
                Ok(read) => {
                    assert!(at >= last, "byte {at}");
                    assert_eq!(read.events.len(), events().len() - 1);
                }
            }
        }
    }
}

/// Lines that are whole and can't follow one another: nothing is built upon them.
#[test]
fn contradictions_are_damage() {
    let ran = |k, stage| PipelineEvent::Ran { k, stage, bytes: 1, crc: Some(0x89ab_cdef) };
    for wrong in [
        vec![ran(0, 0)],
        vec![cut(1, 0, 5)],
        vec![cut(0, 1, 5)],
        vec![cut(0, 0, 0)],
        vec![cut(0, 0, u64::MAX), cut(1, u64::MAX, 1)],
        vec![cut(0, 0, 5), ran(0, 1)],
        vec![cut(0, 0, 5), ran(0, 0), ran(0, 0)],
        vec![cut(0, 0, 5), ran(0, 0), ran(0, 1), ran(0, 2)],
        vec![cut(0, 0, 5), PipelineEvent::Gathered { k: 0, bytes: 0, crc: Some(0x89ab_cdef) }],
        vec![cut(0, 0, 5), PipelineEvent::AllCut { partitions: 2 }],
        vec![PipelineEvent::AllCut { partitions: 0 }, cut(0, 0, 5)],
        vec![cut(0, 0, 5), PipelineEvent::Sized { bytes: 5 }],
        vec![PipelineEvent::Split { first: 0, start: 0, partitions: 0 }],
        vec![PipelineEvent::Split { first: 1, start: 0, partitions: 1 }],
        vec![PipelineEvent::Merged { bytes: 0, crc: Some(0x89ab_cdef) }],
        vec![
            PipelineEvent::AllCut { partitions: 0 },
            PipelineEvent::Merged { bytes: 0, crc: Some(0x89ab_cdef) },
            PipelineEvent::Merged { bytes: 0, crc: Some(0x89ab_cdef) },
        ],
    ] {
        let read =
            PipelineRecord::decode("x", &record(wrong.clone()).encode()).expect("whole lines");
        assert!(matches!(read.check("x"), Err(Error::Corrupt { .. })), "{wrong:?}");
    }
}

#[test]
fn other_versions_are_named() {
    let json = r#"{"format":"merganser-pipeline-journal","version":2,"more":1}"#;
    let line = format!("{:08x} {json}\n", crc32c::crc32c(json.as_bytes()));
    let error = PipelineRecord::decode("x", line.as_bytes()).expect_err("another version");
    assert!(matches!(error, Error::UnknownVersion { version: 2, .. }), "{error}");
}

/// Lines of earlier versions have no checksums of outputs. They are read, and written as they were.
#[test]
fn lines_without_checksums_of_outputs_are_read() {
    let lines = [
        PipelineEvent::Ran { k: 0, stage: 0, bytes: 5, crc: None },
        PipelineEvent::Gathered { k: 0, bytes: 5, crc: None },
        PipelineEvent::Merged { bytes: 5, crc: None },
    ];
    let json = [
        r#"{"ran":{"k":0,"stage":0,"bytes":5}}"#,
        r#"{"gathered":{"k":0,"bytes":5}}"#,
        r#"{"merged":{"bytes":5}}"#,
    ];
    for (event, json) in lines.iter().zip(json) {
        assert_eq!(serde_json::to_string(event).expect("plain data"), json);
        assert_eq!(serde_json::from_str::<PipelineEvent>(json).expect("read"), *event);
    }
}

/// A whole journal of a version that noted no checksums of outputs.
#[test]
fn a_journal_without_checksums_of_outputs_is_read() {
    let old = include_bytes!("../golden/pipeline-journal-without-checksums");
    let read = PipelineRecord::decode("x", old).expect("an old journal");
    read.check("x").expect("in order");
    let without = events().into_iter().map(|event| match event {
        PipelineEvent::Ran { k, stage, bytes, .. } => {
            PipelineEvent::Ran { k, stage, bytes, crc: None }
        }
        PipelineEvent::Gathered { k, bytes, .. } => PipelineEvent::Gathered { k, bytes, crc: None },
        PipelineEvent::Merged { bytes, .. } => PipelineEvent::Merged { bytes, crc: None },
        other => other,
    });
    assert_eq!(read, record(without.collect()));
    assert_eq!(read.encode(), old);
}

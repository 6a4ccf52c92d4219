//! Pinned messages, and bad ones.

use proptest::prelude::*;

use super::super::HdfsBlock;
use super::super::request::{
    BlockRange, Codec, CombineKind, Order, Partitioner, SsdletName, Writable,
};
use super::*;

fn decode(bytes: &[u8]) -> Result<HdfsRequest, BadMessage> {
    let (head, body) = bytes.split_first_chunk().expect("a head");
    let head = HdfsRequest::head(*head)?;
    assert_eq!(head.body_bytes, body.len());
    HdfsRequest::decode(head, body)
}

fn map() -> MapRequest {
    MapRequest {
        attempt: "attempt_1".to_owned(),
        ssdlet: SsdletName::BuiltIn("grep".to_owned()),
        arguments: "{}".to_owned(),
        pool: "BP-1".to_owned(),
        ranges: vec![BlockRange {
            block: HdfsBlock { id: 1_073_741_825, generation: 1001 },
            block_length: 512,
            offset: 256,
            length: 16,
        }],
        start: 256,
        end: 272,
        tail: b"cd\n".to_vec(),
        tail_at_eof: true,
        delimiter: b"|".to_vec(),
        record_bytes_max: i32::MAX as u32,
        partitions: 7,
        partitioner: Partitioner::Hash,
        order: Order::Text,
        key: Writable::Text,
        value: Writable::Long,
        combine: CombineKind::Sum,
        codec: Codec::None,
        memory_bytes: 1 << 24,
        patience_ms: 1000,
    }
}

const MAP_BYTES: &[u8] = b"MGHN\x00\x01\x00\x01\x00\x00\x00\x7d\
    \x00\x09attempt_1\x01\x00\x04grep\x00\x02{}\x00\x04BP-1\
    \x00\x00\x00\x01\
    \x00\x00\x00\x00\x40\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03\xe9\
    \x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x10\
    \x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x10\
    \x00\x00\x00\x03cd\n\x01\x00\x01|\x7f\xff\xff\xff\x00\x00\x00\x07\
    \x01\x01\x01\x03\x01\x00\
    \x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x03\xe8";

#[test]
fn requests_are_pinned() {
    let hello = b"MGHN\x00\x01\x00\x02\x00\x00\x00\x00";
    assert_eq!(HdfsRequest::Hello.encode().expect("short"), hello);
    assert_eq!(decode(hello), Ok(HdfsRequest::Hello));
    let request = HdfsRequest::Map(Box::new(map()));
    assert_eq!(
        request.encode().expect("short").escape_ascii().to_string(),
        MAP_BYTES.escape_ascii().to_string()
    );
    assert_eq!(decode(MAP_BYTES), Ok(request));
}

/// The same map by an SSDlet that the job brings: its kind and SHA-256 are in the place of the name.
#[test]
fn requests_of_version_2_are_pinned() {
    let upload = HdfsRequest::Upload(b"\0asm".to_vec());
    let bytes = b"MGHN\x00\x02\x00\x03\x00\x00\x00\x04\0asm";
    assert_eq!(upload.encode().expect("short"), bytes);
    assert_eq!(decode(bytes), Ok(upload));
    let own = MapRequest { ssdlet: SsdletName::Module([0xab; 32]), ..map() };
    let (before, after) = (&MAP_BYTES[HEAD_BYTES..][..11], &MAP_BYTES[HEAD_BYTES + 18..]);
    let head = b"MGHN\x00\x02\x00\x01\x00\x00\x00\x97";
    let bytes = [&head[..], before, &[2], &[0xab; 32], after].concat();
    let request = HdfsRequest::Map(Box::new(own));
    assert_eq!(
        request.encode().expect("short").escape_ascii().to_string(),
        bytes.escape_ascii().to_string()
    );
    assert_eq!(decode(&bytes), Ok(request));
    let told = |mut bytes: Vec<u8>, version: u8| {
        bytes[5] = version;
        decode(&bytes).expect_err("refused").to_string()
    };
    assert_eq!(told(bytes, 1), "a request of version 1 with the content of version 2");
    let known = "a request of version 2 with the content of version 1";
    assert_eq!(told(MAP_BYTES.to_vec(), 2), known);
    let long = RequestHead { version: 2, kind: UPLOAD, body_bytes: MODULE_BYTES_MAX + 1 };
    let told = HdfsRequest::decode(long, vec![0_u8; MODULE_BYTES_MAX + 1]).expect_err("refused");
    assert_eq!(told.to_string(), "a module has at most 4194304 bytes, not 4194305");
}

/// The state: its request and its answer.
#[test]
fn messages_of_version_3_are_pinned() {
    for (folders, byte) in [(false, 0), (true, 1)] {
        let bytes = [&b"MGHN\x00\x03\x00\x04\x00\x00\x00\x01"[..], &[byte]].concat();
        let request = HdfsRequest::State { folders };
        assert_eq!(request.encode().expect("short"), bytes);
        assert_eq!(decode(&bytes), Ok(request));
    }
    let told = |bytes: &[u8]| decode(bytes).expect_err("refused").to_string();
    assert_eq!(
        told(b"MGHN\x00\x02\x00\x04\x00\x00\x00\x01\x01"),
        "a request of version 2 with the content of version 3"
    );
    assert_eq!(told(b"MGHN\x00\x03\x00\x04\x00\x00\x00\x01\x02"), "2 is neither 0 nor 1");
    assert_eq!(
        told(b"MGHN\x00\x03\x00\x02\x00\x00\x00\x00"),
        "a request of version 3 with the content of version 1"
    );
    let frame = MapFrame::State(MapServerState {
        hello: Hello {
            version: 3,
            maps: 2,
            memory_bytes: 258,
            maps_max: 3,
            memory_bytes_max: 259,
            ssdlets: vec!["grep".to_owned()],
            product: "0.1.0".to_owned(),
        },
        uploads: true,
        totals: Totals {
            seconds: 1,
            maps: 2,
            read_bytes: 3,
            spill_bytes: 4,
            cpu_ns: 5,
            left: 6,
            errors: vec![(1, 7), (101, 8)],
        },
        folders: vec![
            (FolderState::Readable, "/d".to_owned()),
            (FolderState::Denied, "/e".to_owned()),
        ],
    });
    let bytes =
        b"\x08\x00\x00\x00\x7c\x00\x03\0\0\0\x02\0\0\0\0\0\0\x01\x02\0\0\0\x03\0\0\0\0\0\0\x01\x03\
        \x00\x01\x00\x04grep\x00\x050.1.0\x01\
        \0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\
        \0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\
        \x00\x02\x00\x01\0\0\0\0\0\0\0\x07\x00\x65\0\0\0\0\0\0\0\x08\
        \x00\x02\x00\x00\x02/d\x02\x00\x02/e";
    assert_eq!(frame.encode().escape_ascii().to_string(), bytes.escape_ascii().to_string());
    assert_eq!(MapFrame::decode(bytes), Ok(Some((frame, bytes.len()))));
    for len in FRAME_HEAD_BYTES..bytes.len() {
        let mut cut = bytes[..len].to_vec();
        cut[4] = (len - FRAME_HEAD_BYTES) as u8;
        MapFrame::decode(&cut).expect_err("it was cut");
    }
}

#[test]
fn the_most_folders_fit_into_a_frame() {
    let hello = Hello {
        version: VERSION,
        maps: 0,
        memory_bytes: 0,
        maps_max: 0,
        memory_bytes_max: 0,
        ssdlets: Vec::new(),
        product: String::new(),
    };
    let errors = HdfsErrorKind::ALL.iter().map(|kind| (*kind as u16, u64::MAX)).collect();
    let folder = (FolderState::Missing, "x".repeat(FOLDER_BYTES_MAX));
    let frame = MapFrame::State(MapServerState {
        hello,
        uploads: false,
        totals: Totals { errors, ..Totals::default() },
        folders: vec![folder; FOLDERS_MAX],
    });
    assert!(frame.encode().len() <= FRAME_BODY_BYTES_MAX);
}

#[test]
fn frames_are_pinned() {
    let error = MapFrame::Error { kind: HdfsErrorKind::Damaged, sentence: "no".to_owned() };
    let hello = MapFrame::Hello(Hello {
        version: 1,
        maps: 2,
        memory_bytes: 258,
        maps_max: 3,
        memory_bytes_max: 259,
        ssdlets: vec!["grep".to_owned()],
        product: "0.1.0".to_owned(),
    });
    let index = vec![SegmentIndex { offset: 0, raw: 2, part: 6 }];
    let spill = MapFrame::Spill { number: 1, records: 5, index };
    let progress = MapFrame::Progress { split_bytes: 3, records: 4 };
    let pinned: [(MapFrame, &[u8]); 6] = [
        (MapFrame::Data(b"ab".to_vec()), b"\x01\x00\x00\x00\x02ab"),
        (error, b"\x03\x00\x00\x00\x04\x00\x65no"),
        (
            hello,
            b"\x04\x00\x00\x00\x27\x00\x01\0\0\0\x02\0\0\0\0\0\0\x01\x02\0\0\0\x03\0\0\0\0\0\0\x01\x03\
              \x00\x01\x00\x04grep0.1.0",
        ),
        (MapFrame::Accepted { memory_bytes: 9 }, b"\x05\x00\x00\x00\x08\0\0\0\0\0\0\0\x09"),
        (progress, b"\x06\x00\x00\x00\x10\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04"),
        (
            spill,
            b"\x07\x00\x00\x00\x28\0\0\0\x01\0\0\0\0\0\0\0\x05\0\0\0\x01\
              \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x06",
        ),
    ];
    for (frame, bytes) in pinned {
        assert_eq!(frame.encode().escape_ascii().to_string(), bytes.escape_ascii().to_string());
        for len in 0..bytes.len() {
            assert_eq!(MapFrame::decode(&bytes[..len]), Ok(None), "{frame:?}, {len}");
        }
        assert_eq!(MapFrame::decode(bytes), Ok(Some((frame, bytes.len()))));
    }
    let counters = MapCounters {
        input_records: 1,
        input_bytes: 2,
        output_records: 3,
        output_bytes: 4,
        spilled_records: 5,
        combine_input_records: 6,
        combine_output_records: 7,
        spills: 8,
        spill_bytes: 9,
        read_bytes: 10,
        verified_bytes: 11,
        cpu_ns: 12,
    };
    let bytes = MapFrame::End(counters).encode();
    assert_eq!(bytes[..FRAME_HEAD_BYTES], *b"\x02\x00\x00\x00\x60");
    for (n, field) in bytes[FRAME_HEAD_BYTES..].chunks(8).enumerate() {
        assert_eq!(field, (n as u64 + 1).to_be_bytes());
    }
    assert_eq!(MapFrame::decode(&bytes), Ok(Some((MapFrame::End(counters), bytes.len()))));
}

#[test]
fn the_index_of_the_most_partitions_fits_into_a_frame() {
    let index = vec![
        SegmentIndex { offset: 0, raw: 2, part: 6 };
        super::super::request::PARTITIONS_MAX as usize
    ];
    let frame = MapFrame::Spill { number: 0, records: 0, index };
    assert!(frame.encode().len() <= FRAME_BODY_BYTES_MAX);
}

#[test]
fn kinds_of_errors_keep_their_numbers() {
    let numbers: Vec<u16> = HdfsErrorKind::ALL.iter().map(|kind| *kind as u16).collect();
    assert_eq!(
        numbers,
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 101, 102, 103, 104, 105, 106]
    );
}

type Change<'a> = &'a dyn Fn(&mut MapRequest);

#[test]
fn bad_requests_are_told() {
    let refused = |change: Change<'_>| {
        let mut bad = map();
        change(&mut bad);
        let bytes = HdfsRequest::Map(Box::new(bad)).encode().expect("short");
        decode(&bytes).expect_err("refused").to_string()
    };
    let cases: [(Change<'_>, &str); 14] = [
        (&|r| r.attempt = String::new(), "bytes of the attempt: 0"),
        (&|r| r.attempt = "a\nb".to_owned(), "an attempt is called by"),
        (&|r| r.pool = "../x".to_owned(), "a pool is called by"),
        (&|r| r.ranges[0].length = 0, "0 bytes from byte 256"),
        (&|r| r.ranges[0].offset = 500, "16 bytes from byte 500 on of a block of 512"),
        (&|r| r.ranges[0].offset = u64::MAX, "of a block of 512 bytes"),
        (&|r| r.end = 255, "a split from 256 to 255"),
        (&|r| r.end = 273, "the ranges are not as long as the split of 17 bytes"),
        (&|r| r.end = 1 << 40, "bytes of the split"),
        (&|r| r.delimiter = vec![b'x'; 65], "bytes of the delimiter: 65"),
        (&|r| r.record_bytes_max = 3, "the longest record: 3"),
        (&|r| r.partitions = 0, "partitions: 0"),
        (&|r| r.partitions = 32_769, "partitions: 32769 is not from 1 to 32768"),
        (&|r| r.patience_ms = 30_001, "milliseconds of patience"),
    ];
    for (change, told) in cases {
        let sentence = refused(change);
        assert!(sentence.contains(told), "{sentence}, not {told}");
    }
    let told = |at: usize, byte: u8| {
        let mut bytes = MAP_BYTES.to_vec();
        bytes[at] = byte;
        let (head, body) = bytes.split_first_chunk().expect("a head");
        HdfsRequest::head(*head)
            .and_then(|h| HdfsRequest::decode(h, body))
            .expect_err("bad")
            .to_string()
    };
    assert_eq!(told(3, b'X'), "a request begins with MGHN, not with MGHX");
    assert_eq!(told(5, 4), "a request of version 4; this process speaks versions 1 to 3");
    assert_eq!(told(7, 5), "there are no requests of kind 5");
    assert_eq!(told(8, 1), "a request's body has at most 5242880 bytes, not 16777341");
    assert_eq!(told(23, 9), "there is no kind 9 of SSDlets");
    let last = MAP_BYTES.len() - 12;
    assert_eq!(told(last - 6, 2), "there is no partitioner 2");
    assert_eq!(told(last - 1, 1), "there is no codec 1");
    for len in 0..MAP_BYTES.len() - HEAD_BYTES {
        let head = RequestHead { version: 1, kind: MAP, body_bytes: len };
        HdfsRequest::decode(head, &MAP_BYTES[HEAD_BYTES..][..len]).expect_err("it was cut");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(
        kind in 1_u16..=STATE,
        version in FIRST..=VERSION,
        body in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut likely = MAP_BYTES[HEAD_BYTES..].to_vec();
        for (at, byte) in changes {
            let at = at.index(likely.len());
            likely[at] = byte;
        }
        for body in [&body, &likely] {
            let head = RequestHead { version, kind, body_bytes: body.len() };
            if let Ok(request) = HdfsRequest::decode(head, body) {
                prop_assert_eq!(decode(&request.encode().expect("it was short")), Ok(request));
            }
            let _ = MapFrame::decode(body);
        }
    }
}

//! The door: samples of every format, every field made wrong in turn, options, any bytes.

use proptest::prelude::*;

use super::parsed::request;
use super::*;
use crate::request::RequestKind::{self, Flush, Read, Trim, Write};
use crate::request::{CONTENT_PAGES_MAX, DeviceRequest, RequestHashes};

const MD5: &str = "531e779b0f0e1b3e6c1f2a9d8c7b6a5f";
const HASH: u128 = 0x531e_779b_0f0e_1b3e_6c1f_2a9d_8c7b_6a5f;

type Plain = (u64, RequestKind, u64, u64, Option<RequestHashes>);

fn plain(request: &DeviceRequest) -> Plain {
    (request.arrival.0, request.kind, request.offset, request.len, request.content.clone())
}

fn read_all(text: &str, options: &TraceOptions) -> Result<Vec<Plain>, TraceError> {
    read(text.as_bytes(), options)?.map(|request| Ok(plain(&request?))).collect()
}

fn refusal(text: &str, options: &TraceOptions) -> String {
    read_all(text, options).expect_err(text).to_string()
}

fn of_format(format: TraceFormat) -> TraceOptions {
    TraceOptions { format: Some(format), ..TraceOptions::default() }
}

/// A short trace of each format, and its requests.
fn samples() -> Vec<(TraceFormat, String, Vec<Plain>)> {
    let lines = |lines: &[&str]| lines.join("\n") + "\n";
    vec![
        (
            TraceFormat::Merganser,
            lines(&[
                HEADER,
                "0 R 1048576 65536",
                "# a comment",
                &format!("250000 W 0 4096 {MD5}"),
                &format!("250500 W 8192 8193 {MD5},0,ff"),
                "251000 T 8192 100 +17",
                "300000 F 0 0",
            ]),
            vec![
                (0, Read, 1 << 20, 65_536, None),
                (250_000, Write, 0, 4096, Some(HASH.into())),
                (250_500, Write, 8192, 8193, Some(RequestHashes::Pages([HASH, 0, 255].into()))),
                (251_000, Trim, 8192, 100, None),
                (300_000, Flush, 0, 0, None),
            ],
        ),
        (
            TraceFormat::DiskSim,
            lines(&["0.000000 0 2048 8 1", "6.135000 0 303567 512 0", "6.2 0 7 1 0x9"]),
            vec![
                (0, Read, 2048 * 512, 4096, None),
                (6_135_000, Write, 303_567 * 512, 262_144, None),
                (6_200_000, Read, 7 * 512, 512, None),
            ],
        ),
        (
            TraceFormat::Spc,
            lines(&[
                "0,20941264,8192,W,0.551706",
                "0,20939840,8192,w,0.554041",
                "0,3436288,15872,r,1.011732",
            ]),
            vec![
                (551_706_000, Write, 20_941_264 * 512, 8192, None),
                (554_041_000, Write, 20_939_840 * 512, 8192, None),
                (1_011_732_000, Read, 3_436_288 * 512, 15_872, None),
            ],
        ),
        (
            TraceFormat::Msr,
            lines(&[
                "128166372003061629,hm,1,Read,383496192,32768,413",
                "128166372016382155,hm,1,Write,310983168,4096,8026",
            ]),
            vec![
                (0, Read, 383_496_192, 32_768, None),
                (1_332_052_600, Write, 310_983_168, 4096, None),
            ],
        ),
        (
            TraceFormat::Mqsim,
            lines(&["0 0 0 8 1", "1205 0 240 64 0"]),
            vec![(0, Read, 0, 4096, None), (1205, Write, 240 * 512, 32_768, None)],
        ),
        (
            TraceFormat::Blkparse,
            lines(&[
                "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]",
                "  8,0    3        2     0.000001829   697  P   R [kjournald]",
                "  8,0    3        3     0.000002197   697  Q   W 223490 + 8 [kjournald]",
                "  8,0    3       11     0.009507758   697  D   W 223490 + 56 [kjournald]",
                "  8,0    3        4     0.009600000   697  m   N cfq697S / alloced",
                "  8,0    1        5     0.010000000   702  D   R 16 + 8 [a b]",
                "  8,0    1        6     0.011000000     0  C   W 223490 + 56 [0]",
                "  8,0    1        7     0.012000000   702  D  FF [b]",
                "  8,0    1        8     0.013000000   702  D FWS 0 + 0 [b]",
                "  8,0    1        9     0.014000000   702  D  DS 1024 + 2048 [b]",
                "  8,0    1       10     0.015000000   702  D   N 36 (12 00 00 00 24 00 ..) [smartd]",
                "",
                "CPU0 (8,0):",
                " Reads Queued:           0,        0KiB\t Writes Queued:           3,       12KiB",
                "Total (8,0):",
            ]),
            vec![
                (9_507_758, Write, 223_490 * 512, 28_672, None),
                (10_000_000, Read, 8192, 4096, None),
                (12_000_000, Flush, 0, 0, None),
                (13_000_000, Flush, 0, 0, None),
                (14_000_000, Trim, 524_288, 1 << 20, None),
            ],
        ),
        (
            TraceFormat::Fiu,
            lines(&[
                &format!("89967400249 4892 syslogd 904265560 8 W 6 0 {MD5}"),
                &format!("89967405249 4892 a name 16 8 R 6 0 {MD5}"),
            ]),
            vec![
                (0, Write, 904_265_560 * 512, 4096, Some(HASH.into())),
                (5000, Read, 8192, 4096, Some(HASH.into())),
            ],
        ),
    ]
}

#[test]
fn every_format_is_read_and_recognised() {
    for (format, text, expected) in samples() {
        assert_eq!(read_all(&text, &of_format(format)).expect(&text), expected, "{format:?}");
        // Times in whole nanoseconds or milliseconds: five numbers tell nothing.
        if format == TraceFormat::Mqsim {
            let error = refusal(&text, &TraceOptions::default());
            let expected =
                "the format is not clear from line 1, '0 0 0 8 1': name one of disksim, mqsim";
            assert_eq!(error, expected);
            continue;
        }
        let mut trace = read(text.as_bytes(), &TraceOptions::default()).expect("recognised");
        assert_eq!(trace.format(), format);
        assert_eq!(trace.by_ref().count(), expected.len());
        assert_eq!(trace.tally().requests, expected.len() as u64);
    }
    let error = refusal("\n\nhello there\n", &TraceOptions::default());
    assert!(error.starts_with("the format is not clear from line 3, 'hello there': it is of none of merganser, disksim"), "{error}");
    let error = refusal("", &TraceOptions::default());
    assert!(error.ends_with("there is no request"), "{error}");
    assert!(read_all("", &of_format(TraceFormat::Spc)).expect("nothing is no error").is_empty());
}

#[test]
fn every_field_that_is_wrong_is_named_with_line_and_column() {
    // A good line, then one with a field of it replaced: format, field, replacement, what is said.
    let md5_short = &MD5[1..];
    let table: &[(TraceFormat, usize, &str, &str)] = &[
        (
            TraceFormat::Merganser,
            0,
            "1.5",
            "column 1: found '1.5', expected an arrival time in nanoseconds",
        ),
        (TraceFormat::Merganser, 1, "r", "found 'r', expected R, W, T or F"),
        (TraceFormat::Merganser, 2, "-8", "found '-8', expected an offset in bytes"),
        (TraceFormat::Merganser, 3, "0", "found '0', expected at least one byte"),
        (TraceFormat::Merganser, 4, "+", "found '+', expected a time in nanoseconds after the +"),
        (
            TraceFormat::Merganser,
            4,
            "xyz",
            "found 'xyz', expected hashes of at most 32 hexadecimal digits each",
        ),
        (
            TraceFormat::Merganser,
            4,
            "1,2",
            "found '1,2', expected one hash for a request of 8 bytes",
        ),
        (
            TraceFormat::DiskSim,
            0,
            "x",
            "column 1: found 'x', expected an arrival time in milliseconds",
        ),
        (TraceFormat::DiskSim, 1, "a", "found 'a', expected a device number"),
        (TraceFormat::DiskSim, 2, "99999999999999999999", "expected a block number"),
        (TraceFormat::DiskSim, 2, "18446744073709551615", "expected an address below 2^64 bytes"),
        (TraceFormat::DiskSim, 3, "0", "found '0', expected at least one block"),
        (TraceFormat::DiskSim, 4, "zz", "found 'zz', expected flags in hexadecimal, 1 for a read"),
        (TraceFormat::Spc, 0, "", "column 1: found nothing, expected the number of a storage unit"),
        (TraceFormat::Spc, 1, "1e3", "found '1e3', expected a block number"),
        (TraceFormat::Spc, 2, "0", "found '0', expected at least one byte"),
        (TraceFormat::Spc, 3, "x", "found 'x', expected R or W"),
        (TraceFormat::Spc, 4, "now", "found 'now', expected a time in seconds"),
        (
            TraceFormat::Msr,
            0,
            "12",
            "column 1: found '12', expected a Windows file time after 1970",
        ),
        (TraceFormat::Msr, 1, "", "found nothing, expected a host's name"),
        (TraceFormat::Msr, 2, "c", "found 'c', expected a disk number"),
        (TraceFormat::Msr, 3, "Erase", "found 'Erase', expected Read or Write"),
        (TraceFormat::Msr, 4, "4k", "found '4k', expected an offset in bytes"),
        (TraceFormat::Msr, 5, "0", "found '0', expected at least one byte"),
        (TraceFormat::Msr, 6, "fast", "found 'fast', expected a response time in steps of 100 ns"),
        (
            TraceFormat::Mqsim,
            0,
            "0.5",
            "column 1: found '0.5', expected an arrival time in nanoseconds",
        ),
        (TraceFormat::Mqsim, 1, "sda", "found 'sda', expected a device number"),
        (TraceFormat::Mqsim, 2, "", "found the line's end, expected five fields"),
        (TraceFormat::Mqsim, 3, "0", "found '0', expected at least one sector"),
        (TraceFormat::Mqsim, 4, "2", "found '2', expected 0 for a write or 1 for a read"),
        (
            TraceFormat::Blkparse,
            0,
            "sda",
            "column 1: found 'sda', expected a device as major,minor",
        ),
        (
            TraceFormat::Blkparse,
            0,
            "8,x",
            "column 1: found '8,x', expected a device as major,minor",
        ),
        (TraceFormat::Blkparse, 1, "x", "found 'x', expected the number of a processor"),
        (TraceFormat::Blkparse, 2, "x", "found 'x', expected a sequence number"),
        (TraceFormat::Blkparse, 3, "x", "found 'x', expected a time in seconds"),
        (TraceFormat::Blkparse, 4, "x", "found 'x', expected a process id"),
        (TraceFormat::Blkparse, 5, "Z", "found 'Z', expected an event's letter"),
        (TraceFormat::Blkparse, 6, "?", "found '?', expected RWBS"),
        (TraceFormat::Blkparse, 7, "x", "found 'x', expected a sector number"),
        (TraceFormat::Blkparse, 9, "x", "found 'x', expected a number of sectors"),
        (TraceFormat::Blkparse, 9, "0", "found '0', expected at least one sector"),
        (TraceFormat::Fiu, 0, "x", "column 1: found 'x', expected a time in nanoseconds"),
        (TraceFormat::Fiu, 1, "x", "found 'x', expected a process id"),
        (TraceFormat::Fiu, 3, "x", "found 'x', expected a sector number"),
        (TraceFormat::Fiu, 4, "0", "found '0', expected at least one sector"),
        (TraceFormat::Fiu, 5, "RW", "found 'RW', expected R or W"),
        (TraceFormat::Fiu, 6, "x", "found 'x', expected a major device number"),
        (TraceFormat::Fiu, 7, "x", "found 'x', expected a minor device number"),
        (TraceFormat::Fiu, 8, md5_short, "expected an MD5 in 32 hexadecimal digits"),
    ];
    for (format, field, wrong, expected) in table {
        let (good, separator) = match format {
            TraceFormat::Merganser => (format!("7 R 0 8 {MD5}"), " "),
            TraceFormat::DiskSim => ("7.0 0 16 8 1".into(), " "),
            TraceFormat::Spc => ("0,16,8,R,7.0".into(), ","),
            TraceFormat::Msr => ("128166372003061629,hm,1,Read,0,8,413".into(), ","),
            TraceFormat::Mqsim => ("7 0 16 8 1".into(), " "),
            TraceFormat::Blkparse => ("8,0 3 11 7.0 697 D W 16 + 8 [a]".into(), " "),
            TraceFormat::Fiu => (format!("7 4892 syslogd 16 8 W 6 0 {MD5}"), " "),
        };
        let mut fields: Vec<&str> = good.split(separator).collect();
        let column = fields[..*field].iter().map(|field| field.len() + 1).sum::<usize>() + 1;
        fields[*field] = wrong;
        let bad = fields.join(separator);
        let header =
            if *format == TraceFormat::Merganser { format!("{HEADER}\n") } else { String::new() };
        let text = format!("{header}{good}\n{bad}\n");
        let mut trace = read(text.as_bytes(), &of_format(*format)).expect("a format");
        assert!(trace.next().is_some_and(|request| request.is_ok()), "{format:?}: {good}");
        let error = trace.next().expect("an error").expect_err(&bad).to_string();
        let line = if header.is_empty() { 2 } else { 3 };
        assert!(error.starts_with(&format!("line {line}, column ")), "{error}");
        assert!(error.contains(expected), "{format:?}: {error}");
        if !error.contains("line's end") {
            assert!(error.contains(&format!("column {column}:")), "{format:?} {bad}: {error}");
        }
        assert!(trace.next().is_none(), "an error ends the trace");
    }
}

#[test]
fn too_few_and_too_many_fields_are_named() {
    let end = |text, format| refusal(text, &of_format(format));
    assert_eq!(
        end("1.0 0 16 8", TraceFormat::DiskSim),
        "line 1, column 11: found the line's end, expected five fields: ms, device, block, blocks, flags"
    );
    let error = end("1.0 0 16 8 1 9", TraceFormat::DiskSim);
    assert!(error.starts_with("line 1, column 14: found '9', expected the line's end"), "{error}");
    assert!(end("0,16,8,R", TraceFormat::Spc).contains("column 9: found the line's end"));
    assert!(end("1 2 3", TraceFormat::Fiu).contains("nine fields"));
    assert!(end("8,0 3 11 7.0 697", TraceFormat::Blkparse).contains("seven fields"));
    assert!(end("8,0 3 11 7.0 697 D W 16 +", TraceFormat::Blkparse).contains("sector + sectors"));
    assert!(end("0 R 0 8", TraceFormat::Merganser).contains("expected '# merganser trace 1'"));
    let spc = read_all("0,16,8,R,7.0,a,b", &of_format(TraceFormat::Spc));
    assert_eq!(spc.expect("a producer's own fields").len(), 1);
}

#[test]
fn a_second_unit_is_refused_chosen_or_placed() {
    let text = "0,0,512,R,0\n1,1,512,R,1\n0,2,512,R,2\n";
    let with = |disks| TraceOptions { disks, ..of_format(TraceFormat::Spc) };
    let error = refusal(text, &with(Disks::Single));
    let expected = "line 2, column 1: found 'unit 1', expected unit 0 alone (choose one, or how to place them)";
    assert_eq!(error, expected);
    let offsets = |disks| {
        let requests = read_all(text, &with(disks)).expect("placed");
        requests.iter().map(|request| request.2).collect::<Vec<_>>()
    };
    assert_eq!(offsets(Disks::Only(TraceDisk::plain(1))), [512]);
    assert_eq!(offsets(Disks::Together), [0, 512, 1024]);
    assert_eq!(offsets(Disks::Apart(1 << 20)), [0, (1 << 20) + 512, 1024]);
    let error = refusal(text, &with(Disks::Apart(1024)));
    assert!(error.contains("line 3, column 1: found '512 bytes at byte 1024', expected requests within a unit's 1024 bytes"), "{error}");
    let mut trace = read(text.as_bytes(), &with(Disks::Only(TraceDisk::plain(1)))).expect("opened");
    assert_eq!(trace.by_ref().count(), 1);
    assert_eq!((trace.tally().requests, trace.tally().other_disks), (1, 2));
}

#[test]
fn times_and_addresses_are_scaled_and_bounded() {
    let text = "1.0 0 10 2 1\n3.0 0 100 2 1\n2.0 0 50 2 1\n";
    let all = |change: &dyn Fn(&mut TraceOptions)| {
        let mut options = of_format(TraceFormat::DiskSim);
        change(&mut options);
        let mut trace = read(text.as_bytes(), &options).expect("opened");
        let requests: Vec<_> = trace
            .by_ref()
            .map(|r| r.map(|r| (r.arrival.0, r.offset)).map_err(|e| e.to_string()))
            .collect();
        (requests, trace.tally())
    };
    let (requests, tally) = all(&|_| ());
    assert_eq!(requests[2], Ok((3_000_000, 50 * 512)), "not before the one before it");
    assert_eq!(tally.late, 1);
    let (requests, _) = all(&|options| options.time_scale = 0.5);
    assert_eq!(requests[1], Ok((1_500_000, 51_200)));
    let (requests, _) = all(&|options| options.address = AddressConversion::Scaled(0.1));
    assert_eq!(requests[1], Ok((3_000_000, 5120)));
    let (requests, tally) = all(&|options| options.address = AddressConversion::Wrapped(20 * 512));
    assert_eq!(requests[1], Ok((3_000_000, 100 % 19 * 512)));
    assert_eq!(tally.wrapped, 2);
    let (requests, _) = all(&|options| options.limit_bytes = Some(101 * 512));
    let error = requests[1].clone().expect_err("beyond");
    assert_eq!(
        error,
        "line 2, column 1: found '1024 bytes at byte 51200', expected requests within 51712 bytes (scale or wrap addresses)"
    );
    let (requests, _) = all(&|options| options.address = AddressConversion::Wrapped(512));
    assert!(requests[0].clone().expect_err("no room").ends_with("expected at most 512 bytes"));
}

#[test]
fn a_repeated_trace_goes_on_where_it_ended() {
    let text = "0.0 0 0 1 1\n2.0 0 1 1 1\n4.0 0 2 1 1\n";
    let options = of_format(TraceFormat::DiskSim);
    let mut repeat = Repeat::new(3, || read(text.as_bytes(), &options));
    let times: Result<Vec<_>, _> =
        repeat.by_ref().map(|r| r.map(|r| r.arrival.0 / 1_000_000)).collect();
    assert_eq!(times.expect("read"), [0, 2, 4, 6, 8, 10, 12, 14, 16]);
    let mut empty = Repeat::new(u64::MAX, || read("".as_bytes(), &options));
    assert!(empty.next().is_none());
    let mut broken = Repeat::new(3, || read("x".as_bytes(), &options));
    assert!(broken.next().is_some_and(|r| r.is_err()) && broken.next().is_none());
}

#[test]
fn queued_events_are_taken_instead_where_asked() {
    let (_, text, _) = samples().remove(5);
    let options = TraceOptions { event: BlkparseEvent::Queued, ..of_format(TraceFormat::Blkparse) };
    let requests = read_all(&text, &options).expect("read");
    assert_eq!(requests, [(2197, Write, 223_490 * 512, 4096, None)]);
}

/// A trace that has lines has requests, or says why not.
#[test]
fn a_trace_without_a_request_is_an_error_that_says_why() {
    let queued = "  8,0 1 1 0.0 4162 Q R 1024 + 8 [dd]\n  8,0 1 5 0.001 4162 Q W 2048 + 16 [dd]\n";
    let issued = queued.replace(" Q ", " D ");
    let completed = queued.replace(" Q ", " C ");
    let why = |text: &str, options: &TraceOptions| match read_all(text, options) {
        Err(TraceError::NoRequest { lines: 2, why }) => why,
        other => panic!("{other:?}"),
    };
    let of_blkparse = of_format(TraceFormat::Blkparse);
    for options in [&TraceOptions::default(), &of_blkparse] {
        assert_eq!(why(queued, options), NoRequest::OtherEvent { event: BlkparseEvent::Queued });
        assert_eq!(why(&completed, options), NoRequest::OtherLines);
    }
    let of_queued =
        TraceOptions { event: BlkparseEvent::Queued, ..of_format(TraceFormat::Blkparse) };
    assert_eq!(why(&issued, &of_queued), NoRequest::OtherEvent { event: BlkparseEvent::Issued });
    assert_eq!(read_all(queued, &of_queued).expect("requests").len(), 2);
    let bad = TraceOptions { skip_bad: 9, ..of_format(TraceFormat::Spc) };
    assert_eq!(why("x\ny\n", &bad), NoRequest::BadLines);
    assert!(read_all("", &of_blkparse).expect("empty").is_empty());
    assert!(read_all("\n\n", &of_blkparse).expect("blank").is_empty());
}

fn any_request() -> impl Strategy<Value = Plain> {
    let kinds = prop::sample::select(vec![Read, Write, Trim]);
    let whole = (1..1_u64 << 40, any::<Option<u128>>())
        .prop_map(|(len, hash)| (len, hash.map(RequestHashes::Whole)));
    let pages =
        (prop::collection::vec(any::<u128>(), 2..20), 0..4096_u64).prop_map(|(all, less)| {
            (all.len() as u64 * 4096 - less, Some(RequestHashes::Pages(all.into())))
        });
    let content = prop_oneof![whole, pages];
    (0..u64::MAX / 8, kinds, 0..u64::MAX / 2, content)
        .prop_map(|(at, kind, offset, (len, content))| (at, kind, offset, len, content))
}

/// docs/formats.md shows these bytes.
#[test]
fn our_format_is_pinned() {
    let golden = include_str!("../../tests/golden/trace.txt");
    let requests = read_all(golden, &TraceOptions::default()).expect("ours");
    let mut writer = TraceWriter::new(Vec::new()).expect("memory");
    writer.comment("a word count").expect("memory");
    for (number, (at, kind, offset, len, content)) in requests.into_iter().enumerate() {
        let request = request(at, kind, offset, len, content);
        match number {
            3 => writer.write_timed(&request, 41_000).expect("memory"),
            _ => writer.write(&request).expect("memory"),
        }
    }
    assert_eq!(String::from_utf8(writer.finish().expect("memory")).expect("text"), golden);
    let wrong = format!("{HEADER}\n0 W 0 12288 1,2\n");
    let said = "line 2, column 13: found '1,2', expected one hash, or 3, one for each 4096 bytes";
    assert_eq!(refusal(&wrong, &TraceOptions::default()), said);
}

/// The longest list of hashes is in a line that is read.
#[test]
fn the_longest_list_of_hashes_is_read() {
    let pages = CONTENT_PAGES_MAX;
    let hashes: Vec<u128> = (0..u128::from(pages)).map(|number| u128::MAX - number).collect();
    let of = |len| {
        request(
            u64::MAX,
            Write,
            u64::MAX / 2,
            len,
            Some(RequestHashes::Pages(hashes.clone().into())),
        )
    };
    let mut writer = TraceWriter::new(Vec::new()).expect("memory");
    writer.write_timed(&of(pages * 4096), u64::MAX).expect("memory");
    writer.write(&of((pages + 1) * 4096)).expect("memory");
    let text = String::from_utf8(writer.finish().expect("memory")).expect("text");
    let mut trace = read(text.as_bytes(), &TraceOptions::default()).expect("ours");
    assert_eq!(trace.next().expect("one").expect("read"), of(pages * 4096));
    let said = trace.next().expect("one").expect_err("too many").to_string();
    assert!(said.ends_with("expected one hash for a request of 67112960 bytes"), "{said}");
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(mut requests in prop::collection::vec(any_request(), 0..50)) {
        requests.sort_by_key(|request| request.0);
        let mut writer = TraceWriter::new(Vec::new()).expect("memory");
        writer.comment("any\ntext").expect("memory");
        for (at, kind, offset, len, content) in &requests {
            let content = content.clone();
            writer.write(&request(*at, *kind, *offset, *len, content)).expect("memory");
        }
        let bytes = writer.finish().expect("memory");
        let text = String::from_utf8(bytes).expect("text");
        prop_assert_eq!(read_all(&text, &TraceOptions::default()).expect("ours"), requests);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\n]{0,300}", scale in 0.0..4.0_f64, limit in 0..u64::MAX) {
        for format in TraceFormat::ALL {
            let address = AddressConversion::Wrapped(limit);
            let options = TraceOptions { time_scale: scale, address, limit_bytes: Some(limit), ..of_format(format) };
            for request in read(text.as_bytes(), &options).expect("a format was given").flatten() {
                prop_assert!(request.offset + request.len <= limit);
            }
        }
    }
}

#[test]
fn bad_lines_are_skipped_and_counted_as_far_as_allowed() {
    // No bytes, no number, an address beyond the device at a time that is far ahead.
    let text = "0 R 0 4096\n5 R 4096 0\nx R 0 4096\n900000 R 99999999 4096\n10 W 4096 512\n";
    let text = format!("{HEADER}\n{text}");
    let with = |skip_bad| {
        let limit_bytes = Some(1 << 20);
        let options = TraceOptions { skip_bad, limit_bytes, ..of_format(TraceFormat::Merganser) };
        let mut trace = read(text.as_bytes(), &options).expect("a trace");
        let requests: Vec<_> = trace.by_ref().collect();
        (requests, trace.tally())
    };
    let (requests, tally) = with(3);
    let requests: Vec<_> = requests.into_iter().map(|request| request.expect("fine")).collect();
    let seen: Vec<_> = requests.iter().map(|r| (r.arrival.0, r.offset, r.len)).collect();
    assert_eq!(seen, [(0, 0, 4096), (10, 4096, 512)]);
    assert_eq!((tally.requests, tally.bad_lines, tally.late), (2, 3, 0));
    for (allowed, line) in [(0, "line 3,"), (1, "line 4,"), (2, "line 5,")] {
        let (requests, tally) = with(allowed);
        let error = requests.last().expect("one").as_ref().expect_err("a bad line").to_string();
        assert!(error.starts_with(line), "{allowed}: {error}");
        assert_eq!((requests.len(), tally.bad_lines), (2, allowed));
    }
}

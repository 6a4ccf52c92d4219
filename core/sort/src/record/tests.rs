use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const CSV: Format = Format::csv_rows(b',', false);
const LINES: Format = Format::Lines { delimiter: b'\n' };

/// Record ends found one record after the other.
fn walk(format: Format, bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(len) = format.record_len(&bytes[at..]) {
        at += len;
        ends.push(at);
    }
    ends
}

/// Every cut is a record end, the last cut is the last end, and no piece is longer than the wanted
/// size by more than a record.
fn check_cut(format: Format, bytes: &[u8], piece: usize) {
    let ends = walk(format, bytes);
    let mut cuts = Vec::new();
    format.cut(bytes, piece, &mut cuts);
    assert_eq!(cuts.last(), ends.last(), "{format:?} {bytes:?} by {piece}: {cuts:?} of {ends:?}");
    assert!(cuts.is_sorted_by(|a, b| a < b), "{cuts:?}");
    let mut from = 0;
    for &cut in &cuts {
        let inside = ends.iter().filter(|&&end| from + piece <= end && end < cut).count();
        assert!(ends.binary_search(&cut).is_ok(), "{format:?} {bytes:?}: {cut} not in {ends:?}");
        assert!(inside <= 1, "{format:?} {bytes:?} by {piece}: {from}..{cut} could be cut before");
        from = cut;
    }
}

#[test]
fn lines_end_with_their_delimiter() {
    assert_eq!(walk(LINES, b"a\n\nbc\nd"), [2, 3, 6]);
    assert_eq!(walk(Format::Lines { delimiter: 0 }, b"a\n\0\0b"), [3, 4]);
    assert_eq!(LINES.tail(b"d"), Tail::Complete(b"\n"));
}

#[test]
fn csv_rows_end_outside_quotes() {
    assert_eq!(walk(CSV, b"a,b\r\n\"x\ny\",z\n\"say \"\"hi\"\"\n\"\n"), [5, 13, 27]);
    assert_eq!(walk(CSV, b"\"open\n\n"), [0_usize; 0]);
    let tail = |bytes: &[u8]| InputRecords::of_input(CSV).tail(bytes);
    assert_eq!(tail(b"a,\"b\n\""), Tail::Complete(b"\n"));
    assert_eq!(tail(b"a,3.5\""), Tail::Complete(b"\n"));
    assert!(matches!(tail(b"a,\"b\n"), Tail::Damaged(_)));
}

#[test]
fn fixed_records_know_their_length() {
    let format = Format::Fixed { bytes: 3 };
    assert_eq!(walk(format, b"aaabbbcc"), [3, 6]);
    assert!(matches!(format.tail(b"cc"), Tail::Damaged(_)));
    let mut cuts = Vec::new();
    format.cut(b"aaabbbcccdddee", 7, &mut cuts);
    assert_eq!(cuts, [6, 12]);
}

#[test]
fn keyed_records_carry_their_lengths() {
    let record = b"\x02\0\0\0\x01\0\0\0kkv";
    assert_eq!(Format::Keyed.record_len(record), Some(11));
    assert_eq!(key_of(record), b"kk");
    for len in 0..record.len() {
        assert_eq!(Format::Keyed.record_len(&record[..len]), None, "{len}");
    }
    assert_eq!(Format::Keyed.record_len(&[0xff; 64]), None);
    assert!(matches!(Format::Keyed.tail(&[0]), Tail::Damaged(_)));
}

#[test]
fn every_tiny_buffer_is_cut_at_record_ends() {
    let mut bytes = Vec::new();
    for len in 0..=7_u32 {
        for code in 0..3_usize.pow(len) {
            bytes.clear();
            bytes.extend((0..len).map(|i| b"\n\"a"[code / 3_usize.pow(i) % 3]));
            for piece in 0..=len as usize + 1 {
                for format in [CSV, LINES, Format::Fixed { bytes: 2 }] {
                    check_cut(format, &bytes, piece);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn random_buffers_are_cut_at_record_ends(
        bytes in prop::collection::vec(select(b"\n\"ab,\0".to_vec()), 0..400),
        piece in 0..120_usize,
        size in 1..20_usize,
    ) {
        for format in [CSV, LINES, Format::Lines { delimiter: 0 }, Format::Fixed { bytes: size }] {
            check_cut(format, &bytes, piece);
        }
    }

    #[test]
    fn keyed_records_are_cut_at_record_ends(
        sizes in prop::collection::vec((0..40_u32, 0..40_u32), 0..30),
        spare in 0..8_usize,
        piece in 0..200_usize,
    ) {
        let mut bytes = Vec::new();
        for &(key, value) in &sizes {
            bytes.extend(key.to_le_bytes());
            bytes.extend(value.to_le_bytes());
            bytes.resize(bytes.len() + (key + value) as usize, 0xaa);
        }
        let whole = bytes.len();
        bytes.resize(whole + spare, 0xff);
        check_cut(Format::Keyed, &bytes, piece);
        prop_assert_eq!(walk(Format::Keyed, &bytes).last().copied().unwrap_or(0), whole);
    }
}

mod sequences {
    use super::*;

    fn fed(kind: SequenceKind, bytes: &[u8], piece: usize) -> Result<Fed, SequenceFault> {
        let (mut borders, mut starts) = (SequenceBorders::new(kind), Vec::new());
        bytes.chunks(piece).try_for_each(|piece| borders.feed(piece, &mut starts))?;
        Ok((starts, borders.finish()))
    }

    type Fed = (Vec<u64>, SequenceEnd);

    /// As the module's page says it, line by line: where records begin and how the last one ends, or the
    /// place of a line that belongs to none.
    fn naive(kind: SequenceKind, bytes: &[u8]) -> Result<Fed, u64> {
        let (mut starts, mut at) = (Vec::new(), 0);
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let letters = |line: &[u8]| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            line.strip_suffix(b"\r").unwrap_or(line).len()
        };
        let mut lines = lines.into_iter().peekable();
        let mut complete = true;
        if kind == SequenceKind::Fasta {
            for (number, line) in lines.enumerate() {
                match line[0] {
                    b'>' => starts.push(at),
                    _ if number == 0 => return Err(0),
                    _ => {}
                }
                at += line.len() as u64;
            }
        } else {
            while let Some(header) = lines.next() {
                if letters(header) == 0 && !starts.is_empty() && header[0] != b'@' {
                    at += header.len() as u64;
                    continue;
                }
                if header[0] != b'@' {
                    return Err(at);
                }
                starts.push(at);
                at += header.len() as u64;
                let mut sequence = 0;
                while let Some(line) = lines.next_if(|line| line[0] != b'+') {
                    if line[0] == b'@' {
                        return Err(at);
                    }
                    sequence += letters(line);
                    at += line.len() as u64;
                }
                let Some(plus) = lines.next() else {
                    complete = false;
                    break;
                };
                at += plus.len() as u64;
                let mut left = sequence;
                while left > 0 {
                    let Some(line) = lines.next() else { break };
                    if letters(line) > left {
                        return Err(at);
                    }
                    left -= letters(line);
                    at += line.len() as u64;
                }
                complete = left == 0;
            }
        }
        let newline = bytes.last().is_none_or(|last| *last == b'\n');
        Ok(match (complete, newline) {
            (true, true) => (starts, SequenceEnd::Whole),
            (true, false) => (starts, SequenceEnd::NoNewline),
            (false, _) => (starts, SequenceEnd::Cut("")),
        })
    }

    /// The borders are those of the naive model, however the bytes come; and cutting, framing, fault and
    /// tail agree with them.
    fn check(bytes: &[u8], pieces: &[usize]) {
        for (kind, format) in
            [(SequenceKind::Fasta, Format::Fasta), (SequenceKind::Fastq, Format::Fastq)]
        {
            // Blank lines before the first record belong to none.
            let blanks = bytes.iter().take_while(|byte| b"\n\r".contains(byte)).count();
            let (all, bytes) = (bytes, &bytes[blanks..]);
            assert_eq!(format.leading_blanks(all), blanks);
            let expected = naive(kind, bytes);
            let behind = |at: u64| at + blanks as u64;
            for piece in pieces {
                let told = match fed(kind, all, *piece) {
                    Ok((starts, SequenceEnd::Cut(_))) => Ok((starts, SequenceEnd::Cut(""))),
                    Ok(told) => Ok(told),
                    Err(fault) => Err(fault.at),
                };
                let expected = match expected.clone() {
                    Ok((starts, end)) => Ok((starts.into_iter().map(behind).collect(), end)),
                    Err(at) => Err(behind(at)),
                };
                assert_eq!(
                    told,
                    expected,
                    "{kind:?} {:?} by {piece}",
                    all.escape_ascii().to_string()
                );
                check_cut(format, bytes, *piece);
            }
            let ends = walk(format, bytes);
            let rest = &bytes[ends.last().copied().unwrap_or(0)..];
            match &expected {
                Err(at) => {
                    let fault = format.fault(rest).expect("there is one");
                    assert_eq!((bytes.len() - rest.len()) as u64 + fault.at, *at);
                    assert_eq!(format.first_len(rest), None);
                }
                Ok((starts, end)) => {
                    assert_eq!(format.fault(rest), None);
                    assert!(starts.iter().skip(1).copied().eq(ends.iter().map(|end| *end as u64)));
                    let whole =
                        (!bytes.is_empty() && *end == SequenceEnd::Whole).then_some(rest.len());
                    match kind {
                        SequenceKind::Fastq => assert_eq!(format.first_len(rest), whole),
                        // Any lines are a record.
                        SequenceKind::Fasta => {
                            let all = (!rest.is_empty()).then_some(rest.len());
                            assert_eq!(format.first_len(rest), all);
                        }
                    }
                    match (format.tail(rest), end) {
                        (Tail::Whole, SequenceEnd::Whole)
                        | (Tail::Complete(b"\n"), SequenceEnd::NoNewline)
                        | (Tail::Damaged(_), SequenceEnd::Cut(_)) => {}
                        other => panic!("{other:?} of {:?}", bytes.escape_ascii().to_string()),
                    }
                    if *end == SequenceEnd::Whole {
                        let mut cuts = Vec::new();
                        format.cut_whole(bytes, 1, &mut cuts);
                        assert_eq!(cuts.last().copied().unwrap_or(0), bytes.len());
                        assert_eq!(cuts.len(), starts.len());
                    }
                }
            }
        }
    }

    #[test]
    fn fasta_records_begin_with_their_marks() {
        let text = b">a one > two\nAC\n\nGT\n>b\n>c\r\nA>\r\nC\r\n";
        assert_eq!(walk(Format::Fasta, text), [20, 23]);
        assert_eq!(Format::Fasta.first_len(&text[23..]), Some(11));
        assert_eq!(Format::Fasta.tail(b">c\nA"), Tail::Complete(b"\n"));
        assert_eq!(Format::Fasta.tail(b">c\nA\n"), Tail::Whole);
        assert_eq!(Format::Fasta.fault(b"A\n>b\n").expect("no mark").at, 0);
        assert_eq!(Format::Fasta.record_len(b"A\n>b\n"), None);
    }

    #[test]
    fn fastq_records_have_as_many_qualities_as_letters() {
        let text = b"@a x\nACG\nT\n+a\n@II\n+\n@b\n\n+\n\n@c\r\nA\r\n+\r\n@\r\n";
        assert_eq!(walk(Format::Fastq, text), [20, 27]);
        assert_eq!(Format::Fastq.first_len(&text[27..]), Some(13));
        for (tail, expected) in [
            (&b"@c\nAC\n+\n@I\n"[..], Tail::Whole),
            (b"@c\nAC\n+\n@I\n\n", Tail::Whole),
            (b"@c\nAC\n+\n@I", Tail::Complete(b"\n")),
            (b"@c\n\n+", Tail::Complete(b"\n")),
        ] {
            assert_eq!(Format::Fastq.tail(tail), expected, "{}", tail.escape_ascii());
        }
        for cut in [&b"@"[..], b"@c\nAC", b"@c\nAC\n+", b"@c\nAC\n+\n@", b"@c\nAC\n+\n@\n"] {
            assert!(matches!(Format::Fastq.tail(cut), Tail::Damaged(_)), "{}", cut.escape_ascii());
        }
        for (bytes, at) in [
            (&b"x\n"[..], 0),
            (b"@c\nAC\n@d\n", 6),
            (b"@c\nAC\n+\nIII\n", 8),
            (b"@c\nAC\n+\nII\nx", 11),
            (b"@c\nAC\n+\nIII", 8),
        ] {
            let fault = Format::Fastq.fault(bytes).expect("a fault");
            assert_eq!(fault.at, at, "{}", bytes.escape_ascii());
        }
        // A carriage return that may still turn out to end the line is not a letter too many.
        assert_eq!(Format::Fastq.fault(b"@c\nAC\n+\nII\r"), None);
    }

    #[test]
    fn every_tiny_input_has_the_borders_of_the_model() {
        let mut bytes = Vec::new();
        for len in 0..=7_u32 {
            for code in 0..6_usize.pow(len) {
                bytes.clear();
                bytes.extend((0..len).map(|i| b"\n\r@+>A"[code / 6_usize.pow(i) % 6]));
                check(&bytes, &[1, 2, 8]);
            }
        }
        // Behind a whole record there is more to find.
        for code in 0..6_usize.pow(5) {
            bytes.clear();
            bytes.extend_from_slice(b"@\nA\n+\n");
            bytes.extend((0..5).map(|i| b"\n\r@+>A"[code / 6_usize.pow(i) % 6]));
            check(&bytes, &[1, 3, 12]);
        }
    }

    proptest! {
        #[test]
        fn random_inputs_have_the_borders_of_the_model(
            lines in prop::collection::vec(
                select(vec![
                    &b"@a"[..], b">a b", b"ACGT", b"AC", b"", b"+", b"+x", b"IIII", b"@I", b"+I", b">I",
                ]),
                0..40,
            ),
            ends in prop::collection::vec(select(vec![&b"\n"[..], b"\n", b"\n", b"\r\n"]), 40),
            cut in 0..60_usize,
            piece in 1..50_usize,
        ) {
            let mut bytes: Vec<u8> =
                lines.iter().zip(&ends).flat_map(|(line, end)| [*line, *end].concat()).collect();
            check(&bytes, &[piece]);
            bytes.truncate(cut);
            check(&bytes, &[piece]);
        }

        #[test]
        fn whole_records_are_cut_apart(
            records in prop::collection::vec(
                (prop::collection::vec(select(b"@+>a \t".to_vec()), 0..6), 0..30_usize, 1..12_usize),
                1..20,
            ),
            crlf: bool,
            piece in 1..200_usize,
        ) {
            let end = if crlf { &b"\r\n"[..] } else { b"\n" };
            for format in [Format::Fasta, Format::Fastq] {
                let (mut bytes, mut ends) = (Vec::new(), Vec::new());
                for (header, letters, width) in &records {
                    let mut wrapped = |first: &[u8], letter: u8, width: usize| {
                        bytes.extend([first, end].concat());
                        for line in vec![letter; *letters].chunks(width) {
                            bytes.extend([line, end].concat());
                        }
                    };
                    if format == Format::Fasta {
                        wrapped(&[b">", &header[..]].concat(), b'A', *width);
                    } else {
                        wrapped(&[b"@", &header[..]].concat(), b'A', *width);
                        // Lines of quality that look like something else.
                        wrapped(b"+", b'@', *width + 1);
                    }
                    ends.push(bytes.len());
                }
                let mut cuts = Vec::new();
                format.cut_whole(&bytes, 1, &mut cuts);
                prop_assert_eq!(&cuts, &ends);
                check_cut(format, &bytes, piece);
            }
        }
    }

    #[test]
    fn a_begin_is_found_from_the_middle() {
        let fasta = b"CGT\n>a\nA\n>b\nC\n";
        assert_eq!(Format::Fasta.probable_start(fasta), 4);
        let fastq = b"@a\nACGT\n+\n@III\n@b\nA\n+\nI\n";
        for from in 1..15 {
            assert_eq!(Format::Fastq.probable_start(&fastq[from..]), 15 - from);
        }
        assert_eq!(Format::Fastq.probable_start(&fastq[16..]), fastq.len() - 16);
    }
}

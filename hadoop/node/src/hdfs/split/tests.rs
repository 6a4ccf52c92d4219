//! Splits against a model of Hadoop's reader that does as its sources do, buffer by buffer.

use proptest::prelude::*;

use super::*;

/// Hadoop's reader of an uncompressed split: `LineReader`, `UncompressedSplitLineReader` and
/// `LineRecordReader` of version 3.4.2 in one.
struct Model<'a> {
    /// The file from the first byte on that was not read.
    stream: &'a [u8],
    buffer: &'a [u8],
    buffer_bytes: usize,
    delimiter: Option<&'a [u8]>,
    split_bytes: usize,
    read_bytes: usize,
    is_finished: bool,
    needs_additional: bool,
}

impl<'a> Model<'a> {
    /// Reads the next buffer, which does not cross the end of the split.
    fn refill(&mut self, in_delimiter: bool) -> bool {
        let inside = self.split_bytes.saturating_sub(self.read_bytes);
        let wanted = if inside > 0 { inside.min(self.buffer_bytes) } else { self.buffer_bytes };
        let (buffer, stream) = self.stream.split_at(wanted.min(self.stream.len()));
        if self.read_bytes == self.split_bytes && in_delimiter && !buffer.is_empty() {
            self.needs_additional = self.delimiter.is_some() || buffer[0] != b'\n';
        }
        (self.buffer, self.stream) = (buffer, stream);
        self.read_bytes += buffer.len();
        !buffer.is_empty()
    }

    /// A record, cut to `content_max` bytes, and how many bytes it took. It looks at no other
    /// buffer once it has taken `size_max`.
    fn line(&mut self, content_max: usize, size_max: usize) -> (Vec<u8>, usize) {
        if self.is_finished {
            return (Vec::new(), 0);
        }
        self.is_finished = self.read_bytes > self.split_bytes;
        let Some(delimiter) = self.delimiter else {
            let (mut content, size) = self.default_line(size_max);
            content.truncate(content_max);
            return (content, size);
        };
        self.custom_line(delimiter, content_max, size_max)
    }

    fn default_line(&mut self, size_max: usize) -> (Vec<u8>, usize) {
        let (mut content, mut size, mut after_cr) = (Vec::new(), 0, false);
        loop {
            if self.buffer.is_empty() {
                size += usize::from(after_cr);
                if !self.refill(after_cr) {
                    return (content, size);
                }
            }
            while let [byte, rest @ ..] = self.buffer {
                match byte {
                    b'\n' => {
                        self.buffer = rest;
                        let cr_in_buffer = usize::from(after_cr && size == content.len());
                        return (content, size + 1 + cr_in_buffer);
                    }
                    _ if after_cr => {
                        let cr_in_buffer = usize::from(size == content.len());
                        return (content, size + cr_in_buffer);
                    }
                    b'\r' => after_cr = true,
                    _ => content.push(*byte),
                }
                self.buffer = rest;
                if !after_cr {
                    size += 1;
                }
            }
            if size >= size_max {
                return (content, size);
            }
        }
    }

    fn custom_line(
        &mut self,
        delimiter: &[u8],
        content_max: usize,
        size_max: usize,
    ) -> (Vec<u8>, usize) {
        let (mut content, mut kept, mut size) = (Vec::<u8>::new(), 0, 0);
        // Bytes of the delimiter at the end of the buffer before.
        let (mut matched, mut ambiguous) = (0, 0);
        loop {
            if self.buffer.is_empty() && !self.refill(ambiguous > 0) {
                content.extend(&delimiter[..ambiguous]);
                return (content, size + ambiguous);
            }
            let buffer = self.buffer;
            let mut at = 0_isize;
            while (at as usize) < buffer.len() {
                if buffer[at as usize] == delimiter[matched] {
                    matched += 1;
                    if matched == delimiter.len() {
                        at += 1;
                        break;
                    }
                } else if matched != 0 {
                    at = (at - matched as isize).max(-1);
                    matched = 0;
                }
                at += 1;
            }
            let taken = at as usize;
            self.buffer = &buffer[taken..];
            size += taken + ambiguous;
            let appended = taken as isize - matched as isize;
            let appended = appended.min(content_max as isize - kept);
            if appended >= 0 && ambiguous > 0 {
                content.extend(&delimiter[..ambiguous]);
                ambiguous = 0;
                self.needs_additional = false;
            }
            if appended > 0 {
                content.extend(&buffer[..appended as usize]);
                kept += appended;
            }
            if self.buffer.is_empty() && matched > 0 && matched < delimiter.len() {
                ambiguous = matched;
                size -= matched;
            }
            if matched == delimiter.len() || size >= size_max {
                return (content, size);
            }
        }
    }

    /// The records of a split of `file`.
    fn records(
        file: &'a [u8],
        (start, end): (usize, usize),
        delimiter: Option<&'a [u8]>,
        record_bytes_max: u32,
        buffer_bytes: usize,
    ) -> Vec<Vec<u8>> {
        let mut reader = Model {
            stream: &file[start..],
            buffer: &[],
            buffer_bytes,
            delimiter,
            split_bytes: end - start,
            read_bytes: 0,
            is_finished: false,
            needs_additional: false,
        };
        let max = record_bytes_max as usize;
        let size_max = |pos: usize| end.saturating_sub(pos).max(max);
        let mut pos = start;
        if start != 0 {
            pos += reader.line(0, size_max(start)).1;
        }
        let mut records = Vec::new();
        loop {
            let (mut value, mut size) = (Vec::new(), 0);
            while pos <= end || (!reader.is_finished && reader.needs_additional) {
                let is_first = pos == 0;
                (value, size) = reader.line(max + if is_first { 3 } else { 0 }, size_max(pos));
                pos += size;
                if is_first && value.starts_with(BOM) {
                    value.drain(..3);
                    size -= 3;
                }
                if size < max {
                    break;
                }
            }
            if size == 0 {
                return records;
            }
            records.push(value);
        }
    }
}

/// A body that comes in pieces.
struct Pieces<'a>(&'a [u8], usize);

impl Body for Pieces<'_> {
    fn more(&mut self, to: &mut Vec<u8>) -> HdfsResult<()> {
        let (piece, rest) = self.0.split_at(self.1.min(self.0.len()));
        to.extend(piece);
        self.0 = rest;
        Ok(())
    }

    fn left_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn step_bytes(&self) -> usize {
        self.1
    }
}

/// The bytes that a task sends along: to the end of the first delimiter that no delimiter across `end` overlaps,
/// and a byte more where that is a CR.
fn tail<'a>(file: &'a [u8], end: usize, delimiter: &Delimiter) -> (&'a [u8], bool) {
    let rest = &file[end..];
    let before = (delimiter.bytes().len().max(1) - 1).min(rest.len());
    let len = delimiter.find(&rest[before..]).map_or(rest.len(), |found| before + found.size);
    let ends_with_cr = matches!(delimiter, Delimiter::Line) && rest[..len].ends_with(b"\r");
    let len = (len + usize::from(ends_with_cr)).min(rest.len());
    (&rest[..len], len == rest.len())
}

/// The records of a split as they are read here.
fn read(
    file: &[u8],
    (start, end): (usize, usize),
    delimiter: &Delimiter,
    record_bytes_max: u32,
    step: usize,
) -> Vec<Vec<u8>> {
    let (tail, tail_at_eof) = tail(file, end, delimiter);
    let spec = SplitSpec {
        start: start as u64,
        end: end as u64,
        tail,
        tail_at_eof,
        delimiter,
        record_bytes_max,
    };
    let budget = Budget::new(1 << 20);
    let body = Pieces(&file[start..end], step);
    let mut reader = SplitReader::new(spec, body, &budget, 1 << 12).expect("memory");
    let mut records: Vec<Vec<u8>> = Vec::new();
    while let Some(batch) = reader.next_batch().expect("read") {
        let new: Vec<_> = batch.records().map(<[u8]>::to_vec).collect();
        assert_eq!(new.len() as u64, batch.count());
        if let Some(lines) = batch.lines() {
            assert!(lines.len() >= new.iter().map(Vec::len).sum());
        }
        records.extend(new);
    }
    records
}

/// Compares a split with the model, whose buffer has `buffer_bytes`.
fn compare(
    file: &[u8],
    split: (usize, usize),
    delimiter: &[u8],
    record_bytes_max: u32,
    (step, buffer_bytes): (usize, usize),
) {
    let custom = Some(delimiter).filter(|delimiter| !delimiter.is_empty());
    let expected = Model::records(file, split, custom, record_bytes_max, buffer_bytes);
    let by = Delimiter::new(delimiter, record_bytes_max != NO_LIMIT).expect("clear");
    let found = read(file, split, &by, record_bytes_max, step);
    assert_eq!(
        found,
        expected,
        "{:?} from {} to {} by {delimiter:?}, at most {record_bytes_max}, in steps of {step}",
        file.escape_ascii().to_string(),
        split.0,
        split.1
    );
}

fn texts(alphabet: &[u8], len: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
    let n = alphabet.len();
    (0..n.pow(len as u32))
        .map(move |code| (0..len).map(|at| alphabet[code / n.pow(at as u32) % n]).collect())
}

/// All splits of all texts of up to `len` bytes.
fn all(alphabet: &[u8], len: usize, mut check: impl FnMut(&[u8], (usize, usize))) {
    for file in (0..=len).flat_map(|len| texts(alphabet, len)) {
        for start in 0..=file.len() {
            for end in start..=file.len() {
                check(&file, (start, end));
            }
        }
    }
}

#[test]
fn a_file_in_three_splits() {
    let (file, line) = (b"one\ntwo\r\nthree\rfour", Delimiter::Line);
    let read = |split| read(file, split, &line, NO_LIMIT, 4);
    assert_eq!(read((0, 4)), [&b"one"[..], b"two"], "the record at the end is this split's");
    assert_eq!(read((4, 8)), [&b""[..]; 0], "the CR is in this split, its LF in the next");
    assert_eq!(read((8, 19)), [&b"three"[..], b"four"]);
}

#[test]
fn all_lines_of_all_small_files() {
    all(b"a\r\n", 6, |file, split| {
        for (step, buffer_bytes) in [(1, 1), (2, 3), (64, 64)] {
            compare(file, split, b"", NO_LIMIT, (step, buffer_bytes));
        }
        for record_bytes_max in 1..=5 {
            compare(file, split, b"", record_bytes_max, (2, 64));
        }
    });
}

#[test]
fn all_records_of_all_small_files_by_other_delimiters() {
    for (delimiter, alphabet, len) in
        [(&b"|"[..], &b"a|"[..], 8), (b"ab", b"abx", 6), (b"||", b"a|", 8), (b"abca", b"abc", 7)]
    {
        all(alphabet, len, |file, split| {
            for (step, buffer_bytes) in [(1, 1), (3, 2), (64, 64)] {
                compare(file, split, delimiter, NO_LIMIT, (step, buffer_bytes));
            }
            if delimiter.len() == 1 {
                for record_bytes_max in [1, 2, 3, 5] {
                    compare(file, split, delimiter, record_bytes_max, (2, 64));
                }
            }
        });
    }
}

#[test]
fn the_mark_at_the_beginning_of_a_file_is_dropped() {
    for begin in [&b"\xef\xbb\xbf"[..], b"\xef\xbb", b"\xef\xbb\xbf\xef\xbb\xbf", b"a\xef\xbb\xbf"]
    {
        for rest in (0..=3).flat_map(|len| texts(b"a\r\n", len)) {
            let file = [begin, &rest].concat();
            for end in 0..=file.len() {
                // With less, a CR at the end of the file is not counted by a reader that stops before it.
                for record_bytes_max in [NO_LIMIT, RECORD_BYTES_MAX_MIN, 5, 6, 7] {
                    compare(&file, (0, end), b"", record_bytes_max, (2, 64));
                    compare(&file, (end, file.len()), b"", record_bytes_max, (2, 64));
                }
            }
        }
    }
}

/// The records of `LineRecordReader` itself, of Hadoop 3.4.2 on Java 17: the CRC-32 of all records of all splits
/// of all files of up to `len` pieces after `begin`, in the order of `all`, each record between `[` and `]` and
/// each split with a dot behind it. Hadoop gave the same with buffers of 1, 3 and 65,536 bytes where no limit is
/// set, and with one of 65,536 where one is.
#[test]
fn all_records_are_those_that_hadoop_gave() {
    let (lines, bars, letters) = (&b"a\r\n"[..], &b"a|"[..], &b"abx"[..]);
    for (alphabet, len, begin, delimiter, record_bytes_max, expected) in [
        (lines, 5, &b""[..], &b""[..], NO_LIMIT, 0xd7ae_b459_u32),
        (lines, 6, b"", b"", 4, 0xdefa_c6bf),
        (lines, 6, b"", b"", 5, 0x67f6_f486),
        (letters, 5, b"", b"ab", NO_LIMIT, 0x62e8_2c87),
        (bars, 7, b"", b"||", NO_LIMIT, 0x6bf1_88a9),
        (bars, 7, b"", b"|", 4, 0x534d_13a4),
        (lines, 3, BOM, b"", NO_LIMIT, 0xdfad_61d4),
        (lines, 3, BOM, b"", 4, 0xd6e9_40f2),
    ] {
        let has_limit = record_bytes_max != NO_LIMIT;
        let by = Delimiter::new(delimiter, has_limit).expect("clear");
        let mut crc = crc32fast::Hasher::new();
        for rest in (0..=len).flat_map(|len| texts(alphabet, len)) {
            let file = [begin, &rest].concat();
            for start in 0..=file.len() {
                for end in start..=file.len() {
                    for record in read(&file, (start, end), &by, record_bytes_max, 3) {
                        crc.update(&[b"[", &record[..], b"]"].concat());
                    }
                    crc.update(b".");
                }
            }
        }
        let found = crc.finalize();
        assert_eq!(found, expected, "{delimiter:?}, {begin:?}, {record_bytes_max}: {found:08x}");
    }
}

#[test]
fn every_record_is_in_one_split() {
    all(b"a\r\n", 5, |file, (a, b)| {
        let line = Delimiter::Line;
        let of = |split| read(file, split, &line, NO_LIMIT, 3);
        let mut parts = of((0, a));
        if a > 0 || b > 0 {
            // A split from 0 to 0 has the first record, and so has one from 0 to b.
            parts = if a > 0 { [parts, of((a, b))].concat() } else { of((0, b)) };
        }
        if b > 0 {
            parts.extend(of((b, file.len())));
        }
        let empty_middle = a == b && a > 0;
        if !empty_middle && b < file.len() && b > 0 {
            assert_eq!(parts, of((0, file.len())), "{file:?} cut at {a} and {b}");
        }
    });
}

#[test]
fn a_tail_that_is_too_short_is_an_error() {
    let spec = |tail: &'static [u8], tail_at_eof| SplitSpec {
        start: 0,
        end: 2,
        tail,
        tail_at_eof,
        delimiter: &Delimiter::Line,
        record_bytes_max: NO_LIMIT,
    };
    let read = |tail, tail_at_eof| {
        let budget = Budget::new(1 << 20);
        let mut reader = SplitReader::new(spec(tail, tail_at_eof), Pieces(b"ab", 2), &budget, 100)
            .expect("memory");
        reader.next_batch().map(|batch| batch.map(|batch| batch.records().count()))
    };
    for tail in [&b""[..], b"c", b"c\r"] {
        assert!(matches!(read(tail, false), Err(HdfsError::Tail { end: 2, .. })), "{tail:?}");
        assert_eq!(read(tail, true).expect("read"), Some(1), "{tail:?}");
    }
    assert_eq!(read(b"c\r\n", false).expect("read"), Some(1));
}

#[test]
fn a_record_longer_than_the_memory_is_an_error() {
    let file = b"a\n".iter().chain(&[b'x'; 100]).chain(b"\nb\n").copied().collect::<Vec<_>>();
    let spec = SplitSpec {
        start: 0,
        end: file.len() as u64,
        tail: b"",
        tail_at_eof: true,
        delimiter: &Delimiter::Line,
        record_bytes_max: NO_LIMIT,
    };
    for (buffer_bytes, fits) in [(64, false), (200, true)] {
        let budget = Budget::new(1 << 20);
        let body = Pieces(&file, 16);
        let mut reader = SplitReader::new(spec, body, &budget, buffer_bytes).expect("memory");
        let mut count = 0;
        let failed = loop {
            match reader.next_batch() {
                Ok(Some(batch)) => count += batch.count(),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        match failed {
            None => assert!(fits && count == 3),
            Some(HdfsError::Record { offset: 2, .. }) => assert!(!fits && count == 1),
            Some(other) => panic!("{other}"),
        }
    }
}

proptest! {
    #[test]
    fn any_file_is_read_as_hadoop_reads_it(
        file in prop::collection::vec(prop::sample::select(b"ab \r\n|\xef\xbb\xbf".to_vec()), 0..60),
        cuts: (prop::sample::Index, prop::sample::Index),
        delimiter in prop::sample::select(vec![&b""[..], b"|", b"a|", b"\n\n", b"\r\n"]),
        step in 1_usize..20,
        buffer_bytes in 1_usize..20,
        record_bytes_max in prop::sample::select(vec![NO_LIMIT, RECORD_BYTES_MAX_MIN, 6, 8, 20]),
    ) {
        let (a, b) = (cuts.0.index(file.len() + 1), cuts.1.index(file.len() + 1));
        let record_bytes_max = if delimiter.len() > 1 { NO_LIMIT } else { record_bytes_max };
        let buffer_bytes = if record_bytes_max == NO_LIMIT { buffer_bytes } else { 100 };
        let split = (a.min(b), a.max(b));
        compare(&file, split, delimiter, record_bytes_max, (step, buffer_bytes));
    }
}

//! Compressed inputs against the plain one: members and frames of any length, packed in any way, cut anywhere.

use std::io::{self, Read, Write};

use flate2::{Compression, GzBuilder};
use merganser_map::MapInput;
use merganser_map::ssdlet::{Emitter, SsdletError};
use merganser_sort::Budget;
use merganser_sort::run::magic::ContentKind;
use proptest::prelude::*;

use super::support::{How, LINES, Plain, Rows, storage, text};

/// The last cut at which bytes may be too few to be known as compressed ones.
const HEAD_BYTES: usize = 4;

/// Hands out each record with its place.
fn places(record: &[u8], offset: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    out.records(format!("{offset} {}\n", record.escape_ascii()).as_bytes());
    Ok(())
}

/// `part` as a member of gzip, with the fields in its header that the bits of `way` say.
fn member(part: &[u8], way: u8) -> io::Result<Vec<u8>> {
    let mut builder = GzBuilder::new().mtime(u32::from(way));
    if way & 1 != 0 {
        builder = builder.filename("a name");
    }
    if way & 2 != 0 {
        builder = builder.comment("a comment");
    }
    if way & 4 != 0 {
        builder = builder.extra(vec![way; usize::from(way)]);
    }
    let mut member = builder.write(Vec::new(), Compression::new(u32::from(way / 8) % 10));
    for piece in part.chunks(1 + usize::from(way) * 97) {
        member.write_all(piece)?;
        if way & 64 != 0 {
            member.flush()?;
        }
    }
    member.finish()
}

/// `part` as a frame of Zstandard.
fn frame(part: &[u8], way: u8, checked: bool) -> io::Result<Vec<u8>> {
    let mut frame = zstd::stream::write::Encoder::new(Vec::new(), i32::from(way % 9) - 3)?;
    frame.include_checksum(checked)?;
    if way & 16 != 0 {
        frame.set_pledged_src_size(Some(part.len() as u64))?;
        frame.include_contentsize(way & 32 != 0)?;
    } else {
        frame.window_log(10 + u32::from(way % 12))?;
    }
    for piece in part.chunks(1 + usize::from(way) * 131) {
        frame.write_all(piece)?;
        if way & 64 != 0 {
            frame.flush()?;
        }
    }
    frame.finish()
}

/// A text in several parts, and where each of them ends: in the packed bytes, and in the text.
struct Packed {
    text: Vec<u8>,
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Packed {
    /// Parts of these lengths, each packed in its way; the rest of the text is the last one.
    fn of_parts(text: Vec<u8>, parts: &[(usize, u8)], zstd: bool, checked: bool) -> Self {
        let (mut bytes, mut ends, mut at) = (Vec::new(), Vec::new(), 0);
        for (number, (len, way)) in parts.iter().enumerate() {
            let is_last = number + 1 == parts.len();
            let end = if is_last { text.len() } else { text.len().min(at + len) };
            let part = &text[at..end];
            let packed = if zstd { frame(part, *way, checked) } else { member(part, *way) };
            bytes.extend(packed.expect("packs"));
            ends.push((bytes.len(), end));
            at = end;
        }
        Packed { text, bytes, ends }
    }
}

/// A pipe that gives a few bytes at a time.
struct Dripping(Vec<u8>, usize);

impl Read for Dripping {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = out.len().min(self.0.len() - self.1).min(1 + self.1 * 31 % 5000);
        out[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
        self.1 += n;
        Ok(n)
    }
}

/// What becomes of `bytes`, as a file or as a pipe.
fn mapped(how: How, bytes: &[u8]) -> (Vec<u8>, Result<u64, String>) {
    // Enough for the usual window, which later frames may have.
    let budget = Budget::new(64 << 20);
    let input = if how.streams {
        MapInput::detect_stream(
            "packed".to_owned(),
            Box::new(Dripping(bytes.to_vec(), 0)),
            ContentKind::Text,
            &budget,
        )
    } else {
        MapInput::detect(storage(bytes), ContentKind::Text, &budget).expect("reads")
    };
    let mut rows = Rows::default();
    let report = how.map_to(&Plain::ordered(LINES, places), vec![input], &mut rows);
    assert_eq!(budget.free_bytes(), budget.limit_bytes(), "all memory is back");
    (rows.ordered, report.map(|report| report.input_bytes).map_err(|error| error.to_string()))
}

/// What becomes of it when it is not compressed.
fn plain(how: How, text: &[u8]) -> (Vec<u8>, Result<u64, String>) {
    let input = MapInput::Storage { storage: storage(text), range: None };
    let mut rows = Rows::default();
    how.map_to(&Plain::ordered(LINES, places), vec![input], &mut rows).expect("maps");
    let terminator = u64::from(text.last().is_some_and(|byte| *byte != b'\n'));
    (rows.ordered, Ok(text.len() as u64 + terminator))
}

fn any_packed(checked: bool) -> impl Strategy<Value = (Packed, bool)> {
    let parts = prop::collection::vec((0usize..30_000, any::<u8>()), 1..6);
    (0usize..80_000, any::<u64>(), parts, any::<bool>()).prop_map(
        move |(len, seed, parts, zstd)| {
            let mut text = text(len, 500, seed);
            // Its last line may have no end.
            text.truncate(len);
            (Packed::of_parts(text, &parts, zstd, checked || seed % 2 == 0), zstd)
        },
    )
}

fn any_how() -> impl Strategy<Value = How> {
    (1u64..70_000, 1usize..4, any::<bool>())
        .prop_map(|(chunk, threads, streams)| How { streams, ..How::chunks(chunk, threads) })
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes of text, parts end at {:?}", self.text.len(), self.ends)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn compressed_inputs_have_the_records_of_the_plain_one(
        (packed, _) in any_packed(false),
        how in any_how(),
    ) {
        prop_assert!(mapped(how, &packed.bytes) == plain(how, &packed.text));
    }

    /// Between two parts, what is there is whole. Anywhere else it is an error, after nothing but records that are
    /// there.
    #[test]
    fn a_cut_input_is_an_error_unless_whole_parts_are_left(
        (packed, _) in any_packed(false),
        how in any_how(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 4),
    ) {
        let all = plain(how, &packed.text).0;
        let borders = packed.ends.iter().map(|(end, _)| *end);
        let anywhere = places.iter().map(|place| place.index(packed.bytes.len()));
        for cut in borders.chain(anywhere).filter(|cut| *cut >= HEAD_BYTES) {
            let found = mapped(how, &packed.bytes[..cut]);
            match packed.ends.iter().find(|(end, _)| *end == cut) {
                Some((_, end)) => prop_assert!(found == plain(how, &packed.text[..*end]), "{}", cut),
                None => {
                    let told = found.1.expect_err("cut");
                    let name = if how.streams { "packed: " } else { "input: " };
                    prop_assert!(told.starts_with(name), "{}", told);
                    prop_assert!(all.starts_with(&found.0), "{}", cut);
                }
            }
        }
    }

    /// A byte that changes is found, or has no meaning, like the time in a header of gzip.
    #[test]
    fn a_damaged_input_is_an_error_or_the_same(
        (packed, zstd) in any_packed(true),
        how in any_how(),
        place in any::<prop::sample::Index>(),
        change in 1u8..=255,
    ) {
        let mut bytes = packed.bytes.clone();
        let place = place.index(bytes.len());
        bytes[place] ^= change;
        // Without its first bytes it is no compressed input.
        prop_assume!(place >= HEAD_BYTES);
        let found = mapped(how, &bytes);
        if found.1.is_ok() {
            prop_assert!(found == plain(how, &packed.text), "byte {} of {}, zstd {}", place, bytes.len(), zstd);
        }
    }
}

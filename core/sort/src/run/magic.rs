//! The kind of a file, by its first bytes and not by its name: one table for every command that opens data.
//!
//! ```text
//!   first bytes ─► TABLE ─► compressed    decompressed by `packed`, whatever the records are
//!                        ─► skipped       a frame that Zstandard and LZ4 skip: the bytes behind it tell
//!                        ─► foreign       refused where text is expected: its lines would be noise
//!                        ─► nothing       the records
//! ```
//!
//! Records of a fixed length and keyed records are binary on purpose, and may begin with any bytes. So only
//! compression is recognised in front of them: its magics are long, and files in it are common.
//!
//! A magic that consists of letters could begin a text. It counts only together with a byte that no text has
//! ([`Magic::with_control`]).

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;

/// Bytes that tell what an input is: tar has its magic at 257.
pub const HEAD_BYTES: usize = 512;
/// A byte that no text has is looked for in this many bytes.
const CONTROL_BYTES: usize = 64;

/// What an input should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    /// Lines, csv, sequences: a known file of another kind is refused.
    Text,
    /// Records of any bytes: only compression is recognised.
    Binary,
    /// The bytes as they are stored, whatever they are.
    AsStored,
}

/// How bytes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// gzip and bgzf, any number of members.
    Gzip,
    /// Zstandard, any number of frames.
    Zstd,
    /// bzip2, any number of streams.
    Bzip2,
    /// xz, any number of streams.
    Xz,
    /// LZ4, any number of frames.
    Lz4,
}

/// How a file is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Its content is read.
    Unpack(Codec),
    /// A frame of user data, before frames of Zstandard or LZ4.
    Skip,
    /// It is refused; the text says what makes a text of it.
    Refuse(&'static str),
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Magic {
    /// The kind of the file, with its article.
    pub what: &'static str,
    /// Where its magic is.
    pub at: usize,
    /// The magic.
    pub bytes: &'static [u8],
    /// The bits of it that count; empty where all do.
    pub mask: &'static [u8],
    /// Whether it counts only if a byte that no text has is near it.
    pub with_control: bool,
    /// How it is treated.
    pub deed: Deed,
}

const ICONV: &str = "'iconv -f UTF-16 -t UTF-8' makes UTF-8 of it";
const ICONV_32: &str = "'iconv -f UTF-32 -t UTF-8' makes UTF-8 of it";
const DUCKDB: &str = "write it as csv first, for example with DuckDB";
const ARROW: &str = "write it as csv first, for example with pyarrow or DuckDB";
/// A mark, the length of a message, which is a multiple of 8 below 16 MiB, and where in it its root is (Arrow's format,
/// "Encapsulated message format").
const ARROW_STREAM: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
const OFFICE: &str = "unzip it first, or save it as csv if it is a table of an Office program";

/// All known magics. The first row that fits counts, so longer magics come before their beginnings.
pub const TABLE: &[Magic] = &[
    packed("a gzip file", &[0x1f, 0x8b, 8], Codec::Gzip),
    packed("a Zstandard file", &[0x28, 0xb5, 0x2f, 0xfd], Codec::Zstd),
    packed("an xz file", &[0xfd, b'7', b'z', b'X', b'Z', 0], Codec::Xz),
    bzip2(b"BZh01AY&SY"),
    bzip2(b"BZh0\x17rE8P\x90"),
    packed("an LZ4 file", &[0x04, 0x22, 0x4d, 0x18], Codec::Lz4),
    Magic {
        what: "a skippable frame of Zstandard or LZ4",
        bytes: &[0x50, 0x2a, 0x4d, 0x18],
        mask: &[0xf0, 0xff, 0xff, 0xff],
        deed: Deed::Skip,
        ..ROW
    },
    foreign("a UTF-32 text", &[0xff, 0xfe, 0, 0], ICONV_32),
    foreign("a UTF-32 text", &[0, 0, 0xfe, 0xff], ICONV_32),
    foreign("a UTF-16 text", &[0xff, 0xfe], ICONV),
    foreign("a UTF-16 text", &[0xfe, 0xff], ICONV),
    lettered("a Parquet file", 0, b"PAR1", DUCKDB),
    lettered("an encrypted Parquet file", 0, b"PARE", DUCKDB),
    foreign("an Arrow IPC file", b"ARROW1\0\0", ARROW),
    Magic {
        mask: &[0xff, 0xff, 0xff, 0xff, 7, 0, 0, 0xff, 3, 0xff, 0xff, 0xff],
        ..foreign("an Arrow IPC stream", ARROW_STREAM, ARROW)
    },
    lettered("a Feather file", 0, b"FEA1", ARROW),
    lettered("an ORC file", 0, b"ORC", DUCKDB),
    foreign(
        "an Avro file",
        b"Obj\x01",
        "write it as csv first, for example with 'avro-tools tojson' or DuckDB",
    ),
    foreign(
        "an SQLite database",
        b"SQLite format 3\0",
        "write a table of it as csv first, for example with 'sqlite3 -csv'",
    ),
    lettered("a DuckDB database", 8, b"DUCK", "write a table of it as csv first with DuckDB"),
    foreign(
        "an HDF5 file",
        b"\x89HDF\r\n\x1a\n",
        "write it as text first, for example with 'h5dump' or h5py",
    ),
    foreign(
        "a NumPy array",
        b"\x93NUMPY",
        "write it as text first, for example with numpy.savetxt",
    ),
    foreign("a zip archive (zip, xlsx, docx, jar)", b"PK\x03\x04", OFFICE),
    foreign("an empty zip archive", b"PK\x05\x06", OFFICE),
    foreign("a part of a zip archive", b"PK\x07\x08", OFFICE),
    foreign(
        "an Office file (xls, doc)",
        &[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1],
        "save it as csv or text first",
    ),
    foreign("a BAM file", b"BAM\x01", "'samtools view' makes a text of it"),
    foreign("a BCF file", b"BCF\x02", "'bcftools view' makes a text of it"),
    lettered("a CRAM file", 0, b"CRAM", "'samtools view' makes a text of it"),
    foreign("a 7z archive", &[b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c], "extract it first with '7z x'"),
    foreign("a rar archive", b"Rar!\x1a\x07", "extract it first with 'unrar x'"),
    Magic { at: 257, ..foreign("a tar archive", b"ustar", "extract it first with 'tar -xf'") },
    foreign("a file of compress (.Z)", &[0x1f, 0x9d], "'gzip -dc' gives what it holds"),
    foreign("a file of lzip", b"LZIP\x01", "'lzip -dc' gives what it holds"),
    foreign("a file of lzop", b"\x89LZO\0\r\n\x1a\n", "'lzop -dc' gives what it holds"),
    foreign("an lzma file", &[0x5d, 0, 0], "'xz -dc --format=lzma' gives what it holds"),
    foreign(
        "an LZ4 file of the old form",
        &[0x02, 0x21, 0x4c, 0x18],
        "'lz4 -dc' gives what it holds",
    ),
    foreign("a Snappy file", b"\xff\x06\0\0sNaPpY", "decompress it first"),
];

/// The fields that most rows share.
const ROW: Magic =
    Magic { what: "", at: 0, bytes: &[], mask: &[], with_control: false, deed: Deed::Refuse("") };

const fn packed(what: &'static str, bytes: &'static [u8], codec: Codec) -> Magic {
    Magic { what, bytes, deed: Deed::Unpack(codec), ..ROW }
}

/// The fourth byte is a digit, the size of the blocks.
const fn bzip2(bytes: &'static [u8]) -> Magic {
    let mask = &[0xff, 0xff, 0xff, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    Magic { mask, ..packed("a bzip2 file", bytes, Codec::Bzip2) }
}

const fn foreign(what: &'static str, bytes: &'static [u8], advice: &'static str) -> Magic {
    Magic { what, bytes, deed: Deed::Refuse(advice), ..ROW }
}

/// A magic of letters.
const fn lettered(
    what: &'static str,
    at: usize,
    bytes: &'static [u8],
    advice: &'static str,
) -> Magic {
    Magic { at, with_control: true, ..foreign(what, bytes, advice) }
}

/// The row of a file that begins with `head`: its first [`HEAD_BYTES`], or all of it if it has fewer. `None` where the
/// bytes are taken as they are.
#[must_use]
pub fn of_head(head: &[u8], content: ContentKind) -> Option<&'static Magic> {
    let found = TABLE.iter().find(|magic| magic.fits(head))?;
    let counts = match content {
        ContentKind::Text => true,
        ContentKind::Binary => !matches!(found.deed, Deed::Refuse(_)),
        ContentKind::AsStored => false,
    };
    counts.then_some(found)
}

/// Ends of the names of tables of Parquet and Arrow.
const TABLE_ENDS: [&str; 6] = ["parquet", "pq", "arrow", "arrows", "feather", "ipc"];

/// Whether a file of this name is a table, if it is what its name says.
#[must_use]
pub fn has_name_of_table(path: &Path) -> bool {
    let end = path.extension().and_then(OsStr::to_str);
    end.is_some_and(|end| TABLE_ENDS.iter().any(|known| end.eq_ignore_ascii_case(known)))
}

/// Whether a file that begins with `head` is a table of Parquet or Arrow.
#[must_use]
pub fn is_table(head: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 4] = [b"PAR1", b"PARE", b"ARROW1\0\0", ARROW_STREAM];
    of_head(head, ContentKind::Text).is_some_and(|found| BEGINNINGS.contains(&found.bytes))
}

impl Magic {
    fn fits(&self, head: &[u8]) -> bool {
        let Some(found) = head.get(self.at..self.at + self.bytes.len()) else { return false };
        let masks = self.mask.iter().chain(std::iter::repeat(&0xff));
        found.iter().zip(self.bytes).zip(masks).all(|((found, byte), mask)| found & mask == *byte)
            && (!self.with_control || has_control(head))
    }
}

/// Whether a byte that no text has is near the front.
fn has_control(head: &[u8]) -> bool {
    head.iter().take(CONTROL_BYTES).any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31))
}

/// A file that is no text where one is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// Its kind, with its article.
    pub what: &'static str,
    /// What makes a text of it.
    pub advice: &'static str,
    /// Whether it was found in a compressed file.
    pub inside: bool,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Foreign { what, advice, inside } = self;
        let verb = if *inside { "holds" } else { "is" };
        write!(f, "{verb} {what}, which is not read here; {advice}")
    }
}

impl std::error::Error for Foreign {}

impl From<Foreign> for io::Error {
    fn from(foreign: Foreign) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortest file of a row.
    fn example(magic: &Magic) -> Vec<u8> {
        let mut bytes = vec![b' '; magic.at];
        bytes.extend_from_slice(magic.bytes);
        if !magic.mask.is_empty() && magic.bytes.starts_with(b"BZh") {
            bytes[3] = b'9';
        }
        if magic.with_control {
            bytes.push(0x15);
        }
        bytes
    }

    #[test]
    fn every_row_is_found_and_none_hides_another() {
        for magic in TABLE {
            let bytes = example(magic);
            let found =
                of_head(&bytes, ContentKind::Text).unwrap_or_else(|| panic!("{}", magic.what));
            assert_eq!(found, magic);
            assert!(magic.at + magic.bytes.len() <= HEAD_BYTES);
            assert!(magic.mask.is_empty() || magic.mask.len() == magic.bytes.len());
            let refused = matches!(magic.deed, Deed::Refuse(_));
            assert_eq!(of_head(&bytes, ContentKind::Binary).is_none(), refused, "{}", magic.what);
            assert_eq!(of_head(&bytes, ContentKind::AsStored), None);
        }
    }

    /// A prefix of a magic is no file of its kind, unless another row says so.
    #[test]
    fn cut_magics_are_other_files() {
        for magic in TABLE {
            let bytes = example(magic);
            for len in 0..magic.at + magic.bytes.len() {
                assert_ne!(
                    of_head(&bytes[..len], ContentKind::Text),
                    Some(magic),
                    "{} {len}",
                    magic.what
                );
            }
        }
        assert_eq!(of_head(b"", ContentKind::Text), None);
    }

    #[test]
    fn every_skippable_frame_and_size_of_block_is_known() {
        for low in 0..16 {
            let head = [0x50 | low, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
            assert_eq!(
                of_head(&head, ContentKind::Binary).map(|magic| magic.deed),
                Some(Deed::Skip)
            );
        }
        for digit in b'1'..=b'9' {
            let head = [b"BZh", &[digit][..], b"1AY&SY"].concat();
            let deed = of_head(&head, ContentKind::Text).map(|magic| magic.deed);
            assert_eq!(deed, Some(Deed::Unpack(Codec::Bzip2)));
        }
    }

    #[test]
    fn a_stream_of_arrow_is_a_table() {
        // As pyarrow writes the columns of a table of one int64.
        let head = b"\xff\xff\xff\xff\x78\0\0\0\x10\0\0\0\0\0\x0a\0\x0c\0\x06\0";
        assert!(is_table(head) && is_table(b"ARROW1\0\0") && is_table(b"PAR1\x15"));
        for other in
            [&b"\xff\xff\xff\xff\x79\0\0\0\x10\0\0\0"[..], b"\xff\xff\xff\xff1234567\n", b"PAR1"]
        {
            assert!(!is_table(other), "{}", other.escape_ascii());
        }
    }

    #[test]
    fn texts_that_begin_like_a_magic_are_texts() {
        for text in [
            &b"PAR1,2020,7\n"[..],
            b"ORC\tmordor\n",
            b"ORC\r\nelf\r\n",
            b"CRAM school\n",
            b"FEA1\n",
            b"12345678DUCK\n",
            b"BZh9 is a name\n",
            b"PK\n",
            b"BAM\n",
            b"Obj 1\n",
            b"7z\n",
            b"P*M\n",
            b"SQLite format 3\n",
            b"\xef\xbb\xbfid,name\n",
            b"\x1b[31mred\x1b[0m PAR1\n",
        ] {
            assert_eq!(of_head(text, ContentKind::Text), None, "{}", text.escape_ascii());
        }
    }
}

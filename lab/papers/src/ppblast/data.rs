//! Databases and queries: real sequences where Debian's packages with some are installed, and generated ones.
//!
//! | package | files | letters |
//! |---|---|---|
//! | mmseqs2-examples | 20,000 proteins of UniProt, and 500 queries | protein |
//! | prokka | proteins of three genera of bacteria | protein |
//! | resfinder-db | resistance genes | DNA |
//! | kleborate | alleles of Klebsiella | DNA |
//!
//! They are looked for below `/` and below the folder that `SEQUENCES_DIR` names, into which the packages may
//! have been unpacked. All of them together have some ten megabytes; the rest of a database is made by
//! `merganser_generate`, with families whose members are known.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use merganser_generate::{Fasta, Generator, SequenceAlphabet};
use merganser_pipeline::blast::count::{DatabaseCounter, DatabaseCounts};
use merganser_pipeline::blast::program::Molecule;

/// The variable that names a folder with unpacked packages.
pub(super) const VARIABLE: &str = "SEQUENCES_DIR";

/// Places of proteins and of DNA below the root: a file, or a folder of such files.
const PROTEINS: [&str; 2] =
    ["usr/share/doc/mmseqs2/example-data/DB.fasta.gz", "usr/share/prokka/db/genus"];
const DNA: [&str; 2] = ["usr/share/resfinder/db", "usr/lib/python3/dist-packages/kleborate/data"];
/// Real queries, proteins.
const QUERIES: &str = "usr/share/doc/mmseqs2/example-data/QUERY.fasta.gz";

/// Records that are made at a time.
const BLOCK: u64 = 1024;

/// The files of real sequences that are here, in a fixed order.
pub(super) fn real(alphabet: SequenceAlphabet) -> Vec<PathBuf> {
    let places: &[&str] = match alphabet {
        SequenceAlphabet::Protein => &PROTEINS,
        SequenceAlphabet::Dna => &DNA,
    };
    roots()
        .iter()
        .flat_map(|root| places.iter().flat_map(|place| below(&root.join(place))))
        .collect()
}

fn roots() -> Vec<PathBuf> {
    let unpacked = std::env::var_os(VARIABLE).map(PathBuf::from);
    unpacked.into_iter().chain([PathBuf::from("/")]).collect()
}

/// The file itself, or the files of sequences in a folder.
fn below(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else {
        return if path.is_file() { vec![path.to_owned()] } else { Vec::new() };
    };
    let is_fasta = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        // prokka's have none; its indexes for BLAST have other ones.
        path.is_file() && matches!(extension, None | Some("fsa" | "fasta" | "fa"))
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_fasta).collect();
    files.sort();
    files
}

/// Writes a database of `bytes`, or at most a record less, to `path`: the real files, then generated records.
/// Returns how many bytes are real.
pub(super) fn write(
    path: &Path,
    bytes: u64,
    alphabet: SequenceAlphabet,
    real: &[PathBuf],
) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut written = 0;
    for file in real {
        if written >= bytes {
            break;
        }
        written += copy(file, bytes - written, alphabet, &mut out)?;
    }
    let real_bytes = written.min(bytes);
    let generated = Fasta::new(alphabet, 0);
    let mut block = Vec::new();
    let mut next = 0;
    while written < bytes {
        block.clear();
        generated.records(next..next + BLOCK, &mut block);
        out.write_all(&block)?;
        written += block.len() as u64;
        next += BLOCK;
    }
    out.flush()?;
    drop(out);
    cut(path, bytes)?;
    Ok(real_bytes)
}

/// Copies a file of sequences, at most about `most` bytes of it, with a newline at its end. A file that is not
/// FASTA, or has other letters, is left out.
fn copy(
    file: &Path,
    most: u64,
    alphabet: SequenceAlphabet,
    out: &mut impl Write,
) -> io::Result<u64> {
    let mut text = opened(file)?;
    if alphabet_of(text.fill_buf()?) != Some(alphabet) {
        return Ok(0);
    }
    let mut written = 0;
    let mut line = Vec::new();
    while written < most && text.read_until(b'\n', &mut line)? > 0 {
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        out.write_all(&line)?;
        written += line.len() as u64;
        line.clear();
    }
    Ok(written)
}

/// The letters of a text in FASTA, by its first sequence; `None` for other texts.
fn alphabet_of(text: &[u8]) -> Option<SequenceAlphabet> {
    let first = records(text.strip_prefix(b">")?).next()?;
    let mut lines = first.split(|byte| *byte == b'\n');
    lines.next();
    let letters: Vec<u8> = lines.flatten().map(u8::to_ascii_uppercase).collect();
    let bases = letters.iter().filter(|letter| b"ACGTN".contains(letter)).count();
    // Nine of ten: proteins have these letters, too.
    let is_dna = bases * 10 >= letters.len() * 9;
    (!letters.is_empty()).then_some(if is_dna {
        SequenceAlphabet::Dna
    } else {
        SequenceAlphabet::Protein
    })
}

/// A file, decompressed by `gzip` if it is named so.
fn opened(file: &Path) -> io::Result<BufReader<Box<dyn Read>>> {
    let bytes: Box<dyn Read> = if file.extension().is_some_and(|extension| extension == "gz") {
        let output = Command::new("gzip").arg("-dc").arg(file).stdin(Stdio::null()).output()?;
        if !output.status.success() {
            return Err(io::Error::other("gzip can't decompress it"));
        }
        Box::new(io::Cursor::new(output.stdout))
    } else {
        Box::new(File::open(file)?)
    };
    Ok(BufReader::with_capacity(1 << 16, bytes))
}

/// Cuts the file at `path` before the first record that ends behind `bytes`; a file that is not longer keeps
/// its bytes. At least one record stays.
pub(super) fn cut(path: &Path, bytes: u64) -> io::Result<()> {
    let mut text = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (mut at, mut end) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = text.read_until(b'\n', &mut line)? as u64;
        if line.first() == Some(&b'>') && at > 0 && (at <= bytes || end == 0) {
            end = at;
        }
        at += read;
        if read == 0 {
            break;
        }
        if at > bytes && end > 0 {
            return File::options().write(true).open(path)?.set_len(end);
        }
    }
    Ok(())
}

/// Counts the sequences and letters of the file at `path`.
pub(super) fn count(path: &Path, alphabet: SequenceAlphabet) -> io::Result<DatabaseCounts> {
    let mut counter = DatabaseCounter::new(match alphabet {
        SequenceAlphabet::Dna => Molecule::Nucleotide,
        SequenceAlphabet::Protein => Molecule::Protein,
    });
    let mut text = BufReader::with_capacity(1 << 20, File::open(path)?);
    loop {
        let piece = text.fill_buf()?;
        if piece.is_empty() {
            return Ok(counter.end_input());
        }
        counter.take(piece);
        let taken = piece.len();
        text.consume(taken);
    }
}

/// Writes proteins of about `letters` together to `path`: half of them UniProt's queries where they are
/// here, the rest the first copies of generated families. Returns how many there are.
pub(super) fn write_queries(path: &Path, letters: u64) -> io::Result<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    let (mut queries, mut left) = (0, letters);
    let real = roots().into_iter().map(|root| root.join(QUERIES)).find(|file| file.is_file());
    if let Some(file) = real {
        let mut text = Vec::new();
        opened(&file)?.read_to_end(&mut text)?;
        for record in records(&text) {
            let found = record.len() as u64;
            if found > left.saturating_sub(letters / 2) {
                break;
            }
            out.write_all(record)?;
            left -= found;
            queries += 1;
        }
    }
    let generated = Fasta::new(SequenceAlphabet::Protein, 0);
    let mut block = Vec::new();
    for number in 0.. {
        let origin = generated.origin(number);
        if origin.copies < 2 || origin.copy != 0 || origin.to > letters {
            continue;
        }
        block.clear();
        generated.records(number..number + 1, &mut block);
        out.write_all(&block)?;
        queries += 1;
        left = left.saturating_sub(origin.to);
        if left == 0 {
            break;
        }
    }
    out.flush()?;
    Ok(queries)
}

/// The records of a text in FASTA.
fn records(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let next = rest.windows(2).position(|pair| pair == b"\n>").map_or(rest.len(), |at| at + 1);
        let (record, after) = rest.split_at(next);
        rest = after;
        (!record.is_empty()).then_some(record)
    })
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    const TEXT: &[u8] = b">a x\nMK\nV\n>b\nLL\n>c\nAAAA\n";

    fn file(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = folder.path().join("some.fa");
        fs::write(&path, text).expect("writes");
        (folder, path)
    }

    #[test]
    fn a_database_is_cut_between_records_at_every_place() {
        for bytes in 0..=TEXT.len() as u64 + 3 {
            let (_folder, path) = file(TEXT);
            cut(&path, bytes).expect("cuts");
            let left = fs::read(&path).expect("reads");
            let expected: &[u8] = match bytes {
                0..16 => &TEXT[..10],
                16..24 => &TEXT[..16],
                _ => TEXT,
            };
            assert_eq!(left, expected, "{bytes}");
        }
    }

    #[test]
    fn what_is_written_is_real_first_and_then_generated() {
        let (folder, real) = file(b">a x\nMK V\n>b\nLL");
        let path = folder.path().join("database");
        let written = write(&path, 50_000, SequenceAlphabet::Protein, &[real.clone(), real]);
        assert_eq!(written.expect("writes"), 32);
        let text = fs::read(&path).expect("reads");
        assert!(text.starts_with(b">a x\nMK V\n>b\nLL\n>a x\nMK V\n>b\nLL\n>MG"));
        let counted = count(&path, SequenceAlphabet::Protein).expect("counts");
        assert!((45_000..=50_000).contains(&counted.bytes), "{counted:?}");
        assert_eq!(counted.sequences, records(&text).count() as u64);
        let (_folder, small) = file(TEXT);
        let counted = count(&small, SequenceAlphabet::Protein).expect("counts");
        assert_eq!(counted, DatabaseCounts { sequences: 3, letters: 9, bytes: 24, empty: 0 });
    }

    #[test]
    fn a_file_of_anything_else_is_left_out() {
        for (text, expected) in [
            (&b"id\tname\n"[..], [0, 0]),
            (b"", [0, 0]),
            (b">nothing\n", [0, 0]),
            (b">protein\nMKVLAG\n", [0, 16]),
            (b">dna\nACGTNacgta\nGGR\n>x\nMMM\n", [27, 0]),
        ] {
            let (folder, path) = file(text);
            let out = folder.path().join("database");
            let written = [SequenceAlphabet::Dna, SequenceAlphabet::Protein]
                .map(|alphabet| write(&out, 5000, alphabet, from_ref(&path)).expect("writes"));
            assert_eq!(written, expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn queries_are_first_copies_of_families_in_the_database() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let [queries, database] = ["q", "d"].map(|name| folder.path().join(name));
        let count = write_queries(&queries, 2000).expect("writes");
        let text = fs::read(&queries).expect("reads");
        assert_eq!(records(&text).count() as u64, count);
        write(&database, 600_000, SequenceAlphabet::Protein, &[]).expect("writes");
        let all = fs::read(&database).expect("reads");
        let generated = records(&text).filter(|record| record.starts_with(b">MG"));
        for record in generated {
            assert!(all.windows(record.len()).any(|bytes| bytes == record));
        }
    }
}

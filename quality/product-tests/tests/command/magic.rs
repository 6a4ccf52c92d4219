//! The kind of a file: every row of the table of magics, for every command that opens data.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use merganser_sort::run::magic::{Deed, TABLE, is_table};

use crate::{fails, folder, merganser, names, prints, stderr};

/// Commands that read text, with the input's name at `IN`.
const COMMANDS: [&[&str]; 10] = [
    &["sort", "IN", "-o", "out"],
    &["sort", "IN", "--view", "out.view"],
    &["sort", "IN", "--quiet"],
    &["sort", "--format", "csv", "-k", "1", "IN"],
    &["sort", "--format", "fasta", "IN"],
    &["sort", "-m", "IN", "-o", "out"],
    &["sort", "-c", "IN"],
    &["verify", "IN"],
    &["map", "wordcount", "IN", "-o", "out"],
    &["pipeline", "IN", "--stage", "a:cat", "-o", "out"],
];

/// Words of commands that take no table.
const OF_NO_TABLE: [&str; 4] = ["--format", "-c", "map", "pipeline"];

fn words<'a>(command: &[&'a str], input: &'a str) -> Vec<&'a str> {
    command.iter().map(|word| if *word == "IN" { input } else { word }).collect()
}

/// The shortest file of a row, and some text behind it.
fn example(magic: &merganser_sort::run::magic::Magic) -> Vec<u8> {
    let mut bytes = vec![b' '; magic.at];
    bytes.extend_from_slice(magic.bytes);
    bytes.extend_from_slice(b"\x15\nb\na\n");
    bytes
}

#[test]
fn files_of_other_kinds_are_refused_by_every_command() {
    let dir = folder();
    for magic in TABLE {
        let Deed::Refuse(advice) = magic.deed else { continue };
        fs::write(dir.path().join("in"), example(magic)).expect("written");
        for command in COMMANDS {
            let told = fails(dir.path(), &words(command, "in"));
            if is_table(&example(magic)) && !command.iter().any(|word| OF_NO_TABLE.contains(word)) {
                // The program that reads tables refuses it, or is not installed.
                let refusals = ["in: ", "--key: "];
                let is_refused = refusals.iter().any(|refusal| told.starts_with(refusal));
                assert!(is_refused || told.contains("merganser-tables"), "{told}");
                assert_eq!(names(dir.path()), ["in"], "{command:?} {}", magic.what);
                continue;
            }
            let expected = format!(
                "in: is {}, which is not read here; {advice}; --no-decompress takes its bytes as they are",
                magic.what
            );
            assert_eq!(told, expected, "{command:?}");
            assert_eq!(names(dir.path()), ["in"], "{command:?} {}", magic.what);
        }
        let told = fails(dir.path(), &["info", "in"]);
        assert!(
            is_table(&example(magic))
                || told.starts_with(&format!("in: is {}, and no run or view; ", magic.what)),
            "{told}"
        );
    }
}

#[test]
fn pipes_are_looked_at_as_files_are() {
    let dir = folder();
    let parquet = b"PAR1\x15\x04\x15\x10\nrows\n";
    fs::write(dir.path().join("in"), parquet).expect("written");
    for command in COMMANDS {
        let stdin = File::open(dir.path().join("in")).expect("there");
        // `cat` makes a pipe of the file.
        let mut cat = Command::new("cat").stdin(stdin).stdout(Stdio::piped()).spawn().expect("cat");
        let mut command = merganser(dir.path(), &words(command, "-"));
        command.stdin(cat.stdout.take().expect("piped"));
        let output = command.output().expect("it starts");
        cat.wait().expect("it ends");
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("standard input: is a Parquet file"), "{told}");
        assert!(told.contains("--no-decompress") && output.stdout.is_empty(), "{told}");
        assert_eq!(names(dir.path()), ["in"], "{command:?}");
    }
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("it starts").success());
    let writer = std::thread::spawn(move || fs::write(fifo, parquet));
    let told = fails(dir.path(), &["sort", "fifo", "-o", "out"]);
    assert!(told.starts_with("fifo: is a Parquet file"), "{told}");
    // Its reader may have gone before it wrote.
    let _ = writer.join().expect("no panic");
}

#[test]
fn no_decompress_takes_all_bytes_as_they_are() {
    let dir = folder();
    for magic in TABLE {
        let bytes = example(magic);
        fs::write(dir.path().join("in"), &bytes).expect("written");
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        lines.sort_unstable();
        let sorted = lines.concat();
        let as_is = |words: &[&str]| prints(dir.path(), &[words, &["--no-decompress"]].concat());
        assert_eq!(as_is(&["sort", "in"]), sorted, "{}", magic.what);
        as_is(&["pipeline", "in", "--stage", "a:sort {in}", "--partitions", "1", "-o", "out"]);
        let found = fs::read(dir.path().join("out")).expect("there");
        assert_eq!(found.len(), bytes.len(), "{}", magic.what);
        let all = as_is(&["map", "sample", "--fraction", "1", "in"]);
        assert_eq!(all, bytes, "{}", magic.what);
        fs::write(dir.path().join("in"), &sorted).expect("written");
        as_is(&["verify", "in"]);
        as_is(&["sort", "-c", "in"]);
        // Records of any bytes are never refused.
        if let Deed::Refuse(_) = magic.deed {
            fs::write(dir.path().join("in"), &bytes).expect("written");
            assert_eq!(
                prints(dir.path(), &["sort", "--format", "fixed:1", "in"]).len(),
                bytes.len()
            );
        }
    }
}

#[test]
fn consume_refuses_what_it_can_not_read() {
    let dir = folder();
    fs::write(dir.path().join("in"), b"PK\x03\x04\nb\n").expect("written");
    let told = fails(dir.path(), &["sort", "--consume", "in", "-o", "out"]);
    assert!(told.starts_with("in: is a zip archive"), "{told}");
    assert_eq!(names(dir.path()), ["in"]);
}

/// Runs a compressor; `None` where there is no such program. CI has all of them (.ci/setup compressors).
fn pack(dir: &Path, words: &[&str]) -> Option<Vec<u8>> {
    let packed = Command::new(words[0]).args(&words[1..]).arg("in").current_dir(dir).output();
    let Ok(Output { status, stdout, .. }) = packed else {
        eprintln!("skipped: there is no {}", words[0]);
        return None;
    };
    assert!(status.success(), "{words:?}");
    Some(stdout)
}

#[test]
fn files_of_real_compressors_are_read_by_every_command() {
    let dir = folder();
    let text = prints(dir.path(), &["generate", "--format", "lines", "--records", "40K"]);
    fs::write(dir.path().join("in"), &text).expect("written");
    let sorted = prints(dir.path(), &["sort", "in"]);
    let counted = prints(dir.path(), &["map", "wordcount", "in"]);
    for words in [
        &["gzip", "-c"][..],
        &["zstd", "-qc"],
        &["zstd", "-qc", "--long=27"],
        &["pzstd", "-qc", "-p", "3"],
        &["bzip2", "-c"],
        &["xz", "-c", "-0"],
        &["xz", "-c", "-T2", "--block-size=100KiB"],
        &["xz", "-c", "--check=sha256", "--x86", "--lzma2"],
        &["lz4", "-qc"],
        &["lz4", "-qc", "-B4", "-BD", "-BX"],
        &["lz4", "-qc", "-9", "--content-size"],
        &["bgzip", "-c"],
    ] {
        let Some(packed) = pack(dir.path(), words) else { continue };
        fs::write(dir.path().join("in.packed"), [&packed[..], &packed].concat()).expect("written");
        let twice = prints(dir.path(), &["sort", "in.packed"]);
        assert_eq!(twice.len(), 2 * sorted.len(), "{words:?}");
        fs::write(dir.path().join("in.packed"), &packed).expect("written");
        assert!(prints(dir.path(), &["sort", "in.packed"]) == sorted, "{words:?}");
        assert!(prints(dir.path(), &["map", "wordcount", "in.packed"]) == counted, "{words:?}");
        let mut command = merganser(dir.path(), &["sort", "-S", "20M"]);
        command.stdin(File::open(dir.path().join("in.packed")).expect("there"));
        assert!(command.output().expect("it starts").stdout == sorted, "{words:?}");
        let copied =
            ["pipeline", "in.packed", "--stage", "a:cat", "--partitions", "3", "-o", "out"];
        prints(dir.path(), &copied);
        assert!(fs::read(dir.path().join("out")).expect("there") == text, "{words:?}");
        fs::write(dir.path().join("in.packed"), &packed[..packed.len() - 5]).expect("written");
        let told = fails(dir.path(), &["verify", "in.packed"]);
        assert!(told.contains("damaged or cut"), "{words:?}: {told}");
    }
}

/// E5: the name of an output says whether it is compressed.
#[test]
fn outputs_are_compressed_as_their_names_say() {
    let dir = folder();
    let text = prints(dir.path(), &["generate", "--format", "lines", "--records", "100K"]);
    fs::write(dir.path().join("in"), text).expect("written");
    let sorted = prints(dir.path(), &["sort", "in"]);
    let holds = |name: &str, program: &str, expected: &[u8]| {
        let unpacked = Command::new(program).arg("-dc").arg(name).current_dir(dir.path()).output();
        match unpacked {
            Ok(unpacked) => assert!(unpacked.stdout == expected, "{name}"),
            Err(_) => eprintln!("skipped: there is no {program}"),
        }
        assert!(fs::metadata(dir.path().join(name)).expect("there").len() < expected.len() as u64);
    };
    for (ending, program) in [("gz", "gzip"), ("zst", "zstd")] {
        let out = format!("out.{ending}");
        for threads in ["1", "3"] {
            prints(dir.path(), &["sort", "in", "-o", &out, "--threads", threads]);
            holds(&out, program, &sorted);
        }
        let once = fs::read(dir.path().join(&out)).expect("there");
        // In place: it is read, and stays compressed.
        prints(dir.path(), &["sort", &out, "-o", &out]);
        assert!(fs::read(dir.path().join(&out)).expect("there") == once);
        prints(dir.path(), &["verify", &out]);
        prints(dir.path(), &["sort", "-m", &out, "-o", &out]);
        holds(&out, program, &sorted);
        prints(dir.path(), &["sort", "in", "--view", "v.view"]);
        prints(dir.path(), &["materialize", "v.view", "-o", &out]);
        holds(&out, program, &sorted);
        let told = fails(dir.path(), &["materialize", "v.view", "--consume", "-o", &out]);
        assert!(told.contains("--consume continues at a place in the output"), "{told}");
        assert_eq!(prints(dir.path(), &["cat", "v.view"]), sorted);
        fs::remove_dir_all(dir.path().join("v.view")).expect("there");
        let rows = prints(dir.path(), &["map", "wordcount", "in"]);
        prints(dir.path(), &["map", "wordcount", "in", "-o", &out]);
        holds(&out, program, &rows);
        let told = fails(dir.path(), &["sort", "in", "--consume", "-o", &out]);
        assert!(told.starts_with(&format!("{out}: ")) && told.contains("plain name"), "{told}");
        holds(&out, program, &rows);
        fs::write(dir.path().join("none"), "").expect("written");
        prints(dir.path(), &["sort", "none", "-o", &out]);
        assert_eq!(prints(dir.path(), &["sort", &out]), b"");
        assert!(fs::metadata(dir.path().join(&out)).expect("there").len() > 0);
        fs::remove_file(dir.path().join(&out)).expect("there");
    }
    for ending in ["xz", "bz2", "lz4"] {
        let told = fails(dir.path(), &["sort", "in", "-o", &format!("out.{ending}")]);
        assert!(told.contains(&format!(".{ending} is not written here")), "{told}");
    }
    assert_eq!(names(dir.path()), ["in", "none"]);
}

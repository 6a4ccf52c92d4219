//! A pipeline that ended early, and whose files are damaged before it continues: it is right, or it says which file
//! is not as it was left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::pipeline;
use crate::harness::{Chance, Folder, fails, stderr};

/// Pipelines that fail until the file `ok` is there, and the files that each leaves.
const ENDS: [(&str, &[&str], &[&str]); 6] = [
    (
        "partitions wait, and a result is in the output",
        &["--stage", "a:[ {k} = 0 ] || [ -e ok ] || { sleep 1; exit 1; }; tr a-m A-M"],
        &["partial", "pipeline/000001.part"],
    ),
    (
        "outputs of a stage wait",
        &["--stage", "a:tr a-m A-M", "--stage", "b:[ -e ok ] || exit 1; cat"],
        &["pipeline/000000.a/out"],
    ),
    (
        "a folder waits",
        &[
            "--stage",
            "a:cp {in} {dir}/x; mkdir {dir}/d; tr a-m A-M <{in} >{dir}/d/y",
            "--stage",
            "b:[ -e ok ] || exit 1; cat {a.dir}/x {a.dir}/d/y",
        ],
        &["pipeline/000000.a/x", "pipeline/000000.a/d/y"],
    ),
    (
        "all is gathered for a merge",
        &["--stage", "a:tr a-m A-M", "--merge", "[ -e ok ] || exit 1; sort"],
        &["pipeline/gathered"],
    ),
    (
        "all is kept for a merge",
        &["--stage", "a:sort", "--merge", "[ -e ok ] || exit 1; sort -m {outs}"],
        &["pipeline/000000.a/out", "pipeline/000001.a/out"],
    ),
    (
        // The output can't get its name, which a folder has taken meanwhile.
        "the output is whole",
        &["--stage", "a:tr a-m A-M", "--merge", "[ -e ok ] || mkdir out; sort"],
        &["partial"],
    ),
];

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").args([from, to]).status().expect("cp starts");
    assert!(copied.success());
}

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let first = ["in", "--partitions", "3", "--pool", "p:1", "--retries", "0", "--quiet"];
    // A pool comes after its stages.
    let stages = more;
    let merge = stages.iter().position(|word| *word == "--merge").unwrap_or(stages.len());
    [&first[..3], &stages[..merge], &first[3..], &stages[merge..]].concat()
}

#[test]
fn n9_what_a_pipeline_left_is_compared_before_it_continues() {
    let mut chance = Chance::new();
    for (what, more, files) in ENDS {
        let folder = Folder::new();
        let text = chance.lines(6_000);
        folder.write("in", &text);
        folder.write("ok", b"");
        let words = words(more);
        let run = || pipeline(&folder, &words).output().expect("it starts");
        let whole = run();
        assert!(whole.status.success(), "{what}: {}", stderr(&whole));
        let expected = fs::read(folder.at("out")).expect("the output");
        fs::remove_file(folder.at("out")).expect("removed");
        fs::remove_file(folder.at("ok")).expect("removed");
        fails(&mut pipeline(&folder, &words));
        let _ = fs::remove_dir(folder.at("out"));
        folder.write("ok", b"");
        let (work, kept) = (folder.at(".out.unfinished"), folder.at("kept"));
        copy(&work, &kept);
        let mut refused = 0;
        for file in files {
            let path: PathBuf = work.join(file);
            let good = fs::read(&path).unwrap_or_else(|e| panic!("{what}: {file}: {e}"));
            let len = good.len();
            assert!(len > 100, "{what}: {file}");
            let at = |n: usize| [0, 1, len / 3, len / 2, len - 2, len - 1][n];
            let mut damages: Vec<Vec<u8>> = (0..6)
                .map(|n| {
                    let mut bytes = good.clone();
                    bytes[at(n)] ^= 1 << chance.below(8);
                    bytes
                })
                .collect();
            damages.push(good[..len - 1].to_vec());
            damages.push([&good[..], b"x"].concat());
            damages.push(Vec::new());
            damages.push([&good[1..], &good[..1]].concat());
            for bytes in damages.into_iter().map(Some).chain([None]) {
                match &bytes {
                    Some(bytes) => fs::write(&path, bytes).expect("written"),
                    None => fs::remove_file(&path).expect("removed"),
                }
                let again = run();
                if again.status.success() {
                    // Files that are not whole by the journal are made again, or cut off.
                    let out = fs::read(folder.at("out")).expect("the output");
                    assert!(out == expected, "{what}: {file}: a wrong output");
                    fs::remove_file(folder.at("out")).expect("removed");
                } else {
                    let told = stderr(&again);
                    let named = told.contains(file.rsplit('/').next().expect("a name"))
                        || told.contains("000000.a")
                        || told.contains("out: was finished by an earlier command");
                    assert!(named && again.status.code() == Some(2), "{what}: {file}: {told}");
                    assert!(!folder.at("out").exists(), "{what}: {file}");
                    refused += 1;
                }
                copy(&kept, &work);
            }
        }
        assert!(refused >= 9, "{what}: {refused} damages were seen");
        // Undamaged, it continues.
        let again = run();
        assert!(again.status.success(), "{what}: {}", stderr(&again));
        assert!(fs::read(folder.at("out")).expect("the output") == expected, "{what}");
        assert!(!work.exists(), "{what}");
    }
}

/// Bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

/// A journal of a version that noted no checksums of outputs continues; partitions always had them.
#[test]
fn a_journal_without_checksums_continues() {
    let folder = Folder::new();
    folder.write("in", &Chance::new().lines(6_000));
    let words = words(&["--stage", "a:[ {k} = 0 ] || [ -e ok ] || { sleep 1; exit 1; }; cat"]);
    fails(&mut pipeline(&folder, &words));
    let journal = folder.at(".out.unfinished/pipeline-journal");
    let text = fs::read_to_string(&journal).expect("text");
    let mut old = String::new();
    for line in text.lines() {
        let json = &line[9..];
        let has = json.starts_with("{\"ran\"") || json.starts_with("{\"gathered\"");
        let json = match json.find(",\"crc\"") {
            Some(at) if has => format!("{}}}}}", &json[..at]),
            _ => json.to_owned(),
        };
        old.push_str(&format!("{:08x} {json}\n", crc32c(json.as_bytes())));
    }
    assert_ne!(old, text);
    fs::write(&journal, old).expect("written");
    folder.write("ok", b"");
    let again = pipeline(&folder, &words).output().expect("it starts");
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(
        fs::read(folder.at("out")).expect("there") == fs::read(folder.at("in")).expect("there")
    );
}

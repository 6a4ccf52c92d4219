//! The results of a pipeline.

use std::fs;
use std::process::Command;

use merganser_testkit::has;
use serde_json::Value;

use super::{fasta, fastq, lines_of, made, pipeline};
use crate::harness::{Chance, Folder, output_with, prints, sorted_lines, stderr};

/// The output of `sh -c COMMAND` with `input` to read.
fn shell(command: &str, input: &[u8]) -> Vec<u8> {
    let mut sh = Command::new("sh");
    let output = output_with(sh.args(["-c", command]).env("LC_ALL", "C"), input);
    assert!(output.status.success(), "{command}: {}", stderr(&output));
    output.stdout
}

/// The parts of `text` whose ends are the first newlines at k n-ths of it.
fn parts(text: &[u8], n: usize) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut start = 0;
    for k in 1..=n {
        let wanted = (text.len() * k / n).max(start + 1);
        let newline = text[wanted - 1..].iter().position(|byte| *byte == b'\n');
        let end = newline.map_or(text.len(), |at| wanted + at);
        parts.push(&text[start..end]);
        start = end;
        if start == text.len() {
            break;
        }
    }
    parts
}

#[test]
fn packed_partitions_have_the_sums_of_gzip_and_md5sum() {
    let folder = Folder::new();
    let text = Chance::new().lines(300_000);
    folder.write("in", &text);
    let words = ["in", "--partitions", "7", "--stage", "pack:gzip -n", "--stage", "sum:md5sum"];
    let sums =
        parts(&text, 7).iter().flat_map(|part| shell("gzip -n | md5sum", part)).collect::<Vec<_>>();
    assert!(made(&folder, &words) == sums);
    // Pools, threads and files instead of pipes change nothing.
    let words = [
        "in",
        "--partitions",
        "7",
        "--stage",
        "pack:gzip -n <{in} >{out}",
        "--pool",
        "a:1",
        "--stage",
        "sum:md5sum <\"$MERGANSER_IN\" >\"$MERGANSER_OUT\"",
        "--pool",
        "b:3",
        "--in-flight",
        "2",
    ];
    assert!(made(&folder, &words) == sums);
}

#[test]
fn sorted_partitions_are_merged() {
    let folder = Folder::new();
    let text = Chance::new().lines(400_000);
    folder.write("in", &text);
    let sorted = sorted_lines(&text);
    for merge in ["sort -m {outs}", "sort -m -o {out} {outs}", "sort", "xargs sort -m <{list}"] {
        let words =
            ["in", "--partitions", "40K", "--stage", "sort:sort {in} -o {out}", "--merge", merge];
        assert!(made(&folder, &words) == sorted, "{merge}");
    }
}

/// A folder of files goes from stage to stage, and a later stage reads what an earlier one wrote.
#[test]
fn stages_name_files_of_earlier_stages() {
    let folder = Folder::new();
    folder.write("in", b"a\nb\nc\n");
    let words = [
        "in",
        "--partitions",
        "2",
        "--stage",
        "make:cp {in} {dir}/one; echo {k} >{dir}/two; echo noise",
        "--stage",
        "use:cat {make.dir}/two",
        "--stage",
        "join:cat {use.out} {make.dir}/one {part} {in}",
    ];
    assert_eq!(made(&folder, &words), b"0\na\nb\na\nb\n0\n1\nc\nc\n1\n");
    // awk's braces are its own.
    let words = ["in", "--partitions", "2", "--stage", "awk:awk '{print $1 \"{x}\"}'"];
    assert_eq!(made(&folder, &words), b"a{x}\nb{x}\nc{x}\n");
}

/// Each record once, in order, whatever the format, the size of partitions and the inputs.
#[test]
fn nothing_is_lost_and_order_stays() {
    let mut chance = Chance::new();
    type Make = fn(&mut Chance, usize) -> Vec<u8>;
    let formats: [(&str, Make); 4] = [
        ("lines", |chance, bytes| chance.lines(bytes)),
        ("fasta", fasta),
        ("fastq", fastq),
        ("fixed:7", |chance, bytes| (0..bytes / 7 * 7).map(|_| chance.next() as u8).collect()),
    ];
    for (format, make) in formats {
        let folder = Folder::new();
        let texts: Vec<_> = [60_000, 0, 20, 30_000].map(|bytes| make(&mut chance, bytes)).into();
        let names: Vec<_> = (0..texts.len()).map(|at| format!("in{at}")).collect();
        for (name, text) in names.iter().zip(&texts) {
            folder.write(name, text);
        }
        // The third one lacks the newline of its last record, unless it has none of its own.
        if !format.starts_with("fixed") {
            folder.write("in2", texts[2].strip_suffix(b"\n").expect("a newline"));
        }
        let whole = texts.concat();
        for partitions in ["1", "3", "50", "9999b", "40K", "auto"] {
            let mut words =
                vec!["--format", format, "--partitions", partitions, "--stage", "copy:cat"];
            words.extend(names.iter().map(String::as_str));
            assert!(made(&folder, &words) == whole, "{format}, {partitions}");
        }
        for program in ["gzip", "zstd -q"] {
            let packed = format!("{program} -c in0 >in0.packed");
            let packed =
                Command::new("sh").args(["-c", &packed]).current_dir(folder.path()).status();
            assert!(packed.expect("it runs").success());
            for partitions in ["5", "7000b"] {
                let words = [
                    "in0.packed",
                    "in3",
                    "--format",
                    format,
                    "--partitions",
                    partitions,
                    "--stage",
                    "copy:cat",
                ];
                assert!(made(&folder, &words) == [&*texts[0], &texts[3]].concat(), "{program}");
            }
        }
    }
}

#[test]
fn an_empty_input_gives_an_empty_output() {
    let folder = Folder::new();
    folder.write("in", b"");
    for partitions in ["3", "1K", "auto"] {
        assert_eq!(made(&folder, &["in", "--partitions", partitions, "--stage", "a:cat"]), b"");
        let merged = ["in", "--partitions", partitions, "--stage", "a:cat", "--merge", "wc -c"];
        assert_eq!(made(&folder, &merged), b"0\n");
    }
}

#[test]
fn a_pipe_is_divided_by_size() {
    let folder = Folder::new();
    let text = Chance::new().lines(200_000);
    let words = ["--partitions", "30K", "--stage", "a:cat"];
    let output = output_with(&mut pipeline(&folder, &words), &text);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read(folder.at("out")).expect("there") == text);
    let output =
        output_with(&mut pipeline(&folder, &["--partitions", "3", "--stage", "a:cat"]), &text);
    let said = stderr(&output);
    assert!(said.contains("standard input: has no size") && said.contains("such as 64M"), "{said}");
    // Without a number it is divided by size.
    let output = output_with(&mut pipeline(&folder, &["--stage", "a:cat"]), &text);
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A partition moves on as soon as its stage ends, in both pools at once; partitions in flight are bounded; what
/// no stage needs is removed.
#[test]
fn pools_overlap_and_files_go_early() {
    let folder = Folder::new();
    folder.write("in", &Chance::new().lines(80_000));
    let look = folder.at("seen");
    let counting = format!(
        "late:sleep 0.1; ls .out.unfinished/pipeline | grep -c part >>{}; cat",
        look.display()
    );
    let words = [
        "in",
        "--partitions",
        "8",
        "--in-flight",
        "3",
        "--report",
        "r.json",
        "--stage",
        "early:sleep 0.1; cat",
        "--pool",
        "one:1",
        "--stage",
        &counting,
        "--pool",
        "two:1",
    ];
    let text = fs::read(folder.at("in")).expect("there");
    assert!(made(&folder, &words) == text);
    let counts: Vec<u64> =
        lines_of(&look).iter().map(|line| line.parse().expect("a count")).collect();
    assert!(counts.len() == 8 && counts.iter().all(|parts| *parts <= 3), "{counts:?}");
    let report = fs::read_to_string(folder.at("r.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let pipeline = &report["pipeline"];
    assert_eq!(pipeline["partitions"], 8);
    let runs = pipeline["runs"].as_array().expect("runs");
    let of = |stage: u64, what: &str| -> Vec<f64> {
        let runs = runs.iter().filter(|run| run["stage"] == stage);
        runs.map(|run| run[what].as_f64().expect("seconds")).collect()
    };
    let first_late = of(1, "start_seconds").into_iter().fold(f64::MAX, f64::min);
    let last_early = of(0, "end_seconds").into_iter().fold(0.0, f64::max);
    assert!(first_late < last_early, "the pools take turns");
    let model = &pipeline["model"];
    let seconds = |what: &str| model[what].as_f64().unwrap_or_else(|| panic!("{what}: {model}"));
    let (measured, recurrence) = (seconds("measured_seconds"), seconds("recurrence_seconds"));
    assert!(recurrence <= measured * 1.01, "{measured} {recurrence}");
    assert!(seconds("pipelined_seconds") < seconds("unpipelined_seconds"));
    assert!(seconds("ahead_seconds") > 0.0);
}

#[test]
fn the_page_is_complete_in_itself() {
    let folder = Folder::new();
    folder.write("in", &Chance::new().lines(20_000));
    let words = [
        "in",
        "--partitions",
        "3",
        "--report",
        "r.html",
        "--stage",
        "a:cat '<&>' 2>/dev/null || cat",
        "--stage",
        "b:cat",
    ];
    made(&folder, &words);
    let page = fs::read_to_string(folder.at("r.html")).expect("a page");
    assert!(page.contains("cat &#39;&lt;&amp;&gt;&#39;") && !page.contains("<&>"));
    for needed in
        ["<rect class=\"busy\"", "Recurrence", "4.8 as printed, with s_u", "default-src 'none'"]
    {
        assert!(page.contains(needed), "{needed}");
    }
}

/// An automatic division takes two small partitions first.
#[test]
fn an_automatic_division_measures_first() {
    let folder = Folder::new();
    let text = Chance::new().lines(2 << 20);
    folder.write("in", &text);
    let words = [
        "in",
        "--report",
        "r.json",
        "--stage",
        "a:cat; sleep 0.02",
        "--pool",
        "one:1",
        "--stage",
        "b:cat",
        "--pool",
        "two:1",
    ];
    assert!(made(&folder, &words) == text);
    let report = fs::read_to_string(folder.at("r.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let partitions = report["pipeline"]["partitions"].as_u64().expect("a number");
    assert!((3..100).contains(&partitions), "{partitions}");
    assert!(report["pipeline"]["model"]["best_partitions"].as_f64().expect("a number") >= 1.0);
}

#[test]
fn names_with_blanks_and_quotes_work() {
    let folder = Folder::new();
    let odd = folder.at("a 'b \"c");
    fs::create_dir(&odd).expect("made");
    folder.write("in", b"x\ny\n");
    let mut command = crate::harness::merganser(["pipeline", "in", "--partitions", "2", "--stage"]);
    command.args(["a:cp {in} {out}", "--merge", "cat {outs}", "-o"]).arg(odd.join("out"));
    prints(command.current_dir(folder.path()));
    assert_eq!(fs::read(odd.join("out")).expect("there"), b"x\ny\n");
    assert_eq!(crate::harness::names(&odd), ["out"]);
}

/// Programs of other people, where they are installed.
#[test]
fn hmmsearch_searches_partitions() {
    if !has("hmmsearch", "-h", "hmmer") {
        return;
    }
    let folder = Folder::new();
    let mut proteins = String::new();
    for n in 0..40 {
        let odd = &"MKVLAAGIVGLCAKAYLLNDEW"[n % 7..];
        proteins.push_str(&format!(">p{n}\n{odd}MSTHHHKRGDELLPWYFF{odd}\n"));
    }
    folder.write("db.fa", proteins.as_bytes());
    let aligned = "# STOCKHOLM 1.0\na MSTHHHKRGDELLPWYFF\nb MSTHHHKRGEELLPWYFF\n//\n";
    folder.write("motif.sto", aligned.as_bytes());
    let mut built = Command::new("hmmbuild");
    built.args(["motif.hmm", "motif.sto"]).current_dir(folder.path());
    assert!(built.output().expect("it starts").status.success());
    // The whole database's size makes the values of partitions comparable.
    let search = "hmmsearch -Z 40 --domZ 40 --tblout {out} motif.hmm {in}";
    let words =
        ["db.fa", "--format", "fasta", "--partitions", "4", "--stage", &format!("s:{search}")];
    let rows = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text).into_owned();
        let mut rows: Vec<_> =
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        rows.sort();
        rows
    };
    let found = rows(&made(&folder, &words));
    let mut whole = Command::new("hmmsearch");
    whole.args(["-Z", "40", "--domZ", "40", "--tblout", "whole", "motif.hmm", "db.fa"]);
    assert!(whole.current_dir(folder.path()).output().expect("it starts").status.success());
    assert_eq!(found, rows(&fs::read(folder.at("whole")).expect("there")));
    assert_eq!(found.len(), 40);
}

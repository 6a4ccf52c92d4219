//! FASTA and FASTQ: sorted, read in parts, checked, made.

use std::fs;
use std::process::Stdio;

use crate::{fails, folder, merganser, names, prints, stderr};

const FASTA: &[u8] = b">s10 ten\nACGT\nAC\n>s9 nine\r\nGG\r\n\r\n>s10 twice\nA\n>s1\n";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn sequences_are_sorted_by_their_parts() {
    let dir = folder();
    fs::write(dir.path().join("in.fa"), FASTA).expect("written");
    let (ten, nine, twice, one) =
        (">s10 ten\nACGT\nAC\n", ">s9 nine\r\nGG\r\n\r\n", ">s10 twice\nA\n", ">s1\n");
    for (options, expected) in [
        (&["--key", "id"][..], [one, ten, twice, nine]),
        (&["--key", "id:V:r"], [ten, twice, nine, one]),
        (&["--key", "length:r"], [ten, nine, twice, one]),
        (&["--key", "sequence"], [one, twice, ten, nine]),
        (&["--key", "id", "--key", "header:r"], [one, twice, ten, nine]),
        (&[], [one, ten, twice, nine]),
        (&["-r"], [nine, twice, ten, one]),
    ] {
        let arguments = [&["sort", "--format", "fasta", "in.fa"], options].concat();
        assert_eq!(text(prints(dir.path(), &arguments)), expected.concat(), "{options:?}");
    }
    let unique = ["sort", "--format", "fasta", "--key", "id", "-u", "in.fa"];
    assert_eq!(text(prints(dir.path(), &unique)), [one, ten, nine].concat());
    assert_eq!(
        text(prints(
            dir.path(),
            &["sort", "--format", "fasta", "--key", "length", "--top", "2", "in.fa"]
        )),
        [one, twice].concat()
    );
}

#[test]
fn a_view_of_sequences_is_read_in_parts() {
    let dir = folder();
    fs::write(dir.path().join("in.fa"), FASTA).expect("written");
    prints(
        dir.path(),
        &["sort", "--format", "fasta", "--key", "length", "in.fa", "--view", "v.view"],
    );
    let cat = |options: &[&str]| text(prints(dir.path(), &[&["cat", "v.view"], options].concat()));
    let all = [">s1\n", ">s10 twice\nA\n", ">s9 nine\r\nGG\r\n\r\n", ">s10 ten\nACGT\nAC\n"];
    assert_eq!(cat(&[]), all.concat());
    assert_eq!(cat(&["--records", "1..3"]), all[1..3].concat());
    assert_eq!(cat(&["--records", "3.."]), all[3]);
    assert_eq!(cat(&["--from-key", "2"]), all[2..].concat());
    assert_eq!(cat(&["--from-key", "2", "--head", "9"]), all[2..].concat());
    assert_eq!(cat(&["--from-key", "1", "--to-key", "6", "--head", "1"]), all[1]);
    assert_eq!(
        fails(dir.path(), &["cat", "v.view", "--from-key", "x"]),
        "--from-key: a length is a number; use --records or --bytes"
    );
    let info = text(prints(dir.path(), &["info", "v.view"]));
    for line in ["format        fasta\n", "order         --key length\n", "records       4\n"] {
        assert!(info.contains(line), "{info}");
    }
    let told = text(prints(dir.path(), &["verify", "v.view"]));
    assert!(
        told.starts_with("records         4\n") && told.ends_with("sorted          yes\n"),
        "{told}"
    );
    prints(dir.path(), &["materialize", "v.view", "-o", "out.fa"]);
    assert_eq!(text(fs::read(dir.path().join("out.fa")).expect("there")), all.concat());
}

#[test]
fn a_check_names_the_first_header_out_of_order() {
    let dir = folder();
    fs::write(dir.path().join("in.fa"), FASTA).expect("written");
    let arguments = ["verify", "--format", "fasta", "--key", "length:r", "in.fa"];
    let told = text(prints(dir.path(), &arguments));
    assert!(told.starts_with("records         4\nbytes           50\n"), "{told}");
    let check = ["sort", "-c", "--format", "fasta", "--key", "id", "in.fa"];
    let output = merganser(dir.path(), &check).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "merganser: in.fa:3: disorder: >s10 twice\n");
}

#[test]
fn what_is_no_sequence_is_refused_and_nothing_is_left() {
    let dir = folder();
    for (format, bytes, expected) in [
        (
            "fasta",
            &b"ACGT\n>a\nA\n"[..],
            "in: at byte 0: a FASTA record begins with '>', and this text is before the first one; repair the input or choose another format",
        ),
        (
            "fastq",
            b"@a\nAC\n+\nI",
            "in: at byte 0: its last record has fewer letters of quality than of sequence; repair the input or choose another --format",
        ),
        (
            "fastq",
            b"@a\nA\n+\nI\n@b\nAC\n",
            "in: at byte 9: its last record is cut before its '+' line; repair the input or choose another --format",
        ),
        (
            "fastq",
            b"@a\nA\n+\nI\nno\n",
            "in: at byte 9: a FASTQ record begins with '@', and this line does not; repair the input or choose another format",
        ),
    ] {
        fs::write(dir.path().join("in"), bytes).expect("written");
        for target in ["-o", "--view"] {
            let arguments = ["sort", "--format", format, "in", target, "out"];
            assert_eq!(fails(dir.path(), &arguments), expected);
            assert_eq!(names(dir.path()), ["in"]);
        }
    }
    let table: &[(&[&str], &str)] = &[
        (&["--key", "name"], "--key 'name': a key is id, header, length or sequence"),
        (&["--key", "length:n"], "--key 'length:n': 'n' is out of place; this key takes :r"),
        (&["-n"], "-n has no meaning for sequences without --key"),
        (&["-z"], "-z: only with --format lines"),
        (&["-t,"], "-t: only with --format lines or csv"),
    ];
    for (options, expected) in table {
        let arguments = [&["sort", "--format", "fasta", "in"], *options].concat();
        assert_eq!(fails(dir.path(), &arguments), *expected);
    }
    let map = ["map", "sample", "--records", "1", "--format", "fasta", "in"];
    assert_eq!(
        fails(dir.path(), &map),
        "--format: SSDlets take lines, csv, fixed:N or keyed; sequences are for sort and verify"
    );
}

#[test]
fn a_consumed_fasta_file_is_sorted_into_its_own_space() {
    let dir = folder();
    prints(dir.path(), &["generate", "--format", "fasta", "--records", "3000", "-o", "in.fa"]);
    let options = ["--format", "fasta", "--key", "length", "--key", "id"];
    let expected = prints(dir.path(), &[&["sort", "in.fa"], &options[..]].concat());
    let consume = ["sort", "in.fa", "-o", "out.fa", "--consume", "--memory", "16M", "--quiet"];
    prints(dir.path(), &[&consume[..], &options].concat());
    assert!(fs::read(dir.path().join("out.fa")).expect("there") == expected);
    assert_eq!(names(dir.path()), ["in.fa.truth.tsv", "out.fa"]);
}

#[test]
fn strategies_and_standard_input_give_the_same_bytes() {
    let dir = folder();
    let made = [
        "generate",
        "--format",
        "fasta",
        "--alphabet",
        "protein",
        "--records",
        "40K",
        "-o",
        "in.fa",
    ];
    prints(dir.path(), &made);
    let sort = |options: &[&str]| {
        let arguments = ["sort", "--format", "fasta", "--key", "id", "--memory", "12M"];
        prints(dir.path(), &[&arguments, options].concat())
    };
    let merged = sort(&["in.fa", "--strategy", "merge"]);
    assert!(sort(&["in.fa", "--strategy", "distribute"]) == merged);
    let file = fs::File::open(dir.path().join("in.fa")).expect("there");
    let mut piped = std::process::Command::new("cat")
        .stdin(file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut command = merganser(dir.path(), &["sort", "--format", "fasta", "--key", "id"]);
    let output = command.stdin(piped.stdout.take().expect("piped")).output().expect("it starts");
    assert!(piped.wait().expect("it ends").success());
    assert!(output.stdout == merged, "{}", stderr(&output));
    let sums = |input: &str| {
        let told = ["verify", "--format", "fasta", "--key", "header", input];
        let output = merganser(dir.path(), &told).output().expect("it starts");
        let table = text(output.stdout);
        table.lines().filter(|line| line.starts_with("checksum")).collect::<String>()
    };
    fs::write(dir.path().join("sorted.fa"), &merged).expect("written");
    assert_eq!(sums("in.fa"), sums("sorted.fa"));
}

#[test]
fn generated_sequences_come_with_the_truth() {
    let dir = folder();
    let arguments = ["generate", "--format", "fasta", "--records", "2000", "--seed", "3"];
    let printed = prints(dir.path(), &arguments);
    prints(dir.path(), &[&arguments[..], &["-o", "a.fa", "--threads", "3"]].concat());
    assert!(fs::read(dir.path().join("a.fa")).expect("there") == printed);
    assert_eq!(names(dir.path()), ["a.fa", "a.fa.truth.tsv"]);
    let table = text(fs::read(dir.path().join("a.fa.truth.tsv")).expect("there"));
    let header = "id\tfamily\tcopies\tcopy\tancestor_letters\tfrom\tto\tstrand\trate";
    assert_eq!(table.lines().next(), Some(header));
    let sequences = text(printed);
    let ids = sequences.lines().filter_map(|line| line.strip_prefix('>')?.split(' ').next());
    let told = table.lines().skip(1).filter_map(|row| row.split('\t').next());
    assert!(ids.eq(told));
    prints(dir.path(), &[&arguments[..], &["-o", "b.fa", "--truth", "t"]].concat());
    assert_eq!(names(dir.path()), ["a.fa", "a.fa.truth.tsv", "b.fa", "t"]);
    assert_eq!(text(fs::read(dir.path().join("t")).expect("there")), table);
}

/// B2: makeblastdb, seqkit and samtools take them.
#[test]
fn blank_lines_before_the_first_record_are_taken() {
    let dir = folder();
    for (format, records) in
        [("fasta", [">b\nAC\n", ">a\nGT\n"]), ("fastq", ["@b\nAC\n+\nII\n", "@a\nGT\n+\nII\n"])]
    {
        let sorted = format!("{}{}", records[1], records[0]);
        for blanks in ["\n", "\r\n", "\n\n\r\n\n", &"\n".repeat(5000)] {
            let text = format!("{blanks}{}", records.concat());
            fs::write(dir.path().join("in"), &text).expect("written");
            let words = ["--format", format, "--key", "id"];
            let of = |before: &[&str]| prints(dir.path(), &[before, &words].concat());
            assert_eq!(of(&["sort", "in"]), sorted.as_bytes(), "{format} {blanks:?}");
            fs::write(dir.path().join("sorted"), format!("{blanks}{sorted}")).expect("written");
            of(&["sort", "-c", "sorted"]);
            let told = String::from_utf8(of(&["verify", "sorted"])).expect("UTF-8");
            assert!(told.contains("records         2\n"), "{told}");
            let merged = of(&["sort", "-m", "sorted", "sorted"]);
            assert_eq!(merged.len(), 2 * sorted.len());
            of(&["sort", "in", "--view", "v.view"]);
            assert_eq!(prints(dir.path(), &["cat", "v.view"]), sorted.as_bytes());
            fs::remove_dir_all(dir.path().join("v.view")).expect("there");
            let parts = ["--stage", "a:cat", "--partitions", "9", "-o", "out"];
            prints(dir.path(), &[&["pipeline", "in", "--format", format], &parts[..]].concat());
            assert_eq!(fs::read(dir.path().join("out")).expect("there"), text.as_bytes());
        }
        fs::write(dir.path().join("in"), "\n\n").expect("written");
        assert_eq!(prints(dir.path(), &["sort", "--format", format, "in"]), b"");
        fs::write(dir.path().join("in"), format!("\n\nx\n{}", records[0])).expect("written");
        let told = fails(dir.path(), &["sort", "--format", format, "in"]);
        assert!(told.starts_with("in: at byte 2: "), "{told}");
    }
}

//! Each SSDlet through the command, against what a few lines of Rust or a known program say.

use std::process::Command;

use super::{map, text, tsv, words};
use crate::harness::{Chance, Folder, fails, merganser, prints};

#[test]
fn wordcount_is_what_sort_and_uniq_count() {
    let folder = Folder::new();
    let text = text(&mut Chance::new(), 200_000, 500);
    let input = folder.write("input", &text);
    let found = map(&["wordcount"], &[&input]);
    assert!(found == tsv(&words(&text)));
    let script =
        r"tr -s ' \t' '\n' < $0 | grep -a . | sort | uniq -c | sed -E 's/^ *([0-9]+) (.*)/\2\t\1/'";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(&input).env("LC_ALL", "C");
    assert!(found == prints(&mut shell));
    let letters =
        map(&["wordcount", "--rule", "letters"], &[folder.write("odd", b"It's 1 it's,x\n")]);
    assert_eq!(String::from_utf8_lossy(&letters), "IT'S\t2\nX\t1\n");
}

#[test]
fn match_is_what_grep_finds() {
    let folder = Folder::new();
    let text = text(&mut Chance::new(), 200_000, 300);
    let input = folder.write("input", &text);
    let keys = folder.write("keys", b"w12\nwa\nw7f w\n");
    let grep = |words: &[&str]| {
        let mut grep = Command::new("grep");
        grep.arg("-a").args(words).arg(&input).env("LC_ALL", "C");
        prints(&mut grep)
    };
    let keys = keys.to_str().expect("UTF-8");
    assert!(map(&["match", "--keys", keys], &[&input]) == grep(&["-F", "-f", keys]));
    assert!(map(&["match", "--key", "W1", "-i"], &[&input]) == grep(&["-F", "-i", "w1"]));
    assert!(map(&["match", "--key", "w1", "-v"], &[&input]) == grep(&["-v", "-F", "w1"]));
    let pattern = "^w[0-9]+ w1[a-f]";
    assert!(map(&["match", "--regex", pattern], &[&input]) == grep(&["-E", pattern]));
    let counted = map(&["match", "--key", "w12", "--key", "nothing", "--count"], &[&input]);
    let lines = grep(&["-F", "w12"]).iter().filter(|byte| **byte == b'\n').count();
    let counted = String::from_utf8(counted).expect("UTF-8");
    assert!(counted.lines().any(|line| line == format!("w12\t{lines}")), "{counted}");
}

#[test]
fn tables_are_filtered_and_projected() {
    let folder = Folder::new();
    let rows = "city,amount,note\nUlm,5,\"a, b\"\nRom,70,x\nUlm,100,\"two\nlines\"\n";
    let input = folder.write("input", rows.as_bytes());
    let project = map(&["project", "--header", "--columns", "note,1"], &[&input]);
    assert_eq!(
        String::from_utf8_lossy(&project),
        "note,city\n\"a, b\",Ulm\nx,Rom\n\"two\nlines\",Ulm\n"
    );
    let filter = |conditions: &[&str]| {
        let mut words = vec!["filter", "--header"];
        conditions.iter().for_each(|condition| words.extend(["--where", condition]));
        String::from_utf8(map(&words, &[&input])).expect("UTF-8")
    };
    assert_eq!(
        filter(&["amount > 10", "city = Ulm"]),
        "city,amount,note\nUlm,100,\"two\nlines\"\n"
    );
    assert_eq!(filter(&["note contains a, b"]), "city,amount,note\nUlm,5,\"a, b\"\n");
    let missing =
        merganser(["map", "project", "--header", "--columns", "missing"]).arg(&input).output();
    let said = String::from_utf8(missing.expect("it starts").stderr).expect("UTF-8");
    assert!(said.contains("missing"), "{said}");
}

#[test]
fn histograms_and_sequences_count() {
    let folder = Folder::new();
    let numbers = folder.write("numbers", b"1\n12\n3\n-5\n19\n");
    let found = map(&["histogram", "--width", "10"], &[&numbers]);
    assert_eq!(String::from_utf8_lossy(&found), "-10\t1\n0\t2\n10\t2\n");
    let bytes = map(&["histogram", "--of", "bytes"], &[folder.write("bytes", b"aab\n")]);
    assert_eq!(String::from_utf8_lossy(&bytes), "10\t1\n97\t2\n98\t1\n");
    let text = folder.write("text", b"a b a b\na b\n");
    let found = map(&["sequence-count", "--length", "2"], &[&text]);
    assert_eq!(String::from_utf8_lossy(&found), "a b\t3\nb a\t1\n");
}

#[test]
fn records_name_their_documents() {
    let folder = Folder::new();
    let documents = folder.write("documents", b"D1\ta b a b\nD2\ta b c\nno words\n");
    let of = |words: &[&str]| String::from_utf8(map(words, &[&documents])).expect("UTF-8");
    let sequences = of(&["sequence-count", "--length", "2", "--document", "field"]);
    assert_eq!(sequences, "a|b|D1\t2\na|b|D2\t1\nb|a|D1\t1\nb|c|D2\t1\n");
    assert_eq!(of(&["inverted-index"]), "a\tD1\na\tD2\nb\tD1\nb\tD2\nc\tD2\n");
    assert_eq!(of(&["term-vector"]), "D1\ta:2 b:2\nD2\ta:1 b:1 c:1\n");
    assert_eq!(of(&["occurrences", "--text", "a b"]), "a b\t3\n");
    let counted = folder.write("counted", b"a|b|D1\t2\na|b|D2\t1\n");
    let ranked = map(&["ranked-inverted-index"], &[&counted]);
    assert_eq!(String::from_utf8_lossy(&ranked), "a|b\t1|D2\na|b\t2|D1\n");
    let ratings = folder.write("ratings", b"7:1_5,2_5,3_4\n8:1_1\n");
    let found = map(&["histogram-ratings"], &[&ratings]);
    assert_eq!(String::from_utf8_lossy(&found), "1\t1\n4\t1\n5\t2\n");
    let found = map(&["histogram-movies"], &[&ratings]);
    assert_eq!(String::from_utf8_lossy(&found), "1.5\t1\n5.0\t1\n");
}

#[test]
fn terms_name_their_documents() {
    let folder = Folder::new();
    folder.write("one", b"x y x\n");
    folder.write("two", b"y\n");
    let mut command = merganser(["map", "terms", "one", "two"]);
    let found = prints(command.current_dir(folder.path()));
    // A key is a word, a tab and a document; a tab in a key is shown as \t.
    assert_eq!(String::from_utf8_lossy(&found), "x\\tone\t2\ny\\tone\t1\ny\\ttwo\t1\n");
}

#[test]
fn samples_are_records_of_the_input() {
    let folder = Folder::new();
    let lines: Vec<u8> = (0..10_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    let input = folder.write("input", &lines);
    let all: Vec<_> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    let part = map(&["sample", "--fraction", "0.1", "--seed", "7"], &[&input]);
    let part: Vec<_> = part.split_inclusive(|byte| *byte == b'\n').collect();
    assert!((800..1200).contains(&part.len()), "{}", part.len());
    let mut rest = all.iter();
    assert!(part.iter().all(|line| rest.any(|other| other == line)), "in the order of the input");
    for threads in ["1", "3"] {
        let exact = map(&["sample", "--records", "50", "--threads", threads], &[&input]);
        let mut exact: Vec<_> = exact.split_inclusive(|byte| *byte == b'\n').collect();
        assert!(exact.iter().all(|line| all.contains(line)));
        exact.sort_unstable();
        exact.dedup();
        assert_eq!(exact.len(), 50);
    }
    // Records of csv keep the header row, however they are chosen.
    let table = folder.write("table.csv", b"id,name\n1,\"a\nb\"\n2,c\n3,d\n");
    for amount in [["--fraction", "1"], ["--records", "9"]] {
        let found = map(&[&["sample", "--header"][..], &amount].concat(), &[&table, &table]);
        let rows = found.strip_prefix(b"id,name\n").expect("the header row comes first");
        assert_eq!(rows.len(), 2 * b"1,\"a\nb\"\n2,c\n3,d\n".len(), "and once");
    }
    let none = folder.write("none.csv", b"id,name\n");
    assert_eq!(map(&["sample", "--header", "--records", "9"], &[&none]), b"id,name\n");
    let mut view = merganser(["map", "sample", "--records", "5", "--view"]);
    let sentence = fails(view.arg(folder.at("x.view")).arg(&input));
    assert!(sentence.starts_with("--view: sample"), "{sentence}");
}

/// 2 x 3 times 3 x 2, as raw files and with NumPy's header.
#[test]
fn matrices_are_multiplied() {
    let folder = Folder::new();
    let bytes = |numbers: &[f64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let a = folder.write("a", &bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let b = folder.write("b", &bytes(&[7.0, 8.0, 9.0, 10.0, 11.0, 12.0]));
    let c = folder.at("c");
    let mut command = merganser(["map", "matrix", "--raw", "f64:2x3", "--raw", "f64:3x2"]);
    prints(command.arg(&a).arg(&b).arg("-o").arg(&c));
    assert_eq!(std::fs::read(&c).expect("there"), bytes(&[58.0, 64.0, 139.0, 154.0]));
    let npy = |shape: &str, numbers: &[f64]| {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend_from_slice(format!("{text:<117}\n").as_bytes());
        file.extend(bytes(numbers));
        file
    };
    folder.write("a.npy", &npy("(2, 3)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    folder.write("b.npy", &npy("(3, 2)", &[7.0, 8.0, 9.0, 10.0, 11.0, 12.0]));
    let mut command = merganser(["map", "matrix", "a.npy", "b.npy", "-o", "c.npy"]);
    prints(command.current_dir(folder.path()));
    let found = std::fs::read(folder.at("c.npy")).expect("there");
    assert!(
        found == npy("(2, 2)", &[58.0, 64.0, 139.0, 154.0]),
        "{}",
        String::from_utf8_lossy(&found)
    );
    let fits =
        |words: &[&str]| fails(merganser(["map", "matrix"]).args(words).current_dir(folder.path()));
    assert!(fits(&["a.npy", "a.npy", "-o", "d"]).contains("3 columns"), "shapes");
    assert!(fits(&["a.npy", "b.npy"]).ends_with("add -o FILE"));
    assert!(fits(&["a.npy", "-o", "d"]).contains("not 1"));
    assert!(fits(&["a", "b", "-o", "d"]).contains("not a .npy file"));
    assert!(!folder.at("d").exists());
}

#[test]
fn what_can_not_be_is_one_sentence() {
    let folder = Folder::new();
    let input = folder.write("input", b"a b\n");
    let refused = |words: &[&str]| fails(merganser(["map"]).args(words).arg(&input));
    assert!(refused(&["wordcounts"]).contains("choose filter, histogram, histogram-movies"));
    assert!(refused(&["match"]).contains("keys"));
    assert!(refused(&["match", "--regex", "("]).starts_with("match: "));
    assert!(refused(&["match", "--key", "a", "--top", "3"]).starts_with("--top: is for rows"));
    assert!(refused(&["match", "--key", "a", "--view", "x"]).starts_with("--view: is for rows"));
    assert!(refused(&["wordcount", "--args", "{\"x\":1}"]).contains("\"x\""));
    assert!(refused(&["histogram"]).contains("input: at byte 0"));
    assert!(refused(&["occurrences"]).starts_with("occurrences: --text: it is missing"));
    assert_eq!(folder.names(), ["input"]);
}

//! The rows of a result: their forms, their order, and views of them.

use std::path::Path;
use std::process::Command;

use super::{SMALL_MEMORY, by_count, many_words, map, text, tsv, words};
use crate::harness::{Chance, Folder, damage, fails, merganser, names, prints};

#[test]
fn top_rows_and_rows_by_value() {
    let folder = Folder::new();
    let text = text(&mut Chance::new(), 300_000, 2000);
    let input = folder.write("input", &text);
    let counts = words(&text);
    let sorted = by_count(&counts);
    assert!(map(&["wordcount", "--order", "value"], &[&input]) == tsv(sorted.iter().copied()));
    for rows in [0, 1, 20, 100_000] {
        let typed = rows.to_string();
        let found = map(&["wordcount", "--top", &typed], &[&input]);
        assert!(found == tsv(sorted.iter().copied().take(rows)), "--top {rows}");
        let mut by_key: Vec<_> = sorted.iter().copied().take(rows).collect();
        by_key.sort();
        let found = map(&["wordcount", "--top", &typed, "--order", "key"], &[&input]);
        assert!(found == tsv(by_key), "--top {rows} --order key");
    }
}

#[test]
fn rows_by_value_may_be_larger_than_memory() {
    let folder = Folder::new();
    let (input, text) = many_words(&folder);
    let counts = words(&text);
    let memory = ["--memory", "32M", "--threads", "2"];
    let found = map(&[&["wordcount", "--order", "value"], &memory[..]].concat(), &[&input]);
    assert!(found == tsv(by_count(&counts)));
    let refused = merganser(["map", "wordcount", "--top", "10M"]).args(memory).arg(&input).output();
    let said = String::from_utf8(refused.expect("it starts").stderr).expect("UTF-8");
    assert!(said.contains("--top: the largest rows take more"), "{said}");
}

#[test]
fn forms_are_read_by_their_readers() {
    let folder = Folder::new();
    let input = folder.write("input", b"a,b a,b \"q\" \\x caf\xc3\xa9 \xff\n");
    let form = |form: &str| map(&["wordcount", "--output-format", form], &[&input]);
    assert_eq!(form("tsv"), b"\"q\"\t1\n\\\\x\t1\na,b\t2\ncaf\xc3\xa9\t1\n\xff\t1\n");
    assert_eq!(form("csv"), b"\"\"\"q\"\"\",1\n\\x,1\n\"a,b\",2\ncaf\xc3\xa9,1\n\xff,1\n");
    let jsonl = String::from_utf8(form("jsonl")).expect("UTF-8");
    let rows: Vec<serde_json::Value> =
        jsonl.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows[3], serde_json::json!({ "key": "café", "value": 1 }));
    assert_eq!(rows[4], serde_json::json!({ "key": { "hex": "ff" }, "value": 1 }));
    // Length-prefixed records are a keyed input.
    let keyed = folder.write("keyed", &form("keyed"));
    prints(merganser(["verify", "--format", "keyed"]).arg(keyed));
}

/// A view that spilled, and one that did not.
#[test]
fn a_view_is_read_like_the_rows() {
    let folder = Folder::new();
    let (input, text) = many_words(&folder);
    let counts = words(&text);
    let rows = tsv(&counts);
    for (name, memory) in [("spilled.view", SMALL_MEMORY), ("whole.view", "--memory=1G")] {
        let view = folder.at(name);
        let how = [memory, "--threads", "2"];
        prints(merganser(["map", "wordcount"]).args(how).arg(&input).arg("--view").arg(&view));
        read(&folder, &view, &rows);
        let info = prints(merganser(["info", "--json"]).arg(&view));
        let info: serde_json::Value = serde_json::from_slice(&info).expect("JSON");
        let spilled = name == "spilled.view";
        assert_eq!(info["ssdlet"], "wordcount");
        assert_eq!((&info["combine"], &info["reduced"]), (&"sum".into(), &(!spilled).into()));
        let known = if spilled { serde_json::Value::Null } else { counts.len().into() };
        assert_eq!(info["rows"], known);
        if spilled {
            for command in ["mount", "export"] {
                let mut refused = merganser([command]);
                refused.arg(&view);
                match command {
                    "mount" => refused.arg(folder.path()),
                    _ => refused.arg("--nbd").arg(folder.at("socket")),
                };
                let sentence = fails(&mut refused);
                assert!(sentence.contains("merganser materialize"), "{sentence}");
            }
        }
        let sentence = fails(merganser(["map", "wordcount"]).arg(&input).arg("--view").arg(&view));
        assert!(sentence.contains("exists"), "{sentence}");
        let damaged = damage(&view);
        let output = merganser(["cat"]).arg(&view).output().expect("it starts");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains(&damaged), "{said}");
    }
    let checks = |name: &str| prints(merganser(["info", "--json"]).arg(folder.at(name)));
    assert_ne!(checks("spilled.view"), checks("whole.view"));
}

/// Reads a view in all ways.
fn read(folder: &Folder, view: &Path, rows: &[u8]) {
    let cat = |words: &[&str]| prints(merganser(["cat"]).arg(view).args(words));
    assert!(cat(&[]) == rows);
    let lines: Vec<_> = rows.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(cat(&["--head", "7"]) == lines[..7].concat());
    let wanted: Vec<_> = lines
        .iter()
        .filter(|line| {
            (&b"w1f"[..]..&b"w2"[..]).contains(&line.split(|b| *b == b'\t').next().expect("a key"))
        })
        .copied()
        .collect();
    assert!(cat(&["--from-key", "w1f", "--to-key", "w2"]) == wanted.concat());
    assert!(cat(&["--from-key", "w1f", "--head", "3"]) == wanted[..3].concat());
    assert!(cat(&["--to-key", "a"]).is_empty());
    let refused = fails(merganser(["cat", "--records", "1..2"]).arg(view));
    assert!(refused.starts_with("--records: the rows of a map's result"), "{refused}");
    let out = folder.at("out");
    prints(merganser(["materialize"]).arg(view).arg("-o").arg(&out));
    assert!(std::fs::read(&out).expect("there") == rows);
    let csv = cat(&["--output-format", "csv", "--head", "1"]);
    assert_eq!(csv.iter().filter(|byte| **byte == b',').count(), 1);
    let refused = fails(merganser(["materialize", "--consume"]).arg(view).arg("-o").arg(&out));
    assert!(refused.starts_with("--consume: "), "{refused}");
    let verified = prints(merganser(["verify", "--json"]).arg(view));
    let verified: serde_json::Value = serde_json::from_slice(&verified).expect("JSON");
    assert_eq!((&verified["records"], &verified["sorted"]), (&lines.len().into(), &true.into()));
    prints(merganser(["info", "--verify"]).arg(view));
}

#[test]
fn a_closed_pipe_ends_a_map_quietly() {
    let folder = Folder::new();
    let (input, _) = many_words(&folder);
    let mut shell = Command::new("bash");
    let script = r#""$0" map wordcount "$1" | head -n 2; echo "${PIPESTATUS[0]}""#;
    shell.args(["-c", script]).arg(crate::harness::binary()).arg(&input);
    let output = shell.output().expect("it starts");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.ends_with(b"\n0\n"));
}

#[test]
fn a_report_and_a_plan_name_what_counts() {
    let folder = Folder::new();
    let (input, text) = many_words(&folder);
    for report in ["report.json", "report.html"] {
        let mut command = merganser(["map", "wordcount", SMALL_MEMORY, "--report"]);
        prints(command.arg(folder.at(report)).arg(&input).arg("-o").arg(folder.at("out")));
    }
    let data = std::fs::read(folder.at("report.json")).expect("there");
    let data: serde_json::Value = serde_json::from_slice(&data).expect("JSON");
    assert_eq!((&data["command"], &data["input_bytes"]), (&"map".into(), &text.len().into()));
    assert!(data["map"]["spills"].as_u64().is_some_and(|spills| spills > 0), "{}", data["map"]);
    let page = std::fs::read_to_string(folder.at("report.html")).expect("there");
    assert!(page.contains("Mapped"), "a page");
    let mut explain = merganser(["map", "wordcount", "--explain", "--top", "3", SMALL_MEMORY]);
    let plan = String::from_utf8(prints(explain.arg(&input))).expect("UTF-8");
    for word in ["wordcount", "workers", "partition", "spills", "the 3 rows"] {
        assert!(plan.contains(word), "{word}: {plan}");
    }
    assert_eq!(names(folder.path()), ["input", "out", "report.html", "report.json"]);
}

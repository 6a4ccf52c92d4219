//! SSDlets in WebAssembly, as their authors meet them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Folder, binary, fails, merganser, prints, stderr};

/// A guest whose every line is a key, as its place in the chunk.
const LINES: &str = r#"
    (import "mgs" "emit_spans" (func $spans (param i32 i32)))
    (memory (export "memory") 1)
    (func (export "mgs_abi") (result i32) i32.const 1)
    (func (export "mgs_buffer") (param $bytes i32) (result i32)
        (drop (memory.grow (i32.add (i32.shr_u (local.get $bytes) (i32.const 16)) (i32.const 2))))
        i32.const 1024)
    (func (export "mgs_chunk") (param $chunk i32) (param $bytes i32) (result i32) (local $at i32) (local $from i32)
        (loop $next
            (if (i32.eq (i32.load8_u (i32.add (local.get $chunk) (local.get $at))) (i32.const 10))
                (then
                    (i32.store (i32.const 8) (local.get $from))
                    (i32.store (i32.const 12) (i32.sub (local.get $at) (local.get $from)))
                    (call $spans (i32.const 8) (i32.const 1))
                    (local.set $from (i32.add (local.get $at) (i32.const 1)))))
            (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (local.get $bytes))))
        i32.const 0)"#;

fn section(name: &str) -> String {
    let json = r#"{"abi": 1, "name": "NAME", "about": "each line", "input": "lines", "memory": 2097152,
        "output": {"keyed": {"key": "text", "value": "i64", "combine": "sum"}}}"#;
    let json = json.replace("NAME", name).replace('\n', " ").replace('"', "\\\"");
    format!("(@custom \"merganser.ssdlet\" \"{json}\")")
}

fn module(folder: &Folder, name: &str, body: &str) -> PathBuf {
    let text = format!("(module {body} {})", section(name));
    let bytes = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"));
    folder.write(&format!("{name}.wasm"), &bytes)
}

fn check(file: &PathBuf, options: &[&str]) -> Command {
    let mut command = merganser(["ssdlet", "check"]);
    command.arg(file).args(options);
    command
}

#[test]
fn a_check_tells_everything_about_a_good_one() {
    let folder = Folder::new();
    let file = module(&folder, "lines", LINES);
    let text = String::from_utf8(prints(&mut check(&file, &[]))).expect("text");
    for line in [
        "name        lines\n",
        "input       lines\n",
        "output      text keys with i64 values, their sum\n",
        "memory      2097152 bytes for each worker\n",
        " bytes, made up\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    // The last line of the sample has no end, and one is longer than others.
    let long = "x".repeat(50_000);
    let sample = folder.write("sample", format!("a\nb\n{long}\na").as_bytes());
    let sample = sample.to_str().expect("text");
    let json = prints(&mut check(&file, &["--sample", sample, "--json"]));
    let found: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!((&found["rows"], &found["sample_bytes"]), (&3.into(), &50_007.into()));
    assert_eq!(found["sha256"].as_str().expect("digits").len(), 64);
    let per_byte = found["fuel_per_byte"].as_f64().expect("a number");
    assert!((5.0..40.0).contains(&per_byte), "{per_byte}");
    assert!(found["start_ns"].as_u64() > Some(0) && found["compile_ns"].as_u64() > Some(0));
}

#[test]
fn a_bad_one_is_one_sentence_that_names_the_file() {
    let folder = Folder::new();
    let trap = module(
        &folder,
        "trap",
        &LINES.replace("(local $from i32)", "(local $from i32) unreachable"),
    );
    let loops = module(
        &folder,
        "loops",
        &LINES.replace("(local $from i32)", "(local $from i32) (loop (br 0))"),
    );
    let fails = |file: &PathBuf, options: &[&str]| {
        let told = fails(&mut check(file, options));
        let path = file.display().to_string();
        told.strip_prefix(&format!("{path}: ")).unwrap_or_else(|| panic!("{told}")).to_owned()
    };
    assert!(
        fails(&trap, &[])
            .starts_with("trap: mgs_chunk gave up (an unreachable instruction) (bytes 0 to ")
    );
    assert!(fails(&loops, &["--fuel-per-byte", "10"]).contains("used up its fuel, 10 units"));
    let timed = ["--time-limit", "0.1", "--fuel-per-byte", "1000000000"];
    assert!(fails(&loops, &timed).contains("mgs_chunk took longer than 100ms"));
    let good = module(&folder, "good", LINES);
    assert_eq!(
        fails(&good, &["--args", "x"]),
        "good: it takes no arguments (it exports no mgs_args)"
    );
    let told = fails(&good, &["--guest-memory", "1M"]);
    assert_eq!(told, "good: it declares 2097152 bytes of memory for a worker; 1048576 is the most");
    let text = folder.write("text.wasm", b"(module)");
    assert_eq!(fails(&text, &[]), "the module is no WebAssembly: it does not begin with \\0asm");
    let long = folder.write("long.wasm", &vec![0; (4 << 20) + 1]);
    assert!(fails(&long, &[]).starts_with("the module has 4194305 bytes, and 4194304 is the most"));
    assert_eq!(fails(&folder.at("missing.wasm"), &[]), "No such file or directory");
    let told = crate::harness::fails(&mut check(&good, &["--sample", "/missing"]));
    assert_eq!(told, "/missing: No such file or directory");
}

/// A guest's memory is address space that is reserved and not used, unless there is a limit of that.
#[test]
fn it_works_with_little_address_space() {
    let folder = Folder::new();
    let file = module(&folder, "lines", LINES);
    let script = "ulimit -v 2097152 && exec \"$0\" ssdlet check \"$1\" --json";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(binary())
        .arg(&file)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let limited: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let free: Value =
        serde_json::from_slice(&prints(&mut check(&file, &["--json"]))).expect("JSON");
    // Checked accesses cost no fuel: the meter tells the same.
    for of in ["rows", "fuel", "sha256"] {
        assert_eq!(limited[of], free[of], "{of}");
    }
}

#[test]
fn a_project_is_made_once_and_whole() {
    let folder = Folder::new();
    for (language, files) in [
        ("c", &["README.md", "build.sh", "guest.c", "mgs.h"][..]),
        ("rust", &["Cargo.toml", "README.md", "build.sh", "src"]),
        (
            "assemblyscript",
            &["README.md", "build.sh", "index.ts", "package.json", "section.json", "section.mjs"],
        ),
    ] {
        let dir = folder.at(&format!("my-{language}"));
        let new = || {
            let mut command = merganser(["ssdlet", "new", "--lang", language]);
            command.arg(&dir);
            command
        };
        let said = String::from_utf8(prints(&mut new())).expect("text");
        assert!(said.contains(&format!("a project for the SSDlet my-{language}")), "{said}");
        assert_eq!(crate::harness::names(&dir), files);
        let mode = fs::metadata(dir.join("build.sh")).expect("there").permissions().mode();
        assert_eq!(mode & 0o100, 0o100, "the script can be run");
        fs::write(dir.join("README.md"), "mine").expect("written");
        assert!(fails(&mut new()).ends_with(": it exists; choose another name"));
        assert_eq!(fs::read(dir.join("README.md")).expect("kept"), b"mine");
    }
    let told = fails(merganser(["ssdlet", "new", "--lang", "c"]).arg(folder.at("My Words")));
    assert!(told.contains("small letters"), "{told}");
    let told = fails(merganser(["ssdlet", "new", "--lang", "c"]).arg(folder.at("missing/words")));
    assert!(told.ends_with("No such file or directory"), "{told}");
    let told = fails(&mut merganser(["ssdlet", "new", "--lang", "cobol", "x"]));
    assert!(told.contains("cobol"), "{told}");
}

#[test]
fn lists_are_of_the_built_in_ones_or_of_a_folder() {
    let built_in = String::from_utf8(prints(&mut merganser(["ssdlet", "list"]))).expect("text");
    assert!(built_in.contains("wordcount       how often each word occurs\n"), "{built_in}");
    let folder = Folder::new();
    module(&folder, "lines", LINES);
    folder.write("bad.wasm", b"no module");
    folder.write("other.txt", b"");
    let list = |options: &[&str]| {
        prints(merganser(["ssdlet", "list"]).args(options).arg("--dir").arg(folder.path()))
    };
    let text = String::from_utf8(list(&[])).expect("text");
    assert!(text.contains("lines           each line\n  file          lines.wasm\n"), "{text}");
    assert!(
        text.contains("  file          bad.wasm\n  refused       the module is no WebAssembly"),
        "{text}"
    );
    let found: Value = serde_json::from_slice(&list(&["--json"])).expect("JSON");
    assert_eq!((&found[1]["name"], found.as_array().map(Vec::len)), (&"lines".into(), Some(2)));
    assert!(
        fails(&mut merganser(["ssdlet", "list", "--dir", "/missing"])).starts_with("/missing: ")
    );
}

#[test]
fn a_map_runs_it() {
    let folder = Folder::new();
    let file = module(&folder, "lines", LINES);
    let input = folder.write("input", b"b\na\nb\n\nlast");
    let map = |options: &[&str]| {
        let mut command = merganser(["map"]);
        command.arg(&file).arg(&input).args(options);
        command
    };
    let rows = prints(&mut map(&["--threads", "2"]));
    assert_eq!(String::from_utf8_lossy(&rows), "\t1\na\t1\nb\t2\nlast\t1\n");
    let path = file.display().to_string();
    let told = fails(&mut map(&["--args", "not JSON"]));
    assert_eq!(told, format!("{path}: lines: it takes no arguments (it exports no mgs_args)"));
    let trap = module(
        &folder,
        "trap",
        &LINES.replace("(local $from i32)", "(local $from i32) unreachable"),
    );
    let told = fails(merganser(["map"]).arg(&trap).arg(&input));
    assert!(told.starts_with("trap: mgs_chunk gave up"), "{told}");
    let told = fails(merganser(["map", "./missing.wasm"]).arg(&input));
    assert_eq!(told, "./missing.wasm: No such file or directory");
}

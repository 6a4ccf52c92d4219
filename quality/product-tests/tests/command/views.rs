//! A view's life: made, read in parts, verified, copied out, mounted, consumed.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::{fails, folder, merganser, names, prints, signal, stderr};

/// Lines in no order, and the same sorted.
fn numbers(dir: &Path) -> Vec<u8> {
    let numbers: Vec<u64> = (0..20_000).map(|n: u64| n * 7919 % 20_011).collect();
    let lines =
        |numbers: &[u64]| numbers.iter().map(|n| format!("{n:08} line\n")).collect::<String>();
    fs::write(dir.join("input"), lines(&numbers)).expect("written");
    let mut sorted = numbers;
    sorted.sort_unstable();
    lines(&sorted).into_bytes()
}

/// Makes `v.view` of [`numbers`].
fn view(dir: &Path) -> Vec<u8> {
    let sorted = numbers(dir);
    prints(dir, &["sort", "input", "--view", "v.view"]);
    sorted
}

#[test]
fn a_sorted_file_a_pipe_and_a_view_hold_the_same() {
    let dir = folder();
    let sorted = view(dir.path());
    assert!(prints(dir.path(), &["sort", "input"]) == sorted);
    assert!(prints(dir.path(), &["cat", "v.view"]) == sorted);
    prints(dir.path(), &["sort", "input", "-o", "input"]);
    assert!(fs::read(dir.path().join("input")).expect("there") == sorted, "onto the input itself");
    prints(dir.path(), &["materialize", "v.view", "-o", "copy"]);
    assert!(fs::read(dir.path().join("copy")).expect("there") == sorted);
    assert_eq!(names(dir.path()), ["copy", "input", "v.view"]);
}

#[test]
fn parts_of_a_view_are_parts_of_the_file() {
    let dir = folder();
    let sorted = view(dir.path());
    let line = 14;
    let cat = |options: &[&str]| prints(dir.path(), &[&["cat", "v.view"], options].concat());
    assert!(cat(&["--records", "100..120"]) == sorted[100 * line..120 * line]);
    assert!(cat(&["--records", "100..120", "--head", "3"]) == sorted[100 * line..103 * line]);
    assert!(cat(&["--records", "19990.."]) == sorted[19_990 * line..]);
    assert!(cat(&["--bytes", "5..1000"]) == sorted[5..1000]);
    assert!(cat(&["--head", "7"]) == sorted[..7 * line]);
    for at_end in [["--bytes", "280000.."], ["--records", "20000.."]] {
        assert!(cat(&at_end).is_empty());
    }
    for (range, told) in [
        (["--bytes", "1G.."], "--bytes: begins at 1073741824, and v.view has 280000 bytes"),
        (["--records", "20001.."], "--records: begins at 20001, and v.view has 20000 records"),
    ] {
        assert!(fails(dir.path(), &[&["cat", "v.view"], &range[..]].concat()).contains(told));
    }
    let upside_down = ["cat", "v.view", "--from-key", "5", "--to-key", "3"];
    assert!(fails(dir.path(), &upside_down).contains("--to-key: comes before --from-key"));
    let at = |key: &[u8]| sorted.chunks(line).position(|line| line >= key).expect("one") * line;
    let range = at(b"00000500")..at(b"00000600");
    assert!(cat(&["--from-key", "00000500", "--to-key", "00000600"]) == sorted[range.clone()]);
    assert!(cat(&["--from-key", "000005", "--head", "2"]) == sorted[range.start..][..2 * line]);
    assert!(cat(&["--to-key", "00000600"]) == sorted[..range.end]);
}

#[test]
fn keys_are_typed_as_they_stand_in_records() {
    let dir = folder();
    fs::write(dir.path().join("input"), "a:9\nb:10\nc:100\nd:-5\n").expect("written");
    prints(dir.path(), &["sort", "-t:", "-k2,2n", "input", "--view", "v.view"]);
    let cat = |options: &[&str]| {
        String::from_utf8(prints(dir.path(), &[&["cat", "v.view"], options].concat()))
            .expect("UTF-8")
    };
    assert_eq!(cat(&["--from-key", "10"]), "b:10\nc:100\n");
    assert_eq!(cat(&["--to-key", "010.0"]), "d:-5\na:9\n");
    fs::write(dir.path().join("rows"), "name,n\n\"x, y\",1\nb,2\na,3\n").expect("written");
    let csv =
        ["sort", "--format", "csv", "--header", "--key", "name:r", "rows", "--view", "rows.view"];
    prints(dir.path(), &csv);
    assert_eq!(prints(dir.path(), &["cat", "rows.view"]), b"name,n\n\"x, y\",1\nb,2\na,3\n");
    assert_eq!(prints(dir.path(), &["cat", "rows.view", "--from-key", "b"]), b"b,2\na,3\n");
    assert_eq!(prints(dir.path(), &["cat", "rows.view", "--to-key", "b"]), b"\"x, y\",1\n");
    // A column's name may itself be quoted, and contain separators.
    fs::write(dir.path().join("quoted"), "id,\"last, first\"\n1,b\n2,a\n3,c\n").expect("written");
    let key = ["--key", "last, first:r", "quoted", "--view", "quoted.view"];
    prints(dir.path(), &[&["sort", "--format", "csv", "--header"], &key[..]].concat());
    assert_eq!(prints(dir.path(), &["cat", "quoted.view", "--from-key", "b"]), b"1,b\n2,a\n");
}

#[test]
fn a_key_that_begins_inside_a_field_cannot_be_typed() {
    let dir = folder();
    fs::write(dir.path().join("input"), "x abcdefghijklmnop\n").expect("written");
    for (key, inside) in [("2.1", false), ("2.01,2", false), ("2.2", true), ("2.15", true)] {
        prints(dir.path(), &["sort", "-k", key, "input", "--view", "v.view"]);
        if inside {
            let error = fails(dir.path(), &["cat", "v.view", "--from-key", "o"]);
            assert!(error.contains("begins inside a field"), "{error}");
        } else {
            prints(dir.path(), &["cat", "v.view", "--from-key", "o"]);
        }
        fs::remove_dir_all(dir.path().join("v.view")).expect("removed");
    }
}

#[test]
fn keys_of_binary_records_are_typed_with_escapes() {
    let dir = folder();
    let records: Vec<u8> = [3u32, 300, 2, 70_000].iter().flat_map(|n| n.to_le_bytes()).collect();
    fs::write(dir.path().join("input"), records).expect("written");
    let sort = ["sort", "--format", "fixed:4", "--key", "0:4:u32le", "input", "--view", "v.view"];
    prints(dir.path(), &sort);
    let above = prints(dir.path(), &["cat", "v.view", "--from-key", r"\x04\0\0\0"]);
    assert_eq!(above, [300u32.to_le_bytes(), 70_000u32.to_le_bytes()].concat());
    let error = fails(dir.path(), &["cat", "v.view", "--from-key", "longer"]);
    assert_eq!(error, "--from-key: the key is longer than the record; use --records or --bytes");
}

#[test]
fn a_view_is_verified_and_described() {
    let dir = folder();
    view(dir.path());
    let of = |what: &str| String::from_utf8(prints(dir.path(), &["verify", what])).expect("UTF-8");
    prints(dir.path(), &["materialize", "v.view", "-o", "copy"]);
    assert_eq!(of("v.view"), of("copy"));
    let info =
        String::from_utf8(prints(dir.path(), &["info", "v.view", "--verify"])).expect("UTF-8");
    assert!(
        info.contains("records       20000\n") && info.contains("bytes         280000\n"),
        "{info}"
    );
    let json = prints(dir.path(), &["info", "v.view", "--json"]);
    assert!(String::from_utf8(json).expect("UTF-8").contains("\"records\": 20000"));
    let run = names(&dir.path().join("v.view"))
        .into_iter()
        .find(|name| name != "manifest")
        .expect("a run");
    let info = prints(dir.path(), &["info", &format!("v.view/{run}")]);
    assert!(String::from_utf8(info).expect("UTF-8").contains("kind          run\n"));
    let words = ["sort", "copy", "--view", "b.view", "--strategy", "distribute", "--memory", "16M"];
    prints(dir.path(), &words);
    let error = fails(dir.path(), &["info", "b.view/000000.buckets"]);
    assert!(error.ends_with("say nothing alone; name the view's folder"), "{error}");
    let error = fails(dir.path(), &["verify", "v.view", "-n"]);
    assert_eq!(error, "v.view: a view has a format and key of its own; leave out yours");
}

#[test]
fn a_damaged_view_is_an_error_that_names_the_file() {
    let dir = folder();
    view(dir.path());
    let folder = dir.path().join("v.view");
    let run = names(&folder).into_iter().find(|name| name != "manifest").expect("a run");
    let mut bytes = fs::read(folder.join(&run)).expect("there");
    bytes[10_000] ^= 1;
    fs::write(folder.join(&run), bytes).expect("written");
    for command in [&["cat", "v.view"][..], &["verify", "v.view"], &["info", "v.view", "--verify"]]
    {
        let output = merganser(dir.path(), command).output().expect("it starts");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(said.contains(&run) && said.contains("damaged at byte"), "{said}");
    }
}

#[test]
fn a_consumed_view_becomes_its_file() {
    let dir = folder();
    let sorted = view(dir.path());
    prints(dir.path(), &["materialize", "v.view", "-o", "copy", "--consume"]);
    assert!(fs::read(dir.path().join("copy")).expect("there") == sorted);
    assert_eq!(names(dir.path()), ["copy", "input"]);
}

#[test]
fn a_view_is_never_written_over_and_leftovers_go() {
    let dir = folder();
    view(dir.path());
    let error = fails(dir.path(), &["sort", "input", "--view", "v.view"]);
    assert_eq!(error, "v.view: exists; move it away or give --view another name");
    let leftover = dir.path().join(".w.view.unfinished");
    fs::create_dir(&leftover).expect("made");
    // A file that no command writes there is not removed.
    fs::write(leftover.join("precious"), "old").expect("written");
    let error = fails(dir.path(), &["sort", "input", "--view", "w.view"]);
    assert!(error.contains(".w.view.unfinished: holds 'precious', which no merganser"), "{error}");
    // Nothing says that the records of this run are anywhere else.
    fs::rename(leftover.join("precious"), leftover.join("000000.run")).expect("renamed");
    let error = fails(dir.path(), &["sort", "input", "--view", "w.view"]);
    assert!(error.contains("no file there says whether they are anywhere else"), "{error}");
    assert_eq!(fs::read(leftover.join("000000.run")).expect("there"), b"old");
    fs::rename(leftover.join("000000.run"), leftover.join("resume.new")).expect("renamed");
    let made = merganser(dir.path(), &["sort", "input", "--view", "w.view"]).output();
    let made = made.expect("it starts");
    assert!(made.status.success());
    let said = stderr(&made);
    assert!(said.ends_with("/.w.view.unfinished: left by a killed command, removed\n"), "{said}");
    assert_eq!(names(dir.path()), ["input", "v.view", "w.view"]);
    assert_eq!(names(&dir.path().join("v.view")).len(), names(&dir.path().join("w.view")).len());
}

#[test]
fn a_failed_command_leaves_nothing() {
    let dir = folder();
    fs::write(dir.path().join("short"), [0; 150]).expect("written");
    for output in [&["-o", "out"][..], &["--view", "out.view"]] {
        let error =
            fails(dir.path(), &[&["sort", "--format", "fixed:100", "short"], output].concat());
        assert!(error.starts_with("short: at byte 100"), "{error}");
        assert_eq!(names(dir.path()), ["short"]);
    }
    let error = fails(dir.path(), &["sort", "missing", "-o", "out"]);
    assert_eq!(error, "missing: No such file or directory");
    let error = fails(dir.path(), &["cat", "short"]);
    assert!(error.starts_with("short: "), "{error}");
}

#[test]
fn a_view_can_be_made_of_the_output_of_a_program() {
    let dir = folder();
    let mut generate = merganser(dir.path(), &["generate", "--records", "30K"]);
    let mut generate = generate.stdout(Stdio::piped()).spawn().expect("it starts");
    let sort =
        ["sort", "--format", "fixed:100", "--key", "0:10", "--memory", "16M", "--view", "g.view"];
    let output = merganser(dir.path(), &sort)
        .stdin(generate.stdout.take().expect("piped"))
        .output()
        .expect("it starts");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(generate.wait().expect("it ends").success());
    let table = String::from_utf8(prints(dir.path(), &["verify", "g.view"])).expect("UTF-8");
    assert!(
        table.contains("records         30000\n") && table.contains("sorted          yes"),
        "{table}"
    );
}

#[test]
fn an_interrupted_sort_leaves_nothing() {
    let dir = folder();
    for output in [&["-o", "out"][..], &["--view", "out.view"]] {
        let mut child = merganser(dir.path(), &[&["sort"], output].concat())
            .stdin(Stdio::piped())
            .spawn()
            .expect("it starts");
        let open = child.stdin.take().expect("piped");
        // It has opened its output before it polls its input; the handler is in place before that.
        let polls = || {
            let call = fs::read_to_string(format!("/proc/{}/syscall", child.id()));
            let number = call.unwrap_or_default().split(' ').next().and_then(|n| n.parse().ok());
            number.is_some_and(|n| [libc::SYS_poll, libc::SYS_ppoll].contains(&n))
        };
        while !polls() {
            std::thread::yield_now();
        }
        signal(&child, libc::SIGTERM);
        assert_eq!(child.wait().expect("it ends").code(), Some(143));
        assert!(names(dir.path()).is_empty(), "{:?}", names(dir.path()));
        drop(open);
    }
}

//! Parts of a view are the parts of the sorted file, and its size is known before it is read.

use std::process::Command;

use crate::harness::{
    Chance, Folder, fails, merganser, names, prints, small_memory, sorted_lines, view_of,
};

/// A view of several runs, and the sorted bytes.
fn fixture() -> (Folder, std::path::PathBuf, Vec<u8>, Chance) {
    let mut chance = Chance::new();
    let memory = small_memory();
    let content = chance.lines((memory * 2) as usize);
    let folder = Folder::new();
    let input = folder.write("input", &content);
    let view = view_of(&folder, &input, &["--memory", &memory.to_string()]);
    (folder, view, sorted_lines(&content), chance)
}

fn cat(view: &std::path::Path, range: [&str; 2]) -> Command {
    let mut command = merganser(["cat"]);
    command.arg(view).args(range);
    command
}

#[test]
fn any_range_is_a_part_of_the_whole() {
    let (folder, view, sorted, mut chance) = fixture();
    assert!(prints(merganser(["cat"]).arg(&view)) == sorted, "the whole view");
    let lines: Vec<_> = sorted.split_inclusive(|&b| b == b'\n').collect();
    let size = sorted.len() as u64;
    for _ in 0..20 {
        let (a, b) = (chance.below(size + 1), chance.below(size + 1));
        let (a, b) = (a.min(b), a.max(b).min(a.min(b) + 100_000));
        let bytes = prints(&mut cat(&view, ["--bytes", &format!("{a}..{b}")]));
        assert!(bytes == sorted[a as usize..b as usize], "--bytes {a}..{b}");

        let count = lines.len() as u64;
        let (a, b) = (chance.below(count + 1), chance.below(count + 1));
        let (a, b) = (a.min(b), a.max(b).min(a.min(b) + 1_000));
        let records = prints(&mut cat(&view, ["--records", &format!("{a}..{b}")]));
        assert!(records == lines[a as usize..b as usize].concat(), "--records {a}..{b}");

        let from: String = (0..3).map(|_| char::from(b'a' + chance.below(26) as u8)).collect();
        let mut command = cat(&view, ["--from-key", &from]);
        let keys = prints(command.args(["--head", "50"]));
        let expected: Vec<_> =
            lines.iter().copied().filter(|line| *line >= from.as_bytes()).take(50).collect();
        assert!(keys == expected.concat(), "--from-key {from} --head 50");
    }
    let empty = prints(&mut cat(&view, ["--bytes", &format!("{size}..{size}")]));
    assert!(empty.is_empty());
    drop(folder);
}

#[test]
fn copies_are_the_sorted_file() {
    let (folder, view, sorted, _) = fixture();
    let out = folder.at("out");
    prints(merganser(["materialize"]).arg(&view).arg("-o").arg(&out));
    assert!(std::fs::read(&out).expect("there") == sorted, "materialize");
    prints(merganser(["materialize"]).arg(&view).arg("-o").arg(&out).arg("--consume"));
    assert!(std::fs::read(&out).expect("there") == sorted, "materialize --consume");
    assert_eq!(folder.names(), ["input", "out"], "a consumed view is gone");
}

#[test]
fn it_is_verified_and_described() {
    let (folder, view, sorted, _) = fixture();
    prints(merganser(["verify"]).arg(&view));
    prints(merganser(["info", "--verify"]).arg(&view));
    let text = String::from_utf8(prints(merganser(["info", "--json"]).arg(&view))).expect("UTF-8");
    let lines = sorted.iter().filter(|&&b| b == b'\n').count();
    for number in [sorted.len(), lines] {
        assert!(text.contains(&number.to_string()), "{number} in {text}");
    }
    let written: u64 = names(&view)
        .iter()
        .map(|name| std::fs::metadata(view.join(name)).expect("there").len())
        .sum();
    assert!(written as f64 <= sorted.len() as f64 * 1.05, "{written} bytes for {}", sorted.len());
    drop(folder);
}

#[test]
fn it_never_replaces_anything() {
    let folder = Folder::new();
    let input = folder.write("input", b"b\na\n");
    let view = view_of(&folder, &input, &[]);
    let before = names(&view);
    let sentence = fails(merganser(["sort"]).arg(&input).arg("--view").arg(&view));
    assert!(sentence.contains("made.view"), "{sentence}");
    assert_eq!(names(&view), before);
    std::fs::create_dir(folder.at("other")).expect("made");
    std::fs::write(folder.at("other/mine"), "x").expect("written");
    fails(merganser(["sort"]).arg(&input).arg("--view").arg(folder.at("other")));
    assert_eq!(names(&folder.at("other")), ["mine"]);
    let sentence = fails(merganser(["cat"]).arg(folder.at("other")));
    assert!(sentence.contains("other"), "{sentence}");
    fails(merganser(["cat"]).arg(folder.at("missing.view")));
}

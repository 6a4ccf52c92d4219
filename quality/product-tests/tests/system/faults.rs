//! A failure is reported in one sentence, and leaves all other files unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{
    Chance, Folder, asked, fails, is_root, merganser, names, one_sentence, prints, small_memory,
    sorted_lines, view_of,
};

const STRATEGIES: [&str; 2] = ["--strategy=merge", "--strategy=distribute"];

/// A file system of `bytes` in memory, as long as this lives.
pub(crate) struct SmallDisk {
    folder: Folder,
}

impl SmallDisk {
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        if !is_root("mounting a small disk") {
            return None;
        }
        let folder = Folder::new();
        let mut mount = Command::new("mount");
        let size = format!("size={bytes}");
        let mounted = mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(folder.path()).output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk { folder }),
            other => {
                eprintln!("skipped: no small disk could be mounted: {other:?}");
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Lines that do not fit in the memory that is named with them.
fn large_input() -> (Folder, PathBuf, Vec<u8>, String) {
    let memory = small_memory();
    let content = Chance::new().lines((memory * 2) as usize);
    let folder = Folder::new();
    let input = folder.write("input", &content);
    (folder, input, content, format!("--memory={memory}"))
}

#[test]
fn a_full_disk_under_the_output() {
    let (folder, input, content, memory) = large_input();
    let Some(disk) = SmallDisk::new(content.len() as u64 / 2) else { return };
    let out = disk.path().join("out");
    let temp = folder.at("temp");
    fs::create_dir(&temp).expect("made");
    let sort = |memory: &str| {
        let mut sort = merganser(["sort", "--force", memory, "-T"]);
        sort.arg(&temp).arg(&input).arg("-o").arg(&out);
        sort
    };
    for memory in [&*memory, "--memory=1G"] {
        let sentence = fails(&mut sort(memory));
        assert!(sentence.contains("No space left"), "{sentence}");
        assert!(sentence.contains("out"), "{sentence}");
        assert_eq!(names(disk.path()), [""; 0], "no debris");
        assert_eq!(names(&temp), [""; 0], "no debris");
    }
    // A file that was there before is still there.
    fs::write(&out, "precious").expect("written");
    fails(&mut sort(&memory));
    assert_eq!(fs::read(&out).expect("there"), b"precious");
    assert_eq!(names(disk.path()), ["out"]);
    assert!(fs::read(&input).expect("there") == content);
}

#[test]
fn a_full_disk_under_the_runs() {
    full_disk_under_temporary_files("merge");
}

#[test]
fn a_full_disk_under_the_buckets() {
    full_disk_under_temporary_files("distribute");
}

fn full_disk_under_temporary_files(strategy: &str) {
    let (folder, input, content, memory) = large_input();
    let Some(disk) = SmallDisk::new(content.len() as u64 / 2) else { return };
    let mut sort = merganser(["sort", "--force", &memory, "--strategy", strategy, "-T"]);
    sort.arg(disk.path()).arg(&input).arg("-o").arg(folder.at("out"));
    let sentence = fails(&mut sort);
    assert!(sentence.contains("No space left"), "{sentence}");
    assert_eq!(names(disk.path()), [""; 0], "no debris");
    assert_eq!(folder.names(), ["input"], "no debris");

    let view = disk.path().join("x.view");
    let mut sort = merganser(["sort", "--force", &memory, "--strategy", strategy]);
    let sentence = fails(sort.arg(&input).arg("--view").arg(&view));
    assert!(sentence.contains("No space left"), "{sentence}");
    assert_eq!(names(disk.path()), [""; 0], "no debris");
    assert!(fs::read(&input).expect("there") == content);
}

/// Without `--force`, nothing is written to a disk that has too little room.
#[test]
fn too_little_room_is_said_before_the_sort() {
    let (folder, input, content, memory) = large_input();
    let size = content.len() as u64;
    let Some(disk) = SmallDisk::new(size / 2) else { return };
    let here = disk.path().to_str().expect("text");
    let out = |place: &Path| format!("--output={}", place.join("out").to_str().expect("text"));
    let refused = |words: &[&str], what: &str, remedy: &str| {
        let sentence = fails(merganser(["sort", &memory]).args(words).arg(&input));
        assert!(sentence.contains(&format!("{here}: {what} need at least 1")), "{sentence}");
        assert!(sentence.contains(" are free; ") && sentence.contains(remedy), "{sentence}");
        assert!(sentence.ends_with("or try it all the same with --force"), "{sentence}");
        assert_eq!(names(disk.path()), [""; 0], "nothing was written");
        assert_eq!(folder.names(), ["input"], "nothing was written");
    };
    let elsewhere = folder.at("");
    let (there, here_out) = (out(&elsewhere), out(disk.path()));
    for strategy in STRATEGIES {
        refused(&["-T", here, &there, strategy], "temporary files", "--temp-dir");
        refused(&["-T", here, strategy], "temporary files", "--temp-dir");
    }
    // Runs in two folders of one disk have no more room.
    let (one, two) = (disk.path().join("."), here);
    let one = one.to_str().expect("text");
    refused(&["-T", one, "-T", two, &there], "temporary files", "--temp-dir");
    let sentence = fails(merganser(["sort", &memory, "-T", here, &here_out]).arg(&input));
    assert!(sentence.contains("temporary files and the result need at least 3"), "{sentence}");
    let far = elsewhere.to_str().expect("text");
    refused(&["-T", far, &here_out], "the bytes of the result", ".zst");
    refused(&["-T", far, &here_out, "-m"], "the bytes of the result", ".zst");
    let view = disk.path().join("x.view");
    let view = format!("--view={}", view.to_str().expect("text"));
    refused(&[&view], "the files of the view", "--consume");

    // Not even the data that measures the disk has room.
    refused(&["--explain", "-T", here, &there], "temporary files", "--temp-dir");

    // A result that may be smaller than the inputs, or that needs no room there, is tried.
    let works = |words: &[&str]| prints(merganser(["sort"]).args(words).arg(&input));
    works(&["--memory=1G", "-T", here]);
    works(&[&memory, "-T", here, "--top=3"]);
    let all = "--output=".to_owned() + disk.path().join("out.zst").to_str().expect("text");
    works(&[&memory, "-T", far, "-u", &here_out, "-k1,1.1"]);
    let packed = merganser(["sort", &memory, "-T", here, "--compress=zstd", &there])
        .arg(&input)
        .output()
        .expect("starts");
    let said = String::from_utf8(packed.stderr).expect("UTF-8");
    assert!(!said.contains("--force"), "{said}");
    let packed =
        merganser(["sort", &memory, "-T", far, &all]).arg(&input).output().expect("starts");
    let said = String::from_utf8(packed.stderr).expect("UTF-8");
    assert!(!said.contains("--force"), "{said}");
    // Standard input has a size where it is a file.
    let mut sort = merganser(["sort", &memory, "-T", here]);
    let sentence = fails(sort.stdin(fs::File::open(&input).expect("there")));
    assert!(sentence.contains("temporary files need at least"), "{sentence}");
}

/// The runs are given back while the result is written, so a disk that takes one of them and 64 MiB takes both.
#[test]
fn a_disk_takes_runs_and_result_if_it_takes_one_and_a_little_more() {
    const BYTES: u64 = 160_000_000;
    if !is_root("mounting a small disk") {
        return;
    }
    let folder = Folder::new();
    let (input, fixed) = (folder.at("input"), ["--format=fixed:100", "--key=0:10"]);
    let records = (BYTES / 100).to_string();
    prints(merganser(["generate", "--records", &records, "-o"]).arg(&input));
    let Some(disk) = SmallDisk::new(BYTES + (80 << 20)) else { return };
    let out = disk.path().join("out");
    let mut sort = merganser(["sort", "--memory=32M"]);
    sort.args(fixed).arg(&input).arg("-o").arg(&out);
    prints(&mut sort);
    prints(merganser(["verify"]).args(fixed).arg(&out));
    // The old file stays until the new one is whole.
    let sentence = fails(&mut sort);
    assert!(sentence.contains("temporary files and the result need at least"), "{sentence}");
    assert_eq!(names(disk.path()), ["out"]);
    let here = disk.path().to_str().expect("text");
    let space = |sort: &mut Command| {
        let plan = String::from_utf8(prints(sort.arg("--explain"))).expect("UTF-8");
        plan.lines().last().expect("a line").to_owned()
    };
    let line = space(&mut sort);
    let begin = format!("space           temporary files and the result in {here}: 217M needed, 8");
    assert!(line.starts_with(&begin), "{line}");
    assert!(line.ends_with(" free; too little, and refused without --force"), "{line}");
    let line = space(sort.arg("--force"));
    assert!(line.ends_with(" free; too little, and tried all the same"), "{line}");
}

#[test]
fn a_full_disk_under_a_copy_of_a_view() {
    STRATEGIES.iter().for_each(|strategy| full_disk_under_a_copy(strategy));
}

fn full_disk_under_a_copy(strategy: &str) {
    let (folder, input, content, memory) = large_input();
    let view = view_of(&folder, &input, &[&memory, strategy]);
    let Some(disk) = SmallDisk::new(content.len() as u64 / 2) else { return };
    let out = disk.path().join("out");
    let copy =
        |more: &[&str]| fails(merganser(["materialize"]).args(more).arg(&view).arg("-o").arg(&out));
    let sentence = copy(&[]);
    assert!(sentence.contains("No space left"), "{sentence}");
    assert_eq!(names(disk.path()), [""; 0], "no debris");
    // Somewhere else there is room, and nothing is lost.
    let elsewhere = folder.at("out");
    prints(merganser(["materialize"]).arg(&view).arg("-o").arg(&elsewhere));
    assert!(fs::read(elsewhere).expect("there") == sorted_lines(&content));
    // A view that has given back bytes stays bound to its output.
    let sentence = copy(&["--consume"]);
    assert!(sentence.contains("No space left"), "{sentence}");
    if names(disk.path()).is_empty() {
        // Nothing was given back yet.
        let read = prints(merganser(["cat"]).arg(&view));
        assert!(read == sorted_lines(&content));
        return;
    }
    assert!(sentence.contains("repeat the command to continue"), "{sentence}");
    assert_eq!(names(disk.path()), [".out.unfinished"]);
    let sentence = fails(merganser(["cat"]).arg(&view));
    assert!(sentence.contains("is being consumed into"), "{sentence}");
}

#[test]
fn a_full_device_at_the_end_of_a_pipe() {
    let (_folder, input, _, memory) = large_input();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("there");
    let mut sort = merganser(["sort", &memory]);
    let sentence = fails_to(sort.arg(&input), full.try_clone().expect("cloned"));
    assert!(sentence.contains("No space left"), "{sentence}");
    let folder = Folder::new();
    let view = view_of(&folder, &input, &[]);
    let sentence = fails_to(merganser(["cat"]).arg(view), full);
    assert!(sentence.contains("No space left"), "{sentence}");
}

fn fails_to(command: &mut Command, stdout: fs::File) -> String {
    let child = command.stdout(stdout).stderr(std::process::Stdio::piped()).spawn();
    let output = child.expect("it starts").wait_with_output().expect("it ends");
    one_sentence(command, &output)
}

#[test]
fn a_closed_pipe_is_a_quiet_success() {
    let (folder, input, _, memory) = large_input();
    let view = view_of(&folder, &input, &[&memory]);
    for words in [
        vec!["sort".into(), memory.into(), input.into_os_string()],
        vec!["cat".into(), view.into_os_string()],
    ] {
        let mut command = merganser(words);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{command:?}");
    }
}

#[test]
fn inputs_that_can_not_be_read() {
    let folder = Folder::new();
    folder.write("good", b"b\na\n");
    let sort = |input: &str| {
        let mut sort = merganser(["sort", "good", input, "-o", "out"]);
        let sentence = fails(sort.current_dir(folder.path()));
        assert!(sentence.contains(input), "{sentence}");
        assert_eq!(folder.names(), ["good"]);
    };
    sort("vanished");
    sort(".");
    for command in ["cat", "info", "verify"] {
        let sentence = fails(merganser([command, "vanished"]).current_dir(folder.path()));
        assert!(sentence.contains("vanished"), "{sentence}");
    }
}

#[test]
fn outputs_that_can_not_be_written() {
    let folder = Folder::new();
    folder.write("good", b"b\na\n");
    for option in ["-o", "--view"] {
        let mut sort = merganser(["sort", "good", option, "missing/out"]);
        let sentence = fails(sort.current_dir(folder.path()));
        assert!(sentence.contains("missing"), "{sentence}");
    }
    let sentence = fails(merganser(["sort", "good", "-o", "."]).current_dir(folder.path()));
    assert!(sentence.contains('.'), "{sentence}");
    assert_eq!(folder.names(), ["good"]);
}

#[test]
fn a_last_record_that_is_cut_short() {
    let folder = Folder::new();
    let keyed = [&[1, 0, 0, 0, 1, 0, 0, 0, b'k', b'v'][..], &[1, 0, 0, 0, 9, 0, 0, 0, b'k', b'v']];
    let cases = [
        (vec!["--format=fixed:100", "--key=0:10"], vec![b'x'; 1050], "1000"),
        (vec!["--format=keyed"], keyed.concat(), "10"),
        (vec!["--format=csv", "--key=1"], b"a,b\nc,\"never closed\n".to_vec(), "4"),
    ];
    for (options, content, offset) in cases {
        let input = folder.write("input", &content);
        for result in ["-o", "--view"] {
            let mut sort = merganser(["sort"]);
            let sentence = fails(sort.args(&options).arg(&input).arg(result).arg(folder.at("out")));
            assert!(sentence.contains("input") && sentence.contains(offset), "{sentence}");
            assert_eq!(folder.names(), ["input"]);
        }
        assert_eq!(fs::read(&input).expect("there"), content);
    }
}

#[test]
fn a_record_longer_than_memory() {
    let folder = Folder::new();
    let memory = small_memory();
    let input = folder.write("input", b"b\na\n");
    let file = fs::OpenOptions::new().write(true).open(&input).expect("opened");
    // One line of NULs, stored as a hole.
    file.set_len(memory * 4).expect("extended");
    let mut sort = merganser(["sort", "--memory", &memory.to_string()]);
    let sentence = fails(sort.arg(&input).arg("-o").arg(folder.at("out")));
    assert!(sentence.contains("input") && sentence.contains("memory"), "{sentence}");
    assert_eq!(folder.names(), ["input"]);
}

#[test]
fn a_key_outside_its_record() {
    let folder = Folder::new();
    let input = folder.write("input", b"0123456789");
    let cases = [
        (vec!["--format=fixed:10", "--key=8:4"], "8:4"),
        (vec!["--format=fixed:10", "--key=10:1"], "10:1"),
        (vec!["--format=fixed:10", "--key=0:2:u64le"], "0:2:u64le"),
        (vec!["--format=csv", "--header", "--key=nobody"], "nobody"),
        (vec!["--format=csv", "--key=0"], "0"),
        (vec!["-k0"], "0"),
    ];
    for (options, told) in cases {
        let mut sort = merganser(["sort"]);
        let sentence = fails(sort.args(&options).arg(&input).arg("-o").arg(folder.at("out")));
        assert!(sentence.contains(told), "{options:?}: {sentence}");
        assert_eq!(folder.names(), ["input"]);
    }
}

#[test]
fn too_little_memory_says_the_least_that_works() {
    let folder = Folder::new();
    let input = folder.write("input", b"b\na\n");
    let least = small_memory() / 2;
    let sorted = prints(merganser(["sort", "--memory", &least.to_string()]).arg(&input));
    assert_eq!(sorted, b"a\nb\n");
}

/// Every byte of every file of a small view, changed in turn: `cat` gives an error or the right
/// bytes. A quick run takes positions that are spread evenly, and all of the manifest.
#[test]
fn a_damaged_view_is_never_wrong() {
    STRATEGIES.iter().for_each(|strategy| damage_a_view(strategy));
}

fn damage_a_view(strategy: &str) {
    let chance = Chance::new();
    let folder = Folder::new();
    let content = chance.of_case(0).lines(3_000);
    let expected = sorted_lines(&content);
    let input = folder.write("input", &content);
    let whole = view_of(&folder, &input, &[strategy]);
    assert!(prints(merganser(["cat"]).arg(&whole)) == expected);

    let sizes: Vec<(String, u64)> = names(&whole)
        .into_iter()
        .map(|name| (name.clone(), fs::metadata(whole.join(&name)).expect("there").len()))
        .collect();
    let total: u64 = sizes.iter().map(|(_, size)| size).sum();
    let stride = (total / asked("MERGANSER_DAMAGES", 200)).max(1);
    let mut damages = Vec::new();
    for (name, size) in &sizes {
        let stride = if *size < 4096 { stride.min(4) } else { stride };
        damages.extend((0..*size).step_by(stride as usize).map(|at| (&**name, at)));
    }
    let next = AtomicUsize::new(0);
    let noticed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (chance, damages, whole, folder) = (&chance, &damages, &whole, &folder);
            let (next, noticed, expected) = (&next, &noticed, &expected);
            scope.spawn(move || {
                let view = folder.at(&format!("copy{worker}.view"));
                fs::create_dir(&view).expect("made");
                for name in names(whole) {
                    fs::copy(whole.join(&name), view.join(&name)).expect("copied");
                }
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(name, at)) = damages.get(i) else { break };
                    let bit = chance.of_case(i as u64).below(8);
                    let damaged = view.join(name);
                    let mut bytes = fs::read(&damaged).expect("there");
                    bytes[at as usize] ^= 1 << bit;
                    fs::write(&damaged, &bytes).expect("written");
                    let cat = &mut merganser(["cat"]);
                    let output = cat.arg(&view).output().expect("it starts");
                    let what = format!("{name}, byte {at}, bit {bit}");
                    if output.status.success() {
                        assert!(output.stdout == *expected, "{what}: wrong bytes, no error");
                    } else {
                        let sentence = one_sentence(cat, &output);
                        assert!(
                            expected.starts_with(&output.stdout),
                            "{what}: wrong bytes: {sentence}"
                        );
                        assert!(sentence.contains(name), "{what}: which file? {sentence}");
                        noticed.fetch_add(1, Ordering::Relaxed);
                    }
                    bytes[at as usize] ^= 1 << bit;
                    fs::write(&damaged, &bytes).expect("written");
                }
            });
        }
    });
    let (noticed, all) = (noticed.into_inner(), damages.len());
    eprintln!("{noticed} of {all} damages noticed; the others hit bytes without a meaning");
    assert!(noticed * 4 >= all, "only {noticed} of {all} damages were noticed");
}

#[test]
fn a_view_with_a_missing_or_cut_file_says_which() {
    STRATEGIES.iter().for_each(|strategy| cut_files_of_a_view(strategy));
}

fn cut_files_of_a_view(strategy: &str) {
    let folder = Folder::new();
    let input = folder.write("input", &Chance::new().lines(20_000));
    let view = view_of(&folder, &input, &[strategy]);
    for name in names(&view) {
        let path = view.join(&name);
        let bytes = fs::read(&path).expect("there");
        for keep in [0, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&path, &bytes[..keep]).expect("cut");
            let sentence = fails(merganser(["cat"]).arg(&view));
            assert!(sentence.contains(&name), "{name} cut to {keep}: {sentence}");
        }
        fs::remove_file(&path).expect("removed");
        let sentence = fails(merganser(["cat"]).arg(&view));
        assert!(sentence.contains("made.view"), "{name} gone: {sentence}");
        fs::write(&path, &bytes).expect("restored");
    }
    prints(merganser(["cat"]).arg(&view));
}

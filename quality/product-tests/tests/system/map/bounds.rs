//! Memory, disks, signals and kills.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{SMALL_MEMORY, many_words, tsv, words, words_of};
use crate::faults::SmallDisk;
use crate::harness::{Chance, Folder, asked, fails, merganser, merganser_itself, names, prints};
use crate::memory::{OVERHEAD_BYTES, peak_within};

#[test]
fn a_map_stays_within_its_memory() {
    let folder = Folder::new();
    let (input, text) = words_of(&folder, 12 << 20);
    let counts = words(&text);
    let memory: u64 = 32 << 20;
    for how in
        [&["wordcount"][..], &["wordcount", "--order", "value"], &["wordcount", "--top", "9"]]
    {
        let mut command = merganser_itself(["map", "--memory", &memory.to_string()]);
        command.args(how).arg(&input).arg("-T").arg(folder.path());
        let Some((peak, found)) = peak_within(memory + OVERHEAD_BYTES, command) else { return };
        eprintln!("map {how:?}: peak {} MiB of {} MiB", peak >> 20, memory >> 20);
        assert!(peak <= memory + OVERHEAD_BYTES, "{how:?}: {peak} bytes for {memory}");
        if how.len() == 1 {
            assert!(found == tsv(&counts));
        }
    }
    let view = folder.at("x.view");
    let mut command = merganser_itself(["map", "wordcount", "--memory", &memory.to_string()]);
    command.arg(&input).arg("--view").arg(&view);
    if peak_within(memory + OVERHEAD_BYTES, command).is_none() {
        return;
    }
    let mut cat = merganser_itself(["cat", "--memory", &memory.to_string()]);
    cat.arg(&view);
    let Some((peak, found)) = peak_within(memory + OVERHEAD_BYTES, cat) else { return };
    assert!(peak <= memory + OVERHEAD_BYTES, "cat: {peak} bytes for {memory}");
    assert!(found == tsv(&counts));
}

/// However the rows are chosen and wherever they go: what is named works, with spills, and a byte less is refused
/// before an output is begun.
#[test]
fn too_little_memory_names_the_least_that_works() {
    let folder = Folder::new();
    let (input, text) = many_words(&folder);
    let counts = words(&text);
    let by_count: Vec<_> = super::by_count(&counts);
    let (all, sorted) = (tsv(&counts), tsv(by_count.iter().copied()));
    let top = tsv(by_count.iter().copied().take(9));
    let view = folder.at("x.view");
    let view = view.to_str().expect("UTF-8");
    for (how, expected) in [
        (&[][..], &all),
        (&["--order", "value"], &sorted),
        (&["--top", "9"], &top),
        (&["--view", view], &all),
    ] {
        for threads in ["1", "3"] {
            let with = |memory: u64| {
                let mut command = merganser(["map", "wordcount", "--threads", threads]);
                command.args(["--memory", &memory.to_string()]).args(how).arg(&input);
                command
            };
            let sentence = fails(&mut with(1000));
            assert!(sentence.starts_with("--memory 1000 is too small for mapping"), "{sentence}");
            let least = sentence.split("at least ").nth(1).and_then(|rest| rest.split(' ').next());
            let least: u64 = least.and_then(|least| least.parse().ok()).expect("a number");
            assert!((256 << 10..16 << 20).contains(&least), "{how:?} {threads}: {least}");
            let refused = fails(&mut with(least - 1));
            assert!(refused.contains(&format!("at least {least} bytes")), "{refused}");
            assert!(fails(with(least - 1).arg("--explain")).contains("too small"), "explained");
            let mut found = prints(&mut with(least));
            if how.contains(&"--view") {
                found = prints(merganser(["cat"]).arg(view));
                fs::remove_dir_all(view).expect("removed");
            }
            assert!(found == *expected, "{how:?} {threads}");
        }
    }
    assert_eq!(folder.names(), ["input"]);
}

#[test]
fn a_full_disk_leaves_the_old_output_and_no_debris() {
    let folder = Folder::new();
    let (input, _) = many_words(&folder);
    let Some(disk) = SmallDisk::new(1 << 20) else { return };
    let out = disk.path().join("out");
    fs::write(&out, "precious").expect("written");
    let temp = folder.at("temp");
    fs::create_dir(&temp).expect("made");
    let full = |sentence: String| assert!(sentence.contains("No space left"), "{sentence}");
    let mut command = merganser(["map", "wordcount", "--memory=1G", "-T"]);
    full(fails(command.arg(&temp).arg(&input).arg("-o").arg(&out)));
    // Spills that find no room.
    let mut command = merganser(["map", "wordcount", SMALL_MEMORY, "-T"]);
    full(fails(command.arg(disk.path()).arg(&input).arg("-o").arg(folder.at("out"))));
    let mut command = merganser(["map", "wordcount", SMALL_MEMORY, "--view"]);
    full(fails(command.arg(disk.path().join("x.view")).arg(&input)));
    assert_eq!(fs::read(&out).expect("there"), b"precious");
    assert_eq!(names(disk.path()), ["out"]);
    assert_eq!(
        (folder.names(), names(&temp)),
        (vec!["input".to_owned(), "temp".to_owned()], Vec::new())
    );
}

/// Killed at random moments: the output is the old one or the whole new one.
#[test]
fn a_killed_map_leaves_the_output_old_or_new() {
    let folder = Folder::new();
    let (input, text) = many_words(&folder);
    let counts = tsv(&words(&text));
    let (out, view) = (folder.at("out"), folder.at("x.view"));
    let mut chance = Chance::new();
    let command = |flag: &str| {
        let mut command = merganser_itself(["map", "wordcount", SMALL_MEMORY, flag]);
        command.arg(if flag == "-o" { &out } else { &view }).arg(&input).stdout(Stdio::null());
        command
    };
    let started = Instant::now();
    assert!(command("-o").status().expect("it starts").success());
    let time = started.elapsed().as_micros() as u64;
    for round in 0..asked("MERGANSER_CRASHES", 6) {
        let flag = ["-o", "--view"][(round % 2) as usize];
        let signal = if chance.once_in(3) { libc::SIGTERM } else { libc::SIGKILL };
        fs::write(&out, "precious").expect("written");
        let mut child = command(flag).spawn().expect("it starts");
        std::thread::sleep(Duration::from_micros(chance.below(time * 11 / 10)));
        // SAFETY: the child was not waited for, so its id is not another process's.
        unsafe { libc::kill(child.id().cast_signed(), signal) };
        let status = child.wait().expect("it ends");
        let found = fs::read(&out).expect("never missing");
        if flag == "-o" && status.success() {
            assert!(found == counts);
        } else {
            assert!(found == b"precious" || found == counts, "{status}: {} bytes", found.len());
        }
        if view.exists() {
            assert!(
                prints(merganser(["cat"]).arg(&view)) == counts,
                "a view that is there is whole"
            );
            fs::remove_dir_all(&view).expect("removed");
        }
        if status.signal().is_none() {
            assert_eq!(folder.names(), ["input", "out"], "{status}: debris");
        }
        // The next command finds the leftovers of a kill and removes them.
        prints(merganser(["recover"]).arg(folder.path()));
        let mut again = merganser(["map", "wordcount", "--view"]);
        prints(again.arg(&view).arg(&input));
        fs::remove_dir_all(&view).expect("removed");
    }
    prints(&mut command("-o"));
    assert!(fs::read(&out).expect("there") == counts);
    assert_eq!(folder.names(), ["input", "out"]);
}

//! Stages that fail, hang, talk or fill the disk; damaged inputs; other commands.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{lines_of, made, pipeline};
use crate::harness::{Chance, Folder, fails, is_root, merganser, names, one_sentence, prints};

/// Three partitions of a line each.
const THREE: &[u8] = b"one\ntwo\nsix\n";

/// Whether a process with this number runs.
fn runs(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Whether all of them end soon. Killed processes need a processor once more to be gone.
fn all_end(processes: &[String]) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    while processes.iter().any(|process| runs(process)) {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

#[test]
fn a_failed_stage_is_tried_again_and_then_reported() {
    let folder = Folder::new();
    folder.write("in", THREE);
    folder.write("out", b"precious");
    let fail = "b:echo {k} >>tried; [ {k} != 1 ] || [ -e repaired ] || { echo first >&2; echo why >&2; exit 3; }; cat";
    let words = [
        "in",
        "--partitions",
        "3",
        "--retries",
        "2",
        "--stage",
        "a:echo {k} >>ran; cat",
        "--stage",
        fail,
        "--pool",
        "p:1",
    ];
    let sentence = fails(&mut pipeline(&folder, &words));
    for said in [
        "the stage 'b' of partition 1 ended with status 3",
        "first | why",
        "in the last of 3 tries",
        "repeat the command",
    ] {
        assert!(sentence.contains(said), "{said}: {sentence}");
    }
    assert_eq!(lines_of(&folder.at("tried")).iter().filter(|k| *k == "1").count(), 3);
    assert_eq!(fs::read(folder.at("out")).expect("there"), b"precious");
    let log = folder.at(".out.unfinished/pipeline/000001.b.stderr");
    assert_eq!(fs::read(log).expect("kept"), b"first\nwhy\n");
    // Repaired, it continues: what ran does not run again.
    folder.write("repaired", b"");
    assert_eq!(made(&folder, &words), THREE);
    assert_eq!(lines_of(&folder.at("ran")), ["0", "1", "2"]);
}

#[test]
fn a_stage_that_hangs_ends_with_all_its_processes() {
    let folder = Folder::new();
    folder.write("in", THREE);
    // One child ignores the request to end, one has left the foreground.
    let hang = "hang:sh -c 'trap \"\" TERM; echo $$ >>pids; sleep 1000' & sleep 1000 & echo $! >>pids; echo $$ >>pids; wait";
    let started = Instant::now();
    let words =
        ["in", "--partitions", "1", "--time-limit", "2.5", "--retries", "0", "--stage", hang];
    let sentence = fails(&mut pipeline(&folder, &words));
    assert!(
        sentence.contains("of partition 0 was ended after its time limit of 2.5 s"),
        "{sentence}"
    );
    assert!(sentence.contains("--time-limit"), "{sentence}");
    assert!(started.elapsed() < Duration::from_secs(20));
    let pids = lines_of(&folder.at("pids"));
    assert_eq!(pids.len(), 3);
    assert!(all_end(&pids), "{pids:?}");
}

/// A program that takes the place of the shell and leaves its process group is ended, too, with those that it started.
#[test]
fn a_stage_that_leaves_its_group_is_ended() {
    let folder = Folder::new();
    folder.write("in", THREE);
    // The children ignore the request to end.
    let children = "trap \"\" TERM; echo $$ >>pids; sleep 1000 & echo $! >>pids; wait";
    for leave in ["setsid", "timeout 1000"] {
        folder.write("pids", b"");
        let stage = format!("leave:echo $$ >>pids; exec {leave} sh -c '{children}'");
        let words =
            ["in", "--partitions", "1", "--time-limit", "2.5", "--retries", "0", "--stage", &stage];
        let started = Instant::now();
        let sentence = fails(&mut pipeline(&folder, &words));
        assert!(
            sentence.contains("was ended after its time limit of 2.5 s"),
            "{leave}: {sentence}"
        );
        assert!(started.elapsed() < Duration::from_secs(20), "{leave}");
        let pids = lines_of(&folder.at("pids"));
        assert_eq!(pids.len(), 3, "{leave}");
        assert!(all_end(&pids), "{leave}: {pids:?}");
    }
    // So is what such a program leaves running.
    folder.write("pids", b"");
    let stage = "leave:exec setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $! >>pids; cat'";
    assert_eq!(made(&folder, &["in", "--partitions", "1", "--stage", stage]), THREE);
    let pids = lines_of(&folder.at("pids"));
    assert!(pids.len() == 1 && all_end(&pids), "{pids:?}");
}

/// Processes that a stage leaves running are ended with it: they could write into files that the next stage reads.
#[test]
fn children_of_a_stage_do_not_outlive_it() {
    let folder = Folder::new();
    folder.write("in", THREE);
    let leave = "leave:sleep 1000 >/dev/null 2>&1 & echo $! >>pids; cat";
    assert_eq!(made(&folder, &["in", "--partitions", "1", "--stage", leave]), THREE);
    assert!(all_end(&lines_of(&folder.at("pids"))));
}

/// Endless talk on standard error is neither kept in memory nor on the disk.
#[test]
fn a_stage_may_talk() {
    let folder = Folder::new();
    folder.write("in", THREE);
    let talk = "talk:head -c 50000000 /dev/zero >&2; cat";
    assert_eq!(made(&folder, &["in", "--partitions", "2", "--stage", talk]), THREE);
    let fail = "talk:head -c 3000000 /dev/urandom >&2; echo end >&2; exit 1";
    let sentence = fails(&mut pipeline(&folder, &["in", "--partitions", "1", "--stage", fail]));
    assert!(sentence.len() < 4000 && sentence.contains("end"), "{sentence}");
    let log = folder.at(".out.unfinished/pipeline/000000.talk.stderr");
    assert!(fs::metadata(log).expect("kept").len() <= 64 << 10);
}

#[test]
fn a_stage_without_its_output_has_failed() {
    let folder = Folder::new();
    folder.write("in", THREE);
    let sentence =
        fails(&mut pipeline(&folder, &["in", "--partitions", "1", "--stage", "a:true {out}"]));
    assert!(sentence.contains("ended with status 0 but wrote no output file"), "{sentence}");
    assert_eq!(folder.names(), ["in"], "nothing is lost by beginning again");
    let sentence =
        fails(&mut pipeline(&folder, &["in", "--partitions", "2", "--stage", "a:no-such-program"]));
    assert!(sentence.contains("ended with status 127"), "{sentence}");
    // No stage has run, so another command begins again.
    let sentence =
        fails(&mut pipeline(&folder, &["in", "--partitions", "2", "--stage", "a:kill -9 $$"]));
    assert!(sentence.contains("was killed by signal 9"), "{sentence}");
    assert_eq!(made(&folder, &["in", "--partitions", "1", "--stage", "a:cat"]), THREE);
}

/// Inputs and settings that make another output are refused; others may change.
#[test]
fn other_work_is_refused() {
    let folder = Folder::new();
    folder.write("in", THREE);
    let work = |stage: &'static str| {
        ["in", "--partitions", "3", "--stage", stage, "--merge", "cat; [ -e go ]"]
    };
    let begun = work("a:cat");
    fails(&mut pipeline(&folder, &begun));
    let refused = |words: &[&str]| {
        let sentence = fails(&mut pipeline(&folder, words));
        assert!(
            sentence.contains("away to begin again") && sentence.contains("began"),
            "{sentence}"
        );
        sentence
    };
    assert!(
        refused(&work("a:cat -"))
            .contains("the stage 'a' was 'cat' when this work began, and is 'cat -' now")
    );
    assert!(refused(&work("b:cat")).contains("the name of a stage"));
    assert!(refused(&["in", "--partitions", "3", "--stage", "a:cat"]).contains("the merge"));
    assert!(refused(&[&begun[..], &["--format", "fixed:1"]].concat()).contains("the format"));
    assert!(refused(&[&begun[..], &["in"]].concat()).contains("the number of inputs"));
    folder.write("in", b"one\ntwo\nmix\n");
    assert!(refused(&begun).starts_with("in: is not the file that it was"));
    let sort =
        fails(merganser(["sort", "in", "--view"]).arg(folder.at("out")).current_dir(folder.path()));
    assert!(sort.contains("holds the work of an interrupted pipeline"), "{sort}");
    fs::remove_dir_all(folder.at(".out.unfinished")).expect("removed");
    folder.write("in", THREE);
    fails(&mut pipeline(&folder, &begun));
    folder.write("go", b"");
    let more = ["--pool", "x:3", "--retries", "5", "--in-flight", "1", "--temp-limit", "1G"];
    assert_eq!(made(&folder, &[&begun[..], &more].concat()), THREE);
}

/// The writer of an input may be idle, and keep its end of the pipe open.
#[test]
fn an_idle_input_does_not_hold_up_a_failure() {
    let folder = Folder::new();
    // It fails when a part of the fourth partition is there, and the next bytes are waited for.
    let fail = "a:until [ -e .out.unfinished/pipeline/000003.part.new ]; do sleep 0.05; done; sleep 0.2; exit 3";
    let words = ["-", "--partitions", "1K", "--in-flight", "9", "--retries", "0", "--stage", fail];
    let mut command = pipeline(&folder, &words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn().expect("it starts");
    let mut writer = child.stdin.take().expect("piped");
    writer.write_all(&[[b'x'; 99].as_slice(), b"\n"].concat().repeat(35)).expect("written");
    let output = child.wait_with_output().expect("it ends");
    drop(writer);
    let sentence = one_sentence(&command, &output);
    assert!(sentence.contains("ended with status 3"), "{sentence}");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(!folder.at("out").exists());
}

/// As above; the next input is a named pipe without a writer.
#[test]
fn a_pipe_without_a_writer_does_not_hold_up_a_failure() {
    let folder = Folder::new();
    folder.write("in", &[[b'x'; 99].as_slice(), b"\n"].concat().repeat(35));
    prints(Command::new("mkfifo").arg(folder.at("fifo")));
    let fail = "a:until [ -e .out.unfinished/pipeline/000003.part.new ]; do sleep 0.05; done; sleep 0.2; exit 3";
    let words =
        ["in", "fifo", "--partitions", "1K", "--in-flight", "9", "--retries", "0", "--stage", fail];
    let started = Instant::now();
    let sentence = fails(&mut pipeline(&folder, &words));
    assert!(sentence.contains("ended with status 3"), "{sentence}");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

/// Results that were gathered are in the output and nowhere else, so a part of them is no output.
#[test]
fn a_shortened_output_is_not_continued() {
    let folder = Folder::new();
    folder.write("in", THREE);
    let last_fails = "a:[ {k} != 2 ] || [ -e go ] && cat";
    for (merge, stage, gathered, bytes) in [
        // All of them are gathered, and the merge fails.
        ("[ -e go ] && cat", "a:cat", "pipeline/gathered", 12),
        ("tr a-z A-Z", last_fails, "pipeline/gathered", 8),
        ("cat", last_fails, "partial", 8),
    ] {
        let words =
            ["in", "--partitions", "3", "--merge", merge, "--stage", stage, "--pool", "p:1"];
        fails(&mut pipeline(&folder, &words));
        folder.write("go", b"");
        let gathered = folder.at(".out.unfinished").join(gathered);
        let whole = fs::read(&gathered).expect("there");
        assert_eq!(whole.len(), bytes, "{merge}");
        let refused = || {
            let sentence = fails(&mut pipeline(&folder, &words));
            assert!(sentence.contains("is not as the pipeline left it"), "{merge}: {sentence}");
            assert!(!folder.at("out").exists(), "{merge}");
        };
        fs::write(&gathered, &whole[..bytes - 1]).expect("written");
        refused();
        fs::remove_file(&gathered).expect("removed");
        refused();
        // An append that was interrupted leaves more.
        let more: &[u8] = if bytes < THREE.len() { b"si" } else { b"" };
        fs::write(&gathered, [&whole, more].concat()).expect("written");
        let made = made(&folder, &words);
        assert!(made.eq_ignore_ascii_case(THREE), "{merge}");
        fs::remove_file(folder.at("go")).expect("removed");
    }
}

#[test]
fn damaged_inputs_have_a_place_and_leave_nothing() {
    let folder = Folder::new();
    for (format, bytes, place) in [
        ("fastq", &b"@a\nAC\n+\nII\n@b\nACG\n+\nII\n"[..], "in: at byte 11"),
        ("fasta", b"ACGT\n>a\n", "in: at byte 0"),
        ("fixed:4", b"aaaabbbbcc", "in: at byte 8"),
    ] {
        folder.write("in", bytes);
        let sentence = fails(&mut pipeline(
            &folder,
            &["in", "--format", format, "--partitions", "1", "--stage", "a:cat"],
        ));
        assert!(sentence.starts_with(place), "{format}: {sentence}");
        assert_eq!(folder.names(), ["in"], "{format}");
    }
    let text = Chance::new().lines(100_000);
    let packed = {
        folder.write("in", &text);
        Command::new("gzip").args(["-c"]).arg(folder.at("in")).output().expect("gzip").stdout
    };
    folder.write("in", &packed[..packed.len() / 2]);
    let sentence = fails(&mut pipeline(&folder, &["in", "--partitions", "1M", "--stage", "a:cat"]));
    assert!(sentence.starts_with("in: "), "{sentence}");
    assert_eq!(folder.names(), ["in"]);
}

#[test]
fn an_input_that_changes_meanwhile_is_an_error() {
    let folder = Folder::new();
    folder.write("in", THREE);
    let change = "a:cat; sleep 0.02; echo x >>in";
    let words = ["in", "--partitions", "3", "--in-flight", "1", "--stage", change];
    let sentence = fails(&mut pipeline(&folder, &words));
    assert!(sentence.contains("in: was changed while the pipeline ran"), "{sentence}");
    assert!(!folder.at("out").exists());
}

#[test]
fn an_input_is_no_output() {
    let folder = Folder::new();
    folder.write("out", THREE);
    std::os::unix::fs::symlink("out", folder.at("link")).expect("linked");
    for input in ["out", "link"] {
        let sentence = fails(&mut pipeline(&folder, &[input, "--stage", "a:tr a-z A-Z"]));
        assert!(sentence.contains("is an input"), "{sentence}");
        assert_eq!(fs::read(folder.at("out")).expect("there"), THREE);
    }
}

#[test]
fn temporary_space_is_bounded() {
    let folder = Folder::new();
    let text = Chance::new().lines(300_000);
    folder.write("in", &text);
    let words = |limit: &'static str, stage: &'static str| {
        [
            "in",
            "--partitions",
            "20K",
            "--temp-limit",
            limit,
            "--stage",
            stage,
            "--pool",
            "p:4",
            "--report",
            "r.json",
        ]
    };
    assert!(made(&folder, &words("130K", "a:cat")) == text);
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.at("r.json")).expect("there")).expect("JSON");
    let most = report["pipeline"]["temporary_bytes_max"].as_u64().expect("bytes");
    assert!((20_000..=130 << 10).contains(&most), "{most}");
    let sentence =
        fails(&mut pipeline(&folder, &words("130K", "a:head -c 9000000 /dev/zero; sleep 5")));
    assert!(
        sentence.contains("more than its limit of 133120") && sentence.contains("--temp-limit"),
        "{sentence}"
    );
}

/// A disk without space for all partitions is enough, as long as one has space; otherwise the sentence says it.
#[test]
fn a_full_disk_is_waited_for_and_reported() {
    if !is_root("a small disk") {
        return;
    }
    let folder = Folder::new();
    let text = Chance::new().lines(1_500_000);
    folder.write("in", &text);
    let disk = folder.at("disk");
    fs::create_dir(&disk).expect("made");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=3m", "none"]).arg(&disk);
    if !mount.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: tmpfs can't be mounted");
        return;
    }
    let run = |stage: &str, partitions: &str| {
        let mut command =
            merganser(["pipeline", "in", "--partitions", partitions, "--stage", stage]);
        command.args(["--pool", "p:4", "--in-flight", "8", "-o"]).arg(disk.join("out"));
        command.current_dir(folder.path());
        command
    };
    // Each stage needs 1.2 MB, and four run at a time.
    let grow = "a:head -c 1200000 /dev/zero >{dir}/big; rm {in}.no 2>/dev/null; rm {dir}/big; cksum >{out} <{in}";
    let made = std::panic::catch_unwind(|| {
        prints(&mut run(grow, "100K"));
        let sums = fs::read_to_string(disk.join("out")).expect("there").lines().count();
        fs::remove_file(disk.join("out")).expect("removed");
        let sentence = fails(&mut run("a:head -c 9000000 /dev/zero", "100K"));
        let left = names(&disk);
        (sums, sentence, left)
    });
    let _ = Command::new("umount").arg("-l").arg(&disk).status();
    let (sums, sentence, left) = made.expect("it ran");
    assert!(sums >= 14, "{sums}");
    // Which of them finds the disk full last, a stage or the next partition, depends on time.
    let of_stage = sentence.contains("the disk of its output is full");
    let of_partition = sentence.ends_with(".part.new: No space left on device");
    assert!(of_stage || of_partition, "{sentence}");
    assert!(left.iter().all(|name| name == ".out.unfinished"), "{left:?}");
    assert!(fs::read(folder.at("in")).expect("there") == text);
}

#[test]
fn leftovers_are_named() {
    let folder = Folder::new();
    folder.write("in", THREE);
    let words = [
        "in",
        "--partitions",
        "3",
        "--stage",
        "a:cat",
        "--stage",
        "b:[ {k} != 2 ] && cat",
        "--pool",
        "p:1",
    ];
    fails(&mut pipeline(&folder, &words));
    let said = prints(merganser(["recover"]).arg(folder.path()));
    let said = String::from_utf8(said).expect("text");
    assert!(said.contains("a pipeline into") && said.contains("(a, b)"), "{said}");
    assert!(said.contains("2 of 3 partitions passed all stages; its inputs are whole"), "{said}");
    // The commands of stages may be anything, so they are not advised.
    assert!(said.contains("repeat its command to continue"), "{said}");
    assert!(!said.contains("--stage") && !said.contains("next:"), "{said}");
    let json = prints(merganser(["recover", "--json"]).arg(folder.at("out")));
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["leftovers"][0]["kind"], "pipeline");
    assert_eq!(json["leftovers"][0]["only_copy"], false);
    // A journal with a damaged line is no reason to begin again in silence.
    let journal = folder.at(".out.unfinished/pipeline-journal");
    let mut bytes = fs::read(&journal).expect("there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&journal, &bytes).expect("written");
    let sentence = fails(&mut pipeline(&folder, &words));
    assert!(sentence.contains("pipeline-journal: damaged at byte"), "{sentence}");
}

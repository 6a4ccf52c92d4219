//! Killed and interrupted at any moment, then continued.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{lines_of, made, pipeline, pipeline_itself};
use crate::harness::{Chance, Folder, asked, fails, merganser, names, prints, sorted_lines};

fn signal(child: &Child, signal: libc::c_int) {
    let pid = libc::pid_t::try_from(child.id()).expect("a pid");
    // SAFETY: the child was not waited for, so its number is not another process's.
    unsafe { libc::kill(pid, signal) };
}

/// Starts the pipeline and sends it a signal after `time`; whether that ended it.
fn disturb(folder: &Folder, words: &[&str], time: Duration, number: libc::c_int) -> bool {
    let mut command = pipeline_itself(folder, words);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    std::thread::sleep(time);
    signal(&child, number);
    let output = child.wait_with_output().expect("it ends");
    let status = output.status;
    assert!(
        status.success() || status.signal() == Some(number) || status.code() == Some(128 + number),
        "{status}: {}",
        crate::harness::stderr(&output)
    );
    !status.success()
}

/// Killed by `kill -9`, which only ends the process itself: its stages end with it. Their finished work is not done
/// again but for the stages that ran, and the result is that of an undisturbed run.
#[test]
fn a_killed_pipeline_continues_where_it_was() {
    let mut chance = Chance::new();
    let folder = Folder::new();
    let text = chance.lines(300_000);
    folder.write("in", &text);
    let log =
        |stage: &str, command: &str| format!("{stage}:{command}; echo {stage} {{k}} $PPID >>ran");
    let (sort, count) =
        (log("sort", "sort <{in} >{out}"), log("copy", "cat {in} >{out}; sleep 0.01"));
    for (merge, pools) in [("cat", false), ("sort -m {outs}", true), ("sort", false)] {
        let mut words = vec!["in", "--partitions", "12", "--merge", merge, "--stage", &sort];
        if pools {
            words.extend(["--pool", "one:1"]);
        }
        words.extend(["--stage", &count, "--pool", "two:2"]);
        let started = Instant::now();
        let expected = made(&folder, &words);
        let time = started.elapsed().as_micros() as u64;
        assert!(merge == "cat" || expected == sorted_lines(&text), "{merge}");
        for _ in 0..asked("MERGANSER_CRASHES", 10).div_ceil(3) {
            folder.write("ran", b"");
            let mut killed = 0;
            loop {
                let moment = Duration::from_micros(chance.below(time));
                if !disturb(&folder, &words, moment, libc::SIGKILL) {
                    break;
                }
                killed += 1;
                // Killed after its last step but one, it has its output already.
                let out = fs::read(folder.at("out"));
                assert!(
                    out.is_err() || out.is_ok_and(|out| out == expected),
                    "a part of the output"
                );
                // Killed in its very last step, it is done, and the same command would do it all again.
                let journal = folder.at(".out.unfinished/pipeline-journal");
                if folder.at("out").exists() && !journal.exists() {
                    let _ = fs::remove_dir(folder.at(".out.unfinished"));
                    break;
                }
                assert!(fs::read(folder.at("in")).expect("there") == text, "the input");
                if killed == 6 {
                    prints(&mut pipeline(&folder, &words));
                    break;
                }
            }
            assert!(
                fs::read(folder.at("out")).expect("there") == expected,
                "{merge}, {killed} kills"
            );
            assert!(!folder.at(".out.unfinished").exists(), "left behind");
            let ran = lines_of(&folder.at("ran")).len();
            // Three threads ran a stage each at most when a kill came.
            assert!((24..=24 + 3 * killed).contains(&ran), "{ran} stages, {killed} kills");
            fs::remove_file(folder.at("out")).expect("removed");
        }
    }
}

#[test]
fn processes_of_a_killed_pipeline_end() {
    let folder = Folder::new();
    folder.write("in", b"x\n");
    let hang = "a:sleep 1000 & echo $! >>pids; echo $$ >>pids; sleep 1000";
    let mut command = pipeline_itself(&folder, &["in", "--partitions", "1", "--stage", hang]);
    let mut child = command.spawn().expect("it starts");
    let until = Instant::now() + Duration::from_secs(20);
    while lines_of(&folder.at("pids")).len() < 2 {
        assert!(Instant::now() < until, "the stage does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, libc::SIGKILL);
    child.wait().expect("it ends");
    let gone = |pid: &String| !std::path::Path::new(&format!("/proc/{pid}")).exists();
    let pids = lines_of(&folder.at("pids"));
    while !pids.iter().all(gone) {
        assert!(Instant::now() < until, "a process continues: {pids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interrupted_pipeline_ends_soon_and_continues() {
    let folder = Folder::new();
    folder.write("in", b"a\nb\nc\n");
    let slow = "a:echo $$ >>pids; [ -e go ] || [ {k} = 0 ] || sleep 1000; cat";
    let words = ["in", "--partitions", "3", "--stage", slow, "--pool", "p:2"];
    // Two stages hang. In the first run, the one of partition 0 has ended before the last of them begins.
    for (number, begun) in [(libc::SIGINT, 3), (libc::SIGTERM, 2)] {
        folder.write("pids", b"");
        let mut child =
            pipeline_itself(&folder, &words).stderr(Stdio::piped()).spawn().expect("it starts");
        let until = Instant::now() + Duration::from_secs(20);
        while lines_of(&folder.at("pids")).len() < begun {
            assert!(Instant::now() < until, "the stages do not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        let asked = Instant::now();
        signal(&child, number);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(128 + number));
        assert!(asked.elapsed() < Duration::from_secs(9), "{:?}", asked.elapsed());
        let gone = |pid: &String| !std::path::Path::new(&format!("/proc/{pid}")).exists();
        assert!(lines_of(&folder.at("pids")).iter().all(gone), "a stage continues");
        assert!(!folder.at("out").exists());
    }
    folder.write("go", b"");
    folder.write("pids", b"");
    assert_eq!(made(&folder, &words), b"a\nb\nc\n");
    assert_eq!(lines_of(&folder.at("pids")).len(), 2, "partition 0 is not done again");
}

/// The same while it waits for the next bytes of a pipe.
#[test]
fn an_interrupted_pipeline_does_not_wait_for_its_input() {
    let folder = Folder::new();
    let words = ["-", "--partitions", "1K", "--in-flight", "9", "--stage", "a:cat; echo {k} >>ran"];
    let mut command = pipeline_itself(&folder, &words);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut writer = child.stdin.take().expect("piped");
    writer.write_all(&Chance::new().lines(4000)).expect("written");
    let until = Instant::now() + Duration::from_secs(20);
    while lines_of(&folder.at("ran")).len() < 2 {
        assert!(Instant::now() < until, "the stages do not run");
        std::thread::sleep(Duration::from_millis(5));
    }
    let asked = Instant::now();
    signal(&child, libc::SIGINT);
    let status = child.wait().expect("it ends");
    drop(writer);
    assert_eq!(status.code(), Some(128 + libc::SIGINT));
    assert!(asked.elapsed() < Duration::from_secs(9), "{:?}", asked.elapsed());
    assert!(!folder.at("out").exists());
}

/// ATTACK finding N1 c: what was made of a pipe is nowhere else.
#[test]
fn n1_the_partitions_of_a_pipe_are_kept() {
    let folder = Folder::new();
    let words = ["-", "--partitions", "1K", "--in-flight", "9", "--stage", "a:cat; echo {k} >>ran"];
    let mut command = pipeline_itself(&folder, &words);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut writer = child.stdin.take().expect("piped");
    writer.write_all(&Chance::new().lines(4000)).expect("written");
    let until = Instant::now() + Duration::from_secs(20);
    // The output of a stage is in its folder for a moment only, before it is gathered.
    while lines_of(&folder.at("ran")).len() < 2 {
        assert!(Instant::now() < until, "the stages do not run");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    signal(&child, libc::SIGKILL);
    child.wait().expect("it ends");
    drop(writer);
    let said = prints(merganser(["recover"]).arg(folder.path()));
    let said = String::from_utf8(said).expect("text");
    assert!(said.contains("it read a pipe, whose bytes may be here alone"), "{said}");
    assert!(said.contains("keep:") && !said.contains("next:"), "{said}");
    let work = || {
        let listed = prints(
            Command::new("find")
                .arg(folder.at(".out.unfinished"))
                .args(["-type", "f", "-size", "+0", "-ls"]),
        );
        String::from_utf8(listed).expect("text")
    };
    let before = work();
    assert!(before.contains("partial") || before.contains("a/out"), "{before}");
    let sentence = fails(&mut pipeline(&folder, &words));
    assert!(sentence.contains("perhaps the only copy"), "{sentence}");
    assert_eq!(work(), before, "nothing is taken away");
}

/// Killed while it removed what no stage had used: the journal is still there, and partitions are gone.
#[test]
fn partitions_that_were_removed_before_the_first_stage_are_cut_again() {
    let folder = Folder::new();
    folder.write("in", b"a\nb\nc\n");
    // The words of a stage are kept, and the partitions with them.
    let stage = "a:[ -e go ] || { echo why >&2; exit 1; }; cat";
    let words = ["in", "--partitions", "3", "--retries", "0", "--stage", stage];
    let parts = folder.at(".out.unfinished/pipeline");
    let removals: [&dyn Fn(); 2] = [
        &|| {
            for name in names(&parts).iter().filter(|name| name.ends_with(".part")) {
                fs::remove_file(parts.join(name)).expect("removed");
            }
        },
        &|| fs::remove_dir_all(&parts).expect("removed"),
    ];
    for remove in removals {
        fails(&mut pipeline(&folder, &words));
        assert!(parts.join("000000.part").exists(), "{:?}", names(&parts));
        remove();
        folder.write("go", b"");
        assert_eq!(made(&folder, &words), b"a\nb\nc\n");
        fs::remove_file(folder.at("go")).expect("removed");
    }
}

/// Killed between its last two steps: the output has its name, and only leftovers are removed.
#[test]
fn a_pipeline_that_was_killed_at_its_very_end_does_nothing_again() {
    let folder = Folder::new();
    folder.write("in", b"a\nb\n");
    // The merge links its result to a second name, and its journal is put back afterwards.
    let words = [
        "in",
        "--partitions",
        "2",
        "--stage",
        "a:echo x >>ran; cat",
        "--merge",
        "cat; cp -r .out.unfinished kept",
    ];
    prints(&mut pipeline(&folder, &words));
    let journal = fs::read(folder.at("kept/pipeline-journal")).expect("kept");
    let unfinished = folder.at(".out.unfinished");
    fs::create_dir(&unfinished).expect("made");
    let modes = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&unfinished, modes).expect("set");
    let merged = b"{\"merged\":{\"bytes\":4}}";
    let line = format!("{:08x} ", crc32c_of(merged));
    let whole = [&journal, line.as_bytes(), merged, b"\n"].concat();
    fs::write(unfinished.join("pipeline-journal"), &whole).expect("written");
    let output = pipeline(&folder, &words).output().expect("it starts");
    let said = crate::harness::stderr(&output);
    assert!(output.status.success() && said.contains("was finished before"), "{said}");
    assert!(!unfinished.exists());
    assert_eq!(fs::read(folder.at("out")).expect("there"), b"a\nb\n");
    assert_eq!(lines_of(&folder.at("ran")).len(), 2);
    // If the output is gone meanwhile, the command says so, and makes it when it is repeated.
    fs::remove_file(folder.at("out")).expect("removed");
    fs::create_dir(&unfinished).expect("made");
    fs::write(unfinished.join("pipeline-journal"), &whole).expect("written");
    let sentence = fails(&mut pipeline(&folder, &words));
    assert!(sentence.contains("has gone since"), "{sentence}");
    prints(&mut pipeline(&folder, &words));
    assert_eq!(fs::read(folder.at("out")).expect("there"), b"a\nb\n");
}

/// CRC32C, bit by bit.
fn crc32c_of(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

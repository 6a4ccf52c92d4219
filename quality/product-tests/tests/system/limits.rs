//! A system that refuses memory or threads (audit finding F16): every run ends soon, with the right
//! result or one sentence and status 2, and leaves nothing behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use merganser_testkit::install_program;

use crate::harness::{
    Chance, Folder, binary, is_root, merganser, one_sentence, prints, sorted_lines, stderr,
};

/// The longest that a refused command may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Has `command` start with a limit of the kind `resource`.
fn limit(command: &mut Command, resource: libc::__rlimit_resource_t, value: u64) {
    let limits = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: between fork and exec there is one system call, which reads a value of the closure.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(resource, &raw const limits) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
}

/// Where results go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    File,
    View,
    Stdout,
}

/// Sorts with either strategy to everything; `prepare` sets the limits of each command. Gives how many
/// succeeded, and how many did not.
fn sorts(program: &dyn Fn() -> Command, prepare: &dyn Fn(&mut Command)) -> (u32, u32) {
    let (mut done, mut refused) = (0, 0);
    let folder = Folder::new();
    let content = Chance::new().lines(24 << 20);
    let input = folder.write("input", &content);
    let sorted = sorted_lines(&content);
    for strategy in ["merge", "distribute"] {
        for to in [To::File, To::View, To::Stdout] {
            let place = Folder::new();
            fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).expect("mine");
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("mine");
            let mut command = program();
            command.args(["sort", "--memory", "64M", "--threads", "4", "--strategy", strategy]);
            command.arg(&input).arg("--temp-dir").arg(place.path());
            match to {
                To::File => command.arg("-o").arg(place.at("out")),
                To::View => command.arg("--view").arg(place.at("out")),
                To::Stdout => &mut command,
            };
            prepare(&mut command);
            let started = Instant::now();
            let output = command.output().expect("it starts");
            let (took, said) = (started.elapsed(), stderr(&output));
            assert!(took < LIMIT, "{command:?}: {took:?}: {said}");
            assert!(!said.contains("panicked"), "{command:?}: {said}");
            if output.status.success() {
                assert_eq!(said, "", "{command:?}");
                let result = match to {
                    To::File => fs::read(place.at("out")).expect("there"),
                    To::View => prints(merganser(["cat"]).arg(place.at("out"))),
                    To::Stdout => output.stdout,
                };
                assert!(result == sorted, "{command:?}: another result");
                done += 1;
            } else {
                let sentence = one_sentence(&command, &output);
                // io_uring cancels requests if it gets no kernel thread for them.
                let why = ["the system has no ", "Operation canceled"];
                assert!(why.iter().any(|why| sentence.contains(why)), "{command:?}: {sentence}");
                assert_eq!(place.names(), [""; 0], "{command:?}: left behind");
                refused += 1;
            }
        }
    }
    (done, refused)
}

#[test]
fn f16_little_address_space_is_one_sentence() {
    let (mut done, mut refused) = (0, 0);
    let this = || {
        let mut command = Command::new(binary());
        command.stdin(std::process::Stdio::null());
        command
    };
    // With less, the system can't load the program, whose size depends on how it was compiled.
    let loads = |mib: &u64| {
        let mut command = this();
        limit(command.arg("--version"), libc::RLIMIT_AS, mib << 20);
        command.output().is_ok_and(|output| output.status.success())
    };
    let least = (40..=200).step_by(4).find(loads).expect("some MiB are enough to load it");
    for mib in (least..=least + 240).step_by(24) {
        let (more, fewer) = sorts(&this, &|command| limit(command, libc::RLIMIT_AS, mib << 20));
        (done, refused) = (done + more, refused + fewer);
    }
    eprintln!("{done} sorts had enough address space, {refused} were refused");
    assert!(refused > 0, "all had enough");
}

#[test]
fn f16_few_threads_are_one_sentence() {
    if !is_root("a user without other processes") {
        return;
    }
    // A user of its own, whose processes are counted alone; it can't look into this one's folders.
    let user = 60_000 + std::process::id() % 5000;
    let programs = Folder::new();
    fs::set_permissions(programs.path(), fs::Permissions::from_mode(0o755)).expect("mine");
    let program = programs.at("merganser");
    install_program(binary(), &program);
    let (mut done, mut refused) = (0, 0);
    for threads in [1, 2, 3, 4, 5, 7, 9, 12, 40] {
        let this = || {
            let mut command = Command::new(&program);
            command.stdin(std::process::Stdio::null()).uid(user).gid(user);
            command
        };
        let (more, fewer) = sorts(&this, &|command| limit(command, libc::RLIMIT_NPROC, threads));
        (done, refused) = (done + more, refused + fewer);
    }
    eprintln!("{done} sorts had enough threads, {refused} were refused");
    assert!(done >= 6 && refused > 0, "{done} done, {refused} refused");
}

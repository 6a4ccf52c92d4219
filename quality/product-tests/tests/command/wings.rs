//! Commands that other programs have: found next to `merganser` or apart, or named in one sentence.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use merganser_testkit::install_program;

use super::{folder, stderr};

/// Copies a program that was built to `to`.
fn install(name: &str, to: &Path) {
    fs::create_dir_all(to).expect("made");
    let built = Path::new(merganser_testkit::program()).with_file_name(name);
    install_program(built, &to.join(name));
}

fn run(bin: &Path, words: &[&str]) -> Output {
    Command::new(bin.join("merganser")).args(words).output().expect("it starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn a_program_that_is_not_installed_is_one_sentence() {
    let dir = folder();
    let bin = dir.path().join("bin");
    install("merganser", &bin);
    for (command, program) in [
        ("table", "merganser-tables"),
        ("map", "merganser-near"),
        ("hadoop", "merganser-hadoop"),
        ("array", "merganser-array"),
        ("simulate", "merganser-lab"),
    ] {
        let refused = run(&bin, &[command, "--help"]);
        let (said, there) = (stderr(&refused), bin.display());
        assert_eq!(
            said,
            format!(
                "merganser: {command}: needs the program {program}, which is not in {there} or \
                 {there}/../libexec/merganser; build it with 'make all', or install it there\n"
            )
        );
        assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(2), ""));
    }
    let help = stdout(&run(&bin, &["--help"]));
    assert!(help.contains("\n  sort ") && !help.contains("\n  map "), "{help}");
    let script = stdout(&run(&bin, &["completions", "bash"]));
    assert!(script.contains("materialize") && !script.contains("simulate"));
}

#[test]
fn programs_are_found_next_to_the_command_and_apart() {
    let dir = folder();
    let (bin, apart) = (dir.path().join("bin"), dir.path().join("libexec/merganser"));
    install("merganser", &bin);
    install("merganser-near", &apart);
    install("merganser-array", &bin);
    let help = stdout(&run(&bin, &["--help"]));
    assert!(help.contains("\n  map ") && help.contains("\n  array "), "{help}");
    assert!(!help.contains("\n  simulate "), "{help}");
    let listed = run(&bin, &["ssdlet", "list"]);
    assert!(stdout(&listed).contains("wordcount"), "{}", stderr(&listed));
    // Through a link, the folder is that of the program.
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(bin.join("merganser"), &link).expect("a link");
    let listed = Command::new(&link).args(["ssdlet", "list"]).output().expect("it starts");
    assert!(stdout(&listed).contains("wordcount"), "{}", stderr(&listed));
}

/// The first line is for programs, which read its second word; the others are for reports of faults.
#[test]
fn the_version_says_what_is_installed() {
    let dir = folder();
    let bin = dir.path().join("bin");
    install("merganser", &bin);
    let said = |program: &str, words: &[&str]| {
        let said = Command::new(bin.join(program)).args(words).output().expect("it starts");
        assert_eq!((said.status.code(), stderr(&said).as_str()), (Some(0), ""));
        stdout(&said)
    };
    let alone = said("merganser", &["--version"]);
    let first = alone.lines().next().expect("a line");
    assert!(first.starts_with("merganser 0.") && first.ends_with(')'), "{alone}");
    assert!(alone.contains("\ntarget: ") && alone.contains("\nio_uring: "), "{alone}");
    assert!(alone.ends_with("\nother programs: none\n"), "{alone}");
    assert_eq!(said("merganser", &["-V"]), alone);
    install("merganser-near", &dir.path().join("libexec/merganser"));
    install("merganser-array", &bin);
    let three = said("merganser", &["--version"]);
    assert!(three.ends_with("\nother programs: merganser-near, merganser-array\n"), "{three}");
    let array = said("merganser-array", &["--version"]);
    assert_eq!(array.lines().next(), Some(first.replace("merganser", "merganser-array").as_str()));
    assert_eq!(array.lines().count(), 3, "{array}");
}

/// Advice on a modelled disk asks the program that has the models, as a user would.
#[test]
fn advice_without_the_models_says_what_is_missing() {
    let dir = folder();
    let bin = dir.path().join("bin");
    install("merganser", &bin);
    install("merganser-hadoop", &bin);
    let refused = run(&bin, &["hadoop", "advise", "--job", "1G", "--device", "830"]);
    let told = stderr(&refused);
    let missing = "merganser: --device: simulate: needs the program merganser-lab";
    assert!(told.lines().any(|line| line.starts_with(missing)), "{told}");
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(2), ""));
    install("merganser-lab", &bin);
    let unknown = run(&bin, &["hadoop", "advise", "--job", "1G", "--device", "none"]);
    let told = stderr(&unknown);
    assert!(told.contains("merganser: --device: ") && told.contains("jasmine"), "{told}");
}

#[test]
fn a_program_that_does_not_list_its_commands_is_named() {
    let dir = folder();
    let bin = dir.path().join("bin");
    install("merganser", &bin);
    install_program("/bin/false", &bin.join("merganser-lab"));
    let help = run(&bin, &["--help"]);
    let told = format!(
        "merganser: {}/merganser-lab: is there and does not say what commands it has; they are left out here\n",
        bin.display()
    );
    assert_eq!((help.status.code(), stderr(&help)), (Some(0), told));
    assert!(stdout(&help).contains("\n  sort "));
}

/// Arguments, standard streams, exit status and signals are those of the command.
#[test]
fn the_command_takes_the_place_of_the_process() {
    let dir = folder();
    let script = format!("exec {} map wordcount - --top 1", merganser_testkit::program());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(dir.path());
    let mut running = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    use std::io::Write;
    running.stdin.take().expect("piped").write_all(b"b a b\n").expect("written");
    let ended = running.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), stdout(&ended).as_str()), (Some(0), "b\t2\n"));

    let mut waiting = Command::new(merganser_testkit::program());
    waiting.args(["map", "wordcount", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut waiting = waiting.spawn().expect("it starts");
    let pid = waiting.id();
    let program = || fs::read_link(format!("/proc/{pid}/exe")).expect("it runs");
    while !program().ends_with("merganser-near") {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SAFETY: it is a child that was not waited for.
    unsafe { libc::kill(i32::try_from(pid).expect("a number"), libc::SIGKILL) };
    assert_eq!(waiting.wait().expect("it ended").signal(), Some(libc::SIGKILL));
}

//! Unusual inputs: files without a size, more files than a process may have open, closed
//! descriptors, failures that look like a closed pipe, names with control characters for the
//! terminal.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{
    Chance, Folder, asked, binary, fails, gnu_sort, merganser, merganser_itself, names,
    one_sentence, output_with, prints, small_memory, sorted_lines, stderr, view_of,
};
use crate::preload::library;
use crate::sandbox::refuse_rings;

/// Makes reads or writes of files whose path has a given part fail.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd, const char *operation) {
    char link[64], path[4096];
    const char *wanted = getenv("FAULT_OPERATION"), *part = getenv("FAULT_PATH");
    if (!wanted || !part || strcmp(wanted, operation)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len < 0) return 0;
    path[len] = 0;
    if (!strstr(path, part)) return 0;
    errno = atoi(getenv("FAULT_ERRNO"));
    return 1;
}
#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))
ssize_t read(int fd, void *to, size_t n) {
    return fails(fd, "read") ? -1 : REAL(read)(fd, to, n);
}
ssize_t pread(int fd, void *to, size_t n, off_t at) {
    return fails(fd, "read") ? -1 : REAL(pread)(fd, to, n, at);
}
ssize_t pread64(int fd, void *to, size_t n, off64_t at) {
    return fails(fd, "read") ? -1 : REAL(pread64)(fd, to, n, at);
}
ssize_t write(int fd, const void *from, size_t n) {
    return fails(fd, "write") ? -1 : REAL(write)(fd, from, n);
}
ssize_t pwrite(int fd, const void *from, size_t n, off_t at) {
    return fails(fd, "write") ? -1 : REAL(pwrite)(fd, from, n, at);
}
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) {
    return fails(fd, "write") ? -1 : REAL(pwrite64)(fd, from, n, at);
}
"#;

/// SAFETY finding F9: a file that fails with EPIPE or ECONNABORTED, as files over a connection can,
/// is neither a closed pipe nor a cancellation.
#[test]
fn f9_no_error_of_a_file_is_a_closed_pipe() {
    let folder = Folder::new();
    let Some(shim) = library(&folder, SHIM) else { return };
    let memory = small_memory();
    let content = Chance::new().lines(memory as usize * 2);
    for name in ["in.d", "temp.d", "out.d", "views.d"] {
        fs::create_dir(folder.at(name)).expect("made");
    }
    let input = folder.write("in.d/input", &content);
    let sorted = folder.write("in.d/sorted", &sorted_lines(&content));
    let (temp, out) = (folder.at("temp.d"), folder.at("out.d/out"));
    let (view, new_view) = (folder.at("x.view"), folder.at("views.d/new.view"));
    let memory = format!("--memory={memory}");
    fs::rename(view_of(&folder, &input, &[&memory, "--strategy=merge"]), &view).expect("renamed");
    let buckets = folder.at("buckets.view");
    fs::rename(view_of(&folder, &input, &[&memory, "--strategy=distribute"]), &buckets)
        .expect("renamed");
    let s = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let sort = |more: &[&str]| words(&[&["sort", &memory, "-T", &s(&temp)], more].concat());
    let (i, t, o, v) = (s(&input), s(&sorted), s(&out), s(&view));
    let mut cases: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for strategy in ["--strategy=merge", "--strategy=distribute"] {
        cases.extend([
            ("read", "in.d", sort(&[strategy, &i, "-o", &o])),
            ("read", "in.d", sort(&[strategy, &i])),
            ("read", "in.d", sort(&[strategy, &i, "--view", &s(&new_view)])),
            ("read", "temp.d", sort(&[strategy, &i, "-o", &o])),
            ("write", "temp.d", sort(&[strategy, &i, "-o", &o])),
            ("write", "temp.d", sort(&[strategy, &i])),
            ("write", "out.d", sort(&[strategy, &i, "-o", &o])),
            ("write", "views.d", sort(&[strategy, &i, "--view", &s(&new_view)])),
        ]);
    }
    for view in [&v, &s(&buckets)] {
        cases.extend([
            ("read", ".view", words(&["cat", view])),
            ("read", ".view", words(&["verify", view])),
            ("read", ".view", words(&["materialize", view, "-o", &o])),
            ("write", "out.d", words(&["materialize", view, "-o", &o])),
        ]);
    }
    cases.extend([
        ("read", "in.d", sort(&["--memory=1G", &i, "-o", &o])),
        ("write", "out.d", sort(&["--memory=1G", &i, "-o", &o])),
        ("read", "in.d", sort(&["-m", &t, &t, "-o", &o])),
        ("write", "out.d", sort(&["-m", &t, &t, "-o", &o])),
        ("read", "in.d", words(&["sort", "-c", &t])),
        ("read", "in.d", words(&["verify", &t])),
        ("write", "out.d", words(&["generate", "--records", "100K", "-o", &o])),
        ("write", "out.d", words(&["generate", "--records", "100K", "-o", &o, "--threads=1"])),
    ]);
    for (operation, part, arguments) in &cases {
        for errno in [libc::EPIPE, libc::ECONNABORTED] {
            let mut command = merganser_itself(arguments);
            command.env("LD_PRELOAD", &shim).env("FAULT_OPERATION", operation);
            command.env("FAULT_PATH", part).env("FAULT_ERRNO", errno.to_string());
            refuse_rings(&mut command, libc::ENOSYS);
            let output = command.output().expect("it starts");
            let sentence = one_sentence(&command, &output);
            let why = std::io::Error::from_raw_os_error(errno).to_string();
            let why = why.split(" (os").next().expect("a text").to_owned();
            assert!(sentence.contains(&why), "{operation} of {part}: {arguments:?}: {sentence}");
            for left in ["temp.d", "out.d", "views.d"] {
                assert_eq!(
                    names(&folder.at(left)),
                    [""; 0],
                    "{operation} of {part}: {arguments:?}"
                );
            }
        }
    }
    // Standard output that is a file fails as one.
    for arguments in [words(&["cat", &v]), sort(&[&i]), words(&["info", &v])] {
        let mut command = merganser_itself(&arguments);
        command.env("LD_PRELOAD", &shim).env("FAULT_OPERATION", "write");
        command.env("FAULT_PATH", "printed").env("FAULT_ERRNO", libc::EPIPE.to_string());
        refuse_rings(&mut command, libc::ENOSYS);
        let printed = fs::File::create(folder.at("printed")).expect("made");
        let output = command.stdout(printed).stderr(Stdio::piped()).output().expect("it starts");
        let sentence = one_sentence(&command, &output);
        assert!(sentence.starts_with("standard output: "), "{sentence}");
    }
}

/// SAFETY finding F12: the kernel's own files say that they have no bytes, or a page.
#[test]
fn f12_files_without_a_size_are_streams() {
    let folder = Folder::new();
    let empty = folder.write("empty", b"");
    let lines = folder.write("lines", b"b\na\n");
    let sys = ["/sys/kernel/mm/transparent_hugepage/enabled", "/sys/devices/system/cpu/online"];
    let mut files: Vec<&Path> =
        ["/proc/version", "/proc/filesystems", "/proc/self/limits"].iter().map(Path::new).collect();
    files.extend(sys.iter().map(Path::new).filter(|path| path.exists()));
    for file in files {
        let gnu = prints(gnu_sort(["--"]).arg(file));
        assert!(!gnu.is_empty());
        assert_eq!(prints(merganser(["sort"]).arg(file)), gnu, "{}", file.display());
        let strategy = ["sort", "--strategy=distribute"];
        assert_eq!(prints(merganser(strategy).arg(file)), gnu, "{}", file.display());
        let opened = || Stdio::from(fs::File::open(file).expect("opened"));
        assert_eq!(prints(merganser(["sort"]).stdin(opened())), gnu, "{}", file.display());
        let view = folder.at("x.view");
        prints(merganser(["sort"]).arg(file).arg("--view").arg(&view));
        assert_eq!(prints(merganser(["cat"]).arg(&view)), gnu, "{}", file.display());
        fs::remove_dir_all(&view).expect("removed");
        let many = [&empty, file, &lines, &empty];
        let gnu = prints(&mut gnu_sort(many));
        assert_eq!(prints(merganser(["sort"]).args(many)), gnu, "{}", file.display());
    }
    let gnu = prints(&mut gnu_sort(["-m", "/proc/version", "/proc/version"]));
    assert_eq!(prints(&mut merganser(["sort", "-m", "/proc/version", "/proc/version"])), gnu);
    assert!(prints(merganser(["sort"]).args([&empty, &empty])).is_empty());
    let mut refused = merganser(["sort", "--consume", "/proc/self/mem", "-o"]);
    let refused = fails(refused.arg(folder.at("out")));
    assert!(refused.contains("/proc/self/mem"), "{refused}");
}

/// The writer of two pipes fills one after the other, as a shell script does.
#[test]
fn f12_named_pipes_are_opened_when_they_are_read() {
    let folder = Folder::new();
    let pipes = [folder.at("first"), folder.at("second")];
    prints(Command::new("mkfifo").args(&pipes));
    let content = Chance::new().lines(1 << 20);
    let (both, paths) = (sorted_lines(&[&content[..], &content].concat()), pipes.clone());
    let writer = std::thread::spawn(move || {
        for path in &paths {
            let mut pipe = fs::OpenOptions::new().write(true).open(path).expect("opened");
            pipe.write_all(&content).expect("written");
        }
    });
    assert!(prints(merganser(["sort"]).args(&pipes)) == both);
    writer.join().expect("all was read");
}

/// Lets the process that `command` starts have at most `most` files open.
fn limit_files(command: &mut Command, most: u64) {
    // SAFETY: between fork and exec there is one system call, which reads a local structure.
    unsafe {
        command.pre_exec(move || {
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
}

/// SAFETY finding F18. `MERGANSER_INPUTS` asks for more than a quick run takes.
#[test]
fn f18_more_inputs_than_a_process_may_have_open() {
    let folder = Folder::new();
    let count = asked("MERGANSER_INPUTS", 1500);
    let many = folder.at("many");
    fs::create_dir(&many).expect("made");
    let mut chance = Chance::new();
    let mut list = Vec::new();
    for number in 0..count {
        let path = many.join(format!("{number:06}"));
        let lines = 1 + (number % 7) as usize;
        // Each is sorted, and some are a little longer than one read.
        let bytes = if number % 500 == 3 { 150_000 } else { 40 * lines };
        fs::write(&path, sorted_lines(&chance.lines(bytes))).expect("written");
        list.extend_from_slice(path.as_os_str().as_bytes());
        list.push(0);
    }
    let list = folder.write("list", &list);
    let from = format!("--files0-from={}", list.display());
    let gnu = prints(&mut gnu_sort([&*from]));
    for options in [
        &["sort"][..],
        &["sort", "-m"],
        &["sort", "-mu"],
        &["sort", "--strategy=distribute"],
        &["sort", "--strategy=distribute", "--memory=16M"],
        &["sort", "-m", "--memory=16M"],
    ] {
        for most in [64, 1024] {
            let mut sort = merganser_itself(options);
            sort.arg(&from).arg("-T").arg(folder.path());
            limit_files(&mut sort, most);
            assert!(prints(&mut sort) == gnu, "{options:?}, {most} files");
        }
    }
    let view = folder.at("x.view");
    let mut sort = merganser_itself(["sort", "--memory=16M"]);
    sort.arg(&from).arg("--view").arg(&view);
    limit_files(&mut sort, 64);
    prints(&mut sort);
    assert!(prints(merganser(["cat"]).arg(&view)) == gnu);
    // A missing file is found before anything is read, and the failure leaves no files.
    fs::remove_file(many.join(format!("{:06}", count - 1))).expect("removed");
    let mut sort = merganser(["sort"]);
    let sentence = fails(sort.arg(&from).arg("-o").arg(folder.at("out")));
    assert!(sentence.contains("No such file"), "{sentence}");
    assert!(!folder.names().contains(&"out".to_owned()));
}

/// SAFETY finding F18: more runs than a process may have open.
#[test]
fn f18_more_runs_than_a_process_may_have_open() {
    let folder = Folder::new();
    let content = Chance::new().lines(60 << 20);
    let input = folder.write("input", &content);
    let (out, view) = (folder.at("out"), folder.at("x.view"));
    let sorted = sorted_lines(&content);
    let limited = |options: &[&str], last: &[&Path]| {
        let mut sort = merganser_itself(["sort", "--memory=8M", "-T"]);
        sort.arg(folder.path()).args(options).args(last);
        limit_files(&mut sort, 64);
        sort
    };
    for strategy in ["--strategy=merge", "--strategy=distribute"] {
        prints(&mut limited(&[strategy], &[&input, Path::new("-o"), &out]));
        assert!(fs::read(&out).expect("there") == sorted, "{strategy}");
        prints(&mut limited(&[strategy], &[&input, Path::new("--view"), &view]));
        let mut cat = merganser_itself(["cat"]);
        limit_files(cat.arg(&view), 64);
        assert!(prints(&mut cat) == sorted, "{strategy}");
        fs::remove_dir_all(&view).expect("removed");
    }
    let mut piped = limited(&["--strategy=merge"], &[]);
    let output = output_with(&mut piped, &content);
    assert!(output.status.success() && output.stdout == sorted, "{}", stderr(&output));
    assert_eq!(folder.names(), ["input", "out"]);
}

/// SAFETY finding F26: judged by GNU sort.
#[test]
fn f26_closed_descriptors_are_errors_where_they_are_used() {
    let folder = Folder::new();
    folder.write("in", b"b\na\n");
    folder.write("empty", b"");
    let input = folder.at("in");
    prints(merganser(["sort"]).arg(&input).arg("--view").arg(folder.at("x.view")));
    let run = |program: &OsStr, arguments: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("\"$0\" {arguments}")]).arg(program);
        shell.current_dir(folder.path()).env("LC_ALL", "C").stdin(Stdio::null());
        shell.output().expect("it starts")
    };
    for arguments in [
        "in >&-",
        "-m in >&-",
        "empty >&-",
        "-o out <&-",
        "in -o out <&-",
        "in -o out >&-",
        "in <&- >&-",
        "in 2>&-",
        "in <&-",
        "missing 2>&-",
        "-c in <&- >&-",
        "-c <&-",
        "in -o out <&- >&- 2>&-",
        "--help >&-",
    ] {
        let gnu = run(OsStr::new("sort"), arguments);
        let own = run(&binary(), &format!("sort {arguments}"));
        assert_eq!(own.status.code(), gnu.status.code(), "{arguments}: {}", stderr(&own));
        if !arguments.contains("help") {
            assert_eq!(own.stdout, gnu.stdout, "{arguments}");
        }
        let closed = stderr(&own).contains("Bad file descriptor");
        assert_eq!(closed, stderr(&gnu).contains("Bad file descriptor"), "{arguments}");
    }
    // GNU sort reads the next file in the place of a closed standard input, twice; not we.
    let own = run(&binary(), "sort in - <&-");
    assert_eq!((own.status.code(), own.stdout), (Some(2), Vec::new()));
    for arguments in ["cat x.view", "info x.view", "verify x.view", "man", "generate --records 3"] {
        let own = run(&binary(), &format!("{arguments} >&-"));
        assert_eq!(own.status.code(), Some(2), "{arguments}");
        assert!(stderr(&own).contains("standard output: Bad file descriptor"), "{arguments}");
    }
}

/// SAFETY finding F28: names and texts in a view's manifest are escaped before a terminal shows them.
#[test]
fn f28_messages_hold_no_control_characters() {
    let folder = Folder::new();
    let input = folder.write("in", b"b\na\n");
    let is_plain = |sentence: &str| {
        assert!(!sentence.chars().any(char::is_control), "{sentence:?}");
        assert!(sentence.len() < 11_000, "{} bytes", sentence.len());
    };
    let hostile = "\x1b]0;owned\x07\x1b[2J\r\n\t\u{9b}31m\u{202e}";
    let hostile_file = folder.at(hostile);
    let below = hostile_file.join("out");
    for arguments in [
        vec![OsStr::new("sort"), hostile_file.as_os_str()],
        vec![OsStr::new("verify"), hostile_file.as_os_str()],
        vec![OsStr::new("cat"), hostile_file.as_os_str()],
        vec![OsStr::new("info"), hostile_file.as_os_str()],
        vec![OsStr::new("sort"), OsStr::new("--key"), OsStr::new(hostile)],
        vec![OsStr::new(hostile)],
        vec![OsStr::new("sort"), input.as_os_str(), OsStr::new("-o"), below.as_os_str()],
    ] {
        let sentence = fails(&mut merganser(&arguments));
        is_plain(&sentence);
        // Clap removes the control characters before it quotes an argument.
        let by_clap = arguments.len() == 1;
        assert!(by_clap || sentence.contains("\\x1b"), "{sentence}");
    }
    let of_bytes = |name: &[u8]| fails(merganser(["sort"]).arg(OsStr::from_bytes(name)));
    assert_eq!(of_bytes(b"no\xffname"), "no\\xffname: No such file or directory");
    // The text of a record, in the words of -c.
    let out_of_order = folder.write("records", b"b\n\x1b[31ma\tc\n");
    let check = merganser(["sort", "-c"]).arg(&out_of_order).output().expect("it starts");
    let said = stderr(&check);
    assert!(said.ends_with(":2: disorder: \\x1b[31ma\tc\n"), "{said:?}");
    // A view whose marker is hostile.
    let view = view_of(&folder, &input, &[]);
    for text in [format!("/x/{hostile}; rm -rf $HOME"), hostile.repeat(3000), "ö".repeat(60_000)] {
        fs::write(view.join("consumed-into"), &text).expect("written");
        for command in ["cat", "info", "verify"] {
            is_plain(&fails(merganser([command]).arg(&view)));
        }
    }
    fs::write(view.join("consumed-into"), "/x/$(rm -rf it's)\n").expect("written");
    let sentence = fails(merganser(["cat"]).arg(&view));
    let recover = format!("finish that first: merganser recover {}", view.display());
    assert!(sentence.ends_with(&recover), "{sentence}");
}

/// A source may never end; GNU sort takes 16 bytes of it, and needs as many.
#[test]
fn a_random_source_decides_by_its_first_bytes() {
    let folder = Folder::new();
    let input = folder.write("in", &Chance::new().lines(20_000));
    let shuffled = |source: &Path| {
        let mut sort = merganser(["sort", "-R", "--random-source"]);
        sort.arg(source).arg(&input);
        sort
    };
    let endless = prints(&mut shuffled(Path::new("/dev/zero")));
    assert_eq!(prints(&mut shuffled(&folder.write("zeros", &[0; 16]))), endless);
    assert_eq!(prints(&mut shuffled(&folder.write("more", &[0; 5000]))), endless);
    let other = prints(&mut shuffled(&folder.write("other", b"0123456789abcdef")));
    assert_ne!(other, endless);
    assert_eq!(sorted_lines(&other), sorted_lines(&endless));
    for len in [0, 1, 15] {
        let short = folder.write("short", &vec![7; len]);
        let sentence = fails(&mut shuffled(&short));
        assert!(sentence.contains("at least 16 bytes"), "{sentence}");
        let gnu = gnu_sort(["-R", "--random-source"]).arg(&short).arg(&input).output();
        assert_eq!(gnu.expect("it starts").status.code(), Some(2));
        // Nothing is drawn, nothing is needed.
        let mut sort = merganser(["sort", "--random-source"]);
        assert_eq!(prints(sort.arg(&short).arg(&input)), prints(merganser(["sort"]).arg(&input)));
    }
}

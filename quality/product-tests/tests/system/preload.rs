//! Libraries that get between the command and the system: a call fails, or the process is killed or
//! stopped just before it. They are C, compiled when a test needs them.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use crate::harness::Folder;
use crate::sandbox::refuse_rings;

/// Compiles a library for `LD_PRELOAD`. Without a compiler, it prints a line and returns `None`.
pub(crate) fn library(folder: &Folder, source: &str) -> Option<PathBuf> {
    let (source, library) = (folder.write("shim.c", source.as_bytes()), folder.at("shim.so"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    match cc.output() {
        Ok(output) if output.status.success() => Some(library),
        other => {
            eprintln!("skipped: no C compiler: {other:?}");
            None
        }
    }
}

/// Counts the calls that make a change durable or visible, and does something just before one.
const STEPS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int steps;

static int step(const char *kind, const char *path) {
    const char *at = getenv("STEP_AT"), *of = getenv("STEP_OF"), *named = getenv("STEP_NAME");
    const char *slash = strrchr(path, '/'), *what = getenv("STEP_DO");
    if (!at || !what || (of && strcmp(of, kind))) return 0;
    if (named && strcmp(named, slash ? slash + 1 : path)) return 0;
    if (atomic_fetch_add(&steps, 1) + 1 != atoi(at)) return 0;
    if (!strcmp(what, "kill")) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (!strcmp(what, "stop")) {
        raise(SIGSTOP); /* This thread goes no step further. */
        return 0;
    }
    if (!strcmp(what, "hang")) {
        for (;;) pause(); /* The other threads continue. */
    }
    errno = atoi(what);
    return -1;
}
static int step_of(const char *kind, int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len < 0 ? 0 : len] = 0;
    return step(kind, path);
}
#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))
int rename(const char *from, const char *to) {
    return step("rename", to) ? -1 : REAL(rename)(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
    return step("rename", to) ? -1 : REAL(renameat)(a, from, b, to);
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    return step("rename", to) ? -1 : REAL(renameat2)(a, from, b, to, flags);
}
int unlink(const char *path) { return step("unlink", path) ? -1 : REAL(unlink)(path); }
int unlinkat(int folder, const char *path, int flags) {
    return step("unlink", path) ? -1 : REAL(unlinkat)(folder, path, flags);
}
int rmdir(const char *path) { return step("rmdir", path) ? -1 : REAL(rmdir)(path); }
int mkdir(const char *path, mode_t mode) {
    return step("mkdir", path) ? -1 : REAL(mkdir)(path, mode);
}
int fsync(int fd) { return step_of("sync", fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return step_of("sync", fd) ? -1 : REAL(fdatasync)(fd); }
int fallocate(int fd, int mode, off_t at, off_t len) {
    return step_of(mode & 2 ? "punch" : "allocate", fd) ? -1 : REAL(fallocate)(fd, mode, at, len);
}
int fallocate64(int fd, int mode, off64_t at, off64_t len) {
    return step_of(mode & 2 ? "punch" : "allocate", fd) ? -1 : REAL(fallocate64)(fd, mode, at, len);
}
"#;

/// The event at a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Kill,
    Stop,
    /// The thread stands still; the others continue.
    Hang,
    Fail(i32),
}

/// A step of a command: one of the calls that change the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    /// `rename`, `unlink`, `rmdir`, `mkdir`, `sync`, `punch`, `allocate`; nothing: each of them.
    pub of: Option<&'a str>,
    /// The last part of the path: of a rename, the new one.
    pub name: Option<&'a str>,
    /// Counts from 1.
    pub at: usize,
}

impl<'a> Step<'a> {
    /// The step of this number, of whatever kind.
    pub(crate) fn number(at: usize) -> Self {
        Step { of: None, name: None, at }
    }

    /// The first step of a kind with a name.
    pub(crate) fn first(of: &'a str, name: &'a str) -> Self {
        Step { of: Some(of), name: Some(name), at: 1 }
    }
}

/// The compiled [`STEPS`].
pub(crate) struct Steps {
    library: PathBuf,
    _folder: Folder,
}

impl Steps {
    /// Without a compiler, it prints a line and returns `None`.
    pub(crate) fn new() -> Option<Self> {
        let folder = Folder::new();
        Some(Steps { library: library(&folder, STEPS)?, _folder: folder })
    }

    /// Lets `event` happen just before a step of `command`, which must be the process itself.
    pub(crate) fn arm(&self, command: &mut Command, step: Step<'_>, event: Event) {
        command.env("LD_PRELOAD", &self.library).env("STEP_AT", step.at.to_string());
        if let Some(of) = step.of {
            command.env("STEP_OF", of);
        }
        if let Some(name) = step.name {
            command.env("STEP_NAME", name);
        }
        command.env(
            "STEP_DO",
            match event {
                Event::Kill => "kill".to_owned(),
                Event::Stop => "stop".to_owned(),
                Event::Hang => "hang".to_owned(),
                Event::Fail(errno) => errno.to_string(),
            },
        );
        // A preloaded library can't see the operations of a ring.
        refuse_rings(command, libc::ENOSYS);
    }
}

/// Whether a command was killed at a step; it ended by itself otherwise.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(libc::SIGKILL)
}

/// Waits until the child has stopped itself; false when it ended instead.
pub(crate) fn is_stopped(child: &Child) -> bool {
    let stat = Path::new("/proc").join(child.id().to_string()).join("stat");
    loop {
        let stat = std::fs::read_to_string(&stat).expect("a child that was not waited for");
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        match state {
            Some('T') => return true,
            Some('Z') => return false,
            _ => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    }
}

/// Lets a stopped child continue.
pub(crate) fn resume(child: &Child) {
    let pid = libc::pid_t::try_from(child.id()).expect("a pid");
    // SAFETY: a signal to a child that was not waited for.
    unsafe { libc::kill(pid, libc::SIGCONT) };
}

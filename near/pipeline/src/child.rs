//! A shell's command in a process group of its own, which never outlives this process or its time limit.
//!
//! ```text
//!   this process ──pipe──► guard: sh, the leader of the group; reads until the pipe closes, then kills the group
//!                ──────► command: sh -c COMMAND, in the same group, with all processes that it starts
//! ```
//!
//! The pipe has one writer, which only this process has. So however this process ends, by `kill -9` too, the
//! guard kills the group, and no process of a killed pipeline writes into the folder of the one that
//! continues it. That needs no `prctl` and no `unsafe` code. The guard is waited for last, so the number of
//! the group belongs to no other group before.
//!
//! A command that leaves the group, as `setsid` and `timeout` do, is ended by this process: by its own number, and with
//! the group that it leads. The guard does not find it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpgid, kill_process, kill_process_group,
    pidfd_open, test_kill_process_group, waitid,
};

use super::error::CommandEnding;

/// How often a waiting thread looks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);
/// The same where the system has no handles of processes.
const LOOK_OFTEN: Duration = Duration::from_millis(5);
/// Time that a group has between a request to end and its end.
const GRACE: Duration = Duration::from_secs(2);
/// Time that killed processes have to be gone.
const GONE: Duration = Duration::from_millis(500);
/// Bytes that are kept of standard error: the last ones.
pub(super) const SAID_BYTES: usize = 64 << 10;
/// Units of processor time in `/proc` per second: the same on all Linux systems.
const TICKS: u64 = 100;

/// Starts commands that end with this process.
pub(super) struct Commands {
    reader: PipeReader,
    _writer: PipeWriter,
}

/// A command to run.
pub(super) struct ChildRun<'a> {
    pub(super) command: &'a OsStr,
    pub(super) variables: &'a [(&'static str, OsString)],
    pub(super) input: Stdio,
    /// Where its standard output goes; `None`: to the bytes that are kept of standard error.
    pub(super) output: Option<File>,
    /// The longest time.
    pub(super) limit: Option<Duration>,
}

/// How a command ended.
pub(super) struct ChildEnd {
    /// `Err` if it was not successful.
    pub(super) result: Result<(), CommandEnding>,
    /// The end of what it wrote to standard error.
    pub(super) said: Vec<u8>,
    /// Processor time of it and its children that ended.
    pub(super) processor: Duration,
}

impl Commands {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Commands { reader, _writer: writer })
    }

    /// Runs a command to its end. Its whole group is gone on return.
    ///
    /// # Errors
    /// `Ok(None)` when `stop` asked for the end; the system's own.
    pub(super) fn run(
        &self,
        run: ChildRun<'_>,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<Option<ChildEnd>> {
        let mut guard = Command::new("/bin/sh");
        guard.args(["-c", "read -r line; kill -s KILL 0"]).process_group(0);
        guard.stdin(self.reader.try_clone()?).stdout(Stdio::null()).stderr(Stdio::null());
        let mut group = ProcessGroup::of_leader(guard.spawn()?)?;
        let (said, writer) = io::pipe()?;
        let output = match run.output {
            Some(file) => Stdio::from(file),
            None => Stdio::from(writer.try_clone()?),
        };
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(run.command).process_group(group.id.as_raw_nonzero().get());
        command.stdin(run.input).stdout(output).stderr(writer);
        for (name, value) in run.variables {
            command.env(name, value);
        }
        let mut child = match command.spawn() {
            Ok(child) => child,
            // A command that is too long, for instance.
            Err(error) => {
                let result = Err(CommandEnding::NotStarted(error.to_string()));
                return Ok(Some(ChildEnd { result, said: Vec::new(), processor: Duration::ZERO }));
            }
        };
        // Otherwise the writers of this process would keep the pipe open.
        drop(command);
        group.command = pid_of(&child).ok();
        let waited = ChildWait::new(&child, said).and_then(|mut waiting| {
            let how = waiting.wait(run.limit, stop)?;
            if !matches!(how, WaitOutcome::Exited) {
                group.ask();
                waiting.wait(Some(GRACE), &|| false)?;
            }
            let processor = processor_time(child.id());
            group.kill();
            waiting.hear_rest();
            Ok((how, waiting.said, processor))
        });
        group.kill();
        // Once it is waited for, its number may be another's.
        group.command = None;
        let status = child.wait()?;
        drop(group);
        let (how, said, processor) = waited?;
        let result = match how {
            WaitOutcome::Stopped => return Ok(None),
            WaitOutcome::TimeLimit => Err(CommandEnding::TimeLimit(run.limit.unwrap_or_default())),
            WaitOutcome::Exited => ending(status),
        };
        Ok(Some(ChildEnd { result, said, processor }))
    }
}

fn ending(status: ExitStatus) -> Result<(), CommandEnding> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(CommandEnding::Status(code)),
        (None, signal) => Err(CommandEnding::Signal(signal.unwrap_or_default())),
    }
}

/// A process group, its leader, and the command that was started in it.
struct ProcessGroup {
    leader: Child,
    id: Pid,
    /// The command, until it is waited for.
    command: Option<Pid>,
}

impl ProcessGroup {
    fn of_leader(leader: Child) -> io::Result<Self> {
        let id = pid_of(&leader)?;
        Ok(ProcessGroup { leader, id, command: None })
    }

    fn ask(&self) {
        // A stopped process sees the request once it continues.
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Each process gets the signal once: a second request makes some programs end without tidying up.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
        let outside = |command: &Pid| getpgid(Some(*command)).is_ok_and(|group| group != self.id);
        if let Some(command) = self.command.filter(outside) {
            // It leads a group of its own, as a rule.
            let _ = kill_process_group(command, signal).or_else(|_| kill_process(command, signal));
        }
    }
}

impl Drop for ProcessGroup {
    /// A killed process may still end a write, so this waits until there is no process left. Where the processes of a
    /// dead parent are never waited for, as in some containers, it gives up after [`GONE`].
    fn drop(&mut self) {
        self.kill();
        let _ = self.leader.wait();
        let until = Instant::now() + GONE;
        while test_kill_process_group(self.id).is_ok() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    let raw = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    raw.ok_or_else(|| io::Error::other("the system gave a process no number"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitOutcome {
    Exited,
    TimeLimit,
    Stopped,
}

/// Waits for a process, and hears what it writes meanwhile.
struct ChildWait {
    id: Pid,
    handle: Option<OwnedFd>,
    pipe: Option<PipeReader>,
    said: Vec<u8>,
}

impl ChildWait {
    fn new(child: &Child, pipe: PipeReader) -> io::Result<Self> {
        let id = pid_of(child)?;
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        let handle = pidfd_open(id, PidfdFlags::empty()).ok();
        Ok(ChildWait { id, handle, pipe: Some(pipe), said: Vec::new() })
    }

    /// Waits until it has exited, without waiting for its status.
    fn wait(
        &mut self,
        limit: Option<Duration>,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<WaitOutcome> {
        let started = Instant::now();
        loop {
            if self.has_exited()? {
                return Ok(WaitOutcome::Exited);
            }
            if stop() {
                return Ok(WaitOutcome::Stopped);
            }
            let left = limit.map(|limit| limit.saturating_sub(started.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(WaitOutcome::TimeLimit);
            }
            let look = if self.handle.is_some() { LOOK } else { LOOK_OFTEN };
            self.pause(left.map_or(look, |left| left.min(look)));
        }
    }

    fn has_exited(&self) -> io::Result<bool> {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(waitid(WaitId::Pid(self.id), how)?.is_some())
    }

    /// Sleeps until something happens, at most `time`.
    fn pause(&mut self, time: Duration) {
        let handle = self.handle.as_ref().map(AsFd::as_fd);
        let pipe = self.pipe.as_ref().map(AsFd::as_fd);
        let files = handle.into_iter().chain(pipe);
        let mut wanted: Vec<_> =
            files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
        let time = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // A signal only makes the next look earlier.
        let _ = poll(&mut wanted, Some(&time));
        drop(wanted);
        self.hear(SAID_BYTES);
    }

    /// Reads what is there, at most `bytes`; whether there may be more.
    fn hear(&mut self, bytes: usize) -> bool {
        let mut buffer = [0; 8 << 10];
        let mut heard = 0;
        while let Some(pipe) = self.pipe.as_mut().filter(|_| heard < bytes) {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    heard += read;
                    self.said.extend_from_slice(&buffer[..read]);
                    let extra = self.said.len().saturating_sub(2 * SAID_BYTES);
                    if extra > 0 {
                        let keep = self.said.len() - SAID_BYTES;
                        self.said.drain(..keep);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => self.pipe = None,
            }
        }
        self.pipe.is_some()
    }

    /// The output that was written before the end. A process that left the group could write forever.
    fn hear_rest(&mut self) {
        self.hear(16 * SAID_BYTES);
        let extra = self.said.len().saturating_sub(SAID_BYTES);
        self.said.drain(..extra);
    }
}

/// Processor time of a process that was not waited for, and of its children that it waited for.
fn processor_time(id: u32) -> Duration {
    let ticks = || -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name is in brackets and may hold anything.
        let (_, rest) = text.rsplit_once(") ")?;
        rest.split(' ').skip(11).take(4).map(|field| field.parse::<u64>().ok()).sum()
    };
    Duration::from_millis(ticks().unwrap_or(0) * 1000 / TICKS)
}

/// The last lines of what a command said, on one line.
pub(super) fn last_lines(said: &[u8]) -> String {
    const LINES: usize = 3;
    const BYTES: usize = 600;
    let text = String::from_utf8_lossy(said);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join(" | ");
    let from = last.ceil_char_boundary(last.len().saturating_sub(BYTES));
    last[from..].to_owned()
}

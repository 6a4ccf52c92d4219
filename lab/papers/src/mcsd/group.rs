//! A group of processes with little memory, and a swap file for the rest.
//!
//! Phoenix holds two to four times its input. Without swap the system would kill it; with swap it becomes
//! slow, as on the paper's machine.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::ExperimentError;

/// Where control groups of version 1 have their memory controller.
const CONTROLLER: &str = "/sys/fs/cgroup/memory";

/// Refuses a machine on which a group with swap can't be made, with one sentence.
pub(crate) fn check(experiment: &'static str) -> Result<(), ExperimentError> {
    let needs = |what: &str| Err(ExperimentError::Needs { experiment, what: what.to_owned() });
    if !rustix::process::geteuid().is_root() {
        return needs("root, to make a control group of memory and a swap file");
    }
    if !Path::new(CONTROLLER).join("memory.limit_in_bytes").exists() {
        return needs(
            "the memory controller of control groups of version 1 at /sys/fs/cgroup/memory",
        );
    }
    for tool in ["mkswap", "swapon", "swapoff", "taskset"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return needs(&format!("the command {tool} of util-linux"));
        }
    }
    Ok(())
}

/// A control group; it is removed when dropped.
pub(crate) struct MemoryGroup {
    folder: PathBuf,
}

impl MemoryGroup {
    /// A group whose processes have `limit_bytes` together, page cache included.
    pub(crate) fn new(limit_bytes: u64) -> Result<Self, ExperimentError> {
        let folder = Path::new(CONTROLLER).join(format!("merganser-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| ExperimentError::on(&folder, error))?;
        let group = MemoryGroup { folder };
        group.write("memory.limit_in_bytes", &limit_bytes.to_string())?;
        Ok(group)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), ExperimentError> {
        let path = self.folder.join(file);
        fs::write(&path, text).map_err(|error| ExperimentError::on(&path, error))
    }

    /// A command that joins the group and then becomes `program`, on the first `processors`.
    pub(crate) fn command(&self, program: &Path, processors: usize) -> Command {
        let mut command = self.joined(Path::new("taskset"));
        command.args(["--cpu-list", &format!("0-{}", processors.max(1) - 1)]).arg(program);
        command
    }

    /// A command that joins the group and then becomes `program`, on any processor.
    pub(crate) fn joined(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        command.arg(self.folder.join("cgroup.procs")).arg(program);
        command
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The rest of its page cache then belongs to no group. The group stays if a process is in it.
        let _ = self.write("memory.force_empty", "0");
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A file that the system swaps to; swapping ends when it is dropped.
pub(crate) struct SwapFile {
    path: PathBuf,
}

impl SwapFile {
    /// `bytes` of swap in `folder`.
    pub(crate) fn new(folder: &Path, bytes: u64) -> Result<Self, ExperimentError> {
        let path = folder.join("swap");
        let on = |error: io::Error| ExperimentError::on(&path, error);
        let file = fs::File::create_new(&path).map_err(on)?;
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(on)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)
            .map_err(|error| on(error.into()))?;
        drop(file);
        let swap = SwapFile { path: path.clone() };
        for tool in ["mkswap", "swapon"] {
            let done = Command::new(tool).arg(&path).output().map_err(on)?;
            if !done.status.success() {
                let said = String::from_utf8_lossy(&done.stderr);
                let said = said.lines().last().unwrap_or("it failed").to_owned();
                return Err(ExperimentError::Command { command: tool.to_owned(), message: said });
            }
        }
        Ok(swap)
    }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        // It may not be in use yet. The folder that it is in goes away with all files.
        let _ = Command::new("swapoff").arg(&self.path).output();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only where it is possible: as root, with control groups of version 1.
    #[test]
    fn a_command_runs_in_its_group() {
        if check("test").is_err() {
            return;
        }
        let group = MemoryGroup::new(64 << 20).expect("makes a group");
        let told = group.command(Path::new("cat"), 1).arg("/proc/self/cgroup").output();
        let told = String::from_utf8(told.expect("runs").stdout).expect("text");
        let name = group.folder.file_name().expect("a name").to_str().expect("text");
        assert!(told.lines().any(|line| line.contains("memory") && line.ends_with(name)), "{told}");
        let folder = group.folder.clone();
        drop(group);
        assert!(!folder.exists());
    }
}

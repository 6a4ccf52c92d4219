//! A group of processes with little memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::ExperimentError;

/// Where control groups of version 1 have their memory controller.
const CONTROLLER: &str = "/sys/fs/cgroup/memory";

/// Refuses a machine on which a group can't be made, with one sentence.
pub(crate) fn check(experiment: &'static str) -> Result<(), ExperimentError> {
    let needs = |what: &str| Err(ExperimentError::Needs { experiment, what: what.to_owned() });
    if !rustix::process::geteuid().is_root() {
        return needs("root, to make a control group of memory");
    }
    if !Path::new(CONTROLLER).join("memory.limit_in_bytes").exists() {
        return needs(
            "the memory controller of control groups of version 1 at /sys/fs/cgroup/memory",
        );
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
        let told = group.joined(Path::new("cat")).arg("/proc/self/cgroup").output();
        let told = String::from_utf8(told.expect("runs").stdout).expect("text");
        let name = group.folder.file_name().expect("a name").to_str().expect("text");
        assert!(told.lines().any(|line| line.contains("memory") && line.ends_with(name)), "{told}");
        let folder = group.folder.clone();
        drop(group);
        assert!(!folder.exists());
    }
}

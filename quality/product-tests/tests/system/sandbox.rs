//! Where a kernel or a sandbox refuses io_uring, threads do its work, and the report says so.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::harness::{
    Chance, Folder, merganser, merganser_itself, prints, small_memory, sorted_lines,
};

/// Makes `io_uring_setup` end with `errno` in the process that `command` starts.
pub(crate) fn refuse_rings(command: &mut Command, errno: libc::c_int) {
    let code = |parts: u32| u16::try_from(parts).expect("a BPF code");
    let instruction = |parts, jt, jf, k| libc::sock_filter { code: code(parts), jt, jf, k };
    let number = u32::try_from(libc::SYS_io_uring_setup).expect("a number of a system call");
    let refusal = libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
    // The number of the call is the first field of a filter's data.
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, refusal),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // SAFETY: between fork and exec there are only two system calls. The second one reads `filter`,
    // which the closure owns. Nothing is allocated and no lock is taken.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
            let mode = libc::SECCOMP_MODE_FILTER;
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) != 0
            {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

#[test]
fn without_io_uring_threads_sort() {
    let memory = small_memory();
    let folder = Folder::new();
    let content = Chance::new().lines((memory * 2) as usize);
    let input = folder.write("input", &content);
    let sorted = sorted_lines(&content);
    let (out, view, report) = (folder.at("out"), folder.at("x.view"), folder.at("report.json"));
    for errno in [libc::EPERM, libc::ENOSYS] {
        for (flag, result) in [("-o", &out), ("--view", &view)] {
            let mut sort = merganser_itself(["sort", "--memory", &memory.to_string()]);
            sort.arg(&input).arg(flag).arg(result).arg("--report").arg(&report);
            refuse_rings(&mut sort, errno);
            let output = sort.output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            // Once for each way to files, not once for each file.
            let told = fs::read_to_string(&report).expect("there");
            let lines: Vec<&str> = told.lines().filter(|line| line.contains("io_uring")).collect();
            let reason = std::io::Error::from_raw_os_error(errno).to_string();
            assert!(!lines.is_empty() && lines.len() <= 3, "{told}");
            assert!(
                lines.iter().all(|line| line.contains("threads") && line.contains(&reason)),
                "{told}"
            );
        }
        assert!(fs::read(&out).expect("there") == sorted);
        let mut cat = merganser_itself(["cat"]);
        cat.arg(&view);
        refuse_rings(&mut cat, errno);
        assert!(prints(&mut cat) == sorted);
        fs::remove_file(&out).expect("removed");
        fs::remove_dir_all(&view).expect("removed");
    }
    // Where it is not refused, the same test tells the difference.
    let mut sort = merganser(["sort", "--memory", &memory.to_string()]);
    prints(sort.arg(&input).arg("-o").arg(&out).arg("--report").arg(&report));
    let told = fs::read_to_string(&report).expect("there");
    eprintln!(
        "without a filter: {}",
        told.lines().find(|l| l.contains("I/O")).unwrap_or("nothing")
    );
}

//! A volume as a file in a mounted folder.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use merganser_testkit::has;
use rustix::fs::{FallocateFlags, fallocate};

use super::{PAGE, create, end, is_sound, json, page, signal};
use crate::harness::{Folder, fails, is_root, merganser, merganser_itself, prints};

fn skipped() -> bool {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if let Err(error) = &opened {
        eprintln!("skipped: /dev/fuse: {error}");
    }
    opened.is_err()
}

/// A server whose folder is `m`.
struct Shown {
    folder: Folder,
    server: Option<Child>,
}

impl Shown {
    fn new() -> Shown {
        let folder = Folder::new();
        create(&folder, &[]);
        fs::create_dir(folder.at("m")).expect("made");
        let mut shown = Shown { folder, server: None };
        shown.start();
        shown
    }

    fn start(&mut self) {
        let mut server = merganser_itself(["array", "serve", "vol.json", "--mount", "m"])
            .current_dir(self.folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let start = Instant::now();
        while !self.folder.at("m/volume").exists() {
            if server.try_wait().expect("asked").is_some() || start.elapsed().as_secs() > 30 {
                let _ = server.kill();
                panic!("not there: {:?}", server.wait_with_output().expect("it ends"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.server = Some(server);
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.folder.at("m/volume")).expect("opened")
    }

    fn end(&mut self) {
        end(self.server.take().expect("started"));
        let left = fs::read_dir(self.folder.at("m")).expect("no stale mount").count();
        assert_eq!(left, 0, "it is unmounted");
    }

    fn kill(&mut self) {
        let mut server = self.server.take().expect("started");
        signal(&server, libc::SIGKILL);
        server.wait().expect("it ends");
    }

    fn unmount(&self) -> bool {
        let mut umount = Command::new("umount");
        umount.arg("-l").arg(self.folder.at("m")).stderr(Stdio::null());
        umount.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        self.unmount();
    }
}

#[test]
fn a_mounted_volume_keeps_what_was_answered() {
    if skipped() {
        return;
    }
    let mut shown = Shown::new();
    let file = shown.open();
    assert_eq!(file.metadata().expect("asked").len(), 16 << 20);
    // Several at once, not on pages.
    std::thread::scope(|scope| {
        for lane in 0..8_u64 {
            let file = &file;
            scope.spawn(move || {
                for at in 0..16 {
                    let number = 16 * lane + at;
                    file.write_all_at(&page(1 + number), 5000 * number + 77).expect("written");
                }
            });
        }
    });
    shown.kill();
    drop(file);

    let again = ["array", "serve", "vol.json", "--mount", "m"];
    let said = fails(merganser(again).current_dir(shown.folder.path()));
    assert!(said.contains("m: is a stale mount whose server is gone; clear it with"), "{said}");
    assert!(shown.unmount());
    shown.start();
    let file = shown.open();
    for number in 0..128 {
        let mut read = vec![0; PAGE];
        file.read_exact_at(&mut read, 5000 * number + 77).expect("read");
        assert!(read == page(1 + number), "{number}");
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, hole, 0, 256 << 10).expect("punched");
    file.sync_all().expect("synced");
    let mut read = vec![1; 256 << 10];
    file.read_exact_at(&mut read, 0).expect("read");
    assert!(read.iter().all(|&byte| byte == 0));
    file.set_len(1 << 20).expect_err("it keeps its size");
    drop(file);
    shown.end();
    is_sound(&shown.folder);
    let report = json(&shown.folder, "report");
    assert_eq!((&report["pages_trimmed"], &report["flushes"].is_u64()), (&64.into(), &true));
}

#[test]
fn a_folder_that_cant_be_mounted_leaves_the_volume_closed_in_order() {
    let folder = Folder::new();
    create(&folder, &[]);
    let serve = ["array", "serve", "vol.json", "--mount", "missing"];
    let said = fails(merganser(serve).current_dir(folder.path()));
    assert!(said.contains("missing: there is no such folder"), "{said}");
    assert_eq!(json(&folder, "info")["closed_in_order"], true);
    let both = ["array", "serve", "vol.json", "--mount", "m", "--nbd", "s"];
    let output = merganser(both).current_dir(folder.path()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2), "one of the two");
}

#[test]
fn a_file_system_on_a_mounted_volume_is_there_again() {
    if !is_root("a file system on a volume") || skipped() {
        return;
    }
    let programs = [
        ("mkfs.ext4", "-V", "e2fsprogs"),
        ("e2fsck", "-V", "e2fsprogs"),
        ("losetup", "--version", "util-linux"),
    ];
    if !programs.iter().all(|(program, word, package)| has(program, word, package)) {
        return;
    }
    let run = |words: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "60"]).args(words).stdin(Stdio::null());
        String::from_utf8(prints(&mut command)).expect("text").trim().to_owned()
    };
    let mut shown = Shown::new();
    let at = |shown: &Shown, name: &str| shown.folder.at(name).to_str().expect("text").to_owned();
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").canonicalize().expect("there");
    let tree = tree.to_str().expect("text");
    fs::create_dir(shown.folder.at("on")).expect("made");
    for round in 0..2 {
        let file = at(&shown, "m/volume");
        let device = run(&["losetup", "-f", "--show", "--direct-io=on", &file]);
        let on = at(&shown, "on");
        // The device goes away whatever fails.
        let done = std::panic::catch_unwind(|| {
            if round == 0 {
                run(&["mkfs.ext4", "-q", &device]);
            }
            run(&["e2fsck", "-f", "-n", &device]);
            run(&["mount", &device, &on]);
            let copied = std::panic::catch_unwind(|| {
                if round == 0 {
                    run(&["cp", "-a", tree, &on]);
                }
                run(&["diff", "-r", tree, &format!("{on}/src")]);
            });
            run(&["umount", &on]);
            assert!(copied.is_ok(), "round {round}");
        });
        run(&["losetup", "-d", &device]);
        assert!(done.is_ok(), "round {round}");
        shown.end();
        is_sound(&shown.folder);
        shown.start();
    }
    shown.end();
}

//! Clients of other projects on a volume that is really served: `nbdcopy`, `qemu-img`, `qemu-io`, `fio`; and, as root, a
//! file system through `nbdfuse` and a loop device, with an unpacked source tree, whose server is killed while it is
//! mounted.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use merganser_testkit::has;

use super::{PAGE, create, end, is_sound, json, page, serve};
use crate::harness::{Chance, Folder, is_root, merganser, prints, stderr};

const NBDCOPY: (&str, &str, &str) = ("nbdcopy", "--version", "libnbd-bin");
const NBDFUSE: (&str, &str, &str) = ("nbdfuse", "--version", "libnbd-bin");
const QEMU_IMG: (&str, &str, &str) = ("qemu-img", "--version", "qemu-utils");
const QEMU_IO: (&str, &str, &str) = ("qemu-io", "--version", "qemu-utils");
const FIO: (&str, &str, &str) = ("fio", "--version", "fio");
const EXT4: (&str, &str, &str) = ("mkfs.ext4", "-V", "e2fsprogs");
const E2FSCK: (&str, &str, &str) = ("e2fsck", "-V", "e2fsprogs");
const LOSETUP: (&str, &str, &str) = ("losetup", "--version", "util-linux");

/// Bytes of the volume with a file system.
const BYTES: u64 = 128 << 20;

fn has_all(programs: &[(&str, &str, &str)]) -> bool {
    programs.iter().all(|(program, word, package)| has(program, word, package))
}

/// Runs a program within two minutes. It must succeed.
fn run(program: &str, words: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", program]).args(words).stdin(Stdio::null());
    String::from_utf8_lossy(&prints(&mut command)).into_owned()
}

/// Whether a program ends well.
fn works(words: &[&str]) -> bool {
    let mut run = Command::new("timeout");
    run.args(["-k", "5", "120"]).args(words).stdin(Stdio::null());
    let output = run.output().unwrap_or_else(|error| panic!("{words:?}: {error}"));
    if !output.status.success() {
        eprintln!("{words:?}: {}: {}", output.status, stderr(&output));
    }
    output.status.success()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

fn uri(folder: &Folder) -> String {
    format!("nbd+unix:///volume?socket={}", text(&folder.at("s")))
}

/// Pages with content less the pages that hold it. Counters don't tell after a kill: those since the last checkpoint are lost.
fn shared_pages(folder: &Folder) -> u64 {
    let info = json(folder, "info");
    let number = |field: &str| info[field].as_u64().expect("a number");
    number("mapped_bytes") / PAGE as u64 - number("pages_used")
}

/// Bytes as a disk has them: pages that occur once, pages that occur often, and holes.
fn image(chance: &mut Chance, pages: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(pages * PAGE);
    while out.len() < pages * PAGE {
        let seed = match chance.below(4) {
            0 => 0,
            1 => 1 + chance.below(20),
            _ => chance.next() | 1 << 63,
        };
        out.extend(page(seed));
    }
    out
}

/// Written with `nbdcopy`, flushed, killed, and read with `nbdcopy`: the same bytes, with and without a write cache.
#[test]
fn nbdcopy_writes_and_reads_a_volume() {
    if !has_all(&[NBDCOPY]) {
        return;
    }
    let mut chance = Chance::new();
    for options in [&[][..], &["--write-back"]] {
        let folder = Folder::new();
        create(&folder, &[]);
        let mut content = image(&mut chance, 4000);
        // Not whole pages.
        content.truncate(content.len() - 1234);
        let source = folder.write("source", &content);
        let mut server = serve(&folder, options);
        run("nbdcopy", &["--flush", text(&source), &uri(&folder)]);
        server.kill().expect("killed");
        server.wait().expect("it ends");
        let server = serve(&folder, options);
        run("nbdcopy", &[&uri(&folder), text(&folder.at("copy"))]);
        let copy = fs::read(folder.at("copy")).expect("made");
        assert_eq!(copy.len(), 16 << 20);
        assert!(copy[..content.len()] == content, "{options:?}");
        assert!(copy[content.len()..].iter().all(|&byte| byte == 0), "{options:?}");
        end(server);
        is_sound(&folder);
        assert!(shared_pages(&folder) > 100);
    }
}

#[test]
fn qemu_writes_converts_and_compares_a_volume() {
    if !has_all(&[QEMU_IMG, QEMU_IO]) {
        return;
    }
    let folder = Folder::new();
    create(&folder, &[]);
    let content = image(&mut Chance::new(), (16 << 20) / PAGE);
    let (source, packed) = (folder.write("source", &content), folder.at("source.qcow2"));
    let server = serve(&folder, &["--write-back"]);
    let uri = uri(&folder);
    run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", text(&source), text(&packed)]);
    run("qemu-img", &["convert", "-n", "-f", "qcow2", "-O", "raw", text(&packed), &uri]);
    let same = run("qemu-img", &["compare", "-s", "-f", "raw", "-F", "raw", text(&source), &uri]);
    assert!(same.contains("identical"), "{same}");
    let commands = [
        "write -P 7 4k 64k",
        "write -f -P 8 1M 4k",
        "read -P 7 4k 64k",
        "discard 4k 4k",
        "read -P 0 4k 4k",
        "write -z 2M 1M",
        "read -P 0 2M 1M",
        "write -P 9 5000 3000",
        "read -P 9 5000 3000",
        "read -P 7 8k 512",
        "flush",
    ];
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    let mut words = vec!["-f", "raw", "-t", "none"];
    words.extend(commands);
    words.push(&uri);
    let said = run("qemu-io", &words);
    assert!(!said.contains("verification failed"), "{said}");
    end(server);
    is_sound(&folder);
    assert!(json(&folder, "report")["pages_trimmed"].as_u64() > Some(250), "discards and zeros");
}

/// Random writes, read again and compared, next to flushes; the buffer is half of the volume, so pages move meanwhile.
#[test]
fn fio_verifies_its_random_writes_to_a_volume() {
    if !has_all(&[FIO]) {
        return;
    }
    let engines = run("fio", &["--enghelp"]);
    if !engines.lines().any(|line| line.trim() == "nbd") {
        assert!(std::env::var_os("CI").is_none(), "this fio has no engine nbd");
        return eprintln!("skipped: no fio with the engine nbd");
    }
    let ways: [[&[&str]; 2]; 2] =
        [[&[], &[]], [&["--hash", "sha1", "--compare"], &["--write-back"]]];
    for [made, served] in ways {
        let folder = Folder::new();
        create(&folder, made);
        let server = serve(&folder, served);
        let uri = format!("--uri={}", uri(&folder));
        let job = [
            "--name=w",
            "--ioengine=nbd",
            &uri,
            "--rw=randwrite",
            "--bsrange=4k-32k",
            "--iodepth=16",
            "--size=16m",
            "--dedupe_percentage=30",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--verify_state_save=0",
            "--fsync=64",
            "--loops=2",
        ];
        run("fio", &job);
        end(server);
        is_sound(&folder);
        assert!(json(&folder, "report")["pages_stored"].as_u64() > Some(1000), "pages moved");
    }
}

/// The volume as a loop device, through nbdfuse.
struct Loop {
    fuse: Child,
    file: PathBuf,
    device: String,
}

impl Loop {
    fn new(folder: &Folder, bytes: u64) -> Loop {
        let file = folder.write("disk", b"");
        let fuse =
            Command::new("nbdfuse").arg(&file).arg(uri(folder)).stderr(Stdio::null()).spawn();
        let mut made = Loop { fuse: fuse.expect("it starts"), file, device: String::new() };
        let start = Instant::now();
        while fs::metadata(&made.file).map_or(0, |found| found.len()) != bytes {
            let ended = made.fuse.try_wait().expect("asked");
            assert!(ended.is_none() && start.elapsed().as_secs() < 30, "nbdfuse: {ended:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        made.device = run("losetup", &["-f", "--show", text(&made.file)]).trim().to_owned();
        made
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if !self.device.is_empty() {
            works(&["losetup", "-d", &self.device]);
        }
        if !works(&["umount", text(&self.file)]) {
            works(&["umount", "-l", text(&self.file)]);
        }
        let start = Instant::now();
        while self.fuse.try_wait().expect("asked").is_none() {
            if start.elapsed().as_secs() > 5 {
                let _ = self.fuse.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A file system that is unmounted when the test ends, however it ends.
struct Mounted(Option<PathBuf>);

impl Mounted {
    fn new(device: &str, at: PathBuf) -> Mounted {
        run("mount", &[device, text(&at)]);
        Mounted(Some(at))
    }

    fn end(mut self) {
        let at = self.0.take().expect("mounted");
        assert!(works(&["umount", text(&at)]));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(at) = &self.0
            && !works(&["umount", text(at)])
        {
            works(&["umount", "-l", text(at)]);
        }
    }
}

fn can_mount() -> bool {
    if !is_root("a file system on a volume") {
        return false;
    }
    let there = ["/dev/fuse", "/dev/loop-control"].iter().all(|device| Path::new(device).exists());
    if !there {
        eprintln!("skipped: no FUSE, or no loop devices");
    }
    there && has_all(&[NBDFUSE, FIO, EXT4, E2FSCK, LOSETUP])
}

/// A job on the mounted file system: random writes that are verified, now or later.
fn fio_on(mounted: &Path, only_verify: bool) {
    let directory = format!("--directory={}", text(mounted));
    let mut job = vec![
        "--name=random",
        &directory,
        "--ioengine=libaio",
        "--direct=1",
        "--rw=randwrite",
        "--bs=4k",
        "--size=8m",
        "--iodepth=16",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--fsync=128",
        "--end_fsync=1",
    ];
    if only_verify {
        job.push("--verify_only=1");
    }
    run("fio", &job);
}

/// Content of the file that was the `number`th to be written and synced.
fn synced(number: usize) -> Vec<u8> {
    let pages = 1 + number % 3;
    let seed = |at: usize| (1000 * number + at + 1) as u64;
    (0..pages).flat_map(|at| page(seed(at))).collect()
}

/// Writes files, makes each and its name durable, and counts it in `kept`, until that fails or `stop` is set.
fn write_synced(folder: &Path, stop: &AtomicBool, kept: &AtomicUsize) {
    let write = |number: usize| -> std::io::Result<()> {
        let mut file = File::create(folder.join(format!("{number}")))?;
        file.write_all(&synced(number))?;
        file.sync_all()?;
        File::open(folder)?.sync_all()
    };
    while !stop.load(Ordering::Relaxed) && write(kept.load(Ordering::Relaxed)).is_ok() {
        kept.fetch_add(1, Ordering::Relaxed);
    }
}

/// ext4 on a volume, with a source tree of some thousand files and files that are synced one by one. The server is killed
/// while the file system is mounted and written. With a new server, ext4 repeats its journal, and everything that was
/// synced is there.
#[test]
fn a_mounted_file_system_survives_a_killed_server() {
    if !can_mount() {
        return;
    }
    let folder = Folder::new();
    let at = |name: &str| text(&folder.at(name)).to_owned();
    let mut command = merganser(["array", "create", "--quiet"]);
    command.arg(at("vol.json")).args(["--size", "128M", "--buffer-size", "16M"]);
    command.arg("--data").arg(format!("{},{}", at("ssd0"), at("ssd1")));
    prints(command.arg("--buffer").arg(format!("{},{}", at("hdd0"), at("hdd1"))));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("there");
    // Sources alone: other folders may hold what builds and fuzzing made.
    let sources = ["core", "near", "array", "lab/device", "lab/papers", "quality/product-tests"];
    let tar = ["-C", text(&root), "-cf", &at("tree.tar")];
    run("tar", &[&tar[..], &sources].concat());
    for name in ["mounted", "tree"] {
        fs::create_dir(folder.at(name)).expect("made");
    }
    // Other programs may change the sources while this runs.
    run("tar", &["-C", &at("tree"), "-xf", &at("tree.tar")]);
    let mounted = folder.at("mounted");
    let copies = ["one", "two", "three"].map(|name| mounted.join(name));

    let mut server = serve(&folder, &["--write-back"]);
    let disk = Loop::new(&folder, BYTES);
    // Its blocks are pages. On a small device, they would have 1024 bytes, and few pages of files were equal.
    run("mkfs.ext4", &["-q", "-b", "4096", &disk.device]);
    let on = Mounted::new(&disk.device, mounted.clone());
    for copy in &copies {
        fs::create_dir(copy).expect("made");
        run("tar", &["-C", text(copy), "-xf", &at("tree.tar")]);
    }
    fio_on(&mounted, false);
    fs::create_dir(mounted.join("synced")).expect("made");
    run("sync", &["-f", text(&mounted)]);
    let (stop, kept) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_synced(&mounted.join("synced"), &stop, &kept));
        let started = Instant::now();
        while kept.load(Ordering::Relaxed) < 4 && !writer.is_finished() {
            assert!(started.elapsed() < Duration::from_secs(60), "nothing is synced");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(Chance::new().below(1000)));
        assert!(!writer.is_finished(), "the file system is full, or failed too early");
        server.kill().expect("killed");
        server.wait().expect("it ends");
        // Its next write fails. If nothing tells it, it stops here.
        std::thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("no panic");
    });
    let kept = kept.into_inner();
    assert!(kept > 3, "only {kept} files were synced");
    drop(on);
    drop(disk);

    let server = serve(&folder, &["--write-back"]);
    let disk = Loop::new(&folder, BYTES);
    // Status 1 is a file system that was mended: a journal that was repeated.
    let mended = Command::new("e2fsck").args(["-p", &disk.device]).output().expect("it starts");
    assert!(matches!(mended.status.code(), Some(0 | 1)), "{mended:?}");
    run("e2fsck", &["-f", "-n", &disk.device]);
    let on = Mounted::new(&disk.device, mounted.clone());
    for number in 0..kept {
        let name = format!("synced/{number}");
        let content = fs::read(mounted.join(&name));
        assert!(content.is_ok_and(|content| content == synced(number)), "{name} of {kept}");
    }
    for copy in &copies {
        run("diff", &["-r", &at("tree"), text(copy)]);
    }
    fio_on(&mounted, true);
    on.end();
    run("e2fsck", &["-f", "-n", &disk.device]);
    drop(disk);
    end(server);
    is_sound(&folder);
    // Two of three copies of the tree are stored once.
    let shared = shared_pages(&folder);
    assert!(shared > 3000, "{shared} pages");
}

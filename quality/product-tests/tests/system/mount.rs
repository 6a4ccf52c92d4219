//! A mounted view, read by programs that do not know views.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::harness::{
    Chance, Folder, damage, fails, first_line, merganser, merganser_itself, prints, small_memory,
    sorted_lines, stderr, view_of,
};

/// A view that is mounted on `m`, and the same bytes in the file `plain`.
struct Mounted {
    folder: Folder,
    server: Child,
    sorted: Vec<u8>,
}

impl Mounted {
    fn new() -> Option<Self> {
        Self::of_strategy("merge")
    }

    /// A view that `strategy` made.
    fn of_strategy(strategy: &str) -> Option<Self> {
        if let Err(e) = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse") {
            eprintln!("skipped: /dev/fuse: {e}");
            return None;
        }
        let memory = small_memory();
        let content = Chance::new().lines((memory * 2) as usize);
        let sorted = sorted_lines(&content);
        let folder = Folder::new();
        let input = folder.write("input", &content);
        folder.write("plain", &sorted);
        let memory = format!("--memory={memory}");
        view_of(&folder, &input, &[&memory, &format!("--strategy={strategy}")]);
        Some(Self::mount(folder, sorted))
    }

    fn mount(folder: Folder, sorted: Vec<u8>) -> Self {
        fs::create_dir_all(folder.at("m")).expect("made");
        let mut server = merganser_itself(["mount"])
            .args([folder.at("made.view"), folder.at("m")])
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // The line comes when the file can be read.
        let said = first_line(&mut server);
        let mounted =
            format!("mounted, until it is unmounted: {}/made\n", folder.at("m").display());
        assert_eq!(said, format!("merganser: {mounted}"));
        assert!(is_mounted(&folder.at("m")), "it said so");
        let size = fs::metadata(folder.at("m").join("made")).expect("it answers").len();
        assert_eq!(size, sorted.len() as u64);
        Mounted { folder, server, sorted }
    }

    fn view(&self) -> PathBuf {
        self.folder.at("m").join("made")
    }

    /// Output of a shell command with `$V` the mounted file and `$P` the plain one.
    fn shell(&self, command: &str) -> Vec<u8> {
        let plain = self.folder.at("plain");
        prints(Command::new("sh").args(["-c", command]).env("V", self.view()).env("P", plain))
    }

    /// Ends the server with `signal`; returns its status and its messages after the first.
    fn end(&mut self, signal: libc::c_int) -> (Option<i32>, String) {
        let pid = libc::pid_t::try_from(self.server.id()).expect("a pid");
        // SAFETY: a signal to a child that has not been waited for, so the pid is its own.
        unsafe { libc::kill(pid, signal) };
        let status = self.server.wait().expect("it ends");
        let mut said = String::new();
        let stderr = self.server.stderr.as_mut().expect("piped");
        std::io::Read::read_to_string(stderr, &mut said).expect("read");
        (status.code(), said)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        if is_mounted(&self.folder.at("m")) {
            let _ = Command::new("umount").arg("-l").arg(self.folder.at("m")).status();
        }
    }
}

fn is_mounted(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    table.contains(&format!(" {} ", path.display()))
}

#[test]
fn programs_read_it_like_the_sorted_file() {
    read_by_programs("merge");
}

#[test]
fn programs_read_buckets_like_the_sorted_file() {
    read_by_programs("distribute");
}

fn read_by_programs(strategy: &str) {
    let Some(m) = Mounted::of_strategy(strategy) else { return };
    let metadata = fs::metadata(m.view()).expect("there");
    assert!(metadata.is_file() && metadata.len() == m.sorted.len() as u64);
    m.shell("cmp $V $P");
    assert!(m.shell("cat $V") == m.sorted);
    for command in [
        "head -n 3",
        "head -c 100001",
        "tail -n 3",
        "tail -c 100001",
        "grep -n abc",
        "grep -c e",
        "wc",
        "sha256sum",
        "dd status=none bs=4099 skip=37 count=11",
    ] {
        let on = |file: &str| m.shell(&format!("{command} < {file} || true"));
        assert!(on("$V") == on("$P"), "{command}");
    }
    m.shell("cat $V > /dev/null & tail -c 3000000 $V > /dev/null & cmp $V $P && wait");
}

#[test]
fn python_maps_it() {
    let Some(m) = Mounted::new() else { return };
    let program = "import mmap,os,random\n\
        p=open(os.environ['P'],'rb').read()\n\
        f=open(os.environ['V'],'rb')\n\
        m=mmap.mmap(f.fileno(),0,prot=mmap.PROT_READ)\n\
        assert len(m)==len(p)\n\
        for _ in range(300):\n\
        \x20   a=random.randrange(len(p)); assert m[a:a+5000]==p[a:a+5000], a\n\
        assert m[:]==p\n\
        assert open(os.environ['V'],'rb').readlines()==p.splitlines(True)\n";
    let mut python = Command::new("python3");
    python.args(["-c", program]).env("V", m.view()).env("P", m.folder.at("plain"));
    match python.output() {
        Ok(output) => assert!(output.status.success(), "{}", stderr(&output)),
        Err(e) => eprintln!("skipped: python3: {e}"),
    }
}

#[test]
fn duckdb_reads_it() {
    let duckdb = Command::new("python3").args(["-c", "import duckdb"]).output();
    if !duckdb.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 has no duckdb");
        return;
    }
    let Some(m) = Mounted::new() else { return };
    let program = "import duckdb,os\n\
        q=\"select count(*), min(l), max(l), sum(hash(l)) from read_csv('{}',header=false,delim='\\x01',\
        quote='',escape='',columns={{'l':'varchar'}})\"\n\
        of=lambda v: duckdb.sql(q.format(os.environ[v])).fetchall()\n\
        assert of('V')==of('P'), (of('V'),of('P'))\n";
    let mut python = Command::new("python3");
    let output =
        python.args(["-c", program]).env("V", m.view()).env("P", m.folder.at("plain")).output();
    let output = output.expect("python3 starts");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn signals_and_umount_end_it() {
    let Some(mut m) = Mounted::new() else { return };
    for signal in [libc::SIGINT, libc::SIGTERM] {
        m.shell("head -c 10 $V");
        let (status, said) = m.end(signal);
        assert_eq!((status, &*said), (Some(0), ""), "signal {signal}");
        assert!(!is_mounted(&m.folder.at("m")), "signal {signal}");
        let (folder, sorted) = (std::mem::replace(&mut m.folder, Folder::new()), m.sorted.clone());
        m = Mounted::mount(folder, sorted);
    }
    m.shell("head -c 10 $V; umount $(dirname $V) || fusermount3 -u $(dirname $V)");
    let status = m.server.wait().expect("it ends");
    assert!(status.success(), "{status}");
}

#[test]
fn a_signal_ends_it_while_a_program_reads() {
    let Some(mut m) = Mounted::new() else { return };
    let open = fs::File::open(m.view()).expect("opened");
    let (status, said) = m.end(libc::SIGINT);
    assert_eq!((status, &*said), (Some(0), ""));
    assert!(!is_mounted(&m.folder.at("m")));
    drop(open);
}

#[test]
fn bad_mount_points_are_reported() {
    let folder = Folder::new();
    let input = folder.write("input", b"b\na\n");
    let view = view_of(&folder, &input, &[]);
    fs::create_dir_all(folder.at("full/x")).expect("made");
    for (name, told) in
        [("missing", "no such folder"), ("input", "not a folder"), ("full", "not empty")]
    {
        let sentence = fails(merganser(["mount"]).arg(&view).arg(folder.at(name)));
        assert!(sentence.contains(told) && sentence.contains(name), "{sentence}");
    }
    fs::create_dir(folder.at("m")).expect("made");
    let sentence = fails(merganser(["mount"]).arg(&input).arg(folder.at("m")));
    assert!(sentence.contains("input"), "{sentence}");
}

/// A read of the damaged part of a view gives an error, never wrong bytes.
#[test]
fn damage_is_an_error_of_the_read() {
    let Some(mut m) = Mounted::new() else { return };
    m.end(libc::SIGINT);
    let view = m.folder.at("made.view");
    let largest = damage(&view);

    let (folder, sorted) = (std::mem::replace(&mut m.folder, Folder::new()), m.sorted.clone());
    let mut m = Mounted::mount(folder, sorted);
    let output = Command::new("cat").arg(m.view()).output().expect("it starts");
    assert!(stderr(&output).contains("Input/output error"), "{}", stderr(&output));
    assert!(m.sorted.starts_with(&output.stdout));
    let (status, said) = m.end(libc::SIGINT);
    assert_ne!(status, Some(0), "{said}");
    assert!(said.contains(&largest), "{said}");
}

/// A mounted view stays locked as long as it is mounted, whether or not anybody reads.
#[test]
fn e3_a_mounted_view_is_not_consumed() {
    let Some(mut m) = Mounted::new() else { return };
    let consume = || {
        let mut command = merganser(["materialize", "made.view", "-o", "out", "--consume"]);
        command.current_dir(m.folder.path());
        command
    };
    let mut refused = consume();
    let said = fails(&mut refused);
    let holder = format!("process {} (merganser mount)", m.server.id());
    assert!(said.contains(&holder), "{said}");
    m.shell("cmp $V $P");
    let mut taken = consume();
    assert_eq!(m.end(libc::SIGTERM).0, Some(0));
    prints(&mut taken);
    assert!(fs::read(m.folder.at("out")).expect("read") == m.sorted);
}

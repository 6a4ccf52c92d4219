//! Views served to NBD clients that do not know views.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{
    Chance, Folder, damage, fails, merganser, merganser_itself, prints, small_memory, sorted_lines,
    stderr, view_of,
};

/// A view that is served on the socket `s`, and its bytes.
struct Exported {
    folder: Folder,
    server: Child,
    sorted: Vec<u8>,
}

impl Exported {
    fn new() -> Self {
        let memory = small_memory();
        let content = Chance::new().lines((memory * 2) as usize);
        let sorted = sorted_lines(&content);
        let folder = Folder::new();
        let input = folder.write("input", &content);
        let options = format!("--memory={memory}");
        for (strategy, name) in [("merge", "big.view"), ("distribute", "buckets.view")] {
            let strategy = format!("--strategy={strategy}");
            let view = view_of(&folder, &input, &[&options, &strategy]);
            fs::rename(view, folder.at(name)).expect("renamed");
        }
        let small = folder.write("small", b"b\na\n");
        fs::rename(view_of(&folder, &small, &[]), folder.at("small.view")).expect("renamed");
        Self::serve(folder, sorted)
    }

    fn serve(folder: Folder, sorted: Vec<u8>) -> Self {
        let mut server = merganser_itself(["export"])
            .args(["big.view", "buckets.view", "small.view"].map(|name| folder.at(name)))
            .arg("--nbd")
            .arg(folder.at("s"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let start = Instant::now();
        while std::os::unix::net::UnixStream::connect(folder.at("s")).is_err() {
            if server.try_wait().expect("asked").is_some() || start.elapsed().as_secs() > 30 {
                let _ = server.kill();
                let output = server.wait_with_output().expect("it ends");
                panic!("not served: {}: {}", output.status, stderr(&output));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Exported { folder, server, sorted }
    }

    fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.folder.at("s").display())
    }

    fn copy(&self) -> PathBuf {
        self.folder.at("copy")
    }

    /// Ends the server with `signal`; returns its status and its messages.
    fn end(&mut self, signal: libc::c_int) -> (Option<i32>, String) {
        kill(&self.server, signal);
        let status = self.server.wait().expect("it ends");
        let mut said = String::new();
        self.server.stderr.as_mut().expect("piped").read_to_string(&mut said).expect("read");
        (status.code(), said)
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn kill(child: &Child, signal: libc::c_int) {
    let pid = libc::pid_t::try_from(child.id()).expect("a pid");
    // SAFETY: a signal to a child that has not been waited for, so the pid is its own.
    unsafe { libc::kill(pid, signal) };
}

/// True, with a line said, when a client is not installed.
fn skipped(program: &str) -> bool {
    let started = Command::new(program).arg("--version").output();
    let missing = started.is_err_and(|e| e.kind() == ErrorKind::NotFound);
    if missing {
        eprintln!("skipped: {program} is not installed");
    }
    missing
}

#[test]
fn clients_read_the_sorted_file() {
    let e = Exported::new();
    if !skipped("nbdcopy") {
        for export in ["", "buckets"] {
            prints(Command::new("nbdcopy").arg(e.uri(export)).arg(e.copy()));
            assert!(fs::read(e.copy()).expect("copied") == e.sorted, "export '{export}'");
        }
        let small = prints(Command::new("nbdcopy").arg(e.uri("small")).arg("-"));
        assert_eq!(small, b"a\nb\n");
    }
    if !skipped("qemu-img") {
        let convert = ["convert", "-f", "raw", "-O", "raw"];
        for export in ["big", "buckets"] {
            prints(Command::new("qemu-img").args(convert).arg(e.uri(export)).arg(e.copy()));
            let copy = fs::read(e.copy()).expect("converted");
            assert!(copy.starts_with(&e.sorted) && copy.len() < e.sorted.len() + 512, "{export}");
        }
    }
}

#[test]
fn signals_end_it_and_remove_the_socket() {
    let mut e = Exported::new();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let (status, said) = e.end(signal);
        let socket = e.folder.at("s");
        let announced = format!(
            "merganser: exports for NBD clients of the socket {}: big, buckets, small\n",
            socket.display()
        );
        assert_eq!((status, said), (Some(0), announced), "signal {signal}");
        assert!(!e.folder.at("s").exists());
        let (folder, sorted) = (std::mem::replace(&mut e.folder, Folder::new()), e.sorted.clone());
        e = Exported::serve(folder, sorted);
    }
    // The socket of a killed server is replaced; that of a live server is not.
    let view = e.folder.at("small.view");
    let second = merganser(["export"]).arg(&view).arg("--nbd").arg(e.folder.at("s")).output();
    let said = stderr(&second.expect("it starts"));
    assert!(said.contains("a process listens there already"), "{said}");
    e.end(libc::SIGKILL);
    assert!(e.folder.at("s").exists());
    let (folder, sorted) = (std::mem::replace(&mut e.folder, Folder::new()), e.sorted.clone());
    e = Exported::serve(folder, sorted);
    assert_eq!(e.end(libc::SIGTERM).0, Some(0));
    assert!(!e.folder.names().contains(&"s".to_owned()));
}

#[test]
fn a_free_port_is_printed() {
    let folder = Folder::new();
    let input = folder.write("input", b"b\na\n");
    let view = view_of(&folder, &input, &[]);
    let mut server = merganser_itself(["export"])
        .arg(view)
        .args(["--nbd", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = String::new();
    let mut stdout = BufReader::new(server.stdout.take().expect("piped"));
    stdout.read_line(&mut said).expect("a line");
    let at = said.trim_end();
    assert!(at.starts_with("127.0.0.1:") && !at.ends_with(":0"), "{said}");
    if !skipped("nbdcopy") {
        let copied = prints(Command::new("nbdcopy").arg(format!("nbd://{at}/made")).arg("-"));
        assert_eq!(copied, b"a\nb\n");
    }
    kill(&server, libc::SIGTERM);
    assert!(server.wait().expect("it ends").success());
}

/// Starts a server at `at`, and ends it once it says where it is; returns its notice.
fn announced(mut command: Command, at: &str) -> String {
    let command = command.args(["--nbd", at]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.spawn().expect("it starts");
    let mut said = String::new();
    let mut told = BufReader::new(server.stderr.take().expect("piped"));
    told.read_line(&mut said).expect("a line");
    kill(&server, libc::SIGTERM);
    server.wait().expect("it ends");
    said
}

/// A view, a volume and an emulated disk: only on request do other machines reach them, and each server says
/// where it is.
#[test]
fn n11_other_machines_are_let_in_only_on_request() {
    let folder = Folder::new();
    let view = view_of(&folder, &folder.write("input", b"b\na\n"), &[]);
    let mut create = merganser(["array", "create", "--size", "1M", "--no-buffer", "--data"]);
    prints(create.arg(folder.at("member")).arg(folder.at("vol.json")));
    let servers: [(&str, &dyn Fn() -> Command); 3] = [
        ("made", &|| {
            let mut command = merganser_itself(["export"]);
            command.arg(&view);
            command
        }),
        ("volume", &|| {
            let mut command = merganser_itself(["array", "serve"]);
            command.arg(folder.at("vol.json"));
            command
        }),
        ("disk", &|| {
            let mut command = merganser_itself(["emulate", "--device", "null"]);
            command.args(["--memory-backed", "--size", "1M"]);
            command
        }),
    ];
    for (name, server) in servers {
        for open in ["0.0.0.0:0", "[::]:0", "192.0.2.1:10809"] {
            let told = fails(server().args(["--nbd", open]));
            assert!(told.starts_with(&format!("--nbd: {}", &open[..5])), "{told}");
            assert!(told.contains("other machines can reach this address"), "{told}");
            assert!(told.ends_with("or --insecure"), "{told}");
        }
        let told = fails(server().args(["--nbd", "localhost"]));
        assert!(told.contains("give localhost:PORT, or ./localhost for a socket"), "{told}");

        let mut insecure = server();
        insecure.arg("--insecure");
        let said = announced(insecure, "0.0.0.0:0");
        let start = "merganser: exports for NBD clients of 0.0.0.0:";
        assert!(said.starts_with(start) && said.ends_with(&format!(": {name}\n")), "{said}");
        let said = announced(server(), "127.0.0.1:0");
        assert!(said.starts_with("merganser: exports for NBD clients of 127.0.0.1:"), "{said}");
        let mut there = server();
        there.current_dir(folder.path());
        let said = announced(there, "./localhost");
        let expected = format!("exports for NBD clients of the socket ./localhost: {name}\n");
        assert_eq!(said.strip_prefix("merganser: "), Some(&*expected));
    }
}

#[test]
fn a_view_that_cannot_be_served_is_reported() {
    let folder = Folder::new();
    let input = folder.write("input", b"b\na\n");
    let view = view_of(&folder, &input, &[]);
    let export =
        |view: &PathBuf, nbd: &str| fails(merganser(["export"]).arg(view).args(["--nbd", nbd]));
    let path = input.to_str().expect("text");
    assert!(export(&view, path).contains("is no socket"));
    assert_eq!(fs::read(&input).expect("kept"), b"b\na\n");
    assert!(export(&view, "/missing/s").contains("its folder does not exist"));
    assert!(export(&view, "host:port").starts_with("--nbd: 'port' is no port"));
    assert!(export(&input, "127.0.0.1:0").contains("input"));
}

/// A read of the damaged part of a view gives an error, never wrong bytes.
#[test]
fn damage_is_an_error_of_the_read() {
    if skipped("nbdcopy") {
        return;
    }
    let mut e = Exported::new();
    e.end(libc::SIGINT);
    let view = e.folder.at("big.view");
    let largest = damage(&view);

    let (folder, sorted) = (std::mem::replace(&mut e.folder, Folder::new()), e.sorted.clone());
    let mut e = Exported::serve(folder, sorted);
    let output = Command::new("nbdcopy").arg(e.uri("big")).arg("-").output().expect("it starts");
    assert!(!output.status.success());
    assert!(stderr(&output).contains("Input/output error"), "{}", stderr(&output));
    let (status, said) = e.end(libc::SIGINT);
    assert_ne!(status, Some(0), "{said}");
    assert!(said.contains(&largest), "{said}");
}

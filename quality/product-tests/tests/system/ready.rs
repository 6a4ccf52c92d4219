//! Servers and mounts tell a service manager that they answer, and that they end (sd_notify(3)).

use std::fs;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::harness::{Folder, first_line, merganser_itself, view_of};

/// Starts `words`, waits for their notification that they are ready, calls `use_it`, and ends them.
fn tells(folder: &Folder, words: &[&str], use_it: impl FnOnce(&Path)) {
    let manager = UnixDatagram::bind(folder.at("notify")).expect("bound");
    manager.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    let told = || {
        let mut bytes = [0; 64];
        let len = manager.recv(&mut bytes).expect("told");
        String::from_utf8(bytes[..len].to_vec()).expect("text")
    };
    let mut command = merganser_itself(words);
    command.current_dir(folder.path()).env("NOTIFY_SOCKET", folder.at("notify"));
    let mut server = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let ready = told();
    use_it(folder.path());
    let pid = libc::pid_t::try_from(server.id()).expect("a pid");
    // SAFETY: a signal to a child that has not been waited for, so the pid is its own.
    unsafe { libc::kill(pid, libc::SIGTERM) };
    let status = server.wait().expect("it ends");
    assert_eq!((&*ready, &*told(), status.code()), ("READY=1", "STOPPING=1", Some(0)), "{words:?}");
    manager.set_nonblocking(true).expect("set");
    assert!(manager.recv(&mut [0; 64]).is_err(), "{words:?}: each is sent once");
    fs::remove_file(folder.at("notify")).expect("there");
}

fn folder_with_a_view() -> Folder {
    let folder = Folder::new();
    let input = folder.write("input", b"b\na\n");
    view_of(&folder, &input, &[]);
    fs::create_dir(folder.at("m")).expect("made");
    folder
}

#[test]
fn a_mount_and_an_export_tell_it() {
    let folder = folder_with_a_view();
    tells(&folder, &["export", "made.view", "--nbd", "s"], |place| {
        UnixStream::connect(place.join("s")).expect("it listens");
    });
    if !Path::new("/dev/fuse").exists() {
        return;
    }
    tells(&folder, &["mount", "made.view", "m"], |place| {
        assert_eq!(fs::read(place.join("m/made")).expect("it answers"), b"a\nb\n");
    });
}

/// A unit would wait in vain, so its log has the reason.
#[test]
fn a_manager_that_is_not_there_is_named() {
    let folder = folder_with_a_view();
    let mut command = merganser_itself(["export", "made.view", "--nbd", "s"]);
    command.current_dir(folder.path()).env("NOTIFY_SOCKET", folder.at("none"));
    let mut server = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = [first_line(&mut server), first_line(&mut server)];
    server.kill().expect("killed");
    server.wait().expect("it ends");
    assert!(lines[0].contains("exports for NBD clients"), "{lines:?}");
    assert!(lines[1].contains("none: No such file or directory"), "{lines:?}");
    assert!(lines[1].ends_with("the service manager is not told READY=1\n"), "{lines:?}");
}

#[cfg(feature = "array")]
#[test]
fn a_volume_tells_it() {
    let folder = Folder::new();
    let create = ["array", "create", "vol.json", "--data", "d", "--no-buffer", "--size", "1M"];
    let mut create = merganser_itself(create);
    let made = create.arg("--quiet").current_dir(folder.path()).status().expect("it starts");
    assert!(made.success());
    tells(&folder, &["array", "serve", "vol.json", "--nbd", "s"], |place| {
        UnixStream::connect(place.join("s")).expect("it listens");
    });
}

#[cfg(feature = "hadoop")]
#[test]
fn both_servers_for_hadoop_tell_it_together() {
    let folder = Folder::new();
    let words = ["hadoop", "serve", "--shuffle", "s", "--local-dir", ".", "--hdfs", "h"];
    tells(&folder, &[&words[..], &["--hdfs-data-dir", "."]].concat(), |place| {
        for socket in ["s", "h"] {
            UnixStream::connect(place.join(socket)).expect("it listens");
        }
    });
}

#[cfg(feature = "near")]
#[test]
fn a_node_tells_it() {
    let folder = Folder::new();
    tells(&folder, &["serve", "--data", ".", "--listen", "127.0.0.1:0"], |_| ());
}

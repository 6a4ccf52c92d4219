//! A socket in the file system, on which a process serves others: made private, removed at the end,
//! never taken from a live process.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{process, thread};

use parking_lot::Mutex;
use rustix::fs::{CWD, Mode, RenameFlags, fchmod, renameat_with};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::ListenError;

/// How long to wait for the lock of a socket's folder. A server that starts holds it for milliseconds;
/// any user who may read the folder can hold it for ever.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// How often the lock is tried meanwhile.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// A socket that is listened on, until it is closed or dropped.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of its file, until that is removed.
    file: Mutex<Option<(u64, u64)>>,
}

impl UnixSocket {
    /// Listens at `path`. Its file has this mode (as of `chmod`) and takes connections from the moment
    /// it can be seen. A file that a dead process left there is replaced.
    ///
    /// # Errors
    /// When the path cannot be listened on.
    pub(crate) fn bind(path: &Path, mode: u32) -> Result<Self, ListenError> {
        Self::bind_within(path, mode, LOCK_PATIENCE)
    }

    /// [`UnixSocket::bind`] with a limit on the wait for the folder's lock.
    fn bind_within(path: &Path, mode: u32, patience: Duration) -> Result<Self, ListenError> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let folder = File::open(folder).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => ListenError::NoFolder,
            _ => e.into(),
        })?;
        lock(&folder, patience)?;
        clear(path)?;
        // The system takes a byte more than clients do.
        SocketAddr::from_pathname(path).map_err(|_| ListenError::PathTooLong)?;
        let hidden = Hidden::of_folder(&folder);
        let listener = listen(&hidden.0)?;
        fs::set_permissions(&hidden.0, Permissions::from_mode(mode))?;
        let file = Mutex::new(identity(&hidden.0));
        publish(&hidden.0, path)?;
        Ok(UnixSocket { listener, path: path.to_path_buf(), file })
    }

    /// Waits for the next client.
    ///
    /// # Errors
    /// The system's; any once it is closed.
    pub(crate) fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept()?.0)
    }

    /// Makes [`UnixSocket::accept`] fail, now and from now on, and removes the file if it is still this
    /// one's.
    pub(crate) fn close(&self) {
        // As long as it listens, no other process takes the path, so the removed file is this one's.
        let file = self.file.lock().take();
        if file.is_some() && identity(&self.path) == file {
            let _ = fs::remove_file(&self.path);
        }
        let _ = net::shutdown(&self.listener, net::Shutdown::Both);
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        self.close();
    }
}

/// Two processes that start at once must not both find that no process listens, so each locks the folder
/// first. Where folders cannot be locked, one of them may lose its socket to the other.
fn lock(folder: &File, patience: Duration) -> Result<(), ListenError> {
    let start = Instant::now();
    loop {
        match folder.try_lock() {
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
            Err(TryLockError::WouldBlock) if start.elapsed() >= patience => {
                return Err(ListenError::FolderLocked { patience });
            }
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_RETRY),
        }
    }
}

/// The name of a socket that does not listen yet, because the system makes the file before. It is removed if the socket
/// never gets its own name. The path is short, however long the folder's is, and whatever name the folder gets.
struct Hidden(PathBuf);

impl Hidden {
    /// In a folder that this process has locked.
    fn of_folder(folder: &File) -> Self {
        let name = format!("/proc/self/fd/{}/.merganser-{}", folder.as_raw_fd(), process::id());
        let hidden = Hidden(name.into());
        // Of a process that was killed here.
        let _ = fs::remove_file(&hidden.0);
        hidden
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens at `path`, for this user only. Linux gives the file the mode that the socket has. A private umask would do
/// that, too, but for all threads of the process.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket =
        net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    fchmod(&socket, Mode::from(0o600))?;
    net::bind(&socket, &address)?;
    net::listen(&socket, i32::MAX)?;
    Ok(socket.into())
}

/// Gives a socket its name, which is free, unless another program has taken it just now.
fn publish(hidden: &Path, path: &Path) -> Result<(), ListenError> {
    match renameat_with(CWD, hidden, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS) => Ok(fs::rename(hidden, path)?),
        Err(Errno::EXIST) => Err(ListenError::PathTaken),
        Err(e) => Err(io::Error::from(e).into()),
    }
}

/// Removes what a dead process left at `path`.
fn clear(path: &Path) -> Result<(), ListenError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => Err(ListenError::NoSocket),
        Ok(_) => match connect_without_waiting(path) {
            Ok(_) => Err(ListenError::PathTaken),
            Err(ListenError::System(e)) if e.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(ListenError::Leftover)
            }
            Err(e) => Err(e),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Connects to the process that listens at `path`; `None` if its queue of connections is full, where
/// an ordinary `connect` would wait.
fn connect_without_waiting(path: &Path) -> Result<Option<UnixStream>, ListenError> {
    let address = SocketAddrUnix::new(path).map_err(|_| ListenError::PathTooLong)?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(io::Error::from)?;
    match net::connect(&socket, &address) {
        Ok(()) => Ok(Some(socket.into())),
        Err(Errno::AGAIN) => Ok(None),
        Err(e) => Err(io::Error::from(e).into()),
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_socket_has_its_mode_and_goes_with_its_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        for mode in [0o600, 0o660] {
            let socket = UnixSocket::bind(&path, mode).expect("bound");
            let found = fs::symlink_metadata(&path).expect("there").mode();
            assert_eq!(found & 0o7777, mode);
            let second = UnixSocket::bind(&path, mode).expect_err("taken").to_string();
            assert!(second.starts_with("a process listens there already"), "{second}");
            drop(socket);
            assert!(!path.exists());
        }
    }

    #[test]
    fn nobody_else_can_connect_before_the_mode_is_set() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let _listener = listen(&path).expect("bound");
        assert_eq!(fs::symlink_metadata(&path).expect("there").mode() & 0o7777, 0o600);
    }

    /// Scripts wait for the file, and connect.
    #[test]
    fn whoever_sees_the_file_can_connect() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |number: u32| folder.path().join(number.to_string());
        let (connected, connections) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let until = Instant::now() + Duration::from_secs(60);
                for number in 0..2_000 {
                    while fs::symlink_metadata(path(number)).is_err() {
                        assert!(Instant::now() < until, "no socket {number}");
                    }
                    connected
                        .send(UnixStream::connect(path(number)).expect("it listens"))
                        .expect("taken");
                }
            });
            for number in 0..2_000 {
                let _socket = UnixSocket::bind(&path(number), 0o600).expect("bound");
                connections.recv().expect("a client");
            }
        });
    }

    /// It is the whole process's: other threads may make files at the same time.
    #[test]
    fn the_umask_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let stop = AtomicBool::new(false);
        let umask = || {
            let status = fs::read_to_string("/proc/self/status").expect("/proc");
            status.lines().find(|line| line.starts_with("Umask:")).map(str::to_owned)
        };
        let before = umask();
        thread::scope(|scope| {
            let looks = || {
                while !stop.load(Ordering::Relaxed) && umask() == before {
                    thread::yield_now();
                }
            };
            let look = scope.spawn(looks);
            for number in 0..500 {
                let path = folder.path().join(number.to_string());
                drop(UnixSocket::bind(&path, 0o600).expect("bound"));
            }
            assert!(!look.is_finished(), "another umask was seen");
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(umask(), before);
    }

    #[test]
    fn f24_a_folder_that_stays_locked_is_waited_for_but_not_for_ever() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let held = File::open(folder.path()).expect("open");
        held.lock().expect("lock");
        let short = Duration::from_millis(200);
        let start = Instant::now();
        let refused = UnixSocket::bind_within(&path, 0o600, short).expect_err("locked").to_string();
        assert!(refused.starts_with("another process has kept its folder locked"), "{refused}");
        assert!(start.elapsed() >= short && !path.exists());
        // Another server that starts at the same time holds it for a moment.
        let soon = thread::spawn(move || {
            thread::sleep(short);
            drop(held);
        });
        UnixSocket::bind(&path, 0o600).expect("unlocked in time");
        soon.join().expect("no panic");
    }

    #[test]
    fn f24_a_listener_that_accepts_nothing_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).expect("bound");
        net::listen(&listener, 1).expect("a shorter queue");
        let connect = |_| connect_without_waiting(&path).expect("it listens");
        let held: Vec<_> = (0..10).map_while(connect).collect();
        assert!(held.len() < 10, "the queue is full");
        let second = UnixSocket::bind(&path, 0o600).expect_err("taken").to_string();
        assert!(second.starts_with("a process listens there already"), "{second}");
    }

    #[test]
    fn only_what_a_dead_process_left_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        // The standard library leaves the file behind.
        drop(UnixListener::bind(&path).expect("bound"));
        let replaced = UnixSocket::bind(&path, 0o600).expect("a dead one's");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "precious").expect("written");
        drop(replaced);
        let refused = UnixSocket::bind(&path, 0o600).expect_err("a file").to_string();
        assert!(refused.contains("is no socket"), "{refused}");
        assert_eq!(fs::read(&path).expect("kept"), b"precious");
        let refused = UnixSocket::bind(&folder.path().join("no/s"), 0o600)
            .expect_err("no folder")
            .to_string();
        assert!(refused.contains("its folder does not exist"), "{refused}");
        let long = UnixSocket::bind(&folder.path().join("x".repeat(120)), 0o600);
        assert!(long.expect_err("too long").to_string().contains("107 bytes"));
    }
}

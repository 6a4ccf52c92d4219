//! What may be in the place of a file: links, FIFOs, files of other users. Tests that need another
//! user's files make them as root and do nothing otherwise.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use merganser_storage::file::own::{self, FileRefusal};
use merganser_storage::file::{
    Attributes, FileDirectory, FileKind, FileOptions, FileStorage, OutputKind, UnpublishedFile,
    publish_file, publish_folder, resolve_output, unpublished_names,
};
use merganser_storage::{Directory, Storage, StorageExt};
use tempfile::TempDir;

/// Another user, as far as root is concerned.
const OTHER: u32 = 65534;

fn place() -> TempDir {
    tempfile::tempdir().expect("temporary directory")
}

/// A folder like /tmp.
fn shared() -> TempDir {
    let place = place();
    set_mode(place.path(), 0o1777);
    place
}

fn is_root() -> bool {
    let root = own::user() == 0;
    if !root {
        eprintln!("not root: nothing tested");
    }
    root
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
}

fn mode(path: &Path) -> u32 {
    stat(path).mode() & 0o7777
}

fn stat(path: &Path) -> Metadata {
    fs::symlink_metadata(path).expect("stat")
}

fn make_fifo(path: &Path) {
    let text = std::ffi::CString::new(path.to_str().expect("text")).expect("no NUL");
    // SAFETY: a NUL-terminated string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }, 0, "mkfifo");
}

fn refusal<T>(result: io::Result<T>) -> FileRefusal {
    let error = result.err().expect("refused");
    FileRefusal::of_error(&error).unwrap_or_else(|| panic!("another error: {error}"))
}

fn publish(path: &Path, content: &str) -> io::Result<()> {
    let output = UnpublishedFile::create(path, FileOptions::default())?;
    output.storage().write_at(0, content.as_bytes())?;
    output.publish()
}

fn names(path: &Path) -> Vec<String> {
    FileDirectory::open(path).expect("open").list().expect("list")
}

#[test]
fn f23_a_member_that_is_no_regular_file_is_named_and_never_waited_for() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    make_fifo(&at("fifo"));
    fs::create_dir(at("folder")).expect("mkdir");
    fs::write(at("target"), "x").expect("write");
    symlink(at("target"), at("link")).expect("link");
    symlink("nowhere", at("dangling")).expect("link");
    symlink("/dev/zero", at("device")).expect("link");
    let _listener = UnixListener::bind(at("socket")).expect("bind");
    let directory = FileDirectory::open(place.path()).expect("open");
    for (name, found) in [
        ("fifo", FileKind::Fifo),
        ("folder", FileKind::Folder),
        ("link", FileKind::Symlink),
        ("dangling", FileKind::Symlink),
        ("device", FileKind::Symlink),
        ("socket", FileKind::Socket),
    ] {
        for writable in [false, true] {
            for directory in [&directory, &directory.private()] {
                let error = directory.open(name, writable).err().expect("refused");
                let expected = FileKind::Regular;
                assert_eq!(
                    FileRefusal::of_error(&error),
                    Some(FileRefusal::Kind { found, expected }),
                    "{error}"
                );
                let said = format!("/{name}: is {found}, not a regular file");
                assert!(error.to_string().ends_with(&said), "{error}");
            }
        }
    }
    // The one place where links are followed and devices are taken.
    let opened = FileStorage::open_path(at("link"), false).expect("a link to a file");
    assert_eq!(opened.size(), 1);
    let error = FileStorage::open_path(at("fifo"), false).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn f13_helpers_are_made_for_this_user_alone_and_published_by_the_umask() {
    let place = place();
    let path = place.path().join("helper");
    let folder = FileDirectory::create_own(&path).expect("made");
    assert_eq!(mode(&path), 0o700);
    folder.create("run").expect("create");
    assert_eq!(mode(&path.join("run")), 0o600);
    assert_eq!(folder.open("run", true).expect("own").size(), 0);
    let again = FileDirectory::create_own(&path).err().expect("refused");
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    FileDirectory::open_own(&path).expect("own");

    let plain = FileDirectory::open(place.path()).expect("open");
    plain.private().create("secret").expect("create");
    assert_eq!(mode(&place.path().join("secret")), 0o600);

    File::create(place.path().join("usual")).expect("create");
    fs::create_dir(place.path().join("usual folder")).expect("mkdir");
    publish_folder(folder.file()).expect("chmod");
    assert_eq!(mode(&path), mode(&place.path().join("usual folder")));
    publish_file(&File::open(path.join("run")).expect("open")).expect("chmod");
    assert_eq!(mode(&path.join("run")), mode(&place.path().join("usual")));
}

#[test]
fn f13_helpers_that_others_could_have_made_or_changed_are_refused() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    let directory = FileDirectory::open(place.path()).expect("open").private();

    fs::write(at("two names"), "x").expect("write");
    fs::hard_link(at("two names"), at("second")).expect("link");
    assert_eq!(refusal(directory.open("two names", false)), FileRefusal::Links { found: 2 });
    assert_eq!(refusal(own::open_file(&at("second"), true)), FileRefusal::Links { found: 2 });

    fs::create_dir(at("folder")).expect("mkdir");
    for open_to in [0o777, 0o770, 0o1777, 0o702] {
        set_mode(&at("folder"), open_to);
        let found = refusal(FileDirectory::open_own(at("folder")));
        let FileRefusal::Writable { mode } = found else { panic!("{found}") };
        assert_eq!(mode & 0o7777, open_to);
    }
    set_mode(&at("folder"), 0o755);
    FileDirectory::open_own(at("folder")).expect("own");

    symlink(at("folder"), at("link")).expect("link");
    let (found, expected) = (FileKind::Symlink, FileKind::Folder);
    assert_eq!(refusal(FileDirectory::open_own(at("link"))), FileRefusal::Kind { found, expected });
    make_fifo(&at("fifo"));
    let found = FileKind::Fifo;
    assert_eq!(refusal(FileDirectory::open_own(at("fifo"))), FileRefusal::Kind { found, expected });
    let expected = FileKind::Regular;
    assert_eq!(refusal(own::open_file(&at("fifo"), false)), FileRefusal::Kind { found, expected });
    let missing = FileDirectory::open_own(at("missing")).err().expect("refused");
    assert_eq!(missing.kind(), ErrorKind::NotFound);

    if is_root() {
        fs::write(at("planted"), "x").expect("write");
        let theirs = FileRefusal::Owner { found: OTHER, expected: 0 };
        for name in ["planted", "folder"] {
            chown(at(name), Some(OTHER), None).expect("chown");
        }
        assert_eq!(refusal(directory.open("planted", true)), theirs);
        assert_eq!(refusal(own::open_file(&at("planted"), false)), theirs);
        assert_eq!(refusal(FileDirectory::open_own(at("folder"))), theirs);
    }
}

#[test]
fn a_folder_stays_itself_when_another_one_takes_its_name() {
    let place = place();
    let (path, moved) = (place.path().join("folder"), place.path().join("moved"));
    fs::create_dir(&path).expect("mkdir");
    let directory = FileDirectory::open(&path).expect("open");
    fs::rename(&path, &moved).expect("rename");
    fs::create_dir(&path).expect("mkdir");
    fs::write(path.join("planted"), "x").expect("write");
    directory.create("run").expect("create");
    directory.rename("run", "renamed").expect("rename");
    assert_eq!(directory.list().expect("list"), ["renamed"]);
    assert!(moved.join("renamed").exists());
    directory.open("planted", false).err().expect("not here");
}

#[test]
fn f10_links_of_other_users_in_a_shared_folder_are_not_followed() {
    if !is_root() {
        return;
    }
    let (shared, home) = (shared(), place());
    let precious = home.path().join("precious");
    fs::write(&precious, "precious").expect("write");
    let link = |name: &str, to: &Path, owner: u32| {
        let path = shared.path().join(name);
        symlink(to, &path).expect("link");
        lchown(&path, Some(owner), Some(owner)).expect("chown");
        path
    };
    let planted = FileRefusal::Planted { found: FileKind::Symlink, owner: OTHER };
    let their_link = link("theirs", &precious, OTHER);
    let dangling = link("dangling", &home.path().join("made"), OTHER);
    let second = link("second", &their_link, 0);
    for path in [&their_link, &dangling, &second] {
        assert_eq!(refusal(resolve_output(path)), planted, "{}", path.display());
        assert_eq!(refusal(publish(path, "stolen")), planted, "{}", path.display());
        assert_eq!(stat(path).uid() == OTHER, *path != second);
    }
    assert_eq!(fs::read(&precious).expect("read"), b"precious");
    assert_eq!(names(home.path()), ["precious"]);

    // This user's own link, and one of the folder's owner.
    publish(&link("own", &precious, 0), "by this user").expect("followed");
    assert_eq!(fs::read(&precious).expect("read"), b"by this user");
    chown(shared.path(), Some(OTHER), None).expect("chown");
    publish(&their_link, "by the owner").expect("followed");
    assert_eq!(fs::read(&precious).expect("read"), b"by the owner");
    // A folder that only its owner may write needs no such rule.
    chown(shared.path(), Some(0), None).expect("chown");
    set_mode(shared.path(), 0o755);
    publish(&their_link, "not shared").expect("followed");
    assert_eq!(fs::read(&precious).expect("read"), b"not shared");
}

#[test]
fn f10_files_of_other_users_in_a_shared_folder_are_not_replaced() {
    if !is_root() {
        return;
    }
    let shared = shared();
    let (path, fifo) = (shared.path().join("out"), shared.path().join("fifo"));
    fs::write(&path, "theirs").expect("write");
    make_fifo(&fifo);
    for path in [&path, &fifo] {
        chown(path, Some(OTHER), Some(OTHER)).expect("chown");
    }
    let planted = |found| FileRefusal::Planted { found, owner: OTHER };
    // The result would become theirs, and readable to them.
    assert_eq!(refusal(publish(&path, "secret")), planted(FileKind::Regular));
    assert_eq!(refusal(resolve_output(&fifo)), planted(FileKind::Fifo));
    assert_eq!(fs::read(&path).expect("read"), b"theirs");

    // The same for a file that is put there while the output is being written.
    let late = shared.path().join("late");
    for plant in [false, true] {
        let output = UnpublishedFile::create(&late, FileOptions::default()).expect("create");
        output.storage().write_at(0, b"secret").expect("write");
        if plant {
            fs::rename(&path, &late).expect("rename");
            assert_eq!(refusal(output.publish()), planted(FileKind::Regular));
            assert_eq!(fs::read(&late).expect("read"), b"theirs");
        } else {
            symlink("/etc/passwd", &late).expect("link");
            let (found, expected) = (FileKind::Symlink, FileKind::Regular);
            assert_eq!(refusal(output.publish()), FileRefusal::Kind { found, expected });
            fs::remove_file(&late).expect("remove");
        }
    }
    assert_eq!(names(shared.path()), ["fifo", "late"]);
}

#[test]
fn an_outputs_name_is_resolved_to_its_kind_and_place() {
    let place = place();
    let root = place.path().canonicalize().expect("there");
    let at = |name: &str| root.join(name);
    fs::create_dir(at("folder")).expect("mkdir");
    fs::write(at("folder/file"), "x").expect("write");
    make_fifo(&at("fifo"));
    let _listener = UnixListener::bind(at("socket")).expect("bind");
    symlink("folder", at("to folder")).expect("link");
    symlink("to folder/../folder/file", at("relative")).expect("link");
    symlink("relative", at("to link")).expect("link");
    symlink("folder/made", at("dangling")).expect("link");
    symlink("to fifo", at("to fifo")).expect("link");
    for (name, kind, path) in [
        ("new", OutputKind::Absent, "new"),
        ("dangling", OutputKind::Absent, "folder/made"),
        ("folder/file", OutputKind::Regular, "folder/file"),
        ("relative", OutputKind::Regular, "folder/file"),
        ("to link", OutputKind::Regular, "folder/file"),
        ("to folder/file", OutputKind::Regular, "folder/file"),
        ("folder", OutputKind::Folder, "folder"),
        ("to folder", OutputKind::Folder, "to folder"),
        ("folder/", OutputKind::Folder, "folder/"),
        ("folder/..", OutputKind::Folder, "folder/.."),
        ("fifo", OutputKind::Fifo, "fifo"),
        ("socket", OutputKind::Socket, "socket"),
    ] {
        let resolved = resolve_output(at(name)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((resolved.kind(), resolved.path()), (kind, at(path)), "{name}");
        assert_eq!(resolved.existing().is_none(), kind == OutputKind::Absent);
        let is_file = matches!(kind, OutputKind::Absent | OutputKind::Regular);
        assert_eq!(resolved.directory(FileOptions::default()).is_ok(), is_file, "{name}");
    }
    for (name, kind) in [
        ("missing/file", ErrorKind::NotFound),
        ("new/", ErrorKind::NotFound),
        ("folder/file/x", ErrorKind::NotADirectory),
    ] {
        assert_eq!(resolve_output(at(name)).expect_err("refused").kind(), kind, "{name}");
    }
    let looped = resolve_output(at("to fifo")).expect_err("refused").to_string();
    assert!(looped.contains("Too many levels of symbolic links"), "{looped}");
    assert_eq!(resolve_output("/dev/null").expect("there").kind(), OutputKind::Device);

    // Links of the kernel, as /dev/stdout is one.
    let held = File::open(at("folder/file")).expect("open");
    let held_path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    let resolved = resolve_output(&held_path).expect("resolved");
    assert_eq!((resolved.kind(), resolved.path()), (OutputKind::Regular, at("folder/file")));
    fs::remove_file(at("folder/file")).expect("remove");
    let gone = resolve_output(&held_path).expect_err("refused").to_string();
    assert!(gone.contains("this open file has no name"), "{gone}");
}

#[test]
fn f19_the_next_output_removes_what_a_killed_one_left_and_nothing_else() {
    let place = place();
    let path = place.path().join("sorted");
    let hidden: Vec<_> = unpublished_names("sorted".as_ref()).collect();
    assert_eq!(hidden[..2], [".sorted.merganser-new", ".sorted.merganser-new.1"]);
    let hidden: Vec<_> = hidden.iter().map(|name| place.path().join(name)).collect();
    fs::write(&path, "old").expect("write");

    // A live process holds the first, the second has another name, the third is a link.
    let held = File::create(&hidden[0]).expect("create");
    held.lock().expect("lock");
    fs::write(&hidden[1], "x").expect("write");
    fs::hard_link(&hidden[1], place.path().join("kept")).expect("link");
    symlink("kept", &hidden[2]).expect("link");
    for left in &hidden[3..] {
        fs::write(left, "left").expect("write");
    }
    publish(&path, "new").expect("published");
    assert_eq!(fs::read(&path).expect("read"), b"new");
    let there: Vec<_> = hidden.iter().map(|path| fs::symlink_metadata(path).is_ok()).collect();
    assert_eq!(there, [true, true, true, false, false, false, false, false]);

    drop(held);
    for name in [hidden[1].as_path(), &hidden[2]] {
        fs::remove_file(name).expect("remove");
    }
    drop(UnpublishedFile::create(&path, FileOptions::default()).expect("create"));
    assert_eq!(names(place.path()), ["kept", "sorted"]);

    // All of them are taken: a sentence, and the old content.
    let held: Vec<_> = hidden.iter().map(|path| File::create(path).expect("create")).collect();
    held.iter().for_each(|file| file.lock().expect("lock"));
    let error = publish(&path, "newer").expect_err("no name left").to_string();
    assert!(error.contains(".sorted.merganser-new: "), "{error}");
    assert_eq!(fs::read(&path).expect("read"), b"new");
}

#[test]
fn f19_names_that_are_almost_too_long_have_hidden_names_of_their_own() {
    let place = place();
    for len in [237, 238, 239, 240, 255] {
        let (one, two) = ("x".repeat(len), "x".repeat(len - 1) + "y");
        let hidden = |name: &str| unpublished_names(name.as_ref()).collect::<Vec<_>>();
        assert!(hidden(&one).iter().chain(&hidden(&two)).all(|name| name.len() <= 255), "{len}");
        assert!(hidden(&one).iter().all(|name| !hidden(&two).contains(name)), "{len}");
        for content in ["first", "second"] {
            publish(&place.path().join(&one), content).expect("published");
        }
        assert_eq!(names(place.path()), [&*one]);
        fs::remove_file(place.path().join(&one)).expect("remove");
    }
}

#[test]
fn f30_other_hard_links_keep_the_old_content() {
    let place = place();
    let (path, other) = (place.path().join("out"), place.path().join("other"));
    fs::write(&path, "old").expect("write");
    fs::hard_link(&path, &other).expect("link");
    publish(&path, "new").expect("published");
    assert_eq!(fs::read(&path).expect("read"), b"new");
    assert_eq!(fs::read(&other).expect("read"), b"old");
    assert_eq!(stat(&path).nlink(), 1);
}

#[test]
fn a_replaced_file_gives_its_mode_but_no_special_bits() {
    let place = place();
    let path = place.path().join("out");
    fs::write(&path, "old").expect("write");
    let root = is_root();
    for old in [0o4755, 0o2750, 0o1644, 0o6711, 0o600, 0o666] {
        if root {
            chown(&path, Some(OTHER), Some(OTHER)).expect("chown");
        }
        set_mode(&path, old);
        publish(&path, "new").expect("published");
        assert_eq!(mode(&path), old & 0o777);
        set_mode(&path, old);
        let file = File::open(&path).expect("open");
        Attributes::from(&stat(&path)).give_to(&file).expect("given");
        assert_eq!(mode(&path), old & 0o777);
        if root {
            assert_eq!((stat(&path).uid(), stat(&path).gid()), (OTHER, OTHER));
        }
    }
}

#[test]
fn nobody_may_read_more_where_the_owner_cannot_be_kept() {
    if !is_root() {
        return;
    }
    let place = place();
    set_mode(place.path(), 0o777);
    let path = place.path().join("out");
    for (old, new) in [(0o660, 0o600), (0o664, 0o644), (0o640, 0o600), (0o604, 0o604)] {
        fs::write(&path, "old").expect("write");
        set_mode(&path, old);
        let publish_as_other = || {
            // SAFETY: both change this thread's rights on files, and nothing else.
            unsafe {
                libc::setfsgid(OTHER);
                libc::setfsuid(OTHER);
            }
            publish(&path, "new")
        };
        std::thread::scope(|scope| scope.spawn(publish_as_other).join())
            .expect("no panic")
            .expect("published");
        assert_eq!((stat(&path).uid(), stat(&path).gid()), (OTHER, OTHER));
        assert_eq!(mode(&path), new, "of {old:o}");
        fs::remove_file(&path).expect("remove");
    }
}

#[test]
fn an_acl_that_is_lost_widens_nothing() {
    let place = place();
    let (old, new) = (place.path().join("old"), place.path().join("new"));
    for path in [&old, &new] {
        fs::write(path, "x").expect("write");
    }
    // user::rw- user:65534:rw- group::--- mask::rw- other::---
    let mut acl = vec![2, 0, 0, 0];
    let nobody = u32::MAX;
    for (tag, permissions, id) in
        [(1_u16, 6_u16, nobody), (2, 6, OTHER), (4, 0, nobody), (16, 6, nobody), (32, 0, nobody)]
    {
        acl.extend(tag.to_le_bytes());
        acl.extend(permissions.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    let set = |path: &Path| {
        let path = std::ffi::CString::new(path.to_str().expect("text")).expect("no NUL");
        let name = c"system.posix_acl_access".as_ptr();
        // SAFETY: two NUL-terminated strings, and a value of the length that is named.
        unsafe { libc::setxattr(path.as_ptr(), name, acl.as_ptr().cast(), acl.len(), 0) == 0 }
    };
    if !set(&old) {
        eprintln!("no ACLs here: nothing tested");
        return;
    }
    // The mask shows as the group's permissions.
    assert_eq!(mode(&old), 0o660);
    let attributes = Attributes::of_file(&File::open(&old).expect("open")).expect("stat");
    assert!(set(&new));
    let file = File::open(&new).expect("open");
    attributes.give_to(&file).expect("given");
    assert_eq!(mode(&new), 0o600);
    publish(&old, "new").expect("published");
    assert_eq!(mode(&old), 0o600);
}

#[test]
fn what_is_made_after_a_failure_is_removed_again() {
    let place = place();
    assert!(own::sync_parent(&place.path().join("any")).is_ok());
    let missing = FileDirectory::create_own(place.path().join("no/helper")).err().expect("refused");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    make_fifo(&place.path().join("fifo"));
    assert!(stat(&place.path().join("fifo")).file_type().is_fifo());
    assert_eq!(names(place.path()), ["fifo"]);
}

//! Typing errors in names of devices, and who may read what holds the bytes of a volume or disk.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use super::harness::{Folder, fails, merganser, prints};

/// Commands that would make a file of this name, by the option that names it.
fn makers(folder: &Folder, name: &str) -> Vec<Command> {
    let input = folder.write("in", b"b\na\n");
    let input = input.to_str().expect("text");
    let of = |words: &[&str]| merganser(words);
    vec![
        of(&["array", "create", "v.json", "--size", "1M", "--no-buffer", "--data", name]),
        of(&["array", "create", "v.json", "--size", "1M", "--data", "d", "--buffer", name]),
        of(&["array", "create", name, "--size", "1M", "--no-buffer", "--data", "d"]),
        of(&["emulate", "--device", "null", "--size", "1M", "--nbd", "s", "--file", name]),
        of(&["sort", input, "-o", name]),
        of(&["sort", input, "--view", name]),
        of(&["generate", "--records", "1", "-o", name]),
        of(&["map", "wordcount", input, "-o", name]),
        of(&["pipeline", input, "--stage", "a:cat", "-o", name]),
        of(&[
            "pipeline",
            input,
            "--stage",
            "a:cat",
            "-o",
            "out",
            "--report",
            &format!("{name}.json"),
        ]),
    ]
}

#[test]
fn e2_a_typing_error_of_a_device_makes_no_file() {
    let folder = Folder::new();
    let typed = "/dev/merganser-typing-error";
    symlink("/dev", folder.at("linked")).expect("linked");
    let before = folder.names();
    for name in [typed, "linked/merganser-typing-error"] {
        for mut command in makers(&folder, name) {
            let told = fails(command.current_dir(folder.path()));
            assert!(told.contains("merganser-typing-error"), "{command:?}: {told}");
            assert!(
                told.ends_with(
                    "is no device, and a file of this name would be in memory and lost at a \
                     restart; name a device that is there, or another folder"
                ),
                "{command:?}: {told}"
            );
            for made in [typed, "/dev/.merganser-typing-error.unfinished"] {
                assert!(!Path::new(made).exists(), "{command:?}: {made}");
            }
            let left = folder.names().into_iter().filter(|name| name != "in");
            assert_eq!(left.collect::<Vec<_>>(), before, "{command:?}");
        }
    }
}

#[test]
fn what_is_there_in_dev_can_be_written() {
    let folder = Folder::new();
    let input = folder.write("in", b"b\na\n");
    for device in ["/dev/null", "/dev/fd/1", "/dev/stdout"] {
        let printed = prints(merganser(["sort"]).arg(&input).args(["-o", device]));
        assert_eq!(printed, if device == "/dev/null" { &b""[..] } else { b"a\nb\n" }, "{device}");
    }
}

/// Whoever reads a member reads the volume, and its socket is for this user alone.
#[test]
fn e6_members_and_disk_images_are_for_their_owner() {
    let folder = Folder::new();
    let mode = |name: &str| fs::metadata(folder.at(name)).expect("made").mode() & 0o7777;
    let mut create = Command::new("sh");
    // The most open umask.
    create.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(super::harness::binary());
    create.args(["array", "create", "v.json", "--size", "1M", "--data", "d0,d1", "--buffer", "b"]);
    prints(create.args(["--buffer-size", "8M"]).current_dir(folder.path()));
    for member in ["d0", "d1", "b"] {
        assert_eq!(mode(member), 0o600, "{member}");
    }
    let mut emulate = Command::new("sh");
    emulate.args(["-c", "umask 0; exec timeout 20 \"$@\"", "sh"]).arg(super::harness::binary());
    emulate.args(["emulate", "--device", "null", "--size", "1M", "--file", "i", "--nbd", "no/s"]);
    fails(emulate.current_dir(folder.path()));
    assert_eq!(mode("i"), 0o600);
}

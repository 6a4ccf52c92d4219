//! Views with right checksums and wrong numbers, by all commands that read one.

use std::fs;
use std::path::Path;

use merganser_sort::record::Format;
use merganser_sort::view::Manifest;

use crate::harness::{Chance, Folder, fails, merganser, view_of};

fn change(view: &Path, change: impl FnOnce(&mut Manifest)) {
    let path = view.join("manifest");
    let bytes = fs::read(&path).expect("there");
    let mut manifest = Manifest::decode("manifest", &bytes).expect("it is one");
    change(&mut manifest);
    fs::write(path, manifest.encode()).expect("written");
}

/// Audit finding F17: a length of 0 hung `verify` and NBD reads, and ended views of buckets.
#[test]
fn f17_records_of_no_length_are_refused_by_every_command() {
    let folder = Folder::new();
    let content = Chance::new().lines(2 << 20);
    let content = &content[..content.len() / 64 * 64];
    let input = folder.write("input", content);
    for strategy in ["merge", "distribute"] {
        let strategy = format!("--strategy={strategy}");
        let view = view_of(&folder, &input, &["--format=fixed:64", &strategy]);
        change(&view, |manifest| manifest.order.format = Format::Fixed { bytes: 0 });
        let out = folder.at("out");
        let socket = folder.at("socket");
        for (words, more) in [
            (&["cat"][..], None),
            (&["cat", "--records=1..2"], None),
            (&["verify"], None),
            (&["info"], None),
            (&["info", "--verify"], None),
            (&["materialize"], Some(("-o", &out))),
            (&["export"], Some(("--nbd", &socket))),
        ] {
            let mut command = merganser(words.iter().copied());
            command.arg(&view);
            if let Some((flag, path)) = more {
                command.arg(flag).arg(path);
            }
            let sentence = fails(&mut command);
            assert!(sentence.contains("damaged at byte 0"), "{words:?}: {sentence}");
        }
        assert!(!out.exists() && !socket.exists());
        fs::remove_dir_all(view).expect("removed");
    }
}

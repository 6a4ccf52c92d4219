//! A file of the folder of unfinished work is lost, and the user does what `recover` says: every record stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{HIDDEN, Place, SORT, WORK, states};
use crate::harness::{merganser_itself, names, prints, stderr};
use crate::preload::Step;

/// The content of every file that can hold records: runs, outputs, inputs.
fn holders(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in names(folder) {
        let path = folder.join(&name);
        if path.is_dir() {
            all.extend(holders(&path));
        } else if name.ends_with(".run") || ["partial", HIDDEN, "in", "out"].contains(&&*name) {
            all.insert(path.clone(), fs::read(&path).expect("there"));
        }
    }
    all
}

impl Place {
    fn leftovers(&self) -> Vec<serde_json::Value> {
        let mut recover = merganser_itself(["recover", "--json", "."]);
        let json = prints(recover.current_dir(self.folder.path()));
        let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        json["leftovers"].as_array().expect("an array").clone()
    }

    /// Runs every command that `recover` gives, word by word. They may fail.
    fn follows_advice(&self) -> Vec<String> {
        let mut said = Vec::new();
        for left in self.leftovers() {
            let Some(words) = left["argv"].as_array() else { continue };
            let words: Vec<&str> = words.iter().map(|w| w.as_str().expect("text")).collect();
            let mut command = match words[0] {
                "merganser" => self.command(&words[1..]),
                program => Command::new(program),
            };
            if words[0] != "merganser" {
                command.args(&words[1..]).current_dir(self.folder.path());
            }
            let output = command.stdin(Stdio::null()).output().expect("it starts");
            said.push(format!("{words:?}: {}", stderr(&output)));
        }
        said
    }

    /// Whether the result is there, or every file that held records is as it was.
    fn nothing_is_lost(&self, before: &BTreeMap<PathBuf, Vec<u8>>, when: &str) {
        let out = self.folder.at("out");
        if out.is_file() && fs::read(&out).expect("there") == self.sorted {
            return;
        }
        let after = holders(self.folder.path());
        for (path, content) in before {
            assert!(after.get(path) == Some(content), "{when}: {} is lost", path.display());
        }
    }
}

/// ATTACK finding N1: each state of `sort --consume` × each file of its folder that is lost, cut or foreign.
#[test]
fn n1_recover_followed_to_the_letter_loses_no_record() {
    let Some(place) = Place::with_steps() else { return };
    for (state, step) in states() {
        place.again("in");
        place.interrupted(&SORT, step);
        let kept = place.folder.at("kept");
        copy(&place.folder.at(WORK), &kept);
        let files = names(&kept);
        assert!(state == "delivered" || files.contains(&"work-note".to_owned()), "{files:?}");
        for name in files {
            // The records of a run or an output that is lost are lost.
            let holds_records = name.ends_with(".run") || name == "partial";
            for damage in ["lost", "cut"] {
                if holds_records {
                    continue;
                }
                place.again("in");
                place.interrupted(&SORT, step);
                let path = place.folder.at(WORK).join(&name);
                // A file that is written by turns may not be there at this kill.
                if !path.exists() {
                    continue;
                }
                match damage {
                    "lost" => fs::remove_file(&path).expect("removed"),
                    _ => fs::File::options()
                        .write(true)
                        .open(&path)
                        .and_then(|file| file.set_len(20))
                        .expect("cut"),
                }
                let when = format!("{state}, {name} {damage}");
                let before = holders(place.folder.path());
                let said = place.follows_advice();
                place.nothing_is_lost(&before, &format!("{when}: {said:?}"));
                if place.folder.at(WORK).exists() && state != "delivered" {
                    // Other commands that want the folder don't get it.
                    place.folder.write("other", b"b\na\n");
                    let mut other = place.command(&["sort", "other", "--view", "out"]);
                    let _ = other.output().expect("it starts");
                    place.nothing_is_lost(&before, &format!("{when}, another command"));
                }
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).expect("copied");
    }
}

/// ATTACK finding N1 a: the folder of a sort whose journal is gone is not taken for a view that can be made again.
#[test]
fn n1_a_lost_journal_does_not_make_the_only_copy_worthless() {
    let Some(place) = Place::with_steps() else { return };
    place.interrupted(&SORT, states()[0].1);
    fs::remove_file(place.folder.at(WORK).join("sort-journal")).expect("removed");
    let left = place.leftovers();
    let work = left.iter().find(|l| l["path"] == "./.out.unfinished").expect("listed");
    assert_eq!(work["only_copy"], true, "{work}");
    assert_eq!(work["command"], serde_json::Value::Null, "{work}");
    assert!(work["what"].as_str().is_some_and(|what| what.contains("journal is lost")), "{work}");
    let before = holders(place.folder.path());
    place.folder.write("other", b"b\na\n");
    for command in [&["sort", "other", "--view", "out"][..], &SORT] {
        let said = place.refuses(command);
        place.nothing_is_lost(&before, &said);
    }
}

/// ATTACK finding N1 b: a folder with such a name may be anybody's.
#[test]
fn n1_a_folder_of_somebody_else_is_left_alone() {
    let place = Place::new();
    fs::create_dir(place.folder.at(".thesis.unfinished")).expect("made");
    fs::write(place.folder.at(".thesis.unfinished/chapter1.txt"), "text").expect("written");
    let left = place.leftovers();
    assert_eq!((left.len(), &left[0]["kind"]), (1, &"unknown".into()), "{left:?}");
    assert_eq!(left[0]["command"], serde_json::Value::Null, "{left:?}");
    assert_eq!(left[0]["argv"], serde_json::Value::Null, "{left:?}");
}

/// A view whose input has changed since is not removed on the word of `recover`.
#[test]
fn an_unfinished_view_goes_only_while_its_input_is_whole() {
    let Some(place) = Place::with_steps() else { return };
    place.interrupted(&["sort", "in", "--view", "out"], Step::first("rename", "out"));
    assert_eq!(place.leftovers()[0]["argv"][0], "rm");
    place.folder.write("in", b"other\n");
    let left = place.leftovers();
    assert_eq!(left[0]["command"], serde_json::Value::Null, "{left:?}");
    assert_eq!(left[0]["only_copy"], true, "{left:?}");
    // The same command begins again, as it always did.
    place.does(&["sort", "in", "--view", "out"]);
    assert_eq!(place.folder.names(), ["in", "out"]);
    assert!(!place.folder.at("out/work-note").exists());
}

#[test]
fn a_claimed_input_is_found_by_its_own_name() {
    let Some(place) = Place::with_steps() else { return };
    place.interrupted(&SORT, states()[0].1);
    let mut commands: Vec<&[&str]> =
        vec![&["sort", "in"], &["verify", "in"], &["sort", "-m", "in"]];
    if cfg!(feature = "near") {
        commands.push(&["map", "wordcount", "in"]);
    }
    for command in commands {
        let said = place.refuses(command);
        assert!(said.contains("its records are in .in.merganser-consumed"), "{command:?}: {said}");
        assert!(said.contains("merganser recover ."), "{command:?}: {said}");
    }
}

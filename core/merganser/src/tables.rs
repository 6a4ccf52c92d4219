//! Inputs that are tables: `merganser sort FILE.parquet` is `merganser table sort FILE.parquet`.
//!
//! A file is known by its content, a folder by the names in it, a view by its manifest.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use clap::{Arg, Command};
use merganser_sort::run::magic::{self, HEAD_BYTES, has_name_of_table};
use merganser_sort::view::{MANIFEST_NAME, Manifest};
use merganser_storage::Directory;
use merganser_storage::address::is_address;
use merganser_storage::file::FileDirectory;

/// Options of tables that are followed by a value, and that no command here has.
const WITH_VALUE: [&str; 7] = [
    "--columns",
    "--compression",
    "--file-size",
    "--output-format",
    "--partition-by",
    "--row-group-rows",
    "--seed",
];
/// Options that say that inputs are no tables, or that a table has no such command.
const OF_OTHERS: [&str; 4] = ["--check", "--format", "--no-decompress", "--verify"];
/// The same as letters, of `sort`.
const LETTERS_OF_OTHERS: [u8; 2] = [b'c', b'C'];
/// Folders in folders that are looked into.
const DEPTH: usize = 8;

/// The words of the command on tables that `words` mean, if an input is a table.
pub(crate) fn words(words: &[OsString], commands: fn() -> Command) -> Option<Vec<OsString>> {
    let name = words.get(1)?.to_str()?;
    let is_input: fn(&Path) -> bool = match name {
        "sort" => is_table,
        // The core checks the runs of a view, and has no part in files of Parquet.
        "verify" => |path| is_table(path) || is_view(path, |manifest| manifest.is_in_files()),
        "cat" => is_table_view,
        "info" => |path| is_table(path) || is_table_view(path),
        _ => return None,
    };
    // Most commands end here, before any work. A folder may be that of an option: it is looked into when that is known.
    let is_word = |word: &&OsString| !word.as_bytes().starts_with(b"-");
    let may_be = |path: &Path| path.is_dir() || is_input(path);
    if !words[2..].iter().filter(is_word).any(|word| may_be(Path::new(word))) {
        return None;
    }
    // A declaration of commands takes more stack than the first thread may have.
    let (name, rest) = (name.to_owned(), words[2..].to_vec());
    let decided = merganser_storage::thread::spawn("tables", move || {
        let commands = commands();
        let inputs = inputs(&rest, commands.find_subcommand(&name)?)?;
        Some(inputs.iter().any(|input| is_input(Path::new(input))))
    });
    let is_table = decided.ok()?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    is_table.then(|| {
        let mut all = words.to_vec();
        all.insert(1, "table".into());
        all
    })
}

/// The words that are no options and no values of options; `None` if an option says that inputs are no tables.
fn inputs<'a>(words: &'a [OsString], command: &Command) -> Option<Vec<&'a OsStr>> {
    let mut inputs = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            inputs.extend(rest.by_ref().map(OsString::as_os_str));
        } else if bytes.starts_with(b"--") {
            let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
                Some(at) => (&bytes[..at], true),
                None => (bytes, false),
            };
            if OF_OTHERS.iter().any(|option| option.as_bytes() == name) {
                return None;
            }
            if !value && takes_value(name, command) {
                rest.next();
            }
        } else if bytes.starts_with(b"-") && bytes.len() > 1 {
            if command.get_name() == "sort" && LETTERS_OF_OTHERS.contains(&bytes[1]) {
                return None;
            }
            let of = |letter: &u8| command.get_arguments().find(|arg| has_short(arg, *letter));
            let taken = bytes[1..].iter().position(|letter| of(letter).is_some_and(takes_one));
            if taken.is_some_and(|at| at + 2 == bytes.len()) {
                rest.next();
            }
        } else {
            inputs.push(word.as_os_str());
        }
    }
    Some(inputs)
}

fn takes_value(name: &[u8], command: &Command) -> bool {
    let is_one = |arg: &Arg| {
        let long = arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten());
        // Abbreviated, as GNU's options may be.
        long.into_iter().any(|long| long.as_bytes().starts_with(&name[2..]))
    };
    WITH_VALUE.iter().any(|option| option.as_bytes() == name)
        || command.get_arguments().any(|arg| is_one(arg) && takes_one(arg))
}

fn has_short(arg: &Arg, letter: u8) -> bool {
    arg.get_short().is_some_and(|short| short == char::from(letter))
}

/// Whether a value follows the option in a word of its own.
fn takes_one(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

/// Whether it is a table, a folder of tables, a pattern that names tables, or the address of an object.
fn is_table(path: &Path) -> bool {
    // No other command reads objects, so only that one can say what is wrong with an address.
    if is_address(path) {
        return true;
    }
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            let mut head = Vec::new();
            let file = File::open(path)
                .and_then(|file| file.take(HEAD_BYTES as u64).read_to_end(&mut head));
            file.is_ok() && magic::is_table(&head)
        }
        Ok(found) if found.is_dir() => {
            !path.join(MANIFEST_NAME).exists() && has_tables(path, DEPTH)
        }
        Ok(_) => false,
        // A pattern, or a file that isn't there, which the command on tables says better.
        Err(_) => has_name_of_table(path),
    }
}

fn has_tables(folder: &Path, depth: usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.iter().any(|path| has_name_of_table(path) && path.is_file())
        || depth > 0 && paths.iter().any(|path| path.is_dir() && has_tables(path, depth - 1))
}

/// Whether it is a view of a table.
fn is_table_view(path: &Path) -> bool {
    is_view(path, |manifest| manifest.table.is_some())
}

/// Whether it is such a view.
fn is_view(path: &Path, such: impl FnOnce(&Manifest) -> bool) -> bool {
    path.join(MANIFEST_NAME).is_file()
        && FileDirectory::open(path).is_ok_and(|folder| {
            let folder: Arc<dyn Directory> = folder;
            Manifest::read(&folder).is_ok_and(|manifest| such(&manifest))
        })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::CommandLine;

    /// The words that `typed` means, in a folder with a table, a text, a folder of tables and an empty one.
    fn meant(typed: &str) -> Option<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("t.parquet"), b"PAR1\x15\x04").expect("written");
        fs::write(at("named.txt"), b"PAR1\x15\x04").expect("written");
        let stream = b"\xff\xff\xff\xff\x78\0\0\0\x10\0\0\0\0\0\x0a\0";
        fs::write(at("stream"), stream).expect("written");
        fs::write(at("text.parquet"), b"PAR1, a line\n").expect("written");
        fs::create_dir_all(at("in/year=2026")).expect("made");
        fs::write(at("in/year=2026/a.parquet"), b"").expect("written");
        fs::create_dir(at("empty")).expect("made");
        let prefix = format!("{}/", folder.path().display());
        let typed = typed.split(' ').map(|word| OsString::from(word.replace('@', &prefix)));
        let typed: Vec<_> = typed.collect();
        let found = words(&typed, CommandLine::command)?;
        let found: Vec<_> = found.iter().map(|word| word.to_string_lossy()).collect();
        Some(found.join(" ").replace(&prefix, "@"))
    }

    #[test]
    fn inputs_decide() {
        let tables = [
            "m sort @t.parquet -o @x --key a",
            "m sort --key a -S 1G @named.txt",
            "m sort @stream --key a",
            "m sort @in --view @v --key a:r",
            "m sort @in/*.parquet --shuffle --seed 7",
            "m sort @missing.parquet --key name",
            "m sort -mk a @t.parquet",
            "m sort @in -o @out --partition-by year --file-size 1M --no-hive",
            "m sort -- @t.parquet",
            "m verify @t.parquet --key a",
            "m info @t.parquet",
            "m sort s3://b/in/ -o s3://b/x --key a",
            "m verify https://h/x",
        ];
        for typed in tables {
            assert_eq!(meant(typed), Some(typed.replacen("m ", "m table ", 1)), "{typed}");
        }
        let others = [
            "m sort @text.parquet -o @t.parquet",
            "m sort @text.parquet --output @t.parquet",
            "m sort @text.parquet -o@t.parquet",
            "m sort @text.parquet -nro @t.parquet",
            "m sort --no-decompress @t.parquet",
            "m sort --format fixed:4 @t.parquet",
            "m sort -c @t.parquet",
            "m sort @text.parquet -T @in",
            "m sort @text.parquet --out @t.parquet",
            "m sort @text.parquet -o s3://b/x",
            "m sort @text.parquet --partition-by @in",
            "m sort @empty",
            "m sort",
            "m cat @t.parquet",
            "m map wordcount @t.parquet",
            "m",
        ];
        for typed in others {
            assert_eq!(meant(typed), None, "{typed}");
        }
    }
}

//! `merganser ssdlet new`: a project to begin with.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use merganser_shell::failure::Failure;
use merganser_shell::{shown, standard};
use merganser_wasm::template::{self, Language};

use crate::args::LanguageName;

/// Makes the folder `dir` with a project for the SSDlet `name`.
pub(super) fn run(language: LanguageName, dir: &Path, name: &str) -> Result<(), Failure> {
    let language = match language {
        LanguageName::C => Language::C,
        LanguageName::Rust => Language::Rust,
        LanguageName::AssemblyScript => Language::AssemblyScript,
    };
    let files = template::project(language, name).map_err(|refusal| {
        format!("{}: the folder's name is the SSDlet's; {refusal}", shown::name(dir))
    })?;
    DirBuilder::new().create(dir).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::from(format!("{}: it exists; choose another name", shown::name(dir)))
        }
        _ => Failure::on(dir, &error),
    })?;
    // The folder is this run's own, so all of it goes if a file can't be written.
    if let Err(failure) = files.iter().try_for_each(|file| write(dir, file)) {
        let _ = fs::remove_dir_all(dir);
        return Err(failure);
    }
    let dir = shown::name(dir);
    standard::print(format!(
        "{dir}: a project for the SSDlet {name}; {dir}/README.md says how to build it\n"
    ))
}

fn write(dir: &Path, file: &template::ProjectFile) -> Result<(), Failure> {
    let path = dir.join(file.path);
    let write = || {
        let folder = path.parent().unwrap_or(dir);
        if folder != dir {
            DirBuilder::new().recursive(true).create(folder)?;
        }
        let mode = if file.is_executable { 0o777 } else { 0o666 };
        let mut made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        made.write_all(file.text.as_bytes())
    };
    write().map_err(|error| Failure::on(&path, &error))
}

//! Projects to begin with: a complete guest in each language, with its build script.

use crate::{HEADER, section};

/// A language that guests can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C, with clang and lld.
    C,
    /// Rust, with its target `wasm32-unknown-unknown`.
    Rust,
    /// AssemblyScript, with npm.
    AssemblyScript,
}

/// A file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path in the project.
    pub path: &'static str,
    /// Its text.
    pub text: String,
    /// Whether it is a program.
    pub is_executable: bool,
}

/// The place of the SSDlet's name in a template.
const NAME: &str = "@NAME@";

/// The files of a new project for the SSDlet `name`.
///
/// # Errors
/// A name that no SSDlet may have, or that is no name of a package.
pub fn project(language: Language, name: &str) -> Result<Vec<ProjectFile>, String> {
    section::check_name(name)?;
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err("name: let it begin with a letter".to_owned());
    }
    let files: &[(&'static str, &str)] = match language {
        Language::C => &[
            ("guest.c", include_str!("../templates/c/guest.c")),
            ("mgs.h", HEADER),
            ("build.sh", include_str!("../templates/c/build.sh")),
            ("README.md", include_str!("../templates/c/README.md")),
        ],
        Language::Rust => &[
            ("Cargo.toml", include_str!("../templates/rust/Cargo.toml")),
            ("src/lib.rs", include_str!("../templates/rust/lib.rs")),
            ("src/mgs.rs", include_str!("../templates/rust/mgs.rs")),
            ("build.sh", include_str!("../templates/rust/build.sh")),
            ("README.md", include_str!("../templates/rust/README.md")),
        ],
        Language::AssemblyScript => &[
            ("index.ts", include_str!("../templates/assemblyscript/index.ts")),
            ("section.json", include_str!("../templates/assemblyscript/section.json")),
            ("section.mjs", include_str!("../templates/assemblyscript/section.mjs")),
            ("package.json", include_str!("../templates/assemblyscript/package.json")),
            ("build.sh", include_str!("../templates/assemblyscript/build.sh")),
            ("README.md", include_str!("../templates/assemblyscript/README.md")),
        ],
    };
    let file = |(path, text): &(&'static str, &str)| ProjectFile {
        path,
        text: text.replace(NAME, name),
        is_executable: *path == "build.sh",
    };
    Ok(files.iter().map(file).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Language; 3] = [Language::C, Language::Rust, Language::AssemblyScript];

    #[test]
    fn a_project_is_complete_and_bears_its_name() {
        for language in ALL {
            let files = project(language, "my-words").expect("a name");
            for path in ["build.sh", "README.md"] {
                assert!(files.iter().any(|file| file.path == path), "{language:?}: {path}");
            }
            assert!(files.iter().all(|file| !file.text.contains(NAME)));
            let declares = |file: &ProjectFile| {
                file.text.replace("\\\"", "\"").contains("\"name\": \"my-words\"")
            };
            assert!(files.iter().any(declares), "{language:?}");
        }
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for name in ["", "Words", "a b", "../x", "9lives", "-x", "a\u{e4}"] {
            assert!(project(Language::C, name).is_err(), "{name}");
        }
    }

    /// The examples of the guide are the templates.
    #[test]
    fn the_guide_shows_the_templates() {
        let guide = include_str!("../../../docs/near/ssdlets.md");
        for (language, path) in [(Language::C, "guest.c"), (Language::Rust, "src/lib.rs")] {
            let files = project(language, "words").expect("a name");
            let shown = files.iter().find(|file| file.path == path).expect("there");
            assert!(
                guide.contains(shown.text.trim_end()),
                "docs/near/ssdlets.md lacks the {path} of {language:?}"
            );
        }
    }
}

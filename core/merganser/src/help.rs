//! `merganser help COMMAND` and `merganser version`, as git and cargo have them: `merganser COMMAND --help` and
//! `merganser --version`.

use std::ffi::OsString;

/// Rewrites `help WORD...` to `WORD... --help`, and `version` alone to `--version`.
pub(crate) fn asked(words: &mut Vec<OsString>) {
    if words.len() == 2 && words[1] == "version" {
        words[1] = "--version".into();
    }
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_asks_for_the_help_of_the_words_behind_it() {
        for (typed, read) in [
            ("merganser help", "merganser --help"),
            ("merganser help sort", "merganser sort --help"),
            ("merganser help array create", "merganser array create --help"),
            ("merganser sort help", "merganser sort help"),
            ("merganser version", "merganser --version"),
            ("merganser version sort", "merganser version sort"),
            ("merganser sort version", "merganser sort version"),
            ("merganser", "merganser"),
        ] {
            let mut words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            asked(&mut words);
            let words: Vec<_> = words.iter().map(|word| word.to_str().expect("UTF-8")).collect();
            assert_eq!(words.join(" "), read);
        }
    }
}

//! Columns that are named by folders, as Hive has them: `country=FR/year=2024/part-00000.parquet`.

use std::path::{Component, Path};

/// The value of a folder whose column is null.
pub(crate) const NULL_NAME: &str = "__HIVE_DEFAULT_PARTITION__";

/// The name of the folder of this value of a column.
///
/// Bytes of ASCII are escaped, as in addresses, except letters, digits and `_.-~`. Other characters stay, since readers
/// disagree about what bytes beyond ASCII become when they are escaped. A text that looks like a null is escaped, too.
pub(crate) fn folder_name(column: &str, value: Option<&str>) -> String {
    // Readers leave out folders that begin with a dot.
    let mut name = match column.strip_prefix('.') {
        Some(rest) => format!("%2E{}", escaped(rest)),
        None => escaped(column),
    };
    name.push('=');
    match value {
        None => name.push_str(NULL_NAME),
        Some(NULL_NAME) => {
            name.push_str("%5F");
            name.push_str(&NULL_NAME[1..]);
        }
        Some(value) => name.push_str(&escaped(value)),
    }
    name
}

/// The columns that the folders of `file` name, and their values; the outer one first.
pub(crate) fn columns_of(file: &Path) -> Vec<(String, Option<String>)> {
    let folders = file.parent().into_iter().flat_map(Path::components);
    let column = |folder: Component<'_>| {
        let Component::Normal(name) = folder else { return None };
        let (column, value) = name.to_str()?.split_once('=')?;
        let value = match value {
            NULL_NAME => None,
            value => Some(unescaped(value)?),
        };
        Some((unescaped(column).filter(|column| !column.is_empty())?, value))
    };
    folders.filter_map(column).collect()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() && !is_plain(character) {
            escaped.push_str(&format!("%{:02X}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_.-~".contains(character)
}

/// The text without escapes; `None` if it has bytes that are no text. A percent sign that escapes nothing stays.
fn unescaped(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    let digit = |byte: u8| char::from(byte).to_digit(16);
    while let [first, more @ ..] = rest {
        rest = more;
        let escape = match (first, more) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match escape {
            Some((high, low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = &more[2..];
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_duckdb_and_spark_write_them() {
        let named = |value: &str| folder_name("a", Some(value));
        assert_eq!(named("FR"), "a=FR");
        assert_eq!(named("2024-01-05"), "a=2024-01-05");
        assert_eq!(named("a/b c:d=e%"), "a=a%2Fb%20c%3Ad%3De%25");
        assert_eq!(named("Österreich"), "a=Österreich");
        assert_eq!((named(""), named("\0\x7f")), ("a=".to_owned(), "a=%00%7F".to_owned()));
        assert_eq!(folder_name("a b/c", None), "a%20b%2Fc=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(named(NULL_NAME), "a=%5F_HIVE_DEFAULT_PARTITION__");
        assert_eq!(folder_name(".a", Some(".")), "%2Ea=.");
    }

    /// Every text of a few characters, as a column and as a value, comes back, and names one folder.
    #[test]
    fn every_small_text_comes_back() {
        let characters = ['a', '/', '=', '%', '2', 'F', '.', '\0', 'ß'];
        let mut texts = vec![String::new(), NULL_NAME.to_owned()];
        for _ in 0..3 {
            let longer = texts.iter().flat_map(|text| {
                characters.iter().map(move |character| format!("{text}{character}"))
            });
            texts = longer.chain(texts.clone()).collect();
        }
        for text in &texts {
            let column = format!(".{text}");
            let place = Path::new("in").join(folder_name(&column, Some(text))).join("x=1.parquet");
            assert_eq!(place.components().count(), 3, "{text:?}");
            assert_eq!(columns_of(&place), [(column, Some(text.clone()))], "{text:?}");
        }
    }

    #[test]
    fn other_folders_name_no_columns() {
        let columns = |path: &str| columns_of(Path::new(path)).len();
        assert_eq!(columns("/data/a/=b/x.parquet"), 0);
        assert_eq!(columns("x=1"), 0);
        assert_eq!(columns("../a=1/./b/c=%FF/x"), 1);
        assert_eq!(columns_of(Path::new("a=b=c/x")), [("a".to_owned(), Some("b=c".to_owned()))]);
        assert_eq!(columns_of(Path::new("a=100%/x")), [("a".to_owned(), Some("100%".to_owned()))]);
        let null = format!("a={NULL_NAME}/x");
        assert_eq!(columns_of(Path::new(&null)), [("a".to_owned(), None)]);
    }
}

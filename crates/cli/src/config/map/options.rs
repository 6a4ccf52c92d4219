//! The options of SSDlets, each as an argument: its name in JSON, and its value.

use std::ffi::OsString;
use std::path::PathBuf;

use merganser_node::ssdlet::builtin::Builtin;
use serde_json::{Value, json};

use crate::args::ProgramArgs;
use crate::config::sort::read_list;
use crate::failure::Failure;
use crate::shown;

/// An option that was typed, as an argument of SSDlets.
#[derive(Debug)]
pub struct Typed {
    /// The option.
    pub flag: &'static str,
    /// The argument's name in JSON.
    pub argument: &'static str,
    /// Its value.
    pub value: Value,
}

impl Typed {
    /// Whether it is an option of `builtin`. Two arguments have one name and two meanings: match counts
    /// records (a boolean), and for sample it is the number of records.
    pub fn is_of(&self, builtin: &Builtin) -> bool {
        let known = builtin.arguments.iter().any(|known| known.name == self.argument);
        known
            && match self.flag {
                "--count" => builtin.name == "match",
                "--records" => builtin.name == "sample",
                _ => true,
            }
    }
}

/// The options that were typed, but for `--args` and `--raw`.
///
/// # Errors
/// Keys that can't be read, and texts that are no conditions.
pub fn options(typed: ProgramArgs) -> Result<Vec<Typed>, Failure> {
    let ProgramArgs {
        args: _,
        raw: _,
        keys,
        key,
        regex,
        ignore_case,
        invert,
        count,
        rule,
        length,
        document,
        first,
        of,
        column,
        width,
        start,
        invalid,
        columns,
        conditions,
        fraction,
        records,
        seed,
    } = typed;
    let key_flag = if keys.is_empty() { "--key" } else { "--keys" };
    let keys = all_keys(&keys, &key)?;
    let set = |given: bool| given.then_some(Value::from(true));
    let columns = columns.map(|columns| columns.split(',').map(column_of).collect::<Vec<_>>());
    let found = [
        (key_flag, "keys", keys.map(Value::from)),
        ("--regex", "regex", regex.map(Value::from)),
        ("--ignore-case", "ignore_case", set(ignore_case)),
        ("--invert", "invert", set(invert)),
        ("--count", "count", set(count)),
        ("--rule", "words", rule.map(Value::from)),
        ("--length", "n", length.map(Value::from)),
        ("--document", "document", document.map(Value::from)),
        ("--first", "first", first.map(Value::from)),
        ("--of", "of", of.map(Value::from)),
        ("--column", "column", column.as_deref().map(column_of)),
        ("--width", "width", number("--width", width)?),
        ("--start", "start", number("--start", start)?),
        ("--invalid", "invalid", invalid.map(Value::from)),
        ("--columns", "columns", columns.map(Value::from)),
        ("--where", "where", condition(&conditions)?),
        ("--fraction", "fraction", number("--fraction", fraction)?),
        ("--records", "count", records.map(|count| Value::from(count.0))),
        ("--seed", "seed", seed.map(Value::from)),
    ];
    let given = |(flag, argument, value): (&'static str, &'static str, Option<Value>)| {
        value.map(|value| Typed { flag, argument, value })
    };
    Ok(found.into_iter().filter_map(given).collect())
}

/// JSON has finite numbers only.
fn number(flag: &str, typed: Option<f64>) -> Result<Option<Value>, Failure> {
    match typed {
        Some(number) if !number.is_finite() => Err(format!("{flag}: {number} is no number").into()),
        typed => Ok(typed.map(Value::from)),
    }
}

/// A column: a number from 1, or a name.
fn column_of(typed: &str) -> Value {
    typed.parse::<u64>().map_or_else(|_| Value::from(typed), Value::from)
}

/// The condition of all `--where`: `COLUMN OP VALUE`, or a condition in JSON.
fn condition(typed: &[String]) -> Result<Option<Value>, Failure> {
    let conditions =
        typed.iter().map(|typed| one_condition(typed)).collect::<Result<Vec<_>, _>>()?;
    Ok(match conditions.len() {
        0 => None,
        1 => conditions.into_iter().next(),
        _ => Some(json!({ "all": conditions })),
    })
}

fn one_condition(typed: &str) -> Result<Value, Failure> {
    /// Longer ones first, so that `<=` is not `<`.
    const SIGNS: [&str; 6] = ["!=", "<=", ">=", "=", "<", ">"];
    const WORDS: [&str; 3] = [" contains ", " starts ", " ends "];
    if typed.trim_start().starts_with('{') {
        return serde_json::from_str(typed).map_err(|error| format!("--where: {error}").into());
    }
    // The leftmost operator; of those that begin there, the longest.
    let signs = SIGNS.iter().chain(&WORDS).enumerate();
    let found = signs.filter_map(|(order, sign)| Some((typed.find(sign)?, order, *sign))).min();
    let parts = found.map(|(at, _, sign)| (&typed[..at], sign, &typed[at + sign.len()..]));
    match parts {
        Some((column, sign, value)) if !column.trim().is_empty() && !value.trim().is_empty() => {
            let value = value.trim();
            let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
            let value = match (quoted, number) {
                (Some(text), _) => Value::from(text),
                (None, Some(number)) if !WORDS.contains(&sign) => Value::from(number),
                (None, _) => Value::from(value),
            };
            Ok(json!({ "column": column_of(column.trim()), "op": sign.trim(), "value": value }))
        }
        _ => Err(format!(
            "--where '{typed}': write COLUMN OP VALUE, such as 'amount >= 100'; OP is one of = != < <= > >= contains starts ends"
        )
        .into()),
    }
}

/// The lines of all `files`, then the `texts`; `None` where neither is given.
fn all_keys(files: &[PathBuf], texts: &[OsString]) -> Result<Option<Vec<String>>, Failure> {
    if files.is_empty() && texts.is_empty() {
        return Ok(None);
    }
    let mut keys = Vec::new();
    for path in files {
        let shown = shown::name(path);
        let text = read_list(path)?;
        let lines = text.strip_suffix(b"\n").unwrap_or(&text).split(|byte| *byte == b'\n');
        for (at, line) in lines.enumerate() {
            let number = at + 1;
            match std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) {
                Ok("") => {
                    let why = "is empty, and every record has the empty text; remove it";
                    return Err(format!("--keys {shown}: line {number} {why}").into());
                }
                Ok(key) => keys.push(key.to_owned()),
                Err(_) => {
                    let why = r"is not UTF-8; search for other bytes with --regex '(?-u)\xHH'";
                    return Err(format!("--keys {shown}: line {number} {why}").into());
                }
            }
        }
    }
    for text in texts {
        match text.to_str() {
            Some("") => {
                return Err("--key: every record has the empty text".to_owned().into());
            }
            Some(key) => keys.push(key.to_owned()),
            None => return Err(format!("--key '{}': not UTF-8", text.display()).into()),
        }
    }
    Ok(Some(keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_a_column_an_operator_and_a_value() {
        let table = [
            ("amount > 100", json!({ "column": "amount", "op": ">", "value": 100.0 })),
            ("amount>=1.5", json!({ "column": "amount", "op": ">=", "value": 1.5 })),
            ("2 != x", json!({ "column": 2, "op": "!=", "value": "x" })),
            ("a b = c d", json!({ "column": "a b", "op": "=", "value": "c d" })),
            ("zip = \"01234\"", json!({ "column": "zip", "op": "=", "value": "01234" })),
            ("name starts 12", json!({ "column": "name", "op": "starts", "value": "12" })),
            ("name contains a=b", json!({ "column": "name", "op": "contains", "value": "a=b" })),
            ("{\"not\": 1}", json!({ "not": 1 })),
        ];
        for (typed, meant) in table {
            assert_eq!(one_condition(typed).expect(typed), meant, "{typed}");
        }
        for typed in ["", "amount", "= 3", "amount =", "amount is 3", "{"] {
            assert!(one_condition(typed).is_err(), "{typed}");
        }
        let both = condition(&["a = 1".to_owned(), "b = 2".to_owned()]).expect("two");
        assert_eq!(both.expect("some")["all"][1]["column"], json!("b"));
    }

    #[test]
    fn keys_come_from_files_and_words() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("keys");
        std::fs::write(&file, "one\r\ntwo words\n").expect("written");
        let keys = all_keys(std::slice::from_ref(&file), &["three".into()]).expect("readable");
        assert_eq!(keys.expect("some"), ["one", "two words", "three"]);
        for (bytes, line) in
            [(&b"a\n\nb\n"[..], "line 2 is empty"), (b"a\n\xff", "line 2 is not UTF-8")]
        {
            std::fs::write(&file, bytes).expect("written");
            let refused = all_keys(std::slice::from_ref(&file), &[]).expect_err("refused");
            assert!(refused.sentence().is_some_and(|said| said.contains(line)), "{refused:?}");
        }
    }
}

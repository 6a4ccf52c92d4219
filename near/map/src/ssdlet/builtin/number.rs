//! Numbers in arguments, by their digits.
//!
//! A number of JSON keeps as many digits as a double. For others there is a second form:
//!
//! ```text
//!   12.5                              where the double that is read has these digits, and no others
//!   {"number": "12345678901234567890.1"}    any number of [`Decimal`]
//! ```

use merganser_sort::key::decimal::{Decimal, OwnedDecimal};
use serde_json::{Number, Value};

/// The member of the second form.
const NUMBER: &str = "number";

/// The number that `value` is, in either form.
pub(super) fn of_json(value: &Value) -> Option<OwnedDecimal> {
    match value {
        Value::Number(number) => of_text(&number.to_string()),
        Value::Object(members) if members.len() == 1 => {
            members.get(NUMBER).and_then(Value::as_str).and_then(of_text)
        }
        _ => None,
    }
}

fn of_text(text: &str) -> Option<OwnedDecimal> {
    Decimal::parse(text.as_bytes()).map(OwnedDecimal::from)
}

/// Typed digits as the value of an argument; `None` if they are no number.
#[must_use]
pub fn number_argument(typed: &str) -> Option<Value> {
    let number = Decimal::parse(typed.as_bytes())?;
    let digits = number.to_string();
    match serde_json::from_str::<Number>(&digits) {
        Ok(kept) if rounded_number(&digits).is_none() => Some(Value::Number(kept)),
        _ => Some(serde_json::json!({ NUMBER: digits })),
    }
}

/// The first number in `json` whose digits a reader of JSON rounds: it would mean another number.
#[must_use]
pub fn rounded_number(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[at..];
        if let Some(text) = rest.strip_prefix('"') {
            let mut escaped = false;
            let end = text.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            rest = end.map_or("", |end| &text[end + 1..]);
            continue;
        }
        let in_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let end = rest.find(|c| !in_number(c)).unwrap_or(rest.len());
        let (digits, behind) = rest.split_at(end);
        let kept = serde_json::from_str::<Number>(digits).ok().map(|kept| kept.to_string());
        let is_kept =
            |kept: &String| Decimal::parse(kept.as_bytes()) == Decimal::parse(digits.as_bytes());
        // A text that is no number is an error of the reader.
        if kept.as_ref().is_some_and(|kept| !is_kept(kept)) {
            return Some(digits);
        }
        rest = behind;
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digits_survive_the_way_through_json() {
        for (typed, value) in [
            ("100", json!(100)),
            ("-7.50", json!(-7.5)),
            ("0.1", json!(0.1)),
            ("1e3", json!(1000)),
            (".5", json!(0.5)),
            ("1234567890123456789", json!(1_234_567_890_123_456_789_u64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551617", json!({ "number": "18446744073709551617" })),
            ("0.12345678901234567891", json!({ "number": "0.12345678901234567891" })),
            ("inf", json!({ "number": "inf" })),
        ] {
            let found = number_argument(typed).expect(typed);
            assert_eq!(found, value, "{typed}");
            let number = of_json(&found).expect(typed);
            assert_eq!(Some(number.get()), Decimal::parse(typed.as_bytes()), "{typed}");
        }
        for typed in ["", "x", "nan", "0x10", "1 2"] {
            assert_eq!(number_argument(typed), None, "{typed}");
        }
        for value in [json!("1"), json!({ "number": 1 }), json!({ "number": "x" }), json!(null)] {
            assert!(of_json(&value).is_none(), "{value}");
        }
    }

    #[test]
    fn numbers_that_json_rounds_are_found() {
        for (json, rounded) in [
            (r#"{"a": 12345678901234567890123, "b": 1}"#, Some("12345678901234567890123")),
            (r#"[0.1, 1e3, 1.50, -0, 18446744073709551615, -9223372036854775808, 1e300]"#, None),
            (
                r#"{"a": "x\"12345678901234567890123", "b": 0.30000000000000000001}"#,
                Some("0.30000000000000000001"),
            ),
            (r#""12345678901234567890123"#, None),
            ("1e99999", None),
            ("", None),
        ] {
            assert_eq!(rounded_number(json), rounded, "{json}");
        }
    }
}

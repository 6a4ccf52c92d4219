//! `filter`: rows of csv whose columns meet a condition.
//!
//! ```text
//!   {"column": "price", "op": ">=", "value": 10}          a number: compared by all digits
//!   {"column": "id", "op": "=", "value": {"number": "12345678901234567890.5"}}    one that JSON would round
//!   {"column": "name", "op": "starts", "value": "Mc"}     a text: compared byte by byte
//!   {"all": [condition, ...]}    {"any": [condition, ...]}    {"not": condition}
//! ```
//! A comparison with a number is false for a field that is no number, whatever the operator.

use memchr::memmem;
use merganser_sort::key::decimal::{Decimal, OwnedDecimal};
use merganser_sort::record::Format;
use serde_json::Value;

use super::arguments::Arguments;
use super::borders::Spans;
use super::csv::{self, CsvColumn, CsvRow, CsvRows, FIELDS_BYTES, text_of, too_short};
use super::number;
use super::{Argument, COPY_BYTES_MOST, HEADER, QUOTES, SEPARATOR, argument};
use crate::ssdlet::{Chunk, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Worker};

pub(super) const ARGUMENTS: &[Argument] = &[
    argument(
        "where",
        "a condition: {\"column\": name or number, \"op\": one of = != < <= > >= contains starts ends, \"value\": number, {\"number\": digits} or text}, or {\"all\": [...]}, {\"any\": [...]}, {\"not\": ...} of conditions",
        "",
    ),
    SEPARATOR,
    HEADER,
    QUOTES,
];

const NAME: &str = "filter";

/// Conditions inside conditions.
const DEPTH_MOST: usize = 32;

struct Filter {
    description: SsdletDescription,
    separator: u8,
    condition: Condition<CsvColumn>,
}

/// A condition on columns that are named, or on places in a row.
#[derive(Debug, Clone)]
enum Condition<C> {
    All(Vec<Condition<C>>),
    Any(Vec<Condition<C>>),
    Not(Box<Condition<C>>),
    Column { column: C, test: Test },
}

#[derive(Debug, Clone)]
enum Test {
    Number(Operator, OwnedDecimal),
    Text(Operator, Vec<u8>),
    Contains(Box<memmem::Finder<'static>>),
    Starts(Vec<u8>),
    Ends(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Test {
    fn parse(operator: &str, value: &Value) -> Result<Test, String> {
        let compare = match operator {
            "=" => Some(Operator::Equal),
            "!=" => Some(Operator::NotEqual),
            "<" => Some(Operator::Less),
            "<=" => Some(Operator::LessOrEqual),
            ">" => Some(Operator::Greater),
            ">=" => Some(Operator::GreaterOrEqual),
            _ => None,
        };
        match (compare, value) {
            (Some(operator), Value::String(text)) => {
                Ok(Test::Text(operator, text.clone().into_bytes()))
            }
            (None, Value::String(text)) => match operator {
                "contains" => Ok(Test::Contains(Box::new(memmem::Finder::new(text).into_owned()))),
                "starts" => Ok(Test::Starts(text.clone().into_bytes())),
                "ends" => Ok(Test::Ends(text.clone().into_bytes())),
                _ => Err(format!(
                    "{operator:?} is none of =, !=, <, <=, >, >=, contains, starts and ends"
                )),
            },
            (Some(operator), value) => match number::of_json(value) {
                Some(number) => Ok(Test::Number(operator, number)),
                None => Err(format!("{value} is neither a text nor a number")),
            },
            (None, value) => Err(format!("{operator:?} can't be used with {value}; give a text")),
        }
    }

    fn holds(&self, text: &[u8]) -> bool {
        match self {
            Test::Number(operator, wanted) => {
                Decimal::parse(text).is_some_and(|found| operator.holds(found.cmp(&wanted.get())))
            }
            Test::Text(operator, wanted) => operator.holds(text.cmp(wanted)),
            Test::Contains(finder) => finder.find(text).is_some(),
            Test::Starts(wanted) => text.starts_with(wanted),
            Test::Ends(wanted) => text.ends_with(wanted),
        }
    }
}

impl Condition<CsvColumn> {
    fn parse(value: &Value, depth: usize) -> Result<Self, String> {
        let wrong = || {
            let wanted = "write {\"column\": ..., \"op\": ..., \"value\": ...}, or \"all\", \"any\" or \"not\" of such conditions";
            format!("{value} is not a condition; {wanted}")
        };
        if depth > DEPTH_MOST {
            return Err(format!("more than {DEPTH_MOST} conditions are inside each other"));
        }
        let members = value.as_object().ok_or_else(wrong)?;
        let inner = |value: &Value| Condition::parse(value, depth + 1);
        if let ([(name, value)], 1) = (&members.iter().collect::<Vec<_>>()[..], members.len()) {
            let list = || {
                let list = value.as_array().ok_or_else(wrong)?;
                list.iter().map(inner).collect::<Result<Vec<_>, _>>()
            };
            return match name.as_str() {
                "all" => Ok(Condition::All(list()?)),
                "any" => Ok(Condition::Any(list()?)),
                "not" => Ok(Condition::Not(Box::new(inner(value)?))),
                _ => Err(wrong()),
            };
        }
        let [Some(column), Some(operator), Some(wanted)] =
            ["column", "op", "value"].map(|name| members.get(name))
        else {
            return Err(wrong());
        };
        if members.len() > 3 {
            return Err(wrong());
        }
        let column = serde_json::from_value(column.clone()).map_err(|error| error.to_string())?;
        let operator = operator.as_str().ok_or_else(wrong)?;
        Ok(Condition::Column { column, test: Test::parse(operator, wanted)? })
    }
}

impl<C> Condition<C> {
    /// The same condition with other columns.
    fn map<D, E>(&self, of: &impl Fn(&C) -> Result<D, E>) -> Result<Condition<D>, E> {
        let all = |inner: &[Condition<C>]| {
            inner.iter().map(|inner| inner.map(of)).collect::<Result<Vec<_>, E>>()
        };
        Ok(match self {
            Condition::All(inner) => Condition::All(all(inner)?),
            Condition::Any(inner) => Condition::Any(all(inner)?),
            Condition::Not(inner) => Condition::Not(Box::new(inner.map(of)?)),
            Condition::Column { column, test } => {
                Condition::Column { column: of(column)?, test: test.clone() }
            }
        })
    }
}

impl Condition<usize> {
    /// The last column that it needs, from 0.
    fn last(&self) -> usize {
        match self {
            Condition::All(inner) | Condition::Any(inner) => {
                inner.iter().map(Condition::last).max().unwrap_or_default()
            }
            Condition::Not(inner) => inner.last(),
            Condition::Column { column, .. } => *column,
        }
    }

    fn holds(&self, row: &CsvRow<'_>, copy: &mut Vec<u8>) -> Result<bool, Trouble> {
        match self {
            Condition::All(inner) => {
                for inner in inner {
                    if !inner.holds(row, copy)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Any(inner) => {
                for inner in inner {
                    if inner.holds(row, copy)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::Not(inner) => Ok(!inner.holds(row, copy)?),
            Condition::Column { column, test } => {
                let field = row.get(*column).ok_or(Trouble::Short(*column))?;
                let text = text_of(field, copy).ok_or(Trouble::Long)?;
                Ok(test.holds(text))
            }
        }
    }
}

/// A row that can't be judged.
enum Trouble {
    /// It has no such column.
    Short(usize),
    /// A field with quotes in quotes is too long to copy.
    Long,
}

pub(super) fn open(mut args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let format = args.csv()?;
    let Format::Csv { separator, header, .. } = format else { unreachable!("csv was taken") };
    let Some(condition) = args.take::<Value>("where")? else {
        return Err(args.fault("where", "give a condition"));
    };
    let condition =
        Condition::parse(&condition, 0).map_err(|detail| args.fault("where", detail))?;
    condition.map(&|column| column.check(&args, "where", header))?;
    let description = SsdletDescription {
        name: NAME.to_owned(),
        input: format,
        output: SsdletOutput::Ordered { format },
        worker_bytes: FIELDS_BYTES + 2 * COPY_BYTES_MOST as u64,
    };
    Ok(Box::new(Filter { description, separator, condition }))
}

impl Filter {
    fn resolve(&self, header: Option<&[u8]>) -> Result<Condition<usize>, SsdletError> {
        resolve(&self.condition, self.separator, header)
    }
}

fn resolve(
    condition: &Condition<CsvColumn>,
    separator: u8,
    header: Option<&[u8]>,
) -> Result<Condition<usize>, SsdletError> {
    let names = header.map(|row| csv::names(separator, row));
    condition.map(&|column| column.resolve(names.as_ref(), NAME, "where"))
}

impl Ssdlet for Filter {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn header(&self, row: &[u8]) -> Result<Vec<u8>, SsdletError> {
        self.resolve(Some(row))?;
        Ok(row.to_vec())
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(Judge {
            separator: self.separator,
            condition: self.condition.clone(),
            resolved: None,
            rows: CsvRows::new(self.separator, 0),
            copy: Vec::new(),
            metered: 0,
        }))
    }
}

struct Judge {
    separator: u8,
    condition: Condition<CsvColumn>,
    resolved: Option<Condition<usize>>,
    rows: CsvRows,
    copy: Vec<u8>,
    metered: u64,
}

impl Judge {
    fn resolve(&mut self, header: Option<&[u8]>) -> Result<(), SsdletError> {
        let resolved = resolve(&self.condition, self.separator, header)?;
        self.rows = CsvRows::new(self.separator, resolved.last() + 1);
        self.resolved = Some(resolved);
        Ok(())
    }
}

impl Worker for Judge {
    fn header(&mut self, row: &[u8]) -> Result<(), SsdletError> {
        self.resolve(Some(row))
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.metered += chunk.bytes.len() as u64;
        if self.resolved.is_none() {
            self.resolve(None)?;
        }
        let Judge { resolved: Some(condition), rows, copy, .. } = self else {
            unreachable!("the columns are known")
        };
        let mut spans = Spans::of_bytes(chunk.bytes);
        rows.each(chunk.bytes, |row| {
            match condition.holds(row, copy) {
                Ok(true) => spans.push(row.range.clone(), out),
                Ok(false) => {}
                Err(Trouble::Short(column)) => {
                    return Err(too_short(row, chunk.offset, column, "where"));
                }
                Err(Trouble::Long) => {
                    let detail =
                        format!("a field with quotes in it has more than {COPY_BYTES_MOST} bytes");
                    let offset = chunk.offset + row.range.start as u64;
                    return Err(SsdletError::Record { offset, detail });
                }
            }
            Ok(())
        })?;
        spans.finish(out);
        Ok(())
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}

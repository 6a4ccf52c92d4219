//! Rows of comma-separated values.

use std::ops::Range;

use merganser_random::Random;

use super::generator::Generator;
use super::words::ZipfWords;

/// Ids are below this, and do not repeat within as many records.
const IDS: u64 = 1_000_000_000_000;
/// Has no factor in common with [`IDS`], so multiplying by it permutes the ids.
const ID_STEP: u64 = 618_033_988_751;
/// How many cities there are.
const CITIES: u64 = 512;

/// Rows of `id,name,city,amount,note`.
///
/// The id is a number that no other row has, in no visible order; the name is a text that many rows
/// share; the amount may be negative. Some cities and notes are quoted and contain commas,
/// doubled quotes or newlines.
pub struct Csv {
    words: ZipfWords,
    seed: u64,
}

impl Csv {
    /// The data set of `seed`.
    pub fn new(seed: u64) -> Self {
        Csv { words: ZipfWords::new(), seed }
    }

    fn word(&self, random: &mut Random, out: &mut Vec<u8>) {
        let (text, len) = self.words.draw(random);
        out.extend_from_slice(&text[..len]);
    }

    fn capitalised(&self, random: &mut Random, out: &mut Vec<u8>) {
        let at = out.len();
        self.word(random, out);
        out[at].make_ascii_uppercase();
    }

    fn city(&self, random: &mut Random, out: &mut Vec<u8>) {
        let city = self.words.get(random.below(CITIES) as usize);
        if city.len() % 4 == 3 {
            out.push(b'"');
            out.extend_from_slice(city);
            out.extend_from_slice(b", North\"");
        } else {
            out.extend_from_slice(city);
        }
    }

    fn note(&self, random: &mut Random, out: &mut Vec<u8>) {
        let style = random.below(16);
        let between: &[u8] = match style {
            0 => b", ",
            1 => b" \"\"and\"\" ",
            2 => b"\n",
            _ => b" ",
        };
        let quoted = style < 4;
        if quoted {
            out.push(b'"');
        }
        for word in 0..random.below(8) {
            if word > 0 {
                out.extend_from_slice(between);
            }
            self.word(random, out);
        }
        if quoted {
            out.push(b'"');
        }
    }
}

/// Appends `number` with at least `digits` digits. Formatting would take half the time of a row.
fn decimal(mut number: u64, digits: usize, out: &mut Vec<u8>) {
    let mut text = [b'0'; 20];
    let mut at = text.len();
    while number > 0 {
        at -= 1;
        text[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&text[at.min(text.len() - digits)..]);
}

impl Generator for Csv {
    fn records(&self, numbers: Range<u64>, out: &mut Vec<u8>) {
        for number in numbers {
            let random = &mut Random::of_record(self.seed, number);
            let id = (u128::from(number) * u128::from(ID_STEP) + u128::from(self.seed))
                % u128::from(IDS);
            decimal(id as u64, 1, out);
            out.push(b',');
            self.capitalised(random, out);
            out.push(b' ');
            self.capitalised(random, out);
            out.push(b',');
            self.city(random, out);
            let cents = random.below(2_000_000);
            out.extend_from_slice(if random.below(8) == 0 { b",-" } else { b"," });
            decimal(cents / 100, 1, out);
            out.push(b'.');
            decimal(cents % 100, 2, out);
            out.push(b',');
            self.note(random, out);
            out.push(b'\n');
        }
    }

    fn record_bytes_mean(&self) -> u64 {
        64
    }

    fn header(&self) -> &'static [u8] {
        b"id,name,city,amount,note\n"
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Splits RFC 4180 rows into unquoted fields.
    fn parse(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut field, mut quoted) = (vec![], vec![], String::new(), false);
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            match (quoted, c) {
                (true, '"') if characters.peek() == Some(&'"') => field.extend(characters.next()),
                (_, '"') => quoted = !quoted,
                (false, ',') => row.push(std::mem::take(&mut field)),
                (false, '\n') => {
                    row.push(std::mem::take(&mut field));
                    rows.push(std::mem::take(&mut row));
                }
                _ => field.push(c),
            }
        }
        assert!(!quoted && row.is_empty() && field.is_empty());
        rows
    }

    #[test]
    fn rows_have_five_fields_unique_ids_and_shared_names() {
        let generator = Csv::new(0);
        let mut text = generator.header().to_vec();
        generator.records(0..20_000, &mut text);
        let text = String::from_utf8(text).expect("ascii");
        let rows = parse(&text);
        assert_eq!(rows.len(), 20_001);
        assert!(rows.iter().all(|row| row.len() == 5));
        let ids: HashSet<u64> =
            rows[1..].iter().map(|row| row[0].parse().expect("a number")).collect();
        assert_eq!(ids.len(), 20_000);
        assert!(rows[1..].iter().all(|row| row[3].parse::<f64>().is_ok()));
        let names: HashSet<&str> = rows[1..].iter().map(|row| row[1].as_str()).collect();
        assert!(names.len() < 17_000, "{} different names", names.len());
        for wanted in [",", "\"", "\n"] {
            assert!(rows.iter().any(|row| row[4].contains(wanted)), "a note with {wanted:?}");
        }
        assert!(text.len() as u64 / 20_000 > generator.record_bytes_mean() / 2);
        assert!(text.len() as u64 / 20_000 < generator.record_bytes_mean() * 2);
    }

    #[test]
    fn any_stretch_is_a_part_of_the_whole() {
        let generator = Csv::new(3);
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        generator.records(0..30, &mut whole);
        generator.records(0..17, &mut parts);
        generator.records(17..30, &mut parts);
        assert_eq!(whole, parts);
    }
}

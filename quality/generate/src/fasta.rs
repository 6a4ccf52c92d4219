//! Sequences in FASTA: families of mutated copies, and the truth about them.
//!
//! ```text
//!   family 7   ancestor  ──► copy 0: the ancestor itself
//!                        ├─► copy 1: 1 % of the letters changed, left out or added
//!                        ├─► copy 2: a fragment, reverse complement, 2 %
//!                        └─► ...
//! ```
//!
//! Records come in groups of [`GROUP`]. Each group has the same families, and its records are shuffled.
//! So a search with a family's first copy has known answers all over the data: the table of the truth
//! names for every record its family and how it was made. Records are functions of seed and number.
//!
//! Lengths spread about as a log-normal distribution does. No function is used whose last bit depends on the
//! machine.

use std::io::Write as _;
use std::ops::Range;

use merganser_random::Random;

use super::generator::Generator;

/// Records of a group.
pub(crate) const GROUP: u64 = 1024;
/// Families of a group: how many copies each has, and how many such families there are. All other records
/// are alone.
pub(crate) const FAMILIES: [(u64, u64); 5] = [(300, 1), (60, 1), (20, 4), (5, 10), (2, 20)];
/// Changed letters of copies, in hundredths: copy `n` of a family has number `n` of these, cyclically.
pub(crate) const RATES: [u64; 8] = [0, 1, 2, 5, 10, 20, 30, 50];
/// Letters of a line.
const LINE_LETTERS: usize = 60;
/// The streams of random numbers that are not a record's own.
const ANCESTORS: u64 = 0x616e_6365_7374_6f72;
const SHUFFLES: u64 = 0x7368_7566_666c_6573;

/// The letters of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceAlphabet {
    /// Four bases, and now and then a run of N.
    Dna,
    /// Twenty amino acids with their frequencies in proteins (Robinson and Robinson 1991, table 1).
    Protein,
}

/// Amino acids, and how many there are of each in 10,000.
const AMINO_ACIDS: [(u8, u64); 20] = [
    (b'A', 780),
    (b'R', 513),
    (b'N', 449),
    (b'D', 536),
    (b'C', 192),
    (b'Q', 426),
    (b'E', 630),
    (b'G', 738),
    (b'H', 220),
    (b'I', 514),
    (b'L', 902),
    (b'K', 574),
    (b'M', 224),
    (b'F', 386),
    (b'P', 520),
    (b'S', 712),
    (b'T', 584),
    (b'W', 133),
    (b'Y', 322),
    (b'V', 645),
];

/// Sequences in FASTA.
pub struct Fasta {
    alphabet: SequenceAlphabet,
    seed: u64,
}

/// How a record was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceOrigin {
    /// The family.
    pub family: u64,
    /// How many copies it has, and the number of this one.
    pub copies: u64,
    /// From 0; copy 0 is the ancestor itself.
    pub copy: u64,
    /// Letters of the ancestor.
    pub ancestor_letters: u64,
    /// Which of them were copied, from 0.
    pub from: u64,
    /// The first letter that was not.
    pub to: u64,
    /// Whether the copy is the reverse complement.
    pub reverse: bool,
    /// The share of letters that was changed, in hundredths.
    pub rate: u64,
}

impl Fasta {
    /// The data set of `seed`.
    #[must_use]
    pub fn new(alphabet: SequenceAlphabet, seed: u64) -> Self {
        Fasta { alphabet, seed }
    }

    /// The table of the truth about these records.
    #[must_use]
    pub fn truth(&self) -> FastaTruth {
        FastaTruth(Fasta { ..*self })
    }

    /// The id of a record.
    #[must_use]
    pub fn id(&self, number: u64) -> String {
        let scattered = Random::of_record(self.seed, number).bits() >> 32;
        format!("MG{scattered:08X}.{number}")
    }

    /// How a record was made.
    #[must_use]
    pub fn origin(&self, number: u64) -> SequenceOrigin {
        let (family, copies, copy) = self.place(number);
        let letters = self.ancestor_letters(&mut self.ancestor_random(family));
        let whole = SequenceOrigin {
            family,
            copies,
            copy,
            ancestor_letters: letters,
            from: 0,
            to: letters,
            reverse: false,
            rate: 0,
        };
        if copy == 0 {
            return whole;
        }
        let mut random = self.copy_random(number);
        let reverse = random.one_in(2) && self.alphabet == SequenceAlphabet::Dna;
        let (mut from, mut to) = (0, letters);
        if random.one_in(2) {
            // A fragment has a quarter of the letters at least.
            let len = letters / 4 + 1 + random.below(letters - letters / 4);
            from = random.below(letters - len + 1);
            to = from + len;
        }
        SequenceOrigin { from, to, reverse, rate: RATES[copy as usize % RATES.len()], ..whole }
    }

    /// Family, number of its copies, and which of them a record is.
    fn place(&self, number: u64) -> (u64, u64, u64) {
        const RELATED: u64 = related();
        const EACH: u64 = families() + GROUP - RELATED;
        let group = number / GROUP;
        let mut slot =
            shuffled(number % GROUP, &mut Random::of_record(self.seed ^ SHUFFLES, group));
        let mut family = group * EACH;
        for (copies, count) in FAMILIES {
            if slot < copies * count {
                return (family + slot / copies, copies, slot % copies);
            }
            slot -= copies * count;
            family += count;
        }
        (family + slot, 1, 0)
    }

    fn ancestor_random(&self, family: u64) -> Random {
        Random::of_record(self.seed ^ ANCESTORS, family)
    }

    fn copy_random(&self, number: u64) -> Random {
        Random::of_record(!self.seed, number)
    }

    /// Draws how many letters an ancestor has.
    fn ancestor_letters(&self, random: &mut Random) -> u64 {
        let (median, least, most) = match self.alphabet {
            SequenceAlphabet::Dna => (1200.0, 60, 100_000),
            SequenceAlphabet::Protein => (300.0, 20, 10_000),
        };
        // The sum of twelve fractions is nearly normal, with a variance of 1.
        let normal = (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0;
        ((median * power_of_two(normal)) as u64).clamp(least, most)
    }

    fn ancestor(&self, family: u64) -> Vec<u8> {
        let mut random = self.ancestor_random(family);
        let letters = self.ancestor_letters(&mut random) as usize;
        // How many of 65,536 bases are G or C: 30 to 70 of 100.
        let strong = (30 + random.below(41)) * 65_536 / 100;
        let mut sequence = Vec::with_capacity(letters);
        while sequence.len() < letters {
            match self.alphabet {
                SequenceAlphabet::Dna if random.one_in(5000) => {
                    let run = 1 + random.index(40);
                    sequence.extend(std::iter::repeat_n(b'N', run));
                }
                SequenceAlphabet::Dna => {
                    let bits = random.bits();
                    sequence.extend((0..4).map(|i| base(bits >> (16 * i) & 0xffff, strong)));
                }
                SequenceAlphabet::Protein => sequence.push(amino_acid(random.below(10_000))),
            }
        }
        sequence.truncate(letters);
        sequence
    }

    /// The letters of a record.
    fn sequence(&self, number: u64, origin: &SequenceOrigin) -> Vec<u8> {
        let ancestor = self.ancestor(origin.family);
        let mut copied = ancestor[origin.from as usize..origin.to as usize].to_vec();
        if origin.reverse {
            copied.reverse();
            for letter in &mut copied {
                *letter = complement(*letter);
            }
        }
        if origin.rate == 0 {
            return copied;
        }
        let mut random = self.copy_random(number ^ GROUP << 40);
        let mut changed = Vec::with_capacity(copied.len() + copied.len() / 8);
        for letter in copied {
            if random.below(100) >= origin.rate {
                changed.push(letter);
                continue;
            }
            match random.below(8) {
                0 => {}
                1 => changed.extend([letter, self.other(letter, &mut random)]),
                _ => changed.push(self.other(letter, &mut random)),
            }
        }
        if changed.is_empty() {
            changed.push(ancestor[0]);
        }
        changed
    }

    /// A letter that is not `letter`.
    fn other(&self, letter: u8, random: &mut Random) -> u8 {
        loop {
            let drawn = match self.alphabet {
                SequenceAlphabet::Dna => b"ACGT"[random.index(4)],
                SequenceAlphabet::Protein => amino_acid(random.below(10_000)),
            };
            if drawn != letter {
                return drawn;
            }
        }
    }
}

impl Generator for Fasta {
    fn records(&self, numbers: Range<u64>, out: &mut Vec<u8>) {
        for number in numbers {
            let origin = self.origin(number);
            let sequence = self.sequence(number, &origin);
            let id = self.id(number);
            writeln!(out, ">{id} {} letters", sequence.len()).expect("a vector takes all");
            for line in sequence.chunks(LINE_LETTERS) {
                out.extend_from_slice(line);
                out.push(b'\n');
            }
        }
    }

    fn record_bytes_mean(&self) -> u64 {
        match self.alphabet {
            SequenceAlphabet::Dna => 1500,
            SequenceAlphabet::Protein => 410,
        }
    }
}

/// The table of the truth about the sequences of [`Fasta`]: a row for each record.
pub struct FastaTruth(Fasta);

impl FastaTruth {
    /// The names of the columns.
    const HEADER: &'static str =
        "id\tfamily\tcopies\tcopy\tancestor_letters\tfrom\tto\tstrand\trate\n";
}

impl Generator for FastaTruth {
    fn records(&self, numbers: Range<u64>, out: &mut Vec<u8>) {
        for number in numbers {
            let SequenceOrigin { family, copies, copy, ancestor_letters, from, to, reverse, rate } =
                self.0.origin(number);
            let (id, strand) = (self.0.id(number), if reverse { '-' } else { '+' });
            writeln!(
                out,
                "{id}\t{family}\t{copies}\t{copy}\t{ancestor_letters}\t{from}\t{to}\t{strand}\t0.{rate:02}"
            )
            .expect("a vector takes all");
        }
    }

    fn record_bytes_mean(&self) -> u64 {
        50
    }

    fn header(&self) -> &'static [u8] {
        FastaTruth::HEADER.as_bytes()
    }
}

/// Records of a group that are in families, and how many families these are.
const fn related() -> u64 {
    let (mut sum, mut at) = (0, 0);
    while at < FAMILIES.len() {
        sum += FAMILIES[at].0 * FAMILIES[at].1;
        at += 1;
    }
    sum
}

const fn families() -> u64 {
    let (mut sum, mut at) = (0, 0);
    while at < FAMILIES.len() {
        sum += FAMILIES[at].1;
        at += 1;
    }
    sum
}

const _: () = assert!(related() <= GROUP && GROUP.is_power_of_two());

/// The place of number `at` in a shuffled group. Each step is a bijection of numbers below [`GROUP`].
fn shuffled(mut at: u64, random: &mut Random) -> u64 {
    for _ in 0..3 {
        let (factor, add) = (random.bits() | 1, random.bits());
        at = at.wrapping_mul(factor).wrapping_add(add) % GROUP;
        at ^= at >> 5;
    }
    at
}

/// Two to the power of `x`, within 1 in 100: exact for whole numbers, and from there a parabola.
fn power_of_two(x: f64) -> f64 {
    let whole = x.floor();
    let rest = x - whole;
    let mut power = 1.0;
    for _ in 0..whole.abs() as u32 {
        power *= if whole < 0.0 { 0.5 } else { 2.0 };
    }
    power * (1.0 + rest * (0.656 + 0.344 * rest))
}

/// The base of sixteen random bits, where `strong` of 65,536 are G or C.
fn base(bits: u64, strong: u64) -> u8 {
    let pair = if bits < strong { b"GC" } else { b"AT" };
    pair[(bits & 1) as usize]
}

fn amino_acid(mut drawn: u64) -> u8 {
    for (letter, weight) in AMINO_ACIDS {
        if drawn < weight {
            return letter;
        }
        drawn -= weight;
    }
    unreachable!("the weights have a sum of 10,000")
}

fn complement(base: u8) -> u8 {
    match base {
        b'A' => b'T',
        b'C' => b'G',
        b'G' => b'C',
        b'T' => b'A',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn made(alphabet: SequenceAlphabet, numbers: Range<u64>) -> String {
        let mut out = Vec::new();
        Fasta::new(alphabet, 5).records(numbers, &mut out);
        String::from_utf8(out).expect("letters")
    }

    #[test]
    fn the_weights_of_amino_acids_are_shares() {
        assert_eq!(AMINO_ACIDS.iter().map(|(_, weight)| weight).sum::<u64>(), 10_000);
    }

    #[test]
    fn any_stretch_is_a_part_of_the_whole() {
        for alphabet in [SequenceAlphabet::Dna, SequenceAlphabet::Protein] {
            let parts = made(alphabet, 1000..1013) + &made(alphabet, 1013..1040);
            assert_eq!(made(alphabet, 1000..1040), parts);
        }
    }

    #[test]
    fn records_are_lines_of_sixty_letters_under_ids_of_their_own() {
        let text = made(SequenceAlphabet::Dna, 0..2000);
        let ids: HashSet<&str> = text.lines().filter_map(|line| line.strip_prefix('>')).collect();
        assert_eq!(ids.len(), 2000);
        for line in text.lines().filter(|line| !line.starts_with('>')) {
            assert!((1..=60).contains(&line.len()) && line.bytes().all(|b| b"ACGTN".contains(&b)));
        }
        for (alphabet, expected) in
            [(SequenceAlphabet::Dna, 1250..1600), (SequenceAlphabet::Protein, 300..410)]
        {
            let fasta = Fasta::new(alphabet, 5);
            let copied = (0..40 * GROUP).map(|number| fasta.origin(number));
            let mean = copied.map(|origin| origin.to - origin.from).sum::<u64>() / (40 * GROUP);
            assert!(expected.contains(&mean), "{alphabet:?} {mean}");
        }
    }

    #[test]
    fn a_group_has_its_families() {
        let fasta = Fasta::new(SequenceAlphabet::Dna, 1);
        let mut copies: HashMap<u64, Vec<u64>> = HashMap::new();
        for number in GROUP..2 * GROUP {
            let origin = fasta.origin(number);
            copies.entry(origin.family).or_default().push(origin.copy);
            assert!(origin.from < origin.to && origin.to <= origin.ancestor_letters);
        }
        for members in copies.values_mut() {
            members.sort_unstable();
            assert!(members.iter().copied().eq(0..members.len() as u64));
        }
        for (size, count) in FAMILIES {
            let found = copies.values().filter(|members| members.len() as u64 == size).count();
            assert_eq!(found as u64, count, "families of {size}");
        }
        let first = (0..GROUP).map(|number| fasta.origin(number).family);
        assert!(first.max() < copies.keys().copied().min(), "groups share no family");
    }

    /// Copies without changes are the letters that the table says; others differ in about as many.
    #[test]
    fn the_truth_is_true() {
        let fasta = Fasta::new(SequenceAlphabet::Dna, 3);
        let mut seen = HashSet::new();
        for number in 0..GROUP {
            let origin = fasta.origin(number);
            let (ancestor, own) = (fasta.ancestor(origin.family), fasta.sequence(number, &origin));
            assert_eq!(ancestor.len() as u64, origin.ancestor_letters);
            let mut copied = ancestor[origin.from as usize..origin.to as usize].to_vec();
            if origin.reverse {
                copied = copied.iter().rev().map(|letter| complement(*letter)).collect();
            }
            seen.insert((
                origin.rate,
                origin.reverse,
                origin.to - origin.from == origin.ancestor_letters,
            ));
            if origin.rate == 0 {
                assert_eq!(own, copied);
            } else {
                let much = copied.len() as f64 * origin.rate as f64 / 100.0;
                let longer = own.len() as f64 - copied.len() as f64;
                assert!(longer.abs() <= 12.0 + much, "{longer} of {much}");
                assert!(much < 20.0 || own != copied);
            }
        }
        assert!(seen.len() > 24, "all ways to make a copy: {seen:?}");
        let mut table = Vec::new();
        fasta.truth().records(7..9, &mut table);
        let table = String::from_utf8(table).expect("text");
        assert!(table.starts_with(&fasta.id(7)) && table.lines().count() == 2);
        let columns = |row: &str| row.split('\t').count();
        assert!(table.lines().all(|row| columns(row) == columns(FastaTruth::HEADER)));
    }

    #[test]
    fn powers_are_near() {
        for tenths in -60..=60 {
            let x = f64::from(tenths) / 10.0;
            let off = power_of_two(x) / x.exp2() - 1.0;
            assert!(off.abs() < 0.01, "{x}: {off}");
        }
    }
}

//! Members that are changed at random places: see `common/mutated.rs`. `MERGANSER_DAMAGES` asks for more cases.
#![allow(clippy::print_stdout, reason = "the seed is printed")]

use crate::common::mutated::{Change, try_changes};
use merganser_testkit::Random;

#[test]
fn changed_members_give_errors_and_never_other_data() {
    let asked = std::env::var("MERGANSER_DAMAGES").ok();
    let cases = asked.map_or(120, |number| number.parse::<u64>().expect("a number"));
    let seed = std::env::var("MERGANSER_SEED").map_or(11, |seed| seed.parse().expect("a number"));
    println!("MERGANSER_SEED={seed}");
    let mut random = Random::new(seed);
    for case in 0..cases {
        let seal = random.one_in(2);
        let change = |random: &mut Random| Change {
            member: random.bits() as u8,
            block: random.bits() as u16,
            // Numbers are at the begin of a block.
            at: if random.one_in(2) { random.below(100) as u16 } else { random.bits() as u16 & !7 },
            bytes: [random.bits(), random.below(200), 0, u64::MAX][random.below(4) as usize]
                .to_le_bytes(),
            len: random.bits() as u8,
            seal,
        };
        let count = 1 + random.below(4);
        let changes: Vec<Change> = (0..count).map(|_| change(&mut random)).collect();
        let tried = std::panic::catch_unwind(|| try_changes(case as u8, &changes));
        assert!(tried.is_ok(), "case {case}: volume {}, {changes:?}", case % 4);
    }
}

//! The loser tree, which finds the smallest of `k` leaves (Knuth, TAOCP volume 3, 5.4.1, tree of
//! losers).
//!
//! ```text
//!              [0] winner                Each inner node keeps the loser of the match played
//!              [1]                       there; the winner goes up. Replacing the winner's record
//!          [2]     [3]                   replays only the matches on its way: log2 k compares,
//!        4   5   6   7   leaves          no sibling is looked at.
//! ```
//!
//! A node holds the leaf's number and the first bytes of its key as one integer ([`Word`]), so a
//! match is one integer comparison. Whole keys are looked at only when the words are equal, and
//! then the order of the leaves decides.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

use crate::prefix::Word;

/// The leaves of a tree: each has one record at a time.
pub(crate) trait Leaves {
    /// The part of a key that a node holds.
    type Word: Word;

    /// Leaves, at least 1.
    fn count(&self) -> usize;

    /// The word of a leaf's record; `None` at the leaf's end.
    fn word(&self, leaf: usize) -> Option<Self::Word>;

    /// Compares the whole keys of two leaves' records, whose words are equal.
    fn compare(&self, a: usize, b: usize) -> Ordering;
}

/// Set in the number of a leaf that has no record left.
const ENDED: u32 = 1 << 31;

/// A leaf on its way up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<W> {
    pub(crate) word: W,
    /// Its number, and [`ENDED`] when it has no record left: then it loses against everything, for its
    /// word is the largest and its number larger than all others.
    rank: u32,
}

impl<W: Word> Node<W> {
    fn new(leaf: usize, word: Option<W>) -> Self {
        let mut node = Node { word: word.unwrap_or(W::MAX), rank: leaf as u32 };
        if word.is_none() {
            node.end();
        }
        node
    }

    /// The leaf's number.
    #[inline]
    pub(crate) fn leaf(&self) -> usize {
        (self.rank & !ENDED) as usize
    }

    /// The leaf has no record left.
    pub(crate) fn end(&mut self) {
        self.rank |= ENDED;
        self.word = W::MAX;
    }
}

/// Matches played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Played {
    pub(crate) compares: u64,
    /// The matches among them in which the words of both records were equal.
    pub(crate) ties: u64,
}

/// Plays all matches; returns the losers and the winner.
pub(crate) fn build<L: Leaves>(leaves: &L) -> (Vec<Node<L::Word>>, Node<L::Word>) {
    let k = leaves.count();
    assert!(k <= ENDED as usize, "leaves are numbered with 31 bits");
    let leaf = |i: usize| Node::new(i, leaves.word(i));
    let mut winners = vec![leaf(0); 2 * k];
    for i in 0..k {
        winners[k + i] = leaf(i);
    }
    let mut tree = vec![leaf(0); k];
    for node in (1..k).rev() {
        let (a, b) = (winners[2 * node], winners[2 * node + 1]);
        let a_first = before(leaves, a, b);
        (winners[node], tree[node]) = if a_first { (a, b) } else { (b, a) };
    }
    let winner = winners[1.min(2 * k - 1)];
    (tree, if k == 1 { leaf(0) } else { winner })
}

/// Plays the matches from the winner's leaf up with its next record, which makes a new winner.
#[inline]
pub(crate) fn replay<L: Leaves>(
    leaves: &L,
    tree: &mut [Node<L::Word>],
    first: &mut Node<L::Word>,
) -> Played {
    let mut played = Played::default();
    let mut winner = *first;
    let mut node = (winner.leaf() + leaves.count()) / 2;
    while node > 0 {
        let other = tree[node];
        let mut other_first = other.word < winner.word;
        if other.word == winner.word {
            played.ties += u64::from((other.rank | winner.rank) & ENDED == 0);
            other_first = before_in_tie(leaves, other.rank, winner.rank);
        }
        tree[node] = select(other_first, winner, other);
        winner = select(other_first, other, winner);
        played.compares += 1;
        node /= 2;
    }
    *first = winner;
    played
}

/// `a` if `so`, else `b`, without a branch. A branch would be mispredicted half the
/// time, and the compiler makes one of every choice that it can recognise, even of masks.
#[inline]
fn select<W: Word>(so: bool, a: Node<W>, b: Node<W>) -> Node<W> {
    Node {
        word: select_unpredictable(so, a.word, b.word),
        rank: select_unpredictable(so, a.rank, b.rank),
    }
}

/// Whether `a`'s record comes before `b`'s.
fn before<L: Leaves>(leaves: &L, a: Node<L::Word>, b: Node<L::Word>) -> bool {
    a.word < b.word || a.word == b.word && before_in_tie(leaves, a.rank, b.rank)
}

/// Whether the record of the leaf with rank `a` comes before that of `b`, their words being equal.
#[inline(never)]
fn before_in_tie<L: Leaves>(leaves: &L, a: u32, b: u32) -> bool {
    if (a | b) & ENDED == 0 {
        leaves.compare(a as usize, b as usize).then(a.cmp(&b)).is_lt()
    } else {
        a < b
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A word and what else is in a key.
    type Key = (u64, u8);

    /// Sorted keys, a queue for each leaf, and how many of each were taken.
    struct Queues<'a> {
        keys: &'a [Vec<Key>],
        taken: Vec<usize>,
    }

    impl Queues<'_> {
        fn next(&self, leaf: usize) -> Option<Key> {
            self.keys[leaf].get(self.taken[leaf]).copied()
        }
    }

    impl Leaves for Queues<'_> {
        type Word = u64;

        fn count(&self) -> usize {
            self.keys.len()
        }

        fn word(&self, leaf: usize) -> Option<u64> {
            self.next(leaf).map(|(word, _)| word)
        }

        fn compare(&self, a: usize, b: usize) -> Ordering {
            let [a, b] = [a, b].map(|leaf| self.next(leaf).expect("asked of leaves that play"));
            assert_eq!(a.0, b.0, "asked only when words don't tell");
            a.1.cmp(&b.1)
        }
    }

    /// Every leaf's keys come out in order, those that are equal by their leaves.
    fn check(keys: &[Vec<Key>]) {
        let mut expected: Vec<(Key, usize)> = Vec::new();
        for (leaf, queue) in keys.iter().enumerate() {
            expected.extend(queue.iter().map(|key| (*key, leaf)));
        }
        expected.sort();
        let mut queues = Queues { keys, taken: vec![0; keys.len()] };
        let (mut tree, mut winner) = build(&queues);
        let mut found = Vec::new();
        while let Some(key) = queues.next(winner.leaf()) {
            let leaf = winner.leaf();
            found.push((key, leaf));
            queues.taken[leaf] += 1;
            match queues.word(leaf) {
                Some(word) => winner.word = word,
                None => winner.end(),
            }
            let played = replay(&queues, &mut tree, &mut winner);
            assert!(played.ties <= played.compares && 1 << played.compares < 2 * keys.len());
        }
        assert_eq!(found, expected);
    }

    /// One to four leaves with up to two keys each. The largest words are those of leaves that have
    /// ended.
    #[test]
    fn all_tiny_inputs() {
        let keys = [(0, 0), (u64::MAX, 0), (u64::MAX, 1)];
        let mut queues = vec![vec![]];
        for first in 0..3 {
            queues.push(vec![keys[first]]);
            queues.extend((first..3).map(|second| vec![keys[first], keys[second]]));
        }
        for leaves in 1..=4 {
            for code in 0..queues.len().pow(leaves) {
                let choice = |leaf| queues[code / queues.len().pow(leaf) % queues.len()].clone();
                check(&(0..leaves).map(choice).collect::<Vec<_>>());
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_sort(
            mut keys in prop::collection::vec(prop::collection::vec(
                (prop_oneof![0..4_u64, Just(u64::MAX)], 0..3_u8), 0..20), 1..40),
        ) {
            keys.iter_mut().for_each(|queue| queue.sort());
            check(&keys);
        }
    }
}

//! The loser tree (Knuth, TAOCP volume 3, 5.4.1, tree of losers): who is the smallest of `k`.
//!
//! ```text
//!              [0] winner                Each inner node keeps the loser of the match played
//!              [1]                       there; the winner goes up. Replacing the winner's record
//!          [2]     [3]                   replays only the matches on its way: log2 k compares,
//!        4   5   6   7   leaves          no sibling is looked at.
//! ```
//!
//! A node holds the first bytes of the key as one integer ([`Word`]) beside the leaf's number, so a
//! match is one integer compare; whole keys are looked at only when those are equal, then the order of
//! the leaves decides.

use std::cmp::Ordering;
use std::ops::{BitAnd, BitXor};

/// The first bytes of a key as an integer, which ascends in key order.
pub(crate) trait Word: Copy + Ord + BitXor<Output = Self> + BitAnd<Output = Self> {
    /// All ones.
    const MAX: Self;
    const ZERO: Self;
}

impl Word for u64 {
    const MAX: Self = u64::MAX;
    const ZERO: Self = 0;
}

impl Word for u128 {
    const MAX: Self = u128::MAX;
    const ZERO: Self = 0;
}

/// What plays in a tree: a record at a time for each leaf.
pub(crate) trait Leaves {
    /// What a node holds of a key.
    type Word: Word;

    /// Leaves, at least 1.
    fn count(&self) -> usize;

    /// The word of a leaf's record; `None` when it has none left.
    fn word(&self, leaf: usize) -> Option<Self::Word>;

    /// Compares the whole keys of two leaves' records, of which the words are equal.
    fn compare(&self, a: usize, b: usize) -> Ordering;
}

/// A leaf on its way up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<W> {
    pub(crate) word: W,
    pub(crate) leaf: u32,
    /// 1 when the leaf has no record left: it loses against everything.
    ended: u32,
}

impl<W: Word> Node<W> {
    pub(crate) fn new(leaf: usize, word: Option<W>) -> Self {
        let ended = u32::from(word.is_none());
        Node { word: word.unwrap_or(W::MAX), leaf: leaf as u32, ended }
    }

    /// The leaf has no record left.
    pub(crate) fn end(&mut self) {
        self.ended = 1;
        self.word = W::MAX;
    }
}

/// Matches played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Played {
    pub(crate) compares: u64,
    /// Of those, where the words of both records were equal.
    pub(crate) ties: u64,
}

/// Plays all matches; returns the losers and the winner.
pub(crate) fn build<L: Leaves>(leaves: &L) -> (Vec<Node<L::Word>>, Node<L::Word>) {
    let k = leaves.count();
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
    let mut node = (winner.leaf as usize + leaves.count()) / 2;
    while node > 0 {
        let other = tree[node];
        let other_first = if other.word == winner.word {
            played.ties += u64::from(other.ended + winner.ended == 0);
            before(leaves, other, winner)
        } else {
            other.word < winner.word
        };
        (tree[node], winner) = exchanged_if(other_first, other, winner);
        played.compares += 1;
        node /= 2;
    }
    *first = winner;
    played
}

/// `(a, b)`, exchanged if `exchange`, by masks: a branch would be mispredicted half the time, and the
/// compiler makes one of a choice between nodes.
#[inline]
fn exchanged_if<W: Word>(exchange: bool, a: Node<W>, b: Node<W>) -> (Node<W>, Node<W>) {
    let mask = u32::from(exchange).wrapping_neg();
    let word = (a.word ^ b.word) & if exchange { W::MAX } else { W::ZERO };
    let leaf = (a.leaf ^ b.leaf) & mask;
    let ended = (a.ended ^ b.ended) & mask;
    let with = |node: Node<W>| Node {
        word: node.word ^ word,
        leaf: node.leaf ^ leaf,
        ended: node.ended ^ ended,
    };
    (with(a), with(b))
}

/// Whether `a`'s record comes before `b`'s.
#[inline(never)]
fn before<L: Leaves>(leaves: &L, a: Node<L::Word>, b: Node<L::Word>) -> bool {
    if a.ended != b.ended {
        return a.ended < b.ended;
    }
    if a.word != b.word {
        return a.word < b.word;
    }
    if a.ended == 1 {
        return a.leaf < b.leaf;
    }
    match leaves.compare(a.leaf as usize, b.leaf as usize) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => a.leaf < b.leaf,
    }
}

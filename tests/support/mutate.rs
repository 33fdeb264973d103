//! Input that is nearly right: what parsers are given in tests. The same seed gives the same input.
//!
//! `ATOLL_FUZZ_ROUNDS=N` tries N inputs of each kind, and `ATOLL_FUZZ_SEED=N` others (`tests/long fuzz`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Nothing takes longer than this to be read or refused.
#[allow(dead_code, reason = "some tests judge by themselves")]
pub(crate) const LONGEST: Duration = Duration::from_secs(10);

/// Words that parsers have to think about.
const WORDS: [&[u8]; 24] = [
    b"0",
    b"-1",
    b"18446744073709551615",
    b"9999999999999999999999",
    b"1e308",
    b"nan",
    b"-inf",
    b"\0",
    b"\n",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]]",
    b"(",
    b"=",
    b":",
    b"..",
    b"\xff\xfe",
    b"\xe2\x80\xae",
    b"\r\n\r\n",
    b"{}",
    b"[[",
    b"#",
];

/// How many inputs of each kind are tried.
pub(crate) fn rounds(unless_asked: u64) -> u64 {
    number("ATOLL_FUZZ_ROUNDS").unwrap_or(unless_asked)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Where mutations come from (splitmix64).
pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(name: &str) -> Self {
        let seed = number("ATOLL_FUZZ_SEED").unwrap_or(0);
        Self(name.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound, which is at least 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of some values.
    pub(crate) fn one_of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }

    /// An input with a few mistakes, or as it is.
    pub(crate) fn mutated(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one_of(corpus).clone();
        for _ in 0..self.below(4) {
            self.mutate(&mut input, corpus);
        }
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let end = at + self.below((input.len() - at).min(64) + 1);
        match self.below(8) {
            0 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] ^= 1 << self.below(8);
            }
            1 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] = self.next() as u8;
            }
            2 => drop(input.drain(at..end)),
            3 => input.truncate(at),
            4 => {
                let again = input[at..end].to_vec();
                drop(input.splice(at..at, again));
            }
            5 => {
                let other = self.one_of(corpus);
                let from = self.below(other.len() + 1);
                let to = from + self.below((other.len() - from).min(200) + 1);
                drop(input.splice(at..end, other[from..to].iter().copied()));
            }
            6 => {
                let many = 1 << self.below(13);
                let word = WORDS[self.below(WORDS.len())].repeat(many);
                drop(input.splice(at..at, word));
            }
            _ => drop(input.splice(at..end, self.one_of(&WORDS).iter().copied())),
        }
    }
}

/// The inputs of a kind that were committed, in `tests/data/corpus`: what was found once, and what is hard to come by.
#[allow(dead_code, reason = "some tests have no corpus")]
pub(crate) fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus").join(name);
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Lets a parser read inputs that are nearly right. It may refuse them, but neither panic nor take long.
#[allow(dead_code, reason = "some tests judge by themselves")]
pub(crate) fn try_out(name: &str, unless_asked: u64, corpus: &[Vec<u8>], mut parse: impl FnMut(&[u8])) {
    assert!(!corpus.is_empty(), "{name} has a corpus");
    let committed = self::corpus(name);
    let known = [corpus, &committed[..]].concat();
    let mut mutator = Mutator::new(name);
    let as_committed = committed.len() as u64;
    for round in 0..rounds(unless_asked) + as_committed {
        let input = match committed.get(round as usize) {
            Some(input) => input.clone(),
            None => mutator.mutated(&known),
        };
        let start = Instant::now();
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| parse(&input)));
        let shown = || String::from_utf8_lossy(&input).into_owned();
        assert!(read.is_ok(), "{name} panics in round {round} at: {:?}", shown());
        assert!(start.elapsed() < LONGEST, "{name} takes too long in round {round} at: {:?}", shown());
    }
}

//! The meaning of a typed workload, and of several of them (`--stream`).

use std::str::FromStr;

use clap::ValueEnum;
use merganser_device::profile::ParameterUnit;
use merganser_device::request::SimTime;
use merganser_device::workload::{ARRIVAL_NS_MAX, AccessPattern, Arrivals, Sizes};
use merganser_shell::args::{TypedCount, TypedSize};
use merganser_shell::failure::Failure;

use crate::args::{ArrivalsName, WorkloadName};

/// Made-up requests, for a device whose size is not known yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SyntheticRequests {
    /// Where they go.
    pub pattern: AccessPattern,
    /// Share of reads.
    pub read_share: f64,
    /// How large they are.
    pub sizes: Sizes,
    /// When they come.
    pub arrivals: Arrivals,
    /// How many.
    pub requests: u64,
    /// First byte.
    pub start: u64,
    /// The number of bytes from `start`; `None` is the rest of the device.
    pub span_bytes: Option<u64>,
    /// Offsets and sizes are multiples of this.
    pub align_bytes: u64,
}

/// One of several workloads that are played together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StreamChoice {
    /// Its name; no other stream has it.
    pub name: String,
    /// When it begins, since the start of the run.
    pub begin: SimTime,
    /// Its requests.
    pub made: SyntheticRequests,
}

/// A workload as it is typed, in options or in the keys of a stream.
#[derive(Debug, Clone)]
pub(super) struct WorkloadWords {
    pub workload: WorkloadName,
    pub requests: TypedCount,
    pub read: f64,
    pub size: String,
    pub depth: Option<u32>,
    pub rate: Option<f64>,
    pub arrivals: ArrivalsName,
    pub random: f64,
    pub theta: f64,
    pub gap: TypedSize,
    pub start: TypedSize,
    pub span: Option<TypedSize>,
    pub align: TypedSize,
}

impl WorkloadWords {
    /// The requests that are meant.
    pub(super) fn meaning(&self) -> Result<SyntheticRequests, Failure> {
        let arrivals = match self.rate {
            None => Arrivals::Closed(self.depth.unwrap_or(1)),
            Some(rate) => arrivals(rate, self.arrivals)?,
        };
        Ok(SyntheticRequests {
            pattern: match self.workload {
                WorkloadName::Sequential => AccessPattern::Sequential,
                WorkloadName::Strided => AccessPattern::Strided(self.gap.0),
                WorkloadName::Random => AccessPattern::Random,
                WorkloadName::Mixed => AccessPattern::Mixed(self.random),
                WorkloadName::Zipf => AccessPattern::Zipf(self.theta),
            },
            read_share: self.read,
            sizes: sizes(&self.size)?,
            arrivals,
            requests: self.requests.0,
            start: self.start.0,
            span_bytes: self.span.map(|span| span.0),
            align_bytes: self.align.0,
        })
    }

    /// Gives `key` the value of `text`. Returns `None` if there is no such key, or why the text is no
    /// value.
    fn set(&mut self, key: &str, text: &str) -> Option<Result<(), String>> {
        fn read<T: FromStr<Err = String>>(slot: &mut T, text: &str) -> Result<(), String> {
            text.parse().map(|value| *slot = value)
        }
        fn number<T: FromStr>(slot: &mut T, text: &str) -> Result<(), String> {
            let found = text.parse().map(|value| *slot = value);
            found.map_err(|_| format!("'{text}' is no number that can be"))
        }
        fn name<T: ValueEnum>(slot: &mut T, text: &str) -> Result<(), String> {
            T::from_str(text, false).map(|value| *slot = value).map_err(|_| {
                let known = T::value_variants().iter().filter_map(T::to_possible_value);
                let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
                format!("'{text}', expected {}", known.join(", "))
            })
        }
        Some(match key {
            "workload" => name(&mut self.workload, text),
            "requests" => read(&mut self.requests, text),
            "read" => number(&mut self.read, text),
            "size" => {
                text.clone_into(&mut self.size);
                Ok(())
            }
            "depth" => {
                self.rate = None;
                number(self.depth.insert(0), text)
            }
            "rate" => {
                self.depth = None;
                number(self.rate.insert(0.0), text)
            }
            "arrivals" => name(&mut self.arrivals, text),
            "random" => number(&mut self.random, text),
            "theta" => number(&mut self.theta, text),
            "gap" => read(&mut self.gap, text),
            "start" => read(&mut self.start, text),
            "span" => read(self.span.insert(TypedSize(0)), text),
            "align" => read(&mut self.align, text),
            _ => return None,
        })
    }
}

/// The keys of a stream.
const KEYS: &str = "name, begin, workload, requests, read, size, depth, rate, arrivals, random, theta, \
                    gap, start, span and align";

/// The streams of `typed`, each in addition to the options.
pub(super) fn streams(
    typed: &[String],
    options: &WorkloadWords,
) -> Result<Vec<StreamChoice>, Failure> {
    let mut all: Vec<StreamChoice> = Vec::new();
    for (number, text) in (1..).zip(typed) {
        let stream =
            stream(number, text, options).map_err(|why| format!("--stream {text}: {why}"))?;
        if all.iter().any(|other| other.name == stream.name) {
            return Err(format!("--stream: two streams have the name {}", stream.name).into());
        }
        all.push(stream);
    }
    Ok(all)
}

fn stream(number: usize, text: &str, options: &WorkloadWords) -> Result<StreamChoice, String> {
    let (mut name, mut begin, mut words) = (number.to_string(), SimTime(0), options.clone());
    let mut seen: Vec<&str> = Vec::new();
    for (key, value) in pairs(text)? {
        if seen.contains(&key) {
            return Err(format!("{key} is given twice"));
        }
        if ["depth", "rate"].contains(&key) && seen.iter().any(|k| ["depth", "rate"].contains(k)) {
            return Err("depth and rate exclude each other".to_owned());
        }
        seen.push(key);
        match key {
            "name" if value.is_empty() || value.contains(char::is_control) => {
                return Err("name: a word".to_owned());
            }
            "name" => value.clone_into(&mut name),
            "begin" => {
                let ns = ParameterUnit::Nanoseconds.parse(value).filter(|ns| *ns <= ARRIVAL_NS_MAX);
                begin =
                    SimTime(ns.ok_or_else(|| format!("begin: '{value}' is no time, as 100ms is"))?);
            }
            _ => match words.set(key, value) {
                None => return Err(format!("{key} is no key: there are {KEYS}")),
                Some(set) => set.map_err(|why| format!("{key}: {why}"))?,
            },
        }
    }
    if words.depth == Some(0) {
        return Err("depth: at least 1".to_owned());
    }
    if words.requests.0 == 0 {
        return Err("requests: at least 1".to_owned());
    }
    let made = words.meaning().map_err(|failure| {
        let why = failure.sentence().unwrap_or_default();
        // The key has the name of the option.
        why.trim_start_matches("--").to_owned()
    })?;
    Ok(StreamChoice { name, begin, made })
}

/// `KEY=VALUE,KEY=VALUE`. Text after a comma without `=` belongs to the value before, as in
/// `size=4K:3,64K:1`.
fn pairs(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let mut from = 0;
    for part in text.split(',') {
        let to = from + part.len();
        match (part.split_once('='), pairs.last_mut()) {
            (Some((key, value)), _) => pairs.push((key, value)),
            (None, Some((_, value))) => {
                let start = to - part.len() - 1 - value.len();
                *value = &text[start..to];
            }
            (None, None) => return Err("expected KEY=VALUE,...".to_owned()),
        }
        from = to + 1;
    }
    Ok(pairs)
}

fn arrivals(rate: f64, how: ArrivalsName) -> Result<Arrivals, Failure> {
    let gap_ns = (1e9 / rate).round();
    if !(rate > 0.0 && (1.0..=1e15).contains(&gap_ns)) {
        return Err(
            format!("--rate: {rate}, expected 0.000001 to 1000000000 requests per second").into()
        );
    }
    let mean = SimTime(gap_ns as u64);
    Ok(match how {
        ArrivalsName::Even => Arrivals::Every(mean),
        ArrivalsName::Uniform => Arrivals::Uniform(mean),
        ArrivalsName::Poisson => Arrivals::Exponential(mean),
    })
}

/// `4K`, `4K..64K`, `exp:16K` or `4K:3,64K:1`.
fn sizes(typed: &str) -> Result<Sizes, Failure> {
    let size = |text: &str| {
        text.parse::<TypedSize>()
            .map(|size| size.0)
            .map_err(|why| Failure::from(format!("--size: {why}")))
    };
    if let Some(mean) = typed.strip_prefix("exp:") {
        return Ok(Sizes::Exponential(size(mean)?));
    }
    if let Some((from, to)) = typed.split_once("..") {
        return Ok(Sizes::Uniform(size(from)?, size(to)?));
    }
    if !typed.contains([':', ',']) {
        return Ok(Sizes::Fixed(size(typed)?));
    }
    let choice = |text: &str| {
        let (bytes, weight) = text.split_once(':').unwrap_or((text, "1"));
        let refused = || {
            Failure::from(format!("--size: '{weight}' is no weight: give a number, such as 4K:3"))
        };
        Ok((size(bytes)?, weight.parse::<f64>().map_err(|_| refused())?))
    };
    Ok(Sizes::Choice(typed.split(',').map(choice).collect::<Result<_, Failure>>()?))
}

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;
    use super::*;

    #[test]
    fn sizes_have_four_spellings() {
        let meant = |typed| sizes(typed).map_err(|failure| failure.sentence().map(str::to_owned));
        assert_eq!(meant("4K"), Ok(Sizes::Fixed(4096)));
        assert_eq!(meant("512..1M"), Ok(Sizes::Uniform(512, 1 << 20)));
        assert_eq!(meant("exp:16K"), Ok(Sizes::Exponential(16_384)));
        assert_eq!(meant("4K:3,64K"), Ok(Sizes::Choice(vec![(4096, 3.0), (65_536, 1.0)])));
        for wrong in ["", "x", "4K..", "exp:", "4K:x", ",", "4K,,4K"] {
            let said = meant(wrong).expect_err(wrong).expect("a sentence");
            assert!(said.starts_with("--size: '"), "{wrong}: {said}");
        }
    }

    fn options() -> WorkloadWords {
        WorkloadWords {
            workload: WorkloadName::Random,
            requests: TypedCount(100),
            read: 1.0,
            size: "4K".to_owned(),
            depth: Some(4),
            rate: None,
            arrivals: ArrivalsName::Poisson,
            random: 0.5,
            theta: 0.99,
            gap: TypedSize(0),
            start: TypedSize(0),
            span: None,
            align: TypedSize(4096),
        }
    }

    #[test]
    fn a_stream_has_the_values_of_the_options_but_for_its_keys() {
        let typed =
            ["size=4K:3,64K:1,read=0.5".to_owned(), "name=log,rate=1000,begin=2ms".to_owned()];
        let all = streams(&typed, &options()).map_err(|_| ()).expect("two streams");
        let [first, second] = &all[..] else { panic!("{all:?}") };
        assert_eq!((first.name.as_str(), first.begin), ("1", SimTime(0)));
        assert_eq!(first.made.sizes, Sizes::Choice(vec![(4096, 3.0), (65_536, 1.0)]));
        assert_eq!((first.made.arrivals, first.made.read_share), (Arrivals::Closed(4), 0.5));
        assert_eq!((second.name.as_str(), second.begin), ("log", SimTime(2_000_000)));
        assert_eq!(second.made.arrivals, Arrivals::Exponential(SimTime(1_000_000)));
        assert_eq!(second.made.sizes, Sizes::Fixed(4096));
    }

    #[test]
    fn a_stream_that_cannot_be_is_named() {
        for (typed, sentence) in [
            ("", "--stream : expected KEY=VALUE,..."),
            ("x=1", "--stream x=1: x is no key: there are "),
            ("depth=0", "--stream depth=0: depth: at least 1"),
            ("depth=x", "--stream depth=x: depth: 'x' is no number that can be"),
            ("depth=1,rate=5", "--stream depth=1,rate=5: depth and rate exclude each other"),
            ("rate=0", "--stream rate=0: rate: 0, expected 0.000001 to"),
            ("read=1,read=0", "--stream read=1,read=0: read is given twice"),
            ("size=x", "--stream size=x: size: 'x'"),
            (
                "workload=hot",
                "--stream workload=hot: workload: 'hot', expected sequential, strided",
            ),
            ("begin=soon", "--stream begin=soon: begin: 'soon' is no time, as 100ms is"),
            ("requests=0", "--stream requests=0: requests: at least 1"),
            ("name=", "--stream name=: name: a word"),
        ] {
            let said = refusal(&["simulate", "run", "--stream", typed]);
            assert!(said.starts_with(sentence), "{typed}: {said}");
        }
        let twice = ["simulate", "run", "--stream", "name=a", "--stream", "name=a,depth=2"];
        assert_eq!(refusal(&twice), "--stream: two streams have the name a");
    }
}

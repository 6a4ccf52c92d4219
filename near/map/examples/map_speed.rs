//! How fast words are counted.
//!
//! ```text
//! map_speed FILE [THREADS] [ROUNDS] [MEGABYTES]      1 thread, 3 rounds, 1024 MiB unless said otherwise
//! map_speed --text MEGABYTES FILE                    writes a Zipf text of 280,000 words
//! ```

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use memchr::memchr_iter;
use merganser_map::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
    builtin,
};
use merganser_map::{MapInput, MapOptions, MapOutput, PartitionSize, RowSink, map};
use merganser_random::Random;
use merganser_sort::record::Format;
use merganser_sort::{Budget, Silent};
use merganser_storage::Directory;
use merganser_storage::file::{Direct, FileDirectory, FileOptions};

/// Words between blanks and line ends: the least a tokenizer does, so that the engine shows.
struct Words(SsdletDescription);

impl Ssdlet for Words {
    fn description(&self) -> &SsdletDescription {
        &self.0
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(Spaces))
    }
}

struct Spaces;

impl Worker for Spaces {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        let mut start = 0;
        for (at, byte) in chunk.bytes.iter().enumerate() {
            if *byte <= b' ' {
                if at > start {
                    out.add_span(chunk.bytes, start..at, 1);
                }
                start = at + 1;
            }
        }
        Ok(())
    }
}

/// Lines that hold a letter that none has: nothing but reading.
struct Nothing(SsdletDescription);

impl Ssdlet for Nothing {
    fn description(&self) -> &SsdletDescription {
        &self.0
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(Search))
    }
}

struct Search;

impl Worker for Search {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        for at in memchr_iter(0xff, chunk.bytes) {
            out.records(&chunk.bytes[at..=at]);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Count(u64, u64);

impl RowSink for Count {
    fn keyed(&mut self, _: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.0 += 1;
        self.1 += value.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
        Ok(true)
    }

    fn records(&mut self, _: &[u8]) -> Result<bool, SsdletError> {
        Ok(true)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, megabytes, file] = &words[..]
        && flag == "--text"
    {
        return write_text(Path::new(file), megabytes.parse::<u64>()? << 20);
    }
    let number = |at: usize, usual: u64| words.get(at).map_or(Ok(usual), |word| word.parse());
    let path = Path::new(words.first().ok_or("no file is named")?);
    let (threads, rounds, memory) = (number(1, 1)?, number(2, 3)?, number(3, 1024)?);
    let folder = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let options = FileOptions { direct: Direct::Never, ..FileOptions::default() };
    let folder = FileDirectory::open_with(folder, options)?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or("no file name")?;
    let lines = Format::Lines { delimiter: b'\n' };
    let keyed = SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum };
    let ordered = SsdletOutput::Ordered { format: lines };
    let description = |name: &str, output: &SsdletOutput| SsdletDescription {
        name: name.to_owned(),
        input: lines,
        output: output.clone(),
        worker_bytes: 0,
    };
    let all: [Box<dyn Ssdlet>; 3] = [
        Box::new(Words(description("spaces", &keyed))),
        builtin::open("wordcount", &serde_json::json!({}))?,
        Box::new(Nothing(description("search", &ordered))),
    ];
    println!("ssdlet       MB/s  CPU MB/s     rows        sum  spills  map s  result s  memory MB");
    for ssdlet in &all {
        for _ in 0..rounds {
            let storage = folder.open(name, false)?;
            let bytes = storage.size();
            let options = MapOptions {
                budget: Budget::new(memory << 20),
                threads: threads as usize,
                partition: PartitionSize::Auto,
                temp: vec![FileDirectory::open(std::env::temp_dir())?],
            };
            let (begun, busy) = (Instant::now(), processor_seconds());
            let mut count = Count::default();
            let input = MapInput::Storage { storage, range: None };
            let output = MapOutput::Rows(&mut count);
            let report = map(&**ssdlet, vec![input], output, &options, &Silent)?;
            let (elapsed, busy) = (begun.elapsed().as_secs_f64(), processor_seconds() - busy);
            println!(
                "{:<11} {:5.0} {:9.0} {:8} {:10} {:7} {:6.2} {:9.2} {:10.0}",
                ssdlet.description().name,
                bytes as f64 / elapsed / 1e6,
                bytes as f64 / busy / 1e6,
                count.0,
                count.1,
                report.spills,
                report.map_seconds,
                report.result_seconds,
                report.memory_peak_bytes as f64 / 1e6,
            );
        }
    }
    Ok(())
}

/// Processor time that this process has used.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Words of about 5 letters, the n-th of 280,000 as often as 1 / n.
fn write_text(path: &Path, bytes: u64) -> Result<(), Box<dyn std::error::Error>> {
    const WORDS: usize = 280_000;
    let mut random = Random::new(1);
    let words: Vec<Vec<u8>> = (0..WORDS)
        .map(|rank| {
            let len = 2 + (rank + 2).ilog2() as usize / 3 + random.index(4);
            (0..len).map(|_| b'a' + random.index(26) as u8).collect()
        })
        .collect();
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=WORDS)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let mut written = 0;
    while written < bytes {
        let drawn = random.fraction() * sum;
        let word = &words[sums.partition_point(|sum| *sum < drawn).min(WORDS - 1)];
        out.write_all(word)?;
        out.write_all(if random.one_in(12) { b"\n" } else { b" " })?;
        written += word.len() as u64 + 1;
    }
    out.flush()?;
    Ok(())
}

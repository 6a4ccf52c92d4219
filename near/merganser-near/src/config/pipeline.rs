//! The settings of `merganser pipeline`.

use std::path::PathBuf;
use std::time::Duration;

use merganser_pipeline::{
    MergeBy, Partitions, PieceFormat, PipelineSettings, PipelineStage, SettingsError, StagePool,
};
use merganser_shell::args::TypedSize;
use merganser_shell::config::report::report_file;
use merganser_shell::config::{ReportForm, memory_bytes};
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_sort::journal::CommandNote;
use merganser_sort::run::magic::ContentKind;

use crate::args::{PartitionsName, PieceName, PipelineArgs, StageArgs};

/// Tries after the first one, unless others are asked for.
const RETRIES: u32 = 1;
/// The size of partitions of inputs that have none.
const STREAM_BYTES: u64 = 64 << 20;
/// The pool of all stages if none is named.
const ONE_POOL: &str = "all";
/// More threads are a slip.
const THREADS_MAX: usize = 4096;

/// A pipeline to run.
#[derive(Debug)]
pub(crate) struct PipelineConfig {
    /// The inputs, in this order; at least one.
    pub inputs: Vec<Input>,
    /// The result.
    pub output: PathBuf,
    /// How the inputs are divided; `None`: as suits them.
    pub partitions: Option<Partitions>,
    /// The report's file, and its kind.
    pub report: Option<(PathBuf, ReportForm)>,
    /// No progress.
    pub quiet: bool,
    records: PieceFormat,
    content: ContentKind,
    stages: Vec<PipelineStage>,
    pools: Vec<StagePool>,
    merge: MergeBy,
    in_flight: Option<usize>,
    temp_limit_bytes: Option<u64>,
    retries: u32,
    time_limit: Option<Duration>,
    memory_bytes: u64,
}

impl PipelineConfig {
    /// What the inputs should hold.
    pub(crate) fn content(&self) -> ContentKind {
        self.content
    }

    /// The settings for work in `folder`; `streams` says whether an input has no size.
    pub(crate) fn settings(
        &self,
        folder: PathBuf,
        command: CommandNote,
        streams: bool,
    ) -> PipelineSettings {
        let usual = if streams { Partitions::Bytes(STREAM_BYTES) } else { Partitions::Auto };
        PipelineSettings {
            records: self.records,
            content: self.content,
            partitions: self.partitions.unwrap_or(usual),
            partition_bytes_max: None,
            total_bytes: None,
            stages: self.stages.clone(),
            pools: self.pools.clone(),
            merge: self.merge.clone(),
            in_flight: self.in_flight,
            temp_limit_bytes: self.temp_limit_bytes,
            retries: self.retries,
            time_limit: self.time_limit,
            memory_bytes: self.memory_bytes,
            folder,
            command,
        }
    }
}

impl TryFrom<PipelineArgs> for PipelineConfig {
    type Error = Failure;

    fn try_from(typed: PipelineArgs) -> Result<Self, Failure> {
        let Some(output) = typed.output else {
            return Err("-o FILE is missing: a pipeline writes to a file".to_owned().into());
        };
        let inputs: Vec<_> = match &typed.inputs[..] {
            [] => vec![Input::Stdin],
            inputs => inputs.iter().map(|path| Input::named(path)).collect(),
        };
        if inputs.iter().filter(|input| **input == Input::Stdin).count() > 1 {
            return Err("-: standard input can be read once; name it once".to_owned().into());
        }
        let records = match typed.format {
            _ if typed.zero_terminated
                && !matches!(typed.format, None | Some(PieceName::Lines)) =>
            {
                return Err("-z: only --format lines has lines".to_owned().into());
            }
            None | Some(PieceName::Lines) => {
                PieceFormat::Lines { delimiter: if typed.zero_terminated { 0 } else { b'\n' } }
            }
            Some(PieceName::Fasta) => PieceFormat::Fasta,
            Some(PieceName::Fastq) => PieceFormat::Fastq,
            Some(PieceName::Fixed(bytes)) => PieceFormat::Fixed { bytes },
        };
        let partitions = typed.partitions.map(partitions);
        let merge = match typed.merge.as_deref() {
            None | Some("cat") => MergeBy::Cat,
            Some(command) => MergeBy::Command(command.to_owned()),
        };
        if typed.in_flight == Some(0) {
            return Err("--in-flight: at least 1".to_owned().into());
        }
        let report = report_file(typed.report)?;
        let (stages, pools) = stages(&typed.stages)?;
        Ok(PipelineConfig {
            inputs,
            output,
            partitions,
            report,
            quiet: typed.quiet,
            records,
            content: if typed.no_decompress { ContentKind::AsStored } else { records.content() },
            stages,
            pools,
            merge,
            in_flight: typed.in_flight,
            temp_limit_bytes: typed.temp_limit.map(|TypedSize(bytes)| bytes),
            retries: typed.retries.unwrap_or(RETRIES),
            time_limit: typed.time_limit.map(time_limit).transpose()?,
            memory_bytes: memory_bytes(typed.memory)?,
        })
    }
}

/// The division of this name.
pub(super) fn partitions(typed: PartitionsName) -> Partitions {
    match typed {
        PartitionsName::Count(count) => Partitions::Count(count),
        PartitionsName::Bytes(bytes) => Partitions::Bytes(bytes),
        PartitionsName::Auto => Partitions::Auto,
    }
}

/// The longest time of a try.
pub(super) fn time_limit(seconds: f64) -> Result<Duration, Failure> {
    let limit = Duration::try_from_secs_f64(seconds).ok();
    limit
        .filter(|limit| *limit >= Duration::from_millis(1))
        .ok_or_else(|| "--time-limit: a number of seconds, at least 0.001".to_owned().into())
}

/// The stages, each in the pool whose option comes next.
fn stages(typed: &StageArgs) -> Result<(Vec<PipelineStage>, Vec<StagePool>), Failure> {
    let mut pools: Vec<StagePool> = Vec::new();
    let mut named = Vec::new();
    for (place, text) in &typed.pools {
        let pool = pool(text)?;
        match pools.iter().find(|known| known.name == pool.name) {
            Some(known) if known.threads != pool.threads => {
                return Err(format!(
                    "--pool {text}: the pool '{}' has {} threads already",
                    pool.name, known.threads
                )
                .into());
            }
            Some(_) => {}
            None => pools.push(pool.clone()),
        }
        if !typed.stages.iter().any(|(stage, _)| stage < place) {
            return Err(format!("--pool {text}: comes after the stages that it runs").into());
        }
        named.push((*place, pool.name));
    }
    if pools.is_empty() {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        pools.push(StagePool { name: ONE_POOL.to_owned(), threads });
        named.push((usize::MAX, ONE_POOL.to_owned()));
    }
    let mut stages = Vec::new();
    for (place, text) in &typed.stages {
        let Some((name, command)) = text.split_once(':') else {
            return Err(format!("--stage '{text}': write NAME:COMMAND").into());
        };
        let pool = named.iter().find(|(pool, _)| pool > place).ok_or_else(|| {
            format!("--stage {name}: no --pool comes after it; add one, or leave out all")
        })?;
        let (name, pool) = (name.to_owned(), pool.1.clone());
        stages.push(PipelineStage { name, command: command.to_owned(), pool, keep: false });
    }
    if stages.is_empty() {
        return Err("--stage NAME:COMMAND is missing: a pipeline has at least one"
            .to_owned()
            .into());
    }
    if let Some(idle) = pools.iter().find(|pool| stages.iter().all(|stage| stage.pool != pool.name))
    {
        return Err(format!("--pool {}: no stage is in this pool", idle.name).into());
    }
    Ok((stages, pools))
}

fn pool(text: &str) -> Result<StagePool, Failure> {
    let wrong = || format!("--pool '{text}': write NAME:THREADS, such as compute:2");
    let (name, threads) = text.split_once(':').ok_or_else(wrong)?;
    let threads = threads.parse().map_err(|_| wrong())?;
    if !merganser_pipeline::is_stage_name(name) {
        return Err(format!("--pool: {}", SettingsError::Name(name.to_owned())).into());
    }
    if !(1..=THREADS_MAX).contains(&threads) {
        return Err(format!("--pool {text}: 1 to {THREADS_MAX} threads").into());
    }
    Ok(StagePool { name: name.to_owned(), threads })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::NearCommand;

    fn pools_of(words: &[&str]) -> Vec<(String, String, usize)> {
        let words = [&["pipeline", "-o", "x", "in"], words].concat();
        let NearCommand::Pipeline(typed) = config(&words) else { unreachable!() };
        let meant = PipelineConfig::try_from(typed).expect("meant");
        let threads = |pool: &str| {
            meant.pools.iter().find(|known| known.name == pool).expect("a pool").threads
        };
        let stages = meant.stages.iter();
        stages.map(|stage| (stage.name.clone(), stage.pool.clone(), threads(&stage.pool))).collect()
    }

    #[test]
    fn a_pool_runs_the_stages_before_it() {
        let of = |name: &str, pool: &str, threads| (name.to_owned(), pool.to_owned(), threads);
        let found = pools_of(&[
            "--stage", "a:x", "--pool", "p:1", "--stage", "b:y", "--stage", "c:z", "--pool", "q:2",
        ]);
        assert_eq!(found, [of("a", "p", 1), of("b", "q", 2), of("c", "q", 2)]);
        let found = pools_of(&[
            "--stage", "a:x", "--pool", "p:3", "--stage", "b:y", "--pool", "q:1", "--stage", "c:z",
            "--pool", "p:3",
        ]);
        assert_eq!(found, [of("a", "p", 3), of("b", "q", 1), of("c", "p", 3)]);
        assert_eq!(pools_of(&["--stage", "a:x:y"])[0].1, "all");
    }

    #[test]
    fn refusals_say_what_to_do() {
        let said = |words: &[&str]| refusal(&[&["pipeline", "-o", "x"], words].concat());
        assert!(refusal(&["pipeline", "--stage", "a:b"]).starts_with("-o FILE is missing"));
        assert!(said(&[]).starts_with("--stage NAME:COMMAND is missing"));
        assert_eq!(said(&["--stage", "gzip"]), "--stage 'gzip': write NAME:COMMAND");
        assert!(said(&["--stage", "a:b", "--pool", "p"]).starts_with("--pool 'p': write NAME"));
        assert_eq!(said(&["--stage", "a:b", "--pool", "p:0"]), "--pool p:0: 1 to 4096 threads");
        assert_eq!(
            said(&["--pool", "p:1", "--stage", "a:b"]),
            "--pool p:1: comes after the stages that it runs"
        );
        assert_eq!(
            said(&["--stage", "a:b", "--pool", "p:1", "--stage", "c:d"]),
            "--stage c: no --pool comes after it; add one, or leave out all"
        );
        assert_eq!(
            said(&["--stage", "a:b", "--pool", "p:1", "--pool", "q:1"]),
            "--pool q: no stage is in this pool"
        );
        let twice = ["--stage", "a:b", "--pool", "p:1", "--stage", "c:d", "--pool", "p:2"];
        assert_eq!(said(&twice), "--pool p:2: the pool 'p' has 1 threads already");
        let stage = ["--stage", "a:b"];
        for (words, sentence) in [
            (&["--time-limit", "-1"][..], "--time-limit: a number of seconds, at least 0.001"),
            (&["--time-limit", "nan"], "--time-limit: a number of seconds, at least 0.001"),
            (&["--in-flight", "0"], "--in-flight: at least 1"),
            (&["-z", "--format", "fasta"], "-z: only --format lines has lines"),
            (&["-", "-"], "-: standard input can be read once; name it once"),
            (
                &["--report", "a.txt"],
                "--report: 'a.txt' ends neither in .html, for a page, nor in .json, for data",
            ),
        ] {
            assert_eq!(said(&[&stage, words].concat()), sentence);
        }
    }
}

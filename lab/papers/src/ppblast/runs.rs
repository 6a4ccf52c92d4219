//! A database that is formatted and searched, in several ways.
//!
//! ```text
//!   whole       format ────────────► search ──────────►                         native mpiBLAST
//!   serial      format, search, format, search, ...                             partitions alone
//!   pipelined   format, format, format, ...          on the first processor     pp-mpiBLAST
//!                       search, search, search, ...  on the second one
//! ```
//! Partitions go through `merganser pipeline`. All ways search with the number of letters of the whole database,
//! so that e-values, and with them the hits, are the same.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::bed::{Bed, BedNode, ProgramTime};
use super::results::{Hits, PartitionedDatabase, ReportModel, WholeDatabase};
use super::{data, paper};
use crate::error::ExperimentError;

/// Letters of all queries together: with these, a search takes about as long as formatting.
const QUERY_LETTERS: u64 = 1400;

/// How partitions move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartitionFlow {
    /// One after the other.
    Serial,
    /// In two pools.
    Pipelined,
}

/// The searches of a bed.
pub(super) struct Runs<'a> {
    pub bed: Bed<'a>,
    /// Queries, and their letters.
    queries: u64,
    /// Ways that found something else.
    others: Vec<String>,
}

impl<'a> Runs<'a> {
    /// With queries of their own.
    pub(super) fn new(bed: Bed<'a>) -> Result<Self, ExperimentError> {
        let path = bed.path("queries.fa");
        let queries = data::write_queries(&path, QUERY_LETTERS);
        let queries = queries.map_err(|error| ExperimentError::on(&path, error))?;
        Ok(Runs { bed, queries, others: Vec::new() })
    }

    /// The options of every search.
    fn search(&self) -> String {
        // More hits than a family has members, so that no list overflows.
        format!(
            "blastp -query \"$QUERIES\" -dbsize {} -evalue 1e-5 -max_target_seqs 5000 -outfmt 6",
            self.bed.database.letters
        )
    }

    fn shell(&self, node: BedNode, script: &str) -> Command {
        let mut command = self.bed.command(node, Path::new("sh"));
        command.args(["-c", script]).env("QUERIES", self.bed.path("queries.fa"));
        command
    }

    /// The whole database, the median of the rounds.
    pub(super) fn whole(&self) -> Result<WholeDatabase, ExperimentError> {
        self.bed.median(|| self.whole_once(), |whole| whole.seconds() + whole.both_seconds())
    }

    fn whole_once(&self) -> Result<WholeDatabase, ExperimentError> {
        let folder = self.bed.path("whole");
        recreate(&folder)?;
        self.bed.forget()?;
        let script =
            "cd whole && exec makeblastdb -in - -dbtype prot -title t -out db < ../database.fa";
        let format = self.bed.time("makeblastdb", &mut self.shell(BedNode::Storage, script))?;
        let search = |node, threads: u32| {
            let options = self.search();
            let script =
                format!("cd whole && exec {options} -db db -num_threads {threads} -out ../hits");
            self.bed.time("blastp", &mut self.shell(node, &script))
        };
        let alone = search(BedNode::Compute, 1)?;
        let hits = self.hits()?;
        let both = search(BedNode::Both, 2)?;
        let ranks = self.ranks()?;
        remove(&folder)?;
        Ok(WholeDatabase { format, search: alone, both, ranks, hits })
    }

    /// Searches the two halves of a formatted database by two processes, as mpiBLAST does with its fragments.
    fn ranks(&self) -> Result<Option<(ProgramTime, Hits)>, ExperimentError> {
        if self.bed.tools.mpirun.is_none() {
            return Ok(None);
        }
        let folder = self.bed.path("halves");
        recreate(&folder)?;
        // A volume ends when its sequences have half of all letters. Formatting is that of the whole database,
        // and is not timed again.
        let half = (self.bed.database.letters * 51 / 100).max(1 << 20);
        let script = format!(
            "cd halves && exec makeblastdb -in - -dbtype prot -title t -max_file_sz {half} -out db < ../database.fa"
        );
        self.bed.time("makeblastdb", &mut self.shell(BedNode::Storage, &script))?;
        let options = self.search();
        let rank = format!(
            "i=0; for volume in db*.phr; do if [ $((i % 2)) = \"$OMPI_COMM_WORLD_RANK\" ]; then {options} -db \"${{volume%.phr}}\" -out \"hits.$i\" || exit 1; fi; i=$((i + 1)); done"
        );
        let mut mpirun = self.bed.command(BedNode::Both, Path::new("mpirun"));
        mpirun.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2"]);
        mpirun.args(["sh", "-c", &rank]).env("QUERIES", self.bed.path("queries.fa"));
        mpirun.current_dir(&folder);
        let timed = self.bed.time("mpirun", &mut mpirun)?;
        let mut hits = Hits::of(b"");
        for entry in
            fs::read_dir(&folder).map_err(|error| ExperimentError::on(&folder, error))?.flatten()
        {
            if entry.file_name().as_encoded_bytes().starts_with(b"hits.") {
                let path = entry.path();
                let text = fs::read(&path).map_err(|error| ExperimentError::on(&path, error))?;
                hits = hits.and(Hits::of(&text));
            }
        }
        remove(&folder)?;
        Ok(Some((timed, hits)))
    }

    /// Partitions, the median of the rounds.
    pub(super) fn parts(
        &self,
        count: u32,
        flow: PartitionFlow,
    ) -> Result<PartitionedDatabase, ExperimentError> {
        self.bed.median(|| self.parts_once(count, flow), |parts| parts.seconds)
    }

    fn parts_once(
        &self,
        count: u32,
        flow: PartitionFlow,
    ) -> Result<PartitionedDatabase, ExperimentError> {
        self.bed.forget()?;
        let [hits, report] = ["hits", "report.json"].map(|name| self.bed.path(name));
        // A result from before would be replaced only at the end.
        let _ = fs::remove_file(&hits);
        let on = |node| self.bed.processors_of(node);
        let format = format!(
            "format:cd {{dir}} && exec taskset --cpu-list {} makeblastdb -in - -dbtype prot -title t -out db",
            on(BedNode::Storage)
        );
        let search = format!(
            "search:cd {{format.dir}} && exec taskset --cpu-list {} {} -db db",
            on(BedNode::Compute),
            self.search()
        );
        // The pipeline itself, which cuts partitions, runs on the storage node.
        let mut command = self.bed.command(BedNode::Storage, self.bed.merganser());
        command.args(["pipeline", "--quiet", "--format", "fasta", "--retries", "0"]);
        command.args(["--partitions", &count.to_string()]);
        match flow {
            PartitionFlow::Serial => {
                command.args(["--stage", &format, "--stage", &search, "--pool", "all:1"]);
                command.args(["--in-flight", "1"]);
            }
            PartitionFlow::Pipelined => {
                command.args(["--stage", &format, "--pool", "storage:1"]);
                command.args(["--stage", &search, "--pool", "compute:1"]);
            }
        }
        command.arg("--report").arg(&report).arg("-o").arg(&hits).arg(self.bed.database_path());
        command.env("QUERIES", self.bed.path("queries.fa"));
        let timed = self.bed.time("merganser pipeline", &mut command)?;
        let said = fs::read(&report).map_err(|error| ExperimentError::on(&report, error))?;
        let said: Value = serde_json::from_slice(&said).unwrap_or_default();
        let model = ReportModel::of(&said).ok_or_else(|| ExperimentError::Program {
            program: "merganser pipeline".to_owned(),
            message: "its report has no model".to_owned(),
        })?;
        // Records that are longer than a partition make fewer partitions.
        let count =
            said["pipeline"]["partitions"].as_u64().and_then(|count| u32::try_from(count).ok());
        let count = count.unwrap_or_default();
        Ok(PartitionedDatabase { count, seconds: timed.seconds, model, hits: self.hits()? })
    }

    fn hits(&self) -> Result<Hits, ExperimentError> {
        let path = self.bed.path("hits");
        let text = fs::read(&path).map_err(|error| ExperimentError::on(&path, error))?;
        Ok(Hits::of(&text))
    }

    /// Notes which partitions found other hits than the whole search did.
    pub(super) fn compare(
        &mut self,
        whole: &WholeDatabase,
        parts: &[PartitionedDatabase],
        database: &str,
    ) {
        let ranks = whole.ranks.map(|(_, hits)| ("two ranks".to_owned(), hits));
        let parts = parts.iter().map(|parts| (format!("{} partitions", parts.count), parts.hits));
        for (name, hits) in ranks.into_iter().chain(parts).filter(|(_, hits)| *hits != whole.hits) {
            self.others.push(format!(
                "{database} in {name} gave {} lines of hits and the whole database {}; they are not the same.",
                hits.lines, whole.hits.lines
            ));
        }
    }

    /// Sentences that hold for all experiments that search.
    pub(super) fn differs(&self) -> Vec<String> {
        let mut differs = self.bed.differs();
        differs.push(format!(
            "{} queries with {QUERY_LETTERS} letters or a little more. All ways search with the number of letters of the whole database, e-values up to 1e-5 and room for 5,000 hits per query.",
            self.queries
        ));
        differs.push(match &self.bed.tools.mpirun {
            Some(version) => format!(
                "\"Two ranks\" stands for mpiBLAST: {version} runs blastp twice, each on half of the formatted database. The compute nodes of the other ways are one processor."
            ),
            None => "There is no mpirun, which stands for mpiBLAST's own search; `apt-get install openmpi-bin` installs it on Debian and Ubuntu.".to_owned(),
        });
        if self.others.is_empty() {
            differs.push("All ways found the same lines of hits.".to_owned());
        }
        differs.extend(self.others.iter().cloned());
        differs.push(paper::CONTRADICTIONS.to_owned());
        differs
    }
}

/// An empty folder in the place of what was there.
fn recreate(folder: &Path) -> Result<(), ExperimentError> {
    remove(folder)?;
    fs::create_dir(folder).map_err(|error| ExperimentError::on(folder, error))
}

fn remove(folder: &Path) -> Result<(), ExperimentError> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).map_err(|error| ExperimentError::on(folder, error))
}

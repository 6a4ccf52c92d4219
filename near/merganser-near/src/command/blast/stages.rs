//! The pipeline of a search: a partition is formatted, then searched.

use std::path::PathBuf;

use merganser_pipeline::blast::alias;
use merganser_pipeline::blast::options::BlastSearch;
use merganser_pipeline::{MergeBy, PieceFormat, PipelineSettings, PipelineStage, StagePool};
use merganser_sort::journal::CommandNote;

use super::SearchFacts;
use super::tools::{command, quoted, search, usual_batch};
use crate::config::{BlastConfig, VOLUME};

/// The stages.
pub(super) const FORMAT: &str = "format";
pub(super) const SEARCH: &str = "search";
/// A file next to where the database of a partition would be, if none of its sequences has letters.
pub(super) const NO_LETTERS: &str = "no-letters";

pub(super) fn settings(
    config: &BlastConfig,
    facts: &SearchFacts,
    folder: PathBuf,
    note: CommandNote,
) -> PipelineSettings {
    let pool = "all".to_owned();
    let stage = |name: &str, command, keep| PipelineStage {
        name: name.to_owned(),
        command,
        pool: pool.clone(),
        keep,
    };
    PipelineSettings {
        records: PieceFormat::Fasta,
        content: PieceFormat::Fasta.content(),
        partitions: config.partitions,
        partition_bytes_max: Some(config.partition_bytes_max),
        total_bytes: Some(facts.counts.bytes),
        // The formatter takes sequences from the formatted partitions.
        stages: vec![
            stage(FORMAT, format_command(config, facts), true),
            stage(SEARCH, search_command(config, facts), true),
        ],
        pools: vec![StagePool { name: pool.clone(), threads: config.jobs }],
        // The archives stay where they are, and are merged when all are there.
        merge: MergeBy::Command("cp {list} {out}".to_owned()),
        in_flight: None,
        temp_limit_bytes: config.temp_limit_bytes,
        retries: config.retries,
        time_limit: config.time_limit,
        memory_bytes: config.memory_bytes,
        folder,
        command: note,
    }
}

/// Formats a partition from standard input, and makes it count as the whole database.
fn format_command(config: &BlastConfig, facts: &SearchFacts) -> String {
    let molecule = config.search.program.database();
    let (name, suffix) = (&config.name, molecule.alias_suffix());
    let alias = alias::text(name, &[VOLUME.to_owned()], Some(facts.counts));
    let mut make =
        format!("makeblastdb -in - -dbtype {} -title {name} -out {VOLUME}", molecule.dbtype());
    if facts.counts.empty > 0 {
        // makeblastdb refuses to make a database of nothing.
        make = format!(
            "({make} 2>said || (cat said >&2; grep -q 'No sequences added' said && : >{NO_LETTERS}))"
        );
    }
    let format = format!("{make} && printf %s {} >{name}.{suffix}", quoted(&alias));
    command("{dir}", &format)
}

/// Searches a formatted partition. A comment names the queries and the version, so that a search of other queries, or by
/// another version, is not continued.
fn search_command(config: &BlastConfig, facts: &SearchFacts) -> String {
    let of = &config.search;
    let options = [
        of.options.clone(),
        ["-max_target_seqs", &of.limit.kept().to_string(), "-outfmt", "11"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let batch = usual_batch(of.program);
    let found = search(of.program, batch, &config.query_text(), &config.name, &options.concat());
    let mut search = format!("{found} -out {{out}}");
    if facts.counts.empty > 0 {
        search = format!("if test -e {NO_LETTERS}; then : >{{out}}; else {search}; fi");
    }
    let SearchFacts { version, query, .. } = facts;
    let depends = format!("# BLAST+ {version}, queries {} {:08x}", query.bytes, query.crc);
    format!("{} {depends}", command(&format!("{{{FORMAT}.dir}}"), &search))
}

/// The options of a search whose output is printed in its own form.
pub(super) fn printed_options(search: &BlastSearch) -> Vec<String> {
    let format = ["-outfmt".to_owned(), search.format.text.clone()];
    [search.options.clone(), formatter_options(search), format.to_vec()].concat()
}

/// Those that the formatter has, too.
pub(super) fn formatter_options(search: &BlastSearch) -> Vec<String> {
    [search.limit.words(), search.line_length.clone()].concat()
}

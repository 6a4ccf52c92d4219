//! The last steps of a search: the archives of all partitions become one, and that becomes the output.
//!
//! They are done in a folder of this process, so a process that was killed in them leaves nothing that another one takes
//! for its own. If they are interrupted, the next process does them again.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use merganser_pipeline::blast::alias;
use merganser_pipeline::blast::archive::{self, ArchiveError, Merged, PartitionArchives};
use merganser_pipeline::blast::frame;
use merganser_pipeline::blast::mark::FileMark;
use merganser_pipeline::blast::program::Molecule;
use merganser_results::pipeline::{JOURNAL_NAME, PARTS_NAME, PipelineEvent, PipelineRecord};
use merganser_results::stopped::Cancellation;
use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;
use merganser_shell::{failure, progress};

use super::stages::{FORMAT, NO_LETTERS, SEARCH, formatter_options, printed_options};
use super::tools::{quoted, run, search, unknown, usual_batch};
use super::{SearchFacts, at_once};
use crate::config::{BlastConfig, VOLUME};

/// Archives that are merged at once; more are merged in several steps.
const FAN_IN: usize = 200;
/// Bytes of the buffer of a file.
const BUFFER_BYTES: usize = 64 << 10;
/// The database of the frame.
const FRAME: &str = "frame";
/// Its archives, one for each query.
const FRAMES: &str = "frames";
/// The sentence about an answer of another shape.
const NO_COUNTS: &str = "blastdbcmd -info: does not say the counts of the database";
/// The archive of all partitions.
const WHOLE: &str = "whole";

/// Merges the archives of all partitions, and writes the output into `partial`.
pub(super) fn finish(
    config: &BlastConfig,
    facts: &SearchFacts,
    (work, partial): (&Path, &Path),
    cancel: &Cancel,
) -> Result<(), Failure> {
    let progress = progress::on_stderr(config.quiet, cancel);
    let folder = Own::make(work.join(PARTS_NAME))?;
    let partitions = partitions_of(work)?;
    let partitions = with_letters(config, facts, &folder, &partitions, cancel)?;
    progress.phase("searching without a database", None);
    let (framed, linked) = at_once(
        || make_frame(config, facts, &folder, cancel),
        || link_whole(config, facts, &folder, &partitions, cancel),
    )?;
    linked?;
    framed?;
    progress.phase("merging the hits of all partitions", None);
    let merged = merge(config, &folder, &partitions, cancel)?;
    tell_exceptions(config, &merged);

    progress.phase("formatting the output", None);
    // All searches have read the queries.
    let query =
        FileMark::of_path(&config.query).map_err(|error| Failure::on(&config.query, &error))?;
    if query != facts.query {
        return Err(
            format!("{}: was changed while it was searched for", config.query_text()).into()
        );
    }
    let words = [
        formatter_options(&config.search),
        vec!["-outfmt".into(), config.search.format.text.clone()],
    ];
    let words: String = words.concat().iter().map(|word| format!(" {}", quoted(word))).collect();
    run(&folder.path, &format!("blast_formatter -archive {WHOLE}{words} -out formatted"), cancel)?;
    fill(config, &folder, partial)
}

/// The folder of this process in the folder of partitions; removed with all that is in it.
struct Own {
    parts: PathBuf,
    path: PathBuf,
}

impl Own {
    fn make(parts: PathBuf) -> Result<Self, Failure> {
        let on_parts = |error: io::Error| Failure::on(&parts, &error);
        for entry in fs::read_dir(&parts).map_err(on_parts)? {
            let entry = entry.map_err(on_parts)?;
            if entry.file_name().as_encoded_bytes().starts_with(b"finish.") {
                // The programs of a process that was killed a moment ago may still write there.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let path = parts.join(format!("finish.{}.new", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Failure::on(&path, &error))?;
        Ok(Own { parts, path })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes those of the files that are in this folder, to save space.
    fn remove(&self, files: &[(PathBuf, u64)]) {
        for (path, _) in files.iter().filter(|(path, _)| path.starts_with(&self.path)) {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // The folder of partitions is removed soon, or by the next command.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The sequences of each partition.
fn partitions_of(work: &Path) -> Result<Vec<u64>, Failure> {
    let path = work.join(JOURNAL_NAME);
    let bytes = fs::read(&path).map_err(|error| Failure::on(&path, &error))?;
    let record = PipelineRecord::decode(&path.display().to_string(), &bytes)?;
    let sequences = record.events.iter().filter_map(|event| match event {
        PipelineEvent::Cut(cut) => Some(cut.records),
        _ => None,
    });
    Ok(sequences.collect())
}

/// A partition with letters.
struct Searched {
    /// Its number.
    k: usize,
    /// Its sequences that have letters.
    sequences: u64,
}

/// The partitions that were searched, with the sequences that makeblastdb took of each.
fn with_letters(
    config: &BlastConfig,
    facts: &SearchFacts,
    folder: &Own,
    partitions: &[u64],
    cancel: &Cancel,
) -> Result<Vec<Searched>, Failure> {
    let numbered = partitions.iter().copied().enumerate();
    if facts.counts.empty == 0 {
        return Ok(numbered.map(|(k, sequences)| Searched { k, sequences }).collect());
    }
    let dbtype = config.search.program.database().dbtype();
    let mut found = Vec::new();
    for (k, _) in numbered {
        let place = format!("{k:06}.{FORMAT}");
        if folder.parts.join(&place).join(NO_LETTERS).exists() {
            continue;
        }
        let words = format!("blastdbcmd -db ../{place}/{VOLUME} -dbtype {dbtype} -info");
        let said = run(&folder.path, &words, cancel)?;
        let (sequences, _) = counts_in(&String::from_utf8_lossy(&said.printed))
            .ok_or_else(|| NO_COUNTS.to_owned())?;
        found.push(Searched { k, sequences });
    }
    Ok(found)
}

/// Makes the database of all partitions, under its name, and compares its counts with those that the searches used.
fn link_whole(
    config: &BlastConfig,
    facts: &SearchFacts,
    folder: &Own,
    partitions: &[Searched],
    cancel: &Cancel,
) -> Result<(), Failure> {
    let molecule = config.search.program.database();
    let volumes: Vec<_> =
        partitions.iter().map(|of| format!("../{:06}.{FORMAT}/{VOLUME}", of.k)).collect();
    write_alias(folder, &config.name, molecule, &alias::text(&config.name, &volumes, None))?;
    let words = format!("blastdbcmd -db {} -dbtype {} -info", config.name, molecule.dbtype());
    let said = run(&folder.path, &words, cancel)?;
    let found = counts_in(&String::from_utf8_lossy(&said.printed));
    let (sequences, letters) = (facts.counts.with_letters(), facts.counts.letters);
    match found {
        Some(found) if found == (sequences, letters) => Ok(()),
        Some((found, found_letters)) => Err(format!(
            "-db: makeblastdb found {found} sequences of {found_letters} letters, and {sequences} of {letters} were counted before the search; e-values would be wrong, so there is no output"
        )
        .into()),
        None => Err(NO_COUNTS.to_owned().into()),
    }
}

fn write_alias(folder: &Own, name: &str, molecule: Molecule, text: &str) -> Result<(), Failure> {
    let path = folder.at(&format!("{name}.{}", molecule.alias_suffix()));
    fs::write(&path, text).map_err(|error| Failure::on(&path, &error))
}

/// `3,606 sequences; 20,486,792 total bases`.
fn counts_in(text: &str) -> Option<(u64, u64)> {
    let number = |text: &str| text.trim().replace(',', "").parse().ok();
    let (before, after) = text.split_once(" sequences; ")?;
    let letters = after.split_once(" total ")?.0;
    let sequences = before.rsplit(char::is_whitespace).next()?;
    Some((number(sequences)?, number(letters)?))
}

/// Merges the archives of all partitions, in several steps if they are many.
fn merge(
    config: &BlastConfig,
    folder: &Own,
    partitions: &[Searched],
    cancel: &Cancel,
) -> Result<Merged, Failure> {
    let mut first = 0;
    let mut files: Vec<(PathBuf, u64)> = Vec::new();
    for Searched { k, sequences } in partitions {
        files.push((folder.parts.join(format!("{k:06}.{SEARCH}/out")), first));
        first += sequences;
    }
    let (most, kept) = (config.search.limit.subjects(), config.search.limit.kept());
    let (mut all, mut steps) = (Merged::default(), 0);
    // Only the first round sees what a partition alone has.
    let mut full = kept;
    while files.len() > FAN_IN {
        let mut joined = Vec::new();
        for group in files.chunks(FAN_IN) {
            steps += 1;
            let path = folder.at(&format!("step-{steps}"));
            let merged = merge_files(group, (most, full), None, &path, cancel)?;
            folder.remove(group);
            all.filled.extend(merged.filled);
            all.overflowed.extend(merged.overflowed);
            all.unclear.extend(merged.unclear);
            joined.push((path, 0));
        }
        full = usize::MAX;
        files = joined;
    }
    let frames = config.search.format.form.shows_masks().then(|| folder.at(FRAME).join(FRAMES));
    let last = merge_files(&files, (most, full), frames.as_deref(), &folder.at(WHOLE), cancel)?;
    folder.remove(&files);
    all.filled.extend(last.filled);
    all.overflowed.extend(last.overflowed);
    all.unclear.extend(last.unclear);
    Ok(all)
}

fn merge_files(
    files: &[(PathBuf, u64)],
    (most, full): (usize, usize),
    frames: Option<&Path>,
    out: &Path,
    cancel: &Cancel,
) -> Result<Merged, Failure> {
    let mut parts = Vec::new();
    for (path, first) in files {
        parts.push(PartitionArchives { reader: open(path)?, first: *first });
    }
    let frames = frames.map(open).transpose()?;
    let file = File::create(out).map_err(|error| Failure::on(out, &error))?;
    let mut writer = Cancellable { out: BufWriter::with_capacity(BUFFER_BYTES, file), cancel };
    let merged = archive::merge(parts, most, full, frames, &mut writer);
    let merged = merged.and_then(|merged| Ok(writer.flush().map(|()| merged)?));
    merged.map_err(|error| match error {
        ArchiveError::Io(error) => Failure::on(out, &error),
        error => format!("the results of the partitions can't be merged: {error}").into(),
    })
}

fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let file = File::open(path).map_err(|error| Failure::on(path, &error))?;
    Ok(BufReader::with_capacity(BUFFER_BYTES, file))
}

/// A file that is no longer written once the end is asked for.
struct Cancellable<'a, W> {
    out: W,
    cancel: &'a Cancel,
}

impl<W: Write> Write for Cancellable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.cancel.check()?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Says for how many queries the output may differ from that of one search.
fn tell_exceptions(config: &BlastConfig, merged: &Merged) {
    let limit = config.search.limit.subjects();
    let of = |count: usize| {
        if count == 1 { "1 query has".to_owned() } else { format!("{count} queries have") }
    };
    if !merged.overflowed.is_empty() {
        failure::notice(&format!(
            "{} more than {limit} subjects; the output has the best {limit} of all partitions, where a search in one piece may miss some",
            of(merged.overflowed.len())
        ));
    }
    if !merged.filled.is_empty() {
        let kept = config.search.limit.kept();
        failure::notice(&format!(
            "{} {kept} subjects or more in one partition, and BLAST itself chose {kept} of them; a larger -max_target_seqs, or more --partitions, lets it choose from fewer",
            of(merged.filled.len())
        ));
    }
    if !merged.unclear.is_empty() {
        failure::notice(&format!(
            "{} hits on both strands with equal scores; the e-values of the strands may differ behind the digits that BLAST writes, and then one search prints them in another order",
            of(merged.unclear.len())
        ));
    }
}

/// Makes the output of the same search without hits, and passes on what BLAST warns about.
fn make_frame(
    config: &BlastConfig,
    facts: &SearchFacts,
    folder: &Own,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let of = &config.search;
    let molecule = of.program.database();
    let database = folder.at(FRAME);
    let on_database = |error: io::Error| Failure::on(&database, &error);
    DirBuilder::new().mode(0o700).create(&database).map_err(on_database)?;
    fs::write(database.join("frame.fa"), unknown(molecule)).map_err(on_database)?;
    let format = format!(
        "makeblastdb -in frame.fa -dbtype {} -title {} -out {VOLUME}",
        molecule.dbtype(),
        config.name
    );
    run(&database, &format, cancel)?;
    let alias = alias::text(&config.name, &[VOLUME.to_owned()], Some(facts.counts));
    let path = database.join(format!("{}.{}", config.name, molecule.alias_suffix()));
    fs::write(&path, alias).map_err(on_database)?;
    let query = config.query_text();
    let batch = usual_batch(of.program);
    let words = search(of.program, batch, &query, &config.name, &printed_options(of));
    let said = run(&database, &format!("{words} -out printed-frame"), cancel)?;
    for line in String::from_utf8_lossy(&said.warned).lines().filter(|line| !line.trim().is_empty())
    {
        failure::notice(line.trim());
    }
    if of.format.form.shows_masks() {
        // A batch per query.
        let options = [of.options.clone(), ["-outfmt", "11"].map(str::to_owned).to_vec()].concat();
        let words = search(of.program, Some(1), &query, &config.name, &options);
        run(&database, &format!("{words} -out {FRAMES}"), cancel)?;
    }
    Ok(())
}

/// Puts the hits into the frame.
fn fill(config: &BlastConfig, folder: &Own, partial: &Path) -> Result<(), Failure> {
    let mut frame = open(&folder.at(FRAME).join("printed-frame"))?;
    let mut formatted = open(&folder.at("formatted"))?;
    let out = folder.at("output");
    let on_out = |error: io::Error| Failure::on(&out, &error);
    let file = File::create(&out).map_err(on_out)?;
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, file);
    let command = config.search.typed.join(" ");
    let form = config.search.format.form;
    let filled = frame::fill(form, &mut frame, &mut formatted, &command, &mut writer);
    filled.map_err(|error| match error {
        frame::OutputFrameError::Io(error) => Failure::on(&out, &error),
        error => format!(
            "-outfmt {}: {error}; no test has shown how BLAST prints this, so there is no output; another -outfmt may do",
            config.search.format.text
        )
        .into(),
    })?;
    let file = writer.into_inner().map_err(|error| on_out(error.into_error()))?;
    file.sync_all().map_err(on_out)?;
    fs::rename(&out, partial).map_err(on_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_what_blastdbcmd_says() {
        let said = "Database: nt\n\t3,606 sequences; 20,486,792 total bases\n\nDate: Nov 23";
        assert_eq!(counts_in(said), Some((3606, 20_486_792)));
        assert_eq!(counts_in("nothing"), None);
    }
}

//! The settings of `merganser array`.

use std::path::PathBuf;

use merganser_array::{Hash, MEMORY_BYTES_MIN, Migration, OpenOptions, VolumeSettings};
use merganser_shell::args::{MigrationName, TypedSize};
use merganser_shell::config::{DoorConfig, NbdConfig};
use merganser_shell::failure::Failure;

use crate::args::{
    ArrayArgs, ArrayCheckArgs, ArrayCommand, ArrayCreateArgs, ArrayInfoArgs, ArrayReportArgs,
    ArraySalvageArgs, ArrayServeArgs, HashName,
};

/// The least buffer that is made unasked, in bytes, and its share of the volume.
const BUFFER_BYTES_MIN: u64 = 64 << 20;
const BUFFER_SHARE: u64 = 16;

/// The task of `merganser array`.
#[derive(Debug)]
pub(crate) enum ArrayConfig {
    /// Make a volume.
    Create(ArrayCreate),
    /// Serve one.
    Serve(ArrayServe),
    /// Verify one.
    Check(ArrayCheckArgs, OpenOptions),
    /// Copy what is good of a damaged one.
    Salvage(ArraySalvageArgs),
    /// Describe one.
    Info(ArrayInfoArgs),
    /// Print the counts of one.
    Report(ArrayReportArgs),
}

/// A volume that is to be made.
#[derive(Debug)]
pub(crate) struct ArrayCreate {
    /// The file that will describe it.
    pub volume: PathBuf,
    /// Its data members.
    pub data: Vec<PathBuf>,
    /// Its buffer members.
    pub buffer: Vec<PathBuf>,
    /// The settings of the new volume.
    pub settings: VolumeSettings,
    /// Bytes of a data member that is made; `None` for what the volume needs.
    pub data_member_bytes: Option<u64>,
    /// Bytes of a buffer member that is made.
    pub buffer_member_bytes: u64,
    /// Whether data members may have holes.
    pub sparse: bool,
    /// Whether members may hold something.
    pub replace: bool,
    /// Whether no progress is shown.
    pub quiet: bool,
}

/// A volume that is to be served.
#[derive(Debug)]
pub(crate) struct ArrayServe {
    /// The file that describes it.
    pub volume: PathBuf,
    /// How programs reach it.
    pub door: DoorConfig,
    /// How it works.
    pub options: OpenOptions,
}

impl TryFrom<ArrayArgs> for ArrayConfig {
    type Error = Failure;

    fn try_from(typed: ArrayArgs) -> Result<Self, Failure> {
        Ok(match typed.command {
            ArrayCommand::Create(typed) => ArrayConfig::Create(create(typed)?),
            ArrayCommand::Serve(typed) => ArrayConfig::Serve(serve(typed)?),
            ArrayCommand::Check(typed) => {
                let memory_bytes = memory(typed.memory)?;
                let migration = Migration::HighWater;
                ArrayConfig::Check(
                    typed,
                    OpenOptions { memory_bytes, migration, ..OpenOptions::default() },
                )
            }
            ArrayCommand::Salvage(typed) => ArrayConfig::Salvage(salvage(typed)?),
            ArrayCommand::Info(typed) => ArrayConfig::Info(typed),
            ArrayCommand::Report(typed) => ArrayConfig::Report(report(typed)?),
        })
    }
}

/// When pages move.
fn migration(typed: MigrationName) -> Migration {
    match typed {
        MigrationName::Idle => Migration::Idle,
        MigrationName::Immediate => Migration::Immediate,
        MigrationName::HighWater => Migration::HighWater,
    }
}

fn memory(TypedSize(bytes): TypedSize) -> Result<u64, Failure> {
    match bytes {
        MEMORY_BYTES_MIN.. => Ok(bytes),
        _ => Err(format!("--memory: at least {}", TypedSize(MEMORY_BYTES_MIN)).into()),
    }
}

fn chunk(flag: &str, TypedSize(bytes): TypedSize) -> Result<u32, Failure> {
    match u32::try_from(bytes) {
        Ok(chunk @ 4096..=0x400_0000) if chunk.is_multiple_of(4096) => Ok(chunk),
        _ => Err(format!("{flag}: from 4096 bytes to 64M, in pages of 4096").into()),
    }
}

/// The image and its list are two files.
fn salvage(typed: ArraySalvageArgs) -> Result<ArraySalvageArgs, Failure> {
    match &typed.report {
        Some(path) if path.extension().is_none_or(|extension| extension != "json") => {
            Err(format!("--report: '{}' does not end in .json", path.display()).into())
        }
        Some(path) if *path == typed.output => {
            Err("--report and -o name the same file; give each its own".to_owned().into())
        }
        _ => Ok(typed),
    }
}

/// A page replaces the file of its name, which must not be a member or a description by mistake.
fn report(typed: ArrayReportArgs) -> Result<ArrayReportArgs, Failure> {
    match &typed.page {
        Some(path) if path.extension().is_none_or(|extension| extension != "html") => {
            Err(format!("--page: '{}' does not end in .html", path.display()).into())
        }
        _ => Ok(typed),
    }
}

fn create(typed: ArrayCreateArgs) -> Result<ArrayCreate, Failure> {
    let TypedSize(size) = typed.size;
    if size == 0 || !size.is_multiple_of(4096) {
        return Err(format!("--size: a multiple of 4096 bytes, not {size}").into());
    }
    let mut seen = Vec::new();
    for member in typed.data.iter().chain(&typed.buffer) {
        if seen.contains(&member) {
            return Err(format!("{}: is given twice", member.display()).into());
        }
        seen.push(member);
    }
    let settings = VolumeSettings {
        size,
        chunk_bytes: chunk("--chunk", typed.chunk)?,
        buffer_chunk_bytes: chunk("--buffer-chunk", typed.buffer_chunk)?,
        dedup: match (typed.no_dedup, typed.hash) {
            (true, _) => None,
            (false, HashName::Blake3) => Some(Hash::Blake3),
            (false, HashName::Sha1) => Some(Hash::Sha1),
        },
        compare: typed.compare || !typed.trust_hash,
        thin: typed.thin,
        journal_bytes: None,
    };
    let buffer_bytes =
        typed.buffer_size.map_or((size / BUFFER_SHARE).max(BUFFER_BYTES_MIN), |size| size.0);
    if typed.thin && typed.data_size.is_none() && typed.data.iter().any(|member| !member.exists()) {
        return Err("--thin: give --data-size, too, or members that are there".to_owned().into());
    }
    let each = |bytes: u64, members: usize| bytes.div_ceil(members.max(1) as u64);
    Ok(ArrayCreate {
        data_member_bytes: typed.data_size.map(|size| each(size.0, typed.data.len())),
        buffer_member_bytes: each(buffer_bytes, typed.buffer.len()),
        volume: typed.volume,
        data: typed.data,
        buffer: typed.buffer,
        settings,
        sparse: typed.sparse,
        replace: typed.replace,
        quiet: typed.quiet,
    })
}

fn serve(typed: ArrayServeArgs) -> Result<ArrayServe, Failure> {
    let door = match (typed.mount, typed.nbd) {
        (_, Some(nbd)) => DoorConfig::Nbd(NbdConfig::new(&nbd, &typed.protection)?),
        (Some(mountpoint), None) => {
            DoorConfig::Mount { mountpoint, allow_other: typed.allow_other }
        }
        (None, None) => return Err("one of --nbd and --mount is needed".to_owned().into()),
    };
    if !(1..=100).contains(&typed.high_water) {
        return Err(format!("--high-water: from 1 to 100 percent, not {}", typed.high_water).into());
    }
    let options = OpenOptions {
        memory_bytes: memory(typed.memory)?,
        high_water_percent: typed.high_water,
        migration: migration(typed.migration),
        durable_writes: !typed.write_back,
    };
    Ok(ArrayServe { volume: typed.volume, door, options })
}

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;

    #[test]
    fn refusals_name_the_flag() {
        let create = ["array", "create", "v.json", "--data", "a,b", "--buffer", "c"];
        let refused = |more: &[&str]| refusal(&[&create, more].concat());
        assert_eq!(refused(&["--size", "5000"]), "--size: a multiple of 4096 bytes, not 5000");
        assert!(refused(&["--size", "1M", "--chunk", "5"]).starts_with("--chunk: from 4096"));
        assert!(refused(&["--size", "1M", "--thin"]).starts_with("--thin: give --data-size"));
        assert_eq!(refused(&["--size", "1M", "--data", "c"]), "c: is given twice");
        let serve = ["array", "serve", "v.json", "--nbd", "s"];
        let refused = |more: &[&str]| refusal(&[&serve, more].concat());
        assert!(refused(&["--high-water", "0"]).starts_with("--high-water: from 1"));
        assert_eq!(refused(&["--memory", "1K"]), "--memory: at least 1M");
        let report = ["array", "report", "v.json", "--page", "v.json"];
        assert_eq!(refusal(&report), "--page: 'v.json' does not end in .html");
    }
}

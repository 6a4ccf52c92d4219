//! `merganser array`, as typed.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use merganser_shell::args::{MigrationName, NbdArgs, TypedSize};

/// Make and serve a volume of hard disks and SSDs that stores equal pages once
///
/// Writes go to a log on the hard disks (the buffer) and move to the SSDs (the data members) later, in
/// whole stripes, without the pages that are stored there already. Flushed data survives kill -9 and
/// power cuts. Members are files or block devices; a file that describes the volume names them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser array create vol.json --buffer hdd0,hdd1 --data ssd0,ssd1 --size 32G
  merganser array serve vol.json --nbd vol.sock &
  nbdcopy disk.img 'nbd+unix:///?socket=vol.sock'
  merganser array check vol.json")]
pub(crate) struct ArrayArgs {
    /// What to do
    #[command(subcommand)]
    pub command: ArrayCommand,
}

/// The subcommands of `array`.
#[derive(Debug, Subcommand)]
pub(crate) enum ArrayCommand {
    Create(ArrayCreateArgs),
    Serve(ArrayServeArgs),
    Check(ArrayCheckArgs),
    Salvage(ArraySalvageArgs),
    /// Describe a volume
    ///
    /// Size, members, deduplication, space, and whether it was closed in order. While it is served, space
    /// of the data members is that of the last checkpoint.
    Info(ArrayInfoArgs),
    Report(ArrayReportArgs),
}

/// Make a volume
///
/// A member that isn't there is made as a file of the size that the volume needs, and its space is
/// reserved: other files that fill the file system later can't fail the volume's writes. A buffer
/// member is also filled with zeros, so that its writes are sequential. Members that exist are refused
/// unless --replace is given; their content is then lost.
#[derive(Debug, Args)]
pub(crate) struct ArrayCreateArgs {
    /// The file that will describe the volume; paths in it are relative to it
    #[arg(value_name = "FILE")]
    pub volume: PathBuf,

    /// The data members (SSDs), in order
    #[arg(long, value_name = "FILE,...", value_delimiter = ',', required = true)]
    pub data: Vec<PathBuf>,

    /// The buffer members (hard disks), in order
    #[arg(
        long,
        value_name = "FILE,...",
        value_delimiter = ',',
        required_unless_present = "no_buffer"
    )]
    pub buffer: Vec<PathBuf>,

    /// Without a buffer: writes go to the data members at once
    #[arg(long, conflicts_with = "buffer")]
    pub no_buffer: bool,

    /// Bytes of the volume, a multiple of 4096
    #[arg(long, value_name = "SIZE")]
    pub size: TypedSize,

    /// Bytes of all data members together that are made as files [default: what the volume needs]
    #[arg(long, value_name = "SIZE")]
    pub data_size: Option<TypedSize>,

    /// Bytes of all buffer members together that are made as files [default: a sixteenth of the volume,
    /// at least 64M]
    #[arg(long, value_name = "SIZE")]
    pub buffer_size: Option<TypedSize>,

    /// Allow the volume to be larger than its data members: they can then become full
    #[arg(long)]
    pub thin: bool,

    /// Leave holes in the data members: a new one takes no space until pages move there
    ///
    /// Other files can then take that space. If the file system becomes full, the volume refuses all writes and can't
    /// be opened again until there is room
    #[arg(long)]
    pub sparse: bool,

    /// Store equal pages as often as they are written
    #[arg(long, conflicts_with_all = ["hash", "compare", "trust_hash"])]
    pub no_dedup: bool,

    /// The hash that finds equal pages
    #[arg(long, value_enum, default_value_t = HashName::Blake3)]
    pub hash: HashName,

    /// Share stored pages whose hash is equal without reading them first. Then pages that only have the same
    /// hash become one, and a page that is written again after its stored page was damaged is lost again
    #[arg(long)]
    pub trust_hash: bool,

    /// Compare the bytes of pages whose hashes are equal: this is the default now
    #[arg(long, hide = true, conflicts_with = "trust_hash")]
    pub compare: bool,

    /// Consecutive bytes on one data member
    #[arg(long, value_name = "SIZE", default_value = "512K")]
    pub chunk: TypedSize,

    /// Consecutive bytes on one buffer member
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    pub buffer_chunk: TypedSize,

    /// Use members that hold something; it is lost
    #[arg(long)]
    pub replace: bool,

    /// Show no progress bar
    #[arg(long)]
    pub quiet: bool,
}

/// A hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HashName {
    /// BLAKE3, cut to 160 bits
    Blake3,
    /// SHA-1, for which pages with equal hashes can be made on purpose
    Sha1,
}

/// Serve a volume to NBD clients, or show it as a file, to read and to write
///
/// Clients of NBD may flush, trim, write zeros and use FUA, over several connections. With --mount, the
/// volume is a file of its size that programs, a loop device or a virtual machine can use: fsync flushes
/// it, and a punched hole trims. The command runs until it is interrupted or the folder is unmounted,
/// and then closes the volume. One process at a time can serve a volume.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("door").required(true).args(["nbd", "mount"])))]
#[command(after_help = "\
Examples:
  merganser array serve vol.json --nbd vol.sock
  nbd-client -unix vol.sock /dev/nbd0 && mkfs.ext4 /dev/nbd0      a file system on it, as root
  nbdfuse disk nbd+unix:///?socket=vol.sock                       the volume as a file, without root
  # the same without NBD, and a file system on it, as root
  merganser array serve vol.json --mount /mnt/vol &
  losetup --find --show --direct-io=on /mnt/vol/volume      then: mkfs.ext4, and mount /dev/loop0")]
pub(crate) struct ArrayServeArgs {
    /// The file that describes the volume
    #[arg(value_name = "FILE")]
    pub volume: PathBuf,

    /// Listen here: at a socket in the file system, which only this user can open, or at a TCP port, open
    /// to any program of this machine. Port 0 is a free one; the address is printed
    #[arg(long, value_name = "SOCKET|HOST:PORT")]
    pub nbd: Option<String>,

    #[command(flatten)]
    pub protection: NbdArgs,

    /// Show the volume as the file DIR/volume; DIR is an existing empty folder
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,

    /// Let other users use the file too
    #[arg(long, requires = "mount")]
    pub allow_other: bool,

    /// Memory for maps, fingerprints and the directory of the buffer; each connection takes up to 2 MiB
    /// beyond it
    #[arg(short = 'S', long, value_name = "SIZE", default_value = "64M")]
    pub memory: TypedSize,

    /// When pages move from the buffer to the data members
    #[arg(long, value_enum, default_value_t = MigrationName::Idle)]
    pub migration: MigrationName,

    /// Share of the buffer, in percent, above which writes wait until pages have moved. With --write-back and
    /// --migration idle, they go to the data members at once
    #[arg(long, value_name = "PERCENT", default_value_t = 75)]
    pub high_water: u32,

    /// Answer a write when it is in memory, as a disk with a write cache does
    ///
    /// Faster, and enough for clients that flush, such as file systems and databases. A killed server and a
    /// power cut then lose writes that were answered and not flushed. Without this option they lose none
    #[arg(long)]
    pub write_back: bool,
}

/// Verify a volume that is not served
///
/// Reads every page, and compares every map and reference count. It writes, too: it opens the volume as `serve`
/// does, which repeats the journal, and makes a damaged copy of a label or superblock like the good one. Exits 1
/// when data or maps are damaged.
#[derive(Debug, Args)]
pub(crate) struct ArrayCheckArgs {
    /// The file that describes the volume
    #[arg(value_name = "FILE")]
    pub volume: PathBuf,

    /// Memory for maps and fingerprints
    #[arg(short = 'S', long, value_name = "SIZE", default_value = "64M")]
    pub memory: TypedSize,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Show no progress bar
    #[arg(long)]
    pub quiet: bool,
}

/// Copy the good pages of a damaged volume into an image
///
/// For a volume that 'serve' and 'check' refuse: a page is copied if its own blocks and the ones that name it are good.
/// A page that is lost becomes zeros. A page may be old if a block is missing that could have had a newer version of it.
/// Nothing is written to the members. A volume that is served or checked is refused, and salvage keeps it from being
/// served meanwhile. Exits 1 when the image is partial.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser array salvage vol.json -o disk.img --report pages.json")]
pub(crate) struct ArraySalvageArgs {
    /// The file that describes the volume
    #[arg(value_name = "FILE")]
    pub volume: PathBuf,

    /// The image: all bytes of the volume
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Write a list of the pages that are lost or may be old, and of the damaged blocks
    #[arg(long, value_name = "FILE.json")]
    pub report: Option<PathBuf>,

    /// Show no progress bar
    #[arg(long)]
    pub quiet: bool,
}

/// A volume, and the form of what is printed.
#[derive(Debug, Args)]
pub(crate) struct ArrayInfoArgs {
    /// The file that describes the volume
    #[arg(value_name = "FILE")]
    pub volume: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Print the counts of a volume
///
/// Pages read and written, duplicates, write and read amplification and P/E cycles saved, since the
/// volume was made, and space. While it is served, as of the last checkpoint.
#[derive(Debug, Args)]
pub(crate) struct ArrayReportArgs {
    /// The file that describes the volume
    #[arg(value_name = "FILE")]
    pub volume: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Write a page with plots to FILE
    #[arg(long, value_name = "FILE.html")]
    pub page: Option<PathBuf>,
}

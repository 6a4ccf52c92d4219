//! `merganser reproduce`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use merganser_shell::args::TypedSize;

/// Repeat an experiment of the papers on this machine and compare the figures
///
/// Prints a table of paper, ours and ratio (ours over the paper's), and what differs from the
/// paper's machine. Every call measures again; no result is kept.
///
/// The data of triton-disk goes into a folder in --dir that is removed. Experiments that run whole processes
/// (gray-sort, minute-sort, triton-efficiency, mcsd-..., ppblast-...) are in a checkout: lab/bench/reproduce.py.
///
/// activesort-throughput, activesort-sort and activesort-channels run on a modelled SSD in virtual time:
/// their figures are the same on every machine. So do isc-...; their one figure of an SSDlet on the host is
/// measured here.
#[derive(Debug, Args)]
#[command(
    override_usage = "merganser reproduce [OPTIONS] <NAME>\n       merganser reproduce --list"
)]
#[command(after_help = "\
Examples:
  # which experiments there are
  merganser reproduce --list
  # Tables 8 and 9, all sizes, with a plot
  merganser reproduce triton-internal-sort --plot sort.svg
  # Tables 10 and 11 on a disk, three numbers of files
  merganser reproduce triton-disk --dir /mnt/hdd --files 1,64,512 --size 8GB
  # one size, three rounds
  merganser reproduce triton-internal-sort --size 800MB --rounds 3
  # Figure 8 of ActiveSort, on a modelled SSD
  merganser reproduce activesort-throughput --plot figure8.svg
  # the same with twice the channels
  merganser reproduce activesort-throughput --set channels=8
  # the same merge on another SSD
  merganser reproduce activesort-throughput --device 830
  # HcDD with flash that takes twice as long to program
  merganser reproduce hcdd-time --set program_ns=400us")]
pub(crate) struct ReproduceArgs {
    /// The experiment
    #[arg(value_parser = experiment_names(), required_unless_present = "list")]
    pub name: Option<String>,

    /// List the experiments
    #[arg(long, conflicts_with = "name")]
    pub list: bool,

    /// Bytes of data: of the buffer (triton-internal-sort, all the paper's sizes without it), of all files together
    /// (triton-disk), or of any one workload at most (ssd-validate, ssd-buffer: all of the paper without it) [default:
    /// 1GB; activesort-sort 2 GiB, the other two 128 MiB a point; isc-... 64 MiB, a split]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<TypedSize>,

    /// Measure this many times and take the median (triton-internal-sort: the mean, as
    /// the paper does) [default: 5; triton-disk 1]
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,

    /// Run activesort-... on this modelled SSD, and not on the paper's: jasmine, nvme, isc, 830 or tlc
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,

    /// Change a parameter of the modelled SSDs of activesort-..., hcdd-..., isc-... or ssd-buffer; repeat for more.
    /// `simulate --list=DEVICE` lists them: the devices are jasmine, msr (hcdd-... and ssd-buffer) and isc
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Numbers of files for triton-disk [default: the paper's, 1, 2, 4 and so on to 512]
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub files: Vec<usize>,

    /// Put data here: the disk that is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,

    /// Let triton-disk's writers use this much memory for what waits [default: a sixteenth of the data]
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<TypedSize>,

    /// Write all figures to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw them into FILE, as SVG
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,

    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

/// Accepts the names of all experiments.
fn experiment_names() -> PossibleValuesParser {
    let named = |experiment: &merganser_papers::Experiment| {
        PossibleValue::new(experiment.name).help(experiment.about)
    };
    merganser_papers::list().iter().map(named).collect::<Vec<_>>().into()
}

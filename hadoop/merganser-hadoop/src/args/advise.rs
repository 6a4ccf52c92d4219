//! `merganser hadoop advise`.

use std::path::PathBuf;

use clap::Args;
use merganser_shell::args::TypedSize;

/// When map tasks of this node should leave their merge to the fetch, or settings for a job
///
/// Takes some 20 seconds and up to 272 MiB in a folder below DIR, which is removed. Measures how fast
/// the disk writes and reads, what a seek takes, and how fast spills of records from 32 bytes to 32 KiB
/// are merged, 2 to 64 at once. It then prints the sizes above which a deferred merge costs less than it
/// saves, the reason, and the properties for mapred-site.xml. A deferred merge saves writing and reading
/// the merged copy. It costs a seek and some work for each segment, and one fetch in ten is repeated and
/// merges again. Run it while the node is idle.
///
/// With --job, it looks for io.sort.mb, io.sort.factor, dfs.blocksize and whether to defer for a job of
/// that many bytes, with a small model of Hadoop's passes. It prints the spills to expect and what other
/// values cost. With --host-cpu and --node-cpu, it says whether maps on the node of their blocks (hadoop
/// serve --hdfs) pay for the job, and why. Each task starts in both cases, which small splits feel most. With
/// --device, the disk is a modelled one, and nothing is measured.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser hadoop advise --dir /data/1/yarn
  merganser hadoop advise --dir /data/1/yarn --json > node7.json
  merganser hadoop advise --job 10G --dir /data/1/yarn --memory 16G
  merganser hadoop advise --job 10G --ratio 0.4 --device barracuda --memory 3200M --cores 4
  merganser hadoop advise --job 10G --ratio 0.02 --host-cpu 115 --node-cpu 2.1 --device 830
(These two numbers are those of word count in docs/hadoop/advise-job.md. Measure those of your job.)")]
pub(crate) struct HadoopAdviseArgs {
    /// A folder on the disk of yarn.nodemanager.local-dirs [default: .]
    #[arg(long, value_name = "DIR", conflicts_with = "device")]
    pub dir: Option<PathBuf>,

    /// Print the measurements and the advice as JSON
    #[arg(long)]
    pub json: bool,

    /// Advise on a job with this much input
    #[arg(long, value_name = "SIZE", help_heading = "Job")]
    pub job: Option<TypedSize>,

    /// Bytes of map output per byte of input
    #[arg(long, value_name = "R", default_value_t = 1.0, requires = "job", help_heading = "Job")]
    pub ratio: f64,

    /// Mean size of a record of map output
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "100",
        requires = "job",
        help_heading = "Job"
    )]
    pub record_size: TypedSize,

    /// Say whether maps pay on the node of their blocks: the processor time of map tasks for each byte of
    /// input, in nanoseconds (CPU_MILLISECONDS of maps * 1000000 / bytes of input)
    #[arg(
        long,
        value_name = "NS",
        requires_all = ["job", "node_cpu"],
        conflicts_with_all = ["record_size", "reducers", "memory", "heap"],
        help_heading = "Job"
    )]
    pub host_cpu: Option<f64>,

    /// The same for the SSDlet (NODE_CPU_MILLISECONDS * 1000000 / NODE_BYTES_READ)
    #[arg(long, value_name = "NS", requires = "host_cpu", help_heading = "Job")]
    pub node_cpu: Option<f64>,

    /// Bytes of a split; each split has a map task, wherever it is mapped
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "128M",
        requires = "host_cpu",
        help_heading = "Job"
    )]
    pub split: TypedSize,

    /// Seconds in which a map task starts and ends, on an idle processor, wherever its split is mapped
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 1.8,
        requires = "host_cpu",
        help_heading = "Job"
    )]
    pub task_start: f64,

    /// Processor time that this takes, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 2.7,
        requires = "host_cpu",
        help_heading = "Job"
    )]
    pub task_start_cpu: f64,

    /// The part of it that --host-cpu has, in seconds per task. It is subtracted. CPU_MILLISECONDS begins to
    /// count when most of a task's virtual machine has started
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0.4,
        requires = "host_cpu",
        help_heading = "Job"
    )]
    pub task_start_counted: f64,

    /// Seconds of the job besides its maps: its master, its reduces
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 7.8,
        requires = "host_cpu",
        help_heading = "Job"
    )]
    pub job_rest: f64,

    /// Reducers [default: as many as --tasks]
    #[arg(long, value_name = "N", requires = "job", help_heading = "Job")]
    pub reducers: Option<u32>,

    /// Processors of the node [default: those of this machine]
    #[arg(long, value_name = "N", requires = "job", help_heading = "Job")]
    pub cores: Option<u32>,

    /// Tasks that run at the same time [default: as many as --cores]
    #[arg(long, value_name = "N", requires = "job", help_heading = "Job")]
    pub tasks: Option<u32>,

    /// How many times as fast as the model assumes the processors are (1: a task takes 1.5 s to start, and
    /// 20 ns per byte)
    #[arg(
        long,
        value_name = "X",
        default_value_t = 1.0,
        requires = "job",
        conflicts_with = "host_cpu",
        help_heading = "Job"
    )]
    pub processor_speed: f64,

    /// Memory of the node; all of it but the heaps of tasks is page cache [default: that of this machine]
    #[arg(long, value_name = "SIZE", requires = "job", help_heading = "Job")]
    pub memory: Option<TypedSize>,

    /// Heap of each task [default: half of the memory, shared by all that run at the same time]
    #[arg(long, value_name = "SIZE", requires = "job", help_heading = "Job")]
    pub heap: Option<TypedSize>,

    /// Take the speed of this modelled device (simulate --list)
    #[arg(long, value_name = "DEVICE", requires = "job", help_heading = "Job")]
    pub device: Option<String>,

    /// Change one of its parameters; repeat for more
    #[arg(long, value_name = "NAME=VALUE", requires = "device", help_heading = "Job")]
    pub set: Vec<String>,
}

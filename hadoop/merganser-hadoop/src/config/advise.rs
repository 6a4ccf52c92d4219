//! The settings of `merganser hadoop advise`.

use std::path::PathBuf;

use merganser_shell::args::TypedSize;
use merganser_shell::config::memory;
use merganser_shell::failure::Failure;

use crate::args::HadoopAdviseArgs;

/// The most bytes of map output per byte of input: with more, the model's sums lose their meaning.
const RATIO_MAX: f64 = 1e6;

/// Processor time for a byte, in nanoseconds: less or more is no program.
const CPU_NS_MIN: f64 = 0.001;
const CPU_NS_MAX: f64 = 1e9;

/// How many times as fast as assumed processors may be: less or more is no processor.
const SPEED_MIN: f64 = 0.001;
const SPEED_MAX: f64 = 1000.0;

/// The most seconds that a task may take to start, or a job besides its maps: more is another program.
const SECONDS_MAX: f64 = 86_400.0;

/// The part of the node's memory that is heaps of tasks, unless the heap is given.
const HEAP_SHARE: f64 = 0.5;

/// The settings of `merganser hadoop advise`.
#[derive(Debug)]
pub(crate) enum AdviseConfig {
    /// When map tasks should leave their merge to the fetch.
    Deferring {
        /// The folder whose disk is measured.
        dir: PathBuf,
        /// Whether the advice is printed as JSON.
        json: bool,
    },
    /// Settings for a job.
    Job(AdviseJob),
    /// Whether the maps of a job pay on the node of their blocks.
    Maps(AdviseMaps),
}

/// The maps of a job.
#[derive(Debug)]
pub(crate) struct AdviseMaps {
    /// Bytes of its input.
    pub input_bytes: f64,
    /// Bytes of map output per byte of input.
    pub ratio: f64,
    /// Bytes of a split.
    pub split_bytes: f64,
    /// Processors.
    pub cores: f64,
    /// Tasks that run at the same time, and so do maps on the node.
    pub tasks: f64,
    /// The start of each task.
    pub start: TaskStart,
    /// Seconds of the job besides its maps.
    pub rest_seconds: f64,
    /// Processor time of map tasks for each byte of input, in nanoseconds, with [`TaskStart::counted_seconds`].
    pub host_ns: f64,
    /// The same for the SSDlet.
    pub node_ns: f64,
    /// The job's disk.
    pub on: AdviseOn,
    /// Whether the advice is printed as JSON.
    pub json: bool,
}

impl AdviseMaps {
    /// Map tasks: one for each split.
    pub(crate) fn maps(&self) -> f64 {
        (self.input_bytes / self.split_bytes).ceil().max(1.0)
    }

    /// Processor time of the mapper alone for each byte of input, in nanoseconds.
    pub(crate) fn mapper_ns(&self) -> f64 {
        self.host_ns - self.start.counted_seconds * 1e9 * self.maps() / self.input_bytes
    }
}

/// The cost of a task besides mapping: a virtual machine, its classes, its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TaskStart {
    /// Seconds, on an idle processor.
    pub seconds: f64,
    /// Processor time, in seconds. More than one thread runs.
    pub cpu_seconds: f64,
    /// The part of it that is counted in the processor time of map tasks.
    pub counted_seconds: f64,
}

/// A job that settings are looked for.
#[derive(Debug)]
pub(crate) struct AdviseJob {
    /// The job, and its node.
    pub job: HadoopJob,
    /// Its disk.
    pub on: AdviseOn,
    /// Whether the advice is printed as JSON.
    pub json: bool,
}

/// The job, and the node that it runs on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HadoopJob {
    /// Bytes of its input.
    pub input_bytes: f64,
    /// Bytes of map output per byte of input.
    pub ratio: f64,
    /// Mean bytes of a record of map output.
    pub record_bytes: f64,
    /// Processors.
    pub cores: f64,
    /// Tasks that run at the same time.
    pub tasks: f64,
    /// How many times as fast as the model assumes the processors are.
    pub speed: f64,
    /// Memory of the node, in bytes.
    pub memory_bytes: f64,
    /// Heap of a task, in bytes. The rest of the memory is page cache.
    pub heap_bytes: f64,
    /// Reducers.
    pub reducers: f64,
}

/// Whose speed is taken.
#[derive(Debug)]
pub(crate) enum AdviseOn {
    /// The disk of this folder, measured.
    Dir(PathBuf),
    /// A modelled device.
    Device(ModelChoice),
}

/// A modelled device, which another program knows.
#[derive(Debug, Clone)]
pub(crate) struct ModelChoice {
    /// Its preset.
    pub name: String,
    /// `name=value` each.
    pub settings: Vec<String>,
}

/// Names the values that are taken from this machine because they were not given; `None` if all were given.
pub(crate) fn assumed(typed: &HadoopAdviseArgs) -> Option<String> {
    typed.job?;
    let memory = (typed.memory.is_none() && typed.host_cpu.is_none())
        .then(|| format!("--memory {}M", machine_mib()));
    let cores = typed.cores.is_none().then(|| format!("--cores {}", machine_cores()));
    let taken: Vec<_> = memory.into_iter().chain(cores).collect();
    (!taken.is_empty()).then(|| format!("taken from this machine: {}", taken.join(" ")))
}

/// The memory of this machine, in whole mebibytes.
fn machine_mib() -> u64 {
    memory::machine_bytes() >> 20
}

/// The processors of this machine.
fn machine_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

impl TryFrom<HadoopAdviseArgs> for AdviseConfig {
    type Error = Failure;

    fn try_from(typed: HadoopAdviseArgs) -> Result<Self, Failure> {
        let dir = typed.dir.unwrap_or_else(|| ".".into());
        let Some(TypedSize(input_bytes)) = typed.job else {
            return Ok(AdviseConfig::Deferring { dir, json: typed.json });
        };
        let least_one = |flag: &str| Failure::from(format!("{flag}: at least 1"));
        if input_bytes == 0 {
            return Err("--job: at least 1 byte".to_owned().into());
        }
        if !(0.0..=RATIO_MAX).contains(&typed.ratio) {
            let ratio = typed.ratio;
            return Err(format!("--ratio: {ratio}, expected 0 to {RATIO_MAX}").into());
        }
        if typed.record_size.0 == 0 {
            return Err("--record-size: at least 1 byte".to_owned().into());
        }
        let cores = match typed.cores {
            Some(0) => return Err(least_one("--cores")),
            Some(cores) => cores,
            None => machine_cores(),
        };
        let on = match typed.device {
            Some(name) => AdviseOn::Device(ModelChoice { name, settings: typed.set }),
            None => AdviseOn::Dir(dir),
        };
        let tasks = match typed.tasks {
            Some(0) => return Err(least_one("--tasks")),
            Some(tasks) => tasks,
            None => cores,
        };
        if let (Some(host_ns), Some(node_ns)) = (typed.host_cpu, typed.node_cpu) {
            for (flag, ns) in [("--host-cpu", host_ns), ("--node-cpu", node_ns)] {
                if !(CPU_NS_MIN..=CPU_NS_MAX).contains(&ns) {
                    return Err(
                        format!("{flag}: {ns}, expected {CPU_NS_MIN} to {CPU_NS_MAX}").into()
                    );
                }
            }
            for (flag, seconds) in [
                ("--task-start", typed.task_start),
                ("--task-start-cpu", typed.task_start_cpu),
                ("--task-start-counted", typed.task_start_counted),
                ("--job-rest", typed.job_rest),
            ] {
                if !(0.0..=SECONDS_MAX).contains(&seconds) {
                    return Err(format!("{flag}: {seconds}, expected 0 to {SECONDS_MAX}").into());
                }
            }
            if typed.split.0 == 0 {
                return Err("--split: at least 1 byte".to_owned().into());
            }
            let maps = AdviseMaps {
                input_bytes: input_bytes as f64,
                ratio: typed.ratio,
                split_bytes: typed.split.0 as f64,
                cores: f64::from(cores),
                tasks: f64::from(tasks),
                start: TaskStart {
                    seconds: typed.task_start,
                    cpu_seconds: typed.task_start_cpu,
                    counted_seconds: typed.task_start_counted,
                },
                rest_seconds: typed.job_rest,
                host_ns,
                node_ns,
                on,
                json: typed.json,
            };
            if maps.mapper_ns() < CPU_NS_MIN {
                let counted = host_ns - maps.mapper_ns();
                return Err(format!(
                    "--host-cpu: {host_ns} ns per byte, of which the start of a task is {counted:.1} (--task-start-counted, --split); nothing is left for the mapper"
                )
                .into());
            }
            return Ok(AdviseConfig::Maps(maps));
        }
        let reducers = match typed.reducers {
            Some(0) => return Err(least_one("--reducers")),
            Some(reducers) => reducers,
            None => tasks,
        };
        let speed = typed.processor_speed;
        if !(SPEED_MIN..=SPEED_MAX).contains(&speed) {
            return Err(
                format!("--processor-speed: {speed}, expected {SPEED_MIN} to {SPEED_MAX}").into()
            );
        }
        let memory = typed.memory.unwrap_or_else(|| TypedSize(machine_mib() << 20));
        let memory_bytes = merganser_shell::config::memory_bytes(Some(memory))? as f64;
        let heap_bytes = match typed.heap {
            Some(TypedSize(0)) => return Err("--heap: at least 1 byte".to_owned().into()),
            Some(TypedSize(bytes)) if bytes as f64 * f64::from(tasks) > memory_bytes => {
                let taken = bytes as f64 * f64::from(tasks);
                return Err(format!(
                    "--heap: {tasks} tasks take {taken} bytes, more than --memory, which is {memory_bytes}"
                )
                .into());
            }
            Some(TypedSize(bytes)) => bytes as f64,
            None => memory_bytes * HEAP_SHARE / f64::from(tasks),
        };
        let job = HadoopJob {
            input_bytes: input_bytes as f64,
            ratio: typed.ratio,
            record_bytes: typed.record_size.0 as f64,
            cores: f64::from(cores),
            tasks: f64::from(tasks),
            speed,
            memory_bytes,
            heap_bytes,
            reducers: f64::from(reducers),
        };
        Ok(AdviseConfig::Job(AdviseJob { job, on, json: typed.json }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::HadoopTask;

    fn meant(words: &[&str]) -> AdviseConfig {
        let words = [&["hadoop", "advise"], words].concat();
        let HadoopTask::Advise(typed) = config(&words) else { unreachable!() };
        AdviseConfig::try_from(typed).unwrap_or_else(|failure| panic!("{:?}", failure.sentence()))
    }

    #[test]
    fn this_folder_is_measured_unless_another_is_named() {
        for (words, expected, as_data) in
            [(&[][..], ".", false), (&["--dir", "/data"], "/data", false), (&["--json"], ".", true)]
        {
            let AdviseConfig::Deferring { dir, json } = meant(words) else { panic!("{words:?}") };
            assert_eq!((dir, json), (PathBuf::from(expected), as_data), "{words:?}");
        }
    }

    #[test]
    fn what_is_not_given_is_that_of_this_machine_and_is_said() {
        let told = |words: &[&str]| {
            let words = [&["hadoop", "advise"], words].concat();
            let HadoopTask::Advise(typed) = config(&words) else { unreachable!() };
            assumed(&typed)
        };
        let AdviseConfig::Job(AdviseJob { job, .. }) = meant(&["--job", "10G", "--device", "830"])
        else {
            panic!("no job")
        };
        let (mib, cores) = (machine_mib(), machine_cores());
        assert!(mib > 64 && cores > 0, "{mib} MiB, {cores} processors");
        assert_eq!(job.memory_bytes, (mib << 20) as f64);
        assert_eq!((job.cores, job.tasks, job.reducers), [f64::from(cores); 3].into());
        let both = format!("taken from this machine: --memory {mib}M --cores {cores}");
        assert_eq!(told(&["--job", "10G", "--device", "830"]), Some(both));
        // The printed words, typed, mean the same job.
        let memory = format!("{mib}M");
        let typed = ["--job", "10G", "--device", "830", "--memory", &memory];
        let AdviseConfig::Job(AdviseJob { job: again, .. }) = meant(&typed) else { panic!() };
        assert_eq!(again, job);
        let cores = Some(format!("taken from this machine: --cores {cores}"));
        assert_eq!(told(&typed), cores);
        assert_eq!(told(&[&typed[..], &["--cores", "2"]].concat()), None);
        assert_eq!(told(&["--job", "1G", "--host-cpu", "1", "--node-cpu", "1"]), cores);
        assert_eq!(told(&["--dir", "."]), None, "nothing is asked of the node");
    }

    #[test]
    fn a_job_has_bytes_a_node_and_a_disk() {
        let words = ["--job", "10G", "--memory", "4G", "--cores", "2", "--device", "830"];
        let AdviseConfig::Job(AdviseJob { job, on, .. }) = meant(&words) else { panic!("no job") };
        assert_eq!((job.input_bytes, job.cores, job.reducers), ((10_u64 << 30) as f64, 2.0, 2.0));
        assert_eq!(job.memory_bytes, (4_u64 << 30) as f64);
        assert_eq!(job.heap_bytes, (1_u64 << 30) as f64);
        let with_heap = [&words[..], &["--heap", "512M"]].concat();
        let AdviseConfig::Job(AdviseJob { job, .. }) = meant(&with_heap) else { panic!("no job") };
        assert_eq!(job.heap_bytes, (512_u64 << 20) as f64);
        assert!(matches!(on, AdviseOn::Device(choice) if choice.name == "830"));
        assert_eq!((job.tasks, job.speed), (2.0, 1.0));
        let more = [&words[..], &["--tasks", "8", "--processor-speed", "4"]].concat();
        let AdviseConfig::Job(AdviseJob { job, .. }) = meant(&more) else { panic!("no job") };
        assert_eq!((job.cores, job.tasks, job.reducers, job.speed), (2.0, 8.0, 8.0, 4.0));
        assert_eq!(job.heap_bytes, (256_u64 << 20) as f64);
        let AdviseConfig::Job(AdviseJob { on, .. }) = meant(&["--job", "1G", "--memory", "1G"])
        else {
            panic!()
        };
        assert!(matches!(on, AdviseOn::Dir(dir) if dir.as_os_str() == "."));
        let said = |words: &[&str]| refusal(&[&["hadoop", "advise"], words].concat());
        assert_eq!(said(&["--job", "0"]), "--job: at least 1 byte");
        assert_eq!(said(&["--job", "1G", "--cores", "0"]), "--cores: at least 1");
        assert_eq!(said(&["--job", "1G", "--tasks", "0"]), "--tasks: at least 1");
        assert_eq!(
            said(&["--job", "1G", "--processor-speed", "0"]),
            "--processor-speed: 0, expected 0.001 to 1000"
        );
        assert_eq!(
            said(&["--job", "1G", "--memory", "1G", "--cores", "2", "--heap", "513M"]),
            "--heap: 2 tasks take 1075838976 bytes, more than --memory, which is 1073741824"
        );
        assert_eq!(
            said(&["--job", "1G", "--memory", "1G", "--heap", "0"]),
            "--heap: at least 1 byte"
        );
        let maps =
            ["--job", "10G", "--cores", "4", "--device", "830", "--host-cpu", "20", "--node-cpu"];
        let AdviseConfig::Maps(found) = meant(&[&maps[..], &["18.5"]].concat()) else { panic!() };
        assert_eq!((found.host_ns, found.node_ns, found.cores), (20.0, 18.5, 4.0));
        assert_eq!((found.tasks, found.maps(), found.rest_seconds), (4.0, 80.0, 7.8));
        assert_eq!(found.start, TaskStart { seconds: 1.8, cpu_seconds: 2.7, counted_seconds: 0.4 });
        // 0.4 s in 128 MiB are 3 ns for each byte.
        assert!((found.mapper_ns() - (20.0 - 0.4e9 / f64::from(128 << 20))).abs() < 1e-9);
        let more = ["18.5", "--split", "1G", "--tasks", "2", "--task-start-counted", "0"];
        let AdviseConfig::Maps(found) = meant(&[&maps[..], &more].concat()) else { panic!() };
        assert_eq!((found.tasks, found.maps(), found.mapper_ns()), (2.0, 10.0, 20.0));
        assert_eq!(
            said(&[&maps[..], &["1", "--split", "16M"]].concat()),
            "--host-cpu: 20 ns per byte, of which the start of a task is 23.8 (--task-start-counted, --split); nothing is left for the mapper"
        );
        assert_eq!(
            said(&[&maps[..], &["1", "--task-start=-1"]].concat()),
            "--task-start: -1, expected 0 to 86400"
        );
        assert_eq!(said(&[&maps[..], &["1", "--split", "0"]].concat()), "--split: at least 1 byte");
        assert_eq!(
            said(&[&maps[..], &["0"]].concat()),
            "--node-cpu: 0, expected 0.001 to 1000000000"
        );
        let expected = |ratio| format!("--ratio: {ratio}, expected 0 to 1000000");
        assert_eq!(said(&["--job", "1G", "--ratio=-1"]), expected("-1"));
        assert_eq!(said(&["--job", "1G", "--ratio", "NaN"]), expected("NaN"));
        assert_eq!(said(&["--job", "1G", "--ratio", "1e7"]), expected("10000000"));
    }
}

//! Campaigns on a cluster: a real slurmctld with three slurmd on this machine.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use senesce_core::{Rng, Seed};
use senesce_testkit::{found_or_skip, root_or_skip};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    campaign::{assert_same, find, has_begun, is_alive, lab_of_twelve, running, wait_for},
    lab::{Done, Lab},
};

const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// The longest wait for the end of a daemon before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A cluster of three nodes, which all are this machine. It listens on the loopback device only.
/// Its daemons stop when it is dropped.
struct Cluster {
    dir: TempDir,
    daemons: Vec<Child>,
}

impl Cluster {
    /// Starts the daemons, and waits until all nodes are idle.
    fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("senesce-slurm-").tempdir().unwrap();
        // munged refuses a socket in a directory that others cannot enter.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut cluster = Self { dir, daemons: Vec::new() };
        let path = |name: &str| cluster.path(name).display().to_string();
        // All listeners stay open until all ports are known, so that the ports differ.
        let listeners: Vec<TcpListener> = (0..4).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        drop(listeners);
        let uname = rustix::system::uname();
        let host = uname.nodename().to_string_lossy().split('.').next().unwrap().to_owned();
        let nodes: String = NODES
            .iter()
            .zip(&ports[1..])
            .map(|(name, port)| {
                format!("NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=100\n")
            })
            .collect();
        let config = format!(
            "ClusterName=senesce\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\n\
             CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nAuthType=auth/munge\n\
             AuthInfo=socket={},cred_expire=5\nCredType=cred/munge\nSlurmUser=root\nSlurmdUser=root\n\
             StateSaveLocation={}\nSlurmdSpoolDir={}-%n\nSlurmctldPidFile={}\nSlurmdPidFile={}-%n.pid\n\
             SlurmctldLogFile={}\nSlurmdLogFile={}-%n.log\nMpiDefault=none\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nReturnToService=2\n\
             JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
             SwitchType=switch/none\nSchedulerParameters=sched_interval=1,bf_interval=1\nKillWait=5\n\
             SlurmdTimeout=300\nMaxArraySize=5\nJobRequeue=1\n{nodes}\
             PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
            ports[0],
            path("munge.socket"),
            path("state"),
            path("spool"),
            path("slurmctld.pid"),
            path("slurmd"),
            path("slurmctld.log"),
            path("slurmd"),
        );
        fs::write(path("slurm.conf"), config).unwrap();
        fs::create_dir(path("state")).unwrap();
        // A secret: who knows the key can run jobs as root.
        let mut key = [0; 1024];
        File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut key)).unwrap();
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path("munge.key")).unwrap();
        file.write_all(&key).unwrap();
        let munge = [
            "key-file=munge.key",
            "socket=munge.socket",
            "pid-file=munge.pid",
            "log-file=munge.log",
            "seed-file=munge.seed",
        ];
        let munge = munge.map(|option| {
            let (name, file) = option.split_once('=').unwrap();
            format!("--{name}={}", path(file))
        });
        cluster.spawn("munged", ["--foreground", "--force"].iter().map(|word| (*word).to_owned()).chain(munge));
        wait_for("socket of munged", || cluster.path("munge.socket").exists().then_some(()));
        cluster.spawn("slurmctld", ["-D", "-i"].map(str::to_owned));
        for node in NODES {
            fs::create_dir(cluster.path(&format!("spool-{node}"))).unwrap();
            cluster.spawn("slurmd", ["-D", "-c", "-N", node].map(str::to_owned));
        }
        wait_for("idle cluster", || {
            let idle = cluster.run("sinfo", &["--noheader", "--Node", "--format=%T"]).stdout;
            (idle.lines().filter(|state| *state == "idle").count() == NODES.len()).then_some(())
        });
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    fn spawn(&mut self, program: &str, arguments: impl IntoIterator<Item = String>) {
        let output = File::create(self.path(&format!("{program}-{}.out", self.daemons.len()))).unwrap();
        // Daemons die with the test, also if it is killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(find(program).unwrap()).args(arguments);
        command.env("SLURM_CONF", self.config()).current_dir(self.dir.path());
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        self.daemons.push(command.spawn().unwrap());
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Done {
        Done::of(Command::new(program).args(arguments).env("SLURM_CONF", self.config()).output().unwrap())
    }

    /// `senesce campaign` with this cluster.
    fn campaign(&self, lab: &Lab, words: &[&str]) -> Done {
        let mut command = lab.command();
        command.arg("campaign").args(words).env("SLURM_CONF", self.config());
        Done::of(command.output().unwrap())
    }

    /// Lines of the queue: name, array, index, state and node of a job.
    fn queue(&self) -> Vec<[String; 5]> {
        let arguments = ["--noheader", "--array", "--format=%j|%F|%K|%T|%N"];
        // A controller under load may not answer in time.
        let lines = wait_for("answer of squeue", || {
            let done = self.run("squeue", &arguments);
            (done.code == 0).then_some(done.stdout)
        });
        let fields = |line: &str| {
            let mut fields = line.trim().split('|').map(str::to_owned);
            std::array::from_fn(|_| fields.next().unwrap_or_default())
        };
        lines.lines().map(fields).collect()
    }

    /// Waits until no job is in the queue.
    fn wait_empty(&self) {
        wait_for("end of all jobs", || self.queue().is_empty().then_some(()));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.run("scancel", &["--signal=KILL", "--user=root"]);
        let _ = self.run("scancel", &["--user=root"]);
        // The last one first: slurmd, slurmctld, munged.
        while let Some(mut daemon) = self.daemons.pop() {
            let _ = kill_process(Pid::from_child(&daemon), Signal::TERM);
            let began = Instant::now();
            while matches!(daemon.try_wait(), Ok(None)) && began.elapsed() < STOP_LIMIT {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// The numbers of the tasks with a result.
fn done(lab: &Lab, campaign: &str) -> usize {
    fs::read_dir(lab.path(campaign).join("tasks")).unwrap().count()
}

/// A way to lose a task.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Kill,
    NodeDown,
    Requeue,
}

/// Tries to lose a task in the middle of its run. Returns `false` if the task finished first.
/// A killed task can look alive for a moment. So no task is lost twice: a requeue would repeat it.
fn lose(cluster: &Cluster, lab: &Lab, loss: Loss, lost: &mut Vec<u64>) -> bool {
    let campaign = lab.path("lost");
    // The process is alive, and its job runs: a state of a lost one may still be there.
    let (state, [_, job, index, _, node]) = wait_for("task in the middle of its run", || {
        let queue = cluster.queue();
        assert!(!queue.is_empty(), "the campaign ended before {loss:?}");
        let mut states = running(&campaign).into_iter();
        states.find_map(|state| {
            let task = state["task"].as_u64().filter(|task| !lost.contains(task))?;
            let job = queue.iter().find(|job| is_running(job, task))?;
            has_begun(&campaign, task).then(|| (state, job.clone()))
        })
    });
    println!("task {}: {loss:?}", state["task"]);
    lost.extend(state["task"].as_u64());
    match loss {
        Loss::Kill => {
            let pid = Pid::from_raw(state["pid"].as_i64().unwrap() as i32).unwrap();
            let is_killed = kill_process(pid, Signal::KILL).is_ok();
            wait_for("end of the killed process", || (!is_alive(&state)).then_some(()));
            // It may have stored its result just before.
            is_killed && !campaign.join("tasks").join(state["task"].to_string()).exists()
        }
        Loss::NodeDown => {
            let down = cluster.run("scontrol", &["update", &format!("nodename={node}"), "state=down", "reason=test"]);
            down.code == 0
        }
        Loss::Requeue => cluster.run("scontrol", &["requeue", &format!("{job}_{index}")]).code == 0,
    }
}

/// Whether a line of the queue is the running job of a task. An array has five tasks, and is named
/// after its first one.
fn is_running([name, _, index, state, _]: &[String; 5], task: u64) -> bool {
    name.ends_with(&format!("-{}", task / 5 * 5)) && *index == (task % 5).to_string() && state == "RUNNING"
}

#[test]
fn losses_on_a_cluster_change_no_figure() {
    if !root_or_skip("a cluster and volumes") {
        return;
    }
    let programs = ["munged", "slurmctld", "slurmd", "sbatch"];
    let found = programs.iter().all(|program| find(program).is_some());
    if found_or_skip(found.then_some(()), "slurm-wlm and munge").is_none() {
        return;
    }
    let lab = lab_of_twelve();
    for out in ["calm", "lost"] {
        lab.run(["campaign", "plan", "grid.toml", "--out", out]).good();
    }
    let cluster = Cluster::start();

    // Undisturbed: three arrays of at most five tasks, and a merge after them.
    let printed = cluster.campaign(&lab, &["submit", "--slurm", "calm", "--dry-run"]).good().stdout;
    assert!(
        printed.contains("#SBATCH --array=0-4\n#SBATCH --requeue\n") && printed.contains("$((10 + SLURM"),
        "{printed}"
    );
    assert!(cluster.queue().is_empty());
    let submitted = cluster.campaign(&lab, &["submit", "--slurm", "calm"]).good().stdout;
    for line in ["tasks 0 + [0-4]\n", "tasks 5 + [0-4]\n", "tasks 10 + [0-1]\n", ": merge\n", "12 tasks are submitted"]
    {
        assert!(submitted.contains(line), "{submitted}");
    }
    cluster.campaign(&lab, &["submit", "--slurm", "calm"]).refused(2, &["are in the queue", "campaign resume"]);
    cluster.wait_empty();
    assert_eq!(done(&lab, "calm"), 12);
    assert!(lab.path("calm/merged/results/run.json").exists(), "the job of the merge did its work");

    // A fifth of the tasks is lost.
    let submitted = cluster.campaign(&lab, &["submit", "--slurm", "lost", "--jobs", "3"]).good().stdout;
    assert!(submitted.contains("12 tasks are submitted"), "{submitted}");
    let mut losses = [Loss::Kill, Loss::NodeDown, Loss::Requeue];
    Rng::for_purpose(Seed(20), "losses").shuffle(&mut losses);
    let mut lost = Vec::new();
    for loss in losses {
        while !lose(&cluster, &lab, loss, &mut lost) {}
    }
    // Slurm runs a requeued task again. It does not repeat a killed one.
    cluster.wait_empty();
    for node in NODES {
        cluster.run("scontrol", &["update", &format!("nodename={node}"), "state=resume"]);
    }
    let before = done(&lab, "lost");
    assert!(before < 12, "the killed task has a result");
    let missing = 12 - before;
    lab.run(["campaign", "merge", "lost"]).refused(1, &[&format!("{missing} of 12 tasks ha")]);
    let status: Value =
        serde_json::from_str(&cluster.campaign(&lab, &["status", "lost", "--json"]).good().stdout).unwrap();
    assert_eq!((status["done"].as_u64(), status["waiting"].as_u64()), (Some(before as u64), Some(missing as u64)));
    let resumed = cluster.campaign(&lab, &["resume", "--slurm", "lost"]).good().stdout;
    assert!(resumed.contains(&format!("{missing} tasks are submitted")), "{resumed}");
    cluster.wait_empty();
    assert_eq!(done(&lab, "lost"), 12);
    let nothing = cluster.campaign(&lab, &["resume", "--slurm", "lost"]).good().stdout;
    assert!(nothing.starts_with("nothing to submit: all 12 tasks are done"), "{nothing}");
    drop(cluster);
    assert_same(&lab, "calm", "lost", 12);
    lab.assert_nothing_left();
}

//! A cluster of this one machine, with keys, sockets, ports and directories of its own.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A cluster; its daemons end when it is dropped.
pub struct Cluster {
    directory: tempfile::TempDir,
    daemons: Vec<Child>,
}

/// Programs of Debian's packages munge, slurmctld, slurmd and slurm-client.
const PROGRAMS: [&str; 4] = ["munged", "slurmctld", "slurmd", "sbatch"];

/// Returns whether a cluster is possible; prints one line with the reason if not.
pub fn can_have_cluster() -> bool {
    let at = |name: &str| ["/usr/sbin", "/usr/bin"].iter().any(|place| Path::new(place).join(name).exists());
    let missing = PROGRAMS.into_iter().find(|name| !at(name));
    let why = match missing {
        Some(name) => format!("no {name}: install munge, slurmctld, slurmd and slurm-client"),
        None if !rustix::process::geteuid().is_root() => "Slurm's daemons need root".to_owned(),
        None => return true,
    };
    println!("skipped: {why}");
    false
}

/// Name of this machine, as the daemons and the controller must agree on.
fn host() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    name.split('.').next().unwrap().to_owned()
}

/// A port that was free a moment ago.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Cluster {
    /// Starts a cluster, and waits until its node takes work.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut cluster = Cluster { directory, daemons: Vec::new() };
        for name in ["state", "spool"] {
            fs::create_dir(cluster.place(name)).unwrap();
        }
        let mut key = vec![0; 128];
        std::io::Read::read_exact(&mut File::open("/dev/urandom").unwrap(), &mut key).unwrap();
        fs::write(cluster.place("key"), key).unwrap();
        fs::set_permissions(cluster.place("key"), fs::Permissions::from_mode(0o400)).unwrap();
        fs::write(cluster.conf(), cluster.settings()).unwrap();
        let file = |option: &str, name: &str| format!("--{option}={}", cluster.place(name).display());
        let words = [
            file("socket", "socket"),
            file("key-file", "key"),
            file("log-file", "munged.log"),
            file("pid-file", "munged.pid"),
            file("seed-file", "seed"),
        ];
        cluster.daemon("munged", &[&["--foreground".to_owned(), "--force".to_owned()], &words[..]].concat());
        cluster.until("munged listens", |cluster| cluster.place("socket").exists());
        cluster.daemon("slurmctld", &["-D".to_owned()]);
        cluster.daemon("slurmd", &["-D".to_owned(), "-N".to_owned(), host()]);
        cluster.until("the node is idle", |cluster| cluster.query("sinfo", &["--noheader", "--format=%t"]) == "idle\n");
        cluster
    }

    /// The file that Slurm's programs read the cluster's settings from.
    pub fn conf(&self) -> PathBuf {
        self.place("slurm.conf")
    }

    /// Returns the output of a Slurm program.
    pub fn query(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program).args(arguments).env("SLURM_CONF", self.conf()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until something holds.
    pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < Duration::from_secs(60), "in vain: {what}; {}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn logs(&self) -> String {
        let read = |name: &&str| fs::read_to_string(self.place(name)).unwrap_or_default();
        ["munged.out", "slurmctld.out", "slurmd.out"].iter().map(read).collect()
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn daemon(&mut self, name: &str, arguments: &[String]) {
        let out = File::create(self.place(&format!("{name}.out"))).unwrap();
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap());
        let mut command = Command::new(Path::new("/usr/sbin").join(name));
        let command = command.args(arguments).env("SLURM_CONF", self.conf()).env("PATH", path);
        let command = command.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out);
        self.daemons.push(command.spawn().unwrap());
    }

    fn settings(&self) -> String {
        let (host, place) = (host(), self.directory.path().display());
        let cpus = std::thread::available_parallelism().unwrap();
        let (controller, node) = (port(), port());
        format!(
            "ClusterName=nearmiss\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={place}/socket\nCredType=cred/munge\n\
             CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\nReturnToService=2\nMailProg=/bin/true\n\
             SlurmctldPort={controller}\nSlurmdPort={node}\nStateSaveLocation={place}/state\n\
             SlurmdSpoolDir={place}/spool\nSlurmctldPidFile={place}/slurmctld.pid\nSlurmdPidFile={place}/slurmd.pid\n\
             SchedulerParameters=batch_sched_delay=0,sched_min_interval=0\nKillWait=1\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN\n\
             PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP\n"
        )
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The node's daemon first, so that no task outlives it.
        for daemon in self.daemons.iter_mut().rev() {
            let pid = rustix::process::Pid::from_child(daemon);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = daemon.wait();
        }
    }
}

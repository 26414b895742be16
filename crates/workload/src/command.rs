use crate::child::Plan;
use crate::guardian::Restore;
use crate::{CpuSet, Error, MemoryPolicy, ProcessGroup};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Connection of one of the command's standard streams.
#[derive(Clone, Debug, Default)]
pub enum Stdio {
    /// The launcher's own.
    #[default]
    Inherit,
    /// Nothing to read; writes vanish.
    Null,
    /// An open file.
    File(Arc<OwnedFd>),
    /// A pipe; [`crate::Running`] has its other end.
    Pipe,
}

impl From<std::fs::File> for Stdio {
    fn from(file: std::fs::File) -> Self {
        Stdio::File(Arc::new(file.into()))
    }
}

/// A command, described but not started.
///
/// A workload can be launched any number of times.
#[derive(Clone, Debug)]
pub struct Workload {
    argv: Vec<OsString>,
    environment: BTreeMap<OsString, Option<OsString>>,
    directory: Option<PathBuf>,
    cpus: Option<CpuSet>,
    memory: Option<MemoryPolicy>,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    pub(crate) group: ProcessGroup,
    pub(crate) kept: Vec<Arc<OwnedFd>>,
    pub(crate) restore_if_killed: Vec<Restore>,
    pub(crate) whole_tree: bool,
}

impl Workload {
    /// A command by its argument vector; the program is looked up in `PATH` as a shell does.
    pub fn new<A: Into<OsString>>(argv: impl IntoIterator<Item = A>) -> Self {
        Workload {
            argv: argv.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            directory: None,
            cpus: None,
            memory: None,
            stdin: Stdio::Inherit,
            stdout: Stdio::Inherit,
            stderr: Stdio::Inherit,
            group: ProcessGroup::Own,
            kept: Vec::new(),
            restore_if_killed: Vec::new(),
            whole_tree: false,
        }
    }

    /// Sets an environment variable on top of the launcher's environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), Some(value.into()));
        self
    }

    /// Takes a variable of the launcher's environment away.
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), None);
        self
    }

    /// Starts the command in this directory.
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Lets the command, and what it starts, run on these CPUs only.
    pub fn pin(mut self, cpus: CpuSet) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Lets the command, and what it starts, take memory of these nodes. The kernel then leaves that memory out of
    /// automatic NUMA balancing.
    pub fn memory(mut self, policy: MemoryPolicy) -> Self {
        self.memory = Some(policy);
        self
    }

    /// Sets the source of its input.
    pub fn stdin(mut self, stdio: impl Into<Stdio>) -> Self {
        self.stdin = stdio.into();
        self
    }

    /// Sets the destination of its output.
    pub fn stdout(mut self, stdio: impl Into<Stdio>) -> Self {
        self.stdout = stdio.into();
        self
    }

    /// Sets the destination of its error output.
    pub fn stderr(mut self, stdio: impl Into<Stdio>) -> Self {
        self.stderr = stdio.into();
        self
    }

    /// Sets the process group that the command joins.
    pub fn group(mut self, group: ProcessGroup) -> Self {
        self.group = group;
        self
    }

    /// Leaves a descriptor open in the command, under the number that it has here.
    pub fn keep_open(mut self, descriptor: Arc<OwnedFd>) -> Self {
        self.kept.push(descriptor);
        self
    }

    /// A file that the guardian writes should the launcher be killed, such as a setting of the kernel that was changed
    /// for the command. A launcher that ends in order restores its settings itself.
    pub fn restore_if_killed(mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        self.restore_if_killed.push(Restore(path.into(), content.into()));
        self
    }

    /// Ends all that the command starts together with it, even processes that left its group and outlived their
    /// parents: right for servers. [`Suspended::tree`](crate::Suspended::tree) then finds all of them.
    pub fn whole_tree(mut self) -> Self {
        self.whole_tree = true;
        self
    }

    /// The argument vector.
    pub fn argv(&self) -> &[OsString] {
        &self.argv
    }

    /// Returns the directory that the command starts in, if that is not the launcher's.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The value that the command will see for a variable.
    pub fn variable(&self, name: impl AsRef<OsStr>) -> Option<OsString> {
        match self.environment.get(name.as_ref()) {
            Some(value) => value.clone(),
            None => std::env::var_os(name),
        }
    }

    /// The file that will be executed, looked up in the command's own `PATH`.
    pub fn program(&self) -> Result<PathBuf, Error> {
        let name = self.argv.first().filter(|name| !name.is_empty()).ok_or(Error::Empty)?;
        if name.as_bytes().contains(&b'/') {
            let path = PathBuf::from(name);
            let seen = self.in_directory(&path);
            return match executable(&seen) {
                Ok(()) => Ok(path),
                Err(Some(source)) => Err(Error::NotExecutable { path, source }),
                Err(None) => Err(Error::NotFound(name.clone())),
            };
        }
        let search = self.variable("PATH").unwrap_or_else(|| "/usr/local/bin:/bin:/usr/bin".into());
        let mut refused = None;
        for directory in std::env::split_paths(&search) {
            let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
            let path = directory.join(name);
            match executable(&self.in_directory(&path)) {
                Ok(()) => return Ok(path),
                Err(Some(source)) => refused = refused.or(Some(Error::NotExecutable { path, source })),
                Err(None) => {}
            }
        }
        Err(refused.unwrap_or_else(|| Error::NotFound(name.clone())))
    }

    fn in_directory(&self, path: &Path) -> PathBuf {
        match &self.directory {
            Some(directory) => directory.join(path),
            None => path.to_owned(),
        }
    }

    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        let program = c_string(self.program()?.as_os_str(), "the program's path")?;
        let argv = self.argv.iter().map(|a| c_string(a, "an argument")).collect::<Result<_, _>>()?;
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in &self.environment {
            match value {
                Some(value) => variables.insert(name.clone(), value.clone()),
                None => variables.remove(name),
            };
        }
        let environment = variables
            .into_iter()
            .map(|(name, value)| {
                let mut pair = name.into_vec();
                pair.push(b'=');
                pair.extend(value.as_bytes());
                CString::new(pair).map_err(|_| Error::Nul { what: "an environment variable" })
            })
            .collect::<Result<_, _>>()?;
        let directory = self.directory.as_ref().map(|d| c_string(d.as_os_str(), "the directory")).transpose()?;
        let cpus = self.cpus.as_ref().map(CpuSet::mask).transpose()?;
        let memory = self.memory.as_ref().map(MemoryPolicy::raw).transpose()?;
        Ok(Plan::new(program, argv, environment, directory, cpus, memory))
    }
}

fn c_string(text: &OsStr, what: &'static str) -> Result<CString, Error> {
    CString::new(text.as_bytes()).map_err(|_| Error::Nul { what })
}

/// Whether a file can be executed; `Err(None)` when there is none.
fn executable(path: &Path) -> Result<(), Option<std::io::Error>> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Err(Some(e)),
        Err(_) => return Err(None),
    };
    if metadata.is_dir() {
        return Err(Some(std::io::Error::from_raw_os_error(libc::EISDIR)));
    }
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).map_err(|e| Some(e.into()))
}

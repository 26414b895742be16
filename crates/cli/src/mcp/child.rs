//! A verb of this executable as a child: its standard error is progress, its end the answer.

use super::progress::Progress;
use super::request::Request;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::future::Future;
use std::os::unix::process::CommandExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Split};
use tokio::process::{Child, ChildStderr, Command};

/// Time between two reports of a verb that prints nothing.
const BEAT: Duration = Duration::from_secs(5);
/// Time for each signal to end a verb, the politest first.
const ENDS: [(Signal, Duration); 3] = [
    (Signal::INT, Duration::from_secs(5)),
    (Signal::TERM, Duration::from_secs(10)),
    (Signal::KILL, Duration::from_secs(5)),
];
/// Time for the last lines of a verb that has ended: a descendant may keep its standard error open.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Why there is no answer.
pub enum Failure {
    /// The client cancelled the call.
    Cancelled,
    /// The verb cannot run, or failed; its own line.
    Verb(String),
}

impl Failure {
    /// One line for the client.
    pub fn line(self) -> String {
        match self {
            Failure::Cancelled => "cancelled".to_owned(),
            Failure::Verb(line) => line,
        }
    }
}

/// Runs a verb to its end, and returns what it printed.
pub async fn run(
    request: &Request,
    cancelled: impl Future<Output = ()>,
    progress: &mut Progress,
) -> Result<String, Failure> {
    let cannot = |error: std::io::Error| Failure::Verb(format!("nearmiss {} cannot run: {error}", request.words[0]));
    progress.line(&format!("nearmiss {} runs", request.words[0])).await;
    let mut child = start(request).map_err(cannot)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let printed = tokio::spawn(async move {
        let mut text = Vec::new();
        if let Some(mut stdout) = stdout {
            stdout.read_to_end(&mut text).await?;
        }
        std::io::Result::Ok(text)
    });
    let mut lines = stderr.map(|stderr| BufReader::new(stderr).split(b'\n'));
    tokio::pin!(cancelled);
    let (status, last) = tokio::select! {
        ended = follow(&mut child, &mut lines, progress) => ended.map_err(cannot)?,
        () = &mut cancelled => {
            end(&mut child).await;
            return Err(Failure::Cancelled);
        }
    };
    let printed = printed.await.map_err(|error| cannot(error.into()))?.map_err(cannot)?;
    match status.code() {
        // A gate that fails has a record, too.
        Some(0 | 1) if !printed.is_empty() => Ok(String::from_utf8_lossy(&printed).into_owned()),
        _ if last.is_empty() => Err(Failure::Verb(format!("nearmiss {}: {status}", request.words[0]))),
        _ => Err(Failure::Verb(last)),
    }
}

fn start(request: &Request) -> std::io::Result<Child> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(&request.words).current_dir(&request.place).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: between fork and exec only one system call is made. The thread that starts children is the one that lives
    // as long as the process, so that the signal comes with the end of the process and not before.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
    }
    Command::from(command).kill_on_drop(true).spawn()
}

type Lines = Option<Split<BufReader<ChildStderr>>>;

/// Reports lines until the verb has ended; returns its status and the last line.
async fn follow(
    child: &mut Child,
    lines: &mut Lines,
    progress: &mut Progress,
) -> std::io::Result<(ExitStatus, String)> {
    let mut last = String::new();
    let mut beat = tokio::time::interval(BEAT);
    let status = loop {
        tokio::select! {
            line = next(lines) => if let Some(line) = line {
                progress.line(&line).await;
                last = line;
            },
            status = child.wait() => break status?,
            _ = beat.tick() => progress.report().await,
        }
    };
    let rest = async {
        while let Some(line) = next_or_end(lines).await {
            last = line;
        }
    };
    let _all = tokio::time::timeout(LAST_LINES, rest).await.is_ok();
    Ok((status, last))
}

/// The next line; at the end of the stream, none comes ever.
async fn next(lines: &mut Lines) -> Option<String> {
    match next_or_end(lines).await {
        None => {
            *lines = None;
            std::future::pending().await
        }
        line => line,
    }
}

async fn next_or_end(lines: &mut Lines) -> Option<String> {
    let line = lines.as_mut()?.next_segment().await.ok()??;
    let line = String::from_utf8_lossy(&line).into_owned();
    Some(line.strip_prefix("nearmiss: ").map(str::to_owned).unwrap_or(line))
}

/// Ends a verb and waits for its end.
async fn end(child: &mut Child) {
    for (signal, time) in ENDS {
        let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid as i32)) else { return };
        // A process that has ended already needs no signal.
        let _gone = kill_process(pid, signal).is_err();
        if tokio::time::timeout(time, child.wait()).await.is_ok() {
            return;
        }
    }
}

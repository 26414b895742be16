//! The verb `mcp`: the Model Context Protocol over standard input and output, for agents.
//!
//! Each call of a tool runs a verb of this executable as a child with `--json`. So a call has the verb's own rules, and
//! ends as the verb does.

mod child;
mod progress;
mod request;
mod server;
mod size;
mod tool;
mod tools;

use crate::Remedies;
use crate::exit::print_message;
use anyhow::Context;
use rmcp::ServiceExt;
use server::Server;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

/// Time for children to end when the client is gone; afterwards their own signals end them.
const END: Duration = Duration::from_secs(30);

/// Arguments of `nearmiss mcp`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss mcp    serve until standard input ends; a client starts it

A client is configured with the command and its argument:

  { \"mcpServers\": { \"nearmiss\": { \"command\": \"nearmiss\", \"args\": [\"mcp\"] } } }

The tools are diagnose, report, rehearse, verify, gate and doctor. A tool runs the verb of its name, in the directory \
`cwd`, and returns what matters of the record in under 4 KB; `full` adds the record. Calls run one after another, since \
two would disturb each other's times. A call that is cancelled ends as Ctrl-C ends the verb, and nothing of it is left \
when standard input ends. Only standard input and output are used: no socket is opened.

Commands run with the rights of this process: `diagnose` and `gate` in a guest that is thrown away, `verify` here.")]
pub struct Args {}

/// Runs the verb.
pub fn run(_: Args, remedies: Remedies) -> anyhow::Result<ExitCode> {
    if std::io::stdin().is_terminal() {
        print_message("waiting for a client's messages on standard input; see nearmiss mcp --help");
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot wait for input")?;
    let served = runtime.block_on(serve(remedies));
    // A read of standard input that nobody answers must not keep the process.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(remedies: Remedies) -> anyhow::Result<()> {
    let server = Server::new(remedies);
    let calls = server.calls();
    let running = match server.serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => anyhow::bail!("standard input: {error}; a client of the Model Context Protocol writes there"),
    };
    running.waiting().await.context("the server ended early")?;
    // Calls that are cancelled end their children before they give this back.
    let _ended = tokio::time::timeout(END, calls.lock()).await.is_ok();
    Ok(())
}

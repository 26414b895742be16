//! Local: tasks run, and pages and blocks lie, where they are used, on machines with memory of several nodes.

pub mod apply;
mod costs;
mod detect;
mod evidence;
mod finding;
mod homes;
mod places;
mod plan;
mod remote_accesses;

use clap::Args as _;
use nearmiss_analysis::Needs;
use nearmiss_analysis::{Help, Parameter, Remedy, Value};

const NAME: &str = "local";

/// The definition.
pub const REMEDY: Remedy = Remedy {
    name: NAME,
    summary: "puts tasks, pages and blocks on the node where they are used",
    apply_help: Help {
        about: "Bind tasks to CPUs, and choose the memory nodes of mappings, of blocks, or of all memory",
        after: "Examples:
  nearmiss apply local --bind round-robin -- ./server             each new task on the next node
  nearmiss apply local --bind 0,2,1,3 -- ./server                 new tasks on these CPUs, in turn
  nearmiss apply local --home all=interleave -- ./server          all memory page by page
  nearmiss apply local --home 'server+0x1a2b=1' -- ./server       what this call allocates
  nearmiss apply local --home 'server+0x1a2b:0-1M=1' -- ./server  its first MiB
  nearmiss apply local --pools -- ./server                        heap blocks from pools by thread

A plan and a home of `all` are inherited by all that the command starts, static and Go programs included. Homes of \
single calls, which `diagnose` names, and pools need a library in the program: a static or a Go program has none, and \
nearmiss refuses it. \
Nothing persists: the next run without it is as before.",
    },
    verify_help: Help {
        about: "Does it help to bind tasks, and to choose the nodes of memory?",
        after: "Examples:
  nearmiss verify local --bind round-robin -- ./program
  nearmiss verify local --in-guests pentium3-xeon-numa-2x2 --home all=interleave -- ./prog  modelled",
    },
    rehearse_help: Help {
        about: "The run with its pages on other nodes, or its tasks on other CPUs",
        after: "Examples:
  nearmiss rehearse local                                 the newest run
  nearmiss rehearse local RUN --policies interleave,used  some homes only
  nearmiss rehearse local --policies compact,0/2/1/3      tasks bound node by node, and by a plan

Tasks are bound in the recorded order, and what the kernel does at its own addresses stays as it was.",
    },
    needs: Needs::Trace,
    options: apply::Args::augment_args,
    parameter: Parameter {
        name: costs::PARAMETER,
        value_name: "POLICY,…",
        help: "What to try. Homes: first-touch, interleave, used (the node that reads a page most), pools. Places: \
               round-robin, compact, or the CPUs of the tasks in the order in which these began, such as 0/2/1/3 \
               [default: all that fit]",
        parse: policy_of,
    },
    limit: None,
    detect: detect::detect,
    nothing_found: "no reads of another node's memory cost much",
    apply: apply::engage,
    attach: None,
    records: &[apply::RECORD],
    title: apply::title,
    abilities: apply::abilities,
};

/// Reads a value of the rehearsal's parameter.
fn policy_of(text: &str) -> Result<Value, String> {
    let wrong = "is none of first-touch, interleave, used, pools, round-robin, compact and CPUs such as 0/2/1/3";
    costs::Change::named(text).map(|_| Value::Name(text.to_owned())).ok_or_else(|| format!("{text} {wrong}"))
}

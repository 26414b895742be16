//! `nearmiss mcp` by the lines of its protocol: tools, errors, progress, cancellation, and the end of the client.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Nothing here takes longer, on a slow machine beside others.
const LONGEST: Duration = Duration::from_secs(120);

struct Server {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Server {
    /// Starts a server and shakes hands.
    fn start(place: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
        command.arg("mcp").current_dir(place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (line, lines) = channel();
        // Nothing but the protocol stands on standard output: any other line ends this thread, and the test.
        std::thread::spawn(move || {
            for text in BufReader::new(output).lines() {
                line.send(serde_json::from_str(&text.unwrap()).unwrap()).unwrap();
            }
        });
        let mut server = Server { child, input, lines };
        let about =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let shaken = server.request(0, "initialize", about);
        assert_eq!(shaken["result"]["serverInfo"]["name"], "nearmiss");
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn send_request(&mut self, id: u64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// The next message that is no progress.
    fn answer(&self) -> Value {
        loop {
            let message = self.lines.recv_timeout(LONGEST).expect("a message in time");
            if message["method"] != "notifications/progress" {
                return message;
            }
        }
    }

    fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send_request(id, method, params);
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// The one line of a call that fails.
    fn refusal(&mut self, id: u64, tool: &str, arguments: Value) -> String {
        let result = self.call(id, tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    /// Closes standard input, and waits for the end.
    fn end(&mut self) -> ExitStatus {
        self.input = None;
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < LONGEST, "not ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/fixtures").join(name)
}

/// Whether a process has this word on its command line.
fn runs(word: &str) -> bool {
    let has_word = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|it| it == word.as_bytes())
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(has_word)
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONGEST, "not in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A call that would sleep for an hour.
fn sleeping(word: &str) -> Value {
    let arguments = json!({"old": ["sleep", word], "new": ["sleep", word]});
    json!({"name": "verify", "arguments": arguments, "_meta": {"progressToken": "p"}})
}

#[test]
fn tools_have_schemas_and_a_bad_argument_is_one_line() {
    let place = tempfile::tempdir().unwrap();
    let mut server = Server::start(place.path());
    let tools = server.request(1, "tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["diagnose", "report", "rehearse", "verify", "gate", "doctor"]);
    for tool in tools.as_array().unwrap() {
        assert_eq!((&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]), (&"object".into(), &"object".into()));
        assert!(jsonschema::validator_for(&tool["inputSchema"]).is_ok(), "{tool}");
        assert!(jsonschema::validator_for(&tool["outputSchema"]).is_ok(), "{tool}");
    }
    let cases = [
        ("report", json!({"runs": "x"}), "report: wrong arguments: unknown field `runs`"),
        ("report", json!({"run": "none"}), "none: no run here"),
        ("report", json!({"run": "--html"}), "does not begin with `-`"),
        ("report", json!({"cwd": "none"}), "no such directory"),
        ("diagnose", json!({"command": "./program"}), "diagnose: wrong arguments: invalid type: string"),
        ("diagnose", json!({"command": ["./none"], "run": "x"}), "give one of command, run and pid"),
        ("diagnose", json!({"command": ["./none"]}), "./none: command not found"),
        ("rehearse", json!({"remedy": "prayer"}), "no remedy `prayer`; there are "),
        ("verify", json!({"remedy": "color"}), "give remedy and command, or old and new"),
        ("verify", json!({"old": ["true"], "new": ["true"], "pairs": 1}), "1 is not in 8.."),
        ("gate", json!({"command": ["true"]}), "give old and new, or command with either against or write"),
        ("gate", json!({"old": ["true"], "new": ["true"], "machine": "host"}), "name one of `nearmiss machine list`"),
    ];
    for (id, (tool, arguments, expected)) in (2..).zip(cases) {
        let text = server.refusal(id, tool, arguments);
        assert!(text.contains(expected), "{tool}: {text}");
    }
    let unknown = server.request(99, "tools/call", json!({"name": "none", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("there are diagnose"), "{unknown}");
    assert!(server.end().success());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn answers_are_small_and_fit_the_declared_schema() {
    let place = tempfile::tempdir().unwrap();
    let mut server = Server::start(place.path());
    let tools = server.request(1, "tools/list", json!({}))["result"]["tools"].clone();
    let tool = |name: &str| {
        tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"].clone()
    };
    let pairs = json!({"old": ["true"], "new": ["true", "a"], "pairs": 8, "time_limit": "1s"});
    let mut calls = vec![("doctor", json!({"quick": true})), ("verify", pairs)];
    calls.extend(["run-queue", "healthy", "server-locked"].map(|run| ("report", json!({"run": fixture(run)}))));
    for (id, (name, arguments)) in (2..).zip(calls) {
        let result = server.call(id, name, arguments.clone());
        let answer = &result["structuredContent"];
        let faults: Vec<String> = jsonschema::validator_for(&tool(name))
            .unwrap()
            .iter_errors(answer)
            .map(|fault| fault.to_string())
            .collect();
        assert_eq!(faults, Vec::<String>::new(), "{name} {arguments}: {result}");
        assert!(result.to_string().len() < 4096, "{name}: {} bytes", result.to_string().len());
        assert!(!result["content"][0]["text"].as_str().unwrap().is_empty() && answer.get("record").is_none());
    }
    let full = server.call(20, "report", json!({"run": fixture("run-queue"), "full": true}));
    assert_eq!(full["structuredContent"]["record"]["schema"], "nearmiss/report/1");
    let sentence = full["structuredContent"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("conflict misses in 2 of the 1,024 sets of L2"), "{sentence}");
}

#[test]
fn a_cancelled_call_ends_its_command_and_the_next_one_runs() {
    let place = tempfile::tempdir().unwrap();
    let (mut server, word) = (Server::start(place.path()), "3611.25");
    server.send_request(1, "tools/call", sleeping(word));
    let progress = server.lines.recv_timeout(LONGEST).unwrap();
    assert_eq!(
        (&progress["method"], &progress["params"]["progressToken"]),
        (&"notifications/progress".into(), &"p".into())
    );
    assert_eq!(progress["params"]["message"], "nearmiss verify runs");
    until(|| runs(word));
    // A call that waits for its turn can be cancelled too.
    server.send_request(2, "tools/call", sleeping("3611.5"));
    for id in [2, 1] {
        let params = json!({"requestId": id, "reason": "no longer wanted"});
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
    // Calls run one after another: an answer here means that the first one has ended, and neither was answered.
    let text = server.refusal(3, "report", json!({"run": "none"}));
    assert!(text.contains("none: no run here"), "{text}");
    assert!(!runs(word) && !runs("3611.5"));
    assert!(server.end().success());
}

#[test]
fn the_end_of_the_client_ends_the_calls_and_so_does_a_kill() {
    let place = tempfile::tempdir().unwrap();
    let (mut server, word) = (Server::start(place.path()), "3613.25");
    server.send_request(1, "tools/call", sleeping(word));
    until(|| runs(word));
    assert!(server.end().success());
    assert!(!runs(word));

    let (mut server, word) = (Server::start(place.path()), "3613.5");
    server.send_request(1, "tools/call", sleeping(word));
    until(|| runs(word));
    server.child.kill().unwrap();
    until(|| !runs(word));
}

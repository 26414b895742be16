//! The configuration: TOML, read whole, refused in one line where it is wrong.

use crate::engine;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that can be configured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// Event loops; 0 means one a CPU.
    #[serde(default = "one")]
    pub threads: usize,
    /// How they wait.
    #[serde(default)]
    pub engine: engine::Kind,
    /// The least interval between waits.
    #[serde(default)]
    pub pace: Pace,
    /// The latency that `pace = "auto"` may add at the 99th percentile.
    #[serde(default = "millisecond", deserialize_with = "budget")]
    pub budget: Duration,
    /// The servers behind.
    #[serde(rename = "origin")]
    pub origins: Vec<Origin>,
    /// Limits of the cache.
    #[serde(default)]
    pub cache: Cache,
    /// Limits beyond which requests are refused.
    #[serde(default)]
    pub limits: Limits,
    /// Times after which work is given up.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// The access log; none by default.
    pub access_log: Option<PathBuf>,
    /// The port for the operator; none by default.
    pub admin: Option<Admin>,
}

/// The least interval between waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// None: a wait returns as soon as something happened.
    #[default]
    Off,
    /// The paper's interval 0: never wait, look, yield, look again.
    Busy,
    /// So long.
    Interval(Duration),
    /// The longest within the budget.
    Auto,
}

/// A server behind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Address of the server.
    pub address: SocketAddr,
    /// Path requested to check the server's health; without it a connection is enough.
    pub health: Option<String>,
}

/// Limits of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// The cache's name in Cache-Status and Via.
    pub name: String,
    /// Bytes in all.
    #[serde(deserialize_with = "bytes")]
    pub memory: u64,
    /// The longest body that is kept.
    #[serde(deserialize_with = "bytes")]
    pub object: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Cache { name: "nearmiss".to_owned(), memory: 256 << 20, object: 8 << 20 }
    }
}

/// Limits beyond which requests are refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Clients' connections in all.
    pub connections: usize,
    /// From this number of connections on keep-alive becomes shorter.
    pub shorten_from: usize,
    /// Bytes of a request's head.
    #[serde(deserialize_with = "bytes")]
    pub head: u64,
    /// Bytes of a request's target.
    #[serde(deserialize_with = "bytes")]
    pub target: u64,
    /// Bytes of a request's body.
    #[serde(deserialize_with = "bytes")]
    pub body: u64,
    /// Idle connections to one origin that a thread keeps.
    pub idle_origin: usize,
    /// Origins that are tried for one request.
    pub tries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 10_000,
            shorten_from: 7_000,
            head: 32 << 10,
            target: 8 << 10,
            body: 1 << 30,
            idle_origin: 64,
            tries: 3,
        }
    }
}

/// Times after which work is given up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// From the first byte of a head to its last one.
    #[serde(deserialize_with = "duration")]
    pub head: Duration,
    /// Without a byte of a request's body.
    #[serde(deserialize_with = "duration")]
    pub body: Duration,
    /// Without a byte taken by the client.
    #[serde(deserialize_with = "duration")]
    pub write: Duration,
    /// Between requests.
    #[serde(deserialize_with = "duration")]
    pub idle: Duration,
    /// To connect to an origin.
    #[serde(deserialize_with = "duration")]
    pub connect: Duration,
    /// Without a byte from an origin.
    #[serde(deserialize_with = "duration")]
    pub origin: Duration,
    /// Between two looks at an origin's health.
    #[serde(deserialize_with = "duration")]
    pub health: Duration,
    /// From SIGTERM to the end.
    #[serde(deserialize_with = "duration")]
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Timeouts {
            head: seconds(10),
            body: seconds(30),
            write: seconds(30),
            idle: seconds(60),
            connect: seconds(3),
            origin: seconds(30),
            health: seconds(5),
            drain: seconds(10),
        }
    }
}

/// The port for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// Address of the operator's port: loopback, unless there is a token.
    pub listen: SocketAddr,
    /// Token that a request must show as `Authorization: Bearer TOKEN`.
    pub token: Option<String>,
}

/// Shortest and longest interval and budget of `pace`: what `nearmiss apply pace` takes, too.
const PACE: std::ops::RangeInclusive<Duration> = Duration::from_micros(10)..=Duration::from_secs(1);

/// A configuration that is not taken.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0)]
pub struct ConfigError(String);

impl Config {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError(format!("{shown}: not read: {error}; name a file with --config FILE")))?;
        Self::parse(&text, &shown.to_string())
    }

    /// Reads a text; `name` stands in messages.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let config: Config = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            let why = error.message().replace('\n', " ");
            ConfigError(format!("{name}:{line}: {why}; see docs/reference/accelerator.md for what is allowed"))
        })?;
        config.check().map_err(|why| ConfigError(format!("{name}: {why}")))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| Err(what.to_owned());
        if self.listen.is_empty() {
            return wrong("listen: no address; give one such as listen = [\"127.0.0.1:8081\"]");
        }
        if self.origins.is_empty() {
            return wrong("origin: none; add [[origin]] with an address");
        }
        if self.limits.head < 256 || self.limits.head > (60 << 10) || self.limits.target > self.limits.head {
            return wrong("limits: head must be from 256 bytes to 60KiB and target no longer; change one of the two");
        }
        if self.limits.tries == 0 || self.limits.connections == 0 {
            return wrong("limits: tries and connections must be at least 1");
        }
        if self.cache.object > self.cache.memory / 2 {
            return wrong("cache.object: more than half of cache.memory; lower the one or raise the other");
        }
        if self.threads > 256 {
            return wrong("threads: more than 256; give 0 for one a CPU");
        }
        if self.cache.name.is_empty()
            || !self.cache.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        {
            return wrong("cache.name: must be of letters, digits, '-', '_' and '.'");
        }
        let loopback = |admin: &Admin| admin.listen.ip().is_loopback() || admin.token.is_some();
        if !self.admin.as_ref().is_none_or(loopback) {
            return wrong("admin.listen: not loopback and no token; set admin.token or listen on 127.0.0.1");
        }
        self.refuse_own_addresses(&self.listen)
    }

    /// Refuses an origin that is this proxy: each request would come back until it takes every connection. `listening`
    /// are addresses at which the proxy is reached.
    pub fn refuse_own_addresses(&self, listening: &[SocketAddr]) -> Result<(), String> {
        for origin in self.origins.iter().map(|origin| origin.address) {
            if let Some(own) = listening.iter().find(|own| is_reached(**own, origin)) {
                return Err(format!(
                    "origin {origin}: this proxy itself, which listens on {own}; name the server behind it"
                ));
            }
            if self.admin.as_ref().is_some_and(|admin| is_reached(admin.listen, origin)) {
                return Err(format!("origin {origin}: the operator's own port (admin.listen); name the server behind"));
            }
        }
        Ok(())
    }

    /// Returns the settings that differ from `other` and take effect only at a new start.
    pub fn takes_a_restart(&self, other: &Config) -> Vec<&'static str> {
        let parts = [
            ("listen", self.listen != other.listen),
            ("threads", self.threads != other.threads),
            ("engine", self.engine != other.engine),
            ("cache.memory", self.cache.memory != other.cache.memory),
            ("admin", self.admin != other.admin),
        ];
        parts.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }
}

/// Returns whether a listener on `own` answers a connection to `target`, judged by the addresses alone.
fn is_reached(own: SocketAddr, target: SocketAddr) -> bool {
    let (ip, target_ip) = (own.ip().to_canonical(), target.ip().to_canonical());
    // To connect to no address at all is to connect to this machine.
    let local = target_ip.is_loopback() || target_ip.is_unspecified();
    let same = ip == target_ip || local && ip.is_unspecified() || target_ip.is_unspecified() && ip.is_loopback();
    own.port() == target.port() && own.port() != 0 && ip.is_ipv4() == target_ip.is_ipv4() && same
}

fn one() -> usize {
    1
}

fn millisecond() -> Duration {
    Duration::from_millis(1)
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_duration(&text)
        .map_err(|error| D::Error::custom(format!("{text:?} is no duration such as \"5s\": {error}")))
}

fn budget<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    paced("budget of ", duration(from)?).map_err(D::Error::custom)
}

fn paced(before: &str, time: Duration) -> Result<Duration, String> {
    let given = humantime::format_duration(time);
    let taken = PACE.contains(&time).then_some(time);
    taken.ok_or_else(|| format!("{before}{given}: must be within 10us and 1s, such as \"1ms\""))
}

/// A number, or a text such as `256MiB`.
fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Text(String),
    }
    let text = match Either::deserialize(from)? {
        Either::Number(number) => return Ok(number),
        Either::Text(text) => text,
    };
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match text[split..].trim() {
        "" | "B" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        _ => None,
    };
    let number: Option<u64> = text[..split].parse().ok();
    number
        .zip(shift)
        .and_then(|(number, shift)| number.checked_mul(1 << shift))
        .ok_or_else(|| D::Error::custom(format!("{text:?} is no size such as \"64MiB\"")))
}

impl<'de> Deserialize<'de> for Pace {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Ok(match text.as_str() {
            "off" => Pace::Off,
            "busy" => Pace::Busy,
            "auto" => Pace::Auto,
            other => {
                let neither = "is neither \"off\", \"busy\", \"auto\" nor a duration such as \"1ms\"";
                let time = humantime::parse_duration(other);
                let time = time.map_err(|_| D::Error::custom(format!("{other:?} {neither}")))?;
                Pace::Interval(paced("pace of ", time).map_err(D::Error::custom)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "listen = [\"127.0.0.1:0\"]\n[[origin]]\naddress = \"127.0.0.1:80\"\n";

    fn refused(text: &str) -> String {
        Config::parse(text, "a.toml").unwrap_err().to_string()
    }

    #[test]
    fn little_is_enough() {
        let config = Config::parse(LEAST, "a.toml").unwrap();
        assert_eq!((config.threads, config.engine, config.pace), (1, engine::Kind::Epoll, Pace::Off));
        assert_eq!(config.cache.memory, 256 << 20);
        let config =
            Config::parse(&format!("pace = \"5ms\"\n{LEAST}[cache]\nmemory = \"3KiB\"\nobject = 9\n"), "a.toml")
                .unwrap();
        assert_eq!((config.pace, config.cache.memory), (Pace::Interval(Duration::from_millis(5)), 3072));
    }

    #[test]
    fn errors_are_named_with_their_line() {
        assert!(refused(&format!("{LEAST}[cache]\nmemroy = 3\n")).starts_with("a.toml:5: unknown field `memroy`"));
        assert!(refused(&format!("pace = \"fast\"\n{LEAST}")).starts_with("a.toml:1: \"fast\" is neither"));
        assert!(refused(&format!("{LEAST}[cache]\nmemory = \"3MB\"\n")).contains("no size such as"));
        assert!(refused("listen = []\n[[origin]]\naddress = \"127.0.0.1:80\"").contains("listen: no address"));
        assert!(refused(&format!("{LEAST}[admin]\nlisten = \"0.0.0.0:1\"\n")).contains("not loopback and no token"));
        assert!(!refused("listen = [").contains('\n'));
    }

    #[test]
    fn intervals_are_those_of_apply_pace() {
        let with = |setting: &str| format!("{setting}\n{LEAST}");
        for (setting, wanted) in [
            ("pace = \"9us\"", "pace of 9us: must be within 10us and 1s"),
            ("pace = \"0s\"", "pace of 0s: must be within 10us and 1s"),
            ("pace = \"1001ms\"", "pace of 1s 1ms: must be within 10us and 1s"),
            ("budget = \"2h\"", "budget of 2h: must be within 10us and 1s"),
        ] {
            assert!(refused(&with(setting)).starts_with(&format!("a.toml:1: {wanted}")), "{}", refused(&with(setting)));
        }
        for setting in ["pace = \"10us\"", "pace = \"1s\"", "budget = \"1s\"", "pace = \"busy\""] {
            assert!(Config::parse(&with(setting), "a.toml").is_ok(), "{setting}");
        }
    }

    #[test]
    fn an_origin_is_not_the_proxy_itself() {
        let with =
            |listen: &str, origin: &str| format!("listen = [\"{listen}\"]\n[[origin]]\naddress = \"{origin}\"\n");
        for (listen, origin, is_itself) in [
            ("127.0.0.1:81", "127.0.0.1:81", true),
            ("0.0.0.0:81", "127.0.0.1:81", true),
            ("0.0.0.0:81", "127.9.9.9:81", true),
            ("127.0.0.1:81", "0.0.0.0:81", true),
            ("127.0.0.1:81", "[::ffff:127.0.0.1]:81", true),
            ("[::]:81", "[::1]:81", true),
            ("192.0.2.1:81", "192.0.2.1:81", true),
            ("127.0.0.1:81", "127.0.0.1:82", false),
            ("127.0.0.1:81", "127.0.0.2:81", false),
            ("[::]:81", "127.0.0.1:81", false),
            ("0.0.0.0:81", "192.0.2.1:81", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
        ] {
            let text = with(listen, origin);
            assert_eq!(Config::parse(&text, "a.toml").is_err(), is_itself, "{listen} {origin}");
        }
        let message = refused(&with("0.0.0.0:81", "127.0.0.1:81"));
        assert!(
            message.starts_with("a.toml: origin 127.0.0.1:81: this proxy itself, which listens on 0.0.0.0:81"),
            "{message}"
        );
        let admin = format!("{}[admin]\nlisten = \"127.0.0.1:82\"\n", with("127.0.0.1:81", "127.0.0.1:82"));
        assert!(refused(&admin).contains("origin 127.0.0.1:82: the operator's own port"));
    }
}

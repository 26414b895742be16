//! Requests of WebAxe-4's clients: methods, conditions, objects; and the answers that they must get.

use super::Arguments;
use crate::content::{Content, mix};
use crate::http::reply::{Body, Expected, Reply, Statuses};
use crate::laws;
use crate::load::{Answer, Fault, Load};
use crate::object::{Kind, Object};
use crate::part::LoadPart;
use crate::popularity::Popularity;
use httpdate::HttpDate;
use std::io::Write as _;
use std::time::{Duration, UNIX_EPOCH};

const POST: f64 = 0.015;
const HEAD: f64 = 0.001;
const IMS_200: f64 = 0.05;
const IMS_304: f64 = 0.10;
const RELOAD: f64 = 0.05;
/// Conditions and reloads are this much rarer while the cache fills.
const SPECIAL_WHILE_FILLING: f64 = 0.1;
/// Bodies of POST requests have up to so many bytes.
const LONGEST_POST: u64 = 8 << 10;
const DAY: u64 = 86_400;

/// Requested objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// WebAxe-4, as in P2.
    #[value(name = "webaxe-4")]
    WebAxe4,
    /// GETs of files, each as popular as the others.
    Static,
}

/// Kind of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A GET without more.
    #[default]
    Plain,
    /// If-Modified-Since a date before the last change: 200.
    Changed,
    /// If-Modified-Since the last change: 304.
    Unchanged,
    /// A reload: caches must go to the origin.
    Reload,
    /// A POST.
    Post,
    /// A HEAD.
    Head,
}

/// One request.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebRequest {
    object: Object,
    form: Form,
    id: u64,
}

/// The clients of one process.
pub struct Clients {
    popularity: Popularity,
    profile: Profile,
    files: u32,
    /// For each phase, whether the cache is being filled.
    filling: Vec<bool>,
    authority: String,
    closes: bool,
    seed: u64,
    /// Numbers of requests: the part's number and a count.
    first_id: u64,
    sent: u64,
}

impl Clients {
    /// Creates the clients that the arguments specify.
    pub fn new(arguments: &Arguments, part: LoadPart, seed: u64, working_set: u64, filling: Vec<bool>) -> Clients {
        Clients {
            popularity: Popularity::new(part.index as u16, working_set),
            profile: arguments.profile,
            files: arguments.objects,
            filling,
            authority: arguments.proxy.clone(),
            closes: arguments.connection_a_request,
            seed,
            first_id: (part.index as u64 + 1) << 40,
            sent: 0,
        }
    }

    /// Leaves the first requests of the sequence out, as if they had been sent: those that fill the working set, and
    /// those that followed.
    pub fn skip(&mut self, requests: u64) {
        for _ in 0..requests {
            let is_filling = !self.popularity.is_full();
            self.draw(is_filling);
        }
    }

    /// The next request of the sequence.
    fn draw(&mut self, is_filling: bool) -> WebRequest {
        self.sent += 1;
        let (hash, id) = (mix(mix(self.seed) ^ self.sent), self.first_id + self.sent);
        match self.profile {
            Profile::WebAxe4 => {
                WebRequest { object: self.popularity.next(hash, is_filling), form: Clients::form(hash, is_filling), id }
            }
            Profile::Static => {
                let number = (hash % u64::from(self.files)) as u32;
                WebRequest { object: Object { kind: Kind::File, world: 0, number }, form: Form::Plain, id }
            }
        }
    }

    fn form(hash: u64, is_filling: bool) -> Form {
        let (method, special) = (laws::unit(mix(hash ^ 1)), laws::unit(mix(hash ^ 2)));
        let factor = if is_filling { SPECIAL_WHILE_FILLING } else { 1.0 };
        match (method, special / factor) {
            (method, _) if method < POST => Form::Post,
            (method, _) if method < POST + HEAD => Form::Head,
            (_, special) if special < IMS_200 => Form::Changed,
            (_, special) if special < IMS_200 + IMS_304 => Form::Unchanged,
            (_, special) if special < IMS_200 + IMS_304 + RELOAD => Form::Reload,
            _ => Form::Plain,
        }
    }

    fn expected(request: &WebRequest) -> Expected {
        let statuses = if request.form == Form::Unchanged { Statuses::NotModified } else { Statuses::Ok };
        Expected {
            body: Body::Content(request.object.content(), request.object.size()),
            statuses,
            is_head: request.form == Form::Head,
            is_plain: request.form == Form::Plain,
            id: Some(request.id),
        }
    }

    fn conditions(request: &WebRequest, out: &mut Vec<u8>) {
        let date = |seconds| HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds));
        // Writing into memory cannot fail.
        _ = match request.form {
            Form::Changed => write!(out, "If-Modified-Since: {}\r\n", date(request.object.modified() - DAY)),
            Form::Unchanged => write!(out, "If-Modified-Since: {}\r\n", date(request.object.modified())),
            Form::Reload => write!(out, "Cache-Control: no-cache\r\nPragma: no-cache\r\n"),
            Form::Post => write!(out, "Content-Length: {}\r\n", post_length(request)),
            Form::Plain | Form::Head => Ok(()),
        };
    }
}

fn post_length(request: &WebRequest) -> u64 {
    mix(request.id) % LONGEST_POST
}

impl Load for Clients {
    type Request = WebRequest;
    type Reply = Reply;
    const SERVER_CLOSES: bool = true;

    fn pick(&mut self, phase: usize) -> WebRequest {
        self.draw(self.filling.get(phase).copied().unwrap_or(false))
    }

    fn write(&self, request: &WebRequest, out: &mut Vec<u8>) {
        let method = match request.form {
            Form::Post => "POST",
            Form::Head => "HEAD",
            _ => "GET",
        };
        // An answer to POST makes caches forget the target: POST has targets of its own.
        let query = if request.form == Form::Post { "?post" } else { "" };
        let connection = if self.closes { "Connection: close\r\n" } else { "" };
        // Writing into memory cannot fail.
        _ = write!(
            out,
            "{method} {}{query} HTTP/1.1\r\nHost: {}\r\nUser-Agent: nearmiss-webload\r\nAccept: */*\r\n\
             Webload-Id: {}\r\n{connection}",
            request.object, self.authority, request.id
        );
        Clients::conditions(request, out);
        out.extend_from_slice(b"\r\n");
        if request.form == Form::Post {
            let start = out.len();
            out.resize(start + post_length(request) as usize, 0);
            Content::of(request.id).fill(0, &mut out[start..]);
        }
    }

    fn read(&self, request: &WebRequest, reply: &mut Reply, bytes: &[u8]) -> Result<Option<Answer>, Fault> {
        reply.read(&Clients::expected(request), bytes)
    }

    fn end(&self, request: &WebRequest, reply: &mut Reply) -> Result<Answer, Fault> {
        reply.end(&Clients::expected(request))
    }

    fn is_filled(&self) -> bool {
        self.profile == Profile::Static || self.popularity.is_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(is_filling: bool) -> impl Fn(Form) -> f64 {
        let many = 400_000;
        let forms: Vec<Form> = (0..many).map(|i| Clients::form(mix(i), is_filling)).collect();
        move |form| forms.iter().filter(|one| **one == form).count() as f64 / many as f64
    }

    #[test]
    fn methods_and_conditions_have_the_shares_of_table_3() {
        let share = shares(false);
        let is = |form, wanted: f64| assert!((share(form) - wanted).abs() < 0.0015, "{form:?} {}", share(form));
        is(Form::Post, 0.015);
        is(Form::Head, 0.001);
        // Conditions and reloads are those of the GETs, 98.4% of the requests.
        is(Form::Changed, 0.05 * 0.984);
        is(Form::Unchanged, 0.10 * 0.984);
        is(Form::Reload, 0.05 * 0.984);
        is(Form::Plain, 0.80 * 0.984);
    }

    #[test]
    fn a_run_goes_on_where_another_one_ended() {
        let clients = || Clients {
            popularity: Popularity::new(0, 1 << 20),
            profile: Profile::WebAxe4,
            files: 0,
            filling: vec![true, false],
            authority: String::new(),
            closes: false,
            seed: 1,
            first_id: 0,
            sent: 0,
        };
        let mut first = clients();
        let mut sent = 0;
        while !first.is_filled() {
            first.pick(0);
            sent += 1;
        }
        (0..100).for_each(|_| _ = first.pick(1));
        let mut second = clients();
        second.skip(sent + 100);
        let requests = |clients: &mut Clients| {
            (0..50).map(|_| clients.pick(1)).map(|request| (request.object, request.id)).collect::<Vec<_>>()
        };
        assert_eq!(requests(&mut first), requests(&mut second));
    }

    #[test]
    fn conditions_are_rare_while_the_cache_fills() {
        let share = shares(true);
        assert!((share(Form::Plain) - 0.98 * 0.984).abs() < 0.0015, "{}", share(Form::Plain));
    }
}

//! Before a Debian nginx: files, ranges, conditional reloads.
#![allow(clippy::unwrap_used, reason = "a test that fails by unwrap has failed well")]

use crate::support::{self, Accelerator, Origin};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

struct Nginx {
    process: Child,
    _files: tempfile::TempDir,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _killed = Command::new("kill").arg(self.process.id().to_string()).status().is_ok();
        let _ended = self.process.wait().is_ok();
    }
}

fn start(files: &[(&str, &[u8])]) -> Option<(Nginx, Origin)> {
    if !Path::new("/usr/sbin/nginx").exists() {
        println!("skipped: no /usr/sbin/nginx");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().display();
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _made = Command::new("chmod").args(["-R", "a+rx"]).arg(folder.path()).status().unwrap();
    let text = format!(
        "daemon off; pid {shown}/pid; error_log {shown}/error; events {{}} http {{ access_log off; types {{ text/html html; }} \
         client_body_temp_path {shown}/body; proxy_temp_path {shown}/proxy; fastcgi_temp_path {shown}/f; \
         uwsgi_temp_path {shown}/u; scgi_temp_path {shown}/s; gzip on; gzip_proxied any; gzip_vary on; gzip_min_length 1; \
         server {{ listen {address}; root {shown}; add_header Cache-Control max-age=60; }} }}"
    );
    std::fs::write(folder.path().join("conf"), text).unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let child = Command::new("/usr/sbin/nginx").arg("-c").arg(folder.path().join("conf")).spawn().unwrap();
    support::until("nginx", || std::net::TcpStream::connect(address).is_ok());
    Some((Nginx { process: child, _files: folder }, Origin { address, seen: Arc::new(Mutex::default()) }))
}

#[test]
fn files_ranges_and_conditional_reloads_of_an_nginx() {
    let media: Vec<u8> = (0..3_000_000u32).map(|number| (number / 7) as u8).collect();
    let page = b"<title>page</title>".as_slice();
    let Some((_nginx, origin)) = start(&[("a.html", page), ("m.bin", &media)]) else { return };
    let accelerator = Accelerator::before(&[&origin], "threads = 2\n");
    let get =
        |path: &str, fields: &str| accelerator.request(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    for _ in 0..2 {
        assert_eq!(get("/a.html", "").body, page);
        let zipped = get("/a.html", "Accept-Encoding: gzip\r\n");
        assert_eq!((zipped.field("content-encoding"), zipped.body[..2].to_vec()), (Some("gzip"), vec![0x1f, 0x8b]));
        assert!(get("/m.bin", "").body == media);
        let part = get("/m.bin", "Range: bytes=1000000-1999999\r\n");
        assert!(part.status() == 206 && part.body == media[1_000_000..2_000_000]);
    }
    let hit = get("/a.html", "");
    assert!(hit.field("cache-status").unwrap().starts_with("nearmiss; hit"));
    let etag = hit.field("etag").unwrap().to_owned();
    assert_eq!(get("/a.html", &format!("If-None-Match: {etag}\r\n")).status(), 304);
    let reload = get("/a.html", &format!("If-None-Match: {etag}\r\nCache-Control: max-age=0\r\n"));
    assert_eq!((reload.status(), reload.field("etag")), (304, Some(etag.as_str())));
    assert_eq!(get("/missing", "").status(), 404);
}

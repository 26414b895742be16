use super::super::site::Site;
use nearmiss_analysis::CannotEngage;
use nearmiss_record::words::bytes;
use std::fmt;

/// Which copies go past the caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Call sites that request them; none: nothing changes.
    pub sites: Vec<Site>,
    /// Least size in bytes of a copy.
    pub least_bytes: u64,
}

/// Most sites that the library distinguishes: as `MOST_SITES` in `native/preload/bypass/sites.h`.
pub const MOST_SITES: usize = 20;
/// Longest text of all sites.
const MOST_TEXT: usize = 8000;
/// A copy of two lines has a whole line, wherever it begins: as `LEAST_STREAM_BYTES`.
const LEAST_COPY_BYTES: u64 = 128;

impl Default for Options {
    /// No site; copies of a page and more.
    fn default() -> Self {
        Options { sites: Vec::new(), least_bytes: 4096 }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), CannotEngage> {
        let wrong = |what: String| Err(CannotEngage::Parameters(what));
        if !cfg!(target_arch = "x86_64") {
            return wrong(
                "bypass --copies: the stores that go past the caches are x86-64's; this machine is none".into(),
            );
        }
        if self.least_bytes < LEAST_COPY_BYTES {
            return wrong(format!(
                "--min {}: a copy of under {LEAST_COPY_BYTES} bytes may hold no whole line; give as many at least",
                self.least_bytes
            ));
        }
        let twice = self.sites.iter().enumerate().find(|(at, site)| self.sites[..*at].contains(site));
        if let Some((_, site)) = twice {
            return wrong(format!("--site {site} is named twice: name each site once"));
        }
        if self.sites.len() > MOST_SITES {
            return wrong(format!("{} sites: the library distinguishes {MOST_SITES}; name fewer", self.sites.len()));
        }
        let text: usize = self.sites.iter().map(|site| site.to_string().len() + 1).sum();
        if text > MOST_TEXT {
            return wrong(format!(
                "the names of the sites have {text} bytes, and there is room for {MOST_TEXT}; name fewer"
            ));
        }
        Ok(())
    }
}

/// `copies of keep_record of 4 KiB and more`, `no copies`.
impl fmt::Display for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = bytes(self.least_bytes);
        match self.sites.as_slice() {
            [] => out.write_str("no copies"),
            [site] => write!(out, "copies of {site} of {least} and more"),
            [site, rest @ ..] => write!(out, "copies of {site} and {} more sites of {least} and more", rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let site = |text: String| text.parse::<Site>().unwrap_or_else(|why: String| panic!("{why}"));
        let of = |count, least_bytes| Options {
            sites: (0..count).map(|number| site(format!("keep{number}"))).collect(),
            least_bytes,
        };
        assert!(of(0, 4096).check().is_ok() && of(MOST_SITES, LEAST_COPY_BYTES).check().is_ok());
        assert!(of(1, LEAST_COPY_BYTES - 1).check().is_err() && of(MOST_SITES + 1, 4096).check().is_err());
        let named = |names: &[&str]| Options {
            sites: names.iter().map(|name| site((*name).to_owned())).collect(),
            least_bytes: 4096,
        };
        assert!(named(&[&"x".repeat(MOST_TEXT)]).check().is_err());
        assert!(named(&["a", "b@a", "b"]).check().is_ok());
        let twice = named(&["a", "b@a", "/usr/bin/b+0x1F", "b+0x1f"]).check().map_err(|error| error.to_string());
        assert_eq!(twice, Err("--site b+0x1f is named twice: name each site once".to_owned()));
        assert_eq!(of(2, 65_536).to_string(), "copies of keep0 and 1 more sites of 64 KiB and more");
    }
}

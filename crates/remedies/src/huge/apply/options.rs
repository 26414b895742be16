//! Options of `apply huge`.

use nearmiss_analysis::CannotEngage;

/// Most sites that the library takes.
pub const MOST_SITES: usize = 64;
/// Longest name of a program or library in a site.
const LONGEST_NAME: usize = 120;

/// A call that allocates memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOf {
    /// Name of the program's or library's file.
    pub module: String,
    /// Address of the call, as the file was linked.
    pub address: u64,
}

/// `nearmiss apply huge`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// Only what this call allocates, in blocks of 2 MiB and more; again for another call [default: all memory without
    /// a file]
    #[arg(long = "site", value_name = "FILE+0xADDRESS", value_parser = parse_site)]
    pub sites: Vec<CallOf>,
}

impl Args {
    /// Refuses more sites than the library takes.
    pub(super) fn check(&self) -> Result<(), CannotEngage> {
        if self.sites.len() > MOST_SITES {
            let why = format!("--site: more than {MOST_SITES}; leave them out, and all memory is put into large pages");
            return Err(CannotEngage::Parameters(why));
        }
        Ok(())
    }

    /// The sites as `native/preload/kit/calls.c` reads them.
    pub(super) fn for_library(&self) -> String {
        let written = self.sites.iter().map(|site| format!("{}+{:x}", site.module, site.address));
        written.collect::<Vec<_>>().join(";")
    }
}

fn parse_site(text: &str) -> Result<CallOf, String> {
    let how = || "write FILE+0xADDRESS, as diagnose names it: the name of the program's or library's file".to_owned();
    let (module, address) = text.rsplit_once("+0x").ok_or_else(how)?;
    let sound = !module.is_empty() && module.len() <= LONGEST_NAME && !module.contains(['+', ';', '/']);
    let address = u64::from_str_radix(address, 16).ok().filter(|_| sound).ok_or_else(how)?;
    Ok(CallOf { module: module.to_owned(), address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_read_and_written_for_the_library() {
        let site = |text: &str| parse_site(text).ok();
        let sites: Vec<CallOf> = ["p+0x11d9", "lib.so.1+0xa"].into_iter().filter_map(site).collect();
        assert_eq!(Args { sites: sites.clone() }.for_library(), "p+11d9;lib.so.1+a");
        for wrong in ["", "p", "p+11", "+0x1", "a/b+0x1", "p+0xg", "p;q+0x1"] {
            assert!(parse_site(wrong).is_err_and(|why| why.starts_with("write FILE+0xADDRESS")), "{wrong}");
        }
        let many = Args { sites: vec![sites[0].clone(); MOST_SITES + 1] };
        assert!(many.check().is_err() && Args { sites }.check().is_ok());
    }
}

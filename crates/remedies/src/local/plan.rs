//! From a cause to what is to be done about it, as options of `apply` and as homes of a replay.

use super::apply::Bind;
use nearmiss_machine::attribution::{Cause, PageRun, RemoteObject};
use nearmiss_record::model::ObjectKind;
use nearmiss_record::policy::{Home, HomeRule};

/// An object in more parts than this is interleaved: so many ranges are no plan that a person would follow.
const MOST_PARTS: usize = 16;

/// Treatment of one cause, or none of this remedy.
#[derive(Clone, Debug, PartialEq)]
pub enum Treatment {
    /// Pages on the nodes that use them.
    Home(RemoteObject),
    /// Pages that all nodes read, spread over the nodes.
    Interleave(RemoteObject),
    /// Tasks that stay where their pages are.
    Bind,
    /// Blocks from pools by thread.
    Pools,
    /// Lines that several nodes write.
    NoneForWritten,
    /// Contents of files.
    NoneForFiles,
}

impl Treatment {
    /// The cause that it is against.
    pub fn cause(&self) -> Cause {
        match self {
            Treatment::Home(object) | Treatment::Interleave(object) => object.cause,
            Treatment::Bind => Cause::Moved,
            Treatment::Pools => Cause::Pool,
            Treatment::NoneForWritten => Cause::Written,
            Treatment::NoneForFiles => Cause::PageCache,
        }
    }

    /// The options of `apply` that do it; none where it cannot be done from outside. Tasks are bound by the best plan.
    pub fn options(&self, best: &Bind) -> Option<Vec<String>> {
        match self {
            Treatment::Home(object) => homes(object),
            Treatment::Interleave(object) => Some(home(&object.site.as_ref()?.to_string(), "interleave")),
            Treatment::Bind => Some(vec!["--bind".to_owned(), best.to_string()]),
            Treatment::Pools => Some(vec!["--pools".to_owned()]),
            Treatment::NoneForWritten | Treatment::NoneForFiles => None,
        }
    }
}

/// Returns the homes of each part of one call's memory, on its node.
fn homes(object: &RemoteObject) -> Option<Vec<String>> {
    // Every thread's stack comes from one call, so the call does not identify the thread.
    let site = object.site.as_ref().filter(|_| object.kind != ObjectKind::Stack)?;
    let mapping = site.to_string();
    if object.parts.len() > MOST_PARTS {
        return Some(home(&mapping, "interleave"));
    }
    let option = |part: &PageRun| {
        let nth = if part.nth == 0 { String::new() } else { format!("#{}", part.nth) };
        home(&format!("{mapping}{nth}:{}-{}", part.bytes.0, part.bytes.1), &part.node.to_string())
    };
    Some(object.parts.iter().flat_map(option).collect())
}

fn home(mapping: &str, node: &str) -> Vec<String> {
    vec!["--home".to_owned(), format!("{mapping}={node}")]
}

/// The pages of an object on the nodes that read them most.
pub fn rules_used(object: &RemoteObject) -> Vec<HomeRule> {
    if object.parts.len() > MOST_PARTS {
        return rules(object, Home::Interleave);
    }
    let rule =
        |part: &PageRun| HomeRule { pages: Some(part.addresses), task: None, home: Home::Node(part.node.into()) };
    object.parts.iter().map(rule).collect()
}

/// The pages of an object where they are, part by part: what lies between them may be another's.
pub fn rules_staying(object: &RemoteObject) -> impl Iterator<Item = HomeRule> {
    object.parts.iter().map(|part| HomeRule { pages: Some(part.addresses), task: None, home: Home::Recorded })
}

/// All pages of an object by one rule.
pub fn rules(object: &RemoteObject, home: Home) -> Vec<HomeRule> {
    let from = object.parts.iter().map(|part| part.addresses.0).min();
    let to = object.parts.iter().map(|part| part.addresses.1).max();
    from.zip(to).map(|pages| HomeRule { pages: Some(pages), task: None, home }).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_machine::attribution::Site;

    fn object(parts: Vec<PageRun>) -> RemoteObject {
        RemoteObject {
            kind: ObjectKind::Heap,
            name: "p.c:7 main".into(),
            cause: Cause::FirstTouch,
            site: Some(Site { module: "/bin/p".into(), address: 0x11d9 }),
            remote: 10,
            waits: 100,
            reads: 20,
            first: vec![1],
            users: vec![2],
            parts,
        }
    }

    fn part(nth: u64, page: u64, node: u8) -> PageRun {
        let bytes = (page * 4096, (page + 1) * 4096);
        PageRun { nth, bytes, addresses: (0x7000_0000 + bytes.0, 0x7000_0000 + bytes.1), node }
    }

    #[test]
    fn parts_become_options_and_rules() {
        let object = object(vec![part(0, 2, 1), part(3, 0, 0)]);
        let options = Treatment::Home(object.clone()).options(&Bind::RoundRobin);
        let wanted = ["--home", "p+0x11d9:8192-12288=1", "--home", "p+0x11d9#3:0-4096=0"];
        assert_eq!(options, Some(wanted.map(str::to_owned).to_vec()));
        let rules = rules_used(&object);
        assert_eq!(rules[0].pages, Some((0x7000_2000, 0x7000_3000)));
        assert_eq!((rules[0].home, rules[1].home), (Home::Node(1), Home::Node(0)));
    }

    #[test]
    fn an_object_without_a_call_is_not_moved_from_outside_and_many_parts_are_interleaved() {
        let many = object((0..40).map(|page| part(0, page, (page % 2) as u8)).collect());
        let none = &Bind::RoundRobin;
        assert_eq!(Treatment::Home(many.clone()).options(none), Some(home("p+0x11d9", "interleave")));
        assert_eq!(rules_used(&many).len(), 1);
        let variable = RemoteObject { site: None, ..many };
        assert_eq!(Treatment::Home(variable.clone()).options(none), None);
        assert_eq!(Treatment::Interleave(variable).options(none), None);
    }
}

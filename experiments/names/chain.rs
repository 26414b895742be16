// Many boxed chains that grow in turn, then walks along them.
struct Link {
    value: u64,
    visits: u64,
    next: Option<Box<Link>>,
}

#[derive(Default)]
struct Chain {
    head: Option<Box<Link>>,
    length: usize,
}

impl Chain {
    fn push(&mut self, value: u64) {
        let next = self.head.take();
        self.head = Some(Box::new(Link { value, visits: 0, next })); // dominating object
        self.length += 1;
    }

    fn walk(&mut self) -> u64 {
        let mut sum = 0;
        let mut at = self.head.as_deref_mut();
        while let Some(link) = at {
            link.visits += 1;
            sum += link.value * link.visits;
            at = link.next.as_deref_mut();
        }
        sum
    }
}

fn build(chains: &mut [Chain], links: u64) {
    let mut random = 88172645463325252u64;
    for value in 0..links {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let which = random as usize % chains.len();
        chains[which].push(value % 100);
    }
}

fn main() {
    let mut chains: Vec<Chain> = (0..300).map(|_| Chain::default()).collect();
    build(&mut chains, 100_000);
    let sum: u64 = (0..15).map(|_| chains.iter_mut().map(Chain::walk).sum::<u64>()).sum();
    println!("{sum} of {} links", chains.iter().map(|chain| chain.length).sum::<usize>());
}

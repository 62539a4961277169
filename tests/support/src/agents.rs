//! Programs that machines download, as configurations name them.

use node::config::{Agent, Agents, Arch};

/// nodeup and protokube of both architectures, with made-up hashes.
pub fn made_up_agents() -> Agents {
    let both = |digit: &str| {
        let agent = |arch| Agent {
            arch,
            sha256: digit.repeat(64),
            mirrors: Vec::new(),
        };
        vec![agent(Arch::Amd64), agent(Arch::Arm64)]
    };
    Agents {
        nodeup: both("1"),
        protokube: both("2"),
    }
}

//! The lab's DNS: a caching resolver for each VPC and one for everybody else, over the simulator's hosted zones and
//! AWS's own names. What EC2's resolver caches is cached here.

pub mod authority;
pub mod names;
pub mod resolver;
mod server;
pub mod wire;
pub mod zone;

use super::access_log::{AccessLog, Entry};
use super::sites::Sites;
use crate::aws_state::AwsState;
use authority::{Authority, View, Zones};
use hickory_proto::op::ResponseCode;
use ipnet::Ipv4Net;
use names::AwsNames;
use resolver::{Reply, Resolver};
pub use server::{serve_dns, serve_resolvers};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use wire::Transport;

/// Which of the lab's resolvers a query came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsEndpoint {
    /// A VPC's, at its base + 2: for its own hosts only.
    Vpc(String),
    /// 169.254.169.253: the VPC is that of whoever asks.
    LinkLocal,
    /// On the internet: whoever asks sees what is public.
    Internet,
}

/// The shared state of all resolvers. Time comes with each call.
pub struct Dns {
    sites: Sites,
    log: AccessLog,
    state: Mutex<State>,
}

struct State {
    zones: Zones,
    names: AwsNames,
    /// By address, for who asks; and the blocks of each VPC, for what is no instance's own address (pods).
    instances: HashMap<Ipv4Addr, String>,
    blocks: Vec<(Ipv4Net, String)>,
    resolvers: HashMap<View, Resolver>,
}

impl Dns {
    /// `world` is what the simulator says at first; later changes come by [`Dns::observe_world`].
    pub fn new(sites: Sites, log: AccessLog, world: &AwsState) -> Self {
        let state = State {
            zones: Zones::new(&world.hosted_zones),
            names: AwsNames::from_world(world),
            instances: by_address(world),
            blocks: vpc_blocks(world),
            resolvers: HashMap::new(),
        };
        Self {
            sites,
            log,
            state: Mutex::new(state),
        }
    }

    /// The world as it is from now on.
    pub fn observe_world(&self, world: &AwsState) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.zones = Zones::new(&world.hosted_zones);
        state.names = AwsNames::from_world(world);
        state.instances = by_address(world);
        state.blocks = vpc_blocks(world);
    }

    /// The answer's bytes to a query's; `None` for what is no query at all.
    pub fn answer_query(
        &self,
        door: &DnsEndpoint,
        source: Ipv4Addr,
        query: &[u8],
        transport: Transport,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let question = match wire::parse_question(query) {
            Ok(question) => question,
            Err(answer) => return answer,
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let view = state.find_view(door, source);
        let reply = match &view {
            Some(view) => self.resolve_question(&mut state, view, &question, now),
            None => refused_reply(),
        };
        drop(state);
        self.log.write(&Entry {
            service: "dns",
            source: source.to_string(),
            instance: None,
            method: question.kind.to_string(),
            host: question.name.clone(),
            path: String::new(),
            status: u16::from(reply.code),
            bytes: u64::try_from(reply.answers.len()).unwrap_or(u64::MAX),
        });
        if let Some(why) = &reply.failure {
            tracing::warn!(name = question.name, why, "DNS: no answer");
        }
        match wire::encode_reply(&question, &reply, transport) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                tracing::error!(name = question.name, %error, "DNS: an answer that cannot be written");
                None
            }
        }
    }

    fn resolve_question(
        &self,
        state: &mut State,
        view: &View,
        question: &wire::Question,
        now: Instant,
    ) -> Reply {
        let authority = Authority {
            zones: &state.zones,
            names: &state.names,
            is_site: &|name| self.sites.find_site(name).is_some(),
            front: super::FRONT,
        };
        let new = || Resolver::new(view.clone());
        let resolver = state.resolvers.entry(view.clone()).or_insert_with(new);
        resolver.resolve_name(&authority, &question.name, question.kind, now)
    }
}

impl State {
    /// What whoever asks at this door sees; `None`: a VPC's resolver answers its own hosts only.
    fn find_view(&self, door: &DnsEndpoint, source: Ipv4Addr) -> Option<View> {
        let instance = self.instances.get(&source);
        let block = || {
            self.blocks
                .iter()
                .find(|(block, _)| block.contains(&source))
        };
        let vpc = instance.or_else(|| block().map(|(_, vpc)| vpc));
        match door {
            DnsEndpoint::Internet => Some(View::Public),
            DnsEndpoint::LinkLocal => vpc.map(|vpc| View::Vpc(vpc.clone())),
            DnsEndpoint::Vpc(own) => {
                let stranger = vpc.is_some_and(|vpc| vpc != own);
                (!stranger).then(|| View::Vpc(own.clone()))
            }
        }
    }
}

fn refused_reply() -> Reply {
    Reply {
        code: ResponseCode::Refused,
        answers: Vec::new(),
        authorities: Vec::new(),
        failure: None,
    }
}

fn by_address(world: &AwsState) -> HashMap<Ipv4Addr, String> {
    let there = world.instances.iter().filter(|i| super::is_there(i));
    there.map(|i| (i.address, i.vpc.clone())).collect()
}

fn vpc_blocks(world: &AwsState) -> Vec<(Ipv4Net, String)> {
    let of = |vpc: &crate::aws_state::Vpc| {
        let blocks = vpc.cidrs.iter().filter_map(|cidr| cidr.parse().ok());
        let own = blocks.map(|block| (block, vpc.id.clone()));
        own.collect::<Vec<_>>()
    };
    world.vpcs.iter().flat_map(of).collect()
}

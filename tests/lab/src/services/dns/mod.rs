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
use crate::aws_state::{AwsState, Instance};
use crate::network::names::{FRONT, translate_address};
use authority::{Authority, View, Zones};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::AAAA;
use hickory_proto::rr::{RData, Record, RecordType};
use ipnet::IpNet;
use names::AwsNames;
use resolver::{Reply, Resolver};
pub use server::{serve_dns, serve_resolvers};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use wire::Transport;

/// Which of the lab's resolvers a query came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsEndpoint {
    /// A VPC's, at its base + 2: for its own hosts only.
    Vpc(String),
    /// 169.254.169.253 and fd00:ec2::253: the VPC is that of whoever asks.
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
    /// By address, for who asks; and ranges, for what is no instance's own address (pods): the narrower ones first.
    instances: HashMap<IpAddr, Client>,
    ranges: Vec<(IpNet, Client)>,
    resolvers: HashMap<View, Resolver>,
}

/// What is known of who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Client {
    vpc: String,
    /// Whether its subnet has DNS64.
    dns64: bool,
}

impl Dns {
    /// `world` is what the simulator says at first; later changes come by [`Dns::observe_world`].
    pub fn new(sites: Sites, log: AccessLog, world: &AwsState) -> Self {
        let state = State {
            zones: Zones::new(&world.hosted_zones),
            names: AwsNames::from_world(world),
            instances: by_address(world),
            ranges: client_ranges(world),
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
        state.ranges = client_ranges(world);
    }

    /// The answer's bytes to a query's; `None` for what is no query at all.
    pub fn answer_query(
        &self,
        door: &DnsEndpoint,
        source: IpAddr,
        query: &[u8],
        transport: Transport,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let question = match wire::parse_question(query) {
            Ok(question) => question,
            Err(answer) => return answer,
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let client = state.find_client(source);
        let dns64 = client.as_ref().is_some_and(|client| client.dns64);
        let reply = match find_view(door, client) {
            Some(view) => self.resolve_question(&mut state, &view, &question, dns64, now),
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
        dns64: bool,
        now: Instant,
    ) -> Reply {
        let authority = Authority {
            zones: &state.zones,
            names: &state.names,
            is_site: &|name| self.sites.find_site(name).is_some(),
            front: FRONT,
        };
        let new = || Resolver::new(view.clone());
        let resolver = state.resolvers.entry(view.clone()).or_insert_with(new);
        let mut resolve = |kind| resolver.resolve_name(&authority, &question.name, kind, now);
        let reply = resolve(question.kind);
        let has = |reply: &Reply, kind| reply.answers.iter().any(|one| one.record_type() == kind);
        if !dns64
            || question.kind != RecordType::AAAA
            || reply.code != ResponseCode::NoError
            || has(&reply, RecordType::AAAA)
        {
            return reply;
        }
        let found = resolve(RecordType::A);
        if has(&found, RecordType::A) {
            translated_reply(found)
        } else {
            reply
        }
    }
}

/// DNS64 (RFC 6147): IPv4 addresses as NAT64 takes them.
fn translated_reply(mut reply: Reply) -> Reply {
    let translate = |record: Record| match &record.data {
        RData::A(address) => {
            let data = RData::AAAA(AAAA(translate_address(address.0)));
            Record::from_rdata(record.name, record.ttl, data)
        }
        _ => record,
    };
    reply.answers = reply.answers.into_iter().map(translate).collect();
    reply
}

impl State {
    fn find_client(&self, source: IpAddr) -> Option<Client> {
        let mut ranges = self.ranges.iter();
        let mut found = || ranges.find(|(range, _)| range.contains(&source));
        let instance = self.instances.get(&source);
        instance
            .or_else(|| found().map(|(_, client)| client))
            .cloned()
    }
}

/// What whoever asks at this door sees; `None`: a VPC's resolver answers its own hosts only.
fn find_view(door: &DnsEndpoint, client: Option<Client>) -> Option<View> {
    let vpc = client.map(|client| client.vpc);
    match door {
        DnsEndpoint::Internet => Some(View::Public),
        DnsEndpoint::LinkLocal => vpc.map(View::Vpc),
        DnsEndpoint::Vpc(own) => {
            let stranger = vpc.is_some_and(|vpc| vpc != *own);
            (!stranger).then(|| View::Vpc(own.clone()))
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

fn by_address(world: &AwsState) -> HashMap<IpAddr, Client> {
    let there = world.instances.iter().filter(|i| super::is_there(i));
    there
        .flat_map(|instance| {
            let six = instance.ipv6_addresses.iter().copied().map(IpAddr::V6);
            let all = six.chain([instance.address.into()]);
            all.map(|address| (address, client_of(world, instance)))
        })
        .collect()
}

fn client_of(world: &AwsState, instance: &Instance) -> Client {
    let mut subnets = world.subnets.iter();
    let subnet = subnets.find(|subnet| subnet.id == instance.subnet);
    Client {
        vpc: instance.vpc.clone(),
        dns64: subnet.is_some_and(|subnet| subnet.dns64),
    }
}

/// What instances gave to pods, then whole VPCs.
fn client_ranges(world: &AwsState) -> Vec<(IpNet, Client)> {
    let there = world.instances.iter().filter(|i| super::is_there(i));
    let pods = there.flat_map(|instance| {
        let prefixes = instance.ipv6_prefixes.iter().copied().map(IpNet::V6);
        prefixes.map(|range| (range, client_of(world, instance)))
    });
    let vpcs = world.vpcs.iter().flat_map(|vpc| {
        let blocks = vpc.cidrs.iter().filter_map(|cidr| cidr.parse().ok());
        blocks.map(|block| {
            let client = Client {
                vpc: vpc.id.clone(),
                dns64: false,
            };
            (block, client)
        })
    });
    pods.chain(vpcs).collect()
}

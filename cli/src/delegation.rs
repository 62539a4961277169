//! Who serves a zone of DNS by the word of its parent, which is what the rest of the world goes by.

use anyhow::{Context, Result, bail, ensure};
use hickory_proto::op::{Edns, Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// How long one server is waited for, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;

/// What answers may have at most: it fits into one packet everywhere (<https://www.dnsflagday.net/2020/>).
const PAYLOAD: u16 = 1232;
const DNS: u16 = 53;

/// The file with the addresses of this machine's resolvers.
const RESOLVERS: &str = "/etc/resolv.conf";

/// How many of a parent's servers are asked before it is given up.
const SERVERS: usize = 3;

/// A question, and whom.
struct Question<'a> {
    server: SocketAddr,
    name: &'a str,
    kind: RecordType,
    /// The server is to find the answer; else it says what it knows itself.
    recursive: bool,
}

/// Name servers, in lower case and without dots at their ends, each with the IPv4 addresses that were sent along (glue).
pub type NamedServers = BTreeMap<String, BTreeSet<IpAddr>>;

/// The name servers of a zone as `server` says them, or those of the parent zone. Empty: the zone is not delegated.
pub async fn find_delegation(zone: &str, server: Option<SocketAddr>) -> Result<NamedServers> {
    if let Some(server) = server {
        let answer = ask_for_records(zone, server, true).await?;
        // What a resolver has found are the zone's own records, which may differ from the parent's.
        ensure!(
            answer.metadata.authoritative || answer.answers.is_empty(),
            "{server} is a resolver, which says what {zone} says of itself: name a name server of the parent zone"
        );
        return Ok(servers_of(zone, &answer));
    }
    let resolver = find_resolver()?;
    let parent = find_parent(zone, resolver).await?;
    let mut failures = Vec::new();
    for server in parent.servers.keys().take(SERVERS) {
        match ask_parent(zone, server, resolver).await {
            Ok(found) => return Ok(found),
            Err(error) => failures.push(format!("{server}: {error:#}")),
        }
    }
    bail!(
        "no name server of {} answers ({}); name one with --name-server",
        parent.name,
        failures.join("; ")
    )
}

fn find_resolver() -> Result<SocketAddr> {
    let text = std::fs::read_to_string(RESOLVERS)
        .with_context(|| format!("{RESOLVERS} cannot be read"))?;
    let mut servers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let is_server = words.next() == Some("nameserver");
        words.next().filter(|_| is_server)?.parse::<IpAddr>().ok()
    });
    let address = servers.next();
    let address = address.with_context(|| format!("{RESOLVERS} has no nameserver"))?;
    Ok((address, DNS).into())
}

/// A zone, and its servers.
struct ParentZone {
    name: String,
    servers: NamedServers,
}

/// The nearest zone above.
async fn find_parent(zone: &str, resolver: SocketAddr) -> Result<ParentZone> {
    let mut rest = zone;
    while let Some((_, parent)) = rest.split_once('.') {
        let servers = ask_for_servers(parent, resolver, true).await?;
        if !servers.is_empty() {
            let name = parent.to_owned();
            return Ok(ParentZone { name, servers });
        }
        rest = parent;
    }
    bail!("no zone above {zone} has name servers, by the resolver {resolver}")
}

async fn ask_parent(zone: &str, server: &str, resolver: SocketAddr) -> Result<NamedServers> {
    let addresses = ask_for_addresses(server, resolver).await?;
    let address = addresses.first();
    let address = address.with_context(|| format!("{server} has no IPv4 address"))?;
    ask_for_servers(zone, (*address, DNS).into(), false).await
}

/// What a zone's parent names beside the zone's own names.
#[derive(Debug, Default)]
pub struct OtherServers {
    /// Servers of the zone under other names: all their addresses are addresses of these.
    pub same: BTreeSet<String>,
    /// Those of which no address was found, and why: they may be servers of the zone or not.
    pub unknown: BTreeMap<String, String>,
}

/// Compares the servers that a parent names with those of the zone, whose names are `own`. Fails if an address of these is not found.
pub async fn compare_servers(
    named: &NamedServers,
    own: &BTreeSet<String>,
    server: Option<SocketAddr>,
) -> Result<OtherServers> {
    let mut found = OtherServers::default();
    let others: Vec<(&String, &BTreeSet<IpAddr>)> = named
        .iter()
        .filter(|(name, _)| !own.contains(*name))
        .collect();
    if others.is_empty() {
        return Ok(found);
    }
    let mut known: BTreeSet<IpAddr> = BTreeSet::new();
    for name in own {
        known.extend(find_addresses(name, server).await?);
    }
    for (name, glue) in others {
        // With glue the rest of the world begins, whatever else there is of the name.
        let addresses = match glue.is_empty() {
            true => find_addresses(name, server).await,
            false => Ok(glue.clone()),
        };
        match addresses {
            Ok(addresses) if addresses.is_subset(&known) => {
                found.same.insert(name.clone());
            }
            Ok(_) => {}
            Err(error) => {
                found.unknown.insert(name.clone(), format!("{error:#}"));
            }
        }
    }
    Ok(found)
}

/// The IPv4 addresses of a name, one at least, as `server` says them, which knows those in the parent zone, or this machine's resolver.
async fn find_addresses(name: &str, server: Option<SocketAddr>) -> Result<BTreeSet<IpAddr>> {
    if let Some(server) = server
        && let Ok(found) = ask_for_addresses(name, server).await
        && !found.is_empty()
    {
        return Ok(found);
    }
    let resolver = find_resolver()?;
    let found = ask_for_addresses(name, resolver).await?;
    ensure!(
        !found.is_empty(),
        "{name} has no IPv4 address, by the resolver {resolver}"
    );
    Ok(found)
}

async fn ask_for_addresses(name: &str, server: SocketAddr) -> Result<BTreeSet<IpAddr>> {
    let question = Question {
        server,
        name,
        kind: RecordType::A,
        recursive: true,
    };
    let answer = ask(&question).await?;
    let records = answer.answers.iter();
    Ok(records.filter_map(|record| record.data.ip_addr()).collect())
}

async fn ask_for_servers(name: &str, server: SocketAddr, recursive: bool) -> Result<NamedServers> {
    let answer = ask_for_records(name, server, recursive).await?;
    Ok(servers_of(name, &answer))
}

async fn ask_for_records(name: &str, server: SocketAddr, recursive: bool) -> Result<Message> {
    let question = Question {
        server,
        name,
        kind: RecordType::NS,
        recursive,
    };
    ask(&question).await
}

/// NS records of a name: in an answer of who serves the zone or looks it up, in a referral of who serves its parent.
fn servers_of(name: &str, answer: &Message) -> NamedServers {
    let records = answer.answers.iter().chain(&answer.authorities);
    let records = records.filter(|record| plain_name(&record.name) == plain_text(name));
    let names = records.filter_map(server_of);
    let mut servers: NamedServers = names.map(|name| (name, BTreeSet::new())).collect();
    for record in &answer.additionals {
        if let RData::A(address) = &record.data
            && let Some(glue) = servers.get_mut(&plain_name(&record.name))
        {
            glue.insert(address.0.into());
        }
    }
    servers
}

fn server_of(record: &Record) -> Option<String> {
    match &record.data {
        RData::NS(server) => Some(plain_name(&server.0)),
        _ => None,
    }
}

fn plain_name(name: &Name) -> String {
    plain_text(&name.to_ascii())
}

fn plain_text(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// The answer to a question. That a name does not exist is one.
async fn ask(question: &Question<'_>) -> Result<Message> {
    let Question { server, name, .. } = question;
    for _ in 0..ATTEMPTS {
        if let Ok(answer) = timeout(PATIENCE, ask_once(question)).await {
            return answer.with_context(|| format!("{server} was asked about {name}"));
        }
    }
    bail!("{server} does not answer questions about {name}")
}

async fn ask_once(question: &Question<'_>) -> Result<Message> {
    let mut message = Message::query();
    message.metadata.recursion_desired = question.recursive;
    let mut name = Name::from_ascii(question.name)?;
    name.set_fqdn(true);
    message.add_query(Query::query(name, question.kind));
    let mut edns = Edns::new();
    edns.set_max_payload(PAYLOAD);
    message.set_edns(edns);
    let local: IpAddr = if question.server.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((local, 0)).await?;
    socket.connect(question.server).await?;
    socket.send(&message.to_vec()?).await?;
    let mut buffer = [0; 2048];
    loop {
        let length = socket.recv(&mut buffer).await?;
        let answer = Message::from_vec(buffer.get(..length).unwrap_or_default())?;
        // Anything else is no answer to this.
        if answer.metadata.id == message.metadata.id && answer.queries == message.queries {
            return check_answer(answer);
        }
    }
}

fn check_answer(answer: Message) -> Result<Message> {
    let code = answer.metadata.response_code;
    ensure!(
        !answer.metadata.truncation,
        "the answer does not fit into a packet"
    );
    ensure!(
        [ResponseCode::NoError, ResponseCode::NXDomain].contains(&code),
        "the answer is {code}"
    );
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::rr::rdata::{A, NS};

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    /// A name server with one answer.
    async fn serve(code: ResponseCode, in_referral: bool, authoritative: bool) -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let asked = Message::from_vec(&buffer[..length]).unwrap();
                let mut answer =
                    Message::error_msg(asked.metadata.id, asked.metadata.op_code, code);
                answer.metadata.authoritative = authoritative;
                answer.add_queries(asked.queries.clone());
                let owner = asked.queries[0].name().clone();
                let records = ["NS-1.example.net.", "ns-2.example.net."].map(|server| {
                    Record::from_rdata(owner.clone(), 60, RData::NS(NS(name(server))))
                });
                let above = Record::from_rdata(name("com."), 60, RData::NS(NS(name("a.example."))));
                answer.add_authority(above);
                for with_address in ["ns-1.example.NET.", "www.example.net."] {
                    let address = RData::A(A(Ipv4Addr::LOCALHOST));
                    let glue = Record::from_rdata(name(with_address), 60, address);
                    answer.add_additional(glue);
                }
                for record in records {
                    if in_referral {
                        answer.add_authority(record);
                    } else if code == ResponseCode::NoError {
                        answer.add_answer(record);
                    }
                }
                socket
                    .send_to(&answer.to_vec().unwrap(), from)
                    .await
                    .unwrap();
            }
        });
        address
    }

    async fn servers(code: ResponseCode, in_referral: bool) -> Result<Vec<String>> {
        let server = serve(code, in_referral, !in_referral).await;
        let found = find_delegation("demo.example.com", Some(server)).await?;
        Ok(found.into_keys().collect())
    }

    #[tokio::test]
    async fn a_referral_and_an_answer_say_the_same_and_no_name_is_no_delegation() {
        let both = ["ns-1.example.net", "ns-2.example.net"];
        assert_eq!(servers(ResponseCode::NoError, true).await.unwrap(), both);
        assert_eq!(servers(ResponseCode::NoError, false).await.unwrap(), both);
        let none = servers(ResponseCode::NXDomain, false).await.unwrap();
        assert!(none.is_empty(), "{none:?}");
        let failed = servers(ResponseCode::ServFail, false).await.unwrap_err();
        assert!(
            format!("{failed:#}").contains("the answer is"),
            "{failed:#}"
        );
    }

    #[tokio::test]
    async fn addresses_in_a_referral_are_those_of_its_servers_and_no_servers() {
        let parent = serve(ResponseCode::NoError, true, false).await;
        let found = find_delegation("demo.example.com", Some(parent)).await;
        let one = BTreeSet::from([IpAddr::from(Ipv4Addr::LOCALHOST)]);
        let expected = [
            ("ns-1.example.net", one),
            ("ns-2.example.net", BTreeSet::new()),
        ];
        let expected = expected.map(|(name, glue)| (name.to_owned(), glue));
        assert_eq!(found.unwrap(), BTreeMap::from(expected));
    }

    #[tokio::test]
    async fn the_word_of_a_resolver_is_not_taken_for_the_parents() {
        let resolver = serve(ResponseCode::NoError, false, false).await;
        let failed = find_delegation("demo.example.com", Some(resolver)).await;
        let failed = failed.unwrap_err().to_string();
        assert!(failed.contains("is a resolver"), "{failed}");
    }
}

//! A caching resolver: what was answered holds until its TTL is over, what was denied too (RFC 2308), whatever
//! becomes of the record meanwhile.

use super::authority::{Authority, AuthorityAnswer, View, target_of, zone_name};
use super::zone::{Denial, dns_name};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{RData, Record, RecordType};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A chain longer than this is a circle.
const MOST_CNAMES: usize = 9;

/// Entries at which those that are over are thrown away.
const MANY: usize = 10_000;

/// An answer's records and code; the sections of a DNS message.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub code: ResponseCode,
    pub answers: Vec<Record>,
    pub authorities: Vec<Record>,
    /// Why the code is SERVFAIL.
    pub failure: Option<String>,
}

/// The cache of one view.
#[derive(Debug)]
pub struct Resolver {
    view: View,
    /// A name that does not exist is kept without type: it does not exist for any.
    cache: HashMap<(String, Option<RecordType>), (AuthorityAnswer, Instant)>,
    turn: usize,
}

impl Resolver {
    pub fn new(view: View) -> Self {
        Self {
            view,
            cache: HashMap::new(),
            turn: 0,
        }
    }

    /// Resolves a plain name, following CNAMEs.
    pub fn resolve_name(
        &mut self,
        authority: &Authority<'_>,
        asked: &str,
        kind: RecordType,
        now: Instant,
    ) -> Reply {
        let mut reply = Reply {
            code: ResponseCode::NoError,
            answers: Vec::new(),
            authorities: Vec::new(),
            failure: None,
        };
        let mut current = asked.to_owned();
        for _ in 0..MOST_CNAMES {
            let (answer, left) = self.resolve_step(authority, &current, kind, now);
            let owner = dns_name(&current);
            match answer {
                AuthorityAnswer::Records(_, data) => {
                    let data = self.rotate_records(data);
                    let records = data.into_iter();
                    let records = records.map(|data| Record::from_rdata(owner.clone(), left, data));
                    reply.answers.extend(records);
                    return reply;
                }
                AuthorityAnswer::Cname(_, data) => {
                    let target = target_of(&data);
                    reply.answers.push(Record::from_rdata(owner, left, data));
                    match target {
                        Some(target) => current = target,
                        None => {
                            return failed_reply(reply, format!("the CNAME of {current} is none"));
                        }
                    }
                }
                AuthorityAnswer::NoData(denial) => {
                    reply.authorities.push(soa_record(&denial, left));
                    return reply;
                }
                AuthorityAnswer::NxDomain(denial) => {
                    reply.code = ResponseCode::NXDomain;
                    reply.authorities.push(soa_record(&denial, left));
                    return reply;
                }
                AuthorityAnswer::Failure(why) => return failed_reply(reply, why),
            }
        }
        failed_reply(reply, format!("CNAMEs from {asked} go round"))
    }

    /// One step and the seconds that it still holds.
    fn resolve_step(
        &mut self,
        authority: &Authority<'_>,
        current: &str,
        kind: RecordType,
        now: Instant,
    ) -> (AuthorityAnswer, u32) {
        for kind in [None, Some(kind)] {
            if let Some((answer, until)) = self.cache.get(&(current.to_owned(), kind))
                && *until > now
            {
                let left = until.duration_since(now);
                let begun = u64::from(left.subsec_nanos() > 0);
                let seconds = u32::try_from(left.as_secs() + begun).unwrap_or(u32::MAX);
                return (answer.clone(), seconds);
            }
        }
        let answer = authority.answer_question(&self.view, current, kind);
        let (key, ttl) = match &answer {
            AuthorityAnswer::Records(ttl, _) | AuthorityAnswer::Cname(ttl, _) => (Some(kind), *ttl),
            AuthorityAnswer::NoData(denial) => (Some(kind), denial.ttl),
            AuthorityAnswer::NxDomain(denial) => (None, denial.ttl),
            AuthorityAnswer::Failure(_) => return (answer, 0),
        };
        if self.cache.len() >= MANY {
            self.cache.retain(|_, (_, until)| *until > now);
        }
        let until = now + Duration::from_secs(ttl.into());
        self.cache
            .insert((current.to_owned(), key), (answer.clone(), until));
        (answer, ttl)
    }

    fn rotate_records(&mut self, mut data: Vec<RData>) -> Vec<RData> {
        self.turn = self.turn.wrapping_add(1);
        if !data.is_empty() {
            let by = self.turn % data.len();
            data.rotate_left(by);
        }
        data
    }
}

fn soa_record(denial: &Denial, left: u32) -> Record {
    Record::from_rdata(zone_name(denial), left, RData::SOA(denial.soa.clone()))
}

fn failed_reply(mut reply: Reply, why: String) -> Reply {
    reply.code = ResponseCode::ServFail;
    reply.answers.clear();
    reply.failure = Some(why);
    reply
}

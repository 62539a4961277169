//! DNS messages: a query's bytes to an answer's bytes.

use super::resolver::Reply;
use super::zone::plain_name;
use hickory_proto::ProtoError;
use hickory_proto::op::{Edns, Message, MessageType, Metadata, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};

/// What an answer by UDP may have at most, as EC2's resolver says it.
const UDP_PAYLOAD: u16 = 4096;

/// What a query without EDNS can take.
const UDP_PLAIN: u16 = 512;

/// How a message travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
}

/// A query that can be answered.
#[derive(Debug)]
pub struct Question {
    message: Message,
    query: Query,
    pub name: String,
    pub kind: RecordType,
}

/// The question in a message; or the bytes of the answer that says why there is none; or nothing, for what is no query.
pub fn parse_question(bytes: &[u8]) -> Result<Question, Option<Vec<u8>>> {
    let Ok(message) = Message::from_vec(bytes) else {
        let id = match bytes {
            [high, low, ..] if bytes.len() >= 12 => u16::from_be_bytes([*high, *low]),
            _ => return Err(None),
        };
        let error = Message::error_msg(id, OpCode::Query, ResponseCode::FormErr);
        return Err(error.to_vec().ok());
    };
    if message.metadata.message_type != MessageType::Query {
        return Err(None);
    }
    let refuse = |code| {
        let error = Message::error_msg(message.metadata.id, message.metadata.op_code, code);
        Err(error.to_vec().ok())
    };
    if message.metadata.op_code != OpCode::Query {
        return refuse(ResponseCode::NotImp);
    }
    let [query] = message.queries.as_slice() else {
        return refuse(ResponseCode::FormErr);
    };
    if query.query_class() != DNSClass::IN || query.query_type() == RecordType::AXFR {
        return refuse(ResponseCode::Refused);
    }
    if query.query_type().is_any() {
        return refuse(ResponseCode::NotImp);
    }
    Ok(Question {
        query: query.clone(),
        name: plain_name(&query.name().to_ascii()),
        kind: query.query_type(),
        message,
    })
}

/// The answer's bytes, cut where the transport cannot take them all.
pub fn encode_reply(
    question: &Question,
    reply: &Reply,
    transport: Transport,
) -> Result<Vec<u8>, ProtoError> {
    let asked = &question.message;
    let mut answer = Message::response(asked.metadata.id, OpCode::Query);
    answer.metadata = Metadata::response_from_request(&asked.metadata);
    answer.metadata.recursion_available = true;
    answer.metadata.response_code = reply.code;
    answer.add_query(question.query.clone());
    answer.add_answers(reply.answers.iter().cloned());
    answer.add_authorities(reply.authorities.iter().cloned());
    let mut most = UDP_PLAIN;
    if let Some(edns) = &asked.edns {
        most = edns.max_payload().clamp(UDP_PLAIN, UDP_PAYLOAD);
        let mut own = Edns::new();
        own.set_max_payload(UDP_PAYLOAD);
        answer.set_edns(own);
    }
    let bytes = answer.to_vec()?;
    if transport == Transport::Udp && bytes.len() > usize::from(most) {
        return answer.truncate().to_vec();
    }
    Ok(bytes)
}

//! IMDSv2 session tokens: each names its instance and its end, and is signed, so that nothing has to be remembered.

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::{hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::time::{Duration, Instant};

/// Longest life of a token in seconds, as of EC2: six hours.
pub const LONGEST: u64 = 21_600;

/// Issues and checks tokens. They end with the process: clients then ask for another, as they have to anyway.
#[derive(Debug)]
pub struct Tokens {
    key: hmac::Key,
    begin: Instant,
}

impl Tokens {
    /// `begin` is no later than any time that comes with a call.
    pub fn new(begin: Instant) -> Result<Self, Unspecified> {
        let mut secret = [0; 32];
        rand::fill(&mut secret)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        Ok(Self { key, begin })
    }

    /// A token for an instance, 56 characters as EC2's are.
    pub fn issue_token(&self, instance: &str, seconds: u64, now: Instant) -> String {
        let end = now + Duration::from_secs(seconds);
        let since = end.saturating_duration_since(self.begin).as_nanos();
        let end = u64::try_from(since).unwrap_or(u64::MAX).to_be_bytes();
        let mut token = end.to_vec();
        token.extend_from_slice(self.sign_token(instance, end).as_ref());
        STANDARD.encode(token)
    }

    /// How long the token still holds for the instance; `None`: it does not, or is none.
    pub fn remaining_time(&self, instance: &str, token: &str, now: Instant) -> Option<Duration> {
        let token = STANDARD.decode(token).ok()?;
        let (end, signature) = token.split_first_chunk::<8>()?;
        hmac::verify(&self.key, &signed_bytes(instance, *end), signature).ok()?;
        let end = self.begin + Duration::from_nanos(u64::from_be_bytes(*end));
        let left = end.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    fn sign_token(&self, instance: &str, end: [u8; 8]) -> hmac::Tag {
        hmac::sign(&self.key, &signed_bytes(instance, end))
    }
}

fn signed_bytes(instance: &str, end: [u8; 8]) -> Vec<u8> {
    [end.as_slice(), instance.as_bytes()].concat()
}

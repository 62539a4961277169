//! Who somebody is, by a GetCallerIdentity that they signed and somebody else sends: the receiver learns from STS
//! whose signature it is, and the sender's credentials stay where they are.

use super::{Ec2QueryClient, SignedCall, answer};
use crate::failure::local_failure;
use engine::{Class, Failure};
use std::collections::BTreeMap;
use std::time::SystemTime;

const CALLER_IDENTITY_FORM: &str = "Action=GetCallerIdentity&Version=2011-06-15";

/// Whose signature it is, as STS says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    /// Twelve digits.
    pub account: String,
    /// `arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION` for an instance; the session's name is its instance id.
    pub arn: String,
}

impl Ec2QueryClient {
    /// A GetCallerIdentity for the region's STS with these headers under the signature.
    pub async fn sign_identity(
        &self,
        headers: &[(String, String)],
        now: SystemTime,
    ) -> Result<SignedCall, Failure> {
        let signed = self.sign("sts", CALLER_IDENTITY_FORM, headers, now).await;
        signed.map_err(|error| local_failure(Class::Denied, "sts:GetCallerIdentity", error))
    }

    /// Sends a GetCallerIdentity with somebody's headers to this region's STS, wherever they wanted it to go.
    pub async fn identify_caller(
        &self,
        headers: &BTreeMap<String, String>,
    ) -> Result<CallerIdentity, Failure> {
        const CALL: &str = "sts:GetCallerIdentity";
        let call = SignedCall {
            url: self.endpoint("sts"),
            headers: headers.clone(),
            body: CALLER_IDENTITY_FORM.to_owned(),
        };
        let text = answer::response_text(CALL, self.send(CALL, &call).await?)?;
        answer::parse_answer(CALL, &text, |root| {
            Some(CallerIdentity {
                account: answer::element_text(root, "Account")?,
                arn: answer::element_text(root, "Arn")?,
            })
        })
    }
}

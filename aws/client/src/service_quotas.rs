//! Quotas of an account, as Service Quotas says them in the JSON protocol
//! (<https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/Welcome.html>): two calls, for which its SDK client is too large.

use crate::Clients;
use crate::failure::local_failure;
use crate::json_answer::parse_json_answer;
use crate::signed_call::{self, UnsignedCall};
use engine::{Class, Failure};
use serde_json::{Value, json};
use std::time::SystemTime;

/// The value that holds for the account; AWS has none for some quotas that nobody has changed.
const APPLIED: &str = "servicequotas:GetServiceQuota";
/// The value that holds where no other one does.
const DEFAULT: &str = "servicequotas:GetAWSDefaultServiceQuota";

const SERVICE: &str = "servicequotas";

/// A client of Service Quotas in one region.
#[derive(Clone, Debug)]
pub struct ServiceQuotas {
    clients: Clients,
    http: reqwest::Client,
}

/// A quota as it holds for the account in the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceQuota {
    /// `VPCs per Region`.
    pub name: String,
    /// In whole units.
    pub value: u64,
}

impl ServiceQuotas {
    /// Asks with the credentials and in the region of those clients. Makes no call.
    pub fn new(clients: &Clients) -> Result<Self, Failure> {
        Ok(Self {
            clients: clients.clone(),
            http: signed_call::build_http_client(APPLIED)?,
        })
    }

    /// A quota by the code of its service (`ec2`, `vpc`) and its own (`L-1216C47A`); `None`: the region has no such quota.
    pub async fn find(&self, service: &str, code: &str) -> Result<Option<ServiceQuota>, Failure> {
        for call in [APPLIED, DEFAULT] {
            match self.ask(call, service, code).await {
                Err(failure) if failure.code == "NoSuchResourceException" => {}
                Err(failure) => return Err(failure),
                Ok(answer) => return parse_quota(call, &answer).map(Some),
            }
        }
        Ok(None)
    }

    async fn ask(&self, call: &str, service: &str, code: &str) -> Result<Value, Failure> {
        let action = call.rsplit(':').next().unwrap_or(call);
        let headers = [
            ("content-type", "application/x-amz-json-1.1".to_owned()),
            ("x-amz-target", format!("ServiceQuotasV20190624.{action}")),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        let body = json!({"ServiceCode": service, "QuotaCode": code}).to_string();
        let unsigned = UnsignedCall {
            service: SERVICE,
            url: self.endpoint(),
            body: &body,
            headers: &headers,
        };
        let signed = signed_call::sign_call(&self.clients, &unsigned, SystemTime::now()).await;
        let signed = signed.map_err(|error| local_failure(Class::Denied, call, error))?;
        parse_json_answer(
            call,
            signed_call::send_call(&self.http, call, &signed).await?,
        )
    }

    /// As the SDK's clients choose theirs: a variable for the service, one for all services or the profile, AWS' own.
    fn endpoint(&self) -> String {
        let own = std::env::var("AWS_ENDPOINT_URL_SERVICE_QUOTAS").ok();
        let own = own.filter(|url| !url.is_empty());
        let all = || self.clients.config().endpoint_url().map(str::to_owned);
        let region = self.clients.region();
        let domain = if region.starts_with("cn-") {
            "amazonaws.com.cn"
        } else {
            "amazonaws.com"
        };
        let usual = || format!("https://{SERVICE}.{region}.{domain}");
        let url = own.or_else(all).unwrap_or_else(usual);
        format!("{}/", url.trim_end_matches('/'))
    }
}

fn parse_quota(call: &str, answer: &Value) -> Result<ServiceQuota, Failure> {
    let read = || {
        let quota = answer.get("Quota")?;
        Some(ServiceQuota {
            name: quota.get("QuotaName")?.as_str()?.to_owned(),
            value: whole_number(quota.get("Value")?.as_f64()?)?,
        })
    };
    read().ok_or_else(|| local_failure(Class::Unknown, call, "the answer lacks name or value"))
}

/// A number as Service Quotas has it, which is never negative, without what is behind its point.
fn whole_number(value: f64) -> Option<u64> {
    format!("{:.0}", value.floor()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_read_in_whole_units() {
        let read = |value: Value| {
            let answer = json!({"Quota": {"QuotaName": "VPCs per Region", "Value": value}});
            parse_quota(APPLIED, &answer).map(|quota| quota.value)
        };
        assert_eq!(read(json!(5.0)), Ok(5));
        assert_eq!(read(json!(4800)), Ok(4800));
        assert_eq!(read(json!(0.9)), Ok(0));
        for broken in [json!(null), json!("5"), json!(-1.0)] {
            assert!(read(broken.clone()).is_err(), "{broken}");
        }
    }
}

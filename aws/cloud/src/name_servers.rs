//! The name servers of a public hosted zone.

use crate::CloudClients;
use aws_client::failure::Classify;
use engine::Failure;
use std::collections::BTreeSet;

/// Without dots at their ends; empty for a private zone.
pub async fn zone_name_servers(
    clients: &CloudClients,
    zone: &str,
) -> Result<BTreeSet<String>, Failure> {
    let answer = clients.route53.get_hosted_zone().id(zone).send().await;
    let answer = answer.classify_call("route53:GetHostedZone")?;
    let set = answer.delegation_set.into_iter();
    let servers = set.flat_map(|set| set.name_servers);
    let plain = servers.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
    Ok(plain.collect())
}
